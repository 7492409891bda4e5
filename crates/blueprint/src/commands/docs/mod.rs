//! `blueprint docs` (hidden): the generated pages of the project's documentation.

mod manual;
mod reference;

use clap::{CommandFactory, ValueEnum};

use crate::app::App;
use crate::cli::Cli;
use crate::exit_code::ExitCode;

/// Print a generated page of the documentation
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which page
    #[arg(value_enum)]
    page: Page,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Page {
    /// The command line, as Markdown
    Cli,
    /// The command line, as a manual page
    Man,
    /// The exit codes, as Markdown
    ExitCodes,
    /// The JSON Schema of blueprint.yaml
    SettingsSchema,
}

pub(crate) fn run(args: &Args, app: &App) {
    let mut command = Cli::command();
    command.build();
    app.printer.out(&match args.page {
        Page::Cli => reference::markdown(&command),
        Page::Man => manual::roff(&command),
        Page::ExitCodes => ExitCode::document(),
        Page::SettingsSchema => blueprint_phase2::settings::json_schema_text(),
    });
}
