//! Asks whether the domain's names resolve: from a pod after a change, over a port-forward otherwise.

use std::time::Duration;

use blueprint_cluster::{Verdict, WaitFor};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{KUBE_SYSTEM, gateway_address};
use crate::context::Context;
use crate::error::Error;
use crate::installer::Work;
use crate::names;

pub(super) const POD: &str = "blueprint-dns-probe";
const DEADLINE: Duration = Duration::from_mins(2);

/// Asks up to thirty times, a second apart: pods that were just replaced may still answer. `$0` is the name, `$1` the address.
const SCRIPT: &str = r#"n=0
while [ "$n" -lt 30 ]; do
  out=$(nslookup "$0" 2>&1)
  if echo "$out" | sed '1,/^Name:/d' | grep -qwF "$1"; then echo "$out"; exit 0; fi
  n=$((n + 1)); sleep 1
done
echo "$out"
exit 1"#;

/// Runs a short-lived pod that resolves `name` and compares the answer with `address`. The pod is deleted whatever comes of it.
pub(super) async fn resolve_from_pod(
    work: Work<'_>,
    name: &str,
    address: &str,
) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    let pin = work.context.versions.image("busybox")?;
    // The remains of a run that was cut off.
    remove(work).await?;
    cluster
        .apply(&pod(
            &format!("{}:{}", pin.repository, pin.tag),
            name,
            address,
        ))
        .await?;
    let result = answer(work, name, address).await;
    remove(work).await?;
    result
}

async fn answer(work: Work<'_>, name: &str, address: &str) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    let target = WaitFor {
        what: "the DNS probe to end",
        api_version: "v1",
        kind: "Pod",
        namespace: Some(names::GITLAB),
        name: POD,
        pods: Some("app=blueprint-dns-probe"),
        deadline: DEADLINE,
    };
    let judge = |pod: Option<&kube::api::DynamicObject>| match pod
        .and_then(|pod| pod.data.pointer("/status/phase"))
        .and_then(Value::as_str)
    {
        Some("Succeeded" | "Failed") => Verdict::Ready,
        Some(phase) => Verdict::Waiting(format!("the probe is {phase}")),
        None => Verdict::Waiting("the probe is not there yet".to_owned()),
    };
    let pod = cluster
        .wait(&target, &judge, &|blocker| work.progress.waiting(blocker))
        .await?;
    if pod.data.pointer("/status/phase").and_then(Value::as_str) == Some("Succeeded") {
        return Ok(());
    }
    let said = cluster
        .log_tail(names::GITLAB, POD, None, 10)
        .await
        .unwrap_or_default();
    Err(Error::Failed {
        action: format!("resolve {name} from a pod"),
        found: format!("expected {address}, the last answer was: {}", said.iter().map(|line| line.trim()).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" | ")),
        hint: "look at `kubectl -n kube-system logs -l k8s-app=kube-dns` and at the stanza in ConfigMap kube-system/coredns".to_owned(),
    })
}

async fn remove(work: Work<'_>) -> Result<(), Error> {
    work.context
        .cluster
        .delete(
            "v1",
            "Pod",
            Some(names::GITLAB),
            POD,
            Duration::from_mins(1),
        )
        .await?;
    Ok(())
}

