//! The helm driver and the YAML writer against a real helm. `make test` brings it along; `BLUEPRINT_TEST_BIN` names the folder it is in.
//! `BLUEPRINT_TEST_ARTIFACTS` may name folders (separated like PATH) with upstream's charts and manifests: they are rendered and read as well.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blueprint_charts::{Helm, HelmError, ReleaseInstall, Versions, chart_files, dangling, yaml};
use serde_json::{Value, json};

mod releases;

/// Plain scalars that a YAML reader takes for something else than a string.
const TREACHEROUS: &[&str] = &[
    "yes",
    "Yes",
    "no",
    "on",
    "OFF",
    "y",
    "N",
    "true",
    "False",
    "null",
    "~",
    "",
    " ",
    "1_000",
    "0755",
    "0o755",
    "0x1F",
    "0x",
    "0b11",
    "1e3",
    "-1",
    "+1",
    ".5",
    "5.",
    "1.0",
    ".inf",
    "-.Inf",
    ".nan",
    "2026-11-30",
    "2026-11-30T10:00:00Z",
    "190:20:30",
    "<<",
    "=",
    "!x",
    "&a",
    "*a",
    "- a",
    "a: b",
    "a #b",
    "#a",
    "@a",
    "`a",
    "%a",
    "|",
    ">",
    "[a",
    "{a",
    "? a",
    "'a'",
    "\"a\"",
    "---",
    "...",
    "a\nb",
    "a\n\n",
    "\n",
    "a\tb",
    " a",
    "a ",
    "a:",
    "-",
    "?",
    "08",
    "\u{85}",
    "\u{2028}",
    "é",
    "a\\b",
    "a\\nb",
    "{{ .Values }}",
    "$x",
    "${x}",
];

fn helm_binary() -> PathBuf {
    let folder = std::env::var_os("BLUEPRINT_TEST_BIN").unwrap_or_else(|| {
        panic!(
            "BLUEPRINT_TEST_BIN does not name a folder with helm: run `make test`, which sets it"
        )
    });
    PathBuf::from(folder).join("helm")
}

