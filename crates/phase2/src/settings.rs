//! `blueprint.yaml`: the few things people choose.

use std::path::Path;

use blueprint_charts::yaml;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::Error;

/// How much the installation asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// One replica each, small requests: fits a laptop.
    #[default]
    Small,
    /// The charts' own sizes.
    Full,
}

impl Profile {
    /// As written in blueprint.yaml; also the name of its folder under `references/profiles`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Full => "full",
        }
    }
}

/// NodePorts of the Gateway's data plane and the host ports of kind's mappings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ports {
    /// HTTPS NodePort.
    pub https: u16,
    /// HTTP NodePort.
    pub http: u16,
    /// SSH NodePort.
    pub ssh: u16,
}

/// The NodePorts that the references are written with: HTTPS, HTTP, SSH.
pub const REFERENCE_PORTS: [u16; 3] = [30443, 30080, 30022];

impl Default for Ports {
    fn default() -> Self {
        let [https, http, ssh] = REFERENCE_PORTS;
        Self { https, http, ssh }
    }
}

/// The file's content; every field has a default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `local.example.net`: hosts are `gitlab.<domain>`, `registry.<domain>`, `kas.<domain>`, `minio.<domain>`.
    pub domain: String,
    /// kind cluster name; the context is `kind-<cluster>`.
    pub cluster: String,
    /// Where kind mounts the stable storage in every node.
    pub storage_root: String,
    /// Profile.
    pub profile: Profile,
    /// Ports.
    pub ports: Ports,
    /// OpenBao.
    pub openbao: OpenBao,
}

/// What is chosen about OpenBao.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct OpenBao {
    /// OpenBao opens itself after a restart, by a key in a Secret of its namespace. Whoever can read that Secret, etcd or a node's disk can then open it too.
    pub auto_unseal: bool,
}

/// The domain that the references are written with.
pub const REFERENCE_DOMAIN: &str = "local.example.net";
/// The storage root that the references are written with.
pub const REFERENCE_STORAGE_ROOT: &str = "/var/local/shared";

const FIELDS: [&str; 6] = [
    "domain",
    "cluster",
    "storage_root",
    "profile",
    "ports",
    "openbao",
];
const OPENBAO_FIELDS: [&str; 1] = ["autoUnseal"];
const PORT_FIELDS: [&str; 3] = ["https", "http", "ssh"];

impl Default for Settings {
    fn default() -> Self {
        Self {
            domain: REFERENCE_DOMAIN.to_owned(),
            cluster: "blueprint".to_owned(),
            storage_root: REFERENCE_STORAGE_ROOT.to_owned(),
            profile: Profile::default(),
            ports: Ports::default(),
            openbao: OpenBao::default(),
        }
    }
}

impl Settings {
    /// Parses and checks the file's text (domain is a DNS name of two labels or more, cluster a DNS label, ports within 30000–32767 and distinct, storage
    /// root absolute). Every problem is named at once.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let document = yaml::document(text, origin)?;
        let settings = Self::from_value(document, &mut problems);
        if problems.is_empty() {
            return Ok(settings);
        }
        Err(Error::Refused {
            summary: format!("{} is not valid", origin.display()),
            expected: format!("the fields {}, all of them optional", FIELDS.join(", ")),
            found: problems.join("; "),
            hint: format!(
                "correct {}; docs/blueprint.schema.json describes every field",
                origin.display()
            ),
        })
    }

    fn from_value(document: Value, problems: &mut Vec<String>) -> Self {
        let mut settings = Self::default();
        let mut fields = match document {
            Value::Object(fields) => fields,
            Value::Null => Map::new(),
            other => {
                problems.push(format!("the file holds {}, not fields", kind_of(&other)));
                return settings;
            }
        };
        take(&mut fields, "", "domain", &mut settings.domain, problems);
        take(&mut fields, "", "cluster", &mut settings.cluster, problems);
        take(
            &mut fields,
            "",
            "storage_root",
            &mut settings.storage_root,
            problems,
        );
        take(&mut fields, "", "profile", &mut settings.profile, problems);
        match fields.remove("ports") {
            None | Some(Value::Null) => {}
            Some(Value::Object(mut ports)) => {
                take(
                    &mut ports,
                    "ports.",
                    "https",
                    &mut settings.ports.https,
                    problems,
                );
                take(
                    &mut ports,
                    "ports.",
                    "http",
                    &mut settings.ports.http,
                    problems,
                );
                take(
                    &mut ports,
                    "ports.",
                    "ssh",
                    &mut settings.ports.ssh,
                    problems,
                );
                unknown(&ports, "ports.", &PORT_FIELDS, problems);
            }
            Some(other) => problems.push(format!(
                "`ports` is {}, not a map of https, http and ssh",
                kind_of(&other)
            )),
        }
        match fields.remove("openbao") {
            None | Some(Value::Null) => {}
            Some(Value::Object(mut openbao)) => {
                let target = &mut settings.openbao.auto_unseal;
                take(&mut openbao, "openbao.", "autoUnseal", target, problems);
                unknown(&openbao, "openbao.", &OPENBAO_FIELDS, problems);
            }
            Some(other) => problems.push(format!(
                "`openbao` is {}, not a map with autoUnseal",
                kind_of(&other)
            )),
        }
        unknown(&fields, "", &FIELDS, problems);
        settings.check(problems);
        settings
    }

    fn check(&self, problems: &mut Vec<String>) {
        let labels: Vec<&str> = self.domain.split('.').collect();
        if labels.len() < 2
            || self.domain.len() > 200
            || !labels.iter().all(|label| is_dns_label(label))
        {
            problems.push(format!(
                "`domain` is `{}`, not a DNS name of two or more lower-case labels such as {REFERENCE_DOMAIN}",
                self.domain
            ));
        }
        if !is_dns_label(&self.cluster) || self.cluster.len() > 50 {
            problems.push(format!(
                "`cluster` is `{}`, not a DNS label of at most 50 characters",
                self.cluster
            ));
        }
        let root = &self.storage_root;
        let clean = root
            .split('/')
            .skip(1)
            .all(|part| !matches!(part, "" | "." | ".."))
            && !root.contains(char::is_whitespace);
        if !root.starts_with('/') || !clean {
            problems.push(format!(
                "`storage_root` is `{root}`, not an absolute path such as {REFERENCE_STORAGE_ROOT}"
            ));
        }
        let ports = [
            ("https", self.ports.https),
            ("http", self.ports.http),
            ("ssh", self.ports.ssh),
        ];
        for (index, (name, port)) in ports.iter().enumerate() {
            if !(30000..=32767).contains(port) {
                problems.push(format!(
                    "`ports.{name}` is {port}, outside the NodePort range 30000 to 32767"
                ));
            }
            if let Some((other, _)) = ports[..index].iter().find(|(_, taken)| taken == port) {
                problems.push(format!(
                    "`ports.{name}` and `ports.{other}` are both {port}"
                ));
            }
        }
    }

    /// Reads the file; defaults when there is none.
    pub fn read(path: &Path) -> Result<Self, Error> {
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::Failed {
                action: format!("read {}", path.display()),
                found: error.to_string(),
                hint: "make the file readable for the user that runs blueprint".to_owned(),
            }),
        }
    }

    /// `gitlab.<domain>` and so on.
    pub fn host(&self, name: &str) -> String {
        format!("{name}.{}", self.domain)
    }

    /// `kind-<cluster>`.
    pub fn kube_context(&self) -> String {
        format!("kind-{}", self.cluster)
    }
}

