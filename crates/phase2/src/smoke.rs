//! The smoke table: the spec's 13 rows and what the facts add.

use std::time::Duration;

use blueprint_pipeline::Progress;
use serde::Serialize;

use crate::catalog::Catalog;
use crate::context::Context;
use crate::failure_hints;
use crate::installer::{Installer, Work};
use crate::made_with;

/// Names of the 13 rows, in the order of the table. Each is reported by the installer of the component it is about.
pub mod row {
    /// API server and helm answer.
    pub const CLUSTER_AND_HELM: &str = "Cluster and helm reachable";
    /// Envoy Gateway's pods: controller and data plane.
    pub const ENVOY_PODS: &str = "Envoy gateway pods Running";
    /// The Gateway is Programmed.
    pub const GATEWAY_PROGRAMMED: &str = "Gateway Programmed";
    /// local-path carries the default mark, and nothing else does.
    pub const DEFAULT_CLASS: &str = "local-path is the default StorageClass";
    /// The Cluster's Ready condition.
    pub const CNPG_READY: &str = "CloudNativePG cluster Ready";
    /// PING.
    pub const REDIS: &str = "Redis reachable";
    /// A signed request.
    pub const MINIO: &str = "MinIO S3 reachable";
    /// `sealed: false`.
    pub const OPENBAO: &str = "OpenBao unsealed";
    /// The certificate files.
    pub const WILDCARD_CA: &str = "Wildcard CA on disk";
    /// The listeners' Secrets.
    pub const LISTENER_SECRETS: &str = "Listener Secrets exist";
    /// `/-/health` through the Gateway.
    pub const GITLAB_UI: &str = "GitLab UI returns 200";
    /// The runner's token verifies.
    pub const RUNNER: &str = "Runner registered";
    /// The workloads of namespace gitlab.
    pub const GITLAB_PODS: &str = "GitLab pods Running";
}

/// The table's order.
pub const ROWS: [&str; 13] = [
    row::CLUSTER_AND_HELM,
    row::ENVOY_PODS,
    row::GATEWAY_PROGRAMMED,
    row::DEFAULT_CLASS,
    row::CNPG_READY,
    row::REDIS,
    row::MINIO,
    row::OPENBAO,
    row::WILDCARD_CA,
    row::LISTENER_SECRETS,
    row::GITLAB_UI,
    row::RUNNER,
    row::GITLAB_PODS,
];

/// The row that names stand-in charts; there is none where all charts are upstream's.
const CHARTS: &str = "Charts";

/// How long one installer may take for its rows.
const DEADLINE: Duration = Duration::from_secs(30);

/// One row's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    /// The row: `Redis reachable`.
    pub check: String,
    /// How it stands.
    pub verdict: CheckVerdict,
    /// What was seen (`PONG`).
    pub evidence: String,
    /// From the failure map, when it failed.
    pub hint: Option<String>,
}

/// How a row stands; skipped only with a reason in the evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckVerdict {
    /// As it should be.
    Passed,
    /// Not.
    Failed,
    /// Neither: it bounds what the other rows prove.
    Attention,
}

impl CheckResult {
    /// A row that is as it should be.
    pub fn passed(check: &str, evidence: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            verdict: CheckVerdict::Passed,
            evidence: evidence.into(),
            hint: None,
        }
    }

    /// A row that is not; its hint is looked up in the failure map.
    pub fn failed(check: &str, evidence: impl Into<String>) -> Self {
        let evidence = evidence.into();
        let hint = failure_hints::hint(check, &evidence);
        Self {
            check: check.to_owned(),
            verdict: CheckVerdict::Failed,
            evidence,
            hint,
        }
    }

    /// A row from what was seen or what was wrong.
    pub fn from_result(check: &str, result: Result<String, String>) -> Self {
        match result {
            Ok(evidence) => Self::passed(check, evidence),
            Err(found) => Self::failed(check, found),
        }
    }
}

/// Runs every row, in the spec's order. Rows run concurrently and never change anything.
pub async fn run(context: &Context) -> Vec<CheckResult> {
    run_with(context, &Catalog::new(), DEADLINE).await
}

