//! Requests the way a browser makes them: by public name, over TLS, with only our CA trusted, through Envoy.

use std::time::Duration;

use blueprint_cluster::LocalForward;
use reqwest::tls::TlsInfo;
use reqwest::{Certificate, Client};

use super::readiness::DATA_PLANE;
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// Envoy Gateway adds 10000 to a listener's port when it is below 1024.
const ENVOY_HTTPS: u16 = 10443;
const HINT: &str = "look at the Gateway: `kubectl -n gitlab get gateway,httproute,pods`";

/// A client whose requests for one host go to Envoy's pod.
pub(super) struct ThroughGateway {
    /// The client. It trusts nothing but our CA and uses no proxy.
    pub(super) http: Client,
    _forward: LocalForward,
}

/// Opens one for `host`.
pub(super) async fn open(work: Work<'_>, host: &str) -> Result<ThroughGateway, Error> {
    let Some(pod) = work
        .context
        .cluster
        .ready_pod(names::GITLAB, DATA_PLANE)
        .await?
    else {
        return Err(failed("reach Envoy", "no pod of the data plane is ready"));
    };
    let forward = work
        .context
        .cluster
        .port_forward(names::GITLAB, &pod, ENVOY_HTTPS)
        .await?;
    let path = work.context.workspace.wildcard().join("ca.pem");
    let pem = std::fs::read(&path)
        .map_err(|error| failed(&format!("read {}", path.display()), &error.to_string()))?;
    let authorities = Certificate::from_pem_bundle(&pem)
        .map_err(|error| failed(&format!("use {}", path.display()), &error.to_string()))?;
    let http = Client::builder()
        .no_proxy()
        .tls_certs_only(authorities)
        .resolve(host, forward.address())
        .redirect(reqwest::redirect::Policy::none())
        .tls_info(true)
        .timeout(Duration::from_secs(15))
        .build()
        .map_err(|error| failed("make an HTTPS client", &error.to_string()))?;
    Ok(ThroughGateway {
        http,
        _forward: forward,
    })
}

impl ThroughGateway {
    /// The status of a GET, or why there is none.
    pub(super) async fn status(&self, url: &str) -> Result<u16, Error> {
        let answer = self
            .http
            .get(url)
            .send()
            .await
            .map_err(|error| failed(&format!("get {url}"), &said(&error)))?;
        Ok(answer.status().as_u16())
    }
}

/// Whether a pod of the data plane is ready.
pub(crate) async fn serves(work: Work<'_>) -> Result<bool, Error> {
    let cluster = &work.context.cluster;
    Ok(cluster
        .ready_pod(names::GITLAB, DATA_PLANE)
        .await?
        .is_some())
}

/// The certificate (DER) that Envoy shows for `host` on a new connection.
pub(crate) async fn served_certificate(work: Work<'_>, host: &str) -> Result<Vec<u8>, Error> {
    let url = format!("https://{host}/");
    let way = open(work, host).await?;
    let answer = way
        .http
        .get(&url)
        .send()
        .await
        .map_err(|error| failed(&format!("get {url}"), &said(&error)))?;
    let shown = answer
        .extensions()
        .get::<TlsInfo>()
        .and_then(|info| info.peer_certificate().map(<[u8]>::to_vec));
    shown.ok_or_else(|| failed("see the Gateway's certificate", "the connection shows none"))
}

/// With its causes: reqwest's own words are only "error sending request".
fn said(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

fn failed(action: &str, found: &str) -> Error {
    Error::Failed {
        action: action.to_owned(),
        found: found.to_owned(),
        hint: HINT.to_owned(),
    }
}
