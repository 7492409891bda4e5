//! `infra/secrets/gitlab-runtime-secrets.yaml`: the chart-managed Secrets, as a multi-document YAML file that `kubectl apply` would take as well.

use std::collections::BTreeMap;
use std::path::Path;

use zeroize::Zeroizing;

use crate::private_file::{Error, Written};

/// One Secret without anything the server sets and without annotations (`last-applied` would repeat the plain text).
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotSecret {
    /// `metadata.name`.
    pub name: String,
    /// `type`, for example `Opaque`.
    pub kind: String,
    /// Decoded `data`.
    pub data: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

/// The Secrets of one namespace, sorted by name, so that two snapshots of one state are the same bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The namespace they live in.
    pub namespace: String,
    /// By name.
    pub secrets: BTreeMap<String, SnapshotSecret>,
}

impl Snapshot {
    /// Reads a snapshot; `None` if there is no file. A truncated or foreign file is [`Error::Malformed`].
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        todo!()
    }

    /// Parses snapshot text. `origin` names it in errors.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, Error> {
        todo!()
    }

    /// The file's text: documents sorted by name, keys sorted, data base64.
    pub fn to_yaml(&self) -> Zeroizing<String> {
        todo!()
    }

    /// Writes it atomically at 0600; a changed file's former content is kept as `<file>.1` … `<file>.5`.
    pub fn write(&self, path: &Path) -> Result<Written, Error> {
        todo!()
    }
}
