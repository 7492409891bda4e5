//! Which refusals are borne, against a server that refuses as told.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::apply::Change;
use crate::connect::Cluster;
use crate::error::Error;

fn status(code: u16, reason: &str, message: &str) -> ResponseTemplate {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message});
    ResponseTemplate::new(code).set_body_json(body)
}

async fn server_that_refuses(refusals: &[ResponseTemplate]) -> (MockServer, Cluster) {
    crate::connect::install_crypto();
    let server = MockServer::start().await;
    Mock::given(method("GET"))
        .respond_with(status(404, "NotFound", "not found"))
        .mount(&server)
        .await;
    for refusal in refusals {
        Mock::given(method("PATCH"))
            .respond_with(refusal.clone())
            .up_to_n_times(1)
            .mount(&server)
            .await;
    }
    let made = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a", "resourceVersion": "1"}});
    Mock::given(method("PATCH"))
        .respond_with(ResponseTemplate::new(200).set_body_json(made))
        .mount(&server)
        .await;
    let mut config = kube::Config::new(server.uri().parse().unwrap());
    config.default_retry = false;
    (
        server,
        Cluster::from_client(kube::Client::try_from(config).unwrap(), "kind-test"),
    )
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
}

async fn patches(server: &MockServer) -> usize {
    server
        .received_requests()
        .await
        .unwrap()
        .iter()
        .filter(|request| request.method.as_str() == "PATCH")
        .count()
}

#[tokio::test]
async fn refusals_of_the_moment_are_borne() {
    let refusals = [
        status(409, "Conflict", "the object has been modified"),
        status(429, "TooManyRequests", "too many requests"),
        status(
            500,
            "InternalError",
            "failed calling webhook \"mcluster.cnpg.io\": dial tcp 10.96.0.9:443: connect: connection refused",
        ),
        status(500, "InternalError", "etcdserver: leader changed"),
    ];
    let (server, cluster) = server_that_refuses(&refusals).await;
    assert_eq!(
        cluster.apply(&namespace()).await.unwrap(),
        Change::Created("Namespace a".to_owned())
    );
    assert_eq!(patches(&server).await, 5);
}

#[tokio::test]
async fn a_denial_is_told_at_once() {
    let denial = status(
        403,
        "Forbidden",
        "admission webhook \"policy\" denied the request: no",
    );
    let (server, cluster) = server_that_refuses(&[denial]).await;
    let error = cluster.apply(&namespace()).await.unwrap_err();
    assert!(
        matches!(&error, Error::Api { source, .. } if source.to_string().contains("denied the request: no")),
        "{error:?}"
    );
    assert_eq!(patches(&server).await, 1);
}

#[tokio::test]
async fn the_first_call_explains_a_refused_connection_without_patience() {
    crate::connect::install_crypto();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let config = kube::Config::new(format!("http://{free}").parse().unwrap());
    let cluster = Cluster::from_client(kube::Client::try_from(config).unwrap(), "kind-test");
    let started = Instant::now();
    let error = cluster.server_version().await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(error.is_transient());
    assert!(
        error.hint().unwrap().contains("does not answer"),
        "{:?}",
        error.hint()
    );
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(
        cause.starts_with("client error (Connect): tcp connect error: Connection refused"),
        "{cause}"
    );
}
