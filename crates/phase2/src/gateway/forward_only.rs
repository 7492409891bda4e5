//! Whether a definition may be applied over what is installed: forward only, never from one channel to another.
//!
//! The bundle's own admission policy `safe-upgrades.gateway.networking.k8s.io` refuses experimental definitions over standard ones and bundles older than
//! v1.5.0; judging first gives a reason before anything was changed.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

const BUNDLE: &str = "gateway.networking.k8s.io/bundle-version";
const CHANNEL: &str = "gateway.networking.k8s.io/channel";

/// Where a wanted object comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The standard bundle.
    GatewayApi,
    /// TCPRoute, experimental up to v1.5 and standard from v1.6 on.
    TcpRoute,
    /// Envoy Gateway, which has neither bundle nor channel.
    Envoy,
}

/// What an object's annotations say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Installed {
    bundle: Option<String>,
    channel: Option<String>,
    applied: Option<String>,
}

impl Installed {
    pub(super) fn of(annotations: &BTreeMap<String, String>, applied: &str) -> Self {
        let read = |key: &str| annotations.get(key).cloned();
        Self {
            bundle: read(BUNDLE),
            channel: read(CHANNEL),
            applied: read(applied),
        }
    }

    pub(super) fn of_manifest(manifest: &Value, sha256: &str) -> Self {
        let read = |key: &str| {
            manifest["metadata"]["annotations"][key]
                .as_str()
                .map(str::to_owned)
        };
        Self {
            bundle: read(BUNDLE),
            channel: read(CHANNEL),
            applied: Some(sha256.to_owned()),
        }
    }
}

/// What to do with one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// Absent, older, or the same version changed by someone.
    Apply,
    /// Applied by us, the very same.
    Equal,
    /// What is there serves as well.
    Leave(String),
    /// It must not be touched.
    Refuse(String),
}

pub(super) fn judge(
    origin: Origin,
    kind: &str,
    wanted: &Installed,
    installed: Option<&Installed>,
) -> Judgement {
    let Some(installed) = installed else {
        return Judgement::Apply;
    };
    if installed.applied == wanted.applied {
        return Judgement::Equal;
    }
    let (Some(there), Some(ours)) = (&installed.bundle, &wanted.bundle) else {
        // No bundle on it: Envoy Gateway's, or made by hand.
        return Judgement::Apply;
    };
    let newer = compare_versions(there, ours) == Ordering::Greater;
    let other_channel = installed.channel != wanted.channel;
    let channel = installed.channel.as_deref().unwrap_or("no");
    match (origin, kind) {
        (Origin::TcpRoute, _) if other_channel || newer => {
            Judgement::Leave(format!("{channel} channel {there} serves as well"))
        }
        (_, "CustomResourceDefinition") if other_channel => {
            let wanted_channel = wanted.channel.as_deref().unwrap_or("no");
            Judgement::Refuse(format!(
                "installed from the {channel} channel ({there}), pinned is the {wanted_channel} channel ({ours})"
            ))
        }
        (_, "CustomResourceDefinition") if newer => Judgement::Refuse(format!(
            "installed is {there}, newer than the pinned {ours}"
        )),
        _ if newer => Judgement::Leave(format!("{there} is newer than {ours}")),
        _ => Judgement::Apply,
    }
}

/// By numbers, then a version with a suffix (`v1.5.0-dev`) before the one without. What cannot be read counts as oldest.
fn compare_versions(left: &str, right: &str) -> Ordering {
    parts(left).cmp(&parts(right))
}

