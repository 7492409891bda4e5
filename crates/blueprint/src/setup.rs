//! What a command needs before it can work: settings, pins, the cluster, the context of all installers.

use std::path::PathBuf;
use std::sync::Arc;

use blueprint_charts::{ArtifactCache, Helm, Versions};
use blueprint_cluster::{Cluster, ConnectOptions, Nodes};
use blueprint_phase2::catalog::{Catalog, Phase2};
use blueprint_phase2::references::References;
use blueprint_phase2::settings::Profile;
use blueprint_phase2::{Context, Settings, Way, Workspace};
use clap::{Args, ValueEnum};

use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;

/// Which cluster, and how much of everything.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// The kubeconfig's context; one that is not `kind-…` is taken only when named here
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The kubeconfig [default: KUBECONFIG, else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// How much the installation asks for; wins over blueprint.yaml
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileName>,
}

/// A profile by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProfileName {
    /// One replica each, small requests: fits a laptop
    Small,
    /// The charts' own sizes
    Full,
}

impl From<ProfileName> for Profile {
    fn from(name: ProfileName) -> Self {
        match name {
            ProfileName::Small => Self::Small,
            ProfileName::Full => Self::Full,
        }
    }
}

/// What stands in the workspace's files.
pub(crate) struct Pins {
    pub(crate) settings: Settings,
    pub(crate) versions: Versions,
    pub(crate) references: References,
    pub(crate) cache: ArtifactCache,
}

/// Reads VERSIONS.json and blueprint.yaml; what is wrong with either is a usage error.
pub(crate) fn pins(workspace: &Workspace, profile: Option<ProfileName>) -> Result<Pins, Problem> {
    let usage = |error: blueprint_phase2::Error| Problem::from(error).with_code(ExitCode::Usage);
    let versions = References::new(workspace.clone(), Settings::default())
        .versions()
        .map_err(usage)?;
    let mut settings = Settings::read(&workspace.settings()).map_err(usage)?;
    if let Some(name) = profile {
        settings.profile = name.into();
    }
    let references = References::new(workspace.clone(), settings.clone());
    Ok(Pins {
        settings,
        versions,
        references,
        cache: ArtifactCache::new(workspace.cache()),
    })
}

/// A kubeconfig for commands that ask nothing of a cluster: its server is nowhere.
const NOWHERE: &str = "{apiVersion: v1, kind: Config, current-context: kind-nowhere, users: [{name: nobody, user: {}}], \
     clusters: [{name: nowhere, cluster: {server: 'https://127.0.0.1:9'}}], \
     contexts: [{name: kind-nowhere, context: {cluster: nowhere, user: nobody}}]}\n";

/// What a command needs that works on files alone, in a workspace without a cluster as well.
pub(crate) async fn without_cluster(app: &App, pins: Pins) -> Result<Context, Problem> {
    let failed = |error: std::io::Error| {
        Problem::failed("failed to write a temporary file").caused_by(&error)
    };
    let kubeconfig = tempfile::NamedTempFile::new().map_err(failed)?;
    std::fs::write(kubeconfig.path(), NOWHERE).map_err(failed)?;
    let options = ConnectOptions {
        kubeconfig: Some(kubeconfig.path().to_owned()),
        ..ConnectOptions::default()
    };
    let cluster = Cluster::connect(&options).await?;
    Ok(Context {
        cluster,
        helm: Helm::locate(None, None, None, &app.workspace.state()).ok(),
        cache: pins.cache,
        versions: pins.versions,
        references: pins.references,
        settings: pins.settings,
        workspace: app.workspace.clone(),
        nodes: None,
        no_engine: None,
        accepted: Vec::new(),
    })
}

/// Decides which cluster is meant and gathers everything around it. Nothing is asked of the cluster yet; helm and engine may be missing, pre-flight says so.
pub(crate) async fn phase2(
    app: &App,
    args: &ClusterArgs,
    pins: Pins,
) -> Result<Arc<Phase2>, Problem> {
    accepting(app, args, pins, Vec::new()).await
}

/// The same with the ways out of ambiguous states that the user chose.
pub(crate) async fn accepting(
    app: &App,
    args: &ClusterArgs,
    pins: Pins,
    accepted: Vec<Way>,
) -> Result<Arc<Phase2>, Problem> {
    let Pins {
        settings,
        versions,
        references,
        cache,
    } = pins;
    let cluster = Cluster::connect(&ConnectOptions {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
        expected_context: Some(settings.kube_context()),
    })
    .await?;
    let state = app.workspace.state();
    let helm = match Helm::locate(None, cluster.kubeconfig(), Some(cluster.context()), &state) {
        Ok(helm) => Some(helm),
        Err(error) => {
            app.printer.detail(&error.to_string());
            None
        }
    };
    let kind_cluster = cluster
        .context()
        .strip_prefix("kind-")
        .unwrap_or(&settings.cluster);
    let (nodes, no_engine) = match Nodes::connect(kind_cluster).await {
        Ok(nodes) => (Some(nodes), None),
        Err(blueprint_cluster::Error::NoEngine { socket, .. }) => (None, Some(socket)),
        Err(error) => (None, Some(error.to_string())),
    };
    let workspace = app.workspace.clone();
    let context = Context {
        cluster,
        helm,
        cache,
        versions,
        references,
        settings,
        workspace,
        nodes,
        no_engine,
        accepted,
    };
    Ok(Arc::new(Phase2 {
        context: Arc::new(context),
        catalog: Catalog::new(),
    }))
}
