//! The data plane's fixed `NodePorts`, which kind maps to the host. Envoy Gateway sets them when it makes the Service, and looks at what somebody
//! changed afterwards only minutes later (Envoy Gateway 1.8, on the lab): a run puts them back.

use std::time::Duration;

use blueprint_pipeline::Outcome;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::readiness::DATA_PLANE;
use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::settings::Ports;

/// Ports of the Service with the `NodePorts` that they have to have.
fn wanted(ports: &Ports) -> [(u16, u16); 3] {
    [(443, ports.https), (80, ports.http), (22, ports.ssh)]
}

/// The Service's name carries a hash, so it is found by its Gateway.
async fn services(work: Work<'_>) -> Result<Vec<DynamicObject>, Error> {
    Ok(work
        .context
        .cluster
        .list("v1", "Service", Some(names::GITLAB), DATA_PLANE)
        .await?)
}

/// Puts back what differs, where there is a Service already.
pub(super) async fn put_back(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    for service in services(work).await? {
        let Some(patch) = reverted(&service, &work.context.settings.ports) else {
            continue;
        };
        let name = service.metadata.name.as_deref().unwrap_or_default();
        if work
            .context
            .cluster
            .merge_patch("v1", "Service", Some(names::GITLAB), name, &patch)
            .await?
        {
            outcome.changed(format!("put the NodePorts of Service {name} back"));
        }
    }
    Ok(())
}

/// The patch that puts them back; `None` where nothing differs. A merge patch replaces the list as a whole.
fn reverted(service: &DynamicObject, wanted_ports: &Ports) -> Option<Value> {
    let mut ports = service.data.pointer("/spec/ports")?.as_array()?.clone();
    let mut differs = false;
    for port in &mut ports {
        let node_port = wanted(wanted_ports)
            .into_iter()
            .find_map(|(number, node_port)| (port["port"] == number).then_some(node_port));
        if let Some(node_port) = node_port
            && port["nodePort"] != node_port
        {
            port["nodePort"] = json!(node_port);
            differs = true;
        }
    }
    differs.then(|| json!({"spec": {"ports": ports}}))
}

/// Waits for the Service with its ports.
pub(super) async fn wait(work: Work<'_>, deadline: Duration) -> Result<(), Error> {
    let say = |blocker| work.progress.waiting(blocker);
    let what = "the data plane's Service to have its fixed NodePorts";
    let attempt = || async move {
        Ok(look(work)
            .await
            .unwrap_or_else(|error| Err(error.to_string()))
            .map(|_| ()))
    };
    work.context
        .cluster
        .wait_until(what, deadline, Duration::from_secs(2), &say, attempt)
        .await?;
    Ok(())
}

/// The data plane's Service with its fixed HTTPS `NodePort`, or what it has instead.
pub(super) async fn look(work: Work<'_>) -> Result<Result<String, String>, Error> {
    Ok(judge(&services(work).await?, &work.context.settings.ports))
}

fn judge(services: &[DynamicObject], ports: &Ports) -> Result<String, String> {
    let Some(service) = services.first() else {
        return Err("Envoy Gateway has not made the data plane's Service yet".to_owned());
    };
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let found = service
        .data
        .pointer("/spec/ports")
        .and_then(Value::as_array);
    for (number, node_port) in wanted(ports) {
        let port = found
            .into_iter()
            .flatten()
            .find(|port| port["port"] == number);
        match port.map(|port| port["nodePort"].as_u64()) {
            Some(Some(other)) if other != u64::from(node_port) => {
                return Err(format!(
                    "Service {name} has {number}:{other} instead of {number}:{node_port}"
                ));
            }
            // A Gateway without a listener for SSH has no such port.
            Some(Some(_)) => {}
            None if number == 22 => {}
            Some(None) | None => {
                return Err(format!("Service {name} has no NodePort for {number}"));
            }
        }
    }
    Ok(format!("Service {name} 443:{}", ports.https))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(node_port: &Value) -> DynamicObject {
        serde_json::from_value(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "envoy-gitlab-gitlab-gw-1a2b"},
            "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}, {"port": 443, "nodePort": node_port, "name": "https"}]}}),
        )
        .unwrap()
    }

    #[test]
    fn reverted_node_ports_are_named() {
        let ports = &Ports::default();
        assert_eq!(
            judge(&[service(&json!(30443))], ports),
            Ok("Service envoy-gitlab-gitlab-gw-1a2b 443:30443".to_owned())
        );
        let other = judge(&[service(&json!(31999))], ports).unwrap_err();
        assert!(other.contains("443:31999 instead of 443:30443"), "{other}");
        assert!(judge(&[service(&Value::Null)], ports).is_err());
        assert!(judge(&[], ports).is_err());
    }

    #[test]
    fn reverted_node_ports_were_waited_for_until_the_deadline() {
        let ports = &Ports::default();
        assert_eq!(reverted(&service(&json!(30443)), ports), None);
        assert_eq!(
            reverted(&service(&json!(31999)), ports).unwrap(),
            json!({"spec": {"ports": [{"port": 80, "nodePort": 30080}, {"port": 443, "nodePort": 30443, "name": "https"}]}})
        );
    }
}
