//! Tests of the context rules.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;

use super::*;

fn kubeconfig(contexts: &[&str], current: &str) -> Kubeconfig {
    let mut yaml = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: \"{current}\"\nclusters: [{{name: c, cluster: {{server: \"https://127.0.0.1:6443\"}}}}]\nusers: []\ncontexts:\n"
    );
    for context in contexts {
        writeln!(yaml, "- {{name: {context}, context: {{cluster: c}}}}").unwrap();
    }
    Kubeconfig::from_yaml(&yaml).unwrap()
}

fn decided(
    context: Option<&str>,
    expected: Option<&str>,
    config: &Kubeconfig,
) -> Result<String, (String, String)> {
    let options = ConnectOptions {
        kubeconfig: None,
        context: context.map(str::to_owned),
        expected_context: expected.map(str::to_owned),
    };
    decide(&options, config, "a-file").map_err(|error| (error.to_string(), error.hint().unwrap()))
}

#[test]
fn the_current_kind_context_is_taken() {
    let config = kubeconfig(&["kind-blueprint", "prod"], "kind-blueprint");
    assert_eq!(
        decided(None, None, &config),
        Ok("kind-blueprint".to_owned())
    );
    assert_eq!(
        decided(None, Some("kind-blueprint"), &config),
        Ok("kind-blueprint".to_owned())
    );
}

#[test]
fn a_context_that_is_not_kinds_needs_to_be_named() {
    let config = kubeconfig(&["prod"], "prod");
    let (summary, hint) = decided(None, None, &config).unwrap_err();
    assert!(
        summary.contains("prod") && summary.contains("kind-"),
        "{summary}"
    );
    assert!(hint.contains("--context prod"), "{hint}");
    assert_eq!(
        decided(Some("prod"), Some("kind-blueprint"), &config),
        Ok("prod".to_owned())
    );
}

#[test]
fn the_kubeconfig_of_the_wrong_cluster_is_refused() {
    let config = kubeconfig(&["kind-other", "kind-blueprint"], "kind-other");
    let (summary, hint) = decided(None, Some("kind-blueprint"), &config).unwrap_err();
    assert!(
        summary
            .contains("expected the context kind-blueprint, found the current context kind-other"),
        "{summary}"
    );
    assert!(hint.contains("--context kind-blueprint"), "{hint}");
    let (_, hint) = decided(None, Some("kind-third"), &config).unwrap_err();
    assert!(hint.contains("blueprint cluster create"), "{hint}");
}

#[test]
fn a_mistyped_context_is_answered_with_the_nearest() {
    let config = kubeconfig(&["kind-blueprint", "prod"], "prod");
    let (summary, hint) = decided(Some("kind-bluprint"), None, &config).unwrap_err();
    assert!(summary.contains("found kind-blueprint, prod"), "{summary}");
    assert_eq!(hint, "did you mean `--context kind-blueprint`?");
}

#[test]
fn no_current_context_and_a_dangling_one_are_told_apart() {
    let none = kubeconfig(&["kind-a"], "");
    assert!(
        decided(None, None, &none)
            .unwrap_err()
            .0
            .contains("no current context")
    );
    let dangling = kubeconfig(&["kind-a"], "kind-b");
    assert!(
        decided(None, None, &dangling)
            .unwrap_err()
            .0
            .contains("is not defined")
    );
}

#[test]
fn a_missing_file_names_where_it_was_expected() {
    let home = tempfile::tempdir().unwrap();
    let error = files(None, None, Some(home.path())).unwrap_err();
    assert!(error.to_string().contains(".kube/config"), "{error}");
    let error = files(
        Some(Path::new("/nowhere/config")),
        Some(OsStr::new("/x")),
        Some(home.path()),
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("/nowhere/config (--kubeconfig)"),
        "{error}"
    );
}

#[test]
fn of_a_kubeconfig_list_missing_files_are_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real");
    fs::write(&real, "kind: Config").unwrap();
    let list = std::env::join_paths([folder.path().join("missing"), real.clone()]).unwrap();
    assert_eq!(files(None, Some(&list), None).unwrap(), vec![real]);
}

#[test]
fn broken_yaml_is_told_by_line_and_never_quoted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(
        &file,
        "users:\n- name: a\n  user:\n    token: [s3cr3t-token\n",
    )
    .unwrap();
    let options = ConnectOptions {
        kubeconfig: Some(file),
        ..ConnectOptions::default()
    };
    let error = choose(&options).err().unwrap();
    let text = format!("{error} {error:?}");
    assert!(text.contains("line "), "{text}");
    assert!(!text.contains("s3cr3t-token"), "{text}");
}

#[test]
fn near_servers_are_asked_without_a_proxy() {
    for server in [
        "https://127.0.0.1:6443",
        "https://localhost:1",
        "https://10.1.2.3",
        "https://172.18.0.2:6443",
        "https://192.168.1.1",
        "https://[::1]:6443",
        "https://[fd00::1]:6443",
    ] {
        assert!(is_near(server, ""), "{server}");
    }
    assert!(!is_near("https://api.example.com:6443", ""));
    assert!(!is_near("https://8.8.8.8", "9.9.9.9"));
    assert!(is_near(
        "https://api.example.com:6443",
        "other, .example.com"
    ));
    assert!(is_near("https://api.example.com:6443", "*"));
    assert!(!is_near("https://api.badexample.com", "example.com"));
}

#[tokio::test]
async fn the_context_is_usable_although_the_environment_names_a_proxy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    fs::write(
        &file,
        serde_json::to_string(&kubeconfig(&["kind-a"], "kind-a")).unwrap(),
    )
    .unwrap();
    let options = ConnectOptions {
        kubeconfig: Some(file.clone()),
        ..ConnectOptions::default()
    };
    let chosen = choose(&options).unwrap();
    assert_eq!(chosen.file, Some(file));
    assert_eq!(chosen.config().await.unwrap().proxy_url, None);
}

#[test]
fn fuzz_kubeconfig() {
    let kinds = b"apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    certificate-authority-data: AAAA\n    server: https://127.0.0.1:6443\n  name: kind-blueprint\n\
        contexts:\n- context:\n    cluster: kind-blueprint\n    user: kind-blueprint\n  name: kind-blueprint\ncurrent-context: kind-blueprint\npreferences: {}\n\
        users:\n- name: kind-blueprint\n  user:\n    client-certificate-data: AAAA\n    client-key-data: AAAA\n";
    blueprint_fuzzing::fuzz("kubeconfig", &[kinds], |bytes| {
        let result = Kubeconfig::from_yaml(&String::from_utf8_lossy(bytes));
        match &result {
            Ok(config) => {
                if let Ok(context) = decided(None, None, config) {
                    assert!(context.starts_with(KIND));
                    let _ = holds_all_of(config, &context);
                }
                let servers = config
                    .clusters
                    .iter()
                    .filter_map(|named| named.cluster.as_ref()?.server.as_deref());
                for server in servers {
                    let _ = is_near(server, "example.net,.lan");
                }
            }
            Err(error) => assert!(!words(error).is_empty()),
        }
        (&result).into()
    });
}
