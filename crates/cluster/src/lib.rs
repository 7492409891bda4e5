//! The cluster: connection, server-side apply, waits that name their blockers, exec, port-forward, Helm's release records, and the node containers.
//!
//! Knows nothing of GitLab or of steps.

pub mod answer;
pub mod apply;
pub mod blockers;
mod claims;
pub mod connect;
#[cfg(feature = "test-control-plane")]
pub mod control_plane;
pub mod delete;
mod diagnose;
mod engine;
pub mod error;
mod events;
pub mod exec;
mod kubeconfig;
mod node_exec;
mod node_life;
pub mod nodes;
pub mod object;
pub mod ownership;
pub mod port_forward;
pub mod read;
pub mod releases;
pub mod residents;
mod retry;
pub mod run_lease;
pub mod secret;
pub mod wait;
mod watch;

pub use answer::Answer;
pub use apply::Change;
pub use connect::{Cluster, ConnectOptions};
pub use error::Error;
pub use exec::ExecOutput;
pub use nodes::{Node, Nodes};
pub use port_forward::LocalForward;
pub use read::is_ready;
pub use releases::{Release, ReleaseRevision};
pub use residents::Resident;
pub use run_lease::{LeaseError, RunLease};
pub use secret::{SecretManifest, SecretRead};
pub use wait::{Verdict, WaitFor};

/// Our field manager.
pub const FIELD_MANAGER: &str = "blueprint";
