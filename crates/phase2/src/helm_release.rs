//! A release brought to what is wanted: nothing when its inputs are the same, an upgrade when they differ, mended first when a helm was cut off.

pub mod uninstall;

use std::future::Future;
use std::time::Duration;

use blueprint_charts::artifact::Source;
use blueprint_charts::{Artifact, ChartPin, Helm, HelmError, ReleaseInstall, Versions, values};
use blueprint_cluster::Release;
use blueprint_pipeline::Outcome;
use serde_json::Value;
use tokio::time::Instant;

use crate::error::Error;
use crate::installer::{State, Work};
use crate::made_with;

/// The label on the release record that holds the digest of chart and values.
pub const INPUTS_LABEL: &str = "blueprint-inputs";
/// How long refusals that pass by themselves are met with another try (an operator's webhook after its restart takes up to 7 s).
const TRANSIENT_FOR: Duration = Duration::from_mins(1);
/// Between two tries.
const PAUSE: Duration = Duration::from_secs(3);
/// Between two looks at who blocks.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// What an installer says about its release; name, chart and version come from VERSIONS.json.
#[derive(Debug, Clone)]
pub struct ReleaseSpec {
    /// Key in `helm_repositories`.
    pub key: &'static str,
    /// Namespace.
    pub namespace: &'static str,
    /// `--skip-crds`.
    pub skip_crds: bool,
    /// `--skip-schema-validation`.
    pub skip_schema_validation: bool,
    /// For hooks.
    pub timeout: Duration,
}

/// The verified chart and merged values of one release.
struct Wanted {
    install: ReleaseInstall,
    inputs: String,
    chart: String,
}

impl Wanted {
    fn of(work: Work<'_>, spec: &ReleaseSpec, overlay: Option<Value>) -> Result<Self, Error> {
        let context = work.context;
        let pin = context.versions.chart(spec.key)?;
        let artifact = chart_artifact(&context.versions, spec.key, pin);
        let chart = context.cache.verified(&artifact)?;
        let own = context.references.values(spec.key, &context.versions)?;
        let values = values::merge([Some(own), overlay].into_iter().flatten());
        let inputs = ReleaseInstall::inputs_digest(&chart.sha256, &values);
        let install = ReleaseInstall {
            name: pin.name.clone(),
            namespace: spec.namespace.to_owned(),
            chart: chart.path,
            values,
            skip_crds: spec.skip_crds,
            skip_schema_validation: spec.skip_schema_validation,
            timeout: spec.timeout,
            labels: vec![
                (INPUTS_LABEL.to_owned(), inputs.clone()),
                (made_with::CHART_LABEL.to_owned(), made_with::label(pin)),
            ],
        };
        Ok(Self {
            install,
            inputs,
            chart: format!("{} {}", pin.chart, pin.chart_version),
        })
    }
}

/// The cached file of a chart.
pub fn chart_artifact(versions: &Versions, key: &str, pin: &ChartPin) -> Artifact {
    let listed = versions.artifacts().into_iter().find(|artifact| {
        artifact.key == key && matches!(artifact.source, Source::ChartRepository { .. })
    });
    listed.unwrap_or_else(|| Artifact {
        label: format!("chart {} {}", pin.chart, pin.chart_version),
        key: key.to_owned(),
        file_name: format!("{}-{}.tgz", pin.chart, pin.chart_version),
        source: Source::ChartRepository {
            url: pin.url.clone(),
            chart: pin.chart.clone(),
            version: pin.chart_version.clone(),
        },
        sha256: pin.sha256.clone(),
    })
}

/// What must happen before, or instead of, an upgrade.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Move {
    /// Deployed with the wanted inputs.
    Nothing,
    /// `upgrade --install`.
    Upgrade,
    /// A cut-off upgrade: back to this revision first.
    RollBack(u32),
    /// A first install was cut off and nothing was ever deployed: its remains go, without hooks.
    ClearRemains,
    /// An uninstall was cut off: it is finished before the new install.
    FinishUninstall,
}

/// The decision, from the release's records alone. A failed revision is upgraded over, never purged: something may run under it.
fn next_move(release: &Release, inputs: &str) -> Move {
    let Some(newest) = release.newest() else {
        return Move::Upgrade;
    };
    match newest.status.as_str() {
        "deployed"
            if newest
                .labels
                .get(INPUTS_LABEL)
                .is_some_and(|label| label == inputs) =>
        {
            Move::Nothing
        }
        "pending-install" | "pending-upgrade" | "pending-rollback" => match release.last_deployed()
        {
            Some(deployed) => Move::RollBack(deployed.revision),
            None => Move::ClearRemains,
        },
        "uninstalling" => Move::FinishUninstall,
        _ => Move::Upgrade,
    }
}

