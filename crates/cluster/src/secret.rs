//! Secrets, with redacted values.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use blueprint_failpoint::failpoint;
use k8s_openapi::api::core::v1::Secret;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams, Request};
use kube::core::params::GetParams;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::answer::Answer;
use crate::apply::Change;
use crate::connect::Cluster;
use crate::error::Error;
use crate::object::describe;
use crate::retry::patiently;

/// A Secret as we write it. Its values never show in Debug.
#[derive(Clone)]
pub struct SecretManifest {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `Opaque`, `kubernetes.io/tls`, `kubernetes.io/basic-auth`.
    pub kind: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Decoded values.
    pub data: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

/// A Secret as read.
#[derive(Clone)]
pub struct SecretRead {
    /// `type`.
    pub kind: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Decoded values.
    pub data: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for SecretManifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretManifest")
            .field("namespace", &self.namespace)
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("labels", &self.labels)
            .field("keys", &self.data.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SecretRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretRead")
            .field("kind", &self.kind)
            .field("labels", &self.labels)
            .field("keys", &self.data.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl SecretRead {
    /// A value as text; `None` when the key is missing or not UTF-8.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.data
            .get(key)
            .and_then(|value| std::str::from_utf8(value).ok())
    }
}

impl Cluster {
    /// Reads one.
    pub async fn secret(&self, namespace: &str, name: &str) -> Result<Option<SecretRead>, Error> {
        let what = describe("Secret", Some(namespace), name);
        let request = Request::new(Secret::url_path(&(), Some(namespace)));
        // kube logs the body of an answer that it cannot parse, so the body is parsed here.
        let body = patiently(&format!("read {what}"), || async {
            let request = request
                .get(name, &GetParams::default())
                .map_err(kube::Error::BuildRequest)?;
            let body = Answer::optional(self.client.request_text(request).await)?;
            Ok(body.map(Zeroizing::new))
        })
        .await?;
        body.map(|body| parse(&body, &what)).transpose()
    }

    /// Applies one by server-side apply. Error messages and Change name it, never its content.
    pub async fn apply_secret(&self, secret: &SecretManifest) -> Result<Change, Error> {
        let what = describe("Secret", Some(&secret.namespace), &secret.name);
        let api = Api::<Secret>::namespaced(self.client(), &secret.namespace);
        let before = patiently(&format!("read {what}"), || {
            api.get_metadata_opt(&secret.name)
        })
        .await?;
        let (manifest, encoded) = manifest(secret);
        failpoint!(before, "apply", "{what}");
        let after = patiently(&format!("apply {what}"), || async {
            let parameters = PatchParams::apply(crate::FIELD_MANAGER).force();
            api.patch_metadata(&secret.name, &parameters, &Patch::Apply(&manifest))
                .await
        })
        .await
        .map_err(|error| redact(error, secret, &encoded))?;
        failpoint!(after, "apply", "{what}");
        Ok(match before {
            None => Change::Created(what),
            Some(before) if before.metadata.resource_version == after.metadata.resource_version => {
                Change::Unchanged(what)
            }
            Some(_) => Change::Configured(what),
        })
    }
}

fn parse(body: &str, what: &str) -> Result<SecretRead, Error> {
    // serde's message may quote a value.
    let secret = serde_json::from_str::<Secret>(body).map_err(|_| {
        Error::Malformed(format!("the API server's answer for {what} is no Secret"))
    })?;
    Ok(SecretRead {
        kind: secret.type_.unwrap_or_else(|| "Opaque".to_owned()),
        labels: secret.metadata.labels.unwrap_or_default(),
        data: secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, Zeroizing::new(value.0)))
            .collect(),
    })
}

/// The manifest and the encoded values in it (to be kept out of messages).
fn manifest(secret: &SecretManifest) -> (Value, Vec<Zeroizing<String>>) {
    let mut data = Map::new();
    let mut encoded = Vec::new();
    for (key, value) in &secret.data {
        let text = STANDARD.encode(value.as_slice());
        data.insert(key.clone(), Value::String(text.clone()));
        encoded.push(Zeroizing::new(text));
    }
    let mut metadata = json!({"namespace": secret.namespace, "name": secret.name});
    // An empty map would be a field of ours, and change hands once somebody else labels the Secret.
    if !secret.labels.is_empty() {
        metadata["labels"] = json!(secret.labels);
    }
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": secret.kind,
        "data": data,
    });
    (manifest, encoded)
}

fn redact(error: Error, secret: &SecretManifest, encoded: &[Zeroizing<String>]) -> Error {
    match error {
        Error::Api { action, source } => {
            let plain = secret
                .data
                .values()
                .filter_map(|value| std::str::from_utf8(value).ok());
            let source = source.without(encoded.iter().map(|text| text.as_str()).chain(plain));
            Error::Api {
                action,
                source: Box::new(source),
            }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> SecretManifest {
        SecretManifest {
            namespace: "redis".to_owned(),
            name: "redis-auth".to_owned(),
            kind: "Opaque".to_owned(),
            labels: BTreeMap::new(),
            data: BTreeMap::from([(
                "password".to_owned(),
                Zeroizing::new(b"hunter2-hunter2".to_vec()),
            )]),
        }
    }

    #[test]
    fn debug_shows_keys_and_no_values() {
        let text = format!("{:?}", example());
        assert!(
            text.contains("password") && !text.contains("hunter2"),
            "{text}"
        );
        let read = parse(
            r#"{"type":"Opaque","metadata":{"name":"a"},"data":{"k":"aHVudGVyMg=="}}"#,
            "Secret a",
        )
        .unwrap();
        assert_eq!(read.text("k"), Some("hunter2"));
        let text = format!("{read:?}");
        assert!(
            !text.contains("hunter2") && !text.contains("aHVudGVyMg"),
            "{text}"
        );
    }

    #[test]
    fn an_answer_that_is_no_secret_is_not_quoted() {
        let error = parse(r#"{"data":{"k":12345678}}"#, "Secret a/b").unwrap_err();
        assert!(!error.to_string().contains("12345678"));
    }

    #[test]
    fn a_refusal_that_quotes_the_value_is_redacted() {
        let secret = example();
        let (_, encoded) = manifest(&secret);
        let text = format!(
            "data: Invalid value: {:?} (hunter2-hunter2)",
            encoded[0].as_str()
        );
        let status = kube::core::Status::failure(&text, "Invalid")
            .with_code(422)
            .boxed();
        let error = redact(
            Error::api("apply Secret redis/redis-auth", kube::Error::Api(status)),
            &secret,
            &encoded,
        );
        let shown = format!(
            "{error:?} {error} {}",
            std::error::Error::source(&error).unwrap()
        );
        assert!(
            !shown.contains("hunter2") && !shown.contains(encoded[0].as_str()),
            "{shown}"
        );
    }
}