/// A folder of our own with a tiny chart and a kubeconfig of a cluster that nobody runs.
struct Bench {
    folder: tempfile::TempDir,
    helm: Helm,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "none",
            "clusters": [{"name": "nobody", "cluster": {"server": "https://127.0.0.1:1"}}],
            "users": [{"name": "nobody", "user": {"token": "x"}}],
            "contexts": [{"name": "kind-nobody", "context": {"cluster": "nobody", "user": "nobody"}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        let state = folder.path().join("state");
        let helm = Helm::locate(
            Some(&helm_binary()),
            Some(&kubeconfig),
            Some("kind-nobody"),
            &state,
        )
        .unwrap();
        let bench = Self { folder, helm };
        bench.chart_file("Chart.yaml", "apiVersion: v2\nname: tiny\nversion: 0.1.0\n");
        bench.chart_file("values.yaml", "probe: {path: /}\nkept: true\n");
        bench
    }

    fn chart_file(&self, path: &str, text: &str) {
        let path = self.folder.path().join("tiny").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn release(&self, values: Value) -> ReleaseInstall {
        ReleaseInstall {
            name: "tiny".to_owned(),
            namespace: "apps".to_owned(),
            chart: self.folder.path().join("tiny"),
            values,
            skip_crds: true,
            skip_schema_validation: true,
            timeout: Duration::from_secs(5),
            labels: vec![("blueprint-inputs".to_owned(), "0123456789abcdef".to_owned())],
        }
    }
}

#[tokio::test]
async fn the_version_is_read() {
    let version = Bench::new().helm.version().await.unwrap();
    assert!(version.starts_with("4."), "{version}");
}

#[tokio::test]
async fn values_reach_the_chart_as_they_are() {
    let bench = Bench::new();
    let template = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata: {json: {{ toJson .Values.given | quote }}}\n";
    bench.chart_file("templates/all.yaml", template);
    let by_key: serde_json::Map<String, Value> = TREACHEROUS
        .iter()
        .map(|text| ((*text).to_owned(), json!("value")))
        .collect();
    let given = json!({
        "strings": TREACHEROUS, "keys": by_key, "deep": {"list": [{"a": TREACHEROUS}]},
        "bool": true, "int": 9_007_199_254_740_991_u64, "negative": -5, "float": 1.5, "null": null, "empty": {}, "none": [],
    });
    let rendered = bench
        .helm
        .template(&bench.release(json!({"given": given})), "v1.35.4")
        .await
        .unwrap();
    let seen: Value = serde_json::from_str(rendered[0]["data"]["json"].as_str().unwrap()).unwrap();
    // Go reads all numbers as floats, which JSON does not tell apart from integers.
    let mut expected = given.clone();
    expected["float"] = json!(1.5);
    for key in [
        "strings", "keys", "deep", "bool", "negative", "float", "null", "empty", "none",
    ] {
        assert_eq!(seen[key], expected[key], "{key}");
    }
    assert_eq!(seen["int"].as_f64(), given["int"].as_f64());
}

#[tokio::test]
async fn a_null_takes_away_what_the_chart_sets() {
    let bench = Bench::new();
    bench.chart_file(
        "templates/x.yaml",
        "kind: X\nmetadata: {name: x}\nvalues: {{ toJson .Values }}\n",
    );
    let rendered = bench
        .helm
        .template(&bench.release(json!({"probe": null})), "v1.35.4")
        .await
        .unwrap();
    assert_eq!(rendered[0]["values"], json!({"kept": true}));
}

#[tokio::test]
async fn hooks_are_rendered_and_test_hooks_and_empty_documents_are_not() {
    let bench = Bench::new();
    bench.chart_file(
        "crds/c.yaml",
        "kind: CustomResourceDefinition\nmetadata: {name: c}\n",
    );
    bench.chart_file("templates/hook.yaml", "kind: Job\nmetadata: {name: hook, annotations: {helm.sh/hook: pre-install}}\n---\n# nothing\n");
    bench.chart_file(
        "templates/test.yaml",
        "kind: Pod\nmetadata: {name: test, annotations: {helm.sh/hook: test}}\n",
    );
    bench.chart_file(
        "templates/v.yaml",
        "kind: X\nmetadata: {name: {{ .Capabilities.KubeVersion.Version }}}\na: 1\na: 2\n",
    );
    let rendered = bench
        .helm
        .template(&bench.release(json!({})), "v1.35.4")
        .await
        .unwrap();
    let mut names: Vec<&str> = rendered
        .iter()
        .map(|object| object["metadata"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["hook", "v1.35.4"]);
}

#[tokio::test]
async fn a_chart_that_does_not_render_is_named_with_helms_words() {
    let bench = Bench::new();
    bench.chart_file("templates/x.yaml", "{{ fail \"the secret is missing\" }}");
    let error = bench
        .helm
        .template(&bench.release(json!({})), "v1.35.4")
        .await
        .unwrap_err();
    assert!(
        error.to_string().contains("failed to render release tiny")
            && error.to_string().contains("the secret is missing"),
        "{error}"
    );
}

/// Were a flag unknown to this helm, the answer would be of another kind.
#[tokio::test]
async fn every_changing_call_is_understood_and_an_api_server_that_is_away_is_transient() {
    let bench = Bench::new();
    bench.chart_file(
        "templates/x.yaml",
        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\n",
    );
    let helm = &bench.helm;
    for result in [
        helm.upgrade_install(&bench.release(json!({"a": "b"})))
            .await,
        helm.rollback("apps", "tiny", 1).await,
        helm.uninstall("apps", "tiny", true).await,
        helm.uninstall("apps", "tiny", false).await,
    ] {
        let error = result.unwrap_err();
        assert!(matches!(error, HelmError::Transient { .. }), "{error:?}");
    }
}

/// The folders that `BLUEPRINT_TEST_ARTIFACTS` names, or none.
fn artifact_files(ending: &str) -> Vec<PathBuf> {
    let folders = std::env::var_os("BLUEPRINT_TEST_ARTIFACTS").unwrap_or_default();
    let mut files: Vec<PathBuf> = std::env::split_paths(&folders)
        .filter(|folder| folder.is_dir())
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    files.sort();
    files
}

/// The values that blueprint's own reference gives the chart with this file name.
fn reference_values(chart: &Path) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pins = root.join("VERSIONS.json");
    let versions = Versions::parse(&std::fs::read_to_string(&pins).unwrap(), &pins).unwrap();
    let file_name = chart.file_name().unwrap().to_string_lossy();
    let Some((key, _)) = versions
        .helm_repositories
        .iter()
        .find(|(_, pin)| pin.file_name() == file_name)
    else {
        return json!({});
    };
    let reference = root.join(format!("infra/phase2/references/helm-values-{key}.yaml"));
    yaml::document(&std::fs::read_to_string(&reference).unwrap(), &reference).unwrap()
}

#[tokio::test]
async fn charts_render_to_documents_that_can_be_read_and_walked() {
    let bench = Bench::new();
    bench.chart_file("templates/x.yaml", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}\ndata: {a: {{ .Values.kept | quote }}}\n");
    let mut charts = artifact_files(".tgz");
    charts.push(bench.folder.path().join("tiny"));
    for chart in charts {
        let release = ReleaseInstall {
            chart: chart.clone(),
            ..bench.release(reference_values(&chart))
        };
        let rendered = bench
            .helm
            .template(&release, "v1.35.4")
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", chart.display()));
        assert!(
            rendered.iter().all(|object| object["kind"].is_string()),
            "{}",
            chart.display()
        );
        for object in &rendered {
            let text = yaml::to_text(object);
            assert_eq!(
                yaml::document(&text, &chart).unwrap(),
                *object,
                "{}",
                chart.display()
            );
        }
        for found in dangling::find(&rendered, "apps", &BTreeSet::new()) {
            let object = rendered.iter().find(|object| {
                found.by.ends_with(&format!(
                    "/{}",
                    object["metadata"]["name"].as_str().unwrap()
                ))
            });
            assert!(object.is_some(), "{found:?}");
        }
    }
}

#[test]
fn manifests_and_the_crds_inside_charts_can_be_read() {
    for manifest in artifact_files(".yaml") {
        let text = std::fs::read_to_string(&manifest).unwrap();
        let documents = yaml::documents(&text, &manifest).unwrap();
        assert!(
            !documents.is_empty()
                && documents
                    .iter()
                    .all(|document| document["kind"].is_string()),
            "{}",
            manifest.display()
        );
    }
    let is_crd = |path: &str| {
        let path = Path::new(path);
        let named = |name: &str| path.file_name().is_some_and(|found| found == name);
        path.components().any(|part| part.as_os_str() == "crds")
            && !path
                .components()
                .any(|part| part.as_os_str() == "templates")
            && path
                .extension()
                .is_some_and(|extension| extension == "yaml")
            && !named("Chart.yaml")
            && !named("values.yaml")
    };
    for chart in artifact_files(".tgz") {
        for file in chart_files::read(&chart, is_crd).unwrap() {
            let documents = yaml::documents(&file.text, Path::new(&file.path)).unwrap();
            assert!(
                documents
                    .iter()
                    .all(|document| document["kind"].is_string()),
                "{}",
                file.path
            );
        }
    }
}
