//! `cargo xtask up`: from a checkout to a running platform, with the engine and the registries that are there or
//! with the lab where they are not.

use std::env;
use std::path::{Path, PathBuf};
use std::thread;

use crate::blueprint;
use crate::charts_choice::{self, Charts};
use crate::cluster::Cluster;
use crate::docker_engine::Engine;
use crate::error::{Error, Result};
use crate::go_binaries::GoBinaries;
use crate::lab;
use crate::lab_home::LabHome;
use crate::pins::Pins;
use crate::process::{Process, on_path};
use crate::report::Reporter;
use crate::room;

/// Small, and pinned: whether it can be pulled tells whether images come from registries.
const PROBE_IMAGE: &str = "busybox";

/// What runs blueprint: a cluster, and where its images come from.
pub(crate) struct Platform {
    engine: Engine,
    blueprint: PathBuf,
    checkout: PathBuf,
    /// Images that stand in for real ones; empty where images are pulled.
    stand_ins: Vec<String>,
    kubeconfig: PathBuf,
    charts: Charts,
}

enum Way {
    /// Images are pulled from their registries by this engine.
    Registries(Engine),
    /// Images are made here.
    Lab { why: String },
}

pub(crate) fn run(lab: &LabHome, report: &Reporter) -> Result<()> {
    let platform = prepare(lab, report)?;
    report.stage("blueprint up", || {
        platform.blueprint().arg("up").attached_ok()
    })?;
    report.stage("blueprint smoke", || {
        platform.blueprint().arg("smoke").attached_ok()
    })?;
    report.summary();
    platform.farewell(report);
    Ok(())
}

/// Everything before `blueprint up`: engine, images, cluster, the program itself, charts.
pub(crate) fn prepare(lab: &LabHome, report: &Reporter) -> Result<Platform> {
    let mut platform = choose_platform(lab, report)?;
    let in_lab = platform.engine.is_lab() || !platform.stand_ins.is_empty();
    platform.charts = report.stage("charts and manifests", || {
        Charts::choose(lab, &platform.blueprint, in_lab, report)
    })?;
    Ok(platform)
}

fn choose_platform(lab: &LabHome, report: &Reporter) -> Result<Platform> {
    match choose(lab)? {
        Way::Registries(engine) => {
            report.say(format!(
                "way: images from their registries. Docker answers ({}) and pulled the pinned image of {PROBE_IMAGE}.",
                engine.describe()
            ));
            with_registries(lab, engine, report)
        }
        Way::Lab { why } => {
            report.say(format!(
                "way: the lab, which makes every image here from package registries. {why}"
            ));
            with_lab(lab, report)
        }
    }
}

fn choose(lab: &LabHome) -> Result<Way> {
    let Some(engine) = Engine::answering(lab) else {
        return Ok(Way::Lab {
            why: "No Docker engine answers.".to_owned(),
        });
    };
    if engine.is_lab() {
        return Ok(Way::Lab {
            why: "The engine that answers is the lab's own.".to_owned(),
        });
    }
    let image = Pins::read(lab.checkout())?.image(PROBE_IMAGE)?.reference();
    match engine.docker().args(["pull", "--quiet", &image]).output() {
        Ok(_) => Ok(Way::Registries(engine)),
        Err(error) => Ok(Way::Lab {
            why: format!("A Docker engine answers, but {image} can't be pulled: {error}"),
        }),
    }
}

fn with_registries(lab: &LabHome, engine: Engine, report: &Reporter) -> Result<Platform> {
    // A user's own kind and helm are fine; blueprint checks their versions.
    for tool in ["kind", "helm"] {
        if !on_path(tool) {
            GoBinaries::open(lab)?.ensure(tool, report)?;
        }
    }
    let program = report.stage("blueprint", || blueprint::ensure(lab, report))?;
    let platform = Platform {
        engine,
        blueprint: program,
        checkout: lab.checkout().to_owned(),
        stand_ins: Vec::new(),
        kubeconfig: users_kubeconfig()?,
        charts: Charts::default(),
    };
    report.stage("cluster", || {
        let cluster = Cluster::open(lab, &platform.engine)?;
        if !cluster.nodes()?.is_empty() {
            report.say("the cluster exists");
            return Ok(());
        }
        platform
            .blueprint()
            .args(["cluster", "create"])
            .attached_ok()
    })?;
    Ok(platform)
}

