//! `cargo xtask`: builds the lab, runs the tests, brings everything up. It drives docker, go, apt, kind and kubectl
//! as processes and knows nothing of blueprint's crates.

mod base_images;
mod blueprint;
mod build_context;
mod cache;
mod charts;
mod charts_choice;
mod cluster;
mod conformance;
mod debian;
mod docker;
mod docker_engine;
#[cfg(test)]
mod documents;
mod e2e;
mod error;
mod fuzz;
mod go_binaries;
mod host;
mod images;
mod lab;
mod lab_home;
mod node_image;
mod node_images;
mod pins;
mod process;
mod report;
mod room;
mod test;
mod up;
mod wheels;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::lab_home::LabHome;
use crate::report::Reporter;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Builds the lab, runs the tests, brings blueprint up"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The lab: a real kind cluster made from package registries
    #[command(subcommand)]
    Lab(lab::Command),
    /// From this checkout to a running platform, with registries where they can be reached, else with the lab
    Up,
    /// Format, lints, tests against a real control plane, licences; needs neither root nor Docker
    Test,
    /// Fuzz the parsers of what people and crashes leave in files
    Fuzz {
        /// Processor time for all targets together
        #[arg(long, value_name = "N", default_value_t = 10)]
        minutes: u64,
        /// Repeat the mutants of a former run
        #[arg(long)]
        seed: Option<u64>,
        /// These targets alone
        targets: Vec<String>,
    },
    /// The checks on a real cluster (all, or these)
    E2e {
        /// Print their names
        #[arg(long)]
        list: bool,
        names: Vec<String>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let report = Reporter::new();
    let result = LabHome::find().and_then(|home| match arguments.command {
        Command::Lab(command) => lab::run(command, &home, &report),
        Command::Up => up::run(&home, &report),
        Command::Test => test::run(&home, &report),
        Command::Fuzz {
            minutes,
            seed,
            targets,
        } => fuzz::run(&home, minutes, seed, &targets, &report),
        Command::E2e { list: true, .. } => {
            for name in e2e::names() {
                report.data(name);
            }
            Ok(())
        }
        Command::E2e { names, .. } => e2e::run(&home, &names, &report),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report.failure(&error);
            ExitCode::FAILURE
        }
    }
}
