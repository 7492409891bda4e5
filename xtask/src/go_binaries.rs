//! Binaries built from the Go module proxy. Each folder of `lab/go` is a module whose `tool` lines name the programs
//! (one without is there for its files alone) and whose go.sum pins every byte of their sources.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::cache::Key;
use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::process::{Process, on_path};
use crate::report::{Reporter, seconds};

/// One static binary for every machine and image: no C library, no paths of the builder in it. The linker drops debug information (`-w`), so the compiler need not make it.
const BUILD_FLAGS: [&str; 2] = ["-trimpath", "-gcflags=all=-dwarf=false"];
const LINK_FLAGS: &str = "-s -w";
/// The compiler collects garbage less often: a quarter less of its time, for memory that a lab has.
const COLLECT: (&str, &str) = ("GOGC", "300");
const ENVIRONMENT: [(&str, &str); 2] = [("CGO_ENABLED", "0"), ("GOFLAGS", "-buildvcs=false")];

/// A built program and the key of what it was built from.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) key: String,
}

pub(crate) struct GoBinaries {
    lab: LabHome,
    compiler: String,
    modules: Vec<Module>,
}

/// The part that is used of what `go mod download -json` answers.
#[derive(serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Download {
    dir: PathBuf,
}

/// One folder of `lab/go`.
#[derive(Debug)]
struct Module {
    name: String,
    folder: PathBuf,
    /// Program name and package path, in the order of go.mod.
    programs: Vec<(String, String)>,
    link_flags: String,
}

