//! Claims that are not bound, and why: the events name only the class, the volume tells the rest.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use kube::api::{Api, ListParams};

use crate::blockers::Blocker;
use crate::connect::Cluster;
use crate::error::Error;
use crate::events::Warnings;
use crate::object::describe;
use crate::read::condition_is_true;
use crate::retry::once;

impl Cluster {
    /// The unbound claims of a pod that waits for its node.
    pub(crate) async fn unbound_claims(
        &self,
        namespace: &str,
        pod: &Pod,
        warnings: &Warnings,
    ) -> Result<Vec<Blocker>, Error> {
        let placed = pod
            .spec
            .as_ref()
            .is_some_and(|spec| spec.node_name.is_some());
        let scheduled = pod
            .status
            .as_ref()
            .is_some_and(|status| condition_is_true(status, "PodScheduled"));
        if placed || scheduled {
            return Ok(Vec::new());
        }
        let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
        let names = volumes
            .into_iter()
            .flatten()
            .filter_map(|volume| volume.persistent_volume_claim.as_ref())
            .map(|claim| claim.claim_name.as_str());
        let claims = Api::<PersistentVolumeClaim>::namespaced(self.client(), namespace);
        let mut blockers = Vec::new();
        for name in names {
            let what = describe("PersistentVolumeClaim", Some(namespace), name);
            let claim = once(&format!("read {what}"), claims.get_opt(name)).await?;
            let reason = match &claim {
                None => "it does not exist".to_owned(),
                Some(claim) if phase(claim) == Some("Bound") => continue,
                Some(claim) => {
                    let volumes = Api::<PersistentVolume>::all(self.client());
                    let volumes = once(
                        "list PersistentVolumes",
                        volumes.list(&ListParams::default()),
                    )
                    .await?
                    .items;
                    obstacle(claim, namespace, &volumes)
                        .unwrap_or_else(|| phase(claim).unwrap_or("Pending").to_owned())
                }
            };
            let last_event = warnings
                .last_of("PersistentVolumeClaim", name)
                .map(ToString::to_string);
            let serious = reason != "Pending" || last_event.is_some();
            blockers.push(Blocker {
                object: what,
                reason,
                last_event,
                serious,
            });
        }
        Ok(blockers)
    }
}

fn phase(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

/// What the volume that is meant for this claim says.
fn obstacle(
    claim: &PersistentVolumeClaim,
    namespace: &str,
    volumes: &[PersistentVolume],
) -> Option<String> {
    let name = claim.metadata.name.as_deref()?;
    let wanted = claim
        .spec
        .as_ref()
        .and_then(|spec| spec.volume_name.as_deref());
    let reserved = |volume: &PersistentVolume| {
        let reference = volume
            .spec
            .as_ref()
            .and_then(|spec| spec.claim_ref.as_ref());
        reference.is_some_and(|reference| {
            reference.namespace.as_deref() == Some(namespace)
                && reference.name.as_deref() == Some(name)
        })
    };
    let meant = volumes.iter().find(|volume| {
        wanted.is_some_and(|wanted| volume.metadata.name.as_deref() == Some(wanted))
            || reserved(volume)
    });
    let Some(volume) = meant else {
        return wanted.map(|wanted| format!("its volume {wanted} does not exist"));
    };
    let volume_name = volume.metadata.name.as_deref().unwrap_or_default();
    if volume
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref())
        == Some("Released")
    {
        return Some(format!(
            "its volume {volume_name} is Released: its claimRef still holds the uid of a claim that is gone"
        ));
    }
    if !reserved(volume)
        && volume
            .spec
            .as_ref()
            .is_some_and(|spec| spec.claim_ref.is_some())
    {
        return Some(format!(
            "its volume {volume_name} is reserved for another claim"
        ));
    }
    let asked = claim
        .spec
        .as_ref()?
        .resources
        .as_ref()?
        .requests
        .as_ref()?
        .get("storage")?;
    let held = volume.spec.as_ref()?.capacity.as_ref()?.get("storage")?;
    if bytes(&asked.0)? > bytes(&held.0)? {
        return Some(format!(
            "it asks for {}, and its volume {volume_name} holds {}",
            asked.0, held.0
        ));
    }
    None
}

/// A storage quantity in bytes (`8Gi`, `500M`, `1073741824`; Kubernetes' quantity format, without fractions and exponents).
fn bytes(quantity: &str) -> Option<u128> {
    let digits = quantity
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(quantity.len());
    let (number, unit) = quantity.split_at(digits);
    let number = number.parse::<u128>().ok()?;
    let factor = match unit {
        "" => 1,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn claim(size: &str) -> PersistentVolumeClaim {
        serde_json::from_value(json!({"metadata": {"name": "redis-data"}, "spec": {"volumeName": "pv-redis", "resources": {"requests": {"storage": size}}}})).unwrap()
    }

    fn volume(phase: &str, claim_ref: &Value) -> PersistentVolume {
        serde_json::from_value(json!({
            "metadata": {"name": "pv-redis"}, "spec": {"capacity": {"storage": "8Gi"}, "claimRef": claim_ref}, "status": {"phase": phase}
        }))
        .unwrap()
    }

    #[test]
    fn a_released_volume_is_named() {
        let ours = json!({"namespace": "redis", "name": "redis-data"});
        let found = obstacle(&claim("8Gi"), "redis", &[volume("Released", &ours)]).unwrap();
        assert!(found.contains("pv-redis is Released"), "{found}");
    }

    #[test]
    fn a_claim_larger_than_its_volume_is_told_by_both_sizes() {
        let ours = json!({"namespace": "redis", "name": "redis-data"});
        let found = obstacle(&claim("10Gi"), "redis", &[volume("Available", &ours)]);
        assert_eq!(
            found.as_deref(),
            Some("it asks for 10Gi, and its volume pv-redis holds 8Gi")
        );
        assert_eq!(
            obstacle(&claim("8192Mi"), "redis", &[volume("Available", &ours)]),
            None
        );
    }

    #[test]
    fn a_missing_or_foreign_volume_is_told() {
        assert_eq!(
            obstacle(&claim("8Gi"), "redis", &[]).as_deref(),
            Some("its volume pv-redis does not exist")
        );
        let foreign = json!({"namespace": "minio", "name": "export"});
        assert!(
            obstacle(&claim("8Gi"), "redis", &[volume("Bound", &foreign)])
                .unwrap()
                .contains("another claim")
        );
    }

    #[test]
    fn quantities_are_compared_as_bytes() {
        assert_eq!(bytes("8Gi"), Some(8 << 30));
        assert_eq!(bytes("1G"), Some(1_000_000_000));
        assert_eq!(bytes("12"), Some(12));
        assert_eq!(bytes("1e3"), None);
    }
}
