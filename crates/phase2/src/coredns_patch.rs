//! Step 10: names of the domain resolve to the Gateway inside the cluster.
//!
//! A Service of ours stands in front of Envoy's pods, and CoreDNS rewrites every name of the domain to it. Both exist before GitLab does and stay as they are.

mod corefile;
mod probe;
mod removal;

use std::time::Duration;

use async_trait::async_trait;
use blueprint_cluster::{WaitFor, wait};
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::context::Context;
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::marked_block;
use crate::names;
use crate::removal::Removal;
use crate::smoke::CheckResult;

use corefile::CorefileError;

const KUBE_SYSTEM: &str = "kube-system";
const REFERENCE: &str = "gitlab-gateway-service.yaml";
/// On the pod template: the digest of our lines. A new value rolls the pods; a run that was cut off before it finds the old one and goes on.
const ANNOTATION: &str = "blueprint/corefile";
/// On the Service: the digest that a pod has resolved a name with. A run that was cut off between the edit and the proof finds none, and proves it.
const PROVEN: &str = "blueprint.dev/resolves";
const ROLLOUT: Duration = Duration::from_mins(3);

/// The smoke row that the facts add to the table.
pub const ROW: &str = "Names of the domain resolve in the cluster";

/// The installer of task `coredns`.
#[derive(Debug, Clone, Copy, Default)]
pub struct CoreDnsPatch;

/// A DNS server of the cluster and how its Corefile is edited.
struct Server {
    /// ConfigMap's name.
    config_map: &'static str,
    /// Workload's kind and name.
    kind: &'static str,
    name: &'static str,
    /// Pods, for blame.
    pods: &'static str,
    edit: fn(&str, &str) -> Result<String, CorefileError>,
}

/// kubeadm's names, and those of the `NodeLocal DNSCache` add-on (kubernetes/cluster/addons/dns/nodelocaldns).
const SERVERS: [Server; 2] = [
    Server {
        config_map: "coredns",
        kind: "Deployment",
        name: "coredns",
        pods: "k8s-app=kube-dns",
        edit: |text, domain| {
            corefile::with_stanza(
                text,
                domain,
                &format!("{}.{}", names::GATEWAY_SERVICE, names::GITLAB),
            )
        },
    },
    Server {
        config_map: "node-local-dns",
        kind: "DaemonSet",
        name: "node-local-dns",
        pods: "k8s-app=node-local-dns",
        edit: corefile::with_forward_block,
    },
];

/// What a server's Corefile is and should be.
struct Edit {
    server: &'static Server,
    current: String,
    wanted: String,
}

impl Edit {
    /// Of our lines alone: what others change in the file is theirs to roll out.
    fn digest(&self) -> String {
        let digest = Sha256::digest(marked_block::only(&self.wanted).as_bytes());
        let number = digest
            .iter()
            .take(8)
            .fold(0, |number: u64, byte| (number << 8) | u64::from(*byte));
        format!("{number:016x}")
    }
}

#[async_trait]
impl Installer for CoreDnsPatch {
    fn id(&self) -> &'static str {
        "coredns"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let context = work.context;
        let service = gateway_service(context).await?;
        let mut differs = Vec::new();
        let edits = edits(context).await?;
        let proven = service
            .as_ref()
            .is_some_and(|service| is_proven(service, &edits));
        if service.is_some() && !proven {
            differs.push("no pod has resolved a name since".to_owned());
        }
        if service.is_none() {
            differs.push(format!(
                "Service {}/{} is missing",
                names::GITLAB,
                names::GATEWAY_SERVICE
            ));
        }
        for edit in edits {
            if edit.current != edit.wanted {
                differs.push(format!(
                    "ConfigMap {KUBE_SYSTEM}/{} lacks the rewrite",
                    edit.server.config_map
                ));
            }
        }
        Ok(match (service, differs.is_empty()) {
            (_, true) => State::Ready,
            (None, false) => State::Missing,
            (Some(_), false) => State::Outdated(differs),
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let context = work.context;
        let mut outcome = Outcome::unchanged();
        // Read and judged first: a Corefile that will not be edited stops the task before anything is made.
        let edits = edits(context).await?;
        outcome
            .changes
            .extend(names::ensure_namespace(&context.cluster, names::GITLAB).await?);
        let service = context.references.documents(REFERENCE)?;
        outcome
            .changes
            .extend(context.cluster.apply_all(&service).await?);
        for edit in &edits {
            patch(work, edit, &mut outcome).await?;
        }
        let gateway = gateway_service(context).await?;
        let proven = gateway
            .as_ref()
            .is_some_and(|service| is_proven(service, &edits));
        if !outcome.changes.is_empty() || !proven {
            let name = context.settings.host("gitlab");
            let address = gateway_address(context).await?;
            work.progress.say(format!("asking for {name} from a pod"));
            probe::resolve_from_pod(work, &name, &address).await?;
            outcome.note(format!("{name} resolves to {address} from a pod"));
            let mark = json!({"metadata": {"annotations": {PROVEN: proof(&edits)}}});
            let (namespace, name) = (Some(names::GITLAB), names::GATEWAY_SERVICE);
            context
                .cluster
                .merge_patch("v1", "Service", namespace, name, &mark)
                .await?;
        }
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::remains(work).await
    }

    async fn uninstall(&self, work: Work<'_>, _removal: Removal) -> Result<Outcome, Error> {
        removal::run(work).await
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![CheckResult::from_result(
            ROW,
            probe::resolve_now(work.context).await,
        )]
    }
}

async fn gateway_service(context: &Context) -> Result<Option<DynamicObject>, Error> {
    let found = context
        .cluster
        .get("v1", "Service", Some(names::GITLAB), names::GATEWAY_SERVICE)
        .await?;
    Ok(found)
}

fn is_proven(service: &DynamicObject, edits: &[Edit]) -> bool {
    let annotations = service.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(PROVEN)) == Some(&proof(edits))
}

