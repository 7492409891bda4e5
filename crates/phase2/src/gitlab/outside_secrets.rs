//! The Secrets that the chart wants from outside, and the pods that must start anew when one of them changes.
//! (`gitlab-rails-storage` is made by step 7; the root password has a file of its own.)

use std::collections::BTreeMap;
use std::time::Duration;

use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::readiness::{BUNDLED_OPENBAO, EXPORTER, KAS, REGISTRY, SIDEKIQ, TOOLBOX, WEBSERVICE};
use crate::error::Error;
use crate::installer::{State, Work};
use crate::role_passwords::role_password;
use crate::workloads::Workload;
use crate::{names, redis, secret_readers};

pub(crate) const PSQL: &str = "gitlab-psql";
pub(crate) const OPENBAO_PSQL: &str = "gitlab-openbao-psql";
pub(crate) const REDIS: &str = "gitlab-redis";
/// All that are made here.
pub(super) const NAMES: [&str; 3] = [PSQL, OPENBAO_PSQL, REDIS];
/// Made by the chart's shared-secrets job, or brought back from the snapshot.
const OPENBAO_UNSEAL: &str = "gitlab-openbao-unseal";

/// Who reads which Secret when it starts.
const READERS: [(Workload, &[&str]); 7] = [
    (WEBSERVICE, &[PSQL, REDIS, names::RAILS_STORAGE]),
    (SIDEKIQ, &[PSQL, REDIS, names::RAILS_STORAGE]),
    (TOOLBOX, &[PSQL, REDIS, names::RAILS_STORAGE]),
    (EXPORTER, &[PSQL, REDIS]),
    (KAS, &[REDIS]),
    (REGISTRY, &[names::RAILS_STORAGE]),
    (BUNDLED_OPENBAO, &[OPENBAO_PSQL]),
];

/// Brings them to what they should hold.
pub(super) async fn ensure(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    for manifest in wanted(work).await? {
        outcome
            .changes
            .extend(work.context.cluster.apply_secret(&manifest).await?.phrase());
    }
    Ok(())
}

/// Those that are missing or differ.
pub(super) async fn differences(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut differs = Vec::new();
    for manifest in wanted(work).await? {
        let found = work
            .context
            .cluster
            .secret(names::GITLAB, &manifest.name)
            .await?;
        if found.is_none_or(|found| found.data != manifest.data) {
            differs.push(format!(
                "Secret {}/{} is missing or differs",
                names::GITLAB,
                manifest.name
            ));
        }
    }
    Ok(differs)
}

/// Restarts the workloads whose pods started before a Secret they read was last changed.
pub(super) async fn restart_readers(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    for (workload, secrets) in READERS {
        let outdated = secret_readers::outdated_pods(
            &work.context.cluster,
            names::GITLAB,
            workload.pods,
            secrets,
        )
        .await?;
        if !outdated.is_empty() && workload.exists(work).await? {
            workload.restart(work).await?;
            outcome.changed(format!(
                "restarted {}: a Secret that it reads at its start was changed since",
                workload.describe()
            ));
        }
    }
    restart_openbao_for_its_seal(work, outcome).await
}

/// A bundled OpenBao that started with a fresh seal key on an old database never gets Ready; with the right key back in the Secret it still needs a new
/// pod. One that is Ready is left alone: the chart's job labels that Secret now and then.
async fn restart_openbao_for_its_seal(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    if !matches!(BUNDLED_OPENBAO.state(work).await?, State::Broken(_)) {
        return Ok(());
    }
    let cluster = &work.context.cluster;
    if secret_readers::outdated_pods(
        cluster,
        names::GITLAB,
        BUNDLED_OPENBAO.pods,
        &[OPENBAO_UNSEAL],
    )
    .await?
    .is_empty()
    {
        return Ok(());
    }
    BUNDLED_OPENBAO.restart(work).await?;
    outcome.changed(format!(
        "restarted {}: it had started with another seal key",
        BUNDLED_OPENBAO.describe()
    ));
    // A moment for the controller to see the new generation before readiness is judged.
    BUNDLED_OPENBAO.wait(work, Duration::from_mins(5)).await
}

async fn wanted(work: Work<'_>) -> Result<Vec<SecretManifest>, Error> {
    let workspace = &work.context.workspace;
    let redis = redis::password_in_cluster(work)
        .await?
        .ok_or_else(|| Error::Failed {
            action: "read the Redis password".to_owned(),
            found: format!("no Secret {}/redis-auth", names::REDIS),
            hint: "run `blueprint up --only redis` first".to_owned(),
        })?;
    Ok(vec![
        manifest(PSQL, &role_password(workspace, "gitlab")?),
        manifest(OPENBAO_PSQL, &role_password(workspace, "gitlab_openbao")?),
        manifest(REDIS, &redis),
    ])
}

/// One Opaque Secret with the key `password`. No labels: the snapshot of the chart's Secrets applies such objects with the same field manager.
pub(super) fn manifest(name: &str, password: &SecretString) -> SecretManifest {
    SecretManifest {
        namespace: names::GITLAB.to_owned(),
        name: name.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data: BTreeMap::from([(
            "password".to_owned(),
            Zeroizing::new(password.expose_secret().as_bytes().to_vec()),
        )]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::*;

    fn named_secrets(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                if let Some(Value::String(name)) = map.get("secret") {
                    into.insert(name.clone());
                }
                map.values().for_each(|inner| named_secrets(inner, into));
            }
            Value::Array(list) => list.iter().for_each(|inner| named_secrets(inner, into)),
            _ => {}
        }
    }

    #[test]
    fn every_secret_that_gitlabs_values_name_is_made_by_us() {
        let text = include_str!("../../../../infra/phase2/references/helm-values-gitlab.yaml");
        let values =
            blueprint_charts::yaml::document(text, Path::new("helm-values-gitlab.yaml")).unwrap();
        let mut named = BTreeSet::new();
        named_secrets(&values, &mut named);
        let ours = [
            PSQL,
            OPENBAO_PSQL,
            REDIS,
            names::RAILS_STORAGE,
            super::super::root_password::SECRET,
        ];
        assert_eq!(named, ours.iter().map(|name| (*name).to_owned()).collect());
    }
}
