//! `down`: the installers run backwards.

use std::sync::Arc;

use async_trait::async_trait;
use blueprint_pipeline::{Failure, Outcome, Progress, TaskRunner};
use futures::future::try_join_all;
use tokio_util::sync::CancellationToken;

use crate::catalog::{Phase2, to_safe_point};
use crate::error::Error;
use crate::installer::Work;
use crate::removal::Removal;
use crate::stable_storage;
use crate::table::TABLE;

/// Runs each task's uninstall; the order is [`crate::table::TEARDOWN`]'s.
pub struct Teardown {
    /// Context and catalog.
    pub phase2: Arc<Phase2>,
    /// How much goes.
    pub removal: Removal,
}

#[async_trait]
impl TaskRunner for Teardown {
    async fn run(
        &self,
        task: &str,
        progress: Progress,
        cancel: CancellationToken,
    ) -> Result<Outcome, Failure> {
        let installer = self
            .phase2
            .installer(task)
            .map_err(|error| error.into_failure(task))?;
        let work = Work {
            context: &self.phase2.context,
            progress: &progress,
        };
        to_safe_point(
            task,
            "blueprint down",
            work,
            installer.uninstall(work, self.removal),
            cancel,
        )
        .await
    }
}

/// What one task would remove.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Remains {
    /// The task.
    pub task: &'static str,
    /// The number of its step.
    pub step: u8,
    /// A phrase each.
    pub would_remove: Vec<String>,
}

/// What there is of the given tasks, in their order; those of which nothing is left say so by an empty list.
pub async fn remains(
    phase2: &Phase2,
    tasks: &[&'static str],
    removal: Removal,
) -> Result<Vec<Remains>, Failure> {
    let progress = Progress::silent();
    let work = Work {
        context: &phase2.context,
        progress: &progress,
    };
    let looks = tasks
        .iter()
        .filter_map(|id| TABLE.task(id))
        .map(|task| async move {
            let look = async { phase2.installer(task.id)?.remains(work, removal).await };
            let would_remove = look.await.map_err(|error| error.into_failure(task.id))?;
            Ok::<_, Failure>(Remains {
                task: task.id,
                step: task.step,
                would_remove,
            })
        });
    try_join_all(looks).await
}

/// Refuses a wipe that would meet data of others, before anything is taken down.
pub async fn check_wipe(phase2: &Phase2) -> Result<(), Failure> {
    let progress = Progress::silent();
    let work = Work {
        context: &phase2.context,
        progress: &progress,
    };
    stable_storage::check_wipe(work)
        .await
        .map_err(|error| error.into_failure("stable-storage"))
}

/// Refuses to take `tasks` away from under others that are installed and need them.
pub async fn check_unneeded(phase2: &Phase2, tasks: &[&'static str]) -> Result<(), Failure> {
    let dependents = TABLE.dependents(tasks);
    let standing: Vec<&str> = remains(phase2, &dependents, Removal::Keep)
        .await?
        .into_iter()
        .filter(|remains| !remains.would_remove.is_empty())
        .map(|remains| remains.task)
        .collect();
    if standing.is_empty() {
        return Ok(());
    }
    Err(needed(tasks, &standing).into_failure(""))
}

fn needed(tasks: &[&str], standing: &[&str]) -> Error {
    Error::Refused {
        summary: format!("{} is still needed", tasks.join(", ")),
        expected: "nothing installed that needs what is to go".to_owned(),
        found: format!("installed, and in need of it: {}", standing.join(", ")),
        hint: format!(
            "take those down as well: `blueprint down --only {},{}`, or everything: `blueprint down`; nothing was changed",
            tasks.join(","),
            standing.join(",")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_still_needs_a_component_is_named_with_the_way_out() {
        let failure = needed(&["redis"], &["gitlab", "runner"]).into_failure("");
        assert_eq!(failure.summary, "redis is still needed");
        assert!(failure.found.unwrap().contains("gitlab, runner"));
        assert!(
            failure
                .hint
                .unwrap()
                .contains("`blueprint down --only redis,gitlab,runner`")
        );
    }
}
