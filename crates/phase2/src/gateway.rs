//! Step 2: the CRDs of Gateway API (standard channel), TCPRoute (experimental) and Envoy Gateway.
//!
//! GitLab's chart brings Envoy Gateway, whose CRDs must exist before; installed here they stay out of the release record, which holds at most 1 MiB.

mod forward_only;
mod removal;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use blueprint_charts::artifact::Source;
use blueprint_charts::{chart_files, yaml};
use blueprint_cluster::WaitFor;
use blueprint_cluster::wait::condition_true;
use blueprint_pipeline::Outcome;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::forward_only::{Installed, Judgement, Origin, judge};
use crate::context::Context;
use crate::error::Error;
use crate::helm_release::chart_artifact;
use crate::installer::{Installer, State, Work};
use crate::removal::Removal;
use crate::smoke::CheckResult;
use crate::smoke_row::{row, unexpected};

/// Annotation with the digest of the manifest that was applied: equal means there is nothing to apply.
const APPLIED: &str = "blueprint.dev/applied-sha256";
/// Where the GitLab chart keeps Envoy Gateway's CRDs.
const ENVOY_CRDS: &str = "charts/gateway-helm/charts/crds/crds/generated/gateway.envoyproxy.io_";
const ESTABLISHED_WITHIN: Duration = Duration::from_mins(1);
const LISTED_WITHIN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(2);
const ROW: &str = "Gateway API CRDs established";

/// The installer of task `gateway-crds`.
#[derive(Debug)]
pub struct GatewayCrds;

/// One object that should be there.
struct Wanted {
    manifest: Value,
    origin: Origin,
    sha256: String,
}

impl Wanted {
    fn new(manifest: Value, origin: Origin) -> Self {
        let sha256 = format!("{:x}", Sha256::digest(manifest.to_string()));
        Self {
            manifest,
            origin,
            sha256,
        }
    }

    fn kind(&self) -> &str {
        self.manifest["kind"].as_str().unwrap_or_default()
    }

