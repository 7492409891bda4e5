//! Whether a node's kubelet could pull from the registry: name, CA and token realm, told by one pull of an image that is not there.

use blueprint_cluster::{Node, Nodes};

use crate::error::Error;

/// What a pull's answer proves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The registry or its token realm answered: name, CA and route are right.
    Registry(String),
    /// Something on the way did not work.
    Broken(String),
}

/// Faults on the way; looked for first, because such messages carry words of the other list too ("failed to authorize: … no such host").
const FAULTS: [&str; 13] = [
    "no such host",
    "server misbehaving",
    "x509: ",
    "connection refused",
    "connection reset",
    "i/o timeout",
    "deadline exceeded",
    "network is unreachable",
    "no route to host",
    "tls:",
    "503 service unavailable",
    "502 bad gateway",
    ": eof",
];

/// A registry's own words for an image that is not there or not for everyone (distribution spec, error codes; containerd's remotes/docker).
const ANSWERS: [&str; 8] = [
    "insufficient_scope",
    "name_unknown",
    "manifest unknown",
    "denied",
    "unauthorized",
    "403 forbidden",
    "401 ",
    "not found",
];

/// Judges the words of a failed pull.
pub(super) fn judge(output: &str) -> Answer {
    let text = output.to_lowercase();
    let line = || {
        let last = output.lines().rev().map(str::trim);
        last.into_iter()
            .find(|line| !line.is_empty())
            .map_or_else(|| "no answer".to_owned(), message)
    };
    if FAULTS.iter().any(|word| text.contains(word)) {
        return Answer::Broken(line());
    }
    // A token realm that is not there answers 404 as well: that is not the registry speaking.
    if text.contains("token") && text.contains("404 not found") {
        return Answer::Broken(line());
    }
    match ANSWERS.iter().find(|word| text.contains(**word)) {
        Some(word) => Answer::Registry((*word).trim().to_owned()),
        None => Answer::Broken(line()),
    }
}

/// What crictl's log line says (logrus: `time="…" level=… msg="…"`), without the time: with it the same fault would be told anew every few seconds.
fn message(line: &str) -> String {
    line.split_once(" msg=\"").map_or_else(
        || line.to_owned(),
        |(_, said)| said.strip_suffix('"').unwrap_or(said).replace("\\\"", "\""),
    )
}

/// Pulls an image that does not exist, by the registry's public name.
pub(super) async fn probe(nodes: &Nodes, node: &Node, registry: &str) -> Result<Answer, Error> {
    let image = format!("{registry}/blueprint/does-not-exist:probe");
    let output = nodes
        .exec(node, &["crictl", "--timeout", "25s", "pull", &image], None)
        .await?;
    if output.code == 0 {
        return Ok(Answer::Registry("pulled".to_owned()));
    }
    Ok(judge(&format!("{}\n{}", output.stdout, output.stderr)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(output: &str) -> bool {
        matches!(judge(output), Answer::Broken(_))
    }

    #[test]
    fn a_fault_that_stays_was_told_anew_with_every_time_stamp() {
        let at = |second: u8| {
            format!(
                "time=\"2026-12-01T16:04:{second}Z\" level=error msg=\"pulling image: dial tcp 10.96.1.2:443 of \\\"r\\\": connect: connection refused\"\n"
            )
        };
        assert_eq!(judge(&at(49)), judge(&at(52)));
        assert_eq!(
            judge(&at(49)),
            Answer::Broken(
                "pulling image: dial tcp 10.96.1.2:443 of \"r\": connect: connection refused"
                    .into()
            )
        );
    }

    #[test]
    fn a_registrys_refusal_proves_name_ca_and_realm() {
        for output in [
            "failed to pull and unpack image \"registry.x/blueprint/does-not-exist:probe\": failed to resolve reference: registry.x/blueprint/does-not-exist:probe: not found",
            "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed",
            "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://gitlab.x/jwt/auth?scope=a: 403 Forbidden",
        ] {
            assert!(!broken(output), "{output}");
        }
    }

    #[test]
    fn a_lost_hosts_line_a_missing_ca_and_a_dead_gateway_are_no_answers() {
        for output in [
            "failed to do request: Head \"https://registry.x/v2/\": dial tcp: lookup registry.x on 172.18.0.1:53: server misbehaving",
            "failed to do request: Head \"https://registry.x/v2/\": tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "failed to do request: Head \"https://registry.x/v2/\": dial tcp 10.96.1.2:443: connect: connection refused",
            "failed to authorize: failed to fetch anonymous token: Get \"https://gitlab.x/jwt/auth\": dial tcp: lookup gitlab.x: no such host",
            "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://gitlab.x/jwt/auth: 404 Not Found",
            "failed to resolve reference: unexpected status from HEAD request: 503 Service Unavailable",
            "failed to do request: Head \"https://registry.x/v2/\": EOF",
            "",
        ] {
            assert!(broken(output), "{output}");
        }
    }
}
