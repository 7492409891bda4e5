//! `gitlab-rails-storage`: one Secret, three readers, three formats.

use std::collections::BTreeMap;
use std::path::Path;

use blueprint_charts::yaml;
use blueprint_cluster::secret::SecretManifest;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::s3::{Keys, REGION};
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// Inside the cluster; GitLab never goes through the Gateway for its own storage.
const HOST: &str = "minio.minio.svc:9000";

/// The Secret as it should be.
pub(crate) fn manifest(keys: &Keys) -> SecretManifest {
    let data = [
        ("connection", connection(keys)),
        ("config", registry_config(keys)),
        ("s3cfg", s3cfg(keys)),
    ];
    SecretManifest {
        namespace: names::GITLAB.to_owned(),
        name: names::RAILS_STORAGE.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data: data
            .into_iter()
            .map(|(key, text)| (key.to_owned(), Zeroizing::new(text.as_bytes().to_vec())))
            .collect(),
    }
}

/// Whether the cluster's Secret holds just that.
pub(crate) async fn is_current(work: Work<'_>, keys: &Keys) -> Result<bool, Error> {
    let found = work
        .context
        .cluster
        .secret(names::GITLAB, names::RAILS_STORAGE)
        .await?;
    Ok(found.is_some_and(|secret| secret.data == manifest(keys).data))
}

/// The keys that GitLab would use.
pub(crate) async fn keys_in_secret(work: Work<'_>) -> Result<Option<Keys>, Error> {
    let found = work
        .context
        .cluster
        .secret(names::GITLAB, names::RAILS_STORAGE)
        .await?;
    let Some(text) = found.and_then(|secret| secret.data.get("connection").cloned()) else {
        return Ok(None);
    };
    Ok(std::str::from_utf8(&text).ok().and_then(keys_in_connection))
}

/// The keys in the text of its key `connection`.
pub(crate) fn keys_in_connection(text: &str) -> Option<Keys> {
    let value = yaml::document(text, Path::new("connection")).ok()?;
    let field = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .map(SecretString::from)
    };
    Some(Keys {
        user: field("aws_access_key_id")?,
        password: field("aws_secret_access_key")?,
    })
}

/// Rails: Fog's AWS provider (doc/charts/globals, `connection`).
fn connection(keys: &Keys) -> Zeroizing<String> {
    Zeroizing::new(yaml::to_text(&json!({
        "provider": "AWS",
        "region": REGION,
        "aws_access_key_id": keys.user.expose_secret(),
        "aws_secret_access_key": keys.password.expose_secret(),
        "aws_signature_version": 4,
        "endpoint": format!("http://{HOST}"),
        "path_style": true,
    })))
}

/// The container registry's storage section. Without `redirect.disable` a client's blob request would be sent to the in-cluster name.
fn registry_config(keys: &Keys) -> Zeroizing<String> {
    Zeroizing::new(yaml::to_text(&json!({
        "s3": {
            "v4auth": true,
            "region": REGION,
            "regionendpoint": format!("http://{HOST}"),
            "forcepathstyle": true,
            "pathstyle": true,
            "secure": false,
            "bucket": "registry",
            "accesskey": keys.user.expose_secret(),
            "secretkey": keys.password.expose_secret(),
        },
        "redirect": {"disable": true},
    })))
}

/// The toolbox's backups: s3cmd's INI file. A wrong format here shows only at the first backup.
fn s3cfg(keys: &Keys) -> Zeroizing<String> {
    Zeroizing::new(format!(
        "[default]\naccess_key = {}\nsecret_key = {}\nbucket_location = {REGION}\nhost_base = {HOST}\nhost_bucket = {HOST}\nuse_https = False\nsignature_v2 = False\n",
        keys.user.expose_secret(),
        keys.password.expose_secret(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        // Words that a YAML 1.1 reader would take for other types if they were not quoted.
        Keys {
            user: SecretString::from("0123"),
            password: SecretString::from("yes"),
        }
    }

    fn parsed(key: &str) -> Value {
        let secret = manifest(&keys());
        let text = String::from_utf8(secret.data[key].to_vec()).unwrap();
        yaml::document(&text, Path::new(key)).unwrap()
    }

    #[test]
    fn the_secret_has_the_three_formats() {
        let secret = manifest(&keys());
        assert_eq!(
            secret.data.keys().collect::<Vec<_>>(),
            ["config", "connection", "s3cfg"]
        );
    }

    #[test]
    fn rails_gets_strings_for_keys_that_look_like_numbers_or_booleans() {
        let connection = parsed("connection");
        assert_eq!(connection["aws_access_key_id"], json!("0123"));
        assert_eq!(connection["aws_secret_access_key"], json!("yes"));
        assert_eq!(connection["path_style"], json!(true));
        assert_eq!(connection["endpoint"], json!("http://minio.minio.svc:9000"));
    }

    #[test]
    fn the_registry_never_redirects_to_an_in_cluster_name() {
        assert_eq!(parsed("config")["redirect"]["disable"], json!(true));
        assert_eq!(parsed("config")["s3"]["forcepathstyle"], json!(true));
    }

    #[test]
    fn the_smoke_check_reads_back_the_keys_that_gitlab_has() {
        let secret = manifest(&keys());
        let text = String::from_utf8(secret.data["connection"].to_vec()).unwrap();
        let read = keys_in_connection(&text).unwrap();
        assert_eq!(
            (read.user.expose_secret(), read.password.expose_secret()),
            ("0123", "yes")
        );
    }

    #[test]
    fn s3cmd_gets_an_ini_file() {
        let secret = manifest(&keys());
        let text = String::from_utf8(secret.data["s3cfg"].to_vec()).unwrap();
        assert!(
            text.starts_with("[default]\naccess_key = 0123\nsecret_key = yes\n"),
            "{text}"
        );
        assert!(text.contains("host_bucket = minio.minio.svc:9000\n"));
    }
}
