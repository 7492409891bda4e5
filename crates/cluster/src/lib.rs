//! The cluster: connection, server-side apply, waits that name their blockers, exec, port-forward, Helm's release records, and the node containers.
//!
//! Knows nothing of GitLab or of steps.

pub mod apply;
pub mod blockers;
pub mod connect;
pub mod delete;
pub mod error;
pub mod exec;
pub mod nodes;
pub mod object;
pub mod port_forward;
pub mod read;
pub mod releases;
pub mod secret;
pub mod wait;

pub use apply::Change;
pub use connect::{Cluster, ConnectOptions};
pub use error::Error;
pub use exec::ExecOutput;
pub use nodes::{Node, Nodes};
pub use port_forward::LocalForward;
pub use releases::{Release, ReleaseRevision};
pub use wait::{Verdict, WaitFor};

/// Our field manager.
pub const FIELD_MANAGER: &str = "blueprint";
