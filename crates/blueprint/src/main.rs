//! `blueprint`: a kind cluster becomes a GitLab platform.

mod app;
mod cli;
mod cluster_lock;
mod columns;
mod commands;
mod exit_code;
mod interrupt;
mod logging;
mod printer;
mod private_modes;
mod problem;
mod reporters;
mod setup;
mod waking;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};

use clap::Parser;

use crate::app::App;
use crate::cli::Cli;
use crate::exit_code::ExitCode;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::problem::Problem;

fn main() -> std::process::ExitCode {
    // Every TLS client in the program takes its cryptography from here; a provider that is already there will do as well.
    rustls::crypto::ring::default_provider()
        .install_default()
        .ok();
    match Cli::try_parse() {
        Ok(cli) => run(cli).into(),
        Err(message) => answer_without_running(&message),
    }
}

/// Help and version are data, a misuse is talk; clap knows which is which, and its code for a misuse is ours.
fn answer_without_running(message: &clap::Error) -> std::process::ExitCode {
    message.print().ok();
    if message.use_stderr() {
        ExitCode::Usage.into()
    } else {
        ExitCode::Done.into()
    }
}

fn run(cli: Cli) -> ExitCode {
    let printer = Printer::new(&cli.global);
    logging::install(&printer, cli.global.verbose);
    let hook = printer.clone();
    std::panic::set_hook(Box::new(move |panic| hook.fault(&panic.to_string())));
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            printer.problem(&Problem::failed("failed to start the runtime").caused_by(&error));
            return ExitCode::TaskFailed;
        }
    };
    // A fault of ours was said by the hook; it ends like any other failure.
    let ended = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(command(cli, &printer))
    }));
    let code = ended.unwrap_or(ExitCode::TaskFailed);
    // After a second Ctrl-C a blocking call may still be under way: it must not hold the end up.
    runtime.shutdown_background();
    code
}

async fn command(cli: Cli, printer: &Printer) -> ExitCode {
    let interrupts = match Interrupts::watch(printer) {
        Ok(interrupts) => interrupts,
        Err(error) => {
            printer.problem(&Problem::failed("failed to listen for signals").caused_by(&error));
            return ExitCode::TaskFailed;
        }
    };
    let at_once = interrupts.at_once();
    let app = App::new(&cli.global, printer.clone(), interrupts);
    tokio::select! {
        ended = commands::run(cli.command, &app) => match ended {
            Ok(code) => code,
            Err(problem) => {
                printer.problem(&problem);
                problem.code()
            }
        },
        () = at_once.cancelled() => ExitCode::Interrupted,
    }
}
