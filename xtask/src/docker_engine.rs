//! The Docker engine: the one that answers, or Debian's own, unpacked into the lab's home.
//!
//! The lab's engine runs in a network namespace of its own, so that node addresses never meet the host's
//! network. `nsenter --net` enters it; `ip netns exec` would remount /sys, and the cgroups would vanish.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::debian::{self, Beside};
use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::process::{Process, last_lines, on_path};
use crate::report::Reporter;

const SYSTEM_SOCKET: &str = "/var/run/docker.sock";
const START_DEADLINE: Duration = Duration::from_mins(1);
const STOP_DEADLINE: Duration = Duration::from_secs(90);
/// How often the socket or the process table is looked at while the engine starts or stops.
const POLL: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Reached by this `DOCKER_HOST`, started by someone else.
    Host(String),
    /// Ours, in the namespace.
    Lab,
}

#[derive(Clone, Debug)]
pub(crate) struct Engine {
    kind: Kind,
    lab: LabHome,
}

impl Engine {
    /// The engine that answers, or the lab's one, started when it does not run.
    pub(crate) fn ensure(lab: &LabHome, report: &Reporter) -> Result<Self> {
        if let Some(engine) = Self::answering(lab) {
            report.say(format!("Docker engine: {}", engine.describe()));
            return Ok(engine);
        }
        report.say(format!(
            "no Docker engine answers at DOCKER_HOST or {SYSTEM_SOCKET}: starting Debian {}'s in the network namespace `{}`",
            debian::SUITE,
            lab.namespace()
        ));
        let engine = Self {
            kind: Kind::Lab,
            lab: lab.clone(),
        };
        require_root()?;
        engine.install(report)?;
        engine.start(report)?;
        Ok(engine)
    }

    /// The engine that answers now; nothing is started.
    pub(crate) fn answering(lab: &LabHome) -> Option<Self> {
        let with = |kind| Self {
            kind,
            lab: lab.clone(),
        };
        let own = with(Kind::Lab);
        if let Some(host) = env::var("DOCKER_HOST").ok().filter(|h| !h.is_empty()) {
            // A shell set up by `lab env` names the lab's own socket.
            if host != own.docker_host() {
                return Some(with(Kind::Host(host))).filter(Self::answers);
            }
        } else if Path::new(SYSTEM_SOCKET).exists() {
            let host = with(Kind::Host(format!("unix://{SYSTEM_SOCKET}")));
            if host.answers() {
                return Some(host);
            }
        }
        Some(own).filter(Self::answers)
    }

