//! What needs kubelets and node containers: exec, port-forward, node files. Run by the lab's tests (`make e2e`), with KUBECONFIG and `DOCKER_HOST` set;
//! it leaves the cluster as it was.

use std::fmt::Write as _;

use blueprint_cluster::{Cluster, ConnectOptions, Error, Nodes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const NEEDS: &str = "needs a kind cluster";

async fn cluster() -> Cluster {
    Cluster::connect(&ConnectOptions::default())
        .await
        .unwrap_or_else(|error| panic!("{NEEDS}: {error}"))
}

async fn nodes(cluster: &Cluster) -> Nodes {
    let name = cluster.context().strip_prefix("kind-").unwrap();
    Nodes::connect(name)
        .await
        .unwrap_or_else(|error| panic!("{NEEDS}: {error}"))
}

/// A pod whose image has a shell.
async fn kube_proxy(cluster: &Cluster) -> String {
    cluster
        .ready_pod("kube-system", "k8s-app=kube-proxy")
        .await
        .unwrap()
        .expect(NEEDS)
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn a_command_in_a_pod_gets_its_input_and_gives_its_exit_code() {
    let cluster = cluster().await;
    let pod = kube_proxy(&cluster).await;
    let script = "cat; echo talk >&2; exit 3";
    let output = cluster
        .exec(
            "kube-system",
            &pod,
            None,
            &["sh", "-c", script],
            Some(b"a\nb\n"),
        )
        .await
        .unwrap();
    assert_eq!(
        (output.code, output.stdout.as_str(), output.stderr.as_str()),
        (3, "a\nb\n", "talk\n")
    );
    let silent = cluster
        .exec("kube-system", &pod, None, &["true"], None)
        .await
        .unwrap();
    assert_eq!((silent.code, silent.stdout.as_str()), (0, ""));
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn large_output_on_both_streams_does_not_block() {
    let cluster = cluster().await;
    let pod = kube_proxy(&cluster).await;
    let script = "seq 1 200000 >&2 & seq 1 200000; wait";
    let output = cluster
        .exec("kube-system", &pod, None, &["sh", "-c", script], None)
        .await
        .unwrap();
    let expected = (1..=200_000).fold(String::new(), |mut text, number| {
        writeln!(text, "{number}").unwrap();
        text
    });
    assert_eq!(output.code, 0);
    assert!(
        output.stdout == expected && output.stderr == expected,
        "{} and {} bytes",
        output.stdout.len(),
        output.stderr.len()
    );
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn large_input_arrives_whole() {
    let cluster = cluster().await;
    let pod = kube_proxy(&cluster).await;
    let input = vec![b'x'; 3 * 1024 * 1024];
    let output = cluster
        .exec("kube-system", &pod, None, &["wc", "-c"], Some(&input))
        .await
        .unwrap();
    assert_eq!(output.stdout.trim(), input.len().to_string());
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn a_program_that_is_not_there_is_no_exit_code_of_ours() {
    let cluster = cluster().await;
    let pod = kube_proxy(&cluster).await;
    match cluster
        .exec("kube-system", &pod, None, &["no-such-program"], None)
        .await
    {
        Ok(output) => assert!(matches!(output.code, 126 | 127), "{output:?}"),
        Err(error) => assert!(
            matches!(error, Error::Stream { .. } | Error::Api { .. }),
            "{error:?}"
        ),
    }
    let missing = cluster
        .exec("kube-system", "no-such-pod", None, &["true"], None)
        .await
        .unwrap_err();
    assert!(
        matches!(&missing, Error::Api { source, .. } if source.is_not_found()),
        "{missing:?}"
    );
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn a_forwarded_port_serves_several_connections_until_it_is_dropped() {
    let cluster = cluster().await;
    let pod = cluster
        .ready_pod("kube-system", "k8s-app=kube-dns")
        .await
        .unwrap()
        .expect(NEEDS);
    let forward = cluster
        .port_forward("kube-system", &pod, 8080)
        .await
        .unwrap();
    for _ in 0..3 {
        let mut connection = TcpStream::connect(forward.address()).await.unwrap();
        connection
            .write_all(b"GET /health HTTP/1.0\r\nHost: coredns\r\n\r\n")
            .await
            .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert!(
            answer.starts_with("HTTP/1.0 200") && answer.ends_with("OK"),
            "{answer}"
        );
    }
    let address = forward.address();
    drop(forward);
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert!(TcpStream::connect(address).await.is_err());
    assert!(
        cluster
            .port_forward("kube-system", "no-such-pod", 8080)
            .await
            .is_err()
    );
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn nodes_are_listed_with_role_and_address() {
    let nodes = nodes(&cluster().await).await;
    let list = nodes.list().await.unwrap();
    assert_eq!(
        list.iter()
            .filter(|node| node.role == "control-plane")
            .count(),
        1,
        "{list:?}"
    );
    assert!(
        list.iter()
            .all(|node| node.running && node.address.is_some()),
        "{list:?}"
    );
    assert!(
        nodes
            .engine()
            .await
            .unwrap()
            .chars()
            .any(|c| c.is_ascii_digit())
    );
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn a_nodes_file_is_written_once_and_read_back() {
    let nodes = nodes(&cluster().await).await;
    let node = nodes.list().await.unwrap().into_iter().next().expect(NEEDS);
    let path = "/tmp/blueprint-test/folder/file";
    assert_eq!(nodes.read_file(&node, path).await.unwrap(), None);
    let bytes = (0..=255).cycle().take(300_000).collect::<Vec<u8>>();
    assert!(nodes.write_file(&node, path, &bytes, 0o600).await.unwrap());
    assert_eq!(
        nodes.read_file(&node, path).await.unwrap().as_deref(),
        Some(bytes.as_slice())
    );
    assert!(
        !nodes.write_file(&node, path, &bytes, 0o600).await.unwrap(),
        "the same bytes again are no change"
    );
    assert!(
        nodes.write_file(&node, path, &bytes, 0o644).await.unwrap(),
        "another mode is a change"
    );
    nodes
        .run(&node, &["rm", "-r", "/tmp/blueprint-test"], None)
        .await
        .unwrap();
    let error = nodes
        .run(&node, &["sh", "-c", "echo wrong >&2; exit 7"], None)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, Error::Command { code: 7, stderr, .. } if stderr == "wrong"),
        "{error:?}"
    );
}

#[tokio::test]
#[ignore = "needs a kind cluster: `make e2e` runs it"]
async fn etc_hosts_is_written_in_place() {
    let nodes = nodes(&cluster().await).await;
    let node = nodes.list().await.unwrap().into_iter().next().expect(NEEDS);
    let before = nodes.read_file(&node, "/etc/hosts").await.unwrap().unwrap();
    let mut longer = before.clone();
    longer.extend_from_slice(b"192.0.2.1 blueprint.test\n");
    assert!(
        nodes
            .write_file(&node, "/etc/hosts", &longer, 0o644)
            .await
            .unwrap()
    );
    let found = nodes
        .run(&node, &["getent", "hosts", "blueprint.test"], None)
        .await
        .unwrap();
    assert!(
        nodes
            .write_file(&node, "/etc/hosts", &before, 0o644)
            .await
            .unwrap()
    );
    assert!(found.contains("192.0.2.1"), "{found}");
}
