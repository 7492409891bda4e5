//! Documents that name tests name tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::e2e;

/// Below docs/: tables whose last column is `tests`, and sentences after `Tests:`.
/// With the number of tests that each names at least: a table that is no longer read would name none.
const DOCUMENTS: [(&str, usize); 3] = [("identity.md", 20), ("faults.md", 20), ("trust.md", 5)];
/// Of docs/faults.md: all are there, each with a test.
const FAULTS: usize = 40;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The tests that a document names.
fn named(document: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_table = false;
    for line in document.lines() {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
        let last = cells.last().copied().unwrap_or_default().trim();
        if !line.starts_with('|') {
            in_table = false;
        } else if last == "tests" {
            in_table = true;
        } else if in_table {
            found.extend(quoted(last).map(str::to_owned));
        }
    }
    for paragraph in document.split("\n\n").filter(|text| !text.starts_with('|')) {
        if let Some((_, tests)) = paragraph.split_once("Tests:") {
            found.extend(quoted(tests).map(str::to_owned));
        }
    }
    found
}

/// Names of functions that are tests, in all sources below a folder.
fn tests_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            tests_in(&fs::read_to_string(&path).unwrap(), found);
        }
    }
}

fn tests_in(source: &str, found: &mut BTreeSet<String>) {
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if marked && let Some((_, rest)) = line.split_once("fn ") {
            found.extend(rest.split('(').next().map(str::to_owned));
            marked = false;
        }
    }
}

#[test]
fn every_test_that_a_document_names_exists() {
    let mut there: BTreeSet<String> = e2e::names().into_iter().map(str::to_owned).collect();
    tests_below(&root().join("crates"), &mut there);
    tests_below(&root().join("xtask"), &mut there);
    for (document, least) in DOCUMENTS {
        let text = fs::read_to_string(root().join("docs").join(document)).unwrap();
        let named = named(&text);
        assert!(
            named.len() >= least,
            "{document} names {} tests",
            named.len()
        );
        let missing: Vec<_> = named.difference(&there).collect();
        assert!(missing.is_empty(), "{document} names {missing:?}");
    }
}

/// Number, level and first test of each row of docs/faults.md.
fn faults(document: &str) -> Vec<(usize, &str, &str)> {
    document
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.trim().trim_matches('|').split('|').collect();
            let number = cells.first()?.trim().parse().ok()?;
            let [.., level, tests] = cells.as_slice() else {
                return None;
            };
            Some((number, level.trim(), quoted(tests).next()?))
        })
        .collect()
}

#[test]
fn every_fault_has_a_test_at_the_level_that_is_said() {
    let text = fs::read_to_string(root().join("docs/faults.md")).unwrap();
    let rows = faults(&text);
    let numbers: Vec<usize> = rows.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=FAULTS).collect::<Vec<_>>());
    let below = |folders: &[&str]| {
        let mut found = BTreeSet::new();
        for folder in folders {
            tests_below(&root().join("crates").join(folder), &mut found);
        }
        found
    };
    let servers = below(&[
        "cluster/tests/api",
        "phase2/tests/api",
        "charts/tests/helm",
        "openbao/tests/server",
    ]);
    let checks = e2e::names();
    let mut counts = [0; 3];
    for (number, level, test) in rows {
        let (at, holds) = match level {
            "lab" => (0, checks.contains(&test)),
            "server" => (1, servers.contains(test)),
            "code" => (2, !checks.contains(&test) && !servers.contains(test)),
            other => panic!("fault {number} has the level {other}"),
        };
        assert!(
            holds,
            "{test}, the first test of fault {number}, is not at level {level}"
        );
        counts[at] += 1;
    }
    let [lab, server, code] = counts;
    let said = format!(
        "{FAULTS} of {FAULTS} have a test: {lab} on the lab, {server} against servers, {code} beside the code."
    );
    assert!(text.contains(&said), "docs/faults.md does not say: {said}");
}

#[test]
fn tests_are_read_from_last_columns_and_sentences_only() {
    let text = "| a `x` | tests |\n|---|---|\n| `no` | `one_test`, `a-check` |\n\nWords `no`. Tests:\n`two_test`.\n\n| `no` | other |\n|---|---|\n| a | `no` |\n";
    let named: Vec<_> = named(text).into_iter().collect();
    assert_eq!(named, ["a-check", "one_test", "two_test"]);
    let mut found = BTreeSet::new();
    tests_in(
        "#[tokio::test]\nasync fn one() {}\nfn helper() {}\n#[test]\n#[ignore]\nfn two() {}",
        &mut found,
    );
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["one", "two"]);
}