/// Of all edits together.
fn proof(edits: &[Edit]) -> String {
    edits.iter().map(Edit::digest).collect::<Vec<_>>().join("-")
}

/// ClusterIP of Service gitlab-gateway.
pub async fn gateway_address(context: &Context) -> Result<String, Error> {
    gateway_service(context)
        .await?
        .as_ref()
        .and_then(|service| service.data.pointer("/spec/clusterIP"))
        .and_then(|address| address.as_str())
        .filter(|address| !address.is_empty() && *address != "None")
        .map(str::to_owned)
        .ok_or_else(|| Error::Failed {
            action: "find the Gateway's address".to_owned(),
            found: format!(
                "Service {}/{} has no ClusterIP",
                names::GITLAB,
                names::GATEWAY_SERVICE
            ),
            hint: "run `blueprint up --only coredns`, which makes it".to_owned(),
        })
}

async fn edits(context: &Context) -> Result<Vec<Edit>, Error> {
    let mut edits = Vec::new();
    for server in &SERVERS {
        let config_map = context
            .cluster
            .get("v1", "ConfigMap", Some(KUBE_SYSTEM), server.config_map)
            .await?;
        let Some(current) = config_map.as_ref().and_then(corefile_of) else {
            if server.config_map == "coredns" {
                return Err(no_coredns());
            }
            continue;
        };
        let wanted = (server.edit)(&current, &context.settings.domain)
            .map_err(|found| refusal(server, &found))?;
        edits.push(Edit {
            server,
            current,
            wanted,
        });
    }
    Ok(edits)
}

fn corefile_of(config_map: &DynamicObject) -> Option<String> {
    config_map
        .data
        .pointer("/data/Corefile")?
        .as_str()
        .map(str::to_owned)
}

async fn patch(work: Work<'_>, edit: &Edit, outcome: &mut Outcome) -> Result<(), Error> {
    let (cluster, server) = (&work.context.cluster, edit.server);
    if edit.current != edit.wanted {
        let patch = json!({"data": {"Corefile": edit.wanted}});
        cluster
            .merge_patch(
                "v1",
                "ConfigMap",
                Some(KUBE_SYSTEM),
                server.config_map,
                &patch,
            )
            .await?;
        outcome.changed(format!(
            "patched ConfigMap {KUBE_SYSTEM}/{}",
            server.config_map
        ));
    }
    let mark =
        json!({"spec": {"template": {"metadata": {"annotations": {ANNOTATION: edit.digest()}}}}});
    if cluster
        .merge_patch(
            "apps/v1",
            server.kind,
            Some(KUBE_SYSTEM),
            server.name,
            &mark,
        )
        .await?
    {
        outcome.changed(format!(
            "restarted {} {KUBE_SYSTEM}/{}",
            server.kind, server.name
        ));
        let what = format!("{} to serve the new Corefile", server.name);
        let target = WaitFor {
            what: &what,
            api_version: "apps/v1",
            kind: server.kind,
            namespace: Some(KUBE_SYSTEM),
            name: server.name,
            pods: Some(server.pods),
            deadline: ROLLOUT,
        };
        cluster
            .wait(&target, &wait::workload_ready, &|blocker| {
                work.progress.waiting(blocker);
            })
            .await?;
    }
    Ok(())
}

fn no_coredns() -> Error {
    Error::Refused {
        summary: "this cluster's DNS is not CoreDNS as kubeadm installs it".to_owned(),
        expected: format!("ConfigMap {KUBE_SYSTEM}/coredns with key Corefile"),
        found: "none".to_owned(),
        hint: "pods must resolve the domain's names: add a rewrite to gitlab-gateway.gitlab.svc.cluster.local to your DNS by hand and run `blueprint up --skip coredns`".to_owned(),
    }
}

fn refusal(server: &Server, found: &CorefileError) -> Error {
    Error::Refused {
        summary: format!("the Corefile in ConfigMap {KUBE_SYSTEM}/{} will not be edited", server.config_map),
        expected: "balanced blocks, balanced `# blueprint:` markers and the server block that serves the cluster".to_owned(),
        found: found.to_string(),
        hint: format!("look at it with `kubectl -n {KUBE_SYSTEM} edit configmap {}`, mend that line and run `blueprint up --only coredns`", server.config_map),
    }
}
