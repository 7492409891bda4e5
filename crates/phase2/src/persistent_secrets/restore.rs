//! `blueprint secrets restore`: the Secrets of a snapshot back into the cluster, on request.

use std::path::Path;

use blueprint_pipeline::Outcome;
use blueprint_safekeeping::snapshot::Snapshot;

use super::plan::{self, Action};
use super::{live, manifest, release_runs};
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// What happens to Secrets that a running GitLab depends on and that are not the snapshot's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InUse {
    /// Nothing is changed at all, and they are named.
    Refuse,
    /// They stay; only those that are missing are made.
    Keep,
    /// The snapshot's values replace them.
    Replace,
}

/// Makes what is missing from `file`, and decides about what differs by `in_use`. Which Secrets were replaced is said.
pub async fn restore(work: Work<'_>, file: &Path, in_use: InUse) -> Result<Outcome, Error> {
    let context = work.context;
    let snapshot = Snapshot::read(file)?.ok_or_else(|| Error::Refused {
        summary: "there is no snapshot to restore from".to_owned(),
        expected: format!("{}, or another one by --from", file.display()),
        found: "no such file".to_owned(),
        hint: "`blueprint secrets snapshot` makes one of a cluster where GitLab runs".to_owned(),
    })?;
    if snapshot.namespace != names::GITLAB {
        return Err(super::other_namespace(file, &snapshot));
    }
    let live = live(context, &snapshot).await?;
    let deployed = release_runs(context).await?;
    let actions = plan::on_request(&snapshot, &live, deployed, in_use);
    let refused: Vec<&str> = actions
        .iter()
        .filter(|(_, action)| *action == Action::Leave)
        .map(|(name, _)| name.as_str())
        .collect();
    if in_use == InUse::Refuse && !refused.is_empty() {
        return Err(Error::Refused {
            summary: format!(
                "GitLab runs with other values of {} Secret(s) than the snapshot's",
                refused.len()
            ),
            expected: format!("the values in {}", file.display()),
            found: format!("others, in use by running pods and their data: {}", refused.join(", ")),
            hint: "nothing was changed; `--missing-only` makes what is missing and leaves these, `--replace-in-use` puts the snapshot's \
                   values in their place (what was encrypted or agreed on with the present ones may be unreadable afterwards)"
                .to_owned(),
        });
    }
    let mut outcome = Outcome::unchanged();
    outcome
        .changes
        .extend(names::ensure_namespace(&context.cluster, names::GITLAB).await?);
    let mut replaced = false;
    for (name, action) in actions {
        let Some(kept) = snapshot.secrets.get(&name) else {
            continue;
        };
        match action {
            Action::Keep => {}
            Action::Leave => outcome.note(format!("left Secret {name} as GitLab uses it")),
            Action::Create | Action::Replace => {
                let change = context.cluster.apply_secret(&manifest(kept)).await?;
                outcome.changes.extend(change.phrase());
                if action == Action::Replace {
                    replaced = true;
                    outcome.note(format!("Secret {name} held another value, which is gone"));
                }
            }
        }
    }
    if replaced && deployed {
        outcome.note(
            "GitLab's pods read these Secrets at their start: kubectl -n gitlab rollout restart deployment,statefulset",
        );
    }
    Ok(outcome)
}
