//! The end state of an installation, so that two of them can be compared: what there is, by name and shape, not by secret value.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::pipeline::run_blueprint;
use super::{Evidence, Scene, data, expect, fresh, identity, objects};
use crate::cluster::Cluster;
use crate::error::{FileContext as _, Result};

const TABLES: &str = "select string_agg(table_name, ' ' order by table_name) from information_schema.tables where table_schema = 'public'";
const ROLES: &str = "select string_agg(rolname || ' ' || rolcanlogin || ' ' || rolsuper, ', ' order by rolname) from pg_roles";
const DATABASES: &str = "select string_agg(datname || ' of ' || pg_get_userbyid(datdba), ', ' order by datname) from pg_database";
/// Lines of ours in a node's files, and the files that are ours alone. Addresses differ between clusters.
const NODE_FILES: &str = "grep -c blueprint: /etc/hosts; find /etc/containerd/certs.d /etc/containerd/blueprint* -type f 2>/dev/null | sort";

/// Of the checkout's own installation, brought up on a cluster of its own if there is none.
pub(super) fn undisturbed(scene: &Scene) -> Result<BTreeMap<String, String>> {
    if Cluster::open(scene.lab, scene.platform.engine())?
        .nodes()?
        .is_empty()
    {
        fresh::cluster(scene)?;
    }
    run_blueprint(scene, &["up", "--output", "plain"])?;
    take(scene)
}

/// Goes on once more; then smoke is green and all is as the undisturbed run left it.
pub(super) fn same_end(scene: &Scene, undisturbed: &BTreeMap<String, String>) -> Result<Evidence> {
    run_blueprint(scene, &["up", "--output", "plain"])?;
    run_blueprint(scene, &["smoke"])?;
    let differences = objects::differences(undisturbed, &take(scene)?);
    expect(
        differences.is_empty(),
        "the end state of an undisturbed run",
        if differences.is_empty() {
            format!(
                "{} objects, files and stores as after an undisturbed run",
                undisturbed.len()
            )
        } else {
            differences.join("; ")
        },
    )
}

/// Objects, private files, what the stores hold, what stands on the nodes.
pub(super) fn take(scene: &Scene) -> Result<BTreeMap<String, String>> {
    let mut seen = objects::shapes(scene)?;
    let mut note = |name: &str, value: String| seen.insert(name.to_owned(), value);
    note("roles", scene.sql("postgres", ROLES)?);
    note("databases", scene.sql("postgres", DATABASES)?);
    note("tables of OpenBao", scene.sql("openbao", TABLES)?);
    note(
        "runners",
        scene.sql("gitlabhq_production", "select count(*) from ci_runners")?,
    );
    note("buckets", data::bucket_names(scene)?.join(" "));
    note(
        "mounts of OpenBao",
        identity::bao(scene, &["secrets", "list", "-format=yaml"])
            .map(|told| top_level(&told).join(" "))?,
    );
    for path in ["", "gitlab", "blueprint"] {
        let listed = identity::bao(scene, &["kv", "list", &format!("secret/{path}")])?;
        // Other checks leave their marker there.
        let ours: Vec<_> = listed.lines().filter(|line| *line != "e2e/").collect();
        note(&format!("secrets below secret/{path}"), ours.join(" "));
    }
    for node in Cluster::open(scene.lab, scene.platform.engine())?.nodes()? {
        let told = scene
            .platform
            .engine()
            .docker()
            .args(["exec", &node, "sh", "-c", NODE_FILES])
            .output()?;
        note(&format!("files of node {node}"), told);
    }
    for folder in ["infra/secrets", "infra/tls"] {
        files(&scene.lab.checkout().join(folder), &mut seen)?;
    }
    Ok(seen)
}

/// The keys of YAML's outermost map.
fn top_level(yaml: &str) -> Vec<&str> {
    let keys = yaml.lines().filter(|line| !line.starts_with(' '));
    keys.filter_map(|line| line.strip_suffix(':')).collect()
}

/// Name and mode. Former snapshots and files come and go with every change of a Secret.
fn files(folder: &Path, seen: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(folder).file("list", folder)? {
        let path = entry.file("list", folder)?.path();
        let former = path
            .extension()
            .is_some_and(|end| end == "former" || end.to_string_lossy().parse::<u8>().is_ok());
        if former {
            continue;
        }
        let meta = fs::metadata(&path).file("read", &path)?;
        let mode = format!("mode {:o}", meta.permissions().mode() & 0o777);
        seen.insert(format!("file {}", path.display()), mode);
        if meta.is_dir() {
            files(&path, seen)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_told_from_their_fields() {
        assert_eq!(
            top_level("cubbyhole/:\n  type: x\nsecret/:\n  options:\n    version: \"2\"\n"),
            ["cubbyhole/", "secret/"]
        );
    }
}
