//! Why a pod is not ready, read from the pod itself.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod, PodStatus};

use crate::read::{condition_is_true, is_ready};

/// A pod may be unschedulable for this long while its claims are bound, and unready while it starts, without being worth a complaint.
const GRACE_SECONDS: i64 = 15;
const SLOW_START_SECONDS: i64 = 60;

/// What the pod says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) reason: String,
    pub(crate) serious: bool,
    /// The container to read the log of, and whether its previous run is the telling one.
    pub(crate) log: Option<(String, bool)>,
}

impl Finding {
    fn new(reason: impl Into<String>, serious: bool) -> Self {
        Self {
            reason: reason.into(),
            serious,
            log: None,
        }
    }

    fn with_log(mut self, container: &str, previous: bool) -> Self {
        self.log = Some((container.to_owned(), previous));
        self
    }
}

/// Why this pod blocks; `None` when it is ready, has done its work, or is being deleted.
pub(crate) fn pod(pod: &Pod, now: Timestamp) -> Option<Finding> {
    let status = pod.status.as_ref();
    let phase = status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or("Pending");
    if pod.metadata.deletion_timestamp.is_some() || phase == "Succeeded" || is_ready(pod) {
        return None;
    }
    let Some(status) = status else {
        return Some(Finding::new("starting", false));
    };
    if phase == "Failed" {
        return Some(failed(status));
    }
    unscheduled(status, now)
        .or_else(|| initialising(pod, status))
        .or_else(|| {
            status
                .container_statuses
                .iter()
                .flatten()
                .find_map(|container| stuck(container, ""))
        })
        .or_else(|| not_ready(status, now))
        .or_else(|| Some(Finding::new("starting", false)))
}

/// A pod that ended badly: evicted, or a container of it did not exit with 0.
fn failed(status: &PodStatus) -> Finding {
    let of_the_pod = [status.reason.as_deref(), status.message.as_deref()]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(": ");
    let all = status
        .init_container_statuses
        .iter()
        .flatten()
        .chain(status.container_statuses.iter().flatten());
    let ended = all
        .into_iter()
        .find_map(|container| exit(container.state.as_ref()?).map(|words| (container, words)));
    match ended {
        Some((container, words)) => {
            Finding::new(format!("Failed: {} ({words})", container.name), true)
                .with_log(&container.name, false)
        }
        None if of_the_pod.is_empty() => Finding::new("Failed", true),
        None => Finding::new(format!("Failed: {of_the_pod}"), true),
    }
}

fn unscheduled(status: &PodStatus, now: Timestamp) -> Option<Finding> {
    let scheduled = status
        .conditions
        .iter()
        .flatten()
        .find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
    let since = scheduled
        .last_transition_time
        .as_ref()
        .map_or(0, |time| now.duration_since(time.0).as_secs());
    let message = scheduled
        .message
        .as_deref()
        .or(scheduled.reason.as_deref())
        .unwrap_or("not scheduled");
    Some(Finding::new(
        format!("Pending: {message}"),
        since >= GRACE_SECONDS,
    ))
}

fn initialising(pod: &Pod, status: &PodStatus) -> Option<Finding> {
    for container in status.init_container_statuses.iter().flatten() {
        let prefix = format!("init container {}: ", container.name);
        if let Some(finding) = stuck(container, &prefix) {
            return Some(finding);
        }
        let state = container.state.as_ref();
        let running = state.is_some_and(|state| state.running.is_some());
        // A sidecar (restartPolicy Always) is meant to go on running.
        if running && !is_sidecar(pod, &container.name) {
            return Some(
                Finding::new(format!("{prefix}running"), false).with_log(&container.name, false),
            );
        }
    }
    None
}

fn is_sidecar(pod: &Pod, name: &str) -> bool {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.init_containers.as_ref())
        .into_iter()
        .flatten()
        .any(|container| {
            container.name == name && container.restart_policy.as_deref() == Some("Always")
        })
}

/// A container that waits for something other than its own start, or ended badly.
fn stuck(container: &ContainerStatus, prefix: &str) -> Option<Finding> {
    let state = container.state.as_ref()?;
    if let Some(words) = exit(state) {
        return Some(
            Finding::new(format!("{prefix}{words}"), true).with_log(&container.name, false),
        );
    }
    let waiting = state.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().unwrap_or("waiting");
    let message = waiting.message.as_deref().unwrap_or_default();
    let (words, log) = match reason {
        "ContainerCreating" | "PodInitializing" => return None,
        "ImagePullBackOff"
        | "ErrImagePull"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "RegistryUnavailable" => (format!("{reason} {}", container.image), None),
        "CrashLoopBackOff" => {
            let last = container
                .last_state
                .as_ref()
                .and_then(exit)
                .unwrap_or_else(|| "it ended with 0 and is started again".to_owned());
            (
                format!("{reason} ({last})"),
                Some((container.name.clone(), true)),
            )
        }
        _ if message.is_empty() => (reason.to_owned(), None),
        // CreateContainerConfigError names the missing Secret or ConfigMap here.
        _ => (format!("{reason}: {message}"), None),
    };
    Some(Finding {
        reason: format!("{prefix}{words}"),
        serious: true,
        log,
    })
}

/// `exit 1, Error: message`; `None` while it runs and after a good end.
fn exit(state: &ContainerState) -> Option<String> {
    let ended = state
        .terminated
        .as_ref()
        .filter(|ended| ended.exit_code != 0)?;
    let mut words = match ended.signal {
        Some(signal) if signal != 0 => format!("signal {signal}"),
        _ => format!("exit {}", ended.exit_code),
    };
    if let Some(reason) = ended.reason.as_deref().filter(|reason| *reason != "Error") {
        words = format!("{words}, {reason}");
    }
    if let Some(line) = ended
        .message
        .as_deref()
        .and_then(|message| message.trim().lines().last())
    {
        words = format!("{words}: {line}");
    }
    Some(words)
}

/// All containers run, one is not ready: probes fail, or it only starts.
fn not_ready(status: &PodStatus, now: Timestamp) -> Option<Finding> {
    if !condition_is_true(status, "PodScheduled") {
        return None;
    }
    let container = status
        .container_statuses
        .iter()
        .flatten()
        .find(|container| !container.ready)?;
    let running = container.state.as_ref()?.running.as_ref()?;
    let since = running
        .started_at
        .as_ref()
        .map_or(0, |time| now.duration_since(time.0).as_secs());
    Some(
        Finding::new(
            format!("{} runs and is not ready", container.name),
            since >= SLOW_START_SECONDS,
        )
        .with_log(&container.name, false),
    )
}

#[cfg(test)]
#[path = "diagnose_tests.rs"]
mod tests;
