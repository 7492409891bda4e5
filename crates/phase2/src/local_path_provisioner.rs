//! Step 3: the local-path provisioner, with its folder on the storage root, as the only default StorageClass.

mod removal;

use std::time::Duration;

use async_trait::async_trait;
use blueprint_charts::values;
use blueprint_cluster::Change;
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::error::Error;
use crate::gateway::manifest;
use crate::installer::{Installer, State, Work};
use crate::removal::Removal;
use crate::smoke::{self, CheckResult};
use crate::smoke_row::{row, unexpected};
use crate::takeover;
use crate::workloads::Workload;

const CLASS: &str = "local-path";
const CLASS_API: &str = "storage.k8s.io/v1";
const OVERLAY: &str = "local-path/overlay.yaml";
/// The mark and its beta name, which API servers still obey (pkg/volume/util/storageclass).
const DEFAULT_MARKS: [&str; 2] = [
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
];
const READY_WITHIN: Duration = Duration::from_mins(3);

const PROVISIONER: Workload = Workload {
    kind: "Deployment",
    namespace: "local-path-storage",
    name: "local-path-provisioner",
    pods: "app=local-path-provisioner",
};

/// The installer of task `local-path`.
#[derive(Debug)]
pub struct LocalPathProvisioner;

/// The upstream manifest with our overlay on it, the Deployment last: a provisioner that starts reads the folder that is meant.
fn documents(work: Work<'_>) -> Result<Vec<Value>, Error> {
    let mut documents = manifest(work.context, "local-path")?;
    for layer in work.context.references.documents(OVERLAY)? {
        merge_into(&mut documents, layer)?;
    }
    documents.sort_by_key(|document| document["kind"] == json!("Deployment"));
    Ok(documents)
}

fn merge_into(documents: &mut [Value], layer: Value) -> Result<(), Error> {
    let identity = |document: &Value| {
        (
            document["kind"].clone(),
            document["metadata"]["name"].clone(),
        )
    };
    match documents
        .iter_mut()
        .find(|document| identity(document) == identity(&layer))
    {
        Some(document) => *document = values::merge([document.take(), layer]),
        None => {
            return Err(unexpected(
                "set our folder and default class in the local-path manifest",
                format!(
                    "the pinned manifest has no {} {}",
                    layer["kind"], layer["metadata"]["name"]
                ),
                &format!("compare {OVERLAY} with the pinned manifest"),
            ));
        }
    }
    Ok(())
}

fn is_marked_default(class: &DynamicObject) -> bool {
    let annotations = class.metadata.annotations.iter().flatten();
    annotations
        .into_iter()
        .any(|(key, value)| DEFAULT_MARKS.contains(&key.as_str()) && value == "true")
}

/// The classes that are marked as default.
async fn marked_classes(work: Work<'_>) -> Result<Vec<DynamicObject>, Error> {
    let mut classes = work
        .context
        .cluster
        .list(CLASS_API, "StorageClass", None, "")
        .await?;
    classes.retain(is_marked_default);
    Ok(classes)
}

/// Names of the default classes, ours first.
async fn default_classes(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut names: Vec<String> = marked_classes(work)
        .await?
        .into_iter()
        .filter_map(|class| class.metadata.name)
        .collect();
    names.sort_by_key(|name| name != CLASS);
    Ok(names)
}

/// Takes the mark off every class but ours, and notes on it what it had. Only the mark is ours to take: the class stays as it is.
async fn unmark_others(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    for class in marked_classes(work).await? {
        let Some(name) = class.metadata.name.as_deref().filter(|name| *name != CLASS) else {
            continue;
        };
        if work
            .context
            .cluster
            .merge_patch(
                CLASS_API,
                "StorageClass",
                None,
                name,
                &removal::without_marks(&class),
            )
            .await?
        {
            outcome.changed(format!("took the default mark off StorageClass {name}"));
        }
    }
    Ok(())
}

