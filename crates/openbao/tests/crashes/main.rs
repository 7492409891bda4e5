//! The initialisation and the private files under the two things that interrupt them: a death of the process at any point, and a full disk.
//!
//! Each test starts this very program again as a child, for one of the tests below that do nothing otherwise: a death must not take the judge along, and a
//! small disk needs a mount namespace of its own.

#![expect(clippy::unwrap_used, reason = "tests")]

mod child;
mod fake_server;
mod full_disk;
mod sweep;