fn pod(image: &str, name: &str, address: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": POD, "namespace": names::GITLAB, "labels": {"app": POD}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65534, "runAsGroup": 65534, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "probe",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", SCRIPT, format!("{name}."), address],
                "resources": {"requests": {"cpu": "5m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
                "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

/// Asks a CoreDNS pod directly (DNS over TCP, RFC 7766); makes nothing in the cluster.
pub(super) async fn resolve_now(context: &Context) -> Result<String, String> {
    let name = context.settings.host("gitlab");
    let address = gateway_address(context)
        .await
        .map_err(|error| error.to_string())?;
    let pod = context
        .cluster
        .ready_pod(KUBE_SYSTEM, "k8s-app=kube-dns")
        .await
        .map_err(|error| error.to_string())?
        .ok_or_else(|| "no CoreDNS pod is ready".to_owned())?;
    let forward = context
        .cluster
        .port_forward(KUBE_SYSTEM, &pod, 53)
        .await
        .map_err(|error| error.to_string())?;
    let answers = ask(forward.address(), &name)
        .await
        .map_err(|error| format!("no answer from {pod}: {error}"))?;
    if answers.contains(&address) {
        Ok(format!("{name} is {address}"))
    } else if answers.is_empty() {
        Err(format!("{name} has no address; expected {address}"))
    } else {
        Err(format!(
            "{name} is {}; expected {address}",
            answers.join(", ")
        ))
    }
}

async fn ask(server: std::net::SocketAddr, name: &str) -> std::io::Result<Vec<String>> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(&query(name)).await?;
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    addresses(&message)
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::InvalidData, "not a DNS answer"))
}

/// An A query with its length in front (RFC 1035, 4.1 and 4.2.2).
fn query(name: &str) -> Vec<u8> {
    let mut message = vec![0x62, 0x70, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.trim_end_matches('.').split('.') {
        message.push(u8::try_from(label.len()).unwrap_or(0));
        message.extend_from_slice(label.as_bytes());
    }
    message.extend_from_slice(&[0, 0, 1, 0, 1]);
    let mut framed = u16::try_from(message.len())
        .unwrap_or(0)
        .to_be_bytes()
        .to_vec();
    framed.append(&mut message);
    framed
}

/// The A records of an answer.
fn addresses(message: &[u8]) -> Option<Vec<String>> {
    let short = |at: usize| {
        Some(u16::from_be_bytes([
            *message.get(at)?,
            *message.get(at + 1)?,
        ]))
    };
    let (questions, answers) = (short(4)?, short(6)?);
    let mut at = 12;
    for _ in 0..questions {
        at = after_name(message, at)? + 4;
    }
    let mut found = Vec::new();
    for _ in 0..answers {
        at = after_name(message, at)?;
        let (kind, length) = (short(at)?, usize::from(short(at + 8)?));
        at += 10;
        if let (1, Some(&[a, b, c, d])) = (kind, message.get(at..at + length)) {
            found.push(format!("{a}.{b}.{c}.{d}"));
        }
        at += length;
    }
    Some(found)
}

fn after_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            // A pointer (two bytes) ends a name.
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length => at += usize::from(length) + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_framed_as_the_rfc_says() {
        let query = query("gitlab.local.");
        assert_eq!(&query[..2], &[0, 30]);
        assert_eq!(&query[14..], b"\x06gitlab\x05local\x00\x00\x01\x00\x01");
    }

    #[test]
    fn a_records_are_read_behind_names_and_pointers() {
        let mut message = query("a.b")[2..].to_vec();
        message[7] = 2;
        // A CNAME, then the address.
        message.extend_from_slice(b"\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x1e\x00\x04\x01c\xc0\x0e");
        message.extend_from_slice(
            b"\x01c\xc0\x0e\x00\x01\x00\x01\x00\x00\x00\x1e\x00\x04\x0a\x60\x01\x02",
        );
        assert_eq!(addresses(&message), Some(vec!["10.96.1.2".to_owned()]));
    }

    #[test]
    fn a_truncated_answer_is_no_answer() {
        let mut message = query("a.b")[2..].to_vec();
        message[7] = 1;
        assert_eq!(addresses(&message), None);
        assert_eq!(addresses(&[]), None);
    }

    #[test]
    fn the_probe_pod_fits_the_restricted_security_standard() {
        let pod = pod("busybox:1", "gitlab.local", "10.96.1.2");
        assert_eq!(
            pod.pointer("/spec/securityContext/runAsNonRoot"),
            Some(&json!(true))
        );
        assert_eq!(
            pod.pointer("/spec/automountServiceAccountToken"),
            Some(&json!(false))
        );
        assert_eq!(
            pod.pointer("/spec/containers/0/securityContext/capabilities/drop"),
            Some(&json!(["ALL"]))
        );
    }
}