    pub(crate) fn is_lab(&self) -> bool {
        self.kind == Kind::Lab
    }

    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Host(host) => format!("the one at {host}"),
            Kind::Lab => format!("the lab's own, at {}", self.docker_host()),
        }
    }

    pub(crate) fn docker_host(&self) -> String {
        match &self.kind {
            Kind::Host(host) => host.clone(),
            Kind::Lab => format!("unix://{}", self.folder().join("docker.sock").display()),
        }
    }

    /// The docker command line, set up for this engine. The socket is a file: no namespace is needed.
    pub(crate) fn docker(&self) -> Process {
        let own = self.programs().join("bin/docker");
        let program = if own.is_file() {
            own
        } else {
            PathBuf::from("docker")
        };
        Process::new(program)
            .env("DOCKER_HOST", self.docker_host())
            // The classic builder needs no plugin; Debian's engine comes without buildx.
            .env("DOCKER_BUILDKIT", "0")
    }

    /// A program that talks to nodes or pods: in the namespace, with the lab's binaries first on its PATH.
    pub(crate) fn command(&self, program: &str) -> Process {
        // Looked up here: with a prefix, the PATH of this program decides, not the one given to the child.
        let own = self.lab.bin().join(program);
        let process = if own.is_file() {
            Process::new(own)
        } else {
            Process::new(program)
        };
        let process = self
            .environment()
            .into_iter()
            .fold(process, |process, (name, value)| process.env(name, value));
        match self.kind {
            Kind::Host(_) => process,
            Kind::Lab => process.behind(["nsenter".to_owned(), self.lab.namespace_option()]),
        }
    }

    /// PATH, `DOCKER_HOST` and KUBECONFIG for programs that use the lab.
    pub(crate) fn environment(&self) -> Vec<(&'static str, OsString)> {
        let mut path = vec![self.lab.bin()];
        if self.is_lab() {
            path.push(self.programs().join("bin"));
            path.push(self.programs().join("sbin"));
        }
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        vec![
            ("PATH", env::join_paths(path).unwrap_or_default()),
            ("DOCKER_HOST", self.docker_host().into()),
            ("KUBECONFIG", self.lab.kubeconfig().into()),
        ]
    }

    /// Stops the lab's engine, if it is the lab's and runs.
    pub(crate) fn stop(lab: &LabHome, report: &Reporter) -> Result<()> {
        let engine = Self {
            kind: Kind::Lab,
            lab: lab.clone(),
        };
        let Some(pid) = engine.running_pid() else {
            report.say("the lab's Docker engine does not run");
            return Ok(());
        };
        report.say(format!("stopping the lab's Docker engine (pid {pid})"));
        Process::new("kill").arg(pid.to_string()).output()?;
        wait_for("the engine's end", STOP_DEADLINE, &engine.log(), || {
            engine.running_pid().is_none().into()
        })
    }

    /// Removes the namespace; [`Self::stop`] first.
    pub(crate) fn remove_namespace(lab: &LabHome) {
        let name = lab.namespace();
        if Path::new("/var/run/netns").join(name).exists() {
            // Nothing is lost when it stays: the next start uses it again.
            let _ = Process::new("ip").args(["netns", "del", name]).output();
        }
    }

    fn answers(&self) -> bool {
        (self.programs().join("bin/docker").is_file() || on_path("docker"))
            && self
                .docker()
                .args(["version", "--format", "{{.Server.Version}}"])
                .succeeds()
    }

    fn install(&self, report: &Reporter) -> Result<()> {
        debian::install_missing(
            report,
            &[
                ("iptables", "iptables"),
                ("ip", "iproute2"),
                ("mmdebstrap", "mmdebstrap"),
                ("conntrack", "conntrack"),
                ("runc", "runc"),
                ("nsenter", "util-linux"),
            ],
        )?;
        let root = self.folder().join("root");
        if self.programs().join("sbin/dockerd").is_file() {
            return Ok(());
        }
        report.say("unpacking docker.io and containerd beside the system");
        // The system's runc is used: another release's needs another glibc.
        Beside::prepare(&self.lab)?.unpack(&["docker.io", "docker-cli", "containerd"], &root)
    }

    fn start(&self, report: &Reporter) -> Result<()> {
        let folder = self.folder();
        for sub in ["data", "exec"] {
            let path = folder.join(sub);
            fs::create_dir_all(&path).file("create", &path)?;
        }
        let mut started = None;
        if self.running_pid().is_none() {
            // dockerd refuses to start while any process has the number in its pid file.
            for stale in ["dockerd.pid", "exec/containerd/containerd.pid"] {
                remove_if_stale(&folder.join(stale))?;
            }
            self.ensure_namespace()?;
            raise_inotify_limits();
            let option = |name: &str, path: PathBuf| [name.into(), path.into_os_string()];
            let daemon = Process::new(self.programs().join("sbin/dockerd"))
                .args(["--host", &self.docker_host()])
                .args(option("--data-root", folder.join("data")))
                .args(option("--exec-root", folder.join("exec")))
                .args(option("--pidfile", folder.join("dockerd.pid")))
                .args(["--exec-opt", "native.cgroupdriver=cgroupfs"])
                .args(["--storage-driver", "overlay2"])
                .behind(["nsenter".to_owned(), self.lab.namespace_option()])
                .env("PATH", &self.environment()[0].1)
                .detached(&self.log())?;
            started = Some(daemon);
        }
        wait_for(
            "the lab's Docker engine to answer",
            START_DEADLINE,
            &self.log(),
            || {
                // A daemon that ended will not answer: its log says why.
                let ended = started
                    .as_mut()
                    .is_some_and(|daemon| matches!(daemon.try_wait(), Ok(Some(_))));
                if ended {
                    Progress::Hopeless
                } else {
                    self.answers().into()
                }
            },
        )?;
        report.say(format!("Docker engine: {}", self.describe()));
        Ok(())
    }

    fn ensure_namespace(&self) -> Result<()> {
        let name = self.lab.namespace();
        if !Path::new("/var/run/netns").join(name).exists() {
            Process::new("ip").args(["netns", "add", name]).output()?;
        }
        Process::new("ip")
            .args(["-n", name, "link", "set", "lo", "up"])
            .output()?;
        Ok(())
    }

    /// The pid of the lab's dockerd while it lives.
    fn running_pid(&self) -> Option<u32> {
        let folder = self.folder();
        let pid = fs::read_to_string(folder.join("dockerd.pid")).ok()?;
        let pid: u32 = pid.trim().parse().ok()?;
        let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let command = String::from_utf8_lossy(&command);
        let data = folder.join("data");
        (command.contains("dockerd") && command.contains(&*data.to_string_lossy())).then_some(pid)
    }

    fn folder(&self) -> PathBuf {
        self.lab.engine()
    }

    fn programs(&self) -> PathBuf {
        self.folder().join("root/usr")
    }

    fn log(&self) -> PathBuf {
        self.lab.log("dockerd")
    }
}

