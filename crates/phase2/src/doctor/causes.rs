//! Why something is probably as it is. Beside the failure map, which says what to do.

/// In which checks or tasks (substrings, lower case; empty for all), which words (all of them, lower case), and the cause.
type Row = (
    &'static [&'static str],
    &'static [&'static str],
    &'static str,
);

/// The first row that fits wins: the precise ones stand before the general ones.
const CAUSES: &[Row] = &[
    (
        &["openbao"],
        &["sealed"],
        "OpenBao seals itself whenever its pod starts anew: the keys are never where the server is",
    ),
    (
        &["openbao"],
        &["28p01"],
        "the database password was changed while OpenBao ran; it reads the Secret only when it starts",
    ),
    (
        &["openbao", "postgresql", "cnpg", "gitlab"],
        &["password authentication failed"],
        "the Secret and the database hold different passwords",
    ),
    (
        &["registry-pin"],
        &["/etc/hosts"],
        "the engine writes a node's /etc/hosts anew whenever the node container starts",
    ),
    (
        &["node-trust"],
        &["missing or different"],
        "the node is newer than the last `up`, or the CA was minted anew since",
    ),
    (
        &["local-path"],
        &["is default as well"],
        "a second class got the default mark (kind gives it to its own `standard`)",
    ),
    (
        &["local-path"],
        &["is not default"],
        "something took the default mark off our class",
    ),
    (
        &["private"],
        &["mode"],
        "the files were copied or unpacked with wider modes (cp without -p, an archive, a umask of 022)",
    ),
    (
        &["node containers"],
        &["stopped"],
        "the engine or the machine was restarted, or somebody stopped the container",
    ),
    (
        &["nodes are ready"],
        &[],
        "a node that was just started needs up to a minute; otherwise its kubelet does not run",
    ),
    (
        &["api server"],
        &["connection refused"],
        "nothing listens there: the control-plane container is stopped, or its API server is just starting",
    ),
    (
        &["api server"],
        &["certificate"],
        "the kubeconfig belongs to a former cluster of the same name",
    ),
    (
        &["api server"],
        &["401"],
        "the kubeconfig belongs to a former cluster of the same name",
    ),
    (
        &["container engine"],
        &[],
        "no engine runs, or its socket is elsewhere or not this user's",
    ),
    (
        &["clock"],
        &[],
        "one of the clocks is wrong (a laptop that slept, a VM without time service)",
    ),
    (
        &["cache"],
        &[],
        "the file was cut off or edited after it was fetched, or VERSIONS.json was changed since",
    ),
    (&["disk"], &["free"], "images and data fill the disk"),
    (
        &[],
        &["imagepullbackoff"],
        "the node does not have the image and its registry does not give it out",
    ),
    (
        &[],
        &["errimagepull"],
        "the node does not have the image and its registry does not give it out",
    ),
    (
        &[],
        &["oomkilled"],
        "the container needed more memory than its limit allows",
    ),
    (
        &[],
        &["unschedulable"],
        "no node has room for what the pod asks for",
    ),
    (
        &[],
        &["insufficient"],
        "no node has room for what the pod asks for",
    ),
    (
        &[],
        &["crashloopbackoff"],
        "the program in the container ends soon after its start; its log says why",
    ),
    (&[], &["pending-"], "a helm was cut off half-way"),
    (
        &[],
        &["chart or values"],
        "VERSIONS.json, blueprint.yaml or a values file was changed since the last `up`",
    ),
];

/// The probable cause, by the check or task and the words of what was seen.
pub(super) fn cause(subject: &str, text: &str) -> Option<String> {
    let (subject, text) = (subject.to_lowercase(), text.to_lowercase());
    CAUSES
        .iter()
        .find(|(places, words, _)| {
            (places.is_empty() || places.iter().any(|place| subject.contains(place)))
                && words.iter().all(|word| text.contains(word))
        })
        .map(|(_, _, cause)| (*cause).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_installers_really_say_has_its_cause() {
        for (subject, text) in [
            ("openbao", crate::openbao::SEALED),
            ("registry-pin", "lab-worker's /etc/hosts lacks the registry"),
            (
                "node-trust",
                "lab-worker: /etc/containerd/certs.d/x/ca.pem is missing or different",
            ),
            ("local-path", "StorageClass standard is default as well"),
            ("redis", "chart or values of release redis"),
            (crate::preflight::PRIVATE, "a.txt has mode 0644"),
            (
                crate::preflight::API_SERVER,
                "failed to reach the API server: Connection refused (os error 111)",
            ),
        ] {
            assert!(cause(subject, text).is_some(), "{subject}: {text}");
        }
        assert_eq!(cause("redis", "something nobody has met"), None);
    }
}
