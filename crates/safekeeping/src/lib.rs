//! Private files: written atomically, mode 0600, fsynced; the snapshot of the chart's Secrets; the archive of all of them; the run lock.
//!
//! Knows nothing of Kubernetes. Everything that must survive a cluster's recreation goes to disk through here.

pub mod archive;
pub mod lock;
pub mod password;
pub mod private_file;
pub mod snapshot;

pub use lock::{LockError, RunLock};
pub use private_file::{Error, Mended, Written};
