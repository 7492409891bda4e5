//! The few S3 calls that step 7 needs, with presigned addresses, path style, and never through a proxy.

use std::collections::BTreeSet;
use std::time::Duration;

use blueprint_cluster::LocalForward;
use blueprint_failpoint::failpoint;
use k8s_openapi::jiff::Timestamp;
use reqwest::{Client, Method, StatusCode};
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle, signing};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// MinIO takes any region; GitLab's settings name this one.
pub(crate) const REGION: &str = "us-east-1";
/// Pods of the chart's Deployment.
pub(crate) const PODS: &str = "app=minio,release=minio";

const PORT: u16 = 9000;
const SIGNED_FOR: Duration = Duration::from_mins(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Access key and secret key.
#[derive(Clone)]
pub(crate) struct Keys {
    /// Root user.
    pub(crate) user: SecretString,
    /// Root password.
    pub(crate) password: SecretString,
}

/// Why a call came to nothing. Holds no address: a presigned one contains the access key and a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum S3Error {
    /// 401 or 403: other keys are in force.
    #[error("it refuses the keys ({0})")]
    Rejected(String),
    /// Another status.
    #[error("it answered {0}")]
    Answered(String),
    /// No answer.
    #[error("no answer: {0}")]
    Unreachable(String),
}

/// One S3 server.
pub(crate) struct S3 {
    http: Client,
    endpoint: Url,
    keys: Keys,
    /// Keeps the way open.
    forward: Option<LocalForward>,
}

impl S3 {
    /// Through a forward to MinIO's running pod.
    pub(crate) async fn open(work: Work<'_>, keys: &Keys) -> Result<Result<Self, S3Error>, Error> {
        let pods = work.context.cluster.pods(names::MINIO, PODS).await?;
        let running = pods.iter().find(|pod| {
            pod.metadata.deletion_timestamp.is_none()
                && pod
                    .status
                    .as_ref()
                    .and_then(|status| status.phase.as_deref())
                    == Some("Running")
        });
        let Some(name) = running.and_then(|pod| pod.metadata.name.as_deref()) else {
            return Ok(Err(S3Error::Unreachable(
                "no MinIO pod is running".to_owned(),
            )));
        };
        let forward = work
            .context
            .cluster
            .port_forward(names::MINIO, name, PORT)
            .await?;
        let mut s3 = Self::at(&format!("http://{}/", forward.address()), keys)?;
        s3.forward = Some(forward);
        Ok(Ok(s3))
    }

    /// At an address.
    pub(crate) fn at(endpoint: &str, keys: &Keys) -> Result<Self, Error> {
        let http = Client::builder()
            .no_proxy()
            .timeout(ANSWER_WITHIN)
            .build()
            .map_err(|error| failed("make an HTTP client", &error.to_string()))?;
        Self::with_client(http, endpoint, keys)
    }

    /// At an address that this client knows a way to.
    pub(crate) fn with_client(http: Client, endpoint: &str, keys: &Keys) -> Result<Self, Error> {
        let endpoint = endpoint
            .parse()
            .map_err(|_| failed("read the object storage's address", endpoint))?;
        Ok(Self {
            http,
            endpoint,
            keys: keys.clone(),
            forward: None,
        })
    }

    /// Names of all buckets.
    pub(crate) async fn list_buckets(&self) -> Result<BTreeSet<String>, S3Error> {
        let none = || std::iter::empty::<(&str, &str)>();
        let address = signing::sign(
            &Timestamp::now(),
            rusty_s3::Method::Get,
            self.endpoint.clone(),
            self.keys.user.expose_secret(),
            self.keys.password.expose_secret(),
            None,
            REGION,
            SIGNED_FOR.as_secs(),
            none(),
            none(),
        );
        Ok(bucket_names(
            &self.send(Method::GET, address, Vec::new()).await?,
        ))
    }

