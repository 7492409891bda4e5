//! The YAML that is installed: embedded in the binary, written out by `blueprint init`; a file in the workspace wins.

use std::path::PathBuf;

use blueprint_charts::{ChartPin, ImagePin, Versions, VersionsError, values, yaml};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::settings::{REFERENCE_DOMAIN, REFERENCE_PORTS, REFERENCE_STORAGE_ROOT, Settings};
use crate::workspace::Workspace;

/// One embedded file.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// Path in a workspace, `infra/phase2/references/helm-values-redis.yaml`.
    pub path: &'static str,
    /// Text.
    pub text: &'static str,
}

/// `VERSIONS.json`, `infra/kind/cluster.yaml`, a commented blueprint.yaml, a .gitignore and every file under `infra/phase2/references`, as build.rs found them.
static EMBEDDED: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

const FOLDER: &str = "infra/phase2/references";

/// Everything `init` writes.
pub fn embedded() -> &'static [Embedded] {
    EMBEDDED
}

/// One embedded file by its path in a workspace.
pub fn embedded_text(path: &str) -> Option<&'static str> {
    EMBEDDED
        .iter()
        .find(|file| file.path == path)
        .map(|file| file.text)
}

/// Reads references for one workspace and settings.
#[derive(Debug, Clone)]
pub struct References {
    workspace: Workspace,
    settings: Settings,
}

impl References {
    /// For this workspace.
    pub fn new(workspace: Workspace, settings: Settings) -> Self {
        Self {
            workspace,
            settings,
        }
    }

    /// The pins: the file given for the workspace, else its VERSIONS.json, else the embedded one. A file that was given must be there.
    pub fn versions(&self) -> Result<Versions, Error> {
        let text = match self.workspace.given_versions() {
            Some(file) => std::fs::read_to_string(file).map_err(|source| VersionsError::Io {
                path: file.to_owned(),
                source,
            })?,
            None => self.text("VERSIONS.json")?.unwrap_or_default(),
        };
        Ok(Versions::parse(&text, &self.workspace.versions())?)
    }

    /// The documents of `name` (`cluster-postgresql.yaml`), each merged with the document of the same kind and name in `profiles/<profile>/<name>` where there
    /// is one, with domain, storage root and ports put in place of the reference ones.
    pub fn documents(&self, name: &str) -> Result<Vec<Value>, Error> {
        let Some(text) = self.text(&format!("{FOLDER}/{name}"))? else {
            return Err(self.missing(name));
        };
        let mut documents = yaml::documents(&text, &self.path(name))?;
        let overlay = self.profile_file(name);
        if let Some(text) = self.text(&format!("{FOLDER}/{overlay}"))? {
            for layer in yaml::documents(&text, &self.path(&overlay))? {
                overlay_onto(&mut documents, layer);
            }
        }
        Ok(documents
            .into_iter()
            .map(|document| localise(document, &self.settings))
            .collect())
    }

    /// Values for a chart key: `helm-values-<key>.yaml`, then `profiles/<profile>/helm-values-<key>.yaml`, then the images that VERSIONS.json sets for the chart,
    /// then the pin's `values_overrides`; localised.
    pub fn values(&self, key: &str, versions: &Versions) -> Result<Value, Error> {
        let pin = versions.chart(key)?;
        let name = format!("helm-values-{key}.yaml");
        let Some(text) = self.text(&format!("{FOLDER}/{name}"))? else {
            return Err(self.missing(&name));
        };
        let mut layers = vec![yaml::document(&text, &self.path(&name))?];
        let overlay = self.profile_file(&name);
        if let Some(text) = self.text(&format!("{FOLDER}/{overlay}"))? {
            layers.push(yaml::document(&text, &self.path(&overlay))?);
        }
        layers.extend(
            versions
                .images
                .values()
                .filter_map(|image| image_layer(key, pin, image)),
        );
        layers.push(pin.values_overrides.clone());
        Ok(localise(
            values::merge(layers.into_iter().filter(Value::is_object)),
            &self.settings,
        ))
    }

    /// Path in messages.
    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace.references().join(name)
    }

    /// A workspace file's text, or the embedded one's; `None` when neither is there.
    pub fn text(&self, path: &str) -> Result<Option<String>, Error> {
        let file = self.workspace.root().join(path);
        match std::fs::read_to_string(&file) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(embedded_text(path).map(str::to_owned))
            }
            Err(error) => Err(Error::Failed {
                action: format!("read {}", file.display()),
                found: error.to_string(),
                hint: "make the file readable, or remove it to use the built-in one".to_owned(),
            }),
        }
    }

    fn profile_file(&self, name: &str) -> String {
        format!("profiles/{}/{name}", self.settings.profile.name())
    }

    fn missing(&self, name: &str) -> Error {
        Error::Failed {
            action: format!("read {}", self.path(name).display()),
            found: "there is neither such a file nor a built-in one".to_owned(),
            hint: "write the file, or run `blueprint init` in an empty folder to see the built-in references".to_owned(),
        }
    }
}

