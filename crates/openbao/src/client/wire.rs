//! Bodies as they go over the wire. What can hold a secret is wiped, and no error quotes it.

use std::collections::BTreeMap;

use reqwest::RequestBuilder;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde::de::DeserializeOwned;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Error, Mount};

/// `sys/unseal`.
#[derive(Serialize)]
pub(super) struct Key<'a> {
    #[serde(serialize_with = "exposed")]
    pub(super) key: &'a SecretString,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) migrate: bool,
}

/// `sys/rotate/root/update` and `…/verify`.
#[derive(Serialize)]
pub(super) struct KeyOf<'a> {
    pub(super) nonce: &'a str,
    #[serde(serialize_with = "exposed")]
    pub(super) key: &'a SecretString,
}

/// An answer with its content under `data`.
#[derive(Deserialize)]
pub(super) struct Wrapped<T> {
    pub(super) data: T,
}

/// A KV version 2 write.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    pub(super) data: Pairs<'a>,
}

/// A secret's keys and values.
pub(super) struct Pairs<'a>(pub(super) &'a BTreeMap<String, SecretString>);

impl Serialize for Pairs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            map.serialize_entry(key, value.expose_secret())?;
        }
        map.end()
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's serialize_with hands a reference to the field"
)]
fn exposed<S: Serializer>(secret: &&SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose_secret())
}

/// A JSON body that is written here rather than by reqwest, so that a failure has our words.
pub(super) fn with_body(
    request: RequestBuilder,
    body: &impl Serialize,
    operation: &str,
) -> Result<RequestBuilder, Error> {
    let bytes = serde_json::to_vec(body)
        .map_err(|_| malformed(operation, "the request could not be written as JSON"))?;
    Ok(request
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .body(bytes))
}

/// Parses an answer.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8], operation: &str) -> Result<T, Error> {
    // serde's message may quote the body; its place in it does not.
    serde_json::from_slice(body).map_err(|error| {
        let kind = if error.is_data() {
            "a field is missing or of another kind than documented"
        } else {
            "it is not JSON"
        };
        malformed(
            operation,
            &format!("{kind}, at line {} column {}", error.line(), error.column()),
        )
    })
}

/// `errors` of a refusal; empty when there is none.
pub(super) fn messages(body: &[u8]) -> Vec<String> {
    #[derive(Deserialize)]
    struct Refusal {
        #[serde(default)]
        errors: Vec<String>,
    }
    serde_json::from_slice::<Refusal>(body)
        .map(|refusal| refusal.errors)
        .unwrap_or_default()
}

/// `sys/mounts`: under `data` since there are request ids, and on the top level for old clients.
pub(super) fn mounts(body: &[u8], operation: &str) -> Result<BTreeMap<String, Mount>, Error> {
    #[derive(Deserialize)]
    struct Answer {
        data: BTreeMap<String, Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        #[serde(rename = "type")]
        kind: String,
        options: Option<BTreeMap<String, String>>,
    }
    let answer: Answer = parse(body, operation)?;
    let mount = |entry: Entry| Mount {
        kind: entry.kind,
        version: entry
            .options
            .and_then(|mut options| options.remove("version")),
    };
    Ok(answer
        .data
        .into_iter()
        .map(|(path, entry)| (path, mount(entry)))
        .collect())
}

/// `data.data` of a KV version 2 read. A value that is no string (someone wrote a number by hand) comes as its JSON text.
pub(super) fn kv_data(
    body: &[u8],
    operation: &str,
) -> Result<BTreeMap<String, SecretString>, Error> {
    #[derive(Deserialize)]
    struct Answer {
        data: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        data: BTreeMap<String, Hidden>,
    }
    let answer: Answer = parse(body, operation)?;
    Ok(answer
        .data
        .data
        .into_iter()
        .map(|(key, value)| (key, value.0))
        .collect())
}

/// `data.metadata.created_time` of the same answer.
pub(super) fn kv_written(body: &[u8], operation: &str) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Answer {
        data: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        created_time: String,
    }
    let answer: Answer = parse(body, operation)?;
    Ok(answer.data.metadata.created_time)
}

/// The keys and the verification nonce of `sys/rotate/root/update`; `None` while more keys are needed.
pub(super) fn rotated(
    body: &[u8],
    operation: &str,
) -> Result<Option<(Vec<SecretString>, String)>, Error> {
    #[derive(Deserialize)]
    struct Progress {
        #[serde(default)]
        complete: bool,
        #[serde(default)]
        keys_base64: Vec<Hidden>,
        #[serde(default)]
        verification_nonce: String,
    }
    let answer: Wrapped<Progress> = parse(body, operation)?;
    let Progress {
        complete,
        keys_base64,
        verification_nonce,
    } = answer.data;
    if !complete {
        return Ok(None);
    }
    if keys_base64.is_empty() || verification_nonce.is_empty() {
        return Err(malformed(
            operation,
            "it is complete without keys to verify",
        ));
    }
    let keys = keys_base64.into_iter().map(|key| key.0).collect();
    Ok(Some((keys, verification_nonce)))
}

/// A value on its way into a [`SecretString`].
struct Hidden(SecretString);

impl<'de> Deserialize<'de> for Hidden {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match super::Value::deserialize(deserializer)? {
            super::Value::String(text) => text,
            other => other.to_string(),
        };
        Ok(Self(SecretString::from(text)))
    }
}

fn malformed(operation: &str, found: &str) -> Error {
    Error::Malformed {
        operation: operation.to_owned(),
        found: found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn arbitrary_answers_never_panic(body: Vec<u8>) {
            let _ = messages(&body);
            let _ = mounts(&body, "x");
            let _ = kv_data(&body, "x");
            let _ = kv_written(&body, "x");
            let _ = rotated(&body, "x");
            let _ = parse::<super::super::SealStatus>(&body, "x");
        }
    }

    #[test]
    fn what_cannot_be_read_is_not_quoted() {
        for body in [
            r#"{"data": {"data": "hush"}}"#,
            "hush",
            r#"{"data": {"data": {"a": "hush"}"#,
        ] {
            let error = kv_data(body.as_bytes(), "secret/data/x").unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
        }
    }

    #[test]
    fn a_value_that_is_no_string_comes_as_json() {
        let data = kv_data(br#"{"data": {"data": {"a": 1, "b": "x"}}}"#, "x").unwrap();
        assert_eq!(data["a"].expose_secret(), "1");
        assert_eq!(data["b"].expose_secret(), "x");
    }
}
