//! KV version 2: the mount, and what is read and written below it.

use std::collections::BTreeMap;
use std::time::Duration;

use blueprint_failpoint::failpoint;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use secrecy::SecretString;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::wire;
use super::{Client, Error, Mount, accept, refusal};

/// What a new mount answers until it has set itself up (openbao, builtin/logical/kv: `Upgrade`): on a busy machine that lasts seconds.
const SETTING_UP: &str = "Upgrading from non-versioned to versioned data";
const SET_UP_WITHIN: Duration = Duration::from_mins(1);
const ASK_AGAIN: Duration = Duration::from_millis(200);

impl Client {
    /// Mounts KV version 2 at `path` (`secret`) if it is not there; answers whether it was made. Another kind or version there is an error.
    pub async fn ensure_kv2(&self, path: &str) -> Result<bool, Error> {
        let path = path.trim_matches('/');
        let key = format!("{path}/");
        if let Some(mount) = self.mounts().await?.get(&key) {
            return as_kv2(&key, mount).map(|()| false);
        }
        let operation = format!("sys/mounts/{path}");
        let request = self
            .request(Method::POST, &operation)
            .json(&json!({"type": "kv", "options": {"version": "2"}}));
        failpoint!(before, "ask OpenBao", "{operation}");
        let made = match self.call(request, &operation).await {
            Ok(_) => true,
            // Someone mounted it in between: 400 `path is already in use`. What it is counts.
            Err(Error::Refused {
                status: 400,
                ref messages,
                ..
            }) if messages.iter().any(|text| text.contains("already in use")) => false,
            Err(error) => return Err(error),
        };
        failpoint!(after, "ask OpenBao", "{operation}");
        match self.mounts().await?.get(&key) {
            Some(mount) => as_kv2(&key, mount).map(|()| made),
            None => Err(Error::Malformed {
                operation,
                found: format!("{key} is not among the mounts after it was mounted"),
            }),
        }
    }

    /// Reads `mount/data/path`; `None` on 404 (never written or deleted).
    pub async fn kv_read(
        &self,
        mount: &str,
        path: &str,
    ) -> Result<Option<BTreeMap<String, SecretString>>, Error> {
        let operation = kv_operation(mount, path);
        let response = self
            .answer(&self.request(Method::GET, &operation), &operation)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return match refusal(response, &operation).await {
                // A path that was never written is 404 without a message, a deleted one 404 with metadata; a mount that is not there says so.
                Error::Refused { ref messages, .. } if messages.is_empty() => Ok(None),
                error => Err(error),
            };
        }
        let body = accept(response, &operation).await?;
        wire::kv_data(&body, &operation).map(Some)
    }

    /// When `mount/data/path` was last written (RFC 3339); `None` where there is nothing.
    pub async fn kv_written(&self, mount: &str, path: &str) -> Result<Option<String>, Error> {
        let operation = kv_operation(mount, path);
        let response = self
            .answer(&self.request(Method::GET, &operation), &operation)
            .await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let body = accept(response, &operation).await?;
        wire::kv_written(&body, &operation).map(Some)
    }

    /// Writes all keys of a path (replaces what is there).
    pub async fn kv_write(
        &self,
        mount: &str,
        path: &str,
        data: &BTreeMap<String, SecretString>,
    ) -> Result<(), Error> {
        let operation = kv_operation(mount, path);
        let request = wire::with_body(
            self.request(Method::POST, &operation),
            &wire::Data {
                data: wire::Pairs(data),
            },
            &operation,
        )?;
        failpoint!(before, "ask OpenBao", "{operation}");
        accept(self.answer(&request, &operation).await?, &operation).await?;
        failpoint!(after, "ask OpenBao", "{operation}");
        Ok(())
    }

    /// Asks once more as long as the mount is still setting itself up; its last answer after a minute.
    async fn answer(&self, request: &RequestBuilder, operation: &str) -> Result<Response, Error> {
        let begun = Instant::now();
        loop {
            let Some(again) = request.try_clone() else {
                return Err(Error::Malformed {
                    operation: operation.to_owned(),
                    found: "its request cannot be sent twice".to_owned(),
                });
            };
            let response = self.send(again, operation).await?;
            if response.status() != StatusCode::BAD_REQUEST {
                return Ok(response);
            }
            match refusal(response, operation).await {
                Error::Refused { ref messages, .. }
                    if messages.iter().any(|text| text.contains(SETTING_UP))
                        && begun.elapsed() < SET_UP_WITHIN =>
                {
                    sleep(ASK_AGAIN).await;
                }
                error => return Err(error),
            }
        }
    }
}

fn as_kv2(path: &str, mount: &Mount) -> Result<(), Error> {
    if mount.is_kv2() {
        Ok(())
    } else {
        Err(Error::ForeignMount {
            path: path.to_owned(),
            found: mount.to_string(),
        })
    }
}

fn kv_operation(mount: &str, path: &str) -> String {
    format!(
        "{}/data/{}",
        mount.trim_matches('/'),
        path.trim_matches('/')
    )
}
