//! A local port that leads to a pod's.

use std::net::SocketAddr;

use crate::connect::Cluster;
use crate::error::Error;

/// Listens on 127.0.0.1 for as long as it lives; each connection is a forward of its own. Ends with the pod: open a new one per pod.
#[derive(Debug)]
pub struct LocalForward {
    address: SocketAddr,
    _stop: tokio_util::sync::DropGuard,
}

impl LocalForward {
    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Cluster {
    /// Opens one to a pod's port. The pod need not be Ready (a sealed OpenBao is not).
    pub async fn port_forward(&self, namespace: &str, pod: &str, port: u16) -> Result<LocalForward, Error> {
        todo!()
    }
}
