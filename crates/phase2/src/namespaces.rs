//! Leaving a namespace: it goes when we made it and nobody is left in it.

use std::time::Duration;

use blueprint_cluster::{Resident, ownership};
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::json;

use crate::error::Error;
use crate::installer::Work;

/// Pods in it may take their grace periods.
const GONE_WITHIN: Duration = Duration::from_mins(5);
/// How many of those that stay are named.
const NAMED: usize = 5;

/// What becomes of a namespace that one of our components leaves.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// Others of ours are still in it.
    Shared,
    /// Somebody else's objects are in it: these.
    Inhabited(Vec<String>),
    /// Empty.
    Free,
}

fn fate(residents: &[Resident]) -> Fate {
    if residents
        .iter()
        .any(|resident| ownership::applied_by_us(&resident.metadata))
    {
        Fate::Shared
    } else if residents.is_empty() {
        Fate::Free
    } else {
        Fate::Inhabited(residents.iter().map(Resident::describe).collect())
    }
}

async fn read(work: Work<'_>, name: &str) -> Result<Option<DynamicObject>, Error> {
    Ok(work
        .context
        .cluster
        .get("v1", "Namespace", None, name)
        .await?)
}

/// `Namespace redis`, if it is there and we made it.
pub(crate) async fn there(work: Work<'_>, name: &str) -> Result<Option<String>, Error> {
    Ok(read(work, name)
        .await?
        .filter(|found| {
            ownership::applied_by_us(&found.metadata)
                && !ownership::namespace_of_another(&found.metadata)
        })
        .map(|_| format!("Namespace {name}")))
}

/// Called by each component when its own objects are gone. A namespace that was there before us only loses our label; one in which somebody else lives stays,
/// and that is said.
pub(crate) async fn leave(work: Work<'_>, name: &str, outcome: &mut Outcome) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    let Some(found) = read(work, name).await? else {
        return Ok(());
    };
    if !ownership::applied_by_us(&found.metadata) {
        return Ok(());
    }
    if found.metadata.deletion_timestamp.is_none() {
        match fate(&cluster.residents(name).await?) {
            Fate::Shared => return Ok(()),
            _ if ownership::namespace_of_another(&found.metadata) => {
                return give_back(work, name, outcome).await;
            }
            Fate::Inhabited(others) => {
                outcome.note(stays(name, &others));
                return Ok(());
            }
            Fate::Free => {}
        }
    }
    if cluster
        .delete("v1", "Namespace", None, name, GONE_WITHIN)
        .await?
    {
        outcome.changed(format!("deleted Namespace {name}"));
    }
    Ok(())
}

async fn give_back(work: Work<'_>, name: &str, outcome: &mut Outcome) -> Result<(), Error> {
    let patch = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}});
    if work
        .context
        .cluster
        .merge_patch("v1", "Namespace", None, name, &patch)
        .await?
    {
        outcome.changed(format!(
            "took our label off Namespace {name}, which was there before"
        ));
    }
    Ok(())
}

fn stays(name: &str, others: &[String]) -> String {
    let named = others
        .iter()
        .take(NAMED)
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(", ");
    let more = others.len().saturating_sub(NAMED);
    let more = if more == 0 {
        String::new()
    } else {
        format!(" and {more} more")
    };
    format!("Namespace {name} stays: {named}{more} is not blueprint's")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident(name: &str, manager: &str) -> Resident {
        Resident {
            api_version: "v1".to_owned(),
            kind: "Secret".to_owned(),
            metadata: serde_json::from_value(json!({"name": name, "namespace": "gitlab",
                "managedFields": [{"manager": manager, "operation": "Apply"}]}))
            .unwrap(),
        }
    }

    #[test]
    fn the_last_of_ours_deletes_it_unless_somebody_else_lives_there() {
        let (ours, theirs) = (resident("a", "blueprint"), resident("b", "kubectl"));
        assert_eq!(fate(&[ours, theirs.clone()]), Fate::Shared);
        assert_eq!(
            fate(&[theirs]),
            Fate::Inhabited(vec!["Secret gitlab/b".to_owned()])
        );
        assert_eq!(fate(&[]), Fate::Free);
    }

    #[test]
    fn of_many_others_five_are_named_and_the_rest_counted() {
        let others: Vec<String> = (0..7).map(|number| format!("Pod n/{number}")).collect();
        let said = stays("n", &others);
        assert!(
            said.contains("Pod n/4 and 2 more") && !said.contains("Pod n/5"),
            "{said}"
        );
    }
}
