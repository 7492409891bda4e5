//! An image pushed to the registry by its public name and run by the kubelet of every worker.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::data::decoded;
use super::observer::items;
use super::{Evidence, Scene, expect};
use crate::error::{Error, FileContext as _, Result};
use crate::pins::Pins;

const HOST: &str = "registry.local.example.net";
/// The stand-in lets anybody pull below `public/`, so that the kubelet needs no Secret.
const REPOSITORY: &str = "public/e2e";
const TAG: &str = "1";
const TOKEN_URL: &str = "https://gitlab.local.example.net/jwt/auth?service=container_registry&scope=repository:public/e2e:pull,push";
const MANIFEST_TYPE: &str = "application/vnd.docker.distribution.manifest.v2+json";

pub(super) fn pushed_and_run_on_every_worker(scene: &mut Scene) -> Result<Evidence> {
    let push = Push::begin(scene)?;
    let image = Image::of_busybox(scene)?;
    let layer = push.blob(&image.layer)?;
    let config = push.blob(&image.config)?;
    push.manifest(&config, image.config.len(), &layer, image.layer.len())?;

    let nodes = scene.objects(&[
        "nodes",
        "--selector",
        "!node-role.kubernetes.io/control-plane",
    ])?;
    let workers: Vec<&str> = items(&nodes)
        .into_iter()
        .filter_map(|node| node["metadata"]["name"].as_str())
        .collect();
    let mut pulled = Vec::new();
    for worker in &workers {
        pulled.push(run_on(scene, worker)?);
    }
    expect(
        workers.len() == 2,
        "two workers",
        format!(
            "pushed {} bytes as {HOST}/{REPOSITORY}:{TAG}; {}",
            image.layer.len() + image.config.len(),
            pulled.join("; ")
        ),
    )
}

/// A pod of the pushed image on this node; answers the kubelet's words on the pull.
fn run_on(scene: &Scene, worker: &str) -> Result<String> {
    let name = format!("e2e-pull-{worker}");
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": worker, "restartPolicy": "Never", "automountServiceAccountToken": false,
            "containers": [{"name": "c", "image": format!("{HOST}/{REPOSITORY}:{TAG}"), "imagePullPolicy": "Always", "command": ["/bin/busybox", "true"]}]
        }
    });
    scene
        .kubectl(["apply", "--filename", "-"])
        .input(pod.to_string())
        .output()?;
    let ended = scene
        .kubectl([
            "wait",
            "--for=jsonpath={.status.phase}=Succeeded",
            "--timeout=90s",
            "--namespace",
            "default",
            "pod",
        ])
        .arg(&name)
        .output();
    let events = scene
        .kubectl([
            "get",
            "events",
            "--namespace",
            "default",
            "--output",
            "json",
            "--field-selector",
        ])
        .arg(format!("involvedObject.name={name}"))
        .output()?;
    scene
        .kubectl(["delete", "pod", "--namespace", "default", "--wait=false"])
        .arg(&name)
        .output()?;
    let events: Value = serde_json::from_str(&events)
        .map_err(|error| Error::content("kubectl get events", error))?;
    let messages: Vec<&str> = items(&events)
        .into_iter()
        .filter_map(|event| event["message"].as_str())
        .collect();
    let pull = messages
        .iter()
        .find(|message| message.contains("Successfully pulled image"));
    match (ended, pull) {
        (Ok(_), Some(pull)) => Ok(format!(
            "{worker}: {}",
            pull.split(". Image size").next().unwrap_or(pull)
        )),
        (Err(error), _) => Err(Error::unmet(error.to_string(), messages.join("; "))),
        (Ok(_), None) => Err(Error::unmet(
            "no event tells of a pull",
            messages.join("; "),
        )),
    }
}

/// Busybox in an image of its own: the label keeps its config from being the side-loaded one's, which kubelet would refuse to share.
struct Image {
    layer: Vec<u8>,
    config: Vec<u8>,
}

impl Image {
    fn of_busybox(scene: &Scene) -> Result<Self> {
        let reference = Pins::read(scene.lab.checkout())?
            .image("busybox")?
            .reference();
        let saved = scene.lab.path().join("e2e-busybox.tar");
        scene
            .platform
            .engine()
            .docker()
            .args(["save", "--output"])
            .arg(&saved)
            .arg(&reference)
            .output()?;
        let parts = members(&saved)?;
        let named = |name: &str| {
            parts
                .iter()
                .find(|(path, _)| path == name)
                .map(|(_, bytes)| bytes.clone())
                .ok_or_else(|| Error::content(saved.display().to_string(), format!("no {name}")))
        };
        let manifest: Value = parse(&named("manifest.json")?)?;
        let field = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tar = named(&field(&manifest[0]["Layers"][0]))?;
        let mut config: Value = parse(&named(&field(&manifest[0]["Config"]))?)?;
        config["config"]["Labels"]["purpose"] = "e2e".into();
        config["rootfs"]["diff_ids"] = json!([sha256(&tar)]);
        let mut zipped = GzEncoder::new(Vec::new(), Compression::fast());
        zipped.write_all(&tar).file("zip", &saved)?;
        let layer = zipped.finish().file("zip", &saved)?;
        Ok(Self {
            layer,
            config: config.to_string().into_bytes(),
        })
    }
}

