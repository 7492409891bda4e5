//! JSON Schemas of the references, checked offline.

use jsonschema::Draft;
use serde_json::Value;

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer to the place.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// Checks `value`; an unusable schema is one violation whose place is empty.
///
/// Nothing is fetched: a schema that refers to another document is unusable. Messages leave the offending value out (it may be a credential put in the wrong place).
pub fn check(schema: &Value, value: &Value) -> Vec<Violation> {
    let validator = match jsonschema::options()
        .with_draft(Draft::Draft202012)
        .build(schema)
    {
        Ok(validator) => validator,
        Err(error) => {
            return vec![Violation {
                at: String::new(),
                message: format!("the schema cannot be used: {error}"),
            }];
        }
    };
    let mut violations: Vec<Violation> = validator
        .iter_errors(value)
        .map(|error| Violation {
            at: error.instance_path().as_str().to_owned(),
            message: error.masked().to_string(),
        })
        .collect();
    violations.sort_by(|a, b| (&a.at, &a.message).cmp(&(&b.at, &b.message)));
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_name_their_place_and_not_the_value() {
        let schema = json!({
            "type": "object",
            "required": ["replicas"],
            "additionalProperties": false,
            "properties": {"replicas": {"type": "integer", "minimum": 1}, "auth": {"properties": {"existingSecret": {"type": "string"}}}}
        });
        assert_eq!(check(&schema, &json!({"replicas": 1})), []);
        let violations = check(
            &schema,
            &json!({"replicas": 0, "auth": {"existingSecret": ["hush"]}, "passwort": "hush"}),
        );
        let places: Vec<&str> = violations
            .iter()
            .map(|violation| violation.at.as_str())
            .collect();
        assert_eq!(places, ["", "/auth/existingSecret", "/replicas"]);
        assert!(violations[0].message.contains("passwort"), "{violations:?}");
        assert!(
            !format!("{violations:?}").contains("hush"),
            "{violations:?}"
        );
    }

    #[test]
    fn gitlab_schema_with_a_remote_reference_fails_cleanly_offline() {
        let schema = json!({"$ref": "https://raw.githubusercontent.com/yannh/kubernetes-json-schema/master/v1.29.0/affinity.json"});
        let violations = check(&schema, &json!({}));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].at, "");
        assert!(
            violations[0].message.contains("cannot be used"),
            "{violations:?}"
        );
        let broken = check(&json!({"type": "strng"}), &json!({}));
        assert_eq!(broken.len(), 1);
    }
}
