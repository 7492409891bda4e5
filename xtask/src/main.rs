//! `cargo xtask`: builds the lab, runs the tests, brings everything up. It drives docker, go, apt, kind and kubectl
//! as processes and knows nothing of blueprint's crates.

mod base_images;
mod build_context;
mod cache;
mod cluster;
mod debian;
mod docker;
mod docker_engine;
mod error;
mod go_binaries;
mod host;
mod images;
mod lab;
mod lab_home;
mod node_image;
mod pins;
mod process;
mod report;
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
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let report = Reporter::new();
    let result = LabHome::find().and_then(|home| match arguments.command {
        Command::Lab(command) => lab::run(command, &home, &report),
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report.failure(&error);
            ExitCode::FAILURE
        }
    }
}
