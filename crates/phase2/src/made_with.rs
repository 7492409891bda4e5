//! Which charts this workspace and this cluster are made with. Stand-in charts are like upstream's and are not upstream's: data made with the one kind is never
//! given to the other, and no output leaves open which kind it speaks of.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use blueprint_charts::{ChartPin, Versions, is_stand_in};
use blueprint_cluster::{Release, ReleaseRevision};
use blueprint_safekeeping::private_file;

use crate::context::Context;
use crate::error::Error;
use crate::validate::CHARTS;
use crate::workspace::Workspace;

mod record;

use self::record::Record;

/// The label on a release record that holds the chart's version. A label's value has no `+`: `_` stands for it, as in helm's own labels.
pub(crate) const CHART_LABEL: &str = "blueprint-chart";
/// What a label's value may be long (apimachinery's `LabelValueMaxLength`).
const LABEL_LENGTH: usize = 63;

/// For people who run or read a result: which charts are stand-ins. `None` where all are upstream's.
pub fn attention(versions: &Versions) -> Option<String> {
    let stand_ins = versions.stand_ins();
    if stand_ins.is_empty() {
        return None;
    }
    Some(format!(
        "{} of {} charts are STAND-INS, not upstream's: {}. No result here counts as one with the real charts.",
        stand_ins.len(),
        versions.helm_repositories.len(),
        list(stand_ins.iter())
    ))
}

/// The value of [`CHART_LABEL`] for a pin.
pub(crate) fn label(pin: &ChartPin) -> String {
    let value = pin.chart_version.replace('+', "_");
    let short: String = value.chars().take(LABEL_LENGTH).collect();
    short
        .trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_owned()
}

/// Something made with the other kind of chart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Met {
    /// In words: `release redis/redis`.
    what: String,
    /// The version it was made with.
    version: String,
}

impl std::fmt::Display for Met {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.what, self.version)
    }
}

/// Why these pins must not be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) expected: String,
    pub(crate) found: String,
    pub(crate) hint: String,
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused {
            summary: "stand-in charts and upstream's charts would meet".to_owned(),
            expected: refusal.expected,
            found: refusal.found,
            hint: refusal.hint,
        }
    }
}

/// What the workspace's record and the cluster's release records say against the pins.
pub(crate) async fn refusal(context: &Context) -> Result<Option<Refusal>, Error> {
    let record = Record::read(&context.workspace)?;
    let looks = CHARTS.iter().map(|chart| async move {
        let pin = context.versions.chart(chart.key)?;
        let release = context.cluster.release(chart.namespace, &pin.name).await?;
        Ok::<_, Error>(met_release(pin, chart.namespace, &release))
    });
    let releases = futures::future::join_all(looks)
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    let in_cluster: Vec<Met> = releases.into_iter().flatten().collect();
    let in_workspace = met_workspace(context, record.as_ref());
    Ok(judged(context, record.as_ref(), &in_workspace, &in_cluster))
}

/// Before the first change of a run: refuses as pre-flight does (which may have been left out), then notes which charts this workspace is made with.
pub(crate) fn enter(context: &Context) -> Result<(), Error> {
    /// Tasks start side by side; one of them writes.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let record = Record::read(&context.workspace)?;
    let met = met_workspace(context, record.as_ref());
    if let Some(refusal) = judged(context, record.as_ref(), &met, &[]) {
        return Err(refusal.into());
    }
    Record::of(context).write(&context.workspace)
}

/// One release's own record, where it is about to be changed.
pub(crate) fn check_release(
    context: &Context,
    pin: &ChartPin,
    namespace: &str,
    release: &Release,
) -> Result<(), Error> {
    let met: Vec<Met> = met_release(pin, namespace, release).into_iter().collect();
    let record = Record::read(&context.workspace)?;
    match judged(context, record.as_ref(), &[], &met) {
        Some(refusal) => Err(refusal.into()),
        None => Ok(()),
    }
}

/// The release, if it was made with the other kind. Every stand-in carries the label: a release without it is none.
fn met_release(pin: &ChartPin, namespace: &str, release: &Release) -> Option<Met> {
    release.newest()?;
    let version = version_of(release);
    (is_stand_in(&version) != is_stand_in(&pin.chart_version)).then(|| Met {
        what: format!("release {namespace}/{}", pin.name),
        version: if version.is_empty() {
            "(no stand-in)".to_owned()
        } else {
            version
        },
    })
}

