//! One stable volume: what the reference wants, what the cluster has, and whether the two may meet.

use blueprint_cluster::object::describe;
use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::error::Error;
use crate::installer::Work;
use crate::quantity::bytes;
use crate::smoke_row::unexpected;

const OWNER: &str = "blueprint.dev/owner";
const MODE: &str = "blueprint.dev/mode";

/// A PersistentVolume of the reference.
#[derive(Debug, Clone)]
pub(crate) struct StableVolume {
    pub(crate) name: String,
    /// Folder on every node.
    pub(crate) path: String,
    /// `uid:gid`.
    pub(crate) owner: String,
    /// Octal, without leading zero, as `stat` prints it.
    pub(crate) mode: String,
    claim_namespace: String,
    claim_name: String,
    manifest: Value,
}

/// What a volume's phase allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Bound, Available, or not looked at yet.
    Usable,
    /// Its claim is gone: it binds to nobody until claimRef.uid is cleared.
    Released,
    /// The reclaimer failed.
    Failed,
}

pub(crate) fn phase(volume: &DynamicObject) -> Phase {
    match volume.data["status"]["phase"].as_str() {
        Some("Released") => Phase::Released,
        Some("Failed") => Phase::Failed,
        _ => Phase::Usable,
    }
}

impl StableVolume {
    pub(crate) fn from_reference(manifest: Value) -> Result<Self, Error> {
        let text = |pointer: &str| {
            manifest
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
                .ok_or_else(|| {
                    unexpected(
                        "read persistent-volumes.yaml",
                        format!("a PersistentVolume without {pointer}"),
                        "compare the file with the one that `blueprint init` writes",
                    )
                })
        };
        let annotation =
            |key: &str| text(&format!("/metadata/annotations/{}", key.replace('/', "~1")));
        Ok(Self {
            name: text("/metadata/name")?,
            path: text("/spec/hostPath/path")?,
            owner: annotation(OWNER)?,
            mode: annotation(MODE)?.trim_start_matches('0').to_owned(),
            claim_namespace: text("/spec/claimRef/namespace")?,
            claim_name: text("/spec/claimRef/name")?,
            manifest,
        })
    }

    pub(crate) async fn read(&self, work: Work<'_>) -> Result<Option<DynamicObject>, Error> {
        Ok(work
            .context
            .cluster
            .get("v1", "PersistentVolume", None, &self.name)
            .await?)
    }

    /// The claim that it is reserved for.
    pub(crate) async fn claim(&self, work: Work<'_>) -> Result<Option<DynamicObject>, Error> {
        Ok(work
            .context
            .cluster
            .get(
                "v1",
                "PersistentVolumeClaim",
                Some(&self.claim_namespace),
                &self.claim_name,
            )
            .await?)
    }

    /// Refuses a volume of this name that leads elsewhere or belongs to another claim.
    pub(crate) fn check(&self, there: &DynamicObject) -> Result<(), Error> {
        let path = there.data["spec"]["hostPath"]["path"]
            .as_str()
            .unwrap_or("no hostPath");
        if path != self.path {
            return Err(Error::Refused {
                summary: format!("PersistentVolume {} leads to another folder", self.name),
                expected: self.path.clone(),
                found: path.to_owned(),
                hint: format!(
                    "set storage_root in blueprint.yaml to the folder that is in use, or move the data, delete the claim and PersistentVolume {} (Retain keeps \
                     the files) and run again",
                    self.name
                ),
            });
        }
        let claim = &there.data["spec"]["claimRef"];
        let bound_to = (
            claim["namespace"].as_str().unwrap_or_default(),
            claim["name"].as_str().unwrap_or_default(),
        );
        if !claim.is_null() && bound_to != (self.claim_namespace.as_str(), self.claim_name.as_str())
        {
            return Err(Error::Refused {
                summary: format!("PersistentVolume {} belongs to another claim", self.name),
                expected: describe(
                    "PersistentVolumeClaim",
                    Some(&self.claim_namespace),
                    &self.claim_name,
                ),
                found: describe("PersistentVolumeClaim", Some(bound_to.0), bound_to.1),
                hint: format!(
                    "see what uses that claim; when its data is safe, delete the claim and PersistentVolume {} (Retain keeps the files)",
                    self.name
                ),
            });
        }
        Ok(())
    }

