//! YAML in and out, one way everywhere: serde-saphyr with the settings that helm's and Kubernetes' readers agree with.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// YAML that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{origin} is not valid YAML: {found}")]
pub struct YamlError {
    /// The file.
    pub origin: PathBuf,
    /// Line, column, what.
    pub found: String,
}

/// All documents of a text; empty ones are left out.
pub fn documents(text: &str, origin: &Path) -> Result<Vec<Value>, YamlError> {
    todo!()
}

/// The one document of a text (an empty text is an empty map).
pub fn document(text: &str, origin: &Path) -> Result<Value, YamlError> {
    todo!()
}

/// As YAML text whose strings every YAML 1.1 reader takes for strings.
pub fn to_text(value: &Value) -> String {
    todo!()
}
