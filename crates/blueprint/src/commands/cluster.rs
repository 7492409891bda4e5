//! `blueprint cluster create|delete`: the kind cluster below everything, through the kind on PATH.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use blueprint_charts::yaml;
use clap::Subcommand;
use serde_json::Value;
use tokio::process::Command;

use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup::{self, Pins};

/// Create or delete the kind cluster
///
/// Deleting keeps what must outlive the cluster: the storage folder and infra/secrets. A new cluster finds both again.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Create it, with the storage folder mounted in every node
    Create(CreateArgs),
    /// Delete it; data and credentials stay
    Delete(DeleteArgs),
}

#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// kind's configuration [default: infra/kind/cluster.yaml of the workspace, else the built-in one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The node image [default: the pin `kind-node` of VERSIONS.json]
    #[arg(long)]
    image: Option<String>,
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
struct DeleteArgs {
    #[command(flatten)]
    which: Which,
}

#[derive(Debug, clap::Args)]
struct Which {
    /// The cluster's name [default: `cluster` of blueprint.yaml, else `blueprint`]
    #[arg(long)]
    name: Option<String>,
    /// The kubeconfig that kind writes to [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

pub(crate) async fn run(args: Args, app: &App) -> Result<ExitCode, Problem> {
    let pins = setup::pins(&app.workspace, None)?;
    let kind = Kind {
        root: app.workspace.root().to_owned(),
        wanted: pins.versions.tool("kind").ok().cloned(),
    };
    let command = match &args.action {
        Action::Create(_) => "blueprint cluster create",
        Action::Delete(_) => "blueprint cluster delete",
    };
    let _lock = app.lock(command)?;
    match args.action {
        Action::Create(args) => create(&args, app, &pins, &kind).await,
        Action::Delete(args) => delete(&args, app, &pins, &kind).await,
    }
}

async fn create(
    args: &CreateArgs,
    app: &App,
    pins: &Pins,
    kind: &Kind,
) -> Result<ExitCode, Problem> {
    let name = args.which.name.as_deref().unwrap_or(&pins.settings.cluster);
    let (origin, text) = config(args, app, pins)?;
    let config = yaml::document(&text, &origin)
        .map_err(|error| Problem::from(blueprint_phase2::Error::from(error)))?;
    let mounts = mounts(&config);
    if !mounts
        .iter()
        .any(|mount| mount.container == pins.settings.storage_root)
    {
        return Err(
            Problem::usage(format!("{} mounts no stable storage", origin.display()))
                .expected(format!(
                    "an extraMounts entry with containerPath {} on every node",
                    pins.settings.storage_root
                ))
                .found(format!("{} other mount(s)", mounts.len()))
                .hint("add it, or set storage_root in blueprint.yaml to the path that is mounted"),
        );
    }
    if kind.clusters().await?.iter().any(|cluster| cluster == name) {
        return Err(Problem::failed(format!("a kind cluster named `{name}` exists already"))
            .expected("no cluster of that name")
            .hint("go on with `blueprint up`, or delete it first with `blueprint cluster delete` (data and credentials stay)"));
    }
    for mount in &mounts {
        let folder = app.workspace.root().join(&mount.host);
        if !folder.exists() {
            std::fs::create_dir_all(&folder).map_err(|error| {
                Problem::failed(format!("failed to make {}", folder.display())).caused_by(&error)
            })?;
            app.printer.say(&format!(
                "made {}, mounted at {} in every node",
                folder.display(),
                mount.container
            ));
        }
    }
    let pinned = pins
        .versions
        .image("kind-node")
        .ok()
        .map(|pin| format!("{}:{}", pin.repository, pin.tag));
    let mut words = vec!["create", "cluster", "--name", name, "--config", "-"];
    let image = args.image.clone().or(pinned);
    if let Some(image) = &image {
        words.extend(["--image", image]);
    }
    kind.run(&words, args.which.kubeconfig.as_deref(), &text)
        .await?;
    app.printer.say("Next: `blueprint up`.");
    Ok(ExitCode::Done)
}

async fn delete(
    args: &DeleteArgs,
    app: &App,
    pins: &Pins,
    kind: &Kind,
) -> Result<ExitCode, Problem> {
    let name = args.which.name.as_deref().unwrap_or(&pins.settings.cluster);
    if !kind.clusters().await?.iter().any(|cluster| cluster == name) {
        app.printer
            .say(&format!("there is no kind cluster named `{name}`"));
        return Ok(ExitCode::Done);
    }
    kind.run(
        &["delete", "cluster", "--name", name],
        args.which.kubeconfig.as_deref(),
        "",
    )
    .await?;
    app.printer.say(&format!(
        "The storage folder, {} and {} stay: `blueprint cluster create` and `blueprint up` find them again.",
        app.workspace.secrets().display(),
        app.workspace.wildcard().display()
    ));
    Ok(ExitCode::Done)
}

/// The configuration's text and where it comes from.
fn config(args: &CreateArgs, app: &App, pins: &Pins) -> Result<(PathBuf, String), Problem> {
    if let Some(path) = &args.config {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Problem::usage(format!("failed to read {}", path.display())).caused_by(&error)
        })?;
        return Ok((path.clone(), text));
    }
    let path = app.workspace.kind_config();
    match pins.references.text("infra/kind/cluster.yaml")? {
        Some(text) => Ok((path, text)),
        None => Err(Problem::usage(format!("there is no {}", path.display()))
            .hint("`blueprint init` writes it")),
    }
}

