use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;

const TARBALL: &[u8] = b"a chart, as far as bytes go";

fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn chart(url: &str) -> Artifact {
    Artifact {
        label: "chart redis 27.0.13".to_owned(),
        key: "redis".to_owned(),
        file_name: "redis-27.0.13.tgz".to_owned(),
        source: Source::ChartRepository {
            url: url.to_owned(),
            chart: "redis".to_owned(),
            version: "27.0.13".to_owned(),
        },
        sha256: sha256(TARBALL),
    }
}

fn manifest(url: &str) -> Artifact {
    Artifact {
        label: "manifest local-path v0.0.30".to_owned(),
        key: "local-path".to_owned(),
        file_name: "local-path-storage-v0.0.30.yaml".to_owned(),
        source: Source::File {
            url: url.to_owned(),
        },
        sha256: sha256(TARBALL),
    }
}

struct Home {
    folder: tempfile::TempDir,
    cache: ArtifactCache,
}

fn home() -> Home {
    let folder = tempfile::tempdir().unwrap();
    let cache = ArtifactCache::new(folder.path().join("infra/helm-charts"));
    Home { folder, cache }
}

impl Home {
    fn put(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn cached(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.cache.folder())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

async fn serve(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(method("GET"))
        .and(path(at))
        .respond_with(response)
        .mount(server)
        .await;
}

#[test]
fn corrupted_tarball_is_refused_with_both_digests_and_the_mending_command() {
    let home = home();
    let artifact = chart("https://charts.example.com");
    home.put("infra/helm-charts/redis-27.0.13.tgz", b"edited");
    let error = home.cache.verified(&artifact).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&sha256(TARBALL)) && text.contains(&sha256(b"edited")),
        "{text}"
    );
    assert!(
        error.hint().contains("blueprint charts fetch --from DIR")
            && error.hint().contains(&sha256(b"edited"))
    );
}

#[test]
fn missing_tarball_names_the_command() {
    let home = home();
    let error = home
        .cache
        .verified(&chart("https://charts.example.com"))
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("chart redis 27.0.13 is not in the cache")
    );
    assert!(
        error.hint().contains("blueprint charts fetch --from DIR")
            && error.hint().contains("redis-27.0.13.tgz")
    );
}

#[tokio::test]
async fn cached_files_are_used_without_any_network() {
    let home = home();
    home.put("infra/helm-charts/redis-27.0.13.tgz", TARBALL);
    let fetched = home
        .cache
        .fetch(&chart("https://unreachable.invalid"), &[], true)
        .await
        .unwrap();
    assert_eq!(fetched, Fetched::Cached);
}

#[tokio::test]
async fn folders_are_searched_with_their_direct_subfolders() {
    let home = home();
    home.put("from/a/redis-27.0.13.tgz", b"another build");
    let right = home.put("from/charts/redis-27.0.13.tgz", TARBALL);
    let fetched = home
        .cache
        .fetch(
            &chart("https://unreachable.invalid"),
            &[home.folder.path().join("from")],
            true,
        )
        .await
        .unwrap();
    assert_eq!(fetched, Fetched::Folder(right));
    assert_eq!(home.cached(), ["redis-27.0.13.tgz"]);
    assert_eq!(
        home.cache.verified(&chart("x")).unwrap().sha256,
        sha256(TARBALL)
    );
}

#[tokio::test]
async fn a_manifest_is_also_found_by_its_upstream_name() {
    let home = home();
    let there = home.put("from/local-path-storage.yaml", TARBALL);
    let artifact = manifest("https://raw.example.com/v0.0.30/local-path-storage.yaml");
    let fetched = home
        .cache
        .fetch(&artifact, &[home.folder.path().join("from")], true)
        .await
        .unwrap();
    assert_eq!(fetched, Fetched::Folder(there));
    assert_eq!(home.cached(), ["local-path-storage-v0.0.30.yaml"]);
}

#[tokio::test]
async fn offline_names_every_place_tried_and_asks_no_upstream() {
    let home = home();
    let server = MockServer::start().await;
    home.put("from/redis-27.0.13.tgz", b"edited");
    let error = home
        .cache
        .fetch(
            &chart(&server.uri()),
            &[
                home.folder.path().join("from"),
                home.folder.path().join("nowhere"),
            ],
            true,
        )
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&sha256(b"edited"))
            && text.contains("nowhere: no redis-27.0.13.tgz")
            && text.contains("offline"),
        "{text}"
    );
    assert!(server.received_requests().await.unwrap().is_empty());
    assert!(home.cached().is_empty());
}

#[tokio::test]
async fn a_chart_that_no_place_has_names_the_three_places_and_the_way_out() {
    let home = home();
    let server = MockServer::start().await;
    let fetch = async |folders: &[PathBuf], offline| {
        let error = home
            .cache
            .fetch(&chart(&server.uri()), folders, offline)
            .await
            .unwrap_err();
        assert!(
            error.hint().contains("copy its infra/helm-charts here"),
            "{}",
            error.hint()
        );
        error.to_string()
    };
    let text = fetch(&[], false).await;
    for place in [
        "cache: chart redis 27.0.13 is not in the cache",
        "folders: none was given (--from DIR, BLUEPRINT_CHARTS)",
        &format!("upstream: {}/index.yaml: answered 404", server.uri()),
    ] {
        assert!(text.contains(place), "{place} is not in: {text}");
    }
    let text = fetch(&[home.folder.path().join("from")], true).await;
    assert!(
        text.contains("from: no redis-27.0.13.tgz") && text.contains("upstream: not asked"),
        "{text}"
    );
    assert!(!text.contains("none was given"), "{text}");
}

