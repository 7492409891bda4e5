//! `infra/secrets/gitlab-runtime-secrets.yaml`: the chart-managed Secrets, as a multi-document YAML file that `kubectl apply` would take as well.
//!
//! The first and last lines are comments that carry the namespace and the number of Secrets, so that a file cut off between two documents is noticed.
//! Files without them (a kubectl dump, another tool's snapshot) are read as well, `kind: List` included.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blueprint_failpoint::failpoint;
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::private_file::{self, Error, Written};

const EXPECTED: &str = "snapshot of Secrets";
const HEAD: &str = "# blueprint snapshot of namespace ";
const END: &str = "# end of snapshot";
/// How many former versions of a snapshot are kept beside it.
const BACKUPS: u32 = 5;

/// One Secret without anything the server sets and without annotations (`last-applied` would repeat the plain text).
#[derive(Clone, PartialEq, Eq)]
pub struct SnapshotSecret {
    /// `metadata.name`.
    pub name: String,
    /// `type`, for example `Opaque`.
    pub kind: String,
    /// Decoded `data`.
    pub data: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

/// The Secrets of one namespace, sorted by name, so that two snapshots of one state are the same bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The namespace they live in.
    pub namespace: String,
    /// By name.
    pub secrets: BTreeMap<String, SnapshotSecret>,
}

impl fmt::Debug for SnapshotSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotSecret")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("keys", &self.data.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("namespace", &self.namespace)
            .field("secrets", &self.secrets.values().collect::<Vec<_>>())
            .finish()
    }
}

impl Snapshot {
    /// Reads a snapshot; `None` if there is no file. A truncated or foreign file is [`Error::Malformed`].
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        private_file::read_text(path)?
            .map(|text| Self::parse(&text, path))
            .transpose()
    }

    /// Parses snapshot text. `origin` names it in errors.
    pub fn parse(text: &str, origin: &Path) -> Result<Self, Error> {
        let malformed = |found: String| Error::Malformed {
            path: origin.to_owned(),
            expected: EXPECTED,
            found,
        };
        let frame = Frame::of(text).map_err(malformed)?;
        // Neither a snippet nor the reader's message may appear in an error: both can quote a value.
        let options = serde_saphyr::options! { with_snippet: false, legacy_octal_numbers: true };
        let documents: Vec<Option<Document>> = serde_saphyr::from_multiple_with_options(
            text, options,
        )
        .map_err(|error| {
            let place = error.location().map_or_else(String::new, |at| {
                format!(" at line {} column {}", at.line(), at.column())
            });
            malformed(format!(
                "expected v1 Secrets as YAML documents, but the text cannot be read as such{place}"
            ))
        })?;

        let mut namespace = frame.as_ref().map(|frame| frame.namespace.clone());
        let mut secrets = BTreeMap::new();
        for document in documents.into_iter().flatten().flat_map(Document::flatten) {
            let at = secrets.len() + 1;
            let (own, secret) = document
                .into_secret()
                .map_err(|what| malformed(format!("Secret {at}: {what}")))?;
            match &namespace {
                None => namespace = Some(own),
                Some(namespace) if *namespace == own => {}
                Some(namespace) => {
                    let name = &secret.name;
                    return Err(malformed(format!(
                        "Secret {name} is of namespace {own}, the others of {namespace}"
                    )));
                }
            }
            let name = secret.name.clone();
            if secrets.insert(name.clone(), secret).is_some() {
                return Err(malformed(format!("it holds Secret {name} twice")));
            }
        }
        if let Some(frame) = frame
            && frame.secrets != secrets.len()
        {
            let (expected, found) = (frame.secrets, secrets.len());
            return Err(malformed(format!(
                "its first line names {expected} Secrets, but it holds {found}"
            )));
        }
        let namespace = namespace.ok_or_else(|| malformed("it holds no Secret".to_owned()))?;
        Ok(Self { namespace, secrets })
    }

    /// The file's text: documents sorted by name, keys sorted, data base64.
    pub fn to_yaml(&self) -> Zeroizing<String> {
        let mut text = Text(Zeroizing::new(String::with_capacity(self.size_hint())));
        text.line(&[
            HEAD,
            &self.namespace,
            ", Secrets: ",
            &self.secrets.len().to_string(),
        ]);
        for secret in self.secrets.values() {
            text.line(&["---"]);
            text.line(&["apiVersion: v1"]);
            text.line(&["kind: Secret"]);
            text.line(&["metadata:"]);
            text.line(&["  name: ", &quoted(&secret.name)]);
            text.line(&["  namespace: ", &quoted(&self.namespace)]);
            text.line(&["type: ", &quoted(&secret.kind)]);
            if secret.data.is_empty() {
                text.line(&["data: {}"]);
            } else {
                text.line(&["data:"]);
            }
            for (key, value) in &secret.data {
                let value = Zeroizing::new(STANDARD.encode(value.as_slice()));
                text.line(&["  ", &quoted(key), ": \"", &value, "\""]);
            }
        }
        text.line(&[END]);
        text.0
    }

    /// Writes it atomically at 0600; a changed file's former content is kept as `<file>.1` … `<file>.5`. The new one is on disk before the oldest goes.
    pub fn write(&self, path: &Path) -> Result<Written, Error> {
        let Some(prepared) = private_file::prepare(path, self.to_yaml().as_bytes())? else {
            return Ok(Written::Unchanged);
        };
        if let Some(present) = private_file::read(path)? {
            keep(path, &present)?;
        }
        prepared.commit()
    }

    /// Upper bound of the text's length, so that the buffer never moves and leaves a copy behind.
    fn size_hint(&self) -> usize {
        let mut size = 256 + self.namespace.len();
        for secret in self.secrets.values() {
            size += 256 + 6 * (secret.name.len() + self.namespace.len() + secret.kind.len());
            size += secret
                .data
                .iter()
                .map(|(key, value)| 16 + 6 * key.len() + value.len().div_ceil(3) * 4)
                .sum::<usize>();
        }
        size
    }
}