    /// Makes a bucket; one that is ours already is fine.
    pub(crate) async fn create_bucket(&self, name: &str) -> Result<(), S3Error> {
        let bucket = self.bucket(name)?;
        let address = bucket.create_bucket(&self.credentials()).sign(SIGNED_FOR);
        failpoint!(before, "make", "bucket {name}");
        match self.send(Method::PUT, address, Vec::new()).await {
            Err(S3Error::Answered(answer)) if answer.contains("BucketAlreadyOwnedByYou") => {}
            other => drop(other?),
        }
        failpoint!(after, "make", "bucket {name}");
        Ok(())
    }

    /// Writes an object, reads it back and removes it.
    pub(crate) async fn round_trip(&self, bucket: &str, key: &str) -> Result<(), S3Error> {
        let bucket = self.bucket(bucket)?;
        let credentials = self.credentials();
        let body = format!("written by blueprint at {}", Timestamp::now());
        self.send(
            Method::PUT,
            bucket.put_object(Some(&credentials), key).sign(SIGNED_FOR),
            body.clone().into_bytes(),
        )
        .await?;
        failpoint!(after, "write", "object {key}");
        let read = self
            .send(
                Method::GET,
                bucket.get_object(Some(&credentials), key).sign(SIGNED_FOR),
                Vec::new(),
            )
            .await?;
        self.send(
            Method::DELETE,
            bucket
                .delete_object(Some(&credentials), key)
                .sign(SIGNED_FOR),
            Vec::new(),
        )
        .await?;
        failpoint!(after, "remove", "object {key}");
        if read == body {
            Ok(())
        } else {
            Err(S3Error::Answered(
                "other bytes than were written".to_owned(),
            ))
        }
    }

    fn credentials(&self) -> Credentials {
        Credentials::new(
            self.keys.user.expose_secret(),
            self.keys.password.expose_secret(),
        )
    }

    fn bucket(&self, name: &str) -> Result<Bucket, S3Error> {
        Bucket::new(
            self.endpoint.clone(),
            UrlStyle::Path,
            name.to_owned(),
            REGION,
        )
        .map_err(|_| S3Error::Unreachable(format!("`{name}` makes no address")))
    }

    async fn send(&self, method: Method, address: Url, body: Vec<u8>) -> Result<String, S3Error> {
        let unreachable = |error: reqwest::Error| S3Error::Unreachable(said(&error.without_url()));
        let answer = self
            .http
            .request(method, address)
            .body(body)
            .send()
            .await
            .map_err(unreachable)?;
        let status = answer.status();
        let text = answer.text().await.map_err(unreachable)?;
        if status.is_success() {
            return Ok(text);
        }
        let code = between(&text, "<Code>", "</Code>")
            .next()
            .unwrap_or("without an S3 error code")
            .to_owned();
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => S3Error::Rejected(code),
            // versitygw's word for an unknown access key.
            StatusCode::NOT_FOUND if code == "XAdminUserNotFound" => S3Error::Rejected(code),
            _ => S3Error::Answered(format!("{} {code}", status.as_u16())),
        })
    }
}

/// An error with its causes; reqwest's own words are only "error sending request".
fn said(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

fn failed(action: &str, found: &str) -> Error {
    Error::Failed {
        action: action.to_owned(),
        found: found.to_owned(),
        hint: "run again with --verbose and report what is shown".to_owned(),
    }
}

/// `<Name>` of a `ListAllMyBucketsResult` occurs only inside `<Bucket>`, and bucket names need no unescaping.
fn bucket_names(answer: &str) -> BTreeSet<String> {
    between(answer, "<Name>", "</Name>")
        .map(str::to_owned)
        .collect()
}

fn between<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(open)
        .skip(1)
        .filter_map(move |rest| rest.split_once(close).map(|(inside, _)| inside))
}