async fn run_with(context: &Context, catalog: &Catalog, deadline: Duration) -> Vec<CheckResult> {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    let rows = catalog
        .installers()
        .iter()
        .map(|installer| rows_of(installer.as_ref(), work, deadline));
    let mut table = arrange(
        futures::future::join_all(rows)
            .await
            .into_iter()
            .flatten()
            .collect(),
    );
    table.extend(
        made_with::attention(&context.versions).map(|evidence| CheckResult {
            check: CHARTS.to_owned(),
            verdict: CheckVerdict::Attention,
            evidence,
            hint: None,
        }),
    );
    table
}

/// One installer's rows, in its time or as one that failed.
pub(crate) async fn rows(installer: &dyn Installer, work: Work<'_>) -> Vec<CheckResult> {
    rows_of(installer, work, DEADLINE).await
}

async fn rows_of(
    installer: &dyn Installer,
    work: Work<'_>,
    deadline: Duration,
) -> Vec<CheckResult> {
    if let Ok(rows) = tokio::time::timeout(deadline, installer.smoke(work)).await {
        return rows;
    }
    vec![CheckResult::failed(
        installer.id(),
        format!("its checks did not answer within {}s", deadline.as_secs()),
    )]
}

/// The table's 13 rows first, in their order, then the others as they came. A row of the table that nobody reported is a failure: silence is no success.
fn arrange(mut found: Vec<CheckResult>) -> Vec<CheckResult> {
    let mut table = Vec::with_capacity(found.len() + ROWS.len());
    for name in ROWS {
        let (mine, rest) = found
            .into_iter()
            .partition::<Vec<_>, _>(|result| result.check == name);
        found = rest;
        if mine.is_empty() {
            table.push(CheckResult::failed(name, "nothing answered for this row"));
        }
        table.extend(mine);
    }
    table.extend(found);
    for result in &mut table {
        if result.verdict == CheckVerdict::Failed && result.hint.is_none() {
            result.hint = failure_hints::hint(&result.check, &result.evidence);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_thirteen_rows_of_the_specification() {
        assert_eq!(
            ROWS,
            [
                "Cluster and helm reachable",
                "Envoy gateway pods Running",
                "Gateway Programmed",
                "local-path is the default StorageClass",
                "CloudNativePG cluster Ready",
                "Redis reachable",
                "MinIO S3 reachable",
                "OpenBao unsealed",
                "Wildcard CA on disk",
                "Listener Secrets exist",
                "GitLab UI returns 200",
                "Runner registered",
                "GitLab pods Running",
            ]
        );
    }

    #[test]
    fn rows_come_in_the_tables_order_and_additions_after_them() {
        let mut found: Vec<CheckResult> = ROWS
            .iter()
            .rev()
            .map(|name| CheckResult::passed(name, "seen"))
            .collect();
        found.insert(
            0,
            CheckResult::passed("Registry reachable from every node", "3 nodes"),
        );
        let names: Vec<String> = arrange(found)
            .into_iter()
            .map(|result| result.check)
            .collect();
        assert_eq!(names[..13], ROWS);
        assert_eq!(names[13..], ["Registry reachable from every node"]);
    }

    #[test]
    fn a_row_that_nobody_reported_is_a_failure() {
        let table = arrange(vec![CheckResult::passed(row::REDIS, "PONG")]);
        assert_eq!(table.len(), 13);
        assert_eq!(
            table
                .iter()
                .filter(|result| result.verdict == CheckVerdict::Failed)
                .count(),
            12
        );
    }

    #[test]
    fn a_failed_row_gets_its_hint_from_the_map() {
        let sealed = CheckResult {
            check: row::OPENBAO.to_owned(),
            verdict: CheckVerdict::Failed,
            evidence: "sealed: true".to_owned(),
            hint: None,
        };
        let table = arrange(vec![sealed]);
        let row = table
            .iter()
            .find(|result| result.check == row::OPENBAO)
            .expect("the row");
        assert!(
            row.hint
                .as_deref()
                .is_some_and(|hint| hint.contains("secrets unseal"))
        );
    }
}