/// Of the newest revision with the label: whoever works on a release by hand leaves it out.
fn version_of(release: &Release) -> String {
    let labels = |revision: &ReleaseRevision| revision.labels.get(CHART_LABEL).cloned();
    let newest = release.revisions.iter().rev().find_map(labels);
    newest
        .map(|value| value.replacen('_', "+", 1))
        .unwrap_or_default()
}

/// The charts of the record that are of the other kind. Data without a record is older than stand-ins are: upstream's charts made it.
fn met_workspace(context: &Context, record: Option<&Record>) -> Vec<Met> {
    let versions = &context.versions;
    let Some(record) = record else {
        let other = !versions.stand_ins().is_empty() && holds_data(&context.workspace);
        return other
            .then(|| Met {
                what: "credentials in infra/secrets, from before stand-ins were noted:".to_owned(),
                version: "upstream's charts".to_owned(),
            })
            .into_iter()
            .collect();
    };
    let other = |(key, version): (&String, &String)| {
        let pin = versions.helm_repositories.get(key)?;
        (is_stand_in(version) != is_stand_in(&pin.chart_version)).then(|| Met {
            what: pin.chart.clone(),
            version: version.clone(),
        })
    };
    record.charts.iter().filter_map(other).collect()
}

/// Credentials are written before anything that they open.
fn holds_data(workspace: &Workspace) -> bool {
    [
        workspace.role_passwords(),
        workspace.system_identifier(),
        workspace.redis_password(),
        workspace.minio_password(),
        workspace.openbao_init(),
        workspace.gitlab_snapshot(),
    ]
    .iter()
    .any(|file| file.exists())
}

fn judged(
    context: &Context,
    record: Option<&Record>,
    in_workspace: &[Met],
    in_cluster: &[Met],
) -> Option<Refusal> {
    if in_workspace.is_empty() && in_cluster.is_empty() {
        return None;
    }
    let workspace = &context.workspace;
    let mut found = vec![format!(
        "{} pins {}",
        workspace.versions().display(),
        list(context.versions.helm_repositories.values())
    )];
    if !in_workspace.is_empty() {
        found.push(format!(
            "this workspace is made with {} ({})",
            list(in_workspace.iter()),
            workspace.charts_record().display()
        ));
    }
    if !in_cluster.is_empty() {
        found.push(format!("in the cluster: {}", list(in_cluster.iter())));
    }
    let stand_ins_met = in_workspace
        .iter()
        .chain(in_cluster)
        .any(|met| is_stand_in(&met.version));
    let pins = record.and_then(|record| record.pins.as_ref());
    Some(Refusal {
        expected: "charts of the kind that this workspace and this cluster are made with: data that stand-ins made proves nothing about the real charts, and \
                   real data is not for stand-ins"
            .to_owned(),
        found: found.join("; "),
        hint: if stand_ins_met {
            way_out_of_stand_ins(pins)
        } else {
            WAY_OUT_OF_UPSTREAM.to_owned()
        },
    })
}

const WAY_OUT_OF_UPSTREAM: &str = "go on with the pins it is made with: run without --versions and BLUEPRINT_VERSIONS, with the real charts in the cache (`blueprint charts fetch --from DIR`); for \
     stand-ins take a workspace and a cluster of their own (`blueprint init` in an empty folder)";

fn way_out_of_stand_ins(pins: Option<&PathBuf>) -> String {
    let file = pins.map_or_else(|| "FILE".to_owned(), |file| file.display().to_string());
    format!(
        "to go on with the stand-ins: `blueprint --versions {file} up` (or BLUEPRINT_VERSIONS); to start anew with the real charts: `blueprint down --wipe` deletes \
         what the stand-ins made (to keep it: `blueprint cluster delete`, move infra/storage, infra/secrets, infra/tls and infra/phase2/state aside, `blueprint cluster \
         create`), then `blueprint up`"
    )
}

fn list<T: std::fmt::Display>(items: impl Iterator<Item = T>) -> String {
    items
        .map(|item| item.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests;
