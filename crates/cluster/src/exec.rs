//! Commands in pods.

use std::time::Duration;

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

/// How often a container runtime may fail to start a command before that is a fault.
const STARTS: u32 = 3;
const BETWEEN_STARTS: Duration = Duration::from_secs(1);

impl Cluster {
    /// Runs `command` in a container, `stdin` given to it (secrets go there, never into `command`).
    ///
    /// # Caveats
    /// There is no deadline: a command that does not end holds the caller; wrap it in a timeout where that can happen. The connection is tried again
    /// while the API server refuses for the moment, and so is a start that the container runtime gave up; a command that has begun is never run twice.
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
        let mut starts = 1;
        let output = loop {
            let process = patiently(&format!("run {words} in {place}"), || {
                api.exec(pod, command.iter().copied(), &parameters)
            })
            .await?;
            match converse(process, stdin).await {
                Ok(output) => break output,
                Err(fault) if starts < STARTS && was_never_started(&fault.to_string()) => {
                    tracing::debug!(place, %fault, "starting the command again");
                    tokio::time::sleep(BETWEEN_STARTS).await;
                    starts += 1;
                }
                Err(source) => {
                    let action = format!("run {words} in {place} to its end");
                    return Err(Error::Stream { action, source });
                }
            }
        };
        failpoint!(after, "exec", "{words} in {place}");
        Ok(output)
    }
}

/// Whether runc lost its own first process (`runc init`) before that became the command: nothing of the command has run. runc's words are those of
/// `libcontainer/process_linux.go`; a program that is not there fails in other words, and for good.
fn was_never_started(fault: &str) -> bool {
    fault.contains("unable to start container process") && fault.contains("read init-p")
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
    fn a_start_that_runc_gave_up_failed_the_step() {
        let given_up = "Internal error occurred: error executing command in container: failed to exec in container: failed to start exec \"1bf0\": OCI runtime exec \
                        failed: exec failed: unable to start container process: waiting for init preliminary setup: read init-p: connection reset by peer: unknown";
        assert!(was_never_started(given_up));
        for for_good in [
            "exec failed: unable to start container process: exec: \"nope\": executable file not found in $PATH: unknown",
            "the connection closed before the exit code came",
        ] {
            assert!(!was_never_started(for_good), "{for_good}");
        }
    }

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