/// Moves `<file>.1` … up by one (the fifth falls off) and keeps `present` as `<file>.1`. The file itself stays where it is. A write that was cut off after
/// this has kept it already.
fn keep(path: &Path, present: &[u8]) -> Result<(), Error> {
    let newest = backup(path, 1);
    if private_file::read(&newest)?.is_some_and(|kept| kept.as_slice() == present) {
        return Ok(());
    }
    // Written before anything is moved, so that a full disk costs none of the five.
    let copy = backup(path, 0);
    private_file::write(&copy, present)?;
    for number in (1..BACKUPS).rev() {
        let (from, to) = (backup(path, number), backup(path, number + 1));
        match fs::rename(&from, &to) {
            Ok(()) => failpoint!(after, "rename", "a former snapshot to .{}", number + 1),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io("rename", &from)(source)),
        }
    }
    fs::rename(&copy, &newest).map_err(Error::io("rename", &copy))?;
    failpoint!(after, "rename", "the present snapshot to .1");
    Ok(())
}

fn backup(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Growing text whose pieces are written straight into one buffer.
struct Text(Zeroizing<String>);

impl Text {
    fn line(&mut self, pieces: &[&str]) {
        for piece in pieces {
            self.0.push_str(piece);
        }
        self.0.push('\n');
    }
}

/// A double-quoted YAML scalar: never taken for a number, a bool or a date. Names, types and keys of Secrets are printable ASCII
/// (apimachinery's validation), anything else was refused before it came here or is escaped as JSON does.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// What a file written by blueprint says about itself.
struct Frame {
    namespace: String,
    secrets: usize,
}

impl Frame {
    /// `None` for a file of other origin; an error for one of ours that was cut off.
    fn of(text: &str) -> Result<Option<Self>, String> {
        let Some(rest) = text.strip_prefix(HEAD) else {
            return Ok(None);
        };
        let first = rest.lines().next().unwrap_or_default();
        let (namespace, secrets) = first
            .split_once(", Secrets: ")
            .and_then(|(namespace, count)| Some((namespace.to_owned(), count.parse().ok()?)))
            .ok_or("its first line is damaged")?;
        if text.trim_end().lines().next_back() != Some(END) {
            return Err(format!("it is cut off: the last line `{END}` is missing"));
        }
        Ok(Some(Self { namespace, secrets }))
    }
}

/// Text that may hold a value: wiped when dropped.
struct Base64Text(Zeroizing<String>);

impl<'de> Deserialize<'de> for Base64Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Zeroizing::new(text)))
    }
}

#[derive(Deserialize)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "apiVersion")]
    api_version: Option<String>,
    kind: Option<String>,
    metadata: Option<Metadata>,
    #[serde(rename = "type")]
    secret_type: Option<String>,
    data: Option<BTreeMap<String, Base64Text>>,
    #[serde(rename = "stringData")]
    string_data: Option<BTreeMap<String, Base64Text>>,
    items: Option<Vec<Document>>,
}

impl Document {
    fn flatten(mut self) -> Vec<Self> {
        match (self.kind.as_deref(), self.items.take()) {
            (Some("List" | "SecretList"), Some(items)) => items,
            _ => vec![self],
        }
    }

    /// Its namespace and the Secret.
    fn into_secret(self) -> Result<(String, SnapshotSecret), String> {
        let api_version = self.api_version.as_deref().unwrap_or("nothing");
        let kind = self.kind.as_deref().unwrap_or("nothing");
        if (api_version, kind) != ("v1", "Secret") {
            return Err(format!(
                "expected apiVersion v1 and kind Secret, found {api_version} and {kind}"
            ));
        }
        let metadata = self.metadata.ok_or("it has no metadata")?;
        let name = metadata
            .name
            .filter(|name| is_dns_name(name))
            .ok_or("metadata.name is missing or no valid name")?;
        let namespace = metadata
            .namespace
            .filter(|namespace| is_dns_name(namespace))
            .ok_or_else(|| format!("metadata.namespace of {name} is missing or no valid name"))?;
        if self.string_data.is_some_and(|data| !data.is_empty()) {
            return Err(format!("{name} has stringData; move it to data, base64"));
        }
        let mut data = BTreeMap::new();
        for (key, value) in self.data.unwrap_or_default() {
            if !is_data_key(&key) {
                return Err(format!("{name} has a key that is no valid key of a Secret"));
            }
            let bytes = STANDARD
                .decode(value.0.as_bytes())
                .map_err(|_| format!("the value of {name}.{key} is not base64"))?;
            data.insert(key, Zeroizing::new(bytes));
        }
        let kind = self.secret_type.unwrap_or_else(|| "Opaque".to_owned());
        Ok((namespace, SnapshotSecret { name, kind, data }))
    }
}

/// Names of Secrets and namespaces (RFC 1123 subdomain).
fn is_dns_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
        })
}

/// Keys of a Secret's data (apimachinery's `IsConfigMapKey`).
fn is_data_key(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 253
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

#[cfg(test)]
mod tests;
