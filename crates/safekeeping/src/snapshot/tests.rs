use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;

use super::*;

fn secret(name: &str, data: &[(&str, &[u8])]) -> SnapshotSecret {
    SnapshotSecret {
        name: name.to_owned(),
        kind: "Opaque".to_owned(),
        data: data
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Zeroizing::new(value.to_vec())))
            .collect(),
    }
}

fn snapshot(secrets: impl IntoIterator<Item = SnapshotSecret>) -> Snapshot {
    Snapshot {
        namespace: "gitlab".to_owned(),
        secrets: secrets
            .into_iter()
            .map(|secret| (secret.name.clone(), secret))
            .collect(),
    }
}

fn sample() -> Snapshot {
    snapshot([
        secret(
            "gitlab-rails-secret",
            &[("secrets.yml", b"production:\n  secret_key_base: hush\n")],
        ),
        secret(
            "gitlab-gitaly-secret",
            &[("token", b"hush"), ("yes", b"\x00\xff"), ("0755", b"")],
        ),
        secret("gitlab-empty", &[]),
    ])
}

fn malformed(text: &str) -> String {
    let error = Snapshot::parse(text, Path::new("snapshot.yaml")).unwrap_err();
    let debug = format!("{error:?} {error}");
    assert!(
        !debug.contains("hush") && !debug.contains("aHVzaA"),
        "leaks a value: {debug}"
    );
    error.to_string()
}

#[test]
fn round_trip_is_stable_bytes_sorted_by_name() {
    let text = sample().to_yaml();
    assert!(text.contains("  \"token\": \"aHVzaA==\"\n"));
    assert!(text.find("gitlab-empty").unwrap() < text.find("gitlab-gitaly-secret").unwrap());
    let back = Snapshot::parse(&text, Path::new("x")).unwrap();
    assert!(back == sample());
    assert_eq!(*back.to_yaml(), *text);
    assert!(text.len() <= sample().size_hint());
}

#[test]
fn a_snapshot_of_nothing_comes_back() {
    let empty = snapshot([]);
    assert!(Snapshot::parse(&empty.to_yaml(), Path::new("x")).unwrap() == empty);
}

#[test]
fn truncated_snapshot_is_refused_wherever_it_is_cut() {
    let text = sample().to_yaml();
    for end in 1..text.trim_end().len() {
        let cut = &text[..end];
        // Cut within the first comment, the file is no longer known as ours: it holds no Secret then.
        malformed(cut);
    }
}

#[test]
fn edited_snapshots_are_refused_with_what_is_wrong() {
    let text = sample().to_yaml();
    assert!(
        malformed(&text.replace("Secrets: 3", "Secrets: 4"))
            .contains("names 4 Secrets, but it holds 3")
    );
    assert!(
        malformed(&text.replace("\"aHVzaA==\"", "\"aHVzaA=\""))
            .contains("gitlab-gitaly-secret.token is not base64")
    );
    assert!(
        malformed(&text.replacen("kind: Secret", "kind: ConfigMap", 1))
            .contains("found v1 and ConfigMap")
    );
    assert!(
        malformed(&text.replacen("namespace: \"gitlab\"", "namespace: \"other\"", 1))
            .contains("namespace other")
    );
    assert!(malformed(&text.replace("gitlab-empty", "gitlab-rails-secret")).contains("twice"));
    assert!(malformed(&text.replace("\ndata:", "\nstringData:")).contains("stringData"));
}

#[test]
fn foreign_files_are_refused_without_quoting_them() {
    assert!(malformed("").contains("no Secret"));
    assert!(malformed("hush").contains("line 1"));
    assert!(malformed("{\"token\": \"hush\"").contains("cannot be read"));
    assert!(malformed("- hush\n- hush\n").contains("cannot be read"));
    assert!(malformed("data: hush\n").contains("cannot be read"));
    assert!(malformed("token: hush\n").contains("apiVersion"));
    assert!(
        malformed("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {a: aHVzaA==}\n")
            .contains("namespace of x")
    );
}

#[test]
fn a_dump_by_kubectl_is_read() {
    let text = "
apiVersion: v1
items:
- apiVersion: v1
  data:
    password: aHVzaA==
    \"1\": MQ==
  kind: Secret
  metadata:
    creationTimestamp: \"2026-01-01T00:00:00Z\"
    name: gitlab-gitlab-initial-root-password
    namespace: gitlab
    uid: 1-2
  type: Opaque
kind: List
metadata:
  resourceVersion: \"\"
";
    let snapshot = Snapshot::parse(text, Path::new("x")).unwrap();
    assert_eq!(snapshot.namespace, "gitlab");
    let secret = &snapshot.secrets["gitlab-gitlab-initial-root-password"];
    assert_eq!(secret.data["password"].as_slice(), b"hush");
    assert_eq!(secret.data["1"].as_slice(), b"1");
}