fn require_root() -> Result<()> {
    if Process::new("id").arg("-u").output()? == "0" {
        return Ok(());
    }
    Err(Error::unmet(
        "the lab's own Docker engine needs root",
        "run this as root, or start a Docker engine and run this again: then no root is needed",
    ))
}

/// kind's nodes share the host's inotify limits; the defaults (128 instances) end with "too many open files".
pub(crate) fn raise_inotify_limits() {
    for (name, least) in [("max_user_instances", 1024), ("max_user_watches", 524_288)] {
        let path = Path::new("/proc/sys/fs/inotify").join(name);
        let now: u64 = fs::read_to_string(&path)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .unwrap_or(0);
        if now < least {
            // Where this is not allowed, blueprint's own preflight says what to set.
            let _ = fs::write(&path, least.to_string());
        }
    }
}

fn remove_if_stale(pid_file: &Path) -> Result<()> {
    let Ok(text) = fs::read_to_string(pid_file) else {
        return Ok(());
    };
    let name = pid_file.file_stem().unwrap_or_default().to_string_lossy();
    let lives = text.trim().parse::<u32>().is_ok_and(|pid| {
        // A zombie keeps its name, but has no command line any more.
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
            && fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
    });
    if lives {
        return Ok(());
    }
    fs::remove_file(pid_file).file("remove", pid_file)
}

/// How far something that is waited for has come.
#[derive(PartialEq, Eq)]
enum Progress {
    Done,
    Waiting,
    Hopeless,
}

impl From<bool> for Progress {
    fn from(done: bool) -> Self {
        if done { Self::Done } else { Self::Waiting }
    }
}

fn wait_for(
    what: &str,
    deadline: Duration,
    log: &Path,
    mut look: impl FnMut() -> Progress,
) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < deadline {
        match look() {
            Progress::Done => return Ok(()),
            Progress::Waiting => thread::sleep(POLL),
            Progress::Hopeless => break,
        }
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    Err(Error::Deadline {
        what: what.to_owned(),
        after: begun.elapsed(),
        seen: format!("; the end of {}:{}", log.display(), last_lines(&text)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_file_of_a_dead_or_foreign_process_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dockerd.pid");
        fs::write(&file, std::process::id().to_string()).unwrap();
        remove_if_stale(&file).unwrap();
        assert!(!file.exists(), "this test's own process is no dockerd");
        remove_if_stale(&file).unwrap();
    }
}
