//! Secrets, with redacted values.

use std::collections::BTreeMap;

use zeroize::Zeroizing;

use crate::apply::Change;
use crate::connect::Cluster;
use crate::error::Error;

/// A Secret as we write it. Its values never show in Debug.
#[derive(Clone)]
pub struct SecretManifest {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `Opaque`, `kubernetes.io/tls`, `kubernetes.io/basic-auth`.
    pub kind: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Decoded values.
    pub data: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

/// A Secret as read.
#[derive(Clone)]
pub struct SecretRead {
    /// `type`.
    pub kind: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Decoded values.
    pub data: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

impl Cluster {
    /// Reads one.
    pub async fn secret(&self, namespace: &str, name: &str) -> Result<Option<SecretRead>, Error> {
        todo!()
    }

    /// Applies one by server-side apply. Error messages and Change name it, never its content.
    pub async fn apply_secret(&self, secret: &SecretManifest) -> Result<Change, Error> {
        todo!()
    }
}