impl GoBinaries {
    pub(crate) fn open(lab: &LabHome) -> Result<Self> {
        if !on_path("go") {
            return Err(Error::unmet(
                "no Go compiler on the PATH",
                "the lab builds Kubernetes and others from source; install Go 1.26 or newer (https://go.dev/dl)",
            ));
        }
        let compiler = Process::new("go")
            .args(["env", "GOVERSION", "GOOS", "GOARCH"])
            .output()?;
        let root = lab.recipes().join("go");
        let mut modules = Vec::new();
        for entry in fs::read_dir(&root).file("list", &root)? {
            let folder = entry.file("list", &root)?.path();
            if folder.join("go.mod").is_file() {
                modules.push(Module::read(&folder)?);
            }
        }
        modules.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self {
            lab: lab.clone(),
            compiler,
            modules,
        })
    }

    /// The names of all programs.
    pub(crate) fn names(&self) -> Vec<String> {
        self.modules
            .iter()
            .flat_map(|module| module.programs.iter().map(|(name, _)| name.clone()))
            .collect()
    }

    /// A program, built now when it is not in the cache.
    pub(crate) fn ensure(&self, name: &str, report: &Reporter) -> Result<Binary> {
        let module = self.module_of(name)?;
        let key = self.key(module)?;
        let path = self
            .lab
            .path()
            .join("go")
            .join(format!("{}-{key}", module.name))
            .join(name);
        if !path.is_file() {
            self.build(module, name, &path, report)?;
        }
        link(&self.lab, name, &path)?;
        Ok(Binary {
            name: name.to_owned(),
            path,
            key,
        })
    }

    /// The folder of a module's own source, fetched when it is not there.
    pub(crate) fn source(&self, module: &str, path: &str) -> Result<PathBuf> {
        let text = self
            .go(&self.lab.recipes().join("go").join(module))
            .args(["mod", "download", "-json", path])
            .output()?;
        let found: Download = serde_json::from_str(&text)
            .map_err(|error| Error::content("the answer of `go mod download`", error))?;
        Ok(found.dir)
    }

    /// Removes binaries of older pins, and Go's own caches: 15 GB that only a rebuild would use again.
    pub(crate) fn drop_build_caches(&self, report: &Reporter) -> Result<()> {
        let root = self.lab.path().join("go");
        let mut current = Vec::new();
        for module in &self.modules {
            current.push(format!("{}-{}", module.name, self.key(module)?));
        }
        if let Ok(entries) = fs::read_dir(&root) {
            for path in entries.filter_map(|entry| entry.ok().map(|e| e.path())) {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if !current.contains(&name.into_owned()) {
                    fs::remove_dir_all(&path).file("remove", &path)?;
                }
            }
        }
        if own_build_cache().is_none() && self.build_cache().is_dir() {
            report.say("removing Go's build cache: all binaries are built");
            let path = self.build_cache();
            fs::remove_dir_all(&path).file("remove", &path)?;
        }
        if own_module_cache().is_none() && self.module_cache().is_dir() {
            // The module cache is read-only; go itself knows how to remove it.
            self.go(self.lab.path())
                .args(["clean", "-modcache"])
                .output()?;
        }
        Ok(())
    }

    fn module_of(&self, program: &str) -> Result<&Module> {
        self.modules
            .iter()
            .find(|module| module.programs.iter().any(|(name, _)| name == program))
            .ok_or_else(|| {
                Error::unmet(
                    format!("no module of lab/go builds `{program}`"),
                    format!("they build: {}", self.names().join(", ")),
                )
            })
    }

    fn key(&self, module: &Module) -> Result<String> {
        Ok(Key::new("go binary")
            .text(&self.compiler)
            .text(BUILD_FLAGS.join(" "))
            .text(&module.link_flags)
            .text(format!("{ENVIRONMENT:?}"))
            .file(&module.folder.join("go.mod"))?
            .file(&module.folder.join("go.sum"))?
            .finish())
    }

    fn build(&self, module: &Module, name: &str, path: &Path, report: &Reporter) -> Result<()> {
        let package = module
            .programs
            .iter()
            .find_map(|(program, package)| (program == name).then_some(package))
            .map_or("", String::as_str);
        report.say(format!("building {name} from {package}"));
        let begun = Instant::now();
        // Built under another name: a half-written binary is never taken for a whole one.
        let partial = path.with_extension("partial");
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).file("create", folder)?;
        }
        self.go(&module.folder)
            .env(COLLECT.0, COLLECT.1)
            .arg("build")
            .args(BUILD_FLAGS)
            .args(["-ldflags", &module.link_flags])
            .arg("-o")
            .arg(&partial)
            .arg(package)
            .logged(&self.lab.log(&format!("go-{name}")))?;
        fs::rename(&partial, path).file("put in place", path)?;
        report.say(format!("built {name} in {}", seconds(begun.elapsed())));
        Ok(())
    }

    fn go(&self, folder: &Path) -> Process {
        let process = Process::new("go")
            .folder(folder)
            .env("GOWORK", "off")
            .env("GOCACHE", self.build_cache())
            .env("GOMODCACHE", self.module_cache());
        ENVIRONMENT
            .into_iter()
            .fold(process, |process, (name, value)| process.env(name, value))
    }

    fn build_cache(&self) -> PathBuf {
        own_build_cache().unwrap_or_else(|| self.lab.path().join("go-build"))
    }

    fn module_cache(&self) -> PathBuf {
        own_module_cache().unwrap_or_else(|| self.lab.path().join("go-mod"))
    }
}

/// A cache the caller keeps: it is used, and never dropped.
fn own_build_cache() -> Option<PathBuf> {
    env::var_os("BLUEPRINT_LAB_GOCACHE").map(PathBuf::from)
}

fn own_module_cache() -> Option<PathBuf> {
    env::var_os("BLUEPRINT_LAB_GOMODCACHE").map(PathBuf::from)
}

/// Puts a program on the lab's PATH.
pub(crate) fn link(lab: &LabHome, name: &str, target: &Path) -> Result<()> {
    let bin = lab.bin();
    fs::create_dir_all(&bin).file("create", &bin)?;
    let link = bin.join(name);
    if fs::read_link(&link).is_ok_and(|found| found == target) {
        return Ok(());
    }
    let fresh = bin.join(format!(".{name}"));
    let _ = fs::remove_file(&fresh);
    symlink(target, &fresh).file("link", &fresh)?;
    fs::rename(&fresh, &link).file("put in place", &link)
}

