use serde_json::json;

use super::*;

const REAL: &str = include_str!("../../../../VERSIONS.json");
const SCHEMA: &str = include_str!("../../../../docs/versions.schema.json");

fn origin() -> &'static Path {
    Path::new("VERSIONS.json")
}

/// The real file with the value at `pointer` replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut json: Value = serde_json::from_str(REAL).unwrap();
    *json.pointer_mut(pointer).unwrap() = value;
    json
}

fn refused(json: &Value) -> String {
    let error = Versions::parse(&json.to_string(), origin()).unwrap_err();
    assert!(!error.hint().is_empty());
    error.to_string()
}

#[test]
fn the_real_file_parses_and_names_every_artifact() {
    let versions = Versions::parse(REAL, origin()).unwrap();
    for key in ["cnpg", "redis", "minio", "openbao", "gitlab", "runner"] {
        versions.chart(key).unwrap();
    }
    for key in ["gateway-api-standard", "gateway-api-tcproute", "local-path"] {
        versions.manifest(key).unwrap();
    }
    assert!(versions.tool("helm").is_ok() && versions.image("openbao").is_ok());
    let artifacts = versions.artifacts();
    assert_eq!(
        artifacts.len(),
        versions.helm_repositories.len() + versions.manifests.len()
    );
    let redis = versions.chart_artifact("redis").unwrap();
    assert_eq!(
        redis.label,
        format!(
            "chart redis {}",
            versions.chart("redis").unwrap().chart_version
        )
    );
    assert!(
        artifacts.contains(&redis)
            && artifacts.contains(&versions.manifest_artifact("local-path").unwrap())
    );
}

#[test]
fn the_schema_and_the_parser_agree_on_the_real_file() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let real: Value = serde_json::from_str(REAL).unwrap();
    assert_eq!(crate::schema::check(&schema, &real), []);
}

#[test]
fn broken_versions_file_names_line_and_column() {
    let cut = &REAL[..REAL.len() / 2];
    let error = Versions::parse(cut, origin()).unwrap_err();
    assert!(
        error.to_string().contains("line ") && error.to_string().contains("column "),
        "{error}"
    );
    let misspelt = REAL.replacen("chart_version", "chart_verison", 1);
    let error = Versions::parse(&misspelt, origin())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("unknown field `chart_verison`") && error.contains("line 7"),
        "{error}"
    );
}

#[test]
fn edited_values_are_refused_by_parser_and_schema_with_their_place() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let cases = [
        (
            "/helm_repositories/redis/sha256",
            json!("cc0acf"),
            "helm_repositories.redis.sha256: expected 64",
        ),
        (
            "/helm_repositories/redis/chart",
            json!("../redis"),
            "helm_repositories.redis.chart: ",
        ),
        (
            "/helm_repositories/redis/chart_version",
            json!("1/2"),
            "helm_repositories.redis.chart_version: ",
        ),
        (
            "/helm_repositories/redis/name",
            json!("Redis"),
            "helm_repositories.redis.name: ",
        ),
        (
            "/helm_repositories/redis/url",
            json!("charts.bitnami.com"),
            "helm_repositories.redis.url: ",
        ),
        (
            "/helm_repositories/redis/values_overrides",
            json!([]),
            "helm_repositories.redis.values_overrides: ",
        ),
        (
            "/manifests/local-path/file",
            json!("/etc/passwd"),
            "manifests.local-path.file: ",
        ),
        (
            "/manifests/local-path/url",
            json!("file:///etc/passwd"),
            "manifests.local-path.url: ",
        ),
        ("/images/busybox/tag", json!("a b"), "images.busybox.tag: "),
        (
            "/images/busybox/repository",
            json!("busybox"),
            "images.busybox.repository: ",
        ),
        ("/tools/helm/minimum", json!("v4"), "tools.helm.minimum: "),
    ];
    for (pointer, value, expected) in cases {
        let json = with(pointer, value);
        let found = refused(&json);
        assert!(found.contains(expected), "{pointer}: {found}");
        assert!(
            !crate::schema::check(&schema, &json).is_empty(),
            "the schema takes what the parser refuses: {pointer}"
        );
    }
}

#[test]
fn references_between_entries_are_checked() {
    assert!(
        refused(&with("/images/redis/sets/chart", json!("redys"))).contains("no entry \"redys\"")
    );
    let mut json: Value = serde_json::from_str(REAL).unwrap();
    let mut other = json["manifests"]["local-path"].clone();
    other["sha256"] = json!("0".repeat(64));
    json["manifests"]["local-path-too"] = other;
    assert!(refused(&json).contains("different digests"));
}

#[test]
fn a_key_that_is_not_there_is_named_with_its_section() {
    let versions = Versions::parse(REAL, origin()).unwrap();
    let error = versions.chart("valkey").unwrap_err();
    assert_eq!(
        error.to_string(),
        "VERSIONS.json has no helm_repositories entry `valkey`"
    );
    assert!(error.hint().contains("helm_repositories"));
}

#[test]
fn an_image_reference_carries_tag_and_digest() {
    let pin = |digest: Option<&str>| ImagePin {
        repository: "docker.io/library/redis".to_owned(),
        tag: "8".to_owned(),
        digest: digest.map(str::to_owned),
        sets: None,
    };
    assert_eq!(pin(None).reference(), "docker.io/library/redis:8");
    assert_eq!(
        pin(Some("sha256:ab")).reference(),
        "docker.io/library/redis:8@sha256:ab"
    );
}

proptest::proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        let _ = Versions::parse(&text, origin());
    }
}

#[test]
fn fuzz_versions() {
    blueprint_fuzzing::fuzz("VERSIONS.json", &[REAL.as_bytes()], |bytes| {
        let result = Versions::parse(&String::from_utf8_lossy(bytes), origin());
        if let Ok(versions) = &result {
            for artifact in versions.artifacts() {
                let name = artifact.file_name;
                assert!(
                    !name.contains('/') && !name.starts_with('.'),
                    "{name:?} would leave the cache"
                );
            }
        }
        (&result).into()
    });
}

#[test]
fn a_stand_in_is_known_by_its_build_metadata_alone() {
    for version in ["10.1.1+standin", "10.1.1-rc1+lab.standin"] {
        assert!(is_stand_in(version), "{version}");
    }
    for version in [
        "10.1.1",
        "10.1.1-standin",
        "10.1.1+up0.1",
        "10.1.1+standins",
    ] {
        assert!(!is_stand_in(version), "{version}");
    }
}
