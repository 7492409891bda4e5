//! How everything stands and what to do about it: pre-flight's checks and every component, worst first. Asks only; [`mend`] does the safe repairs.

mod causes;
mod component;
mod control_plane;
mod findings;
mod mend;

use std::time::Duration;

use blueprint_pipeline::Progress;
use futures::StreamExt as _;
use tokio::time::timeout;

use crate::catalog::Catalog;
use crate::context::Context;
use crate::installer::{Installer, Work};
use crate::preflight::{self, API_SERVER, Check};
use crate::table::TABLE;
use crate::{smoke, wake};

pub use findings::{Finding, Mend, Verdict};
pub use mend::{Mended, mend};

use component::Look;

/// How many components are looked at at once.
const AT_ONCE: usize = 6;
/// For one component: a look that takes longer says as much as one that fails.
const LOOK_WITHIN: Duration = Duration::from_secs(40);
/// What can be looked at without the API server: the engine reads it from the nodes.
const WITHOUT_API: &str = "node-trust";

/// Looks at everything that can be looked at; worst first.
pub async fn examine(context: &Context, catalog: &Catalog) -> Vec<Finding> {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    let checks = preflight::checks(work).await;
    let answers = !checks.iter().any(is_silent);
    let mut all = findings::of_checks(checks);
    if answers {
        all.extend(wake::lagging(context).await.map(findings::of_lag));
    } else {
        control_plane::explain(context, &mut all).await;
    }
    let looks = looks(work, catalog, answers).await;
    all.extend(component::findings(looks));
    if !answers {
        all.push(unseen(catalog));
    }
    findings::add_restarts(&mut all, context).await;
    findings::sort(&mut all);
    all
}

fn is_silent(check: &Check) -> bool {
    // An old server answers as well; its shortfall is about its version.
    matches!(check, Check::Short(short) if short.check == API_SERVER && short.expected.starts_with("an answer"))
}

async fn looks(work: Work<'_>, catalog: &Catalog, answers: bool) -> Vec<Look> {
    let installers = catalog
        .installers()
        .iter()
        .filter(|installer| {
            installer.id() != "preflight" && (answers || installer.id() == WITHOUT_API)
        })
        .map(|installer| look(work, installer.as_ref()));
    futures::stream::iter(installers)
        .buffered(AT_ONCE)
        .filter_map(|look| async { look })
        .collect()
        .await
}

async fn look(work: Work<'_>, installer: &dyn Installer) -> Option<Look> {
    let task = TABLE.task(installer.id())?;
    let (state, rows) = tokio::join!(
        timeout(LOOK_WITHIN, installer.inspect(work)),
        smoke::rows(installer, work)
    );
    let state = match state {
        Ok(answer) => answer.map_err(|error| error.into_failure(task.id)),
        Err(_) => Err(blueprint_pipeline::Failure {
            summary: format!("no answer within {} s", LOOK_WITHIN.as_secs()),
            ..Default::default()
        }),
    };
    Some(Look { task, state, rows })
}

/// What an API server that does not answer hides.
fn unseen(catalog: &Catalog) -> Finding {
    let hidden: Vec<&str> = catalog
        .installers()
        .iter()
        .map(|installer| installer.id())
        .filter(|id| *id != "preflight" && *id != WITHOUT_API)
        .collect();
    let mut finding = Finding::new(
        "components",
        Verdict::Noted,
        "not looked at, they need the API server",
    );
    finding.evidence.push(hidden.join(", "));
    finding.remedy =
        Some("bring the API server back, then run `blueprint doctor` again".to_owned());
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preflight::Shortfall;

    fn short(expected: &str) -> Check {
        Check::Short(Shortfall {
            check: API_SERVER.to_owned(),
            expected: expected.to_owned(),
            found: "x".to_owned(),
            hint: String::new(),
        })
    }

    #[test]
    fn an_old_server_is_not_a_silent_one() {
        assert!(is_silent(&short("an answer from context kind-a")));
        assert!(!is_silent(&short("Kubernetes 1.30 or newer")));
    }

    #[test]
    fn what_is_hidden_is_named_without_what_the_engine_shows() {
        let finding = unseen(&Catalog::new());
        assert!(
            finding.evidence[0].contains("gitlab") && !finding.evidence[0].contains(WITHOUT_API)
        );
    }
}
