//! Tests of what is read from the engine's answers, and of the scripts that run in a node.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::json;

use super::*;

fn container(role: &str, state: &str, address: &str) -> ContainerSummary {
    serde_json::from_value(json!({
        "Names": ["/lab-worker"], "State": state,
        "Labels": {"io.x-k8s.kind.cluster": "lab", "io.x-k8s.kind.role": role},
        "NetworkSettings": {"Networks": {"kind": {"IPAddress": address}}}
    }))
    .unwrap()
}

#[test]
fn a_stopped_node_is_listed_without_an_address() {
    let running = node(container("worker", "running", "172.18.0.3")).unwrap();
    assert_eq!(
        running,
        Node {
            name: "lab-worker".into(),
            role: "worker".into(),
            address: Some([172, 18, 0, 3].into()),
            running: true
        }
    );
    let stopped = node(container("worker", "exited", "")).unwrap();
    assert_eq!((stopped.running, stopped.address), (false, None));
}

#[test]
fn a_load_balancer_is_no_node() {
    assert_eq!(
        node(container("external-load-balancer", "running", "172.18.0.9")),
        None
    );
}

fn sh(script: &str, arguments: &[&str], stdin: &[u8]) -> Output {
    let mut child = Command::new("sh")
        .args(["-c", script, "sh"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin).unwrap();
    child.wait_with_output().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_file_is_written_in_place_with_folders_and_mode() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("certs.d/registry.local/hosts.toml");
    assert!(
        sh(WRITE, &[text(&file), "644", "5"], b"a = 1")
            .status
            .success()
    );
    let inode = fs::metadata(&file).unwrap().ino();
    assert!(
        sh(WRITE, &[text(&file), "600", "2"], b"b\n")
            .status
            .success()
    );
    let after = fs::metadata(&file).unwrap();
    assert_eq!(
        (
            fs::read(&file).unwrap().as_slice(),
            after.ino(),
            after.permissions().mode() & 0o777
        ),
        (b"b\n".as_slice(), inode, 0o600)
    );
}

#[test]
fn input_that_was_cut_off_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let output = sh(
        WRITE,
        &[text(&folder.path().join("f")), "644", "9"],
        b"short",
    );
    assert!(!output.status.success());
    assert_eq!(
        String::from_utf8_lossy(&output.stderr).trim(),
        "got 5 of 9 bytes"
    );
}

#[test]
fn a_missing_file_is_told_from_an_unreadable_one() {
    let folder = tempfile::tempdir().unwrap();
    let code = |path: &Path| sh(READ, &[text(path)], b"").status.code();
    assert_eq!(code(&folder.path().join("missing")), Some(44));
    assert_eq!(code(folder.path()), Some(1));
    let file = folder.path().join("-n");
    fs::write(&file, [0, 255, 10]).unwrap();
    assert_eq!(sh(READ, &[text(&file)], b"").stdout, [0, 255, 10]);
}

#[tokio::test]
async fn a_stopped_node_is_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let docker =
        bollard::Docker::connect_with_unix(text(&socket), 1, bollard::API_DEFAULT_VERSION).unwrap();
    let nodes = Nodes {
        docker,
        cluster: "lab".into(),
    };
    let stopped = node(container("worker", "exited", "")).unwrap();
    let error = nodes.run(&stopped, &["true"], None).await.unwrap_err();
    assert!(
        std::error::Error::source(&error)
            .unwrap()
            .to_string()
            .contains("stopped"),
        "{error}"
    );
}

#[test]
fn a_write_that_is_cut_off_leaves_the_foreign_lines() {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
    let cut_off = sh(WRITE, &[text(&hosts), "644", "40"], b"10.96.");
    assert!(!cut_off.status.success());
    assert_eq!(fs::read_to_string(&hosts).unwrap(), "127.0.0.1 localhost\n");
}