#[test]
fn debug_shows_keys_but_no_value() {
    let text = format!("{:?}", sample());
    assert!(text.contains("secrets.yml") && !text.contains("hush") && !text.contains("104"));
}

#[test]
fn five_former_versions_are_kept() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secrets/snapshot.yaml");
    let version = |n: u8| snapshot([secret("x", &[("n", &[n])])]);
    assert_eq!(version(0).write(&path).unwrap(), Written::Created);
    assert_eq!(version(0).write(&path).unwrap(), Written::Unchanged);
    assert!(!backup(&path, 1).exists());
    for n in 1..=7 {
        assert_eq!(version(n).write(&path).unwrap(), Written::Replaced);
    }
    assert!(Snapshot::read(&path).unwrap().unwrap() == version(7));
    for number in 1..=5_u8 {
        let file = backup(&path, number.into());
        assert!(Snapshot::read(&file).unwrap().unwrap() == version(7 - number));
        assert_eq!(
            fs::metadata(&file).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 6);
    assert!(Snapshot::read(&home.path().join("none")).unwrap().is_none());
}

#[test]
fn a_write_that_was_cut_off_before_the_rename_keeps_nothing_twice() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("snapshot.yaml");
    let version = |n: u8| snapshot([secret("x", &[("n", &[n])])]);
    for n in 0..=6 {
        version(n).write(&path).unwrap();
    }
    let present = private_file::read(&path).unwrap().unwrap();
    keep(&path, &present).unwrap();
    version(7).write(&path).unwrap();
    for number in 1..=5_u8 {
        let kept = Snapshot::read(&backup(&path, number.into()))
            .unwrap()
            .unwrap();
        assert!(kept == version(7 - number), "{number}");
    }
}

#[test]
fn a_snapshot_that_cannot_be_written_costs_no_former_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("snapshot.yaml");
    let version = |n: u8| snapshot([secret("x", &[("n", &[n])])]);
    for n in 0..=6 {
        version(n).write(&path).unwrap();
    }
    // The next copy's place is taken by a folder: writing fails there, before anything was moved.
    fs::create_dir(backup(&path, 0)).unwrap();
    version(7).write(&path).unwrap_err();
    assert!(Snapshot::read(&path).unwrap().unwrap() == version(6));
    for number in 1..=5_u8 {
        let kept = Snapshot::read(&backup(&path, number.into()))
            .unwrap()
            .unwrap();
        assert!(kept == version(6 - number), "{number}");
    }
}

prop_compose! {
    fn any_secret()(
        name in "[a-z0-9][a-z0-9.-]{0,20}",
        kind in "[A-Za-z./-]{0,20}",
        data in prop::collection::btree_map("[A-Za-z0-9._-]{1,12}", prop::collection::vec(any::<u8>(), 0..80), 0..6),
    ) -> SnapshotSecret {
        SnapshotSecret { name, kind, data: data.into_iter().map(|(key, value)| (key, Zeroizing::new(value))).collect() }
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_come_back(secrets in prop::collection::vec(any_secret(), 0..6)) {
        let snapshot = snapshot(secrets);
        let text = snapshot.to_yaml();
        prop_assert_eq!(&*text, &*snapshot.to_yaml());
        prop_assert!(text.len() <= snapshot.size_hint());
        prop_assert!(Snapshot::parse(&text, Path::new("x")).unwrap() == snapshot);
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        let _ = Snapshot::parse(&text, Path::new("x"));
    }
}

#[test]
fn fuzz_snapshot() {
    let ours = sample().to_yaml();
    let kubectl = b"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: a, namespace: gitlab, uid: x}\n  type: Opaque\n  data: {token: aHVzaA==}\n";
    blueprint_fuzzing::fuzz("snapshot", &[ours.as_bytes(), kubectl], |bytes| {
        let result = Snapshot::parse(&String::from_utf8_lossy(bytes), Path::new("x"));
        if let Ok(snapshot) = &result {
            let text = snapshot.to_yaml();
            assert!(text.len() <= snapshot.size_hint());
            let back = Snapshot::parse(&text, Path::new("x")).unwrap();
            assert!(back == *snapshot, "what was read is not what is written");
        }
        (&result).into()
    });
}
