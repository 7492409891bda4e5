use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::settings::{Ports, Profile};

fn walk(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{prefix}/{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), &path, found);
        } else {
            found.insert(path);
        }
    }
}

#[test]
fn every_reference_is_embedded() {
    let mut found = BTreeSet::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../..")
            .join(FOLDER),
        FOLDER,
        &mut found,
    );
    for path in [
        "VERSIONS.json",
        "infra/kind/cluster.yaml",
        "blueprint.yaml",
        ".gitignore",
    ] {
        found.insert(path.to_owned());
    }
    let embedded: BTreeSet<String> = embedded().iter().map(|file| file.path.to_owned()).collect();
    assert_eq!(found, embedded);
}

#[test]
fn the_example_settings_hold_the_defaults() {
    let text = embedded_text("blueprint.yaml").unwrap();
    assert_eq!(
        Settings::parse(text, Path::new("blueprint.yaml")).unwrap(),
        Settings::default()
    );
    let uncommented: String = text
        .lines()
        .filter_map(|line| line.strip_prefix("# "))
        .filter(|line| {
            !line.ends_with('.') && !line.contains("NodePorts") && !line.contains("JSON Schema")
        })
        .fold(String::new(), |text, line| text + line + "\n");
    assert_eq!(
        Settings::parse(&uncommented, Path::new("blueprint.yaml")).unwrap(),
        Settings::default()
    );
}

#[test]
fn localising_reaches_strings_escaped_names_paths_and_node_ports() {
    let settings = Settings {
        domain: "git.home.arpa".to_owned(),
        storage_root: "/data".to_owned(),
        ports: Ports {
            https: 31443,
            http: 31080,
            ssh: 31022,
        },
        ..Settings::default()
    };
    let value = json!({
        "hosts": ["gitlab.local.example.net", r"^(.*)\.local\.example\.net$"],
        "path": "/var/local/shared/cnpg",
        "ports": [{"port": 443, "nodePort": 30443}, {"port": 22, "nodePort": 30022}, {"nodePort": 30999}],
        "notAPort": 30443
    });
    assert_eq!(
        localise(value, &settings),
        json!({
            "hosts": ["gitlab.git.home.arpa", r"^(.*)\.git\.home\.arpa$"],
            "path": "/data/cnpg",
            "ports": [{"port": 443, "nodePort": 31443}, {"port": 22, "nodePort": 31022}, {"nodePort": 30999}],
            "notAPort": 30443
        })
    );
}

fn image(repository: &str, digest: Option<&str>, chart: &str, at: &str) -> ImagePin {
    serde_json::from_value(json!({
        "repository": repository, "tag": "1.2", "digest": digest, "sets": {"chart": chart, "at": at}
    }))
    .unwrap()
}

fn pin(chart: &str) -> ChartPin {
    serde_json::from_value(
        json!({"name": "x", "url": "u", "chart": chart, "chart_version": "1", "sha256": "0"}),
    )
    .unwrap()
}

#[test]
fn images_are_written_the_way_each_chart_reads_them() {
    let layer = |repository, digest, chart, at| {
        image_layer("key", &pin(chart), &image(repository, digest, "key", at)).unwrap()
    };
    assert_eq!(
        layer(
            "docker.io/bitnamilegacy/redis",
            Some("sha256:ab"),
            "redis",
            "image"
        ),
        json!({"image": {"registry": "docker.io", "repository": "bitnamilegacy/redis", "tag": "1.2", "digest": "sha256:ab"}})
    );
    assert_eq!(
        layer("quay.io/minio/minio", Some("sha256:ab"), "minio", "image"),
        json!({"image": {"repository": "quay.io/minio/minio", "tag": "1.2@sha256:ab"}})
    );
    assert_eq!(
        layer("quay.io/openbao/openbao", None, "openbao", "server.image"),
        json!({"server": {"image": {"registry": "quay.io", "repository": "openbao/openbao", "tag": "1.2"}}})
    );
    assert!(image_layer("other", &pin("redis"), &image("a/b", None, "key", "image")).is_none());
}

fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(FOLDER).join("profiles/full")).unwrap();
    folder
}

#[test]
fn later_layers_win_over_earlier_ones() {
    let folder = workspace();
    let references = folder.path().join(FOLDER);
    std::fs::write(
        references.join("helm-values-redis.yaml"),
        "a: 1\nb: 1\nc: 1\nimage: {tag: no}\n",
    )
    .unwrap();
    std::fs::write(
        references.join("profiles/full/helm-values-redis.yaml"),
        "b: 2\nc: 2\n",
    )
    .unwrap();
    let text = json!({
        "helm_repositories": {"redis": {"name": "redis", "url": "https://charts.example.net", "chart": "redis", "chart_version": "1.0.0", "sha256": "0".repeat(64), "values_overrides": {"c": 3}}},
        "manifests": {},
        "images": {"redis": {"repository": "docker.io/b/redis", "tag": "8", "sets": {"chart": "redis", "at": "image"}}}
    })
    .to_string();
    let versions = Versions::parse(&text, Path::new("VERSIONS.json")).unwrap();
    let settings = Settings {
        profile: Profile::Full,
        ..Settings::default()
    };
    let values = References::new(Workspace::at(folder.path()), settings)
        .values("redis", &versions)
        .unwrap();
    assert_eq!(
        values,
        json!({"a": 1, "b": 2, "c": 3, "image": {"registry": "docker.io", "repository": "b/redis", "tag": "8"}})
    );
}

#[test]
fn a_profile_sizes_documents_but_adds_none() {
    let folder = workspace();
    let references = folder.path().join(FOLDER);
    std::fs::write(
        references.join("two.yaml"),
        "kind: A\nmetadata: {name: a}\nspec: {x: 1, y: 1}\n---\nkind: B\nmetadata: {name: b}\n",
    )
    .unwrap();
    std::fs::write(
        references.join("profiles/full/two.yaml"),
        "kind: A\nmetadata: {name: a}\nspec: {y: 2}\n---\nkind: C\nmetadata: {name: c}\n",
    )
    .unwrap();
    let settings = Settings {
        profile: Profile::Full,
        ..Settings::default()
    };
    let documents = References::new(Workspace::at(folder.path()), settings)
        .documents("two.yaml")
        .unwrap();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[0]["spec"], json!({"x": 1, "y": 2}));
}

#[test]
fn a_workspace_without_files_uses_the_embedded_pins() {
    let folder = workspace();
    let references = References::new(Workspace::at(folder.path()), Settings::default());
    assert!(references.versions().unwrap().chart("gitlab").is_ok());
}

#[test]
fn a_pins_file_that_was_given_wins_and_must_be_there() {
    let folder = workspace();
    let given = folder.path().join("elsewhere.json");
    let versions = || {
        let workspace = Workspace::at(folder.path()).with_versions(Some(given.clone()));
        References::new(workspace, Settings::default()).versions()
    };
    let error = versions().unwrap_err();
    assert!(
        error.to_string().contains("elsewhere.json"),
        "a file that is named but missing must not be replaced by another one: {error}"
    );
    let text = embedded_text("VERSIONS.json").unwrap();
    let edited = text.replace("\"10.1.1\"", "\"10.1.1+standin\"");
    assert_ne!(text, edited);
    std::fs::write(&given, edited).unwrap();
    assert_eq!(
        versions().unwrap().chart("gitlab").unwrap().chart_version,
        "10.1.1+standin"
    );
}
