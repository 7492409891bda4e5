//! OpenBao: a small HTTP client of the dozen endpoints the bootstrap needs, the init file, and the journal that makes initialisation crash-safe.

pub mod client;
pub mod init_file;
pub mod initialise;
pub mod journal;
pub mod unseal_keys;

pub use client::{Client, Error, Given, Health, SealStatus};
pub use init_file::InitFile;
pub use initialise::{InitialiseError, Split};
pub use journal::{Journal, JournalState};
pub use unseal_keys::{KeysError, KeysInForce, UnsealKeys};