fn members(tarball: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let file = fs::File::open(tarball).file("open", tarball)?;
    let mut found = Vec::new();
    let mut archive = tar::Archive::new(file);
    for entry in archive.entries().file("read", tarball)? {
        let mut entry = entry.file("read", tarball)?;
        let path = entry.path().file("read", tarball)?.display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).file("read", tarball)?;
        found.push((path, bytes));
    }
    Ok(found)
}

fn parse(bytes: &[u8]) -> Result<Value> {
    serde_json::from_slice(bytes).map_err(|error| Error::content("the saved image", error))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold("sha256:".to_owned(), |text, byte| {
            format!("{text}{byte:02x}")
        })
}

/// Talks to the registry as root, through the Gateway, trusting only our CA. Credentials and token reach curl by stdin.
struct Push<'a> {
    scene: &'a Scene<'a>,
    token: String,
}

impl<'a> Push<'a> {
    fn begin(scene: &'a Scene<'a>) -> Result<Self> {
        let secret = scene.objects(&[
            "secret",
            "--namespace",
            "gitlab",
            "gitlab-gitlab-initial-root-password",
        ])?;
        let password = decoded(&secret, "password")?;
        let answer = curl(
            scene,
            TOKEN_URL,
            &format!("user = \"root:{password}\"\nfail\n"),
        )?;
        let answer: Value = serde_json::from_str(&answer)
            .map_err(|error| Error::content("the answer of /jwt/auth", error))?;
        let token = answer["token"].as_str().unwrap_or_default().to_owned();
        expect(!token.is_empty(), "a token", "none")?;
        Ok(Self { scene, token })
    }

    fn blob(&self, bytes: &[u8]) -> Result<String> {
        let digest = sha256(bytes);
        let begun = self.call(
            &format!("https://{HOST}/v2/{REPOSITORY}/blobs/uploads/"),
            "request = \"POST\"\ninclude\n",
        )?;
        let place = begun
            .lines()
            .find_map(|line| {
                line.split_once(':')
                    .filter(|(name, _)| name.eq_ignore_ascii_case("location"))
            })
            .map(|(_, place)| place.trim().to_owned())
            .ok_or_else(|| Error::content("the registry's answer", "no Location"))?;
        let join = if place.contains('?') { '&' } else { '?' };
        self.put(
            &format!("{place}{join}digest={digest}"),
            "application/octet-stream",
            bytes,
        )?;
        Ok(digest)
    }

    fn manifest(
        &self,
        config: &str,
        config_size: usize,
        layer: &str,
        layer_size: usize,
    ) -> Result<()> {
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE,
            "config": {"mediaType": "application/vnd.docker.container.image.v1+json", "digest": config, "size": config_size},
            "layers": [{"mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "digest": layer, "size": layer_size}]
        });
        self.put(
            &format!("https://{HOST}/v2/{REPOSITORY}/manifests/{TAG}"),
            MANIFEST_TYPE,
            manifest.to_string().as_bytes(),
        )
    }

    fn put(&self, url: &str, kind: &str, bytes: &[u8]) -> Result<()> {
        let body = self.scene.lab.path().join("e2e-upload");
        fs::write(&body, bytes).file("write", &body)?;
        let options = format!(
            "request = \"PUT\"\nheader = \"Content-Type: {kind}\"\ndata-binary = \"@{}\"\n",
            body.display()
        );
        self.call(url, &options).map(drop)
    }

    fn call(&self, url: &str, options: &str) -> Result<String> {
        let options = format!(
            "header = \"Authorization: Bearer {}\"\nfail-with-body\n{options}",
            self.token
        );
        curl(self.scene, url, &options)
    }
}

fn curl(scene: &Scene, url: &str, options: &str) -> Result<String> {
    let ca = scene.lab.checkout().join("infra/tls/wildcard/ca.pem");
    let config = format!(
        "url = \"{url}\"\ncacert = \"{}\"\nresolve = \"{HOST}:443:127.0.0.1\"\nresolve = \"gitlab.local.example.net:443:127.0.0.1\"\nsilent\nshow-error\nmax-time = 60\n{options}",
        ca.display()
    );
    scene
        .platform
        .command("curl")
        .args(["--config", "-"])
        .input(config)
        .output()
}
