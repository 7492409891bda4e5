//! Downloads: a plain address, a chart repository by its index, or a chart in an OCI registry. Proxies are taken from the environment.

use std::error::Error as _;
use std::io;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use futures::StreamExt as _;
use reqwest::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode};
use url::Url;

use super::{Download, chart_index};
use crate::artifact::{Artifact, Source};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest silence within an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Why a download failed.
pub(super) enum Failure {
    /// What upstream said, with its address.
    Answer(String),
    /// The local disk refused.
    Disk(io::Error),
}

impl From<String> for Failure {
    fn from(answer: String) -> Self {
        Self::Answer(answer)
    }
}

/// Streams the artifact's bytes into `download`; answers the address that served them.
pub(super) async fn download(
    artifact: &Artifact,
    download: &mut Download,
) -> Result<String, Failure> {
    let client = client().map_err(|error| describe(&error))?;
    let url = match &artifact.source {
        Source::File { url } => parse(url)?,
        Source::ChartRepository {
            url,
            chart,
            version,
        } if url.starts_with("oci://") => {
            parse(&format!("{}/{chart}:{version}", url.trim_end_matches('/')))?
        }
        Source::ChartRepository {
            url,
            chart,
            version,
        } => {
            let index = index_address(&parse(url)?)?;
            let text = get(&client, &index, None)
                .await?
                .text()
                .await
                .map_err(|error| answer(&index, &describe(&error)))?;
            let address = chart_index::address(&text, chart, version)
                .map_err(|what| answer(&index, &what))?;
            index
                .join(&address)
                .map_err(|error| answer(&index, &format!("{address} is no address: {error}")))?
        }
    };
    let response = if url.scheme() == "oci" {
        oci_blob(&client, &url, &artifact.sha256).await?
    } else {
        get(&client, &url, None).await?
    };
    let mut body = response.bytes_stream();
    while let Some(bytes) = body.next().await {
        let bytes = bytes.map_err(|error| answer(&url, &describe(&error)))?;
        download.take(&bytes).map_err(Failure::Disk)?;
    }
    Ok(shown(&url))
}

fn client() -> reqwest::Result<Client> {
    // reqwest takes the process's default provider and panics without one. A provider that is installed already stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .user_agent(concat!("blueprint/", env!("CARGO_PKG_VERSION")))
        .build()
}

fn parse(text: &str) -> Result<Url, Failure> {
    Url::parse(text).map_err(|error| Failure::Answer(format!("{text} is no address: {error}")))
}

/// `index.yaml` below the repository's address, whether or not that ends in a slash.
fn index_address(repository: &Url) -> Result<Url, Failure> {
    let mut folder = repository.clone();
    if !folder.path().ends_with('/') {
        folder.set_path(&format!("{}/", repository.path()));
    }
    folder
        .join("index.yaml")
        .map_err(|error| answer(repository, &error.to_string()))
}

/// A GET that is tried again when the network or the server stumbles; anything but success is an error.
async fn get(client: &Client, url: &Url, token: Option<&HeaderValue>) -> Result<Response, Failure> {
    let response = send(client, url, token).await?;
    if response.status().is_success() {
        Ok(response)
    } else {
        Err(answer(url, &format!("answered {}", response.status())))
    }
}

async fn send(
    client: &Client,
    url: &Url,
    token: Option<&HeaderValue>,
) -> Result<Response, Failure> {
    let once = || async {
        let mut request = client.get(url.clone());
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        let response = request.send().await.map_err(|error| describe(&error))?;
        if passing(response.status()) {
            Err(format!("answered {}", response.status()))
        } else {
            Ok(response)
        }
    };
    let pauses = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_times(2);
    once.retry(pauses).await.map_err(|what| answer(url, &what))
}

