//! Step 13: the runner, with a token that is reused for as long as it verifies.

mod token;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use crate::error::Error;
use crate::helm_release::{self, ReleaseSpec};
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::registry_dns_pin;
use crate::removal::{self, Piece, Removal};
use crate::secret_readers;
use crate::smoke::{CheckResult, row};
use crate::smoke_row;
use crate::workloads::{Workload, release_and_workloads};

pub(crate) use token::{KV_KEY, KV_PATH};

const TASK: &str = "runner";
/// The chart's `runners.secret`.
pub(crate) const SECRET: &str = "gitlab-runner-token";
/// The key that holds the authentication token.
pub(crate) const SECRET_KEY: &str = "runner-token";
const RELEASE: ReleaseSpec = ReleaseSpec {
    key: "runner",
    namespace: names::GITLAB,
    skip_crds: false,
    skip_schema_validation: false,
    timeout: Duration::from_mins(5),
};
const RUNNER: Workload = Workload {
    kind: "Deployment",
    namespace: names::GITLAB,
    name: "gitlab-runner",
    pods: "app=gitlab-runner",
};
const READY: Duration = Duration::from_mins(5);
/// A lost name is remembered for seconds, and a ClusterIP may be unreachable just after a rollout.
const REACHABLE: Duration = Duration::from_mins(2);

/// The installer of task `runner`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Runner;

#[async_trait]
impl Installer for Runner {
    fn id(&self) -> &'static str {
        TASK
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let release = helm_release::inspect(work, &RELEASE).await?;
        match release_and_workloads(release, &[RUNNER], work).await? {
            State::Ready => {}
            other => return Ok(other),
        }
        match token::kept(work).await? {
            None => Ok(State::Outdated(vec![
                "OpenBao holds no runner token".to_owned(),
            ])),
            Some(token) if !token::verifies(work, &token).await? => Ok(State::Broken(
                "the runner's token is not valid any more".to_owned(),
            )),
            Some(token) if !secret_holds(work, &token).await? => {
                Ok(State::Outdated(vec![format!(
                    "Secret {SECRET} holds another token"
                )]))
            }
            Some(_) => Ok(State::Ready),
        }
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::unchanged();
        let (runner, reach) = tokio::join!(
            install(work, &mut outcome),
            registry_dns_pin::wait_reachable(work, REACHABLE)
        );
        runner?;
        reach?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::there(work, &pieces()).await
    }

    /// The runner stays registered, and its token stays in OpenBao: the next install takes it up again.
    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::remove_all(work, &pieces()).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![smoke_row::row(row::RUNNER, TASK, registered(work).await)]
    }
}

fn pieces() -> [Piece; 4] {
    [
        Piece::Release(RELEASE),
        Piece::Pods {
            namespace: names::GITLAB,
            selector: RUNNER.pods,
        },
        Piece::secret(names::GITLAB, SECRET),
        Piece::SharedNamespace(names::GITLAB),
    ]
}

async fn install(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let token = settle_token(work, outcome).await?;
    let cluster = &work.context.cluster;
    outcome
        .changes
        .extend(cluster.apply_secret(&manifest(&token)).await?.phrase());
    helm_release::ensure(work, &RELEASE, outcome).await?;
    // The chart's checksum annotation does not see a Secret that is not its own.
    let outdated =
        secret_readers::outdated_pods(cluster, names::GITLAB, RUNNER.pods, &[SECRET]).await?;
    if !outdated.is_empty() {
        RUNNER.restart(work).await?;
        outcome.changed(format!(
            "restarted {}, which ran with another token",
            RUNNER.describe()
        ));
    }
    RUNNER.wait(work, READY).await?;
    if !token::verifies(work, &token).await? {
        return Err(Error::Failed {
            action: "register the runner".to_owned(),
            found: "GitLab does not take the token that it has just given".to_owned(),
            hint: "look at the runner in Admin → CI/CD → Runners; delete it there and run `blueprint up --only runner`".to_owned(),
        });
    }
    Ok(())
}

/// The kept token while it verifies; else the one of the runner with our description; else a new runner's.
async fn settle_token(work: Work<'_>, outcome: &mut Outcome) -> Result<SecretString, Error> {
    let kept = token::kept(work).await?;
    if let Some(token) = &kept
        && token::verifies(work, token).await?
    {
        return Ok(token.clone());
    }
    let found = token::from_rails(work).await?;
    token::keep(work, &found.token).await?;
    outcome.changed(match (found.created, kept.is_some()) {
        (true, _) => format!("created the runner {}", token::DESCRIPTION),
        (false, true) => "replaced a token that was not valid any more".to_owned(),
        (false, false) => format!(
            "took the token of the runner {} from GitLab",
            token::DESCRIPTION
        ),
    });
    Ok(found.token)
}

/// Both keys: the chart mounts both, and the registration token must be empty.
fn manifest(token: &SecretString) -> SecretManifest {
    let data = BTreeMap::from([
        (
            "runner-registration-token".to_owned(),
            Zeroizing::new(Vec::new()),
        ),
        (
            SECRET_KEY.to_owned(),
            Zeroizing::new(token.expose_secret().as_bytes().to_vec()),
        ),
    ]);
    SecretManifest {
        namespace: names::GITLAB.to_owned(),
        name: SECRET.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data,
    }
}

async fn secret_holds(work: Work<'_>, token: &SecretString) -> Result<bool, Error> {
    let secret = work.context.cluster.secret(names::GITLAB, SECRET).await?;
    Ok(secret.is_some_and(|secret| {
        secret
            .data
            .get(SECRET_KEY)
            .is_some_and(|held| held.as_slice() == token.expose_secret().as_bytes())
    }))
}

/// Asking Rails for the list of runners takes up to a minute; a verified token and a ready pod that carries it say as much within a second.
async fn registered(work: Work<'_>) -> Result<String, Error> {
    let failed = |found: &str| {
        Error::Failed {
        action: "find the runner".to_owned(),
        found: found.to_owned(),
        hint: "run `blueprint up --only runner`: it reads the token from OpenBao again and verifies it".to_owned(),
    }
    };
    let Some(token) = token::kept(work).await? else {
        return Err(failed("OpenBao holds no token at secret/gitlab/runner"));
    };
    if !token::verifies(work, &token).await? {
        return Err(failed("GitLab does not know the token any more"));
    }
    if !secret_holds(work, &token).await? {
        return Err(failed(
            "Secret gitlab-runner-token holds another token than OpenBao",
        ));
    }
    match RUNNER.state(work).await? {
        State::Ready => Ok(format!(
            "token verified, {} ready with it",
            RUNNER.describe()
        )),
        State::Missing => Err(failed("Deployment gitlab/gitlab-runner is missing")),
        State::Outdated(why) => Err(failed(&why.join("; "))),
        State::Broken(why) => Err(failed(&why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_has_both_keys_and_an_empty_registration_token() {
        let manifest = manifest(&SecretString::from("glrt-x".to_owned()));
        assert_eq!(
            manifest.data.keys().collect::<Vec<_>>(),
            ["runner-registration-token", "runner-token"]
        );
        assert!(manifest.data["runner-registration-token"].is_empty());
        assert_eq!(manifest.data["runner-token"].as_slice(), b"glrt-x");
    }
}
