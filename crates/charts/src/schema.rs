//! JSON Schemas of the references, checked offline.

use serde_json::Value;

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer to the place.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// Checks `value`; an unusable schema is one violation at ``.
pub fn check(schema: &Value, value: &Value) -> Vec<Violation> {
    todo!()
}
