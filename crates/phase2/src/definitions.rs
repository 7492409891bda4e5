//! Custom resource definitions that we brought: they go with us, unless somebody uses them.

use blueprint_cluster::object::describe;
use blueprint_cluster::{Error as ClusterError, ownership};
use blueprint_pipeline::Outcome;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, ListParams};

use crate::error::Error;
use crate::installer::Work;
use crate::removal;

pub(crate) const API: &str = "apiextensions.k8s.io/v1";
pub(crate) const KIND: &str = "CustomResourceDefinition";
/// How many users of a kept definition are named.
const NAMED: usize = 3;

/// Names of the definitions whose metadata says that they are meant. Only metadata is read: a definition's body is up to a megabyte.
pub(crate) async fn names(
    work: Work<'_>,
    meant: impl Fn(&ObjectMeta) -> bool,
) -> Result<Vec<String>, Error> {
    let api: Api<CustomResourceDefinition> = Api::all(work.context.cluster.client());
    let list = api
        .list_metadata(&ListParams::default())
        .await
        .map_err(|error| ClusterError::api("list the installed CRDs", error))?;
    Ok(list
        .items
        .into_iter()
        .filter(|object| meant(&object.metadata))
        .filter_map(|object| object.metadata.name)
        .collect())
}

/// Removes those that nobody uses; answers the names of those that stay, and why is noted. Deleting a definition deletes every object of its kind, so one is
/// enough to keep it.
pub(crate) async fn remove(
    work: Work<'_>,
    names: &[String],
    outcome: &mut Outcome,
) -> Result<Vec<String>, Error> {
    let mut kept = Vec::new();
    for name in names {
        match reason_to_stay(work, name).await? {
            Some(why) => {
                outcome.note(format!("{KIND} {name} stays: {why}"));
                kept.push(name.clone());
            }
            None => removal::delete(work, API, KIND, None, name, outcome).await?,
        }
    }
    Ok(kept)
}

async fn reason_to_stay(work: Work<'_>, name: &str) -> Result<Option<String>, Error> {
    let cluster = &work.context.cluster;
    let Some(found) = cluster.get(API, KIND, None, name).await? else {
        return Ok(None);
    };
    let users = objects_of(work, &found.data).await?;
    if let Some(first) = users.first() {
        let named = users.iter().take(NAMED).map(String::as_str);
        let more = users.len().saturating_sub(NAMED);
        let list = named.collect::<Vec<_>>().join(", ");
        return Ok(Some(match more {
            0 if users.len() == 1 => format!("{first} is of its kind, and not blueprint's"),
            0 => format!("{list} are of its kind, and not blueprint's"),
            _ => format!("{list} and {more} more are of its kind, and not blueprint's"),
        }));
    }
    Ok(ownership::other_manager(&found.metadata)
        .filter(|manager| *manager != "Helm" && *manager != "helm")
        .map(|manager| format!("{manager} made or changed it as well")))
}

/// The objects of the kind that this definition defines.
async fn objects_of(work: Work<'_>, definition: &serde_json::Value) -> Result<Vec<String>, Error> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().into_iter().flatten();
    let served = versions
        .filter(|version| version["served"] == serde_json::json!(true))
        .find_map(|version| version["name"].as_str());
    let (Some(group), Some(version), Some(kind)) = (
        spec["group"].as_str(),
        served,
        spec["names"]["kind"].as_str(),
    ) else {
        return Ok(Vec::new());
    };
    let objects = work
        .context
        .cluster
        .list(&format!("{group}/{version}"), kind, None, "")
        .await?;
    Ok(objects
        .iter()
        .map(|object| {
            let metadata = &object.metadata;
            let name = metadata.name.as_deref().unwrap_or_default();
            describe(kind, metadata.namespace.as_deref(), name)
        })
        .collect())
}
