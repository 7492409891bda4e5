//! Reading objects.

use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{Api, DynamicObject, ListParams, LogParams};

use crate::answer::Answer;
use crate::connect::Cluster;
use crate::error::Error;
use crate::object::describe;
use crate::retry::patiently;

/// Objects per page: bounds what one answer holds in memory.
const PAGE: u32 = 250;

impl Cluster {
    /// One object; `None` when it (or its kind) is not there. Transient refusals are retried for up to 30 s, here and in the other reads.
    pub async fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<DynamicObject>, Error> {
        let known = match self.kind(api_version, kind).await {
            Err(Error::UnknownKind { .. }) => return Ok(None),
            known => known?,
        };
        let api = self.api_for_one(&known, namespace, name)?;
        patiently(
            &format!("read {}", describe(kind, namespace, name)),
            || async { Answer::optional(api.get(name).await) },
        )
        .await
    }

    /// All objects of a kind, in a namespace or everywhere, filtered by a label selector (`""` for all). Empty when the kind is unknown.
    pub async fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<DynamicObject>, Error> {
        let known = match self.kind(api_version, kind).await {
            Err(Error::UnknownKind { .. }) => return Ok(Vec::new()),
            known => known?,
        };
        let api = self.api_of(&known, namespace);
        let action = format!("list {kind} objects");
        let mut all = Vec::new();
        let mut parameters = ListParams::default().labels(selector).limit(PAGE);
        loop {
            let page = match patiently(&action, || api.list(&parameters)).await {
                // A custom kind that was remembered and is gone since.
                Err(Error::Api { source, .. }) if source.is_not_found() => return Ok(Vec::new()),
                page => page?,
            };
            all.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(all),
            }
        }
    }

    /// Pods of a namespace.
    pub async fn pods(&self, namespace: &str, selector: &str) -> Result<Vec<Pod>, Error> {
        let api = Api::<Pod>::namespaced(self.client(), namespace);
        let parameters = ListParams::default().labels(selector);
        let list = patiently(&format!("list pods of {namespace}"), || {
            api.list(&parameters)
        })
        .await?;
        Ok(list.items)
    }

    /// The name of a Running and Ready pod that matches; `None` when there is none.
    pub async fn ready_pod(
        &self,
        namespace: &str,
        selector: &str,
    ) -> Result<Option<String>, Error> {
        let pods = self.pods(namespace, selector).await?;
        Ok(pods
            .into_iter()
            .find(is_ready)
            .and_then(|pod| pod.metadata.name))
    }

    /// The last `lines` log lines of a container.
    pub async fn log_tail(
        &self,
        namespace: &str,
        pod: &str,
        container: Option<&str>,
        lines: i64,
    ) -> Result<Vec<String>, Error> {
        let parameters = LogParams {
            container: container.map(str::to_owned),
            tail_lines: Some(lines),
            ..LogParams::default()
        };
        let api = Api::<Pod>::namespaced(self.client(), namespace);
        let text = patiently(&format!("read the log of pod {namespace}/{pod}"), || {
            api.logs(pod, &parameters)
        })
        .await?;
        Ok(text.lines().map(str::to_owned).collect())
    }
}

/// Running, Ready and not being deleted.
pub fn is_ready(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod.status.as_ref().is_some_and(|status| {
            status.phase.as_deref() == Some("Running") && condition_is_true(status, "Ready")
        })
}

pub(crate) fn condition_is_true(status: &PodStatus, condition: &str) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|found| found.type_ == condition && found.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(phase: &str, ready: &str, deleting: bool) -> Pod {
        let mut pod = json!({"metadata": {"name": "a"}, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}});
        if deleting {
            pod["metadata"]["deletionTimestamp"] = json!("2026-11-30T00:00:00Z");
        }
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_pod_being_deleted_is_not_ready() {
        assert!(is_ready(&pod("Running", "True", false)));
        assert!(!is_ready(&pod("Running", "True", true)));
        assert!(!is_ready(&pod("Running", "False", false)));
        assert!(!is_ready(&pod("Succeeded", "True", false)));
    }
}
