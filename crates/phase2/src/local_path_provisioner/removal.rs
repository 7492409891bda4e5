//! The provisioner taken away again: what we made goes, what was there before is put back, and the former default class is default again.
//!
//! What is ours is told by the field manager, so that neither the manifest nor its version matters.

use blueprint_cluster::object::describe;
use blueprint_cluster::{Cluster, ownership};
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use super::{CLASS, CLASS_API, DEFAULT_MARKS, PROVISIONER};
use crate::error::Error;
use crate::installer::Work;
use crate::namespaces;
use crate::removal;
use crate::takeover::{self, Leaving};

/// On a class that lost its mark to us: the annotations that it had, as JSON.
pub(super) const FORMER_MARK: &str = "blueprint.dev/former-default-mark";
const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// Kinds without a namespace; step 3 is the only one that applies them by itself.
const CLUSTER_WIDE: [(&str, &str); 3] = [
    (CLASS_API, "StorageClass"),
    (RBAC, "ClusterRoleBinding"),
    (RBAC, "ClusterRole"),
];
/// The annotation of a volume that the provisioner made (sig-storage-lib-external-provisioner, `annDynamicallyProvisioned`).
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

/// One object that we applied.
struct Ours {
    api_version: String,
    kind: String,
    object: DynamicObject,
}

impl Ours {
    fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    fn describe(&self) -> String {
        describe(
            &self.kind,
            self.object.metadata.namespace.as_deref(),
            self.name(),
        )
    }
}

/// The annotations to put on a class that loses its marks: null for each mark, and what it had.
pub(super) fn without_marks(class: &DynamicObject) -> Value {
    let mut annotations = Map::new();
    let mut former = Map::new();
    for (key, value) in class.metadata.annotations.iter().flatten() {
        if DEFAULT_MARKS.contains(&key.as_str()) {
            annotations.insert(key.clone(), Value::Null);
            former.insert(key.clone(), json!(value));
        }
    }
    annotations.insert(
        FORMER_MARK.to_owned(),
        json!(Value::Object(former).to_string()),
    );
    json!({"metadata": {"annotations": annotations}})
}

/// The other way round; `None` for a class that we never touched.
fn with_marks(class: &DynamicObject) -> Option<Value> {
    let former = class.metadata.annotations.as_ref()?.get(FORMER_MARK)?;
    let mut annotations: Map<String, Value> = serde_json::from_str(former).unwrap_or_default();
    annotations.retain(|key, _| DEFAULT_MARKS.contains(&key.as_str()));
    annotations.insert(FORMER_MARK.to_owned(), Value::Null);
    Some(json!({"metadata": {"annotations": annotations}}))
}

async fn ours(work: Work<'_>) -> Result<Vec<Ours>, Error> {
    let cluster = &work.context.cluster;
    let mut found = Vec::new();
    for resident in cluster.residents(PROVISIONER.namespace).await? {
        if !ownership::applied_by_us(&resident.metadata) {
            continue;
        }
        let name = resident.metadata.name.as_deref().unwrap_or_default();
        let object = cluster
            .get(
                &resident.api_version,
                &resident.kind,
                Some(PROVISIONER.namespace),
                name,
            )
            .await?;
        found.extend(object.map(|object| Ours {
            api_version: resident.api_version,
            kind: resident.kind,
            object,
        }));
    }
    for (api_version, kind) in CLUSTER_WIDE {
        let objects = cluster.list(api_version, kind, None, "").await?;
        found.extend(
            objects
                .into_iter()
                .filter(|object| ownership::applied_by_us(&object.metadata))
                .map(|object| Ours {
                    api_version: api_version.to_owned(),
                    kind: kind.to_owned(),
                    object,
                }),
        );
    }
    // The server first: one that has lost its settings or its rights would fail aloud.
    found.sort_by_key(|ours| ours.kind != PROVISIONER.kind);
    Ok(found)
}

/// Volumes that the provisioner made for somebody's claims; it alone can remove them again.
async fn in_use(cluster: &Cluster) -> Result<Vec<String>, Error> {
    let volumes = cluster.list("v1", "PersistentVolume", None, "").await?;
    Ok(volumes
        .iter()
        .filter(|volume| {
            let annotations = volume.metadata.annotations.as_ref();
            volume.data["spec"]["storageClassName"] == json!(CLASS)
                && annotations.is_some_and(|annotations| annotations.contains_key(PROVISIONED_BY))
        })
        .map(|volume| {
            let claim = &volume.data["spec"]["claimRef"];
            describe(
                "PersistentVolumeClaim",
                claim["namespace"].as_str(),
                claim["name"].as_str().unwrap_or_default(),
            )
        })
        .collect())
}

