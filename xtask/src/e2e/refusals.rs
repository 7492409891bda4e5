//! What must be refused: a clear message, the documented exit code, and nothing changed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::pipeline::Fingerprint;
use super::{Evidence, Scene, expect};
use crate::charts_choice::PINS;
use crate::error::{Error, FileContext as _, Result};
use crate::process::Process;

/// One thing that is wrong, and how blueprint must answer.
struct Case {
    name: &'static str,
    /// Makes it wrong: in the workspace's copy, or in how blueprint is started.
    spoil: fn(&Place, Process) -> Result<Process>,
    args: &'static [&'static str],
    /// See docs/exit-codes.md.
    code: i32,
    /// Parts of the message: what is wrong, and what mends it.
    told: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        name: "a context that is no kind cluster's",
        spoil: |place, run| place.with_context(run, "production"),
        args: &["up"],
        code: 2,
        told: &[
            "expected the context kind-",
            "production",
            "--context production",
        ],
    },
    Case {
        name: "another kind cluster's context",
        spoil: |place, run| place.with_context(run, "kind-another"),
        args: &["up"],
        code: 2,
        told: &["expected the context kind-", "kind-another"],
    },
    Case {
        name: "helm missing",
        spoil: Place::without_helm,
        args: &["up"],
        code: 3,
        told: &["helm was not found", "https://helm.sh/docs/intro/install/"],
    },
    Case {
        name: "no Docker socket",
        spoil: |_, run| Ok(run.env("DOCKER_HOST", "unix:///nonexistent")),
        args: &["up"],
        code: 3,
        told: &["no container engine answers at /nonexistent", "DOCKER_HOST"],
    },
    Case {
        name: "an edited chart tarball",
        spoil: |place, run| {
            let redis = place.chart("redis")?;
            let mut bytes = fs::read(&redis).file("read", &redis)?;
            bytes.push(b'x');
            fs::write(&redis, bytes).file("write", &redis)?;
            Ok(run)
        },
        args: &["up"],
        code: 3,
        told: &["does not match its pin", "blueprint charts fetch"],
    },
    Case {
        name: "a truncated VERSIONS.json",
        spoil: |place, run| place.edit("VERSIONS.json", run, |text| text[..300].to_owned()),
        args: &["up"],
        code: 2,
        told: &["VERSIONS.json is not a valid VERSIONS.json", "line"],
    },
    Case {
        name: "an unknown field in VERSIONS.json",
        spoil: |place, run| {
            place.edit("VERSIONS.json", run, |text| {
                text.replacen("\"chart_version\"", "\"chart_vresion\"", 1)
            })
        },
        args: &["up"],
        code: 2,
        told: &["unknown field `chart_vresion`", "chart_version"],
    },
    Case {
        name: "a mistyped setting in blueprint.yaml",
        spoil: |place, run| place.write("blueprint.yaml", "domian: example.org\n", run),
        args: &["up"],
        code: 2,
        told: &["unknown field `domian`", "did you mean `domain`?"],
    },
    Case {
        name: "a blueprint.yaml that is no YAML",
        spoil: |place, run| place.write("blueprint.yaml", "domain: [x\n", run),
        args: &["up"],
        code: 2,
        told: &["blueprint.yaml is not valid YAML", "line 1"],
    },
    Case {
        name: "an unknown task",
        spoil: |_, run| Ok(run),
        args: &["up", "--only", "gitlabb"],
        code: 2,
        told: &["unknown task or step `gitlabb`", "did you mean `gitlab`?"],
    },
    Case {
        name: "a cut off openbao-init.json",
        spoil: |place, run| {
            place.edit("infra/secrets/openbao-init.json", run, |text| {
                text[..text.len() / 2].to_owned()
            })
        },
        args: &["up"],
        code: 3,
        told: &["openbao-init.json is not a valid", "cut off", "backup"],
    },
    Case {
        name: "a cut off snapshot of GitLab's Secrets",
        spoil: |place, run| {
            place.edit("infra/secrets/gitlab-runtime-secrets.yaml", run, |text| {
                text[..text.len() / 2].to_owned()
            })
        },
        args: &["up"],
        code: 3,
        told: &[
            "gitlab-runtime-secrets.yaml is not a valid",
            "cut off",
            "backup",
        ],
    },
];

