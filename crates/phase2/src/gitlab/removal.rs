//! GitLab taken away again: the Gateway first, while its controller is there to let go of it, then the release, then what the chart's jobs and controllers
//! left behind.

use blueprint_cluster::object::describe;
use blueprint_pipeline::Outcome;

use super::release::RELEASE;
use super::{gateway_listener, gateway_removal, outside_secrets};
use crate::error::Error;
use crate::helm_release;
use crate::installer::Work;
use crate::names;
use crate::persistent_secrets::{self, GENERATED};
use crate::removal::{self, Piece, Removal};

const RBAC: &str = "rbac.authorization.k8s.io/v1";
/// By Envoy Gateway's certgen hook, which helm does not take away: names of gateway-helm's templates/certgen*.yaml and topology-injector webhook for a release
/// `gitlab` in the namespace `gitlab`.
const HOOKS_CLUSTER_WIDE: [(&str, &str, &str); 3] = [
    (
        RBAC,
        "ClusterRoleBinding",
        "gitlab-envoy-gateway-certgen:gitlab",
    ),
    (RBAC, "ClusterRole", "gitlab-envoy-gateway-certgen:gitlab"),
    (
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "envoy-gateway-topology-injector.gitlab",
    ),
];
/// Certificates that the same hook makes.
const HOOKS_SECRETS: [&str; 4] = [
    "envoy-gateway",
    "envoy",
    "envoy-rate-limit",
    "envoy-oidc-hmac",
];
/// The chart's StatefulSet makes it, and helm leaves it.
const REPOSITORIES: &str = "repo-data-gitlab-gitaly-0";
/// Whatever else bears the release's labels: the hooks' accounts, roles and maps.
const LABELS: [&str; 2] = ["release=gitlab", "app.kubernetes.io/instance=gitlab"];
const LEFT_KINDS: [(&str, &str); 7] = [
    ("batch/v1", "Job"),
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    (RBAC, "RoleBinding"),
    (RBAC, "Role"),
    ("v1", "ServiceAccount"),
    ("v1", "Service"),
];

/// What bears known names.
fn pieces() -> Vec<Piece> {
    let mut pieces = vec![Piece::Release(RELEASE)];
    pieces.extend(LABELS.map(|selector| Piece::Pods {
        namespace: names::GITLAB,
        selector,
    }));
    pieces.push(Piece::claim(names::GITLAB, REPOSITORIES));
    pieces.extend(
        HOOKS_CLUSTER_WIDE
            .into_iter()
            .map(|(api_version, kind, name)| Piece::object(api_version, kind, None, name)),
    );
    let secrets = GENERATED
        .into_iter()
        .chain(HOOKS_SECRETS)
        .chain(outside_secrets::NAMES);
    pieces.extend(secrets.map(|name| Piece::secret(names::GITLAB, name)));
    pieces
}

/// Objects of the namespace that bear the release's labels, once the release is gone. Before that they are the release's own.
async fn left(work: Work<'_>) -> Result<Vec<(&'static str, &'static str, String)>, Error> {
    let mut found = Vec::new();
    for (api_version, kind) in LEFT_KINDS {
        for selector in LABELS {
            let objects = work
                .context
                .cluster
                .list(api_version, kind, Some(names::GITLAB), selector)
                .await?;
            found.extend(
                objects
                    .into_iter()
                    .filter_map(|object| object.metadata.name)
                    .map(|name| (api_version, kind, name)),
            );
        }
    }
    Ok(found)
}

pub(super) async fn remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let mut found = gateway_listener::remains(work).await?;
    found.extend(gateway_removal::remains(work).await?);
    found.extend(removal::there(work, &pieces()).await?);
    if helm_release::uninstall::there(work, &RELEASE)
        .await?
        .is_none()
    {
        found.extend(
            left(work)
                .await?
                .iter()
                .map(|(_, kind, name)| describe(kind, Some(names::GITLAB), name)),
        );
    }
    found.sort();
    found.dedup();
    Ok(found)
}

pub(super) async fn run(work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    helm_release::uninstall::check_ours(work, &RELEASE).await?;
    gateway_removal::check_unshared(work).await?;
    if removal == Removal::Keep {
        persistent_secrets::save_the_last(work, &mut outcome).await?;
    }
    let generated = persistent_secrets::names_in_cluster(work.context).await?;
    gateway_listener::remove(work, &mut outcome).await?;
    gateway_removal::run(work, &mut outcome).await?;
    removal::remove(work, &pieces(), &mut outcome).await?;
    for name in generated {
        let secret = Piece::secret(names::GITLAB, name);
        removal::remove(work, &[secret], &mut outcome).await?;
    }
    for (api_version, kind, name) in left(work).await? {
        let namespace = Some(names::GITLAB);
        removal::delete(work, api_version, kind, namespace, &name, &mut outcome).await?;
    }
    let namespace = Piece::SharedNamespace(names::GITLAB);
    removal::remove(work, &[namespace], &mut outcome).await?;
    Ok(outcome)
}