/// Moves one field out of the map into `target`; a null keeps the default.
fn take<T: DeserializeOwned>(
    fields: &mut Map<String, Value>,
    prefix: &str,
    name: &str,
    target: &mut T,
    problems: &mut Vec<String>,
) {
    match fields.remove(name) {
        None | Some(Value::Null) => {}
        Some(value) => match serde_json::from_value(value) {
            Ok(value) => *target = value,
            Err(error) => problems.push(format!("`{prefix}{name}`: {error}")),
        },
    }
}

fn unknown(fields: &Map<String, Value>, prefix: &str, known: &[&str], problems: &mut Vec<String>) {
    for name in fields.keys() {
        let nearest = known
            .iter()
            .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)));
        let suggestion = match nearest {
            Some(nearest) if strsim::jaro_winkler(name, nearest) > 0.75 => {
                format!(" (did you mean `{prefix}{nearest}`?)")
            }
            _ => String::new(),
        };
        problems.push(format!("unknown field `{prefix}{name}`{suggestion}"));
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// RFC 1123 label, lower case as Kubernetes wants it.
fn is_dns_label(label: &str) -> bool {
    !label.is_empty()
        && label.len() <= 63
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The JSON Schema of blueprint.yaml, as published in `docs/blueprint.schema.json`.
pub fn json_schema() -> Value {
    let defaults = Settings::default();
    let label = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
    let port = |what: &str, default: u16| json!({"type": ["integer", "null"], "minimum": 30000, "maximum": 32767, "default": default, "description": what});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "blueprint.yaml",
        "description": "What an installation is like. Every field is optional.",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "domain": {
                "type": ["string", "null"], "maxLength": 200, "pattern": format!("^{label}(\\.{label})+$"), "default": defaults.domain,
                "description": "Hosts are gitlab.<domain>, registry.<domain>, kas.<domain> and minio.<domain>."
            },
            "cluster": {
                "type": ["string", "null"], "maxLength": 50, "pattern": format!("^{label}$"), "default": defaults.cluster,
                "description": "Name of the kind cluster; its kubeconfig context is kind-<cluster>."
            },
            "storage_root": {
                "type": ["string", "null"], "pattern": "^(/[^/\\s]+)+$", "default": defaults.storage_root,
                "description": "Where kind mounts the stable storage in every node."
            },
            "profile": {
                "enum": ["small", "full", null], "default": defaults.profile,
                "description": "small: one replica each and small requests. full: the charts' own sizes."
            },
            "ports": {
                "type": ["object", "null"], "additionalProperties": false, "description": "NodePorts of the Gateway; distinct.",
                "properties": {
                    "https": port("HTTPS", defaults.ports.https),
                    "http": port("HTTP", defaults.ports.http),
                    "ssh": port("SSH", defaults.ports.ssh)
                }
            },
            "openbao": {
                "type": ["object", "null"], "additionalProperties": false, "description": "The platform's own OpenBao.",
                "properties": {
                    "autoUnseal": {
                        "type": ["boolean", "null"], "default": defaults.openbao.auto_unseal,
                        "description": "true: OpenBao opens itself after every restart, by the static seal with a key in a Secret of its namespace (and in infra/secrets). \
                                        The risk: whoever can read that Secret, a backup of etcd or a node's disk can open OpenBao as well. false: the key shares stay in \
                                        infra/secrets alone, and `blueprint up` or `blueprint secrets unseal` opens it. It can be switched both ways at any time."
                    }
                }
            }
        }
    })
}

/// [`json_schema`] as the published file's text.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