    fn api_version(&self) -> &str {
        self.manifest["apiVersion"].as_str().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.manifest["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
    }

    /// The manifest with its digest as an annotation.
    fn stamped(&self) -> Value {
        let mut manifest = self.manifest.clone();
        manifest["metadata"]["annotations"][APPLIED] = json!(self.sha256);
        manifest
    }

    /// `group/version` and plural of what the CRD serves.
    fn served(&self) -> Vec<(String, String)> {
        let spec = &self.manifest["spec"];
        let (Some(group), Some(plural)) =
            (spec["group"].as_str(), spec["names"]["plural"].as_str())
        else {
            return Vec::new();
        };
        let versions = spec["versions"].as_array().into_iter().flatten();
        versions
            .filter(|version| version["served"] == json!(true))
            .filter_map(|version| {
                Some((
                    format!("{group}/{}", version["name"].as_str()?),
                    plural.to_owned(),
                ))
            })
            .collect()
    }
}

/// Everything that should be there, in the order of its application: definitions before the policy that guards them.
fn wanted(context: &Context) -> Result<Vec<Wanted>, Error> {
    let mut all = Vec::new();
    for (key, origin) in [
        ("gateway-api-standard", Origin::GatewayApi),
        ("gateway-api-tcproute", Origin::TcpRoute),
    ] {
        all.extend(
            manifest(context, key)?
                .into_iter()
                .map(|document| Wanted::new(document, origin)),
        );
    }
    let pin = context.versions.chart("gitlab")?;
    let chart = context
        .cache
        .verified(&chart_artifact(&context.versions, "gitlab", pin))?;
    for file in chart_files::read(&chart.path, |path| path.contains(ENVOY_CRDS))? {
        let documents = yaml::documents(&file.text, file.path.as_ref())?;
        all.extend(
            documents
                .into_iter()
                .map(|document| Wanted::new(document, Origin::Envoy)),
        );
    }
    if !all.iter().any(|wanted| wanted.origin == Origin::Envoy) {
        return Err(Error::Failed {
            action: "read Envoy Gateway's CRDs out of the GitLab chart".to_owned(),
            found: format!("{} {} has no file under {ENVOY_CRDS}", pin.chart, pin.chart_version),
            hint: "this GitLab chart is laid out differently: pin a chart of the 10.x line in VERSIONS.json".to_owned(),
        });
    }
    all.sort_by_key(|wanted| wanted.kind() != "CustomResourceDefinition");
    Ok(all)
}

/// The documents of a cached manifest, its digest checked.
pub(crate) fn manifest(context: &Context, key: &str) -> Result<Vec<Value>, Error> {
    let pin = context.versions.manifest(key)?;
    let artifact = context
        .versions
        .artifacts()
        .into_iter()
        .find(|artifact| artifact.key == key && matches!(artifact.source, Source::File { .. }))
        .ok_or_else(|| {
            unexpected(
                "find the manifest's artifact",
                format!("VERSIONS.json lists no file for `{key}`"),
                "check its `manifests` section",
            )
        })?;
    let file = context.cache.verified(&artifact)?;
    let text = std::fs::read_to_string(&file.path).map_err(|error| {
        unexpected(
            &format!("read {}", file.path.display()),
            error.to_string(),
            &format!("fetch {} again: `blueprint charts fetch`", pin.file),
        )
    })?;
    Ok(yaml::documents(&text, &file.path)?)
}

/// Annotations of every installed CRD, and of the policies that are wanted.
async fn installed(
    work: Work<'_>,
    wanted: &[Wanted],
) -> Result<BTreeMap<(String, String), Installed>, Error> {
    let api: Api<CustomResourceDefinition> = Api::all(work.context.cluster.client());
    let what = "the API server to list its CRDs";
    let say = |blocker| work.progress.waiting(blocker);
    let list = work
        .context
        .cluster
        .wait_until(what, LISTED_WITHIN, PAUSE, &say, || async {
            match api.list_metadata(&ListParams::default()).await {
                Ok(list) => Ok(Ok(list)),
                Err(error) => Err(blueprint_cluster::Error::Api {
                    action: "list the installed CRDs".to_owned(),
                    source: Box::new(error.into()),
                }),
            }
        })
        .await?;
    let mut found: BTreeMap<(String, String), Installed> = list
        .items
        .into_iter()
        .filter_map(|object| {
            let annotations = object.metadata.annotations.unwrap_or_default();
            Some((
                ("CustomResourceDefinition".to_owned(), object.metadata.name?),
                Installed::of(&annotations, APPLIED),
            ))
        })
        .collect();
    for other in wanted
        .iter()
        .filter(|wanted| wanted.kind() != "CustomResourceDefinition")
    {
        if let Some(object) = work
            .context
            .cluster
            .get(other.api_version(), other.kind(), None, other.name())
            .await?
        {
            let annotations = object.metadata.annotations.unwrap_or_default();
            found.insert(
                (other.kind().to_owned(), other.name().to_owned()),
                Installed::of(&annotations, APPLIED),
            );
        }
    }
    Ok(found)
}

/// What is to be applied, and what is left alone and why. One object that must not be touched stops all before anything is changed.
struct Plan {
    apply: Vec<Wanted>,
    keep: Vec<Wanted>,
    notes: Vec<String>,
}

async fn plan(work: Work<'_>) -> Result<Plan, Error> {
    let wanted = wanted(work.context)?;
    let installed = installed(work, &wanted).await?;
    let mut plan = Plan {
        apply: Vec::new(),
        keep: Vec::new(),
        notes: Vec::new(),
    };
    let mut refusals = Vec::new();
    for object in wanted {
        let there = installed.get(&(object.kind().to_owned(), object.name().to_owned()));
        match judge(
            object.origin,
            object.kind(),
            &Installed::of_manifest(&object.manifest, &object.sha256),
            there,
        ) {
            Judgement::Apply => plan.apply.push(object),
            Judgement::Equal => plan.keep.push(object),
            Judgement::Leave(why) => {
                plan.notes.push(format!(
                    "left {} {} as it is: {why}",
                    object.kind(),
                    object.name()
                ));
                plan.keep.push(object);
            }
            Judgement::Refuse(why) => refusals.push(format!("{}: {why}", object.name())),
        }
    }
    if refusals.is_empty() {
        return Ok(plan);
    }
    let pin = work.context.versions.manifest("gateway-api-standard")?;
    Err(Error::Refused {
        summary: "the cluster's Gateway API CRDs can't be moved forward to the pinned ones".to_owned(),
        expected: format!("no Gateway API CRDs, or standard channel ones not newer than {}", pin.version),
        found: refusals.join("; "),
        hint: "either pin the installed version in VERSIONS.json (manifests.gateway-api-standard and gateway-api-tcproute), or, if nothing uses them, delete these \
               CRDs (their Gateways and routes go with them) and run again; nothing was changed"
            .to_owned(),
    })
}

/// The plurals that the API server serves for each of these group/versions.
async fn served(work: Work<'_>, group_versions: &BTreeSet<String>) -> BTreeSet<(String, String)> {
    let client = work.context.cluster.client();
    let mut served = BTreeSet::new();
    for group_version in group_versions {
        // An unknown group answers 404: nothing of it is served, and the caller waits for the definition.
        if let Ok(list) = client.list_api_group_resources(group_version).await {
            served.extend(
                list.resources
                    .into_iter()
                    .map(|resource| (group_version.clone(), resource.name)),
            );
        }
    }
    served
}

/// Waits for the definitions that the API server does not serve yet. One look at discovery answers for all that it does.
async fn wait_established(
    work: Work<'_>,
    applied: &[Wanted],
    kept: &[Wanted],
) -> Result<(), Error> {
    let groups: BTreeSet<String> = kept
        .iter()
        .flat_map(Wanted::served)
        .map(|(group_version, _)| group_version)
        .collect();
    let served = served(work, &groups).await;
    let unserved = kept.iter().filter(|object| {
        object
            .served()
            .iter()
            .any(|version| !served.contains(version))
    });
    for definition in applied
        .iter()
        .chain(unserved)
        .filter(|object| object.kind() == "CustomResourceDefinition")
    {
        let what = format!("{} to be established", definition.name());
        let target = WaitFor {
            what: &what,
            api_version: definition.api_version(),
            kind: definition.kind(),
            namespace: None,
            name: definition.name(),
            pods: None,
            deadline: ESTABLISHED_WITHIN,
        };
        work.context
            .cluster
            .wait(&target, &condition_true("Established"), &|blocker| {
                work.progress.waiting(blocker);
            })
            .await?;
    }
    Ok(())
}

#[async_trait]
impl Installer for GatewayCrds {
    fn id(&self) -> &'static str {
        "gateway-crds"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let plan = plan(work).await?;
        Ok(match (plan.apply.is_empty(), plan.keep.is_empty()) {
            (true, _) => State::Ready,
            (false, true) => State::Missing,
            (false, false) => State::Outdated(
                plan.apply
                    .iter()
                    .map(|object| format!("{} {}", object.kind(), object.name()))
                    .collect(),
            ),
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let plan = plan(work).await?;
        let mut outcome = Outcome {
            notes: plan.notes,
            ..Outcome::default()
        };
        for object in &plan.apply {
            if let Some(phrase) = work
                .context
                .cluster
                .apply(&object.stamped())
                .await?
                .phrase()
            {
                outcome.changed(phrase);
            }
        }
        wait_established(work, &plan.apply, &plan.keep).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::remains(work).await
    }

    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::run(work).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![row(ROW, self.id(), look(work).await)]
    }
}

async fn look(work: Work<'_>) -> Result<String, Error> {
    let wanted = wanted(work.context)?;
    let definitions: Vec<&Wanted> = wanted
        .iter()
        .filter(|object| object.kind() == "CustomResourceDefinition")
        .collect();
    let groups: BTreeSet<String> = definitions
        .iter()
        .flat_map(|object| object.served())
        .map(|(group_version, _)| group_version)
        .collect();
    let served = served(work, &groups).await;
    let missing: Vec<&str> = definitions
        .iter()
        .filter(|object| {
            object
                .served()
                .iter()
                .any(|version| !served.contains(version))
        })
        .map(|object| object.name())
        .collect();
    if missing.is_empty() {
        return Ok(format!("{} definitions served", definitions.len()));
    }
    Err(unexpected(
        "find every Gateway API and Envoy Gateway kind",
        format!("not served: {}", missing.join(", ")),
        "run `blueprint up --only gateway-crds`",
    ))
}
