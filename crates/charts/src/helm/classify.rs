//! What helm's last lines mean.

use super::HelmError;

/// How much of a log is told.
const LINES: usize = 12;
const CHARACTERS: usize = 2000;

/// Signs that the same call may work in a moment.
const TRANSIENT: &[&str] = &[
    "connection refused",
    "connection reset by peer",
    "failed calling webhook",
    "no endpoints available for service",
    "etcdserver",
    "too many requests",
    "i/o timeout",
    "tls handshake timeout",
    "http2: client connection lost",
    "the server is currently unable to handle the request",
    "the object has been modified",
    "unexpected eof",
];

/// Signs that a hook did not end in time.
const TIMED_OUT: &[&str] = &["timed out waiting", "context deadline exceeded"];

/// The error for a helm that failed with this log.
pub(super) fn failure(action: &str, release: &str, log: &str) -> HelmError {
    let stderr = tail(log);
    let action = action.to_owned();
    let release = release.to_owned();
    // Only the end counts: helm prints warnings of earlier retries before it.
    let lower = stderr.to_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    if says(&["another operation (install/upgrade/rollback) is in progress"]) {
        HelmError::Pending {
            release,
            state: "pending: another helm operation is in progress or was cut off".to_owned(),
        }
    } else if says(TRANSIENT) {
        HelmError::Transient {
            action,
            release,
            stderr,
        }
    } else if says(TIMED_OUT) {
        HelmError::TimedOut {
            action,
            release,
            stderr,
        }
    } else {
        HelmError::Failed {
            action,
            release,
            stderr,
        }
    }
}

/// The last lines, without warnings while there is something else, and no more than fits a screen.
pub(super) fn tail(log: &str) -> String {
    let lines: Vec<&str> = log
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let telling: Vec<&str> = lines
        .iter()
        .copied()
        .filter(|line| !is_warning(line))
        .collect();
    let lines = if telling.is_empty() { lines } else { telling };
    let text = lines[lines.len().saturating_sub(LINES)..].join("\n");
    let excess = text.chars().count().saturating_sub(CHARACTERS);
    if excess == 0 {
        text
    } else {
        format!("…{}", text.chars().skip(excess).collect::<String>())
    }
}

fn is_warning(line: &str) -> bool {
    line.starts_with("WARNING")
        || line.contains("level=WARN")
        || line.starts_with("W1")
        || line.starts_with("I1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(log: &str) -> &'static str {
        match failure("install or upgrade", "redis", log) {
            HelmError::Pending { .. } => "pending",
            HelmError::Transient { .. } => "transient",
            HelmError::TimedOut { .. } => "timed out",
            HelmError::Failed { .. } => "failed",
            error => panic!("{error:?}"),
        }
    }

    #[test]
    fn helm_killed_half_way_is_pending() {
        assert_eq!(
            kind(
                "Error: UPGRADE FAILED: another operation (install/upgrade/rollback) is in progress"
            ),
            "pending"
        );
    }

    #[test]
    fn operator_webhook_briefly_refusing_is_transient() {
        let log = "Error: INSTALLATION FAILED: Internal error occurred: failed calling webhook \"mcluster.cnpg.io\": failed to call webhook: \
                   Post \"https://cnpg-webhook-service.cnpg-system.svc:443/x?timeout=10s\": context deadline exceeded";
        assert_eq!(kind(log), "transient");
    }

    #[test]
    fn restarting_api_server_is_transient() {
        for log in [
            "Error: kubernetes cluster unreachable: Get \"https://127.0.0.1:6443/version\": dial tcp 127.0.0.1:6443: connect: connection refused",
            "Error: UPGRADE FAILED: etcdserver: request timed out",
            "Error: the server has received too many requests and has asked us to try again later: Too Many Requests",
            "Error: Get \"https://127.0.0.1:6443/\": net/http: TLS handshake timeout",
        ] {
            assert_eq!(kind(log), "transient", "{log}");
        }
    }

    #[test]
    fn hooks_that_do_not_end_time_out() {
        assert_eq!(
            kind(
                "Error: UPGRADE FAILED: pre-upgrade hooks failed: 1 error occurred:\n\t* timed out waiting for the condition"
            ),
            "timed out"
        );
        assert_eq!(
            kind(
                "Error: resource Job/gitlab/x not ready. status: InProgress\ncontext deadline exceeded"
            ),
            "timed out"
        );
    }

    #[test]
    fn anything_else_failed_with_its_last_lines() {
        let error = failure(
            "install or upgrade",
            "redis",
            "WARNING: noise\nError: template: x\n",
        );
        assert_eq!(
            error.to_string(),
            "failed to install or upgrade release redis: Error: template: x"
        );
        assert_eq!(kind("Error: port 429 is taken"), "failed");
    }

    #[test]
    fn a_long_log_is_cut_at_its_front() {
        let log = format!("{}\nError: the end", "x".repeat(10_000));
        let tail = tail(&log);
        assert!(
            tail.ends_with("Error: the end")
                && tail.starts_with('…')
                && tail.chars().count() <= CHARACTERS + 1
        );
        assert_eq!(super::tail("WARNING: only this\n"), "WARNING: only this");
        assert_eq!(super::tail(""), "");
    }
}
