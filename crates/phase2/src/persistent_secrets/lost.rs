//! Volumes that GitLab has used, and no keys for them anywhere: neither a snapshot nor a Secret in the cluster. The chart's job would mint new keys, and every
//! encrypted column of the old database would be unreadable for ever after the first write with them.

use kube::api::DynamicObject;
use serde_json::Value;

use super::plan::RAILS;
use crate::ambiguity::Way;
use crate::context::Context;
use crate::error::Error;
use crate::kind_node_trust::kubernetes_nodes;
use crate::names;

/// What lies on Gitaly's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Traces {
    /// Nothing: GitLab never ran here.
    None,
    /// It ran, but there is no repository.
    Started,
    /// Repositories (Gitaly keeps projects under `@hashed`, <https://docs.gitlab.com/administration/repository_storage_paths>).
    Repositories,
}

fn traces(listing: &str) -> Traces {
    let names: Vec<&str> = listing
        .lines()
        .map(str::trim)
        .filter(|name| !name.is_empty() && *name != "lost+found")
        .collect();
    if names.contains(&"@hashed") {
        Traces::Repositories
    } else if names.is_empty() {
        Traces::None
    } else {
        Traces::Started
    }
}

/// Called when there is no snapshot: answers a note, or refuses where repositories would be left without their keys.
pub(super) async fn check(context: &Context) -> Result<Option<String>, Error> {
    if context
        .cluster
        .secret(names::GITLAB, RAILS)
        .await?
        .is_some()
    {
        return Ok(None);
    }
    let Some((found, path)) = look(context).await? else {
        return Ok(None);
    };
    match found {
        Traces::Repositories if context.accepted.contains(&Way::NewGitlabKeys) => {
            Ok(Some(format!(
                "GitLab's keys are lost and there are repositories in {path}: new keys are minted, as accepted"
            )))
        }
        Traces::None => Ok(None),
        Traces::Started => Ok(Some(format!(
            "GitLab ran on these volumes before and its keys are lost; {path} holds no repository, so new keys are minted"
        ))),
        Traces::Repositories => Err(refusal(context, &path)),
    }
}

/// Whether Gitaly's volume holds repositories; `false` where no node can be asked.
pub(crate) async fn repositories(context: &Context) -> Result<bool, Error> {
    let found = look(context).await?;
    Ok(found.is_some_and(|(traces, _)| traces == Traces::Repositories))
}

/// Looks through a node; `None` where none can be asked.
async fn look(context: &Context) -> Result<Option<(Traces, String)>, Error> {
    let (Some(nodes), Some(path)) = (&context.nodes, gitaly_folder(context)?) else {
        return Ok(None);
    };
    let Some(node) = kubernetes_nodes(nodes).await?.into_iter().next() else {
        return Ok(None);
    };
    let listing = nodes.exec(&node, &["ls", "-A", &path], None).await?;
    Ok(Some((traces(&listing.stdout), path)))
}

/// From persistent-volumes.yaml: the host path of the volume whose claim is Gitaly's.
fn gitaly_folder(context: &Context) -> Result<Option<String>, Error> {
    let volumes = context.references.documents("persistent-volumes.yaml")?;
    Ok(volumes
        .into_iter()
        .filter_map(|volume| blueprint_cluster::object::from_value(volume).ok())
        .find(|volume| volume.metadata.name.as_deref() == Some("pv-gitaly"))
        .as_ref()
        .and_then(host_path))
}

fn host_path(volume: &DynamicObject) -> Option<String> {
    volume
        .data
        .pointer("/spec/hostPath/path")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn refusal(context: &Context, path: &str) -> Error {
    let snapshot = context.workspace.gitlab_snapshot();
    Error::Refused {
        summary: "GitLab's data is there, but its keys are not".to_owned(),
        expected: format!(
            "{} (or one of its copies .1 to .5), made when this data was",
            snapshot.display()
        ),
        found: format!(
            "repositories in {path}, and neither a snapshot nor Secret {}/{RAILS}",
            names::GITLAB
        ),
        hint: format!(
            "put the snapshot back and run `blueprint up`; or `blueprint up --accept {}`, which {}; or `blueprint up --accept {}` on a new cluster, which {}",
            Way::NewGitlabKeys.id(),
            Way::NewGitlabKeys.meaning(),
            Way::VolumesAside.id(),
            Way::VolumesAside.meaning()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_lost_while_volumes_were_kept_are_noticed_by_the_repositories() {
        assert_eq!(traces("@hashed\n+gitaly\n"), Traces::Repositories);
        assert_eq!(traces("+gitaly\n.gitaly-metadata\n"), Traces::Started);
        assert_eq!(traces("lost+found\n"), Traces::None);
        assert_eq!(traces(""), Traces::None);
    }
}
