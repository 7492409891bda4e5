//! Every credential rotated, twice: the former value is refused and the new one works, by psql, redis-cli, curl, bao and openssl; nothing else has changed; GitLab
//! answers, and what was written before is still there.

mod trials;

use std::fs;
use std::time::Instant;

use serde_json::Value;

use super::identity::{self, Identity};
use super::network;
use super::pipeline::run_blueprint;
use super::{Evidence, Scene, expect};
use crate::error::{Error, FileContext as _, Result};
use crate::report::seconds;

use trials::Trial;

/// One credential, and all that a rotation of it may change.
struct Rotated {
    name: &'static str,
    trial: Trial,
    /// Below the checkout.
    files: &'static [&'static str],
    /// Namespace and name.
    secrets: &'static [&'static str],
}

const ROLES: &str = "infra/secrets/cnpg-role-passwords.json";

const ALL: [Rotated; 7] = [
    Rotated {
        name: "postgresql-gitlab",
        trial: Trial::Role("gitlab"),
        files: &[ROLES],
        secrets: &["postgresql/pg-gitlab", "gitlab/gitlab-psql"],
    },
    Rotated {
        name: "postgresql-openbao",
        trial: Trial::Role("openbao"),
        files: &[ROLES],
        secrets: &["postgresql/pg-openbao", "openbao/openbao-pg"],
    },
    Rotated {
        name: "postgresql-gitlab-openbao",
        trial: Trial::Role("gitlab_openbao"),
        files: &[ROLES],
        secrets: &["postgresql/pg-gitlab-openbao", "gitlab/gitlab-openbao-psql"],
    },
    Rotated {
        name: "redis",
        trial: Trial::Redis,
        files: &["infra/secrets/redis-password.txt"],
        secrets: &["redis/redis-auth", "gitlab/gitlab-redis"],
    },
    Rotated {
        name: "minio",
        trial: Trial::Minio,
        files: &["infra/secrets/minio-root-password.txt"],
        secrets: &["minio/minio-root", "gitlab/gitlab-rails-storage"],
    },
    Rotated {
        name: "openbao-keys",
        trial: Trial::UnsealKeys,
        files: &["infra/secrets/openbao-init.json"],
        secrets: &[],
    },
    Rotated {
        name: "wildcard",
        trial: Trial::Certificate,
        files: &["infra/tls/wildcard/cert.pem", "infra/tls/wildcard/key.pem"],
        secrets: &[
            "gitlab/gitlab-wildcard-tls",
            "gitlab/gitlab-tls",
            "gitlab/registry-tls",
            "gitlab/kas-tls",
            "gitlab/minio-tls",
            "gitlab/openbao-tls",
        ],
    },
];

pub(super) fn secrets_rotated(scene: &mut Scene) -> Result<Evidence> {
    identity::mark(scene)?;
    let mut took = Vec::new();
    for round in 1..=2 {
        for rotated in &ALL {
            let begun = Instant::now();
            rotate(scene, rotated)?;
            took.push(format!("{} {}", rotated.name, seconds(begun.elapsed())));
            scene.report.say(format!(
                "round {round}: {} in {}",
                rotated.name,
                seconds(begun.elapsed())
            ));
        }
    }
    network::https_from_the_host(scene)?;
    run_blueprint(scene, &["smoke"])?;
    every_copy_agrees(scene)?;
    Ok(format!(
        "each rotated twice, the former value refused, the new one taken, nothing else changed, 5 markers there: {}",
        took.join(", ")
    ))
}

fn rotate(scene: &mut Scene, rotated: &Rotated) -> Result<()> {
    let before = Identity::take(scene)?;
    let former = rotated.trial.value(scene)?;
    expect(
        rotated.trial.works(scene, &former)?,
        "the present value to work",
        format!("{}: it is refused", rotated.name),
    )?;
    run_blueprint(scene, &["secrets", "rotate", rotated.name])?;
    let new = rotated.trial.value(scene)?;
    expect(
        new != former && rotated.trial.works(scene, &new)?,
        "a new value that works",
        format!("{}: the same one, or one that is refused", rotated.name),
    )?;
    expect(
        !rotated.trial.works(scene, &former)?,
        "the former value to be refused",
        format!("{}: it still works", rotated.name),
    )?;
    // OpenBao's trial leaves it sealed or opened by hand; the next look needs it open.
    run_blueprint(scene, &["secrets", "unseal"])?;
    let after = Identity::take(scene)?;
    let mut changed = before.differences(&after);
    changed.sort();
    let wanted = wanted(scene, rotated);
    expect(
        changed == wanted && after.markers_hold(),
        &format!("five markers, and changed: {}", wanted.join("; ")),
        changed.join("; "),
    )?;
    let left = scene.lab.checkout().join("infra/secrets/rotations");
    let left = fs::read_dir(&left).file("list", &left)?.count();
    expect(left == 0, "no rotation left open", left.to_string()).map(drop)
}

fn wanted(scene: &Scene, rotated: &Rotated) -> Vec<String> {
    let file = |name: &&str| {
        let path = scene.lab.checkout().join(name);
        format!("file {} differs", path.display())
    };
    let secret = |name: &&str| format!("Secret {name} differs");
    let mut wanted: Vec<String> = rotated
        .files
        .iter()
        .map(file)
        .chain(rotated.secrets.iter().map(secret))
        .collect();
    wanted.sort();
    wanted
}

/// By blueprint's own list, which knows of the copies in OpenBao as well.
fn every_copy_agrees(scene: &Scene) -> Result<()> {
    let text = scene
        .platform
        .blueprint()
        .args(["secrets", "list", "--output", "json"])
        .output()?;
    let rows: Vec<Value> = serde_json::from_str(&text)
        .map_err(|error| Error::content("blueprint secrets list", error))?;
    let odd: Vec<String> = rows
        .iter()
        .filter(|row| row["copies_agree"] == "differ" || row["rotation_under_way"] == true)
        .map(|row| row["name"].to_string())
        .collect();
    expect(
        odd.is_empty() && rows.len() > ALL.len(),
        "every copy to agree",
        format!("{} credentials; differing: {}", rows.len(), odd.join(", ")),
    )
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_blueprint_rotates_is_tried() {
        let source = include_str!("../../../crates/phase2/src/rotation.rs");
        for rotated in &ALL {
            assert!(
                source.contains(&format!("=> \"{}\"", rotated.name)),
                "{}",
                rotated.name
            );
        }
        let (_, table) = source.split_once("fn name(self)").unwrap();
        let (table, _) = table.split_once("fn what(self)").unwrap();
        let names = table.matches("=> \"").count();
        assert_eq!(names, ALL.len());
    }
}
