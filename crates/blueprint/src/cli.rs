//! The command line: global options and the list of commands; each command's own arguments stand in its file.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands::{
    charts, cluster, completions, docs, doctor, down, graph, init, secrets, smoke, status, timings,
    up, values,
};

/// A whole GitLab platform on a kind cluster, in one command.
///
/// Start in an empty folder with `blueprint init`, then `blueprint cluster create` and `blueprint up`. What must outlive the cluster stays in the folder:
/// destroy and recreate the cluster as often as you like.
#[derive(Debug, Parser)]
#[command(
    name = "blueprint",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The folder with VERSIONS.json and infra/ [default: the nearest one upwards, else the current folder]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The pins to use instead of the workspace's VERSIONS.json [env: `BLUEPRINT_VERSIONS`]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) versions: Option<PathBuf>,
    /// Say more (-v what is done, -vv how)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Say nothing but errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// No live display, only lines
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
    /// Colours: on a terminal unless `NO_COLOR` is set, always or never
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    pub(crate) color: ColorWhen,
}

/// When colours are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    #[default]
    Auto,
    Always,
    Never,
}

/// How a run is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RunOutput {
    /// A live tree; needs a terminal, plain elsewhere
    Human,
    /// One line for everything that happens
    Plain,
    /// One JSON object a line on stdout
    Json,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataOutput {
    /// A table
    #[default]
    Text,
    /// JSON
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::Args),
    Cluster(cluster::Args),
    Up(up::Args),
    Down(down::Args),
    Smoke(smoke::Args),
    Status(status::Args),
    Doctor(doctor::Args),
    Graph(graph::Args),
    Timings(timings::Args),
    Secrets(secrets::Args),
    Charts(charts::Args),
    Values(values::Args),
    Completions(completions::Args),
    #[command(hide = true)]
    Docs(docs::Args),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
