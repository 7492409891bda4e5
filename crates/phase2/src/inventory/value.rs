//! A credential's value: one text, or several with names (unseal keys, a Secret with several keys). Debug shows none.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// Compared, and shown only on request.
#[derive(Clone, PartialEq, Eq)]
pub struct Value(BTreeMap<String, Zeroizing<Vec<u8>>>);

impl fmt::Debug for Value {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_set().entries(self.0.keys()).finish()
    }
}

impl Value {
    /// One value, without the line ends behind it (a file has one, a Secret has none).
    pub(crate) fn single(bytes: &[u8]) -> Self {
        let end = bytes
            .iter()
            .rposition(|byte| !matches!(byte, b'\n' | b'\r'))
            .map_or(0, |last| last + 1);
        Self(BTreeMap::from([(
            String::new(),
            Zeroizing::new(bytes[..end].to_vec()),
        )]))
    }

    /// Several, by name.
    pub(crate) fn several(values: BTreeMap<String, Zeroizing<Vec<u8>>>) -> Self {
        Self(values)
    }

    /// For a terminal: the bare value, or `name: value` lines; what is no text comes as base64.
    pub fn lines(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::new());
        for (name, bytes) in &self.0 {
            if !name.is_empty() {
                text.push_str(name);
            }
            if let Ok(plain) = std::str::from_utf8(bytes) {
                if !name.is_empty() {
                    text.push_str(if plain.contains('\n') { ":\n" } else { ": " });
                }
                text.push_str(plain.trim_end_matches('\n'));
            } else {
                text.push_str(if name.is_empty() { "" } else { " (base64): " });
                text.push_str(&Zeroizing::new(STANDARD.encode(bytes)));
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_files_line_end_is_no_difference() {
        assert!(Value::single(b"hush\n") == Value::single(b"hush"));
        assert!(Value::single(b"hush ") != Value::single(b"hush"));
        assert!(Value::single(b"\n") == Value::single(b""));
    }

    #[test]
    fn debug_shows_names_and_no_value() {
        let value = Value::several(BTreeMap::from([(
            "token".to_owned(),
            Zeroizing::new(b"hush".to_vec()),
        )]));
        let shown = format!("{value:?}");
        assert!(
            shown.contains("token") && !shown.contains("hush") && !shown.contains("104"),
            "{shown}"
        );
    }

    #[test]
    fn what_is_shown_can_be_copied() {
        assert_eq!(*Value::single(b"hush\n").lines(), "hush\n");
        let value = Value::several(BTreeMap::from([
            ("a".to_owned(), Zeroizing::new(b"x".to_vec())),
            ("b".to_owned(), Zeroizing::new(vec![0xff])),
            ("c".to_owned(), Zeroizing::new(b"one\ntwo\n".to_vec())),
        ]));
        assert_eq!(*value.lines(), "a: x\nb (base64): /w==\nc:\none\ntwo\n");
    }
}