pub(super) fn refused_before_anything_changes(scene: &mut Scene) -> Result<Evidence> {
    let before = Fingerprint::take(scene)?;
    let (mut told, mut wrong) = (Vec::new(), Vec::new());
    for case in CASES {
        match judge(scene, case) {
            Ok(()) => told.push(format!("{} → {}", case.name, case.code)),
            Err(error) => wrong.push(format!("{}: {error}", case.name)),
        }
    }
    wrong.extend(before.differences(&Fingerprint::take(scene)?));
    expect(
        wrong.is_empty(),
        "each refused with its message and code, and nothing changed",
        if wrong.is_empty() {
            format!(
                "{}; same revisions, objects, pods and files",
                told.join(", ")
            )
        } else {
            wrong.join("; ")
        },
    )
}

fn judge(scene: &Scene, case: &Case) -> Result<()> {
    let place = Place::copy_of(scene)?;
    let run = scene
        .platform
        .blueprint()
        .env(PINS, "")
        .arg("--workspace")
        .arg(&place.root);
    let run = (case.spoil)(&place, run)?;
    let before = Fingerprint::of_files(&place.root)?;
    let (code, stdout, stderr) = run.args(case.args).args(["--output", "plain"]).captured()?;
    let message = format!("{stdout}{stderr}");
    let last: Vec<&str> = message
        .lines()
        .filter(|line| line.contains("error:"))
        .collect();
    expect(
        code == Some(case.code),
        &format!("exit code {}", case.code),
        format!("{code:?}: {}", last.join(" / ")),
    )?;
    for part in case.told.iter().chain(&["hint:"]) {
        expect(
            message.contains(part),
            &format!("`{part}` in the message"),
            last.join(" / "),
        )?;
    }
    let changes = before.differences(&Fingerprint::of_files(&place.root)?);
    expect(
        changes.is_empty(),
        "the workspace as it was",
        changes.join("; "),
    )?;
    Ok(())
}

/// A PGDATA that was cut off while it was made. Judged while no Cluster owns the volume: before the first `up` of a
/// cluster.
pub(super) fn half_written_pgdata(scene: &mut Scene) -> Result<Evidence> {
    let (code, _, _) = scene
        .kubectl(["get", "clusters.postgresql.cnpg.io", "--namespace"])
        .args(["postgresql", "postgresql-cnpg"])
        .captured()?;
    if code == Some(0) {
        return Ok(
            "left out: PostgreSQL runs already; judged before a cluster's first `up`".into(),
        );
    }
    let volume = scene.lab.checkout().join("infra/storage/cnpg");
    fs::create_dir_all(&volume).file("create", &volume)?;
    let spoilt = HalfWritten::make(&volume)?;
    let before = Fingerprint::take(scene)?;
    let (code, stdout, stderr) = scene
        .platform
        .blueprint()
        .args(["up", "--output", "plain"])
        .captured()?;
    let changes = before.differences(&Fingerprint::take(scene)?);
    let still = spoilt.pgdata.join("PG_VERSION").is_file();
    drop(spoilt);
    let message = format!("{stdout}{stderr}");
    expect(
        code == Some(3)
            && still
            && changes.is_empty()
            && message.contains("half-written PGDATA")
            && message.contains("restore it from a backup"),
        "exit code 3, the way out told, nothing changed",
        format!(
            "exit code {code:?}, `half-written PGDATA … restore it from a backup` told, PGDATA untouched, {} changes {}",
            changes.len(),
            changes.join("; ")
        ),
    )
}

/// `PG_VERSION` alone in the place of PGDATA; what was there is put back when dropped.
struct HalfWritten {
    pgdata: PathBuf,
    aside: PathBuf,
}

impl HalfWritten {
    fn make(volume: &Path) -> Result<Self> {
        let (pgdata, aside) = (volume.join("pgdata"), volume.with_file_name("cnpg-aside"));
        if pgdata.exists() {
            fs::rename(&pgdata, &aside).file("move away", &pgdata)?;
        }
        let made = Self { pgdata, aside };
        fs::create_dir_all(&made.pgdata).file("create", &made.pgdata)?;
        let version = made.pgdata.join("PG_VERSION");
        fs::write(&version, "17\n").file("write", &version)?;
        Ok(made)
    }
}

impl Drop for HalfWritten {
    fn drop(&mut self) {
        // What can't be put back stays beside it; the next `up` refuses the empty volume.
        let _ = fs::remove_dir_all(&self.pgdata);
        if self.aside.exists() {
            let _ = fs::rename(&self.aside, &self.pgdata);
        }
    }
}

/// A copy of the workspace, without the data: what is spoilt in it is not missed.
pub(super) struct Place {
    _folder: tempfile::TempDir,
    pub(super) root: PathBuf,
    kubeconfig: PathBuf,
}

