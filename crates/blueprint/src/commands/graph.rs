//! `blueprint graph`: the tasks and what they need.

use std::path::PathBuf;

use blueprint_phase2::table::TABLE;
use blueprint_pipeline::{Graph, draw};
use clap::ValueEnum;

use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;

/// Show the steps, their tasks and what each needs
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// As text, Graphviz source or a picture
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum Format {
    #[default]
    Text,
    Dot,
    Svg,
}

pub(crate) fn run(args: &Args, app: &App) -> Result<ExitCode, Problem> {
    let graph = Graph::new(TABLE)?;
    let text = match args.format {
        Format::Text => draw::text(&graph),
        Format::Dot => draw::dot(&graph),
        Format::Svg => draw::svg(&graph),
    };
    match &args.output {
        None => app.printer.out(&text),
        Some(path) => {
            std::fs::write(path, text).map_err(|error| {
                Problem::failed(format!("failed to write {}", path.display())).caused_by(&error)
            })?;
            app.printer.say(&format!("wrote {}", path.display()));
        }
    }
    Ok(ExitCode::Done)
}
