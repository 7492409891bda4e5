//! Commands in a node container, over the engine's exec endpoints.

use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use futures::StreamExt;
use tokio::io::AsyncWriteExt;

/// What a command said, in bytes.
pub(crate) struct RawOutput {
    pub(crate) code: i64,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// The engine may tell the end of the output a moment before it knows the exit code.
const INSPECTIONS: u32 = 100;
const BETWEEN_INSPECTIONS: Duration = Duration::from_millis(50);

pub(crate) async fn run(
    docker: &Docker,
    container: &str,
    command: &[&str],
    stdin: Option<&[u8]>,
) -> Result<RawOutput, Error> {
    let config = ExecConfig {
        attach_stdin: Some(stdin.is_some()),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        user: Some("root".to_owned()),
        cmd: Some(command.iter().map(|word| (*word).to_owned()).collect()),
        ..ExecConfig::default()
    };
    let id = docker.create_exec(container, config).await?.id;
    let StartExecResults::Attached {
        mut output,
        mut input,
    } = docker.start_exec(&id, None).await?
    else {
        return Err(Error::DockerStreamError {
            error: "the engine did not attach to the command".to_owned(),
        });
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let write = async {
        if let Some(bytes) = stdin
            && input.write_all(bytes).await.is_ok()
        {
            // A command that ends early closes its side first; its exit code tells whether that was right.
            let _ = input.shutdown().await;
        }
    };
    let read = async {
        while let Some(part) = output.next().await {
            match part? {
                LogOutput::StdErr { message } => stderr.extend_from_slice(&message),
                LogOutput::StdOut { message } | LogOutput::Console { message } => {
                    stdout.extend_from_slice(&message);
                }
                LogOutput::StdIn { .. } => {}
            }
        }
        Ok::<(), Error>(())
    };
    let ((), read) = tokio::join!(write, read);
    read?;
    for _ in 0..INSPECTIONS {
        let state = docker.inspect_exec(&id).await?;
        if state.running != Some(true)
            && let Some(code) = state.exit_code
        {
            return Ok(RawOutput {
                code,
                stdout,
                stderr,
            });
        }
        tokio::time::sleep(BETWEEN_INSPECTIONS).await;
    }
    Err(Error::DockerStreamError {
        error: "the command's output ended, its exit code never came".to_owned(),
    })
}
