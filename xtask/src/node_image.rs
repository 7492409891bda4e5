//! The node image that kind runs: Debian, containerd, Kubernetes, the control plane's images, the pod network.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::base_images::{self, Base};
use crate::build_context::{copy_folder, place_binary};
use crate::cache::Key;
use crate::debian;
use crate::docker::label;
use crate::docker_engine::Engine;
use crate::error::{Error, FileContext as _, Result};
use crate::go_binaries::{Binary, GoBinaries};
use crate::host;
use crate::lab_home::LabHome;
use crate::pins::Pins;
use crate::process::Process;
use crate::report::Reporter;

/// Go into the node's own file system.
const NODE_PROGRAMS: [&str; 4] = ["kubelet", "kubeadm", "kubectl", "crictl"];
/// Become images of the control plane.
const PLANE_PROGRAMS: [&str; 6] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "etcd",
    "coredns",
];
const LABNET: &str = "docker.io/blueprint-lab/labnet:latest";
const NODE_ROOT: &str = "node-root";
const NODE_NET: &str = "node-net";
const ENTRYPOINT: &str = r#"ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]"#;

/// Builds the pinned node image unless the engine has it; answers its reference.
pub(crate) fn ensure(
    lab: &LabHome,
    engine: &Engine,
    go: &GoBinaries,
    report: &Reporter,
) -> Result<String> {
    let pins = Pins::read(lab.checkout())?;
    let pin = pins.image("kind-node")?;
    let maker = Maker {
        lab,
        engine,
        report,
        recipe: lab.recipes().join("node"),
        version: pin.tag.clone(),
    };
    let binaries = NODE_PROGRAMS
        .iter()
        .chain(&PLANE_PROGRAMS)
        .map(|name| Ok((*name, go.ensure(name, report)?)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let bases = maker.bases()?;
    let key = maker.key(&binaries, &bases)?;
    let reference = pin.reference();
    if engine.has_image(&reference, &key) {
        return Ok(reference);
    }
    let names = plane_image_names(&binaries["kubeadm"], &maker.version)?;
    let kind_files = go
        .source("kind", "sigs.k8s.io/kind")?
        .join("images/base/files");
    report.say("building the control plane's images");
    let scratch = lab.scratch()?;
    let archive = maker.plane_images(&binaries, &names, scratch.path())?;
    report.say("building the node image");
    let bare = maker.bare_node(&binaries, &names, &kind_files, scratch.path())?;
    maker.preload(&bare, &archive, &reference, &key)?;
    engine.prune()?;
    Ok(reference)
}

struct Maker<'a> {
    lab: &'a LabHome,
    engine: &'a Engine,
    report: &'a Reporter,
    recipe: PathBuf,
    version: String,
}

impl Maker<'_> {
    fn bases(&self) -> Result<BTreeMap<String, Base>> {
        let path = self.recipe.join("packages.yaml");
        let text = fs::read_to_string(&path).file("read", &path)?;
        let lists: BTreeMap<String, Vec<String>> = serde_saphyr::from_str(&text)
            .map_err(|error| Error::content("lab/node/packages.yaml", error))?;
        for name in [NODE_ROOT, NODE_NET] {
            if !lists.contains_key(name) {
                return Err(Error::content(
                    "lab/node/packages.yaml",
                    format!("it lists no packages of `{name}`"),
                ));
            }
        }
        lists
            .into_iter()
            .map(|(name, packages)| {
                let base =
                    base_images::ensure(self.lab, self.engine, &name, &packages, &[], self.report)?;
                Ok((name, base))
            })
            .collect()
    }

    fn key(
        &self,
        binaries: &BTreeMap<&str, Binary>,
        bases: &BTreeMap<String, Base>,
    ) -> Result<String> {
        let mut key = Key::new("node image")
            .text(&self.version)
            .text(host::cgroup_version())
            .folder(&self.recipe)?
            // kind's own node files come out of its module.
            .file(&self.lab.recipes().join("go/kind/go.sum"))?;
        for (name, binary) in binaries {
            key = key.text(name).text(&binary.key);
        }
        for base in bases.values() {
            key = key.text(&base.key);
        }
        Ok(key.finish())
    }

    /// Makes the images that kubeadm and the pod network need; answers one archive of them all.
    fn plane_images(
        &self,
        binaries: &BTreeMap<&str, Binary>,
        names: &BTreeMap<String, String>,
        scratch: &Path,
    ) -> Result<PathBuf> {
        let mut all = vec![LABNET.to_owned()];
        for (program, image) in names {
            let context = scratch.join(format!("plane-{program}"));
            fs::create_dir_all(&context).file("create", &context)?;
            let dockerfile = if program == "pause" {
                self.compile_pause(&context)?;
                static_image("pause", "/pause", true)
            } else {
                place_binary(&binaries[program.as_str()], &context)?;
                match program.as_str() {
                    // kubeadm names the program in the pod's command, and finds it on the PATH.
                    "kube-proxy" => format!(
                        "FROM blueprint-lab/{NODE_NET}:latest\nCOPY kube-proxy /usr/local/bin/kube-proxy\n"
                    ),
                    "coredns" => static_image("coredns", "/coredns", true),
                    other => static_image(other, &format!("/usr/local/bin/{other}"), false),
                }
            };
            let file = context.join("Dockerfile");
            fs::write(&file, dockerfile).file("write", &file)?;
            self.build(&context, image, &format!("plane-{program}"))?;
            all.push(image.clone());
        }
        let context = scratch.join("labnet");
        copy_folder(&self.recipe.join("labnet"), &context)?;
        place_binary(&binaries["kubectl"], &context)?;
        self.build(&context, LABNET, "plane-labnet")?;

        let archive = scratch.join("plane.tar");
        self.engine
            .docker()
            .args(["save", "--output"])
            .arg(&archive)
            .args(&all)
            .output()?;
        // The node image holds them now: the engine needs them no longer.
        self.engine
            .docker()
            .args(["image", "rm", "--force"])
            .args(&all)
            .output()?;
        Ok(archive)
    }

    fn compile_pause(&self, context: &Path) -> Result<()> {
        debian::install_missing(self.report, &[("gcc", "gcc"), ("gcc", "libc6-dev")])?;
        Process::new("gcc")
            .args(["-Os", "-static", "-s", "-o"])
            .arg(context.join("pause"))
            .arg(self.recipe.join("pause.c"))
            .output()?;
        Ok(())
    }

    /// The node without the control plane's images.
    fn bare_node(
        &self,
        binaries: &BTreeMap<&str, Binary>,
        names: &BTreeMap<String, String>,
        kind_files: &Path,
        scratch: &Path,
    ) -> Result<String> {
        let context = scratch.join("node");
        let kind = context.join("kind-files");
        copy_folder(kind_files, &kind)?;
        // A Go module's files carry no modes worth keeping.
        for folder in ["usr/local/bin", "kind/bin"] {
            make_executable(&kind.join(folder))?;
        }
        let ours = context.join("node-files");
        copy_folder(&self.recipe.join("manifests"), &ours.join("kind/manifests"))?;
        let version = ours.join("kind/version");
        fs::write(&version, format!("{}\n", self.version)).file("write", &version)?;
        self.containerd_config(&ours.join("etc/containerd"), names)?;
        let bin = context.join("bin");
        fs::create_dir_all(&bin).file("create", &bin)?;
        for program in NODE_PROGRAMS {
            place_binary(&binaries[program], &bin)?;
        }
        let dockerfile = self.recipe.join("Dockerfile");
        fs::copy(&dockerfile, context.join("Dockerfile")).file("copy", &dockerfile)?;
        let reference = "blueprint-lab/node-bare:latest";
        self.build(&context, reference, "node")?;
        Ok(reference.to_owned())
    }

    fn containerd_config(&self, folder: &Path, names: &BTreeMap<String, String>) -> Result<()> {
        let template = self.recipe.join("containerd.toml");
        let text = fs::read_to_string(&template)
            .file("read", &template)?
            .replace("{pause}", names.get("pause").map_or("", String::as_str))
            .replace("{systemd_cgroup}", &host::systemd_cgroup().to_string());
        fs::create_dir_all(folder).file("create", folder)?;
        let place = folder.join("config.toml");
        fs::write(&place, text).file("write", &place)
    }

    /// Loads the archive into containerd in a container of the bare node, and keeps the result.
    fn preload(&self, bare: &str, archive: &Path, reference: &str, key: &str) -> Result<()> {
        let docker = || self.engine.docker();
        let script = self.recipe.join("preload.sh");
        let script = fs::read(&script).file("read", &script)?;
        let container = docker()
            .args(["run", "--detach", "--privileged", "--entrypoint", "sleep"])
            .arg("--volume")
            .arg(format!("{}:/images.tar:ro", archive.display()))
            .args([bare, "infinity"])
            .output()?;
        let made = docker()
            .args(["exec", "--interactive", &container, "bash", "-s"])
            .input(script)
            .logged(&self.lab.log("node-preload"))
            .and_then(|()| {
                docker()
                    .args(["commit", "--change", ENTRYPOINT, "--change", &label(key)])
                    .args([&container, reference])
                    .output()
            });
        // The container goes in either case; the first error is the one to tell.
        let removed = docker()
            .args(["rm", "--force", "--volumes", &container])
            .output();
        made?;
        removed?;
        docker().args(["image", "rm", bare]).output()?;
        Ok(())
    }

    fn build(&self, context: &Path, reference: &str, log: &str) -> Result<()> {
        self.engine
            .build(context, reference, "", &[], &self.lab.log(log))
    }
}

/// Program name → image, as this version of kubeadm asks for them.
fn plane_image_names(kubeadm: &Binary, version: &str) -> Result<BTreeMap<String, String>> {
    let text = Process::new(&kubeadm.path)
        .args(["config", "images", "list", "--kubernetes-version", version])
        .output()?;
    Ok(text
        .lines()
        .filter_map(|image| {
            let (repository, _) = image.rsplit_once(':')?;
            let program = repository.rsplit('/').next()?;
            Some((program.to_owned(), image.to_owned()))
        })
        .collect())
}

/// A Dockerfile for one static program and nothing else.
fn static_image(program: &str, place: &str, entrypoint: bool) -> String {
    let mut text = format!("FROM scratch\nENV PATH=/usr/local/bin\nCOPY {program} {place}\n");
    if entrypoint {
        text.push_str("ENTRYPOINT [\"");
        text.push_str(place);
        text.push_str("\"]\n");
    }
    text
}

fn make_executable(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).file("list", folder)? {
        let path = entry.file("list", folder)?.path();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .file("make executable", &path)?;
    }
    Ok(())
}
