//! The kind cluster: the workspace's configuration, completed for the lab, and what is loaded into its nodes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::docker_engine::{Engine, raise_inotify_limits};
use crate::error::{Error, FileContext as _, Result};
use crate::host;
use crate::lab_home::LabHome;
use crate::node_images;
use crate::process::Process;
use crate::report::Reporter;

/// Where the API server listens, inside the lab's namespace; fixed, so that a recreated cluster has the same address.
const API_PORT: u16 = 36443;
/// Kept from the cluster's start until its nodes are Ready.
const READY_DEADLINE: Duration = Duration::from_mins(3);
/// How often the nodes are looked at; there is no watch across an API server that is just starting.
const POLL: Duration = Duration::from_millis(500);
/// A node a line: name, address, the status of its Ready condition.
const NODE_STATE: &str = r#"jsonpath={range .items[*]}{.metadata.name} {.status.addresses[?(@.type=="InternalIP")].address} {.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}"#;
/// A container a line: name, address.
const ADDRESS: &str = "{{.Name}} {{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}";

/// Where the stable storage of a node comes from.
const STORAGE_SOURCE: &str =
    r#"{{range .Mounts}}{{if eq .Destination "/var/local/shared"}}{{.Source}}{{end}}{{end}}"#;

/// kubelet refuses cgroup v1 and expects systemd unless told otherwise.
const CGROUP_V1_PATCH: &str = "kind: KubeletConfiguration
apiVersion: kubelet.config.k8s.io/v1beta1
cgroupDriver: cgroupfs
failCgroupV1: false
";

pub(crate) struct Cluster<'a> {
    lab: &'a LabHome,
    engine: &'a Engine,
    name: String,
    config: Value,
    /// Creates the cluster; kind itself does where it is not built.
    blueprint: Option<PathBuf>,
}

impl<'a> Cluster<'a> {
    pub(crate) fn open(lab: &'a LabHome, engine: &'a Engine) -> Result<Self> {
        let path = lab.checkout().join("infra/kind/cluster.yaml");
        let text = fs::read_to_string(&path).file("read", &path)?;
        let config: Value = serde_saphyr::from_str(&text)
            .map_err(|error| Error::content(path.display().to_string(), error))?;
        let name = config["name"].as_str().unwrap_or("kind").to_owned();
        Ok(Self {
            lab,
            engine,
            name,
            config,
            blueprint: None,
        })
    }

    /// Creates the cluster the way a user does: `blueprint cluster create`.
    pub(crate) fn through(mut self, blueprint: &Path) -> Self {
        self.blueprint = Some(blueprint.to_owned());
        self
    }

    /// Creates the cluster, starts its stopped nodes, or finds it running. The node image is asked for only when
    /// there is a cluster to create.
    pub(crate) fn ensure(
        &self,
        node_image: impl FnOnce() -> Result<String>,
        report: &Reporter,
    ) -> Result<()> {
        if self.nodes()?.is_empty() {
            return self.create(&node_image()?, report);
        }
        self.refuse_foreign()?;
        raise_inotify_limits();
        let stopped = self
            .engine
            .docker()
            .args(["ps", "--all", "--quiet", "--filter", "status=exited"])
            .args(["--filter", &self.label()])
            .output()?;
        if stopped.is_empty() {
            report.say(format!("cluster {} runs", self.name));
        } else {
            report.say(format!("starting the nodes of cluster {}", self.name));
            self.engine
                .docker()
                .arg("start")
                .args(stopped.lines())
                .output()?;
        }
        self.export_kubeconfig()?;
        self.wait_ready()
    }

    pub(crate) fn delete(&self, report: &Reporter) -> Result<()> {
        report.say(format!("deleting cluster {}", self.name));
        self.kind()
            .args(["delete", "cluster", "--name", &self.name])
            .output()?;
        Ok(())
    }

    /// The nodes' stable storage must be this checkout's: another one's data would meet this one's credentials.
    fn refuse_foreign(&self) -> Result<()> {
        match self.foreign_storage()? {
            None => Ok(()),
            Some(storage) => Err(Error::unmet(
                format!(
                    "cluster {} keeps its data in {storage}, which is not this checkout's",
                    self.name
                ),
                "run from the checkout it belongs to, or delete it (its data stays): cargo xtask lab cluster delete",
            )),
        }
    }

    /// The folder that the nodes mount as stable storage, where it is not this checkout's.
    pub(crate) fn foreign_storage(&self) -> Result<Option<String>> {
        let ours = self.lab.checkout().join("infra/storage");
        let nodes = self.nodes()?;
        let Some(node) = nodes.first() else {
            return Ok(None);
        };
        let mounted = self
            .engine
            .docker()
            .args(["inspect", "--format", STORAGE_SOURCE, node])
            .output()?;
        Ok((Path::new(&mounted) != ours).then_some(mounted))
    }

    fn create(&self, image: &str, report: &Reporter) -> Result<()> {
        raise_inotify_limits();
        let storage = self.lab.checkout().join("infra/storage");
        fs::create_dir_all(&storage).file("create", &storage)?;
        let config = self.write_config()?;
        report.say(format!("creating cluster {} of {image}", self.name));
        let creator = match &self.blueprint {
            Some(blueprint) => self
                .engine
                .command(&blueprint.to_string_lossy())
                .folder(self.lab.checkout())
                .args(["cluster", "create"]),
            None => self.kind().args(["create", "cluster"]),
        };
        creator
            .args(["--name", &self.name, "--image", image, "--config"])
            .arg(&config)
            .arg("--kubeconfig")
            .arg(self.lab.kubeconfig())
            .logged(&self.lab.log("kind-create"))?;
        self.wait_ready()
    }

