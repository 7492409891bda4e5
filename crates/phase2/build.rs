//! Lists the files that `blueprint init` writes, so that no reference can be forgotten in a hand-kept list.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest.join("../..").canonicalize()?;
    let references = root.join("infra/phase2/references");
    let mut files = vec![
        ("VERSIONS.json".to_owned(), root.join("VERSIONS.json")),
        (
            "infra/kind/cluster.yaml".to_owned(),
            root.join("infra/kind/cluster.yaml"),
        ),
        (
            "blueprint.yaml".to_owned(),
            manifest.join("init/blueprint.yaml"),
        ),
        (".gitignore".to_owned(), manifest.join("init/gitignore")),
    ];
    collect(&references, "infra/phase2/references", &mut files)?;
    files.sort();

    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", references.display());
    let mut list = String::from("&[\n");
    for (path, source) in &files {
        println!("cargo::rerun-if-changed={}", source.display());
        writeln!(
            list,
            "    Embedded {{ path: {path:?}, text: include_str!({:?}) }},",
            source.to_string_lossy()
        )
        .map_err(io::Error::other)?;
    }
    list.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("embedded.rs"), list)
}

/// Every file under `folder` that is not hidden, with its path in a workspace.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        let path = format!("{prefix}/{name}");
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else {
            files.push((path, entry.path()));
        }
    }
    Ok(())
}