#[cfg(test)]
mod tests {
    use wiremock::matchers::{method, path, query_param};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    async fn server() -> (MockServer, S3) {
        // The program installs the provider once; each test process must too, and a second call's refusal means it is there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let server = MockServer::start().await;
        let keys = Keys {
            user: SecretString::from("user"),
            password: SecretString::from("hidden-password"),
        };
        let s3 = S3::at(&server.uri(), &keys).unwrap();
        (server, s3)
    }

    #[tokio::test]
    async fn bucket_names_are_read_and_the_owners_name_is_not() {
        let (server, s3) = server().await;
        let answer = "<ListAllMyBucketsResult><Owner><ID>x</ID><DisplayName>minio</DisplayName></Owner><Buckets><Bucket><Name>git-lfs</Name>\
                      <CreationDate>2026-11-30T00:00:00Z</CreationDate></Bucket><Bucket><Name>registry</Name></Bucket></Buckets></ListAllMyBucketsResult>";
        Mock::given(method("GET"))
            .and(path("/"))
            .and(query_param("X-Amz-Algorithm", "AWS4-HMAC-SHA256"))
            .respond_with(ResponseTemplate::new(200).set_body_string(answer))
            .mount(&server)
            .await;
        let names = s3.list_buckets().await.unwrap();
        assert_eq!(
            names.into_iter().collect::<Vec<_>>(),
            ["git-lfs", "registry"]
        );
    }

    #[tokio::test]
    async fn refused_keys_are_told_from_a_server_that_is_not_there() {
        let (server, s3) = server().await;
        Mock::given(method("GET"))
            .respond_with(
                ResponseTemplate::new(403)
                    .set_body_string("<Error><Code>SignatureDoesNotMatch</Code></Error>"),
            )
            .mount(&server)
            .await;
        assert_eq!(
            s3.list_buckets().await,
            Err(S3Error::Rejected("SignatureDoesNotMatch".to_owned()))
        );
        let nobody = S3::at("http://127.0.0.1:1/", &s3.keys).unwrap();
        let error = nobody.list_buckets().await.unwrap_err();
        assert!(matches!(error, S3Error::Unreachable(_)), "{error}");
    }

    #[tokio::test]
    async fn an_unknown_access_key_is_a_refusal_also_where_it_comes_as_404() {
        let (server, s3) = server().await;
        let answer = ResponseTemplate::new(404)
            .set_body_string("<Error><Code>XAdminUserNotFound</Code></Error>");
        Mock::given(method("GET"))
            .respond_with(answer)
            .mount(&server)
            .await;
        let error = s3.list_buckets().await.unwrap_err();
        assert_eq!(error, S3Error::Rejected("XAdminUserNotFound".to_owned()));
    }

    #[tokio::test]
    async fn an_error_shows_neither_address_nor_keys() {
        let (_server, s3) = server().await;
        let nobody = S3::at("http://127.0.0.1:1/", &s3.keys).unwrap();
        let shown = format!("{:?}", nobody.list_buckets().await.unwrap_err());
        assert!(
            !shown.contains("X-Amz") && !shown.contains("hidden-password"),
            "{shown}"
        );
    }

    #[tokio::test]
    async fn a_bucket_that_is_ours_already_is_no_error_but_anothers_is() {
        let (server, s3) = server().await;
        let conflict = |code: &str| {
            ResponseTemplate::new(409)
                .set_body_string(format!("<Error><Code>{code}</Code></Error>"))
        };
        Mock::given(method("PUT"))
            .and(path("/ours/"))
            .respond_with(conflict("BucketAlreadyOwnedByYou"))
            .mount(&server)
            .await;
        Mock::given(method("PUT"))
            .and(path("/theirs/"))
            .respond_with(conflict("BucketAlreadyExists"))
            .mount(&server)
            .await;
        assert_eq!(s3.create_bucket("ours").await, Ok(()));
        assert_eq!(
            s3.create_bucket("theirs").await,
            Err(S3Error::Answered("409 BucketAlreadyExists".to_owned()))
        );
    }
}
