//! The user's folder: every path of the spec, in one place.

use std::path::{Path, PathBuf};

/// A workspace's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    root: PathBuf,
    /// Pins that are used instead of the workspace's own.
    versions: Option<PathBuf>,
}

impl Workspace {
    /// The workspace at `root` (which need not exist yet).
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            versions: None,
        }
    }

    /// The same workspace with another pins file. Everything else stays in the workspace.
    #[must_use]
    pub fn with_versions(mut self, file: Option<PathBuf>) -> Self {
        self.versions = file;
        self
    }

    /// The pins file that was given instead of the workspace's own.
    pub fn given_versions(&self) -> Option<&Path> {
        self.versions.as_deref()
    }

    /// Walks up from `start` to the folder that holds VERSIONS.json.
    pub fn find(start: &Path) -> Option<Self> {
        start
            .ancestors()
            .find(|folder| folder.join("VERSIONS.json").is_file())
            .map(Self::at)
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The pins: `VERSIONS.json`, or the file that was given instead.
    pub fn versions(&self) -> PathBuf {
        self.versions
            .clone()
            .unwrap_or_else(|| self.root.join("VERSIONS.json"))
    }

    /// `blueprint.yaml`, optional.
    pub fn settings(&self) -> PathBuf {
        self.root.join("blueprint.yaml")
    }

    /// `infra/kind/cluster.yaml`.
    pub fn kind_config(&self) -> PathBuf {
        self.root.join("infra/kind/cluster.yaml")
    }

    /// `infra/helm-charts`.
    pub fn cache(&self) -> PathBuf {
        self.root.join("infra/helm-charts")
    }

    /// `infra/phase2/references`.
    pub fn references(&self) -> PathBuf {
        self.root.join("infra/phase2/references")
    }

    /// `infra/phase2`, where timings are written.
    pub fn timings(&self) -> PathBuf {
        self.root.join("infra/phase2")
    }

    /// `infra/phase2/state`: lock, helm's logs and value files; private.
    pub fn state(&self) -> PathBuf {
        self.root.join("infra/phase2/state")
    }

    /// `infra/phase2/state/charts.json`: which charts the workspace is made with.
    pub fn charts_record(&self) -> PathBuf {
        self.state().join("charts.json")
    }

    /// `infra/secrets`, private.
    pub fn secrets(&self) -> PathBuf {
        self.root.join("infra/secrets")
    }

    /// `infra/secrets/installation-id.txt`: which installation this workspace is.
    pub fn installation(&self) -> PathBuf {
        self.secrets().join("installation-id.txt")
    }

    /// `infra/secrets/accepted.jsonl`: the ways out of ambiguous states that were chosen, one a line.
    pub fn accepted(&self) -> PathBuf {
        self.secrets().join("accepted.jsonl")
    }

    /// `infra/secrets/openbao-init.json`.
    pub fn openbao_init(&self) -> PathBuf {
        self.secrets().join("openbao-init.json")
    }

    /// `infra/secrets/openbao-seal-key.txt`: there while OpenBao's static seal is used.
    pub fn openbao_seal_key(&self) -> PathBuf {
        self.secrets().join("openbao-seal-key.txt")
    }

    /// `infra/secrets/cnpg-role-passwords.json`: role name to password.
    pub fn role_passwords(&self) -> PathBuf {
        self.secrets().join("cnpg-role-passwords.json")
    }

    /// `infra/secrets/cnpg-system-identifier.txt`.
    pub fn system_identifier(&self) -> PathBuf {
        self.secrets().join("cnpg-system-identifier.txt")
    }

    /// `infra/secrets/redis-password.txt`.
    pub fn redis_password(&self) -> PathBuf {
        self.secrets().join("redis-password.txt")
    }

    /// `infra/secrets/minio-root-user.txt`.
    pub fn minio_user(&self) -> PathBuf {
        self.secrets().join("minio-root-user.txt")
    }

    /// `infra/secrets/minio-root-password.txt`.
    pub fn minio_password(&self) -> PathBuf {
        self.secrets().join("minio-root-password.txt")
    }

    /// `infra/secrets/gitlab-runtime-secrets.yaml`.
    pub fn gitlab_snapshot(&self) -> PathBuf {
        self.secrets().join("gitlab-runtime-secrets.yaml")
    }

    /// `infra/secrets/rotations`: new values of credentials whose rotation is not over; private.
    pub fn rotations(&self) -> PathBuf {
        self.secrets().join("rotations")
    }

    /// `infra/tls/wildcard`: ca.pem, ca-key.pem, cert.pem, key.pem; private.
    pub fn wildcard(&self) -> PathBuf {
        self.root.join("infra/tls/wildcard")
    }

    /// Every folder that is for its owner alone.
    pub fn private_folders(&self) -> [PathBuf; 3] {
        [self.secrets(), self.root.join("infra/tls"), self.state()]
    }
}
