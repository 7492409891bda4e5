//! Secrets: binary values there and back, and no value in any text.

use std::collections::BTreeMap;

use blueprint_cluster::{Change, SecretManifest};
use zeroize::Zeroizing;

use crate::cluster_with;

fn secret(namespace: &str, kind: &str) -> SecretManifest {
    let value = |bytes: &[u8]| Zeroizing::new(bytes.to_vec());
    SecretManifest {
        namespace: namespace.to_owned(),
        name: "a".to_owned(),
        kind: kind.to_owned(),
        labels: BTreeMap::from([("cnpg.io/reload".to_owned(), "true".to_owned())]),
        data: BTreeMap::from([
            ("binary".to_owned(), value(&[0, 255, 10, 13])),
            ("password".to_owned(), value(b"hunter2-hunter2")),
        ]),
    }
}

#[tokio::test]
async fn binary_values_come_back_as_they_went() {
    let cluster = cluster_with("secrets-binary").await;
    assert!(
        cluster
            .secret("secrets-binary", "a")
            .await
            .unwrap()
            .is_none()
    );
    let written = secret("secrets-binary", "Opaque");
    assert_eq!(
        cluster.apply_secret(&written).await.unwrap(),
        Change::Created("Secret secrets-binary/a".to_owned())
    );
    assert!(matches!(
        cluster.apply_secret(&written).await.unwrap(),
        Change::Unchanged(_)
    ));
    let read = cluster
        .secret("secrets-binary", "a")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(read.data, written.data);
    assert_eq!(
        (
            read.kind.as_str(),
            read.labels.get("cnpg.io/reload").map(String::as_str)
        ),
        ("Opaque", Some("true"))
    );
    assert!(!format!("{read:?} {written:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_refused_secret_shows_no_value() {
    let cluster = cluster_with("secrets-refused").await;
    // A kubernetes.io/tls Secret needs tls.crt and tls.key.
    let error = cluster
        .apply_secret(&secret("secrets-refused", "kubernetes.io/tls"))
        .await
        .unwrap_err();
    let text = format!(
        "{error} {error:?} {}",
        std::error::Error::source(&error).unwrap()
    );
    assert!(
        text.contains("Secret secrets-refused/a") && text.contains("tls.crt"),
        "{text}"
    );
    assert!(
        !text.contains("hunter2") && !text.contains("aHVudGVyMi1odW50ZXIy"),
        "{text}"
    );
}
