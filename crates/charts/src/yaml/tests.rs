use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Plain scalars that a YAML 1.1 reader takes for something else than a string.
const TREACHEROUS: &[&str] = &[
    "yes",
    "Yes",
    "YES",
    "no",
    "on",
    "On",
    "OFF",
    "off",
    "y",
    "Y",
    "n",
    "N",
    "true",
    "True",
    "FALSE",
    "null",
    "Null",
    "NULL",
    "~",
    "",
    " ",
    "1_000",
    "0755",
    "0o755",
    "0x1F",
    "0b11",
    "1e3",
    "1E3",
    "-1",
    "+1",
    ".5",
    "5.",
    "-.5",
    "1.0",
    "1_0.5",
    ".inf",
    "-.Inf",
    "+.inf",
    ".nan",
    ".NaN",
    "2026-11-30",
    "2026-11-30T10:00:00Z",
    "2026-11-30 10:00:00",
    "190:20:30",
    "1:30",
    "12e03",
    "<<",
    "=",
    "!x",
    "&a",
    "*a",
    "- a",
    "a: b",
    "a #b",
    "#a",
    "@a",
    "`a",
    "%a",
    "|",
    ">",
    "[a",
    "{a",
    "? a",
    ": a",
    "'a'",
    "\"a\"",
    "---",
    "...",
    "a\nb",
    "a\n",
    "\n",
    "a\tb",
    " a",
    "a ",
    "a:",
    "-",
    "?",
    ":",
    "00",
    "08",
    "0",
    "1__0",
    "\u{85}",
    "\u{2028}",
    "\u{feff}a",
    "\u{0}",
    "é",
    "a\\b",
];

/// What go-yaml v2 (under sigs.k8s.io/yaml) may resolve to something else than a string when it stands plain: `resolve.go`, read, with
/// room to spare. A key that is written plain must not match.
fn would_be_misread(plain: &str) -> bool {
    let lower = plain.to_lowercase();
    let words = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "", "<<", ".inf",
        "-.inf", "+.inf", ".nan", "=",
    ];
    words.contains(&lower.as_str())
        || plain.starts_with(|c: char| c.is_ascii_digit() || "+-.&*!|>'\"%@`#{[,?:".contains(c))
}

#[test]
fn treacherous_strings_come_back_and_are_quoted() {
    for text in TREACHEROUS {
        for value in [
            json!({ "key": text }),
            json!({ *text: "value" }),
            json!([text]),
        ] {
            let yaml = to_text(&value);
            assert_eq!(document(&yaml, Path::new("x")).unwrap(), value, "{yaml}");
        }
        let yaml = to_text(&json!({ "key": text }));
        let written = yaml.strip_prefix("key:").unwrap().trim();
        let quoted = written.starts_with(['"', '\'']);
        assert!(quoted, "{text:?} is written as {written}");
        let yaml = to_text(&json!({ *text: 1 }));
        let quoted = yaml.starts_with(['"', '\'', '?']);
        assert!(
            quoted || !would_be_misread(yaml.trim().strip_suffix(": 1").unwrap()),
            "key {text:?} is written as {yaml}"
        );
    }
}

#[test]
fn reads_what_helm_reads() {
    let value = document(
        "a: yes\nb: off\nc: 0755\nd: 1_000\ne: 2026-11-30\nf: ~\ng: 1e3\nh: 0x1F\ni: '0755'\n",
        Path::new("x"),
    )
    .unwrap();
    assert_eq!(
        value,
        json!({"a": true, "b": false, "c": 493, "d": 1000, "e": "2026-11-30", "f": null, "g": 1000.0, "h": 31, "i": "0755"})
    );
}

#[test]
fn anchors_and_merge_keys_are_expanded() {
    let value = document("a: &a {x: 1}\nb: {<<: *a, y: 2}\n", Path::new("x")).unwrap();
    assert_eq!(value["b"], json!({"x": 1, "y": 2}));
}

#[test]
fn empty_documents_are_left_out() {
    let text = "# a comment\n---\n---\na: 1\n---\n# nothing\n---\nb: 2\n...\n";
    assert_eq!(
        documents(text, Path::new("x")).unwrap(),
        [json!({"a": 1}), json!({"b": 2})]
    );
    assert_eq!(document("# nothing\n", Path::new("x")).unwrap(), json!({}));
    assert!(
        document("a: 1\n---\nb: 1\n", Path::new("x"))
            .unwrap_err()
            .found
            .contains("found 2")
    );
}

#[test]
fn errors_name_file_line_and_column() {
    let error = document("a: 1\nb: [1, 2\nc: 3\n", Path::new("values.yaml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("values.yaml is not valid YAML") && error.contains("line"),
        "{error}"
    );
}

#[test]
fn a_key_that_stands_twice_is_refused_except_in_rendered_text() {
    let error = document("a: 1\na: 2\n", Path::new("values.yaml")).unwrap_err();
    assert!(error.found.contains("duplicate"), "{error}");
    assert_eq!(
        rendered_documents("a: 1\na: 2\n", Path::new("x")).unwrap(),
        [json!({"a": 2})]
    );
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[0-9._+:eExob-]{0,8}".prop_map(Value::from),
        prop::sample::select(TREACHEROUS).prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("\\PC{0,8}|[a-z0-9.]{1,8}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn every_value_comes_back(value in any_value().prop_filter("a lone null is no document", |value| !value.is_null())) {
        let text = to_text(&value);
        prop_assert_eq!(documents(&text, Path::new("x")).unwrap(), vec![value], "{}", text);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,100}|[-:a \n\\[\\]{}&*!]{0,40}") {
        let _ = documents(&text, Path::new("x"));
    }
}

#[test]
fn fuzz_yaml() {
    let corpus: [&[u8]; 3] = [
        include_bytes!("../../../../infra/phase2/references/helm-values-gitlab.yaml"),
        include_bytes!("../../../../infra/phase2/references/cluster-postgresql.yaml"),
        b"a: &x {yes: 0755, no: 1_000, 'on': 2026-01-01, ~: 1e3}\nb: *x\nc: |\n  text\n---\n- .inf\n",
    ];
    blueprint_fuzzing::fuzz("YAML", &corpus, |bytes| {
        let result = documents(&String::from_utf8_lossy(bytes), Path::new("x"));
        for value in result.iter().flatten() {
            let text = to_text(value);
            assert_eq!(
                documents(&text, Path::new("x")).unwrap(),
                vec![value.clone()],
                "{text}"
            );
        }
        (&result).into()
    });
}