/// Worth another try.
fn passing(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// A chart in an OCI registry (`oci://host/path:tag`). Its tarball is a blob named by its SHA-256, so the pin itself is the address and no manifest is read.
async fn oci_blob(client: &Client, url: &Url, sha256: &str) -> Result<Response, Failure> {
    let host = url.host_str().unwrap_or_default();
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let path = url.path().trim_start_matches('/');
    let repository = path
        .rsplit_once(':')
        .map_or(path, |(repository, _)| repository);
    // Registries on the loopback interface speak plain HTTP, as they do for helm and docker.
    let scheme = if matches!(host, "localhost" | "127.0.0.1" | "[::1]") {
        "http"
    } else {
        "https"
    };
    let blob = parse(&format!(
        "{scheme}://{host}{port}/v2/{repository}/blobs/sha256:{sha256}"
    ))?;
    let response = send(client, &blob, None).await?;
    if response.status() != StatusCode::UNAUTHORIZED {
        let status = response.status();
        return if status.is_success() {
            Ok(response)
        } else {
            Err(answer(
                url,
                &format!("answered {status} for the pinned digest"),
            ))
        };
    }
    let challenge = response
        .headers()
        .get(WWW_AUTHENTICATE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let realm =
        token_address(challenge, repository).ok_or_else(|| answer(url, "asks for a login"))?;
    let token = get(client, &realm, None)
        .await?
        .json::<TokenAnswer>()
        .await
        .map_err(|error| answer(&realm, &describe(&error)))?;
    let mut header = HeaderValue::try_from(format!(
        "Bearer {}",
        token.token.or(token.access_token).unwrap_or_default()
    ))
    .map_err(|_| answer(&realm, "gave an unusable token"))?;
    header.set_sensitive(true);
    get(client, &blob, Some(&header)).await
}

/// The anonymous token's address out of `Bearer realm="…",service="…",scope="…"` (distribution's token specification).
fn token_address(challenge: &str, repository: &str) -> Option<Url> {
    let parameters = challenge.strip_prefix("Bearer ")?;
    let parameter = |name: &str| {
        parameters.split(',').find_map(|part| {
            part.trim()
                .strip_prefix(name)?
                .strip_prefix("=\"")?
                .strip_suffix('"')
        })
    };
    let mut url = Url::parse(parameter("realm")?).ok()?;
    let scope = format!("repository:{repository}:pull");
    url.query_pairs_mut()
        .append_pair("scope", &scope)
        .extend_pairs(parameter("service").map(|service| ("service", service)));
    Some(url)
}

#[derive(serde::Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

fn answer(url: &Url, what: &str) -> Failure {
    Failure::Answer(format!("{}: {what}", shown(url)))
}

/// The address without user, password and query: those may be credentials.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both refuse only for addresses that cannot have them.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.to_string()
}

/// The whole chain of causes: reqwest's own text stops at "error sending request".
fn describe(error: &reqwest::Error) -> String {
    let mut text = if error.is_timeout() {
        "timed out".to_owned()
    } else {
        "failed".to_owned()
    };
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_address_is_made_from_the_challenge() {
        let challenge = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:x:pull""#;
        let url = token_address(challenge, "bitnamicharts/redis").unwrap();
        assert_eq!(
            url.as_str(),
            "https://auth.docker.io/token?scope=repository%3Abitnamicharts%2Fredis%3Apull&service=registry.docker.io"
        );
        assert!(token_address("Basic realm=\"x\"", "a").is_none());
        assert!(token_address("", "a").is_none());
    }

    #[test]
    fn credentials_in_addresses_are_not_shown() {
        assert_eq!(
            shown(&Url::parse("https://user:hush@example.com/a?token=hush").unwrap()),
            "https://example.com/a"
        );
    }

    #[test]
    fn an_index_stands_below_the_repository() {
        for repository in [
            "https://charts.bitnami.com/bitnami",
            "https://charts.bitnami.com/bitnami/",
        ] {
            let url = index_address(&Url::parse(repository).unwrap())
                .ok()
                .unwrap();
            assert_eq!(
                url.as_str(),
                "https://charts.bitnami.com/bitnami/index.yaml"
            );
        }
    }
}
