//! The API server's answer in few words, and whether asking again can help.
//!
//! kube's own text repeats the whole Status in Debug form after the message; people need the message.

use std::error::Error as StdError;
use std::fmt;
use std::io::ErrorKind;

use kube::core::Status;

/// kube's error, said briefly. Its text holds all causes, so it has no source of its own.
pub struct Answer(kube::Error);

impl From<kube::Error> for Answer {
    fn from(error: kube::Error) -> Self {
        Self(error)
    }
}

impl Answer {
    /// kube's error.
    pub fn kube(&self) -> &kube::Error {
        &self.0
    }

    /// The Status that the server sent, if it sent one.
    pub fn status(&self) -> Option<&Status> {
        match &self.0 {
            kube::Error::Api(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the server said that the object (or its resource) is not there.
    pub fn is_not_found(&self) -> bool {
        Self::is_absence(&self.0)
    }

    /// The same of kube's error. A path that the server does not serve (no such kind) is answered in plain text, which kube passes on with the
    /// code but without the reason that its own `is_not_found` looks for.
    pub(crate) fn is_absence(error: &kube::Error) -> bool {
        matches!(error, kube::Error::Api(status) if status.code == 404 || status.is_not_found())
    }

    /// Whether the same request may succeed a moment later: the connection was refused or broke (an API server that restarts), or the server
    /// answered 429, 5xx (etcd without leader, a webhook without backend) or with a conflict. Denials and TLS faults are for good.
    pub fn is_transient(&self) -> bool {
        match &self.0 {
            kube::Error::Api(status) => match status.code {
                429 | 500 | 502 | 503 | 504 => true,
                409 => status.reason != "AlreadyExists",
                _ => false,
            },
            other => is_broken_connection(other),
        }
    }

    /// A result where absence is no error.
    pub(crate) fn optional<T>(result: Result<T, kube::Error>) -> Result<Option<T>, kube::Error> {
        match result {
            Ok(found) => Ok(Some(found)),
            Err(error) if Self::is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// What to do next, where the answer allows to say it.
    pub(crate) fn hint(&self) -> Option<String> {
        if let Some(status) = self.status() {
            return hint_for(status);
        }
        if is_broken_connection(&self.0) {
            return Some(
                "the API server does not answer; check that the cluster runs (for kind: its node containers) and that the kubeconfig names its present address"
                    .to_owned(),
            );
        }
        if self.to_string().to_lowercase().contains("certificate") {
            return Some(
                "the kubeconfig holds the certificate of another or an older cluster; write it anew (for kind: `kind export kubeconfig --name NAME`)".to_owned(),
            );
        }
        None
    }

    /// The answer with every one of `secrets` taken out of the server's text.
    pub(crate) fn without<'a>(mut self, secrets: impl IntoIterator<Item = &'a str>) -> Self {
        if let kube::Error::Api(status) = &mut self.0 {
            for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
                if status.message.contains(secret) {
                    status.message = status.message.replace(secret, "[redacted]");
                    status.details = None;
                }
            }
        }
        self
    }
}

fn hint_for(status: &Status) -> Option<String> {
    let text = &status.message;
    let hint = match status.code {
        401 => {
            "the kubeconfig's credentials are not accepted; write it anew (for kind: `kind export kubeconfig --name NAME`)"
        }
        403 if text.contains("is being terminated") => {
            "the namespace is being deleted; wait until it is gone, then run the same command again"
        }
        403 => "the kubeconfig's user needs the rights of a cluster administrator",
        404 if text.starts_with("namespaces ") => {
            "the namespace does not exist; the step that makes it has to run first"
        }
        409 => {
            "something else keeps changing this object at the same time; run the same command again"
        }
        422 if text.contains("immutable") => {
            "a field that cannot be changed differs; delete the object (its data, if any, stays on its volume) and run again"
        }
        429 | 503 | 504 => {
            "the API server is overloaded or starting; run the same command again in a moment"
        }
        500 if text.contains("failed calling webhook") => {
            "the operator behind this webhook does not answer; look at its pod, then run again"
        }
        500 => {
            "look at the API server's and etcd's logs on the control-plane node, then run the same command again"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Looks for a network fault in the chain. hyper's own faults are known by their words, since only hyper can construct or name them.
fn is_broken_connection(error: &(dyn StdError + 'static)) -> bool {
    const HYPER: [&str; 5] = [
        "connection closed before message completed",
        "channel closed",
        "operation was canceled",
        "error trying to connect: timed out",
        "deadline has elapsed",
    ];
    let mut next = Some(error);
    while let Some(error) = next {
        if error
            .downcast_ref::<std::io::Error>()
            .is_some_and(is_broken_io)
        {
            return true;
        }
        let text = error.to_string();
        if HYPER.iter().any(|words| text.contains(words)) {
            return true;
        }
        next = error.source();
    }
    false
}

/// A connector may wrap the socket's error in another one of kind `Other`, whose `source` passes the wrapped one over.
fn is_broken_io(error: &std::io::Error) -> bool {
    let wrapped = || error.get_ref()?.downcast_ref::<std::io::Error>();
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe
            | ErrorKind::NotConnected
            | ErrorKind::UnexpectedEof
            | ErrorKind::TimedOut
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
    ) || wrapped().is_some_and(is_broken_io)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let kube::Error::Api(status) = &self.0 {
            let message = status.message.trim();
            return match (message.is_empty(), status.code) {
                (true, code) => write!(f, "the API server answered {code} {}", status.reason),
                (false, 0) => f.write_str(message),
                (false, code) => write!(f, "{message} ({code})"),
            };
        }
        // Each level of kube, tower and hyper repeats the one below; keep those that add something.
        let mut said = Vec::<String>::new();
        let mut next: Option<&dyn StdError> = match &self.0 {
            // Their own words only name the layer.
            kube::Error::Service(error) => Some(error.as_ref()),
            kube::Error::HyperError(error) => Some(error),
            other => Some(other),
        };
        while let Some(error) = next {
            let text = error.to_string();
            if let Some(last) = said.last_mut()
                && last.contains(&text)
            {
                let shorter = last.replace(&text, "");
                let shorter = shorter.trim_end_matches([':', ' ', '(', ')']).to_owned();
                *last = shorter;
            }
            said.push(text);
            next = error.source();
        }
        said.retain(|text| !text.is_empty());
        said.dedup();
        f.write_str(&said.join(": "))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl StdError for Answer {}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(code: u16, reason: &str, message: &str) -> Answer {
        Answer::from(kube::Error::Api(
            Status::failure(message, reason).with_code(code).boxed(),
        ))
    }

    #[test]
    fn the_text_is_the_servers_message_once() {
        assert_eq!(
            api(404, "NotFound", "secrets \"a\" not found").to_string(),
            "secrets \"a\" not found (404)"
        );
        assert_eq!(
            api(500, "InternalError", "").to_string(),
            "the API server answered 500 InternalError"
        );
    }

    #[test]
    fn refusals_of_the_moment_are_transient_and_denials_are_not() {
        for (code, reason, message) in [
            (429, "TooManyRequests", "too many"),
            (
                500,
                "InternalError",
                "failed calling webhook \"mcluster.cnpg.io\": connect: connection refused",
            ),
            (500, "InternalError", "etcdserver: leader changed"),
            (503, "ServiceUnavailable", "apiserver is shutting down"),
            (409, "Conflict", "the object has been modified"),
        ] {
            assert!(api(code, reason, message).is_transient(), "{message}");
        }
        for (code, reason, message) in [
            (409, "AlreadyExists", "exists"),
            (403, "Forbidden", "admission webhook denied the request"),
            (422, "Invalid", "spec.x: Invalid value"),
            (404, "NotFound", "not found"),
            (401, "Unauthorized", "Unauthorized"),
        ] {
            assert!(!api(code, reason, message).is_transient(), "{message}");
        }
    }

    #[test]
    fn a_path_that_is_not_served_is_absence() {
        assert!(api(404, "Failed to parse error data", "404 page not found").is_not_found());
        assert!(!api(403, "Forbidden", "no").is_not_found());
    }

    #[test]
    fn a_refused_connection_is_transient_and_a_foreign_certificate_is_not() {
        let refused = std::io::Error::new(ErrorKind::ConnectionRefused, "connection refused");
        assert!(Answer::from(kube::Error::Service(Box::new(refused))).is_transient());
        let certificate = std::io::Error::new(
            ErrorKind::InvalidData,
            "invalid peer certificate: UnknownIssuer",
        );
        let answer = Answer::from(kube::Error::Service(Box::new(certificate)));
        assert!(!answer.is_transient());
        assert!(
            answer
                .hint()
                .is_some_and(|hint| hint.contains("another or an older cluster"))
        );
    }

    /// Behind a forwarded port, such as kind's, a restarting API server shows itself only after the connection is made.
    #[test]
    fn a_connection_reset_in_the_tls_handshake_was_taken_for_good() {
        for kind in [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof] {
            let broken = std::io::Error::new(kind, "tls handshake eof");
            let wrapped = std::io::Error::other(broken);
            assert!(Answer::from(kube::Error::Service(Box::new(wrapped))).is_transient());
        }
    }

    #[test]
    fn secrets_are_taken_out_of_the_servers_text() {
        let answer =
            api(422, "Invalid", "data: Invalid value: \"c2VjcmV0\"").without(["c2VjcmV0", ""]);
        assert_eq!(
            answer.to_string(),
            "data: Invalid value: \"[redacted]\" (422)"
        );
        assert!(!format!("{answer:?}").contains("c2VjcmV0"));
    }
}
