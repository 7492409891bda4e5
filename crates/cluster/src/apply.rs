//! Server-side apply.

use std::time::Duration;

use backon::{ConstantBuilder, Retryable};
use blueprint_failpoint::failpoint;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::Value;

use crate::answer::Answer;
use crate::connect::Cluster;
use crate::error::Error;
use crate::object::{Identity, Kind, describe, from_value};
use crate::retry::patiently;

/// What an apply did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Made. Holds the object's description.
    Created(String),
    /// Changed.
    Configured(String),
    /// As it was: same resourceVersion.
    Unchanged(String),
}

impl Change {
    /// `created Namespace redis`; `None` when nothing changed.
    pub fn phrase(&self) -> Option<String> {
        match self {
            Self::Created(what) => Some(format!("created {what}")),
            Self::Configured(what) => Some(format!("configured {what}")),
            Self::Unchanged(_) => None,
        }
    }
}

impl Cluster {
    /// Applies one manifest with our field manager, forcing conflicts (what we set is ours). Transient refusals are retried for up to 30 s.
    pub async fn apply(&self, manifest: &Value) -> Result<Change, Error> {
        self.apply_as(crate::FIELD_MANAGER, manifest).await
    }

    /// The same with another field manager.
    pub async fn apply_as(&self, manager: &str, manifest: &Value) -> Result<Change, Error> {
        let identity = Identity::of(manifest)?;
        let kind = self.kind_soon(identity.api_version, identity.kind).await?;
        let api = self.api_for_one(&kind, identity.namespace, identity.name)?;
        let what = identity.describe();
        let before = resource_version(&api, &what, identity.name).await?;
        failpoint!(before, "apply", "{what}");
        // Only the metadata comes back: a CRD's body is a megabyte.
        let after = patiently(&format!("apply {what}"), || async {
            let parameters = PatchParams::apply(manager).force();
            api.patch_metadata(identity.name, &parameters, &Patch::Apply(manifest))
                .await
        })
        .await?;
        failpoint!(after, "apply", "{what}");
        Ok(match before {
            None => Change::Created(what),
            Some(before) if after.metadata.resource_version.as_ref() == Some(&before) => {
                Change::Unchanged(what)
            }
            Some(_) => Change::Configured(what),
        })
    }

    /// Applies in order; answers the phrases of what changed.
    pub async fn apply_all<'a>(
        &self,
        manifests: impl IntoIterator<Item = &'a Value>,
    ) -> Result<Vec<String>, Error> {
        let mut changes = Vec::new();
        for manifest in manifests {
            changes.extend(self.apply(manifest).await?.phrase());
        }
        Ok(changes)
    }

    /// A JSON merge patch (for fields we must not own for good, like a foreign default-class mark or `claimRef.uid`). Answers whether anything changed.
    pub async fn merge_patch(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<bool, Error> {
        let known = self.kind(api_version, kind).await?;
        let api = self.api_for_one(&known, namespace, name)?;
        let what = describe(kind, namespace, name);
        let before = resource_version(&api, &what, name).await?;
        failpoint!(before, "patch", "{what}");
        let after = patiently(&format!("patch {what}"), || async {
            let parameters = PatchParams {
                field_manager: Some(crate::FIELD_MANAGER.to_owned()),
                ..PatchParams::default()
            };
            api.patch_metadata(name, &parameters, &Patch::Merge(patch))
                .await
        })
        .await?;
        failpoint!(after, "patch", "{what}");
        Ok(after.metadata.resource_version != before)
    }

    /// Puts an object in place of the one that is there, whatever other managers set in it; its resourceVersion is the one that is found now. Answers whether
    /// anything changed.
    pub async fn replace(&self, manifest: &Value) -> Result<bool, Error> {
        let identity = Identity::of(manifest)?;
        let kind = self.kind(identity.api_version, identity.kind).await?;
        let api = self.api_for_one(&kind, identity.namespace, identity.name)?;
        let what = identity.describe();
        let before = resource_version(&api, &what, identity.name).await?;
        let mut object = from_value(manifest.clone())?;
        object.metadata.resource_version.clone_from(&before);
        failpoint!(before, "put back", "{what}");
        let after = patiently(&format!("put back {what}"), || {
            let parameters = PostParams {
                field_manager: Some(crate::FIELD_MANAGER.to_owned()),
                ..PostParams::default()
            };
            let (api, object) = (&api, &object);
            async move { api.replace(identity.name, &parameters, object).await }
        })
        .await?;
        failpoint!(after, "put back", "{what}");
        Ok(after.metadata.resource_version != before)
    }

    /// A kind whose CRD may have been applied a moment ago: discovery follows its Established condition within a second or two.
    async fn kind_soon(&self, api_version: &str, kind: &str) -> Result<Kind, Error> {
        let pauses = ConstantBuilder::new()
            .with_delay(Duration::from_millis(500))
            .with_max_times(10);
        (|| self.kind(api_version, kind))
            .retry(pauses)
            .when(|error| matches!(error, Error::UnknownKind { .. }))
            .await
    }
}

async fn resource_version(
    api: &Api<DynamicObject>,
    what: &str,
    name: &str,
) -> Result<Option<String>, Error> {
    let found = patiently(&format!("read {what}"), || async {
        Answer::optional(api.get_metadata(name).await)
    })
    .await?;
    Ok(found.and_then(|object| object.metadata.resource_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_have_a_phrase() {
        assert_eq!(
            Change::Created("Namespace redis".into())
                .phrase()
                .as_deref(),
            Some("created Namespace redis")
        );
        assert_eq!(
            Change::Configured("Namespace redis".into())
                .phrase()
                .as_deref(),
            Some("configured Namespace redis")
        );
        assert_eq!(Change::Unchanged("Namespace redis".into()).phrase(), None);
    }
}
