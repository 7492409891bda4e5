//! YAML in and out, one way everywhere: serde-saphyr with the settings that helm's and Kubernetes' readers agree with.
//!
//! Both read through `sigs.k8s.io/yaml`, a YAML 1.1 reader: `yes` and `on` are bools, `0755` is octal, `1_000` is a number, dates are strings.

use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_saphyr::Options;
use serde_saphyr::options::DuplicateKeyPolicy;

/// YAML that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{origin} is not valid YAML: {found}")]
pub struct YamlError {
    /// The file.
    pub origin: PathBuf,
    /// Line, column, what.
    pub found: String,
}

/// All documents of a text; empty ones are left out. A key that stands twice in a map is an error: one of the two would be lost.
pub fn documents(text: &str, origin: &Path) -> Result<Vec<Value>, YamlError> {
    read(text, origin, DuplicateKeyPolicy::Error)
}

/// The same for texts that charts produced: there the last of two equal keys wins, as it does in helm.
pub fn rendered_documents(text: &str, origin: &Path) -> Result<Vec<Value>, YamlError> {
    read(text, origin, DuplicateKeyPolicy::LastWins)
}

/// The one document of a text (an empty text is an empty map).
pub fn document(text: &str, origin: &Path) -> Result<Value, YamlError> {
    let mut documents = documents(text, origin)?;
    match documents.len() {
        0 => Ok(Value::Object(serde_json::Map::new())),
        1 => Ok(documents.remove(0)),
        count => Err(YamlError {
            origin: origin.to_owned(),
            found: format!("expected one document, found {count}"),
        }),
    }
}

/// As YAML text whose strings every YAML 1.1 reader takes for strings.
pub fn to_text(value: &Value) -> String {
    let options = serde_saphyr::ser_options! { quote_all: true };
    // A JSON value has string keys, finite numbers and no tags, all that a YAML writer could refuse. JSON is YAML, should it ever do so.
    serde_saphyr::to_string_with_options(value, options).unwrap_or_else(|_| value.to_string())
}

fn read(
    text: &str,
    origin: &Path,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Vec<Value>, YamlError> {
    // A rendered platform with its CRDs is hundreds of documents and some hundred thousand nodes: the reader's own limits are for smaller texts.
    let options: Options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_documents: 100_000, max_nodes: 10_000_000, max_events: 40_000_000 },
        duplicate_keys: duplicate_keys,
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|error| YamlError {
            origin: origin.to_owned(),
            found: error.to_string(),
        })?;
    Ok(documents
        .into_iter()
        .filter(|document| !document.is_null())
        .collect())
}

#[cfg(test)]
mod tests;
