//! A context with a workspace of its own, artifacts written by the test and pinned by their digests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use blueprint_charts::ArtifactCache;
use blueprint_cluster::Cluster;
use blueprint_cluster::control_plane::ControlPlane;
use blueprint_phase2::references::{References, embedded_text};
use blueprint_phase2::{Context, Settings, Workspace};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Folders with the pinned upstream artifacts, colon-separated; the ignored tests need it.
const ARTIFACTS: &str = "BLUEPRINT_TEST_ARTIFACTS";

/// A workspace and the pins of its artifacts.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    versions: Value,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let versions = serde_json::from_str(embedded_text("VERSIONS.json").unwrap()).unwrap();
        Self {
            folder: tempfile::tempdir().unwrap(),
            versions,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a manifest into the cache and pins it.
    pub(crate) fn manifest(&mut self, key: &str, text: &str) {
        let file = self.versions["manifests"][key]["file"]
            .as_str()
            .unwrap()
            .to_owned();
        self.versions["manifests"][key]["sha256"] = json!(self.cache(&file, text.as_bytes()));
    }

    /// Puts a chart of these files into the cache and pins it.
    pub(crate) fn chart(&mut self, key: &str, files: &[(&str, String)]) {
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (path, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive
                .append_data(&mut header, path, text.as_bytes())
                .unwrap();
        }
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        let pin = &self.versions["helm_repositories"][key];
        let file = format!(
            "{}-{}.tgz",
            pin["chart"].as_str().unwrap(),
            pin["chart_version"].as_str().unwrap()
        );
        self.versions["helm_repositories"][key]["sha256"] = json!(self.cache(&file, &bytes));
    }

    fn cache(&self, file: &str, bytes: &[u8]) -> String {
        let folder = self.workspace().cache();
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), bytes).unwrap();
        format!("{:x}", Sha256::digest(bytes))
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::at(self.folder.path())
    }

    /// Writes a reference that wins over the embedded one.
    pub(crate) fn reference(&self, name: &str, text: &str) {
        let path = self.workspace().references().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A context on the shared control plane, without helm and without a container engine.
    pub(crate) async fn context(&self) -> Context {
        self.context_on(ControlPlane::shared()).await
    }

    /// The same on a control plane of the test's own.
    pub(crate) async fn context_on(&self, plane: &ControlPlane) -> Context {
        self.write_versions();
        context_in(self.path(), plane.cluster().await)
    }

    /// Writes the workspace's VERSIONS.json.
    pub(crate) fn write_versions(&self) {
        std::fs::write(self.workspace().versions(), self.versions.to_string()).unwrap();
    }

    /// Copies every real artifact into the cache.
    pub(crate) fn with_real_artifacts() -> Self {
        let folders = std::env::var(ARTIFACTS).expect(
            "BLUEPRINT_TEST_ARTIFACTS names the folders of upstream's charts and manifests",
        );
        let fixture = Self::new();
        std::fs::create_dir_all(fixture.workspace().cache()).unwrap();
        for folder in folders.split(':').map(PathBuf::from) {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                std::fs::copy(
                    entry.path(),
                    fixture.workspace().cache().join(entry.file_name()),
                )
                .unwrap();
            }
        }
        fixture
    }
}

/// A context of a workspace that is there.
pub(crate) fn context_in(folder: &Path, cluster: Cluster) -> Context {
    let workspace = Workspace::at(folder);
    let settings = Settings::default();
    let references = References::new(workspace.clone(), settings.clone());
    Context {
        cluster,
        helm: None,
        cache: ArtifactCache::new(workspace.cache()),
        versions: references.versions().unwrap(),
        references,
        settings,
        workspace,
        nodes: None,
        no_engine: Some("none in this test".to_owned()),
        accepted: Vec::new(),
    }
}

/// resourceVersions of all objects of a kind, by name.
pub(crate) async fn versions_of(
    cluster: &Cluster,
    api_version: &str,
    kind: &str,
) -> BTreeMap<String, String> {
    let objects = cluster.list(api_version, kind, None, "").await.unwrap();
    objects
        .into_iter()
        .filter_map(|object| Some((object.metadata.name?, object.metadata.resource_version?)))
        .collect()
}