impl Module {
    fn read(folder: &Path) -> Result<Self> {
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let go_mod = folder.join("go.mod");
        let text = fs::read_to_string(&go_mod).file("read", &go_mod)?;
        let programs: Vec<_> = tools(&text)
            .into_iter()
            .map(|package| (program_name(&name, &package), package))
            .collect();
        let extra = fs::read_to_string(folder.join("ldflags")).unwrap_or_default();
        // A module without `tool` lines is there for its files alone.
        let link_flags = programs.first().map_or_else(String::new, |(_, first)| {
            link_flags(&extra, &required_version(&text, first))
        });
        Ok(Self {
            name,
            folder: folder.to_owned(),
            programs,
            link_flags,
        })
    }
}

/// The packages of `tool` lines, single or in a block.
fn tools(go_mod: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in go_mod.lines().map(str::trim) {
        match line {
            "tool (" => in_block = true,
            ")" => in_block = false,
            _ if in_block => found.push(line.to_owned()),
            _ => found.extend(line.strip_prefix("tool ").map(str::to_owned)),
        }
    }
    found
}

/// The last part of a package path; the folder's name where that part is a major version (`…/server/v3`).
fn program_name(folder: &str, package: &str) -> String {
    let last = package.rsplit('/').next().unwrap_or(package);
    let is_major = last
        .strip_prefix('v')
        .is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
    if is_major { folder } else { last }.to_owned()
}

/// The version of the module that a package belongs to: the longest required path it starts with.
pub(crate) fn required_version(go_mod: &str, package: &str) -> String {
    go_mod
        .lines()
        .filter_map(|line| {
            let line = line.trim();
            let line = line.strip_prefix("require ").unwrap_or(line);
            let (path, rest) = line.split_once(' ')?;
            let version = rest.split(' ').next()?;
            let owns = package
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            (owns && version.starts_with('v')).then_some((path.len(), version))
        })
        .max()
        .map_or_else(String::new, |(_, version)| version.to_owned())
}

/// The common flags and a module's own, with `{version}`, `{major}` and `{minor}` filled in.
fn link_flags(extra: &str, version: &str) -> String {
    let mut parts = version.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    extra
        .split_whitespace()
        .fold(LINK_FLAGS.to_owned(), |all, flag| {
            let flag = flag
                .replace("{version}", version)
                .replace("{major}", major)
                .replace("{minor}", minor);
            format!("{all} {flag}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GO_MOD: &str = "module m\n\ngo 1.26.0\n\ntool go.etcd.io/etcd/server/v3\n\nrequire (\n\tgo.etcd.io/etcd v1.0.0\n\tgo.etcd.io/etcd/server/v3 v3.7.3 // indirect\n)\n\ntool (\n\tk8s.io/kubernetes/cmd/kubectl\n)\n";

    #[test]
    fn tool_lines_name_the_programs() {
        assert_eq!(
            tools(GO_MOD),
            ["go.etcd.io/etcd/server/v3", "k8s.io/kubernetes/cmd/kubectl"]
        );
        assert_eq!(program_name("etcd", "go.etcd.io/etcd/server/v3"), "etcd");
        assert_eq!(
            program_name("kubernetes", "k8s.io/kubernetes/cmd/kubectl"),
            "kubectl"
        );
        assert_eq!(program_name("versitygw", "x/cmd/versitygw"), "versitygw");
    }

    #[test]
    fn the_longest_module_path_gives_the_version() {
        assert_eq!(
            required_version(GO_MOD, "go.etcd.io/etcd/server/v3"),
            "v3.7.3"
        );
        assert_eq!(required_version(GO_MOD, "go.etcd.io/etcdctl"), "");
    }

    #[test]
    fn flags_carry_the_version() {
        assert_eq!(
            link_flags("-X a={version}\n-X b={major}.{minor}\n", "v1.35.4"),
            "-s -w -X a=v1.35.4 -X b=1.35"
        );
    }

    #[test]
    fn every_module_of_the_lab_builds_something_or_pins_its_files() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/go");
        for entry in fs::read_dir(root).unwrap() {
            let folder = entry.unwrap().path();
            let text = fs::read_to_string(folder.join("go.mod")).unwrap();
            assert!(
                !Module::read(&folder).unwrap().programs.is_empty() || text.contains("require "),
                "{}",
                folder.display()
            );
            assert!(folder.join("go.sum").is_file(), "{}", folder.display());
        }
    }
}
