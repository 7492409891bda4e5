//! Warning events of a namespace, newest first.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, ListParams};

use crate::blockers::Blocker;
use crate::connect::Cluster;
use crate::error::Error;
use crate::object::describe;
use crate::retry::once;

/// At most this many are read.
const LIMIT: u32 = 500;
/// An event older than this tells of another time.
const FRESH_SECONDS: i64 = 15 * 60;

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Warning {
    at: Timestamp,
    namespace: String,
    kind: String,
    name: String,
    pub(crate) reason: String,
    message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.reason, self.message)
    }
}

/// The warnings of a namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warnings {
    /// Asked once.
    pub(crate) async fn of(cluster: &Cluster, namespace: &str) -> Result<Self, Error> {
        let api = Api::<Event>::namespaced(cluster.client(), namespace);
        let parameters = ListParams::default().fields("type=Warning").limit(LIMIT);
        let events = once(
            &format!("list the events of {namespace}"),
            api.list(&parameters),
        )
        .await?;
        Ok(Self::sorted(events.items, Timestamp::now()))
    }

    fn sorted(events: Vec<Event>, now: Timestamp) -> Self {
        let mut warnings = events
            .into_iter()
            .filter_map(warning)
            .filter(|warning| now.duration_since(warning.at).as_secs() <= FRESH_SECONDS)
            .collect::<Vec<_>>();
        warnings.sort_by_key(|warning| std::cmp::Reverse(warning.at));
        Self(warnings)
    }

    /// The newest about an object.
    pub(crate) fn last_of(&self, kind: &str, name: &str) -> Option<&Warning> {
        self.0
            .iter()
            .find(|warning| warning.kind == kind && warning.name == name)
    }

    /// The newest ones as lines, oldest of them first.
    pub(crate) fn newest(&self, count: usize) -> Vec<String> {
        let lines = self.0.iter().take(count).map(|warning| {
            format!(
                "event {}: {warning}",
                describe(&warning.kind, Some(&warning.namespace), &warning.name)
            )
        });
        let mut lines = lines.collect::<Vec<_>>();
        lines.reverse();
        lines
    }

    /// A controller that may not make its pods (quota, admission, a missing service account): the reason why there is none.
    pub(crate) fn refused_pod(&self) -> Option<Blocker> {
        let refusal = self
            .0
            .iter()
            .find(|warning| warning.reason == "FailedCreate")?;
        Some(Blocker {
            object: describe(&refusal.kind, Some(&refusal.namespace), &refusal.name),
            reason: format!("it has no pod: {}", refusal.message),
            last_event: None,
            serious: true,
        })
    }
}

fn warning(event: Event) -> Option<Warning> {
    let series = event
        .series
        .as_ref()
        .and_then(|series| series.last_observed_time.as_ref())
        .map(|time| time.0);
    let last = event.last_timestamp.as_ref().map(|time| time.0);
    let first = event.event_time.as_ref().map(|time| time.0);
    let made = event
        .metadata
        .creation_timestamp
        .as_ref()
        .map(|time| time.0);
    let object = event.involved_object;
    Some(Warning {
        at: series.or(last).or(first).or(made)?,
        namespace: object.namespace.unwrap_or_default(),
        kind: object.kind?,
        name: object.name?,
        reason: event.reason.unwrap_or_else(|| "Warning".to_owned()),
        // Messages may span lines; one line is enough to find the rest.
        message: event
            .message
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(name: &str, reason: &str, minutes: u32) -> Event {
        serde_json::from_value(json!({
            "metadata": {"name": "e"}, "reason": reason, "message": "back-off\n  pulling",
            "lastTimestamp": format!("2026-11-30T12:{minutes:02}:00Z"),
            "involvedObject": {"kind": "Pod", "namespace": "redis", "name": name}
        }))
        .unwrap()
    }

    #[test]
    fn the_newest_warning_wins_and_old_ones_are_left_out() {
        let events = vec![
            event("a", "Old", 1),
            event("a", "Unhealthy", 30),
            event("a", "Failed", 31),
            event("b", "BackOff", 29),
        ];
        let warnings = Warnings::sorted(events, "2026-11-30T12:32:00Z".parse().unwrap());
        assert_eq!(
            warnings
                .last_of("Pod", "a")
                .map(ToString::to_string)
                .as_deref(),
            Some("Failed: back-off pulling")
        );
        assert_eq!(
            warnings.newest(2),
            [
                "event Pod redis/a: Unhealthy: back-off pulling",
                "event Pod redis/a: Failed: back-off pulling"
            ]
        );
        assert_eq!(warnings.newest(9).len(), 3);
        assert!(warnings.refused_pod().is_none());
    }

    #[test]
    fn a_controller_without_rights_to_make_pods_is_named() {
        let warnings = Warnings::sorted(
            vec![event("redis-master", "FailedCreate", 31)],
            "2026-11-30T12:32:00Z".parse().unwrap(),
        );
        assert_eq!(
            warnings.refused_pod().unwrap().reason,
            "it has no pod: back-off pulling"
        );
    }
}
