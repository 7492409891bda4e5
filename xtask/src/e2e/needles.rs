//! Every secret of an installation, each in the forms it could be found in.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::Scene;
use super::observer::items;
use crate::error::{Error, FileContext as _, Result};

/// Shorter texts are names and flags, and would be found everywhere.
const LEAST: usize = 12;
/// Keys of Secrets that hold what everybody may know.
const PUBLIC: [&str; 6] = ["username", "dbname", "host", "port", "user", "uri-scheme"];

/// Something that must be found nowhere.
#[derive(Debug, Clone)]
pub(super) struct Needle {
    /// Where it is kept; never the secret itself.
    pub(super) label: String,
    /// As it is, where it is text, and in base64.
    forms: Vec<String>,
}

impl Needle {
    fn new(label: &str, secret: &[u8]) -> Option<Self> {
        (secret.len() >= LEAST).then(|| Self {
            label: label.to_owned(),
            forms: std::str::from_utf8(secret)
                .map(str::to_owned)
                .into_iter()
                .chain([STANDARD.encode(secret)])
                .collect(),
        })
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.forms.iter().any(|form| text.contains(form))
    }
}

/// From the workspace's private files and from every Secret of the cluster.
pub(super) fn gather(scene: &Scene) -> Result<Vec<Needle>> {
    let infra = scene.lab.checkout().join("infra");
    let mut found = Vec::new();
    for name in ["secrets", "tls/wildcard"] {
        let folder = infra.join(name);
        for entry in fs::read_dir(&folder).file("list", &folder)? {
            of_file(&entry.file("list", &folder)?.path(), &mut found)?;
        }
    }
    let secrets = scene.objects(&["secrets", "--all-namespaces"])?;
    for secret in items(&secrets) {
        if secret["type"] != "helm.sh/release.v1"
            && secret["metadata"]["namespace"] != "kube-system"
        {
            of_secret(secret, &mut found)?;
        }
    }
    found.sort_by(|a, b| a.forms.cmp(&b.forms));
    found.dedup_by(|a, b| a.forms == b.forms);
    Ok(found)
}

fn of_file(path: &Path, found: &mut Vec<Needle>) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let text = fs::read_to_string(path).file("read", path)?;
    match &*name {
        // Identifiers, and what every client gets to see. The snapshot's Secrets are read from the cluster.
        "cnpg-system-identifier.txt"
        | "installation-id.txt"
        | "ca.pem"
        | "cert.pem"
        | "gitlab-runtime-secrets.yaml" => {}
        _ if name.ends_with(".json") => {
            let value: Value = serde_json::from_str(&text)
                .map_err(|error| Error::content(path.display().to_string(), error))?;
            of_json(&name, &value, found);
        }
        _ => of_text(&name, &text, found),
    }
    Ok(())
}

fn of_json(label: &str, value: &Value, found: &mut Vec<Needle>) {
    match value {
        Value::String(text) => found.extend(Needle::new(label, text.as_bytes())),
        Value::Array(all) => all.iter().for_each(|one| of_json(label, one, found)),
        Value::Object(all) => all
            .iter()
            .for_each(|(key, one)| of_json(&format!("{label} {key}"), one, found)),
        _ => {}
    }
}

fn of_secret(secret: &Value, found: &mut Vec<Needle>) -> Result<()> {
    let meta = &secret["metadata"];
    let name = format!(
        "{}/{}",
        meta["namespace"].as_str().unwrap_or("?"),
        meta["name"].as_str().unwrap_or("?")
    );
    for (key, value) in secret["data"].as_object().into_iter().flatten() {
        let public = PUBLIC.contains(&key.as_str())
            || [".crt", ".pub", ".pem"]
                .iter()
                .any(|end| key.ends_with(end));
        if public {
            continue;
        }
        let label = format!("{name} {key}");
        let bytes = STANDARD
            .decode(value.as_str().unwrap_or_default())
            .map_err(|error| Error::content(format!("Secret {label}"), error))?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => of_text(&label, text, found),
            Err(_) => found.extend(Needle::new(&label, &bytes)),
        }
    }
    Ok(())
}

/// A single line is a secret as a whole. Of several lines, those that name a secret or are a key's body.
fn of_text(label: &str, text: &str, found: &mut Vec<Needle>) {
    let text = text.trim();
    if !text.contains('\n') {
        found.extend(Needle::new(label, text.as_bytes()));
        return;
    }
    for line in text.lines().map(str::trim) {
        let secret = match line.split_once(": ").or_else(|| line.split_once(" = ")) {
            Some((key, value)) if names_a_secret(key) => value.trim_matches('"'),
            None if is_body(line.trim_start_matches("- ")) => line.trim_start_matches("- "),
            Some(_) | None => continue,
        };
        found.extend(Needle::new(label, secret.as_bytes()));
    }
}

fn names_a_secret(key: &str) -> bool {
    ["secret", "password", "token", "key"]
        .iter()
        .any(|word| key.contains(word))
}

/// A line of a PEM body or of a list of keys.
fn is_body(line: &str) -> bool {
    line.len() >= 24
        && line
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(found: &[Needle], text: &str) -> usize {
        found.iter().filter(|needle| needle.is_in(text)).count()
    }

    #[test]
    fn a_secret_is_found_plain_and_encoded_and_public_parts_are_not_looked_for() {
        let secret = json!({"metadata": {"namespace": "n", "name": "s"}, "data": {
            "password": STANDARD.encode("correct-horse-battery"),
            "username": STANDARD.encode("gitlab_openbao"),
            "tls.crt": STANDARD.encode("a certificate of ours"),
        }});
        let mut found = Vec::new();
        of_secret(&secret, &mut found).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].label, "n/s password");
        assert_eq!(labels(&found, "x --password correct-horse-battery y"), 1);
        assert_eq!(labels(&found, &STANDARD.encode("correct-horse-battery")), 1);
        assert_eq!(labels(&found, "gitlab_openbao"), 0);
    }

    #[test]
    fn of_several_lines_the_secret_ones_are_looked_for() {
        let mut found = Vec::new();
        of_text(
            "x",
            "endpoint: http://minio.minio.svc:9000\naws_secret_access_key: abcdefghijklmnop\n\
             -----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqG\n-----END PRIVATE KEY-----\n",
            &mut found,
        );
        assert_eq!(labels(&found, "http://minio.minio.svc:9000"), 0);
        assert_eq!(labels(&found, "abcdefghijklmnop"), 1);
        assert_eq!(labels(&found, "MIGHAgEAMBMGByqGSM49AgEGCCqG"), 1);
        assert_eq!(found.len(), 2);
    }
}
