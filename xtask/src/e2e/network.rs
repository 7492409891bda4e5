//! The way in: the Gateway, its node ports, and https from three places with only our CA trusted.

use std::fs;

use super::observer::{TOOLBOX, condition, items};
use super::{Evidence, Scene, expect};
use crate::cluster::Cluster;
use crate::error::{Error, FileContext as _, Result};

const HEALTH: &str = "https://gitlab.local.example.net/-/health";
const HOST: &str = "gitlab.local.example.net:443:127.0.0.1";
/// Takes the CA from stdin: inside a pod or a node nothing of ours lies on the disk.
const FETCH: &str = r#"ca=$(mktemp) && cat > "$ca" && curl --silent --show-error --cacert "$ca" --max-time 20 --output /dev/null --write-out '%{http_code}' "$1"; code=$?; rm -f "$ca"; exit $code"#;

pub(super) fn gateway(scene: &mut Scene) -> Result<Evidence> {
    let gateway = scene.objects(&[
        "gateways.gateway.networking.k8s.io",
        "--namespace",
        "gitlab",
        "gitlab-gw",
    ])?;
    let programmed = condition(&gateway, "Programmed");
    expect(
        programmed == "True",
        "Gateway gitlab-gw Programmed",
        programmed,
    )?;
    let services = scene.objects(&[
        "services",
        "--all-namespaces",
        "--selector",
        "gateway.envoyproxy.io/owning-gateway-name=gitlab-gw",
    ])?;
    let ports: Vec<_> = items(&services)
        .into_iter()
        .flat_map(|service| service["spec"]["ports"].as_array().into_iter().flatten())
        .map(|port| format!("{}:{}", port["port"], port["nodePort"]))
        .collect();
    expect(
        ["443:30443", "80:30080", "22:30022"]
            .iter()
            .all(|port| ports.iter().any(|found| found == port)),
        "the data plane on 443:30443, 80:30080 and 22:30022",
        format!("Programmed=True, data plane on {}", ports.join(" ")),
    )
}

pub(super) fn https_from_a_pod(scene: &mut Scene) -> Result<Evidence> {
    let ca = authority(scene)?;
    let code = scene.in_pod(
        "gitlab",
        TOOLBOX,
        &ca,
        &["bash", "-c", FETCH, "fetch", HEALTH],
    )?;
    expect(code == "200", "200", format!("{code} from {TOOLBOX}"))
}

pub(super) fn https_from_a_node(scene: &mut Scene) -> Result<Evidence> {
    let ca = authority(scene)?;
    let engine = scene.platform.engine();
    let mut seen = Vec::new();
    for node in Cluster::open(scene.lab, engine)?.nodes()? {
        let code = engine
            .docker()
            .args([
                "exec",
                "--interactive",
                &node,
                "bash",
                "-c",
                FETCH,
                "fetch",
                HEALTH,
            ])
            .input(ca.as_str())
            .output()?;
        expect(code == "200", "200", format!("{code} from {node}"))?;
        seen.push(node);
    }
    Ok(format!("200 from {}", seen.join(", ")))
}

pub(super) fn https_from_the_host(scene: &mut Scene) -> Result<Evidence> {
    let path = authority_path(scene);
    let (_, code, error) = scene
        .platform
        .command("curl")
        .args(["--silent", "--show-error", "--cacert"])
        .arg(&path)
        .args([
            "--resolve",
            HOST,
            "--max-time",
            "20",
            "--output",
            "/dev/null",
        ])
        .args(["--write-out", "%{http_code}", HEALTH])
        .captured()?;
    expect(
        code == "200",
        "200",
        format!("{code} at 127.0.0.1:443 {}", error.trim()),
    )
}

fn authority_path(scene: &Scene) -> std::path::PathBuf {
    scene.lab.checkout().join("infra/tls/wildcard/ca.pem")
}

fn authority(scene: &Scene) -> Result<String> {
    let path = authority_path(scene);
    let text = fs::read_to_string(&path).file("read", &path)?;
    if text.contains("PRIVATE KEY") {
        return Err(Error::content(
            path.display().to_string(),
            "it holds a private key; a CA file must not",
        ));
    }
    Ok(text)
}