/// Whether the newest deployed revision has the wanted inputs (label `blueprint-inputs`).
pub async fn inspect(work: Work<'_>, spec: &ReleaseSpec) -> Result<State, Error> {
    inspect_with(work, spec, None).await
}

/// The same with values laid over the release's own.
pub async fn inspect_with(
    work: Work<'_>,
    spec: &ReleaseSpec,
    overlay: Option<Value>,
) -> Result<State, Error> {
    let wanted = Wanted::of(work, spec, overlay)?;
    let release = work
        .context
        .cluster
        .release(spec.namespace, &wanted.install.name)
        .await?;
    let Some(newest) = release.newest() else {
        return Ok(State::Missing);
    };
    Ok(match next_move(&release, &wanted.inputs) {
        Move::Nothing => State::Ready,
        Move::Upgrade if newest.status == "deployed" => State::Outdated(vec![format!(
            "chart or values of release {}",
            wanted.install.name
        )]),
        _ => State::Broken(format!(
            "release {} is in the state {}",
            wanted.install.name, newest.status
        )),
    })
}

/// Ensures the release. Cut-off installs are mended as facts say: rolled back to the last deployed revision; uninstalled only when none ever was.
/// While helm runs, blockers of the namespace (hook pods) are reported. Adds what it did to `outcome`; answers whether helm changed anything.
pub async fn ensure(
    work: Work<'_>,
    spec: &ReleaseSpec,
    outcome: &mut Outcome,
) -> Result<bool, Error> {
    ensure_with(work, spec, None, outcome).await
}

/// The same with values laid over the release's own.
pub async fn ensure_with(
    work: Work<'_>,
    spec: &ReleaseSpec,
    overlay: Option<Value>,
    outcome: &mut Outcome,
) -> Result<bool, Error> {
    let pin = work.context.versions.chart(spec.key)?;
    let name = pin.name.clone();
    let helm = work.context.helm()?;
    helm.wait_for_orphan(&name, &|pid| {
        work.progress.waiting(format!(
            "helm of an earlier run (process {pid}) still works on release {name}"
        ));
    })
    .await?;

    let mut release = work.context.cluster.release(spec.namespace, &name).await?;
    made_with::check_release(work.context, pin, spec.namespace, &release)?;
    let wanted = Wanted::of(work, spec, overlay)?;
    let mended = mend(
        work,
        helm,
        spec,
        &name,
        next_move(&release, &wanted.inputs),
        outcome,
    )
    .await?;
    if mended {
        release = work.context.cluster.release(spec.namespace, &name).await?;
    }
    if next_move(&release, &wanted.inputs) == Move::Nothing {
        return Ok(mended);
    }
    let verb = if release.newest().is_some() {
        "upgraded"
    } else {
        "installed"
    };
    work.progress.say(format!(
        "helm: {} release {name} ({})",
        if verb == "installed" {
            "installing"
        } else {
            "upgrading"
        },
        wanted.chart
    ));
    run(work, spec, || helm.upgrade_install(&wanted.install)).await?;
    outcome.changed(format!("{verb} release {name} ({})", wanted.chart));
    Ok(true)
}

/// Brings a cut-off release back to a state that helm upgrades. Answers whether there was anything to mend.
async fn mend(
    work: Work<'_>,
    helm: &Helm,
    spec: &ReleaseSpec,
    name: &str,
    todo: Move,
    outcome: &mut Outcome,
) -> Result<bool, Error> {
    match todo {
        Move::Nothing | Move::Upgrade => return Ok(false),
        Move::RollBack(revision) => {
            work.progress.say(format!(
                "release {name} was cut off in an upgrade: rolling back to revision {revision}"
            ));
            run(work, spec, || helm.rollback(spec.namespace, name, revision)).await?;
            outcome.changed(format!(
                "rolled release {name} back to revision {revision}, its upgrade was cut off"
            ));
        }
        Move::ClearRemains => {
            work.progress.say(format!(
                "release {name} was cut off in its first install: clearing its remains"
            ));
            run(work, spec, || helm.uninstall(spec.namespace, name, true)).await?;
            outcome.changed(format!(
                "cleared the remains of release {name}, whose first install was cut off"
            ));
        }
        Move::FinishUninstall => {
            work.progress.say(format!(
                "release {name} was cut off in its uninstall: finishing that first"
            ));
            run(work, spec, || helm.uninstall(spec.namespace, name, false)).await?;
            outcome.changed(format!("finished the cut-off uninstall of release {name}"));
        }
    }
    Ok(true)
}

