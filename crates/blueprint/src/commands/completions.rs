//! `blueprint completions`: for the shell.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::app::App;
use crate::cli::Cli;

/// Print the completions of a shell
///
/// For bash: `blueprint completions bash > /etc/bash_completion.d/blueprint`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args, app: &App) {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "blueprint", &mut text);
    app.printer.out(&String::from_utf8_lossy(&text));
}