    /// The workspace's configuration with what only this machine needs; kind reads JSON as the YAML it is.
    fn write_config(&self) -> Result<PathBuf> {
        let path = self.lab.path().join("kind-cluster.yaml");
        let mut merged = merge(
            self.config.clone(),
            self.engine.is_lab(),
            host::systemd_cgroup(),
        );
        node_images::mount(&mut merged, self.lab);
        fs::write(&path, format!("{merged:#}\n")).file("write", &path)?;
        Ok(path)
    }

    /// Waits until every node is Ready at the address its container has now. After a restart the API server first
    /// refuses (its roles are not loaded yet) and then shows nodes as they were.
    fn wait_ready(&self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let state = self.blockers();
            if state.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > READY_DEADLINE {
                return Err(Error::Deadline {
                    what: "every node Ready".to_owned(),
                    after: READY_DEADLINE,
                    seen: format!(": {state}"),
                });
            }
            thread::sleep(POLL);
        }
    }

    /// What keeps the nodes from being Ready; empty when nothing does.
    fn blockers(&self) -> String {
        let nodes = self
            .engine
            .command("kubectl")
            .args(["get", "nodes", "--output", NODE_STATE])
            .output();
        let addresses = self.addresses();
        match (nodes, addresses) {
            (Ok(nodes), Ok(addresses)) => unready(&nodes, &addresses),
            (Err(error), _) | (_, Err(error)) => error.to_string(),
        }
    }

    /// Puts images on the nodes that run pods.
    pub(crate) fn load(&self, images: &[String], report: &Reporter) -> Result<()> {
        node_images::load(self.lab, self.engine, &self.label(), images, report)
    }

    /// Container name → its address in the engine's network.
    fn addresses(&self) -> Result<BTreeMap<String, String>> {
        let text = self
            .engine
            .docker()
            .args(["inspect", "--format", ADDRESS])
            .args(self.nodes()?)
            .output()?;
        Ok(text
            .lines()
            .filter_map(|line| line.trim_start_matches('/').split_once(' '))
            .map(|(name, address)| (name.to_owned(), address.to_owned()))
            .collect())
    }

    fn export_kubeconfig(&self) -> Result<()> {
        self.kind()
            .args(["export", "kubeconfig", "--name", &self.name, "--kubeconfig"])
            .arg(self.lab.kubeconfig())
            .output()?;
        Ok(())
    }

    /// Names of the node containers, running or not.
    pub(crate) fn nodes(&self) -> Result<Vec<String>> {
        let text = self
            .engine
            .docker()
            .args(["ps", "--all", "--format", "{{.Names}}", "--filter"])
            .arg(self.label())
            .output()?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    fn label(&self) -> String {
        format!("label=io.x-k8s.kind.cluster={}", self.name)
    }

    /// kind resolves the configuration's relative paths against its working folder.
    fn kind(&self) -> Process {
        self.engine.command("kind").folder(self.lab.checkout())
    }
}

/// The nodes that are not Ready at their present address.
fn unready(nodes: &str, addresses: &BTreeMap<String, String>) -> String {
    let ready = |name: &str, address: &str| {
        nodes
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>() == [name, address, "True"])
    };
    addresses
        .iter()
        .filter(|(name, address)| !ready(name, address))
        .map(|(name, _)| name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn merge(mut config: Value, in_namespace: bool, systemd_cgroup: bool) -> Value {
    if in_namespace {
        config["networking"]["apiServerAddress"] = json!("127.0.0.1");
        config["networking"]["apiServerPort"] = json!(API_PORT);
    }
    if !systemd_cgroup {
        let patches = &mut config["kubeadmConfigPatches"];
        if !patches.is_array() {
            *patches = json!([]);
        }
        if let Some(patches) = patches.as_array_mut() {
            patches.push(json!(CGROUP_V1_PATCH));
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_is_ready_at_an_old_address_is_not_ready() {
        let addresses = |text: &str| {
            text.split(' ')
                .filter_map(|pair| pair.split_once('='))
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let nodes = "cp 172.18.0.2 True\nw1 172.18.0.3 True\nw2 172.18.0.4 Unknown\n";
        let now = addresses("cp=172.18.0.2 w1=172.18.0.9 w2=172.18.0.4");
        assert_eq!(unready(nodes, &now), "w1, w2");
        assert_eq!(unready(nodes, &addresses("cp=172.18.0.2")), "");
    }

    #[test]
    fn the_lab_adds_to_the_configuration_and_takes_nothing_away() {
        let config = json!({"name": "b", "networking": {"podSubnet": "10.0.0.0/16"}, "kubeadmConfigPatches": ["x"]});
        let merged = merge(config.clone(), true, false);
        assert_eq!(merged["networking"]["podSubnet"], "10.0.0.0/16");
        assert_eq!(merged["networking"]["apiServerPort"], API_PORT);
        assert_eq!(merged["kubeadmConfigPatches"][0], "x");
        assert_eq!(merged["kubeadmConfigPatches"][1], CGROUP_V1_PATCH);
        assert_eq!(merge(config.clone(), false, true), config);
    }
}
