//! Faults of the surroundings that a finished installation must bear: a proxy that leads nowhere, node ports that somebody changed, records that grow.

use serde_json::Value;

use super::observer::items;
use super::pipeline::{Fingerprint, run_blueprint};
use super::{Evidence, Scene, expect};
use crate::error::{Error, Result};

/// Nobody listens there.
const DEAD_PROXY: &str = "http://127.0.0.1:9";
const PROXY_VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];
/// What etcd takes in one request (`--max-request-bytes`), and so the API server in one Secret.
const LARGEST_RECORD: usize = 1024 * 1024;
const DATA_PLANE: &str = "gateway.envoyproxy.io/owning-gateway-name=gitlab-gw";

/// With all proxy variables at an address where nobody listens, `up` and `smoke` work as without.
pub(super) fn proxied(scene: &mut Scene) -> Result<Evidence> {
    let before = Fingerprint::take(scene)?;
    for command in ["up", "smoke"] {
        let run = PROXY_VARIABLES
            .iter()
            .fold(scene.platform.blueprint().arg(command), |run, name| {
                run.env(name, DEAD_PROXY)
            });
        let (code, out, told) = run.captured()?;
        expect(
            code == Some(0),
            &format!("`{command}` to work with every proxy variable at {DEAD_PROXY}"),
            format!("{code:?}: {out}{told}"),
        )?;
    }
    let changes = before.differences(&Fingerprint::take(scene)?);
    expect(
        changes.is_empty(),
        "nothing changed",
        if changes.is_empty() {
            format!(
                "`up` and `smoke` green with every proxy variable at {DEAD_PROXY}; nothing changed"
            )
        } else {
            changes.join("; ")
        },
    )
}

/// A node port changed by hand: the smoke row names it, and `up` puts it back.
pub(super) fn node_ports_reverted(scene: &mut Scene) -> Result<Evidence> {
    let service = data_plane(scene)?;
    let (namespace, name) = (
        service["metadata"]["namespace"]
            .as_str()
            .unwrap_or_default(),
        service["metadata"]["name"].as_str().unwrap_or_default(),
    );
    let at = service["spec"]["ports"]
        .as_array()
        .into_iter()
        .flatten()
        .position(|port| port["port"] == 443)
        .ok_or_else(|| Error::content(name.to_owned(), "no port 443"))?;
    let patch = format!(
        "[{{\"op\": \"replace\", \"path\": \"/spec/ports/{at}/nodePort\", \"value\": 31443}}]"
    );
    scene
        .kubectl(["patch", "service", "--namespace", namespace, name])
        .args(["--type=json", "--patch", &patch])
        .output()?;
    let (code, out, told) = scene.platform.blueprint().arg("smoke").captured()?;
    let named = code != Some(0) && format!("{out}{told}").contains("31443");
    // Envoy Gateway itself puts it back when it looks at the Service again: then there was nothing to name.
    let by_itself = port_of(&data_plane(scene)?) == Some(30443);
    expect(
        named || by_itself,
        "the smoke row of the data plane to name 31443",
        format!("{code:?}: {out}{told}"),
    )?;
    run_blueprint(scene, &["up", "--output", "plain"])?;
    run_blueprint(scene, &["smoke"])?;
    let port = port_of(&data_plane(scene)?);
    expect(
        port == Some(30443),
        "443:30443 after `up`",
        format!(
            "{}; 443:{} after `up`, smoke green",
            if named {
                "31443 named by smoke"
            } else {
                "put back by Envoy Gateway before smoke looked"
            },
            port.unwrap_or_default()
        ),
    )
}

fn data_plane(scene: &Scene) -> Result<Value> {
    let services = scene.objects(&["services", "--all-namespaces", "--selector", DATA_PLANE])?;
    items(&services)
        .into_iter()
        .next()
        .cloned()
        .ok_or_else(|| Error::content("Services of Gateway gitlab-gw", "there is none"))
}

fn port_of(service: &Value) -> Option<u64> {
    let ports = service["spec"]["ports"].as_array()?;
    let port = ports.iter().find(|port| port["port"] == 443)?;
    port["nodePort"].as_u64()
}

/// Helm keeps a release with its chart and its rendered objects in one Secret.
pub(super) fn release_records_fit(scene: &mut Scene) -> Result<Evidence> {
    let list = scene.objects(&[
        "secrets",
        "--all-namespaces",
        "--field-selector",
        "type=helm.sh/release.v1",
    ])?;
    let mut sizes: Vec<(usize, String)> = items(&list)
        .into_iter()
        .map(|secret| {
            let data = secret["data"]["release"].as_str().unwrap_or_default();
            // base64: four letters for three bytes.
            let name = secret["metadata"]["name"].as_str().unwrap_or_default();
            (data.len() / 4 * 3, name.to_owned())
        })
        .collect();
    sizes.sort();
    let Some((largest, name)) = sizes.last() else {
        return expect(false, "records of Helm", "none");
    };
    expect(
        *largest > 0 && *largest < LARGEST_RECORD,
        "every record below 1 MiB",
        format!(
            "{} records, the largest {name} with {} KiB of 1024",
            sizes.len(),
            largest / 1024
        ),
    )
}