async fn marked_formerly(cluster: &Cluster) -> Result<Vec<(String, Value)>, Error> {
    let classes = cluster.list(CLASS_API, "StorageClass", None, "").await?;
    Ok(classes
        .into_iter()
        .filter_map(|class| Some((class.metadata.name.clone()?, with_marks(&class)?)))
        .collect())
}

pub(super) async fn remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut found: Vec<String> = ours(work)
        .await?
        .iter()
        .filter_map(|ours| match takeover::leaving(&ours.object) {
            Leaving::Delete => Some(ours.describe()),
            Leaving::PutBack(_) => Some(format!("{} (put back to what it was)", ours.describe())),
            Leaving::Leave => None,
        })
        .collect();
    found.extend(namespaces::there(work, PROVISIONER.namespace).await?);
    let classes = marked_formerly(&work.context.cluster).await?;
    found.extend(
        classes
            .iter()
            .map(|(name, _)| format!("our class as the default one, instead of {name}")),
    );
    Ok(found)
}

pub(super) async fn run(work: Work<'_>) -> Result<Outcome, Error> {
    let cluster = &work.context.cluster;
    let mut outcome = Outcome::unchanged();
    let users = in_use(cluster).await?;
    if !users.is_empty() {
        outcome.note(format!(
            "StorageClass {CLASS} and its provisioner stay: they made the volume of {}",
            users.join(", ")
        ));
        return Ok(outcome);
    }
    for (name, marks) in marked_formerly(cluster).await? {
        if cluster
            .merge_patch(CLASS_API, "StorageClass", None, &name, &marks)
            .await?
        {
            outcome.changed(format!("made StorageClass {name} default again"));
        }
    }
    for ours in ours(work).await? {
        let what = ours.describe();
        match takeover::leaving(&ours.object) {
            Leaving::PutBack(before) => {
                takeover::put_back(cluster, &what, &before, &mut outcome).await?;
            }
            Leaving::Leave => outcome.note(format!(
                "{what} stays as it is: it was there before blueprint, and what it was is not known"
            )),
            Leaving::Delete => {
                let namespace = ours.object.metadata.namespace.as_deref();
                removal::delete(
                    work,
                    &ours.api_version,
                    &ours.kind,
                    namespace,
                    ours.name(),
                    &mut outcome,
                )
                .await?;
            }
        }
    }
    leave_namespace(work, &mut outcome).await?;
    Ok(outcome)
}

async fn leave_namespace(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let name = PROVISIONER.namespace;
    let cluster = &work.context.cluster;
    let Some(found) = cluster.get("v1", "Namespace", None, name).await? else {
        return Ok(());
    };
    match takeover::leaving(&found) {
        Leaving::PutBack(before) => {
            let what = describe("Namespace", None, name);
            takeover::put_back(cluster, &what, &before, outcome).await
        }
        Leaving::Delete | Leaving::Leave => namespaces::leave(work, name, outcome).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(annotations: &Value) -> DynamicObject {
        serde_json::from_value(json!({"apiVersion": CLASS_API, "kind": "StorageClass", "metadata": {"name": "standard", "annotations": annotations}})).unwrap()
    }

    #[test]
    fn a_class_gets_back_the_mark_that_it_had_and_nothing_more() {
        let mark = DEFAULT_MARKS[1];
        let patch = without_marks(&class(&json!({mark: "true", "other": "stays"})));
        let annotations = &patch["metadata"]["annotations"];
        assert_eq!(annotations[mark], Value::Null);
        assert_eq!(annotations.as_object().unwrap().len(), 2);

        let unmarked = class(&json!({FORMER_MARK: annotations[FORMER_MARK], "other": "stays"}));
        assert_eq!(
            with_marks(&unmarked).unwrap(),
            json!({"metadata": {"annotations": {mark: "true", FORMER_MARK: null}}})
        );
        assert_eq!(with_marks(&class(&json!({"other": "stays"}))), None);
    }

    #[test]
    fn an_edited_record_cannot_set_anything_but_the_mark() {
        let edited = class(&json!({FORMER_MARK: "{\"evil\":\"x\"}"}));
        let patch = with_marks(&edited).unwrap();
        assert_eq!(patch["metadata"]["annotations"], json!({FORMER_MARK: null}));
    }
}