/// A folder of the host in a node.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    host: PathBuf,
    container: String,
}

/// The extra mounts of all nodes, each once.
fn mounts(config: &Value) -> Vec<Mount> {
    let mut mounts = Vec::new();
    let nodes = config["nodes"].as_array().into_iter().flatten();
    for mount in nodes.flat_map(|node| node["extraMounts"].as_array().into_iter().flatten()) {
        if let (Some(host), Some(container)) =
            (mount["hostPath"].as_str(), mount["containerPath"].as_str())
        {
            let mount = Mount {
                host: host.into(),
                container: container.to_owned(),
            };
            if !mounts.contains(&mount) {
                mounts.push(mount);
            }
        }
    }
    mounts
}

/// The kind program. Relative host paths of a configuration are relative to where it runs: the workspace.
struct Kind {
    root: PathBuf,
    wanted: Option<blueprint_charts::ToolPin>,
}

impl Kind {
    async fn clusters(&self) -> Result<Vec<String>, Problem> {
        let output = self
            .command()
            .args(["get", "clusters"])
            .output()
            .await
            .map_err(|error| self.not_run(&error))?;
        if !output.status.success() {
            return Err(Problem::failed("failed to list kind's clusters")
                .found(String::from_utf8_lossy(&output.stderr).trim().to_owned())
                .hint("kind needs a container engine that answers: is Docker running?"));
        }
        Ok(String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| line.trim().to_owned())
            .collect())
    }

    /// Runs kind with its talk on our stderr, the configuration on its stdin.
    async fn run(
        &self,
        words: &[&str],
        kubeconfig: Option<&Path>,
        stdin: &str,
    ) -> Result<(), Problem> {
        let mut command = self.command();
        command.args(words);
        if let Some(kubeconfig) = kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        let input = file_of(stdin).map_err(|error| {
            Problem::failed("failed to hand kind its configuration").caused_by(&error)
        })?;
        command.stdin(input).stdout(Stdio::from(std::io::stderr()));
        let status = command
            .status()
            .await
            .map_err(|error| self.not_run(&error))?;
        if status.success() {
            return Ok(());
        }
        Err(Problem::failed(format!("`kind {}` did not succeed", words[..2].join(" ")))
            .found(status.to_string())
            .hint("kind's lines above say why; is the container engine running, and is there room on its disk?"))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("kind");
        command.current_dir(&self.root);
        command
    }

    fn not_run(&self, error: &std::io::Error) -> Problem {
        let problem = Problem::new(ExitCode::Preflight, "failed to run kind").caused_by(error);
        match &self.wanted {
            Some(pin) => problem
                .expected(format!("kind {} or newer on PATH", pin.minimum))
                .hint(format!("install it: {}", pin.url)),
            None => problem.expected("kind on PATH"),
        }
    }
}

/// A nameless file with this text: unlike a pipe it needs nobody to fill it while the program runs.
fn file_of(text: &str) -> std::io::Result<Stdio> {
    use std::io::Seek as _;
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(Stdio::from(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_all_nodes_are_found_once_each() {
        let config = serde_json::json!({"nodes": [
            {"role": "control-plane", "extraMounts": [{"hostPath": "./infra/storage", "containerPath": "/var/local/shared"}]},
            {"role": "worker", "extraMounts": [{"hostPath": "./infra/storage", "containerPath": "/var/local/shared"}]},
            {"role": "worker"},
        ]});
        let found = mounts(&config);
        assert_eq!(
            found,
            [Mount {
                host: "./infra/storage".into(),
                container: "/var/local/shared".into()
            }]
        );
        assert_eq!(mounts(&serde_json::json!({})), []);
    }
}
