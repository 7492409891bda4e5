//! Debian as a source: packages on this system, packages unpacked beside it, and root file systems.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, FileContext as _, Result};
use crate::lab_home::LabHome;
use crate::process::{Process, on_path};
use crate::report::Reporter;

/// The release the lab's engine, node and images are made of: the first one with a containerd and a
/// Docker that run privileged containers without `CAP_SYS_RESOURCE`.
pub(crate) const SUITE: &str = "trixie";

/// Verifies the mirror; part of every Debian system.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Left out of every root file system: nobody reads them in a container.
const STRIPPED: [&str; 7] = [
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/i18n",
    "usr/share/lintian",
    "var/cache/ldconfig",
];

/// Installs packages on this system when one of their programs is missing.
pub(crate) fn install_missing(report: &Reporter, wanted: &[(&str, &str)]) -> Result<()> {
    let mut packages: Vec<&str> = wanted
        .iter()
        .filter(|(program, _)| !on_path(program) && !Path::new("/usr/sbin").join(program).is_file())
        .map(|(_, package)| *package)
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    packages.dedup();
    if !on_path("apt-get") {
        return Err(Error::unmet(
            format!(
                "missing programs, of the Debian packages {}",
                packages.join(" ")
            ),
            "install them with your system's package manager and run this again",
        ));
    }
    report.say(format!("installing {}", packages.join(" ")));
    let install = Process::new("apt-get")
        .args(["install", "--yes", "--no-install-recommends"])
        .args(&packages)
        .env("DEBIAN_FRONTEND", "noninteractive");
    if install.succeeds() {
        return Ok(());
    }
    // The lists may be empty or old: a fresh machine has none.
    Process::new("apt-get").arg("update").output()?;
    install.output()?;
    Ok(())
}

/// The mirror this system uses, from its apt sources; one-line and deb822 files alike.
pub(crate) fn mirror() -> Result<String> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.filter_map(|entry| entry.ok().map(|e| e.path())));
    }
    files.sort();
    files
        .iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .find_map(|text| mirror_in(&text))
        .ok_or_else(|| {
            Error::unmet(
                "no Debian mirror in /etc/apt",
                "the lab is made of Debian packages; give this system an apt source of Debian's main archive",
            )
        })
}

fn mirror_in(sources: &str) -> Option<String> {
    sources.lines().map(str::trim).find_map(|line| {
        let uri = if let Some(uris) = line.strip_prefix("URIs:") {
            uris.split_whitespace().next()
        } else if line.starts_with("deb ") {
            line.split_whitespace().find(|word| word.contains("://"))
        } else {
            None
        }?;
        let trimmed = uri.trim_end_matches('/');
        trimmed.ends_with("/debian").then(|| trimmed.to_owned())
    })
}

/// apt with a sources file, lists and cache of its own: the system's stay as they were.
pub(crate) struct Beside {
    folder: PathBuf,
}

impl Beside {
    pub(crate) fn prepare(lab: &LabHome) -> Result<Self> {
        let folder = lab.path().join("apt");
        for sub in ["lists/partial", "archives/partial"] {
            let path = folder.join(sub);
            fs::create_dir_all(&path).file("create", &path)?;
        }
        let sources = folder.join("debian.sources");
        let text = format!(
            "Types: deb\nURIs: {}\nSuites: {SUITE}\nComponents: main\nSigned-By: {KEYRING}\n",
            mirror()?
        );
        fs::write(&sources, text).file("write", &sources)?;
        let beside = Self { folder };
        beside.apt().arg("update").output()?;
        Ok(beside)
    }

    /// Downloads packages and unpacks them below `root`, without their dependencies.
    pub(crate) fn unpack(&self, packages: &[&str], root: &Path) -> Result<()> {
        let archives = self.folder.join("archives");
        self.apt()
            .arg("download")
            .args(packages)
            .folder(&archives)
            .output()?;
        fs::create_dir_all(root).file("create", root)?;
        for entry in fs::read_dir(&archives).file("list", &archives)? {
            let path = entry.file("list", &archives)?.path();
            if path.extension().is_some_and(|e| e == "deb") {
                Process::new("dpkg")
                    .arg("-x")
                    .args([path.as_path(), root])
                    .output()?;
                fs::remove_file(&path).file("remove", &path)?;
            }
        }
        Ok(())
    }

    fn apt(&self) -> Process {
        let option = |name: &str, value: &Path| format!("{name}={}", value.display());
        Process::new("apt-get")
            .args(["-o", "Dir::Etc::sourceparts=-"])
            // The lists lie below root's home, where the _apt user can't go.
            .args(["-o", "APT::Sandbox::User=root"])
            .args([
                "-o",
                "Dir::Cache::pkgcache=",
                "-o",
                "Dir::Cache::srcpkgcache=",
            ])
            .arg("-o")
            .arg(option(
                "Dir::Etc::sourcelist",
                &self.folder.join("debian.sources"),
            ))
            .arg("-o")
            .arg(option("Dir::State::lists", &self.folder.join("lists")))
            .arg("-o")
            .arg(option(
                "Dir::Cache::archives",
                &self.folder.join("archives"),
            ))
    }
}

/// Makes a root file system with these packages, without what is in `remove`, as a tar archive.
pub(crate) fn root_file_system(
    packages: &[String],
    remove: &[String],
    archive: &Path,
    log: &Path,
) -> Result<()> {
    let strip = STRIPPED
        .iter()
        .map(|path| format!("{path}/*"))
        .chain(
            remove
                .iter()
                .map(|path| path.trim_start_matches('/').to_owned()),
        )
        .fold(String::from("rm -rf"), |all, path| {
            format!("{all} \"$1\"/{path}")
        });
    Process::new("mmdebstrap")
        .args(["--variant=minbase", "--components=main"])
        .arg(format!("--keyring={KEYRING}"))
        .arg(format!("--include={}", packages.join(",")))
        .arg(format!("--customize-hook={strip}"))
        .arg(SUITE)
        .arg(archive)
        .arg(mirror()?)
        .logged(log)
}

/// What a root file system is made of, for its key.
pub(crate) fn recipe() -> String {
    format!("{SUITE} without {}", STRIPPED.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mirror_comes_from_either_kind_of_sources() {
        let deb822 = "Types: deb\nURIs: http://mirror.example/debian/\nSuites: bookworm\n";
        assert_eq!(
            mirror_in(deb822).as_deref(),
            Some("http://mirror.example/debian")
        );
        let line = "# old\ndeb [signed-by=/k.gpg] https://m.example/debian bookworm main\n";
        assert_eq!(mirror_in(line).as_deref(), Some("https://m.example/debian"));
    }

    #[test]
    fn a_foreign_or_security_archive_is_no_mirror() {
        let other = "deb https://deb.nodesource.com/node_20.x nodistro main\n\
                     URIs: http://security.example/debian-security\n";
        assert_eq!(mirror_in(other), None);
    }
}