fn parts(version: &str) -> (Vec<u64>, bool, String) {
    let text = version.trim_start_matches('v');
    let (numbers, suffix) = text.split_once('-').unwrap_or((text, ""));
    (
        numbers
            .split('.')
            .map(|number| number.parse().unwrap_or(0))
            .collect(),
        suffix.is_empty(),
        suffix.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRD: &str = "CustomResourceDefinition";

    fn with(bundle: &str, channel: &str, applied: Option<&str>) -> Installed {
        Installed {
            bundle: Some(bundle.to_owned()),
            channel: Some(channel.to_owned()),
            applied: applied.map(str::to_owned),
        }
    }

    fn ours() -> Installed {
        with("v1.5.0", "standard", Some("sha"))
    }

    #[test]
    fn absent_and_older_ones_are_applied() {
        assert_eq!(
            judge(Origin::GatewayApi, CRD, &ours(), None),
            Judgement::Apply
        );
        for older in ["v1.4.1", "v1.5.0-rc.1", "v0.8.0"] {
            assert_eq!(
                judge(
                    Origin::GatewayApi,
                    CRD,
                    &ours(),
                    Some(&with(older, "standard", None))
                ),
                Judgement::Apply,
                "{older}"
            );
        }
    }

    #[test]
    fn our_own_are_recognised_without_reading_them() {
        assert_eq!(
            judge(Origin::GatewayApi, CRD, &ours(), Some(&ours())),
            Judgement::Equal
        );
        assert_eq!(
            judge(
                Origin::GatewayApi,
                CRD,
                &ours(),
                Some(&with("v1.5.0", "standard", Some("other")))
            ),
            Judgement::Apply
        );
    }

    #[test]
    fn newer_gateway_crds_are_not_downgraded() {
        for newer in ["v1.5.1", "v1.6.0", "v1.10.0", "v2.0.0"] {
            let judgement = judge(
                Origin::GatewayApi,
                CRD,
                &ours(),
                Some(&with(newer, "standard", None)),
            );
            assert!(
                matches!(&judgement, Judgement::Refuse(why) if why.contains(newer)),
                "{newer}: {judgement:?}"
            );
        }
    }

    #[test]
    fn experimental_gateway_crds_are_not_replaced_by_standard_ones() {
        let judgement = judge(
            Origin::GatewayApi,
            CRD,
            &ours(),
            Some(&with("v1.4.0", "experimental", None)),
        );
        assert!(matches!(judgement, Judgement::Refuse(why) if why.contains("experimental")));
    }

    #[test]
    fn a_tcproute_that_serves_as_well_is_left_alone() {
        let wanted = with("v1.5.0", "experimental", Some("sha"));
        let leave = |there: &Installed| {
            matches!(
                judge(Origin::TcpRoute, CRD, &wanted, Some(there)),
                Judgement::Leave(_)
            )
        };
        assert!(leave(&with("v1.6.0", "standard", None)));
        assert!(leave(&with("v1.5.1", "experimental", None)));
        assert_eq!(
            judge(
                Origin::TcpRoute,
                CRD,
                &wanted,
                Some(&with("v1.4.0", "experimental", None))
            ),
            Judgement::Apply
        );
    }

    #[test]
    fn a_newer_safe_upgrades_policy_is_left_alone() {
        let wanted = with("v1.5.0-dev", "standard", Some("sha"));
        let policy = "ValidatingAdmissionPolicy";
        assert!(matches!(
            judge(
                Origin::GatewayApi,
                policy,
                &wanted,
                Some(&with("v1.5.1", "experimental", None))
            ),
            Judgement::Leave(_)
        ));
        assert_eq!(
            judge(
                Origin::GatewayApi,
                policy,
                &wanted,
                Some(&with("v1.5.0-dev", "standard", None))
            ),
            Judgement::Apply
        );
    }

    #[test]
    fn envoys_definitions_carry_no_bundle_and_are_applied_unless_equal() {
        let wanted = Installed {
            applied: Some("sha".to_owned()),
            ..Installed::default()
        };
        assert_eq!(
            judge(Origin::Envoy, CRD, &wanted, Some(&Installed::default())),
            Judgement::Apply
        );
        assert_eq!(
            judge(Origin::Envoy, CRD, &wanted, Some(&wanted.clone())),
            Judgement::Equal
        );
    }
}
