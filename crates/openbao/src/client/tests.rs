use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;

async fn server() -> (MockServer, Client) {
    // Another test may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = MockServer::start().await;
    let client = Client::new(*server.address()).with_token(secret("s.hush"));
    (server, client)
}

async fn answer(server: &MockServer, verb: &str, at: &str, status: u16, body: Value) {
    Mock::given(method(verb))
        .and(path(format!("/v1/{at}")))
        .respond_with(ResponseTemplate::new(status).set_body_json(body))
        .mount(server)
        .await;
}

fn secret(text: &str) -> SecretString {
    SecretString::from(text)
}

#[tokio::test]
async fn health_is_told_by_the_status_code() {
    for (status, expected) in [
        (501, Health::Uninitialised),
        (503, Health::Sealed),
        (200, Health::Active),
        (429, Health::Standby),
    ] {
        let (server, client) = server().await;
        answer(
            &server,
            "GET",
            "sys/health",
            status,
            json!({"initialized": true}),
        )
        .await;
        assert_eq!(client.health().await.unwrap(), expected);
    }
    let (server, client) = server().await;
    answer(
        &server,
        "GET",
        "sys/health",
        500,
        json!({"errors": ["boom"]}),
    )
    .await;
    assert_eq!(
        client.health().await.unwrap_err().to_string(),
        "OpenBao answered 500 to sys/health: boom"
    );
}

#[tokio::test]
async fn seal_status_of_an_uninitialised_server_is_read() {
    let (server, client) = server().await;
    let body = json!({"type": "shamir", "initialized": false, "sealed": true, "t": 0, "n": 0, "progress": 0, "nonce": "", "version": "2.7.2",
        "build_date": "x", "migration": false, "recovery_seal": false, "storage_type": "postgresql"});
    answer(&server, "GET", "sys/seal-status", 200, body).await;
    let status = client.seal_status().await.unwrap();
    assert!(!status.initialized && status.sealed);
    assert_eq!(
        (status.version.as_str(), status.storage_type.as_str()),
        ("2.7.2", "postgresql")
    );
}

#[tokio::test]
async fn init_gives_the_raw_body_and_a_second_init_is_refused() {
    let (server, client) = server().await;
    let raw = br#"{"keys":["00"],"keys_base64":["AA=="],"root_token":"s.x"}"#;
    Mock::given(method("PUT"))
        .and(path("/v1/sys/init"))
        .and(body_json(
            json!({"secret_shares": 5, "secret_threshold": 3}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_raw(raw.as_slice(), "application/json"))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    answer(
        &server,
        "PUT",
        "sys/init",
        400,
        json!({"errors": ["Vault is already initialized"]}),
    )
    .await;
    assert_eq!(client.init(5, 3).await.unwrap().as_slice(), raw);
    let error = client.init(5, 3).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    assert!(error.hint().contains("openbao-init.json"));
}

#[tokio::test]
async fn a_foreign_key_is_refused_with_what_to_put_back() {
    let (server, client) = server().await;
    answer(
        &server,
        "PUT",
        "sys/unseal",
        400,
        json!({"errors": ["'key' must be … message authentication failed"]}),
    )
    .await;
    let error = client.unseal(&secret("hush")).await.unwrap_err();
    assert_eq!(error.status(), Some(400));
    assert!(error.hint().contains("belongs to the database"));
    assert!(!format!("{error} {error:?}").contains("hush"));
}

#[tokio::test]
async fn the_key_and_the_token_travel_in_body_and_header() {
    let (server, client) = server().await;
    Mock::given(method("PUT"))
        .and(path("/v1/sys/unseal"))
        .and(header("x-vault-token", "s.hush"))
        .and(body_json(json!({"key": "AA=="})))
        .respond_with(
            ResponseTemplate::new(200)
                .set_body_json(json!({"initialized": true, "sealed": false, "t": 1, "n": 1})),
        )
        .mount(&server)
        .await;
    assert!(!client.unseal(&secret("AA==")).await.unwrap().sealed);
    assert!(!format!("{client:?}").contains("hush"));
}

fn mounts(entries: &Value) -> Value {
    json!({"request_id": "x", "data": entries, "sys/": {"type": "system"}})
}

#[tokio::test]
async fn kv2_is_mounted_once() {
    let (server, client) = server().await;
    let fresh = mounts(&json!({"sys/": {"type": "system", "options": null}}));
    Mock::given(path("/v1/sys/mounts"))
        .respond_with(ResponseTemplate::new(200).set_body_json(fresh))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    let mounted = mounts(&json!({"secret/": {"type": "kv", "options": {"version": "2"}}}));
    answer(&server, "GET", "sys/mounts", 200, mounted).await;
    Mock::given(method("POST"))
        .and(path("/v1/sys/mounts/secret"))
        .and(body_json(
            json!({"type": "kv", "options": {"version": "2"}}),
        ))
        .respond_with(ResponseTemplate::new(204))
        .expect(1)
        .mount(&server)
        .await;
    assert!(client.ensure_kv2("secret").await.unwrap());
    assert!(!client.ensure_kv2("secret/").await.unwrap());
}

#[tokio::test]
async fn a_new_mount_that_was_still_setting_itself_up_failed_the_step() {
    let (server, client) = server().await;
    let words = "Upgrading from non-versioned to versioned data. This backend will be unavailable for a brief period and will resume service shortly.";
    Mock::given(path("/v1/secret/data/a"))
        .respond_with(ResponseTemplate::new(400).set_body_json(json!({"errors": [words]})))
        .up_to_n_times(3)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .and(path("/v1/secret/data/a"))
        .and(body_json(json!({"data": {"k": "v"}})))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({})))
        .expect(1)
        .mount(&server)
        .await;
    let data = BTreeMap::from([("k".to_owned(), secret("v"))]);
    client.kv_write("secret", "a", &data).await.unwrap();
    // Any other 400 is final.
    answer(
        &server,
        "GET",
        "secret/data/b",
        400,
        json!({"errors": ["no"]}),
    )
    .await;
    let error = client.kv_read("secret", "b").await.unwrap_err();
    assert_eq!(error.status(), Some(400));
}