#[tokio::test]
async fn charts_come_through_the_repository_index() {
    for address in ["charts/redis-27.0.13.tgz", "ABSOLUTE"] {
        let home = home();
        let server = MockServer::start().await;
        let address = address.replace(
            "ABSOLUTE",
            &format!("{}/bitnami/charts/redis-27.0.13.tgz", server.uri()),
        );
        let index = format!(
            "apiVersion: v1\nentries:\n  redis:\n  - version: 27.0.13\n    urls: ['{address}']\n"
        );
        serve(
            &server,
            "/bitnami/index.yaml",
            ResponseTemplate::new(200).set_body_string(index),
        )
        .await;
        serve(
            &server,
            "/bitnami/charts/redis-27.0.13.tgz",
            ResponseTemplate::new(200).set_body_bytes(TARBALL),
        )
        .await;
        // A wrong file in the cache is replaced by the right one.
        home.put("infra/helm-charts/redis-27.0.13.tgz", b"edited");
        let fetched = home
            .cache
            .fetch(&chart(&format!("{}/bitnami", server.uri())), &[], false)
            .await
            .unwrap();
        assert_eq!(
            fetched,
            Fetched::Upstream(format!("{}/bitnami/charts/redis-27.0.13.tgz", server.uri()))
        );
        assert_eq!(home.cached(), ["redis-27.0.13.tgz"]);
    }
}

#[tokio::test]
async fn charts_come_from_an_oci_registry_by_their_digest() {
    let home = home();
    let server = MockServer::start().await;
    let blob = format!("/v2/bitnamicharts/redis/blobs/sha256:{}", sha256(TARBALL));
    Mock::given(method("GET"))
        .and(path(&blob))
        .and(header("authorization", "Bearer anonymous"))
        .respond_with(ResponseTemplate::new(200).set_body_bytes(TARBALL))
        .with_priority(1)
        .mount(&server)
        .await;
    let challenge = format!(
        "Bearer realm=\"{}/token\",service=\"registry\"",
        server.uri()
    );
    serve(
        &server,
        &blob,
        ResponseTemplate::new(401).insert_header("www-authenticate", challenge.as_str()),
    )
    .await;
    Mock::given(path("/token"))
        .and(query_param("scope", "repository:bitnamicharts/redis:pull"))
        .and(query_param("service", "registry"))
        .respond_with(ResponseTemplate::new(200).set_body_string("{\"token\": \"anonymous\"}"))
        .mount(&server)
        .await;
    let registry = server.uri().replace("http://", "oci://");
    let index = format!(
        "entries:\n  redis:\n  - version: 27.0.13\n    urls: ['{registry}/bitnamicharts/redis:27.0.13']\n"
    );
    serve(
        &server,
        "/bitnami/index.yaml",
        ResponseTemplate::new(200).set_body_string(index),
    )
    .await;
    for repository in [
        format!("{}/bitnami", server.uri()),
        format!("{registry}/bitnamicharts"),
    ] {
        let _ = fs::remove_dir_all(home.cache.folder());
        let fetched = home
            .cache
            .fetch(&chart(&repository), &[], false)
            .await
            .unwrap();
        assert_eq!(
            fetched,
            Fetched::Upstream(format!("{registry}/bitnamicharts/redis:27.0.13"))
        );
        home.cache.verified(&chart(&repository)).unwrap();
    }
}

#[tokio::test]
async fn wrong_bytes_from_upstream_never_reach_the_cache() {
    let home = home();
    let server = MockServer::start().await;
    serve(
        &server,
        "/x.yaml",
        ResponseTemplate::new(200).set_body_bytes(b"<html>log in first</html>"),
    )
    .await;
    home.put(
        "infra/helm-charts/local-path-storage-v0.0.30.yaml",
        b"edited",
    );
    let error = home
        .cache
        .fetch(&manifest(&format!("{}/x.yaml", server.uri())), &[], false)
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains(&sha256(b"<html>log in first</html>")),
        "{error}"
    );
    assert_eq!(home.cached(), ["local-path-storage-v0.0.30.yaml"]);
    assert_eq!(
        fs::read(home.cache.folder().join("local-path-storage-v0.0.30.yaml")).unwrap(),
        b"edited"
    );
}

#[tokio::test]
async fn a_stumbling_upstream_is_asked_again_and_a_missing_file_is_not() {
    let home = home();
    let server = MockServer::start().await;
    Mock::given(path("/x.yaml"))
        .respond_with(ResponseTemplate::new(503))
        .up_to_n_times(1)
        .with_priority(1)
        .mount(&server)
        .await;
    serve(
        &server,
        "/x.yaml",
        ResponseTemplate::new(200).set_body_bytes(TARBALL),
    )
    .await;
    let fetched = home
        .cache
        .fetch(&manifest(&format!("{}/x.yaml", server.uri())), &[], false)
        .await
        .unwrap();
    assert_eq!(
        fetched,
        Fetched::Upstream(format!("{}/x.yaml", server.uri()))
    );
    assert_eq!(server.received_requests().await.unwrap().len(), 2);

    let gone = MockServer::start().await;
    let error = home_error(&gone, "/gone.yaml").await;
    assert!(error.contains("404"), "{error}");
    assert_eq!(gone.received_requests().await.unwrap().len(), 1);
}

async fn home_error(server: &MockServer, at: &str) -> String {
    let home = home();
    home.cache
        .fetch(&manifest(&format!("{}{at}", server.uri())), &[], false)
        .await
        .unwrap_err()
        .to_string()
}

#[tokio::test]
async fn an_unreachable_upstream_is_named_with_the_cause() {
    let home = home();
    let error = home
        .cache
        .fetch(&manifest("http://127.0.0.1:1/x.yaml"), &[], false)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("http://127.0.0.1:1/x.yaml")
            && error.to_lowercase().contains("connection refused"),
        "{error}"
    );
}
