//! The HTTP client. Paths and status codes as measured on OpenBao 2.7.2.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use blueprint_failpoint::failpoint;
use reqwest::header::HeaderValue;
use reqwest::{Method, RequestBuilder, Response};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use zeroize::Zeroizing;

mod error;
mod kv;
mod rotation;
mod wire;

pub use error::Error;
pub use rotation::Given;

/// For connecting and for a whole answer. Init takes 0.3 s; a server without its PostgreSQL can be silent for longer than this.
const TIMEOUT: Duration = Duration::from_secs(10);

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
    /// What seals it: `shamir` for key shares, `static` for a key of its own.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// Whether it was started with another seal than its data has: the keys then have to be given by [`Client::migrate_seal`].
    #[serde(default)]
    pub migration: bool,
}

/// A mounted secrets engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `kv`, …
    pub kind: String,
    /// `options.version`.
    pub version: Option<String>,
}

impl Mount {
    fn is_kv2(&self) -> bool {
        self.kind == "kv" && self.version.as_deref() == Some("2")
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{} version {version}", self.kind),
            // Without options, kv is version 1.
            None if self.kind == "kv" => f.write_str("kv version 1"),
            None => f.write_str(&self.kind),
        }
    }
}

/// A client of one server, with or without a token. Debug prints neither.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    address: SocketAddr,
    token: Option<HeaderValue>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client of `http://address` (a port-forward's local end). No proxy is ever used. The process must have installed rustls' ring provider.
    ///
    /// # Panics
    ///
    /// Without that provider: a mistake in the program, not a state of the world.
    pub fn new(address: SocketAddr) -> Self {
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT)
            .build();
        #[expect(
            clippy::expect_used,
            reason = "fails only without a TLS provider, which the caller promises"
        )]
        let http = http.expect("the process has installed rustls' ring provider");
        Self {
            http,
            address,
            token: None,
        }
    }

    /// The same with a token.
    #[must_use]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller's token is wiped once it is in its header"
    )]
    pub fn with_token(&self, token: SecretString) -> Self {
        // A token with a line break in it is no token: it goes as an empty one and the server refuses it.
        let mut header =
            HeaderValue::try_from(token.expose_secret()).unwrap_or(HeaderValue::from_static(""));
        header.set_sensitive(true);
        Self {
            http: self.http.clone(),
            address: self.address,
            token: Some(header),
        }
    }

    /// `sys/health`.
    pub async fn health(&self) -> Result<Health, Error> {
        let response = self
            .send(self.request(Method::GET, "sys/health"), "sys/health")
            .await?;
        match response.status().as_u16() {
            200 => Ok(Health::Active),
            429 => Ok(Health::Standby),
            501 => Ok(Health::Uninitialised),
            503 => Ok(Health::Sealed),
            _ => Err(refusal(response, "sys/health").await),
        }
    }

    /// `sys/seal-status`.
    pub async fn seal_status(&self) -> Result<SealStatus, Error> {
        let operation = "sys/seal-status";
        let body = self
            .call(self.request(Method::GET, operation), operation)
            .await?;
        wire::parse(&body, operation)
    }

    /// `PUT sys/init`: the raw body, so that it reaches the disk before anything looks into it.
    pub async fn init(&self, shares: u32, threshold: u32) -> Result<Zeroizing<Vec<u8>>, Error> {
        let operation = "sys/init";
        let request = self
            .request(Method::PUT, operation)
            .json(&json!({"secret_shares": shares, "secret_threshold": threshold}));
        failpoint!(before, "ask OpenBao", "{operation}");
        let answer = self.call(request, operation).await?;
        failpoint!(after, "ask OpenBao", "{operation}");
        Ok(answer)
    }

    /// `PUT sys/unseal` with one key share (base64 or hex).
    pub async fn unseal(&self, key: &SecretString) -> Result<SealStatus, Error> {
        let operation = "sys/unseal";
        let request = wire::with_body(
            self.request(Method::PUT, operation),
            &wire::Key {
                key,
                migrate: false,
            },
            operation,
        )?;
        failpoint!(before, "ask OpenBao", "{operation}");
        let body = self.call(request, operation).await?;
        failpoint!(after, "ask OpenBao", "{operation}");
        wire::parse(&body, operation)
    }

    /// `PUT sys/unseal` with one key share and `migrate`: with the last one the data gets the seal that the server was started with.
    pub async fn migrate_seal(&self, key: &SecretString) -> Result<SealStatus, Error> {
        let operation = "sys/unseal";
        let request = wire::with_body(
            self.request(Method::PUT, operation),
            &wire::Key { key, migrate: true },
            operation,
        )?;
        failpoint!(before, "ask OpenBao", "{operation}");
        let body = self.call(request, operation).await?;
        failpoint!(after, "ask OpenBao", "{operation}");
        wire::parse(&body, operation)
    }

    /// `GET sys/mounts`, by path with its slash (`secret/`).
    pub async fn mounts(&self) -> Result<BTreeMap<String, Mount>, Error> {
        let operation = "sys/mounts";
        let body = self
            .call(self.request(Method::GET, operation), operation)
            .await?;
        wire::mounts(&body, operation)
    }

    /// Whether the token is accepted (`auth/token/lookup-self`).
    pub async fn token_works(&self) -> Result<bool, Error> {
        let operation = "auth/token/lookup-self";
        match self
            .call(self.request(Method::GET, operation), operation)
            .await
        {
            Ok(_) => Ok(true),
            Err(error) if error.status() == Some(403) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn request(&self, method: Method, operation: &str) -> RequestBuilder {
        let request = self
            .http
            .request(method, format!("http://{}/v1/{operation}", self.address));
        match &self.token {
            Some(token) => request.header("X-Vault-Token", token.clone()),
            None => request,
        }
    }

    /// The body of an answer that says yes.
    async fn call(
        &self,
        request: RequestBuilder,
        operation: &str,
    ) -> Result<Zeroizing<Vec<u8>>, Error> {
        accept(self.send(request, operation).await?, operation).await
    }

    async fn send(&self, request: RequestBuilder, operation: &str) -> Result<Response, Error> {
        request.send().await.map_err(transport(operation))
    }
}

fn transport(operation: &str) -> impl FnOnce(reqwest::Error) -> Error {
    let operation = operation.to_owned();
    move |source| Error::Transport {
        operation,
        source: source.without_url(),
    }
}

async fn accept(response: Response, operation: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    if response.status().is_success() {
        body(response, operation).await
    } else {
        Err(refusal(response, operation).await)
    }
}

/// The whole body, in one buffer that is wiped.
async fn body(mut response: Response, operation: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    let length = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok())
        .unwrap_or(0)
        .min(1 << 20);
    let mut body = Zeroizing::new(Vec::with_capacity(length));
    while let Some(piece) = response.chunk().await.map_err(transport(operation))? {
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The error for an answer that says no. OpenBao puts its words into `errors`; anything else in the body stays unread.
async fn refusal(response: Response, operation: &str) -> Error {
    let status = response.status().as_u16();
    let messages = match body(response, operation).await {
        Ok(body) => wire::messages(&body),
        Err(error) => return error,
    };
    Error::Refused {
        operation: operation.to_owned(),
        status,
        messages,
    }
}

#[cfg(test)]
mod tests;