#[tokio::test]
async fn mounting_twice_at_once_is_no_error() {
    let (server, client) = server().await;
    Mock::given(path("/v1/sys/mounts"))
        .respond_with(ResponseTemplate::new(200).set_body_json(mounts(&json!({}))))
        .up_to_n_times(1)
        .mount(&server)
        .await;
    answer(
        &server,
        "GET",
        "sys/mounts",
        200,
        mounts(&json!({"secret/": {"type": "kv", "options": {"version": "2"}}})),
    )
    .await;
    answer(
        &server,
        "POST",
        "sys/mounts/secret",
        400,
        json!({"errors": ["path is already in use at secret/"]}),
    )
    .await;
    assert!(!client.ensure_kv2("secret").await.unwrap());
}

#[tokio::test]
async fn another_engine_at_the_path_is_refused_and_left_alone() {
    for (entry, found) in [
        (
            json!({"type": "kv", "options": {"version": "1"}}),
            "kv version 1",
        ),
        (json!({"type": "kv", "options": null}), "kv version 1"),
        (json!({"type": "transit"}), "transit"),
    ] {
        let (server, client) = server().await;
        answer(
            &server,
            "GET",
            "sys/mounts",
            200,
            mounts(&json!({"secret/": entry})),
        )
        .await;
        let error = client.ensure_kv2("secret").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("OpenBao has {found} mounted at secret/, expected kv version 2")
        );
        assert_eq!(
            server.received_requests().await.unwrap().len(),
            1,
            "nothing was changed"
        );
    }
}

#[tokio::test]
async fn secrets_are_written_whole_and_read_back() {
    let (server, client) = server().await;
    Mock::given(method("POST"))
        .and(path("/v1/secret/data/gitlab/runner"))
        .and(body_json(
            json!({"data": {"registration_token": "glrt-x", "y": "z"}}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"data": {"version": 1}})))
        .expect(1)
        .mount(&server)
        .await;
    let body =
        json!({"data": {"data": {"registration_token": "glrt-x"}, "metadata": {"version": 1}}});
    answer(&server, "GET", "secret/data/gitlab/runner", 200, body).await;
    let data = BTreeMap::from([
        ("registration_token".to_owned(), secret("glrt-x")),
        ("y".to_owned(), secret("z")),
    ]);
    client
        .kv_write("secret/", "/gitlab/runner", &data)
        .await
        .unwrap();
    let read = client
        .kv_read("secret", "gitlab/runner")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(read["registration_token"].expose_secret(), "glrt-x");
}

#[tokio::test]
async fn never_written_and_deleted_secrets_are_none_but_a_missing_mount_is_an_error() {
    let (server, client) = server().await;
    answer(
        &server,
        "GET",
        "secret/data/never",
        404,
        json!({"errors": []}),
    )
    .await;
    answer(
        &server,
        "GET",
        "secret/data/deleted",
        404,
        json!({"data": {"data": null, "metadata": {"deletion_time": "x"}}}),
    )
    .await;
    answer(
        &server,
        "GET",
        "gone/data/x",
        404,
        json!({"errors": ["no handler for route \"gone/data/x\". route entry not found."]}),
    )
    .await;
    assert!(client.kv_read("secret", "never").await.unwrap().is_none());
    assert!(client.kv_read("secret", "deleted").await.unwrap().is_none());
    assert_eq!(
        client.kv_read("gone", "x").await.unwrap_err().status(),
        Some(404)
    );
}

#[tokio::test]
async fn postgresql_down_shows_on_writing_while_health_stays_green() {
    let (server, client) = server().await;
    answer(&server, "GET", "sys/health", 200, json!({})).await;
    answer(
        &server,
        "POST",
        "secret/data/x",
        500,
        json!({"errors": ["1 error occurred"]}),
    )
    .await;
    assert_eq!(client.health().await.unwrap(), Health::Active);
    let error = client
        .kv_write(
            "secret",
            "x",
            &BTreeMap::from([("a".to_owned(), secret("hush"))]),
        )
        .await
        .unwrap_err();
    assert_eq!(error.status(), Some(500));
    assert!(error.hint().contains("PostgreSQL") && !format!("{error:?}").contains("hush"));
}

#[tokio::test]
async fn a_token_is_looked_up() {
    let (server, client) = server().await;
    Mock::given(path("/v1/auth/token/lookup-self"))
        .and(header("x-vault-token", "s.hush"))
        .respond_with(ResponseTemplate::new(200).set_body_json(json!({"data": {}})))
        .mount(&server)
        .await;
    answer(
        &server,
        "GET",
        "auth/token/lookup-self",
        403,
        json!({"errors": ["permission denied"]}),
    )
    .await;
    assert!(client.token_works().await.unwrap());
    assert!(
        !client
            .with_token(secret("s.other"))
            .token_works()
            .await
            .unwrap()
    );
    assert!(
        !client
            .with_token(secret("broken\ntoken"))
            .token_works()
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn nobody_listening_is_a_transport_error_without_address() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::new(([127, 0, 0, 1], 1).into());
    let error = client.seal_status().await.unwrap_err();
    assert!(matches!(error, Error::Transport { .. }));
    assert_eq!(
        error.to_string(),
        "failed to reach OpenBao for sys/seal-status"
    );
    assert!(!format!("{error:?}").contains("http://"), "{error:?}");
}