impl Place {
    /// With the pins that are in use as its VERSIONS.json.
    pub(super) fn copy_of(scene: &Scene) -> Result<Self> {
        let folder = scene.lab.scratch()?;
        let root = folder.path().join("workspace");
        let checkout = scene.lab.checkout();
        for name in ["helm-charts", "kind", "phase2", "secrets", "tls"] {
            let from = checkout.join("infra").join(name);
            // Before the first run there is neither secrets nor tls.
            if from.exists() {
                copy(&from, &root.join("infra").join(name))?;
            }
        }
        copy(&scene.platform.versions(), &root.join("VERSIONS.json"))?;
        if checkout.join("blueprint.yaml").exists() {
            copy(
                &checkout.join("blueprint.yaml"),
                &root.join("blueprint.yaml"),
            )?;
        }
        Ok(Self {
            root,
            _folder: folder,
            kubeconfig: scene.platform.kubeconfig().to_owned(),
        })
    }

    fn write(&self, name: &str, text: &str, run: Process) -> Result<Process> {
        let path = self.root.join(name);
        fs::write(&path, text).file("write", &path)?;
        Ok(run)
    }

    fn edit(&self, name: &str, run: Process, edit: fn(&str) -> String) -> Result<Process> {
        let path = self.root.join(name);
        let text = fs::read_to_string(&path).file("read", &path)?;
        self.write(name, &edit(&text), run)
    }

    /// The cached file of a pinned chart.
    fn chart(&self, key: &str) -> Result<PathBuf> {
        let path = self.root.join("VERSIONS.json");
        let text = fs::read(&path).file("read", &path)?;
        let pins: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|error| Error::content(path.display().to_string(), error))?;
        let pin = &pins["helm_repositories"][key];
        let field = |name: &str| pin[name].as_str().unwrap_or_default().to_owned();
        let file = format!("{}-{}.tgz", field("chart"), field("chart_version"));
        Ok(self.root.join("infra/helm-charts").join(file))
    }

    /// The same cluster under another context's name.
    fn with_context(&self, run: Process, name: &str) -> Result<Process> {
        let text = fs::read_to_string(&self.kubeconfig).file("read", &self.kubeconfig)?;
        let context = text
            .lines()
            .find_map(|line| line.strip_prefix("current-context:"))
            .map(str::trim)
            .ok_or_else(|| Error::content("the kubeconfig", "no current-context"))?;
        let path = self.root.with_file_name("kubeconfig");
        fs::write(&path, text.replace(context, name)).file("write", &path)?;
        Ok(run.env("KUBECONFIG", path))
    }

    /// A PATH with nothing but what enters the lab's namespace.
    fn without_helm(&self, run: Process) -> Result<Process> {
        let folder = self.root.with_file_name("bin");
        fs::create_dir_all(&folder).file("create", &folder)?;
        let path = std::env::var_os("PATH").unwrap_or_default();
        if let Some(found) = std::env::split_paths(&path)
            .map(|folder| folder.join("nsenter"))
            .find(|file| file.is_file())
        {
            symlink(found, folder.join("nsenter")).file("link", &folder)?;
        }
        Ok(run.env("PATH", folder))
    }
}

/// A copy that keeps modes: private files must stay private.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let meta = fs::symlink_metadata(from).file("read", from)?;
    if meta.is_dir() {
        fs::create_dir_all(to).file("create", to)?;
        for entry in fs::read_dir(from).file("list", from)? {
            let entry = entry.file("list", from)?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        fs::set_permissions(to, meta.permissions()).file("set the mode of", to)?;
    } else {
        fs::copy(from, to).file("copy to", to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pgdata_that_was_moved_away_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("cnpg");
        fs::create_dir_all(volume.join("pgdata/global")).unwrap();
        let spoilt = HalfWritten::make(&volume).unwrap();
        assert!(!volume.join("pgdata/global").exists());
        assert!(volume.join("pgdata/PG_VERSION").exists());
        drop(spoilt);
        assert!(volume.join("pgdata/global").exists());
        assert!(!volume.join("pgdata/PG_VERSION").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_copy_keeps_private_files_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir(&from).unwrap();
        fs::write(from.join("x"), "x").unwrap();
        let mode = |mode| fs::Permissions::from_mode(mode);
        fs::set_permissions(from.join("x"), mode(0o600)).unwrap();
        fs::set_permissions(&from, mode(0o700)).unwrap();
        copy(&from, &to).unwrap();
        let of = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((of(&to), of(&to.join("x"))), (0o700, 0o600));
    }
}