fn with_lab(lab: &LabHome, report: &Reporter) -> Result<Platform> {
    room::check(lab, report)?;
    // Beside each other: rustc works on one processor for much of its time. Both before the cluster runs: compilers and a control plane slow each other down.
    let (program, parts) = thread::scope(|scope| {
        let program = scope.spawn(|| report.stage("blueprint", || blueprint::ensure(lab, report)));
        let parts = lab::parts(lab, report);
        (program.join(), parts)
    });
    let program = program
        .map_err(|_| Error::content("the build of blueprint", "its thread ended early"))??;
    let running = lab::start(lab, parts?, Some(&program), report)?;
    Ok(Platform {
        engine: running.engine,
        blueprint: program,
        checkout: lab.checkout().to_owned(),
        stand_ins: running.stand_ins,
        kubeconfig: lab.kubeconfig(),
        charts: Charts::default(),
    })
}

/// `$KUBECONFIG`, else `~/.kube/config`: where people expect their clusters.
fn users_kubeconfig() -> Result<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    set("KUBECONFIG")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".kube/config")))
        .ok_or_else(|| Error::unmet("no place for a kubeconfig", "set KUBECONFIG"))
}

impl Platform {
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The built blueprint.
    pub(crate) fn program(&self) -> &Path {
        &self.blueprint
    }

    /// A program beside the cluster, with its kubeconfig.
    pub(crate) fn command(&self, program: &str) -> Process {
        self.engine
            .command(program)
            .folder(&self.checkout)
            .env("KUBECONFIG", &self.kubeconfig)
    }

    /// blueprint with the pins of the charts that were chosen.
    pub(crate) fn blueprint(&self) -> Process {
        self.blueprint_built_as(&self.blueprint)
    }

    /// Another build of blueprint, started as the usual one is.
    pub(crate) fn blueprint_built_as(&self, program: &Path) -> Process {
        let process = self.command(&program.to_string_lossy());
        match self.charts.pins() {
            Some(pins) => process.env(charts_choice::PINS, pins),
            None => process,
        }
    }

    /// Which charts are installed.
    pub(crate) fn charts(&self) -> &Charts {
        &self.charts
    }

    /// The pins file that blueprint uses.
    pub(crate) fn versions(&self) -> PathBuf {
        self.charts
            .pins()
            .map_or_else(|| self.checkout.join("VERSIONS.json"), Path::to_owned)
    }

    fn farewell(&self, report: &Reporter) {
        let domain = domain(&self.checkout);
        report.say("GitLab runs.");
        for (name, what) in [
            ("gitlab", "sign in as root"),
            ("registry", "container registry"),
            ("minio", "object storage"),
            ("kas", "agents"),
        ] {
            report.say(format!("  https://{name}.{domain}  {what}"));
        }
        report.say("  trust:       infra/tls/wildcard/ca.pem");
        report.say("  credentials: infra/secrets/ (OpenBao's keys in openbao-init.json); root's password: secret/gitlab/initial_root_password in OpenBao, and");
        report.say("               kubectl -n gitlab get secret gitlab-gitlab-initial-root-password -o jsonpath='{.data.password}' | base64 -d");
        if self.engine.is_lab() {
            report.say("The cluster lives in a network namespace of its own. To reach it:");
            report.say("  cargo xtask lab exec -- kubectl get pods --all-namespaces");
            report.say(format!(
                "  cargo xtask lab exec -- curl --cacert infra/tls/wildcard/ca.pem --resolve gitlab.{domain}:443:127.0.0.1 https://gitlab.{domain}/-/health"
            ));
        } else {
            report.say(format!("  these names lead to 127.0.0.1: put them into /etc/hosts, or use a resolver for {domain}"));
        }
        if self.charts.are_stand_ins() {
            report.say("ATTENTION: the charts are STAND-INS, not upstream's: lab/STAND-INS.md. No result here counts as one with the real charts.");
        }
        if !self.stand_ins.is_empty() {
            report.say(format!(
                "ATTENTION: {} images are STAND-INS, not GitLab's own: {}.",
                self.stand_ins.len(),
                self.stand_ins.join(", ")
            ));
            report.say(
                "           lab/STAND-INS.md says what each answers and what it does not prove.",
            );
        }
    }
}

/// The domain of blueprint.yaml, or the default one.
fn domain(checkout: &Path) -> String {
    std::fs::read_to_string(checkout.join("blueprint.yaml"))
        .ok()
        .and_then(|text| serde_saphyr::from_str::<serde_json::Value>(&text).ok())
        .and_then(|settings| settings["domain"].as_str().map(str::to_owned))
        .unwrap_or_else(|| "local.example.net".to_owned())
}
