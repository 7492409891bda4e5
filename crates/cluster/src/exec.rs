//! Commands in pods.

use blueprint_failpoint::failpoint;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::{Api, AttachParams, AttachedProcess};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::connect::Cluster;
use crate::error::Error;
use crate::retry::patiently;

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

/// Bytes that the streams may hold before one side waits for the other.
const BUFFER: usize = 64 * 1024;

impl Cluster {
    /// Runs `command` in a container, `stdin` given to it (secrets go there, never into `command`).
    ///
    /// # Caveats
    /// There is no deadline: a command that does not end holds the caller; wrap it in a timeout where that can happen. The connection is tried again
    /// while the API server refuses for the moment; a command that has begun is never run twice.
    pub async fn exec(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
        command: &[&str],
        stdin: Option<&[u8]>,
    ) -> Result<ExecOutput, Error> {
        let api = Api::<Pod>::namespaced(self.client(), namespace);
        let parameters = AttachParams {
            container: container.map(str::to_owned),
            stdin: stdin.is_some(),
            stdout: true,
            stderr: true,
            tty: false,
            max_stdin_buf_size: Some(BUFFER),
            max_stdout_buf_size: Some(BUFFER),
            max_stderr_buf_size: Some(BUFFER),
        };
        let place = format!("pod {namespace}/{pod}");
        let words = command.first().copied().unwrap_or_default();
        failpoint!(before, "exec", "{words} in {place}");
        let process = patiently(&format!("run {words} in {place}"), || {
            api.exec(pod, command.iter().copied(), &parameters)
        })
        .await?;
        let action = format!("run {words} in {place} to its end");
        let output = converse(process, stdin)
            .await
            .map_err(|source| Error::Stream { action, source })?;
        failpoint!(after, "exec", "{words} in {place}");
        Ok(output)
    }
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Writes stdin and drains both outputs at the same time: a command that fills one pipe while another waits would never end.
async fn converse(mut process: AttachedProcess, stdin: Option<&[u8]>) -> Result<ExecOutput, Fault> {
    let status = process.take_status();
    let mut to_command = process.stdin();
    let (mut stdout, mut stderr) = (process.stdout(), process.stderr());
    let write = async {
        if let (Some(writer), Some(bytes)) = (to_command.as_mut(), stdin) {
            // A command that ends without reading all of its input closes the pipe; its exit code tells whether that was right.
            if writer.write_all(bytes).await.is_ok() {
                let _ = writer.shutdown().await;
            }
        }
    };
    let ((), out, err) = tokio::join!(write, drain(&mut stdout), drain(&mut stderr));
    let (out, err) = (out?, err?);
    drop(to_command);
    let ended = match status {
        Some(status) => status.await,
        None => None,
    };
    let Some(ended) = ended else {
        let fault = process.join().await.err().map_or_else(
            || "the connection closed before the exit code came".to_owned(),
            |fault| fault.to_string(),
        );
        return Err(fault.into());
    };
    let code = exit_code(&ended)?;
    Ok(ExecOutput {
        code,
        stdout: String::from_utf8_lossy(&out).into_owned(),
        stderr: String::from_utf8_lossy(&err).into_owned(),
    })
}

async fn drain<R: AsyncRead + Unpin>(reader: &mut Option<R>) -> Result<Vec<u8>, std::io::Error> {
    let mut bytes = Vec::new();
    if let Some(reader) = reader {
        reader.read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// The exit code out of the status channel (`k8s.io/apimachinery` `remotecommand`: reason `NonZeroExitCode`, cause `ExitCode`).
fn exit_code(status: &Status) -> Result<i64, Fault> {
    if status.status.as_deref() == Some("Success") {
        return Ok(0);
    }
    let causes = status
        .details
        .iter()
        .flat_map(|details| details.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref()?.parse().ok());
    code.ok_or_else(|| {
        status
            .message
            .clone()
            .unwrap_or_else(|| "the command could not be started".to_owned())
            .into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_exit_code_comes_from_the_status_channel() {
        let status = |value| serde_json::from_value::<Status>(value).unwrap();
        assert_eq!(exit_code(&status(json!({"status": "Success"}))).unwrap(), 0);
        let failed = json!({"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}});
        assert_eq!(exit_code(&status(failed)).unwrap(), 3);
        let broken = json!({"status": "Failure", "message": "exec: \"nope\": executable file not found in $PATH"});
        assert!(
            exit_code(&status(broken))
                .unwrap_err()
                .to_string()
                .contains("executable file not found")
        );
    }
}
