use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::*;

/// A shell script in helm's place: what it does with its arguments and environment is written to files beside it.
struct Stage {
    folder: tempfile::TempDir,
    helm: Helm,
}

impl Stage {
    fn new(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let binary = folder.path().join("helm");
        let here = folder.path().display();
        fs::write(&binary, format!("#!/bin/sh\nhere='{here}'\n{script}\n")).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        let helm = Helm::locate(
            Some(&binary),
            Some(Path::new("/k/config")),
            Some("kind-x"),
            &folder.path().join("state"),
        )
        .unwrap();
        Self { folder, helm }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn state(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path().join("state"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "helm-home")
            .collect();
        names.sort();
        names
    }
}

fn release() -> ReleaseInstall {
    ReleaseInstall {
        name: "redis".to_owned(),
        namespace: "redis".to_owned(),
        chart: "/cache/redis-27.0.13.tgz".into(),
        values: json!({"auth": {"password": "hush"}}),
        skip_crds: true,
        skip_schema_validation: true,
        timeout: Duration::from_mins(5),
        labels: vec![
            ("blueprint-inputs".to_owned(), "0123456789abcdef".to_owned()),
            ("a".to_owned(), "b".to_owned()),
        ],
    }
}

#[tokio::test]
async fn an_install_passes_values_by_a_private_file_and_leaves_only_its_log() {
    let stage = Stage::new(
        r#"printf '%s\n' "$@" > "$here/arguments"
env > "$here/environment"
ps -o pgid= -p $$ > "$here/group" 2>/dev/null || cut -d' ' -f5 /proc/$$/stat > "$here/group"
echo $$ > "$here/pid"
for file in "$here"/state/*; do stat -c '%a %n' "$file"; done > "$here/modes"
cp "$here/state/helm-redis.values.yaml" "$here/values"
cp "$here/state/helm-redis.pid" "$here/noted" 2>/dev/null
echo out; echo err >&2"#,
    );
    stage.helm.upgrade_install(&release()).await.unwrap();
    let arguments = stage.text("arguments");
    let values = stage.folder.path().join("state/helm-redis.values.yaml");
    let expected = format!(
        "upgrade --install redis /cache/redis-27.0.13.tgz --namespace redis --values {} --skip-schema-validation --timeout 300s \
         --labels blueprint-inputs=0123456789abcdef,a=b --skip-crds --kubeconfig /k/config --kube-context kind-x",
        values.display()
    );
    assert_eq!(arguments.lines().collect::<Vec<_>>().join(" "), expected);
    assert!(stage.text("values").contains("hush") && !arguments.contains("hush"));
    assert!(
        stage
            .text("modes")
            .lines()
            .all(|line| line.starts_with("600") || line.ends_with("helm-home")),
        "{}",
        stage.text("modes")
    );
    assert_eq!(
        stage.text("group").trim(),
        stage.text("pid").trim(),
        "helm leads its own process group"
    );
    assert_eq!(stage.state(), ["helm-redis.log"]);
    assert_eq!(stage.text("state/helm-redis.log"), "out\nerr\n");
    let environment = stage.text("environment");
    let homes: Vec<&str> = environment
        .lines()
        .filter(|line| line.starts_with("HELM_"))
        .collect();
    assert_eq!(homes.len(), 3, "{homes:?}");
    assert!(
        homes.iter().all(|home| home.contains("/state/helm-home/")),
        "{homes:?}"
    );
}

#[tokio::test]
async fn rollback_and_uninstall_name_release_and_namespace() {
    let stage = Stage::new(r#"printf '%s ' "$@" > "$here/arguments""#);
    stage.helm.rollback("gitlab", "gitlab", 3).await.unwrap();
    assert!(
        stage
            .text("arguments")
            .starts_with("rollback gitlab 3 --namespace gitlab --kubeconfig")
    );
    stage
        .helm
        .uninstall("gitlab", "gitlab", true)
        .await
        .unwrap();
    assert!(stage.text("arguments").starts_with(
        "uninstall gitlab --namespace gitlab --ignore-not-found --no-hooks --kubeconfig"
    ));
}

#[tokio::test]
async fn a_failure_is_sorted_by_what_helm_said() {
    let stage = Stage::new(
        "echo 'Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress' >&2; exit 1",
    );
    let error = stage.helm.upgrade_install(&release()).await.unwrap_err();
    assert!(matches!(error, HelmError::Pending { .. }), "{error:?}");
    assert!(error.hint().contains("run the command again"));
}

#[tokio::test]
async fn a_dropped_install_is_not_killed_and_the_next_one_waits_for_it() {
    let stage = Stage::new(
        r#"[ -e "$here/go" ] || { touch "$here/started"; while [ ! -e "$here/go" ]; do sleep 0.05; done; }; echo done >> "$here/ends""#,
    );
    let install = tokio::time::timeout(Duration::from_millis(500), async {
        let release = release();
        tokio::join!(stage.helm.upgrade_install(&release)).0
    });
    assert!(install.await.is_err(), "dropped while helm runs");
    assert!(stage.folder.path().join("started").exists());
    let noted: u32 = stage.text("state/helm-redis.pid").trim().parse().unwrap();

    let error = stage.helm.upgrade_install(&release()).await.unwrap_err();
    assert!(matches!(error, HelmError::Pending { .. }), "{error:?}");
    assert!(
        stage
            .folder
            .path()
            .join("state/helm-redis.values.yaml")
            .exists(),
        "the running helm's values stay"
    );

    let told = AtomicU32::new(0);
    let waiting = |pid| {
        assert_eq!(told.swap(pid, Ordering::SeqCst), 0, "told once");
        fs::write(stage.folder.path().join("go"), "").unwrap();
    };
    stage.helm.wait_for_orphan("redis", &waiting).await.unwrap();
    assert_eq!(told.load(Ordering::SeqCst), noted);
    assert_eq!(stage.text("ends"), "done\n");
    stage.helm.upgrade_install(&release()).await.unwrap();
    assert_eq!(stage.text("ends"), "done\ndone\n");
}

#[tokio::test]
async fn a_stale_pid_file_and_values_of_a_killed_run_are_removed_without_waiting() {
    let stage = Stage::new("true");
    let folder = stage.folder.path().join("state");
    fs::create_dir(&folder).unwrap();
    for name in ["helm-redis.log", "helm-redis.values.yaml"] {
        fs::write(folder.join(name), "old").unwrap();
    }
    // A pid that lives, but is another process: ours.
    fs::write(
        folder.join("helm-redis.pid"),
        std::process::id().to_string(),
    )
    .unwrap();
    stage
        .helm
        .wait_for_orphan("redis", &|_| panic!("nothing to wait for"))
        .await
        .unwrap();
    assert_eq!(stage.state(), ["helm-redis.log"]);
    stage
        .helm
        .wait_for_orphan("never-seen", &|_| panic!("nothing to wait for"))
        .await
        .unwrap();
}

#[tokio::test]
async fn versions_are_read_and_other_programs_are_unusable() {
    for (said, expected) in [
        ("v4.3.1", "4.3.1"),
        ("v4.3", "4.3.0"),
        ("v3.17.0+g301108e", "3.17.0"),
    ] {
        assert_eq!(
            Stage::new(&format!("echo {said}"))
                .helm
                .version()
                .await
                .unwrap(),
            expected
        );
    }
    for script in [
        "echo hello",
        "echo; exit 0",
        "echo 'unknown command' >&2; exit 1",
    ] {
        let error = Stage::new(script).helm.version().await.unwrap_err();
        assert!(matches!(error, HelmError::Unusable { .. }), "{error:?}");
    }
}

#[test]
fn missing_helm_says_where_it_was_looked_for() {
    let error = Helm::locate(
        Some(Path::new("/nowhere/helm")),
        None,
        None,
        Path::new("state"),
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("/nowhere/helm") && error.hint().contains("helm.sh"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("helm");
    fs::write(&file, "no program").unwrap();
    Helm::locate(Some(&file), None, None, Path::new("state")).unwrap_err();
}

#[test]
fn inputs_differ_by_chart_and_values_but_not_by_the_order_of_keys() {
    let digest = |chart: &str, values: &str| {
        ReleaseInstall::inputs_digest(chart, &serde_json::from_str(values).unwrap())
    };
    let one = digest("aa", r#"{"a": 1, "b": {"x": [1, 2], "y": null}}"#);
    assert_eq!(one.len(), 16);
    assert_eq!(
        one,
        digest("aa", r#"{"b": {"y": null, "x": [1, 2]}, "a": 1}"#)
    );
    for (chart, values) in [
        ("ab", r#"{"a": 1, "b": {"x": [1, 2], "y": null}}"#),
        ("aa", r#"{"a": "1", "b": {"x": [1, 2], "y": null}}"#),
        ("aa", r#"{"a": 1, "b": {"x": [12], "y": null}}"#),
        ("aa", r#"{"a": 1, "b": {"x": [1, 2]}, "y": null}"#),
    ] {
        assert_ne!(one, digest(chart, values), "{values}");
    }
}
