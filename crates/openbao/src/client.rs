//! The HTTP client. Paths and status codes as measured on OpenBao 2.7.2.

use std::collections::BTreeMap;

use secrecy::SecretString;
use serde::Deserialize;
use zeroize::Zeroizing;

/// `GET /v1/sys/health`, by its status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// 501.
    Uninitialised,
    /// 503.
    Sealed,
    /// 200.
    Active,
    /// 429.
    Standby,
}

/// `GET /v1/sys/seal-status`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SealStatus {
    /// Whether an init has happened.
    pub initialized: bool,
    /// Whether it is sealed.
    pub sealed: bool,
    /// Threshold.
    #[serde(default)]
    pub t: u32,
    /// Shares.
    #[serde(default)]
    pub n: u32,
    /// Keys given so far.
    #[serde(default)]
    pub progress: u32,
    /// Server version.
    #[serde(default)]
    pub version: String,
    /// For example `postgresql`.
    #[serde(default)]
    pub storage_type: String,
}

/// What went wrong in a call. Never contains a token, key or value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No answer.
    #[error("failed to reach OpenBao for {operation}")]
    Transport {
        /// For example `sys/init`.
        operation: String,
        /// Why (URL removed).
        #[source]
        source: reqwest::Error,
    },
    /// An answer that says no.
    #[error("OpenBao answered {status} to {operation}: {}", .messages.join("; "))]
    Refused {
        /// For example `sys/unseal`.
        operation: String,
        /// HTTP status.
        status: u16,
        /// `errors` of the body.
        messages: Vec<String>,
    },
    /// An answer of another shape than documented.
    #[error("OpenBao's answer to {operation} could not be read: {found}")]
    Malformed {
        /// The call.
        operation: String,
        /// What is wrong, without its content.
        found: String,
    },
}

impl Error {
    /// What to do next.
    pub fn hint(&self) -> String {
        todo!()
    }

    /// HTTP status of a refusal.
    pub fn status(&self) -> Option<u16> {
        todo!()
    }
}

/// A mounted secrets engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `kv`, …
    pub kind: String,
    /// `options.version`.
    pub version: Option<String>,
}

/// A client of one server, with or without a token. Debug prints neither.
#[derive(Clone)]
pub struct Client {}

impl Client {
    /// A client of `http://address` (a port-forward's local end). No proxy is ever used. The process must have installed rustls' ring provider.
    pub fn new(address: std::net::SocketAddr) -> Self {
        todo!()
    }

    /// The same with a token.
    pub fn with_token(&self, token: SecretString) -> Self {
        todo!()
    }

    /// `sys/health`.
    pub async fn health(&self) -> Result<Health, Error> {
        todo!()
    }

    /// `sys/seal-status`.
    pub async fn seal_status(&self) -> Result<SealStatus, Error> {
        todo!()
    }

    /// `PUT sys/init`: the raw body, so that it reaches the disk before anything looks into it.
    pub async fn init(&self, shares: u32, threshold: u32) -> Result<Zeroizing<Vec<u8>>, Error> {
        todo!()
    }

    /// `PUT sys/unseal` with one key share (base64 or hex).
    pub async fn unseal(&self, key: &SecretString) -> Result<SealStatus, Error> {
        todo!()
    }

    /// `GET sys/mounts`, by path with its slash (`secret/`).
    pub async fn mounts(&self) -> Result<BTreeMap<String, Mount>, Error> {
        todo!()
    }

    /// Mounts KV version 2 at `path` (`secret`) if it is not there; answers whether it was made. Another kind or version there is an error.
    pub async fn ensure_kv2(&self, path: &str) -> Result<bool, Error> {
        todo!()
    }

    /// Reads `mount/data/path`; `None` on 404 (never written or deleted).
    pub async fn kv_read(&self, mount: &str, path: &str) -> Result<Option<BTreeMap<String, SecretString>>, Error> {
        todo!()
    }

    /// Writes all keys of a path (replaces what is there).
    pub async fn kv_write(&self, mount: &str, path: &str, data: &BTreeMap<String, SecretString>) -> Result<(), Error> {
        todo!()
    }

    /// Whether the token is accepted (`auth/token/lookup-self`).
    pub async fn token_works(&self) -> Result<bool, Error> {
        todo!()
    }
}
