//! Commands in pods.

use crate::connect::Cluster;
use crate::error::Error;

/// What a command said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// Exit code.
    pub code: i64,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Cluster {
    /// Runs `command` in a container, `stdin` given to it (secrets go there, never into `command`).
    pub async fn exec(&self, namespace: &str, pod: &str, container: Option<&str>, command: &[&str], stdin: Option<&[u8]>) -> Result<ExecOutput, Error> {
        todo!()
    }
}
