//! A release taken away again: ours only, and by a helm that nobody kills.

use blueprint_cluster::Release;
use blueprint_pipeline::Outcome;

use super::{INPUTS_LABEL, ReleaseSpec};
use crate::error::Error;
use crate::installer::Work;

/// Whose it is, from its records: ours bear the label with the digest of their inputs, and helm hands labels on from one revision to the next.
fn is_ours(release: &Release) -> bool {
    release
        .revisions
        .iter()
        .any(|revision| revision.labels.contains_key(INPUTS_LABEL))
}

/// What there is to uninstall; a record that `helm uninstall --keep-history` left behind is history, not a release.
fn is_installed(release: &Release) -> bool {
    release
        .newest()
        .is_some_and(|newest| newest.status != "uninstalled")
}

/// `release redis (namespace redis)`, if it is there; a foreign one is refused when it is to go.
pub async fn there(work: Work<'_>, spec: &ReleaseSpec) -> Result<Option<String>, Error> {
    let (name, release) = read(work, spec).await?;
    Ok(is_installed(&release).then(|| format!("release {name} (namespace {})", spec.namespace)))
}

async fn read(work: Work<'_>, spec: &ReleaseSpec) -> Result<(String, Release), Error> {
    let name = work.context.versions.chart(spec.key)?.name.clone();
    let release = work.context.cluster.release(spec.namespace, &name).await?;
    Ok((name, release))
}

/// Refuses a release that somebody else installed, before anything around it is touched.
pub async fn check_ours(work: Work<'_>, spec: &ReleaseSpec) -> Result<(), Error> {
    let (name, release) = read(work, spec).await?;
    if !is_installed(&release) || is_ours(&release) {
        return Ok(());
    }
    let namespace = spec.namespace;
    Err(Error::Refused {
        summary: format!("release {name} in namespace {namespace} is not blueprint's"),
        expected: format!(
            "a release with the label {INPUTS_LABEL}, which every install by blueprint sets"
        ),
        found: "none of its revisions has it".to_owned(),
        hint: format!(
            "if it may go, remove it yourself (`helm --namespace {namespace} uninstall {name}`) and run `blueprint down` again; nothing of it was touched"
        ),
    })
}

/// Uninstalls it. A helm of an earlier, killed run is waited for first; a cut-off uninstall is simply finished.
pub async fn run(work: Work<'_>, spec: &ReleaseSpec, outcome: &mut Outcome) -> Result<(), Error> {
    let name = &work.context.versions.chart(spec.key)?.name;
    if let Some(helm) = &work.context.helm {
        helm.wait_for_orphan(name, &|pid| {
            work.progress.waiting(format!(
                "helm of an earlier run (process {pid}) still works on release {name}"
            ));
        })
        .await?;
    }
    let (_, release) = read(work, spec).await?;
    if !is_installed(&release) {
        return Ok(());
    }
    check_ours(work, spec).await?;
    let helm = work.context.helm()?;
    work.progress
        .say(format!("helm: uninstalling release {name}"));
    // Hooks of a first install that was cut off may wait for what never came.
    let no_hooks = release.last_deployed().is_none();
    super::run(work, spec, || {
        helm.uninstall(spec.namespace, name, no_hooks)
    })
    .await?;
    outcome.changed(format!("uninstalled release {name}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use blueprint_cluster::ReleaseRevision;

    use super::*;

    fn release(revisions: &[(&str, bool)]) -> Release {
        Release {
            revisions: revisions
                .iter()
                .zip(1..)
                .map(|((status, ours), revision)| ReleaseRevision {
                    revision,
                    status: (*status).to_owned(),
                    labels: ours
                        .then(|| (INPUTS_LABEL.to_owned(), "digest".to_owned()))
                        .into_iter()
                        .collect::<BTreeMap<_, _>>(),
                })
                .collect(),
        }
    }

    #[test]
    fn a_release_without_our_label_is_somebody_elses() {
        assert!(!is_ours(&release(&[
            ("superseded", false),
            ("deployed", false)
        ])));
        assert!(is_ours(&release(&[
            ("superseded", false),
            ("deployed", true)
        ])));
        assert!(is_ours(&release(&[("pending-install", true)])));
    }

    #[test]
    fn a_cut_off_uninstall_is_still_there_and_kept_history_is_not() {
        assert!(is_installed(&release(&[("uninstalling", true)])));
        assert!(is_installed(&release(&[("pending-upgrade", true)])));
        assert!(!is_installed(&release(&[("uninstalled", true)])));
        assert!(!is_installed(&release(&[])));
    }
}