/// Runs one helm call: transient refusals are tried again, who blocks is reported meanwhile, and a failure carries the namespace's evidence.
async fn run<F, Fut>(work: Work<'_>, spec: &ReleaseSpec, call: F) -> Result<(), Error>
where
    F: Fn() -> Fut,
    Fut: Future<Output = Result<(), HelmError>>,
{
    let until = Instant::now() + TRANSIENT_FOR;
    loop {
        match watched(work, spec.namespace, call()).await {
            Ok(()) => return Ok(()),
            Err(HelmError::Transient { stderr, .. }) if Instant::now() + PAUSE < until => {
                work.progress.waiting(last_line(&stderr));
                tokio::time::sleep(PAUSE).await;
            }
            Err(
                source @ (HelmError::TimedOut { .. }
                | HelmError::Failed { .. }
                | HelmError::Transient { .. }),
            ) => {
                let evidence = work.context.cluster.evidence(spec.namespace, "").await;
                return Err(Error::Release { source, evidence });
            }
            Err(source) => return Err(source.into()),
        }
    }
}

/// Awaits helm and says every few seconds who blocks in the namespace. A look that fails says nothing: helm's own answer counts.
async fn watched(
    work: Work<'_>,
    namespace: &str,
    helm: impl Future<Output = Result<(), HelmError>>,
) -> Result<(), HelmError> {
    let looking = async {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.tick().await;
        loop {
            ticks.tick().await;
            if let Ok(blockers) = work.context.cluster.blockers(namespace, "").await
                && let Some(blocker) = blockers.first()
            {
                work.progress.waiting(blocker.to_string());
            }
        }
    };
    tokio::select! {
        answer = helm => answer,
        () = looking => Ok(()),
    }
}

fn last_line(text: &str) -> String {
    text.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("the API server refused for the moment")
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blueprint_cluster::ReleaseRevision;

    use super::*;

    fn release(revisions: &[(u32, &str, &str)]) -> Release {
        Release {
            revisions: revisions
                .iter()
                .map(|(revision, status, inputs)| ReleaseRevision {
                    revision: *revision,
                    status: (*status).to_owned(),
                    labels: BTreeMap::from([(INPUTS_LABEL.to_owned(), (*inputs).to_owned())]),
                })
                .collect(),
        }
    }

    #[test]
    fn equal_inputs_of_a_deployed_release_need_no_helm() {
        assert_eq!(
            next_move(
                &release(&[(1, "superseded", "old"), (2, "deployed", "same")]),
                "same"
            ),
            Move::Nothing
        );
    }

    #[test]
    fn no_release_or_other_inputs_or_a_foreign_release_is_upgraded() {
        assert_eq!(next_move(&release(&[]), "same"), Move::Upgrade);
        assert_eq!(
            next_move(&release(&[(1, "deployed", "other")]), "same"),
            Move::Upgrade
        );
        let mut foreign = release(&[(1, "deployed", "")]);
        foreign.revisions[0].labels.clear();
        assert_eq!(next_move(&foreign, "same"), Move::Upgrade);
    }

    #[test]
    fn helm_killed_in_an_upgrade_is_rolled_back_to_what_ran() {
        let cut_off = release(&[
            (1, "superseded", "a"),
            (2, "deployed", "b"),
            (3, "pending-upgrade", "same"),
        ]);
        assert_eq!(next_move(&cut_off, "same"), Move::RollBack(2));
        let cut_off = release(&[
            (1, "superseded", "a"),
            (2, "failed", "b"),
            (3, "pending-rollback", "a"),
        ]);
        assert_eq!(next_move(&cut_off, "same"), Move::RollBack(1));
    }

    #[test]
    fn helm_killed_in_the_first_install_leaves_remains_to_clear() {
        assert_eq!(
            next_move(&release(&[(1, "pending-install", "same")]), "same"),
            Move::ClearRemains
        );
        assert_eq!(
            next_move(
                &release(&[(1, "failed", "a"), (2, "pending-upgrade", "a")]),
                "same"
            ),
            Move::ClearRemains
        );
    }

    #[test]
    fn retry_never_deletes_a_live_or_failed_release() {
        assert_eq!(
            next_move(&release(&[(1, "failed", "same")]), "same"),
            Move::Upgrade
        );
        assert_eq!(
            next_move(
                &release(&[(1, "deployed", "a"), (2, "failed", "same")]),
                "same"
            ),
            Move::Upgrade
        );
    }

    #[test]
    fn an_uninstall_that_was_cut_off_is_finished_first() {
        assert_eq!(
            next_move(&release(&[(1, "uninstalling", "same")]), "same"),
            Move::FinishUninstall
        );
        assert_eq!(
            next_move(&release(&[(1, "uninstalled", "same")]), "same"),
            Move::Upgrade
        );
    }
}