/// Makes our class the only default one, and touches nothing else of any class.
pub(crate) async fn mark_default(work: Work<'_>) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    let patch = json!({"metadata": {"annotations": {DEFAULT_MARKS[0]: "true"}}});
    if work
        .context
        .cluster
        .merge_patch(CLASS_API, "StorageClass", None, CLASS, &patch)
        .await?
    {
        outcome.changed(format!("marked StorageClass {CLASS} as default"));
    }
    unmark_others(work, &mut outcome).await?;
    Ok(outcome)
}

#[async_trait]
impl Installer for LocalPathProvisioner {
    fn id(&self) -> &'static str {
        "local-path"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let provisioner = PROVISIONER.state(work).await?;
        if provisioner != State::Ready {
            return Ok(provisioner);
        }
        let defaults = default_classes(work).await?;
        let mut differs = Vec::new();
        if defaults.first().is_none_or(|name| name != CLASS) {
            differs.push(format!("StorageClass {CLASS} is not default"));
        }
        differs.extend(
            defaults
                .iter()
                .filter(|name| *name != CLASS)
                .map(|name| format!("StorageClass {name} is default as well")),
        );
        Ok(if differs.is_empty() {
            State::Ready
        } else {
            State::Outdated(differs)
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        let existed = PROVISIONER.exists(work).await?;
        let mut reconfigured = false;
        for document in documents(work)? {
            takeover::remember(&work.context.cluster, &document).await?;
            let change = work.context.cluster.apply(&document).await?;
            reconfigured |=
                document["kind"] == json!("ConfigMap") && matches!(change, Change::Configured(_));
            outcome.changes.extend(change.phrase());
        }
        unmark_others(work, &mut outcome).await?;
        if existed && reconfigured {
            // The kubelet brings a changed ConfigMap to a running pod within a minute or two only: claims made meanwhile would land in the old folder.
            PROVISIONER.restart(work).await?;
            outcome.changed("restarted the local-path provisioner with its new folder");
        }
        PROVISIONER.wait(work, READY_WITHIN).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::remains(work).await
    }

    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::run(work).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![row(smoke::row::DEFAULT_CLASS, self.id(), look(work).await)]
    }
}

async fn look(work: Work<'_>) -> Result<String, Error> {
    let defaults = default_classes(work).await?;
    if defaults == [CLASS] {
        return Ok("true, and no other class is".to_owned());
    }
    let found = if defaults.is_empty() {
        "no default class".to_owned()
    } else {
        defaults.join(", ")
    };
    Err(unexpected(
        "find local-path as the only default class",
        found,
        "run `blueprint up --only local-path`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(annotations: &Value) -> DynamicObject {
        serde_json::from_value(json!({"apiVersion": CLASS_API, "kind": "StorageClass", "metadata": {"name": "x", "annotations": annotations}})).unwrap()
    }

    #[test]
    fn both_names_of_the_mark_count_and_only_when_true() {
        assert!(is_marked_default(&class(
            &json!({"storageclass.kubernetes.io/is-default-class": "true"})
        )));
        assert!(is_marked_default(&class(
            &json!({"storageclass.beta.kubernetes.io/is-default-class": "true"})
        )));
        assert!(!is_marked_default(&class(
            &json!({"storageclass.kubernetes.io/is-default-class": "false"})
        )));
        assert!(!is_marked_default(&class(&json!({}))));
    }

    #[test]
    fn the_overlay_keeps_the_rest_of_the_config_map() {
        let mut documents = vec![
            json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"setup": "s", "config.json": "old"}}),
        ];
        merge_into(
            &mut documents,
            json!({"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"config.json": "new"}}),
        )
        .unwrap();
        assert_eq!(
            documents[0]["data"],
            json!({"setup": "s", "config.json": "new"})
        );
    }

    #[test]
    fn an_overlay_without_its_counterpart_is_an_error_not_silence() {
        let result = merge_into(
            &mut [],
            json!({"kind": "ConfigMap", "metadata": {"name": "renamed"}}),
        );
        assert!(result.unwrap_err().to_string().contains("renamed"));
    }
}
