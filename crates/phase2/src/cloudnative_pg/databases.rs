//! The Database objects: applied once the Cluster is Ready (made before, they fail and are retried only every 30 s) and waited for to the last extension.

use std::time::Duration;

use blueprint_cluster::{Verdict, WaitFor};
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::error::Error;
use crate::installer::Work;
use crate::names;

pub(super) const API: &str = "postgresql.cnpg.io/v1";
const FILES: [&str; 3] = [
    "database-gitlabhq-production.yaml",
    "database-openbao.yaml",
    "database-gitlab-openbao.yaml",
];
const APPLIED_WITHIN: Duration = Duration::from_mins(2);

/// The manifests of the references.
pub(super) fn manifests(work: Work<'_>) -> Result<Vec<Value>, Error> {
    let mut all = Vec::new();
    for file in FILES {
        all.extend(work.context.references.documents(file)?);
    }
    Ok(all)
}

/// Applies all, then waits for each.
pub(super) async fn ensure(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let manifests = manifests(work)?;
    outcome
        .changes
        .extend(work.context.cluster.apply_all(&manifests).await?);
    for manifest in &manifests {
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!(
            "database {} to be as declared",
            manifest["spec"]["name"].as_str().unwrap_or(name)
        );
        let target = WaitFor {
            what: &what,
            api_version: API,
            kind: "Database",
            namespace: Some(names::POSTGRESQL),
            name,
            pods: Some(super::cluster::PODS),
            deadline: APPLIED_WITHIN,
        };
        work.context
            .cluster
            .wait(&target, &judge, &|blocker| work.progress.waiting(blocker))
            .await?;
    }
    Ok(())
}

/// `applied: true` for the newest generation and for every extension: `applied` alone may be about an older version of the object.
pub(super) fn judge(database: Option<&DynamicObject>) -> Verdict {
    let Some(database) = database else {
        return Verdict::Waiting("it does not exist yet".to_owned());
    };
    let status = &database.data["status"];
    if status["observedGeneration"].as_i64() != database.metadata.generation {
        return Verdict::Waiting(
            "its newest version was not yet taken up by the instance".to_owned(),
        );
    }
    if status["applied"] != json!(true) {
        return Verdict::Waiting(
            status["message"]
                .as_str()
                .unwrap_or("it was not applied yet")
                .to_owned(),
        );
    }
    let asked = database.data["spec"]["extensions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|extension| extension["name"].as_str());
    let done = status["extensions"].as_array().cloned().unwrap_or_default();
    for name in asked {
        match done
            .iter()
            .find(|extension| extension["name"] == json!(name))
        {
            Some(extension) if extension["applied"] == json!(true) => {}
            Some(extension) => {
                return Verdict::Waiting(format!(
                    "extension {name}: {}",
                    extension["message"].as_str().unwrap_or("not applied yet")
                ));
            }
            None => return Verdict::Waiting(format!("extension {name} was not looked at yet")),
        }
    }
    Verdict::Ready
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": API, "kind": "Database", "metadata": {"name": "d", "generation": 2},
            "spec": {"name": "d", "extensions": [{"name": "pg_trgm"}, {"name": "amcheck"}]}, "status": status
        }))
        .unwrap()
    }

    fn waits(status: &Value) -> String {
        match judge(Some(&database(status))) {
            Verdict::Waiting(why) => why,
            other => panic!("expected to wait, got {other:?}"),
        }
    }

    #[test]
    fn done_means_applied_at_the_newest_generation_with_every_extension() {
        let both =
            json!([{"name": "pg_trgm", "applied": true}, {"name": "amcheck", "applied": true}]);
        let done = json!({"observedGeneration": 2, "applied": true, "extensions": both});
        assert_eq!(judge(Some(&database(&done))), Verdict::Ready);
    }

    #[test]
    fn anything_less_waits_and_says_why() {
        assert!(waits(&json!({})).contains("newest version"));
        assert!(
            waits(&json!({"observedGeneration": 1, "applied": true})).contains("newest version")
        );
        assert_eq!(
            waits(
                &json!({"observedGeneration": 2, "applied": false, "message": "role gitlab does not exist"})
            ),
            "role gitlab does not exist"
        );
        let one = json!({"observedGeneration": 2, "applied": true, "extensions": [{"name": "pg_trgm", "applied": true}]});
        assert!(waits(&one).contains("amcheck"));
        let failed = json!({"observedGeneration": 2, "applied": true, "extensions": [{"name": "pg_trgm", "applied": false, "message": "no such file"}]});
        assert!(waits(&failed).contains("no such file"));
    }
}
