//! The states that only a person can decide about: each refused in pre-flight, with the ways out in the message and nothing changed; some ways taken.

mod made;
mod running;

use std::fs;
use std::path::Path;

use super::identity::differences;
use super::pipeline::Fingerprint;
use super::{Evidence, Scene, expect};
use crate::error::{FileContext as _, Result};

use made::{MARKER, Made, init_file};
pub(super) use running::while_it_runs;

/// One state, made out of nothing.
struct Case {
    /// As the message and docs/identity.md call it.
    state: &'static str,
    make: fn(&Made) -> Result<()>,
    /// Parts of the message: what was found.
    found: &'static [&'static str],
    /// The ways it lists.
    ways: &'static [&'static str],
    /// A way that is then taken, and what must be there afterwards.
    take: Option<Taken>,
}

/// A way's id, and whether what it promises is there.
type Taken = (&'static str, fn(&Made) -> Result<bool>);

const CASES: &[Case] = &[
    Case {
        state: "half-written PGDATA",
        make: |made| made.on_storage("cnpg/pgdata/PG_VERSION", b"17\n"),
        found: &["pgdata has no global/pg_control"],
        ways: &["pgdata-aside"],
        take: Some(("pgdata-aside", |made| {
            let aside = made.folders("cnpg")?;
            Ok(matches!(aside.as_slice(), [name] if name.starts_with("pgdata_aside_")))
        })),
    },
    Case {
        state: "secrets without volumes",
        make: |made| made.secret("cnpg-system-identifier.txt", "42\n"),
        found: &[
            "system identifier 42 in ",
            "no database on the PostgreSQL volume",
        ],
        ways: &["secrets-aside"],
        take: Some(("secrets-aside", |made| {
            let gone = !made
                .place
                .root
                .join("infra/secrets/cnpg-system-identifier.txt")
                .exists();
            let journal = made.place.root.join("infra/secrets/accepted.jsonl");
            let told = fs::read_to_string(&journal).file("read", &journal)?;
            Ok(gone
                && told.contains("\"way\":\"secrets-aside\"")
                && told.contains("secrets without volumes"))
        })),
    },
    Case {
        state: "keys without a server",
        make: |made| made.secret("openbao-init.json", &init_file()),
        found: &["openbao-init.json", "no database on the PostgreSQL volume"],
        ways: &["openbao-keys-aside"],
        take: None,
    },
    Case {
        state: "a server without keys",
        make: |made| {
            made.whole_database()?;
            made.marked("ours", &["openbao_on"])
        },
        found: &[
            "OpenBao is initialised, but its keys are not on disk",
            "PostgreSQL 42",
        ],
        ways: &["openbao-data-aside"],
        take: None,
    },
    Case {
        state: "volumes without secrets",
        make: |made| {
            made.whole_database()?;
            made.marked("ours", &["gitlab_on"])
        },
        found: &["GitLab's data (database 42)", "gitlab-runtime-secrets.yaml"],
        ways: &["new-gitlab-keys", "volumes-aside"],
        take: None,
    },
    Case {
        state: "volumes without secrets",
        make: |made| made.on_storage("gitaly/@hashed/aa/bb.git/HEAD", b"ref: refs/heads/main\n"),
        found: &["repositories in /"],
        ways: &["new-gitlab-keys", "volumes-aside"],
        take: None,
    },
    Case {
        state: "another database",
        make: |made| {
            made.whole_database()?;
            made.secret("cnpg-system-identifier.txt", "7\n")
        },
        found: &["system identifier 42 in ", "system identifier 7, recorded"],
        ways: &["adopt-database", "pgdata-aside"],
        take: None,
    },
    Case {
        state: "volumes of another installation",
        make: |made| {
            made.whole_database()?;
            made.marked("another", &[])
        },
        found: &[
            "data of installation another since 2026-11-30T10:00:00Z",
            "this workspace is installation ours",
        ],
        ways: &["adopt-volumes", "volumes-aside"],
        take: Some(("volumes-aside", |made| {
            let all = made.folders("")?;
            let aside = all.iter().find(|name| name.starts_with("aside_"));
            let Some(aside) = aside else { return Ok(false) };
            let kept = made.storage.join(aside);
            Ok(kept.join("cnpg/pgdata/global/pg_control").is_file() && kept.join(MARKER).is_file())
        })),
    },
];

/// Judged while no Cluster owns the PostgreSQL volume: before the first `up` of a cluster.
pub(super) fn before_the_first_up(scene: &mut Scene) -> Result<Evidence> {
    let (code, _, _) = scene
        .kubectl(["get", "clusters.postgresql.cnpg.io", "--namespace"])
        .args(["postgresql", "postgresql-cnpg"])
        .captured()?;
    if code == Some(0) {
        return Ok(
            "left out: PostgreSQL runs already; judged before a cluster's first `up`".into(),
        );
    }
    let cluster = Fingerprint::take(scene)?;
    let (mut told, mut wrong) = (Vec::new(), Vec::new());
    for case in CASES {
        match judge(scene, case) {
            Ok(evidence) => told.push(evidence),
            Err(error) => wrong.push(format!("{}: {error}", case.state)),
        }
    }
    let made = Made::new(scene)?;
    (CASES[0].make)(&made)?;
    for (way, parts) in [
        ("pgdata-asid", ["pgdata-aside", "similar"]),
        (
            "adopt-database",
            [
                "fits nothing that was found",
                "did you mean `--accept pgdata-aside`",
            ],
        ),
    ] {
        let (code, message) = up_in(scene, &made.place.root, &["--accept", way])?;
        if code != Some(2) || parts.iter().any(|part| !message.contains(part)) {
            wrong.push(format!("--accept {way}: {code:?}, {message}"));
        }
    }
    drop(made);
    wrong.extend(cluster.differences(&Fingerprint::take(scene)?));
    expect(
        wrong.is_empty(),
        "each refused with its ways out and code 3, a wrong way with code 2, nothing changed",
        if wrong.is_empty() {
            format!(
                "{}; two wrong ways → 2 with `did you mean`; the cluster as before",
                told.join(", ")
            )
        } else {
            wrong.join("; ")
        },
    )
}

fn judge(scene: &Scene, case: &Case) -> Result<Evidence> {
    let made = Made::new(scene)?;
    (case.make)(&made)?;
    let before = made.digests()?;
    let (code, message) = up_in(scene, &made.place.root, &[])?;
    let last: Vec<&str> = message
        .lines()
        .filter(|line| line.contains(case.state))
        .collect();
    let ways: Vec<String> = case
        .ways
        .iter()
        .map(|way| format!("`blueprint up --accept {way}`, which "))
        .collect();
    let missing: Vec<&str> = case
        .found
        .iter()
        .copied()
        .chain([case.state])
        .chain(ways.iter().map(String::as_str))
        .filter(|part| !message.contains(part))
        .collect();
    let changes = differences(&before, &made.digests()?);
    expect(
        code == Some(3) && missing.is_empty() && changes.is_empty(),
        "code 3, what was found and the ways out told, no file changed",
        format!(
            "{code:?}, not told: {}; {}; told: {}",
            missing.join(", "),
            changes.join(", "),
            last.join(" / ")
        ),
    )?;
    let Some((way, holds)) = case.take else {
        return Ok(format!("{} → 3", case.state));
    };
    let (code, message) = up_in(
        scene,
        &made.place.root,
        &["--only", "preflight", "--accept", way],
    )?;
    expect(
        code == Some(0) && holds(&made)?,
        &format!("--accept {way} taken, nothing lost"),
        format!("{code:?}: {message}"),
    )?;
    Ok(format!("{} → 3, --accept {way} → 0", case.state))
}

/// Runs `up` in a workspace of its own on the same cluster.
fn up_in(scene: &Scene, workspace: &Path, args: &[&str]) -> Result<(Option<i32>, String)> {
    let (code, stdout, stderr) = scene
        .platform
        .blueprint()
        .arg("--workspace")
        .arg(workspace)
        .args(["up", "--output", "plain"])
        .args(args)
        .captured()?;
    Ok((code, format!("{stdout}{stderr}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_has_a_way_out_that_is_listed() {
        for case in CASES {
            assert!(!case.ways.is_empty(), "{}", case.state);
            if let Some((way, _)) = case.take {
                assert!(case.ways.contains(&way), "{}", case.state);
            }
        }
    }
}