    /// A claim that asks for more than the volume has stays Pending, and its event names only the storage class.
    pub(crate) async fn check_claim(&self, work: Work<'_>) -> Result<(), Error> {
        let Some(claim) = self.claim(work).await? else {
            return Ok(());
        };
        let asked = claim.data["spec"]["resources"]["requests"]["storage"]
            .as_str()
            .unwrap_or_default();
        let pending = claim.data["status"]["phase"].as_str() == Some("Pending");
        let capacity = self.manifest["spec"]["capacity"]["storage"]
            .as_str()
            .unwrap_or_default();
        match (bytes(asked), bytes(capacity)) {
            (Some(wanted), Some(has)) if pending && wanted > has => Err(Error::Refused {
                summary: format!("{} asks for more than its volume has", describe("PersistentVolumeClaim", Some(&self.claim_namespace), &self.claim_name)),
                expected: format!("at most {capacity}, the capacity of PersistentVolume {}", self.name),
                found: asked.to_owned(),
                hint: "raise `capacity` in references/persistent-volumes.yaml or lower the size in the component's values, delete the Pending claim (nothing is on \
                       it yet) and run again"
                    .to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Applies it; a Released one is made free for the same claim again.
    pub(crate) async fn ensure(&self, work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
        if let Some(there) = self.read(work).await? {
            self.check(&there)?;
            if phase(&there) == Phase::Released {
                self.free(work, &there, outcome).await?;
            }
        }
        outcome
            .changes
            .extend(work.context.cluster.apply(&self.manifest).await?.phrase());
        Ok(())
    }

    /// Clears what ties a Released volume to a claim that is gone, and only that. The resourceVersion read with it makes the API server refuse if the volume
    /// was bound meanwhile.
    async fn free(
        &self,
        work: Work<'_>,
        there: &DynamicObject,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let patch = json!({
            "metadata": {"resourceVersion": there.metadata.resource_version},
            "spec": {"claimRef": {"uid": null, "resourceVersion": null}}
        });
        if work
            .context
            .cluster
            .merge_patch("v1", "PersistentVolume", None, &self.name, &patch)
            .await?
        {
            outcome.changed(format!(
                "freed PersistentVolume {} for its new claim (it was Released)",
                self.name
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::references::References;
    use crate::settings::{Profile, Settings};
    use crate::workspace::Workspace;

    fn reference() -> StableVolume {
        StableVolume::from_reference(json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": "pv-x", "annotations": {OWNER: "26:26", MODE: "0700"}},
            "spec": {"capacity": {"storage": "8Gi"}, "hostPath": {"path": "/s/x"}, "claimRef": {"namespace": "n", "name": "c"}}
        }))
        .unwrap()
    }

    fn there(spec: &Value, phase: &str) -> DynamicObject {
        serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-x"}, "spec": spec, "status": {"phase": phase}}),
        )
        .unwrap()
    }

    #[test]
    fn ours_passes_and_its_mode_reads_as_stat_prints_it() {
        let stable = reference();
        assert_eq!(stable.mode, "700");
        let ours = there(
            &json!({"hostPath": {"path": "/s/x"}, "claimRef": {"namespace": "n", "name": "c", "uid": "u"}}),
            "Bound",
        );
        assert!(stable.check(&ours).is_ok());
    }

    #[test]
    fn a_volume_with_another_folder_or_claim_is_refused() {
        let elsewhere = there(&json!({"hostPath": {"path": "/other"}}), "Available");
        assert!(
            matches!(reference().check(&elsewhere), Err(Error::Refused { found, .. }) if found == "/other")
        );
        let foreign = there(
            &json!({"hostPath": {"path": "/s/x"}, "claimRef": {"namespace": "n", "name": "other"}}),
            "Bound",
        );
        assert!(
            matches!(reference().check(&foreign), Err(Error::Refused { found, .. }) if found.contains("n/other"))
        );
    }

    #[test]
    fn only_released_is_released() {
        for (text, expected) in [
            ("Released", Phase::Released),
            ("Bound", Phase::Usable),
            ("Available", Phase::Usable),
            ("Failed", Phase::Failed),
        ] {
            assert_eq!(phase(&there(&json!({}), text)), expected, "{text}");
        }
    }

    /// Regression: a claim larger than its volume stays Pending and nothing says why.
    #[test]
    fn no_claim_of_a_reference_asks_for_more_than_its_volume_has() {
        let folder = tempfile::tempdir().unwrap();
        for profile in [Profile::Small, Profile::Full] {
            let references = References::new(
                Workspace::at(folder.path()),
                Settings {
                    profile,
                    ..Settings::default()
                },
            );
            let versions = references.versions().unwrap();
            let volumes = references.documents("persistent-volumes.yaml").unwrap();
            let size = |name: &str| {
                let volume = volumes
                    .iter()
                    .find(|document| document["metadata"]["name"] == json!(name))
                    .unwrap();
                bytes(volume["spec"]["capacity"]["storage"].as_str().unwrap()).unwrap()
            };
            let asks = |value: &Value, pointer: &str| {
                bytes(value.pointer(pointer).and_then(Value::as_str).unwrap()).unwrap()
            };
            let cluster = &references.documents("cluster-postgresql.yaml").unwrap()[0];
            let claim = &references
                .documents("adoptable-claim-postgresql.yaml")
                .unwrap()[0];
            let minio = volumes
                .iter()
                .find(|document| document["kind"] == json!("PersistentVolumeClaim"))
                .unwrap();
            let redis = references.values("redis", &versions).unwrap();
            let gitlab = references.values("gitlab", &versions).unwrap();
            assert!(
                asks(
                    cluster,
                    "/spec/storage/pvcTemplate/resources/requests/storage"
                ) <= size("pv-cnpg-data")
            );
            assert!(asks(claim, "/spec/resources/requests/storage") <= size("pv-cnpg-data"));
            assert!(asks(minio, "/spec/resources/requests/storage") <= size("pv-minio"));
            assert!(asks(&redis, "/master/persistence/size") <= size("pv-redis"));
            assert!(asks(&gitlab, "/gitlab/gitaly/persistence/size") <= size("pv-gitaly"));
        }
    }
}
