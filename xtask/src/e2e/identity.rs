//! What must be the same after the cluster was destroyed and created again: markers in all five stores, and every identity.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Scene;
use super::data::s3;
use super::observer::items;
use crate::error::{Error, FileContext as _, Result};

const MARKER: &str = "kept-across-recreation";
const OBJECT: &str = "gitlab-artifacts/e2e-marker";
const DATABASE: &str = "gitlabhq_production";
/// The token comes by stdin, so that it stands on no argument list.
const BAO: &str =
    r#"read -r BAO_TOKEN; export BAO_TOKEN BAO_ADDR=http://127.0.0.1:8200; exec bao "$@""#;

/// Names with what was seen of them; secret values as digests.
pub(super) struct Identity(BTreeMap<String, String>);

/// Writes one marker into each store.
pub(super) fn mark(scene: &Scene) -> Result<()> {
    scene.sql(
        DATABASE,
        &format!("create table if not exists e2e_marker (value text); truncate e2e_marker; insert into e2e_marker values ('{MARKER}')"),
    )?;
    redis(scene, &format!("SET e2e:marker {MARKER}"))?;
    s3(
        scene,
        OBJECT,
        &format!("request = \"PUT\"\ndata-binary = \"{MARKER}\"\n"),
    )?;
    bao(
        scene,
        &[
            "kv",
            "put",
            "-mount=secret",
            "e2e/marker",
            &format!("value={MARKER}"),
        ],
    )?;
    scene.in_pod(
        "gitlab",
        "gitlab-gitaly-0",
        MARKER,
        &["sh", "-c", "cat > /home/git/repositories/e2e-marker"],
    )?;
    Ok(())
}

impl Identity {
    pub(super) fn take(scene: &Scene) -> Result<Self> {
        let mut seen = BTreeMap::new();
        let mut note = |name: &str, value: String| {
            seen.insert(name.to_owned(), value);
        };
        note(
            "marker in PostgreSQL",
            scene.sql(DATABASE, "select value from e2e_marker")?,
        );
        note("marker in Redis", redis(scene, "GET e2e:marker")?);
        note("marker in S3", s3(scene, OBJECT, "")?);
        note(
            "marker in OpenBao",
            bao(
                scene,
                &["kv", "get", "-mount=secret", "-field=value", "e2e/marker"],
            )?,
        );
        note(
            "marker in Gitaly",
            scene.in_pod(
                "gitlab",
                "gitlab-gitaly-0",
                "",
                &["cat", "/home/git/repositories/e2e-marker"],
            )?,
        );
        note(
            "system identifier",
            scene.sql(
                "postgres",
                "select system_identifier from pg_control_system()",
            )?,
        );
        note(
            "runners",
            scene.sql(
                DATABASE,
                "select string_agg(id || ' ' || md5(token), ', ' order by id) from ci_runners",
            )?,
        );
        for folder in ["infra/secrets", "infra/tls/wildcard"] {
            private_files(&scene.lab.checkout().join(folder), &mut seen)?;
        }
        for namespace in ["gitlab", "postgresql", "redis", "minio", "openbao"] {
            secrets(scene, namespace, &mut seen)?;
        }
        Ok(Self(seen))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Every marker was found as it was written.
    pub(super) fn markers_hold(&self) -> bool {
        let markers: Vec<_> = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("marker"))
            .collect();
        markers.len() == 5 && markers.iter().all(|(_, value)| *value == MARKER)
    }

    pub(super) fn differences(&self, after: &Self) -> Vec<String> {
        differences(&self.0, &after.0)
    }
}

/// What is gone, new or different; values are not shown, some are digests of secrets.
pub(super) fn differences(
    before: &BTreeMap<String, String>,
    after: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut found: Vec<String> = before
        .iter()
        .filter_map(|(name, value)| match after.get(name) {
            None => Some(format!("{name} is gone")),
            Some(now) if now != value => Some(format!("{name} differs")),
            Some(_) => None,
        })
        .collect();
    found.extend(
        after
            .keys()
            .filter(|name| !before.contains_key(*name))
            .map(|name| format!("{name} is new")),
    );
    found
}

fn redis(scene: &Scene, command: &str) -> Result<String> {
    let path = scene
        .lab
        .checkout()
        .join("infra/secrets/redis-password.txt");
    let password = fs::read_to_string(&path).file("read", &path)?;
    let answer = scene.in_pod(
        "redis",
        "redis-master-0",
        &format!("AUTH {}\n{command}\n", password.trim()),
        &["redis-cli"],
    )?;
    // The first line answers AUTH.
    Ok(answer.lines().skip(1).collect::<Vec<_>>().join("\n"))
}

pub(super) fn bao(scene: &Scene, args: &[&str]) -> Result<String> {
    let path = scene.lab.checkout().join("infra/secrets/openbao-init.json");
    let text = fs::read_to_string(&path).file("read", &path)?;
    let init: Value = serde_json::from_str(&text)
        .map_err(|error| Error::content(path.display().to_string(), error))?;
    let token = init["root_token"].as_str().unwrap_or_default();
    let mut command = vec!["sh", "-c", BAO, "bao"];
    command.extend(args);
    scene.in_pod("openbao", "openbao-0", &format!("{token}\n"), &command)
}

fn private_files(folder: &Path, seen: &mut BTreeMap<String, String>) -> Result<()> {
    for entry in fs::read_dir(folder).file("list", folder)? {
        let path = entry.file("list", folder)?.path();
        // Rotated snapshots come and go; what they hold is compared through the newest.
        let rotated = path
            .extension()
            .is_some_and(|end| end.to_string_lossy().parse::<u8>().is_ok());
        if path.is_file() && !rotated {
            let bytes = fs::read(&path).file("read", &path)?;
            seen.insert(format!("file {}", path.display()), digest(&bytes));
        }
    }
    Ok(())
}

fn secrets(scene: &Scene, namespace: &str, seen: &mut BTreeMap<String, String>) -> Result<()> {
    let list = scene.objects(&["secrets", "--namespace", namespace])?;
    for secret in items(&list) {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default();
        if made_per_cluster(namespace, name, secret["type"].as_str().unwrap_or_default()) {
            continue;
        }
        seen.insert(
            format!("Secret {namespace}/{name}"),
            digest(secret["data"].to_string().as_bytes()),
        );
    }
    Ok(())
}

/// Secrets that a new cluster makes anew without harm: Helm's records, CloudNativePG's own certificates and superuser, Envoy Gateway's control-plane
/// certificates (its certgen job).
fn made_per_cluster(namespace: &str, name: &str, kind: &str) -> bool {
    kind == "helm.sh/release.v1"
        || (namespace == "postgresql" && name.starts_with("postgresql-cnpg-"))
        || (namespace == "gitlab"
            && (name.starts_with("envoy") || name.ends_with("-webhook-server-cert")))
}

pub(super) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .take(8)
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_and_a_changed_identity_are_told_and_values_are_not_shown() {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
                .collect()
        };
        let found = differences(
            &map(&[("a", "1"), ("b", "2")]),
            &map(&[("b", "s3cret"), ("c", "4")]),
        );
        assert_eq!(found, ["a is gone", "b differs", "c is new"]);
    }
}