/// Merges `layer` into the document of the same kind and name; a layer without a counterpart is left out on purpose: profiles size things, they make none.
fn overlay_onto(documents: &mut [Value], layer: Value) {
    let identity = |document: &Value| {
        (
            document["kind"].clone(),
            document["metadata"]["name"].clone(),
        )
    };
    if let Some(document) = documents
        .iter_mut()
        .find(|document| identity(document) == identity(&layer))
    {
        *document = values::merge([document.take(), layer]);
    }
}

/// How a chart's values name an image.
struct ImageKeys {
    /// Takes the registry's host; charts without it take the repository whole.
    registry: Option<&'static str>,
    repository: &'static str,
    /// Takes the digest; charts without it take `tag@digest` as the tag.
    digest: Option<&'static str>,
}

/// From the charts' own templates: bitnami's `common.images.image`, MinIO's and CloudNativePG's `{{ .repository }}:{{ .tag }}`, the runner's
/// `{{ .registry }}/{{ .image }}:{{ .tag }}`; the others have `registry`, `repository` and `tag`.
fn image_keys(chart: &str) -> ImageKeys {
    match chart {
        "redis" => ImageKeys {
            registry: Some("registry"),
            repository: "repository",
            digest: Some("digest"),
        },
        "minio" | "cloudnative-pg" => ImageKeys {
            registry: None,
            repository: "repository",
            digest: None,
        },
        "gitlab-runner" => ImageKeys {
            registry: Some("registry"),
            repository: "image",
            digest: None,
        },
        _ => ImageKeys {
            registry: Some("registry"),
            repository: "repository",
            digest: None,
        },
    }
}

fn image_layer(key: &str, pin: &ChartPin, image: &ImagePin) -> Option<Value> {
    let target = image.sets.as_ref().filter(|target| target.chart == key)?;
    let keys = image_keys(&pin.chart);
    let mut fields = Map::new();
    let (registry, repository) = split_registry(&image.repository);
    match keys.registry {
        Some(name) => {
            fields.insert(name.to_owned(), json!(registry));
            fields.insert(keys.repository.to_owned(), json!(repository));
        }
        None => {
            fields.insert(keys.repository.to_owned(), json!(image.repository));
        }
    }
    let mut tag = image.tag.clone();
    match (&image.digest, keys.digest) {
        (Some(digest), Some(name)) => {
            fields.insert(name.to_owned(), json!(digest));
        }
        (Some(digest), None) => tag = format!("{tag}@{digest}"),
        (None, _) => {}
    }
    fields.insert("tag".to_owned(), json!(tag));
    Some(
        target
            .at
            .rsplit('.')
            .fold(Value::Object(fields), |inner, part| json!({part: inner})),
    )
}

/// The first part is a registry when it has a dot or a port, as image references are read everywhere (distribution/reference, `splitDockerDomain`).
fn split_registry(repository: &str) -> (&str, &str) {
    match repository.split_once('/') {
        Some((host, rest)) if host.contains(['.', ':']) || host == "localhost" => (host, rest),
        _ => ("docker.io", repository),
    }
}

/// One image as containers name it: `repository:tag`, with the digest where it is known.
pub fn image_reference(image: &ImagePin) -> String {
    match &image.digest {
        Some(digest) => format!("{}:{}@{digest}", image.repository, image.tag),
        None => format!("{}:{}", image.repository, image.tag),
    }
}

/// Puts the settings' domain, storage root and NodePorts in place of the reference ones, in every string and in `nodePort` numbers.
pub fn localise(value: Value, settings: &Settings) -> Value {
    match value {
        Value::String(text) => Value::String(localise_text(&text, settings)),
        Value::Array(items) => items
            .into_iter()
            .map(|item| localise(item, settings))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| {
                let value = match node_port(&key, &value, settings) {
                    Some(port) => json!(port),
                    None => localise(value, settings),
                };
                (key, value)
            })
            .collect(),
        other => other,
    }
}

fn node_port(key: &str, value: &Value, settings: &Settings) -> Option<u16> {
    if key != "nodePort" {
        return None;
    }
    let [https, http, ssh] = REFERENCE_PORTS;
    match u16::try_from(value.as_u64()?).ok()? {
        port if port == https => Some(settings.ports.https),
        port if port == http => Some(settings.ports.http),
        port if port == ssh => Some(settings.ports.ssh),
        _ => None,
    }
}

fn localise_text(text: &str, settings: &Settings) -> String {
    let escaped = |domain: &str| domain.replace('.', "\\.");
    text.replace(REFERENCE_DOMAIN, &settings.domain)
        .replace(&escaped(REFERENCE_DOMAIN), &escaped(&settings.domain))
        .replace(REFERENCE_STORAGE_ROOT, &settings.storage_root)
}

#[cfg(test)]
#[path = "references_tests.rs"]
mod tests;
