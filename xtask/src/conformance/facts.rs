//! What others rely on in a rendered object, as sets of words that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Objects;

/// Of one object.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    /// What it selects, and which workloads that meets.
    selectors: BTreeSet<String>,
    /// Of Services, containers and listeners.
    ports: BTreeSet<String>,
    /// Secrets it refers to, with their keys.
    secrets: BTreeSet<String>,
    /// Of routes: parents, host names, targets.
    routes: BTreeSet<String>,
    /// Whom containers run as and whose group volumes get: the owners of the folders under them follow from it.
    users: BTreeSet<String>,
}

impl Facts {
    /// Each group beside the other object's.
    pub(super) fn beside<'a>(
        &'a self,
        other: &'a Self,
    ) -> [(&'static str, &'a BTreeSet<String>, &'a BTreeSet<String>); 5] {
        [
            ("selectors", &self.selectors, &other.selectors),
            ("ports", &self.ports, &other.ports),
            ("secrets", &self.secrets, &other.secrets),
            ("routes", &self.routes, &other.routes),
            ("users", &self.users, &other.users),
        ]
    }
}

/// The objects by kind and name; a namespace counts where it is given twice for one name.
pub(super) fn of(objects: &[Value]) -> Objects {
    let pods: Vec<(String, BTreeMap<String, String>)> = objects
        .iter()
        .filter(|object| object["spec"]["template"]["spec"].is_object())
        .map(|object| {
            let labels = strings(&object["spec"]["template"]["metadata"]["labels"]);
            (
                format!(
                    "{} {}",
                    object["kind"].as_str().unwrap_or("?"),
                    name(object)
                ),
                labels,
            )
        })
        .collect();
    objects
        .iter()
        .map(|object| {
            let kind = object["kind"].as_str().unwrap_or("?").to_owned();
            let mut facts = Facts {
                selectors: selectors(object, &pods),
                ports: ports(object),
                routes: routes(object),
                users: users(object),
                ..Facts::default()
            };
            secrets(object, &mut facts.secrets);
            ((kind, name(object)), facts)
        })
        .collect()
}

/// A Job cannot be changed, so charts end its name in a hash of what it is made from: that hash, seven hex digits, is left out.
fn name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or("?");
    let is_hash = |end: &str| end.len() == 7 && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    match name.rsplit_once('-') {
        Some((stem, end)) if object["kind"] == "Job" && is_hash(end) => format!("{stem}-HASH"),
        _ => name.to_owned(),
    }
}

fn strings(map: &Value) -> BTreeMap<String, String> {
    map.as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Plain `selector` maps, `matchLabels`, and, for Services, whom they meet: a label that differs in both pods and selector
/// is the same to everybody else, one that misses the pods is not.
fn selectors(object: &Value, pods: &[(String, BTreeMap<String, String>)]) -> BTreeSet<String> {
    let spec = &object["spec"];
    let mut found = BTreeSet::new();
    for place in ["selector", "podSelector"] {
        let selector = &spec[place];
        let labels = strings(if selector["matchLabels"].is_object() {
            &selector["matchLabels"]
        } else {
            selector
        });
        if labels.is_empty() {
            continue;
        }
        found.extend(labels.iter().map(|(key, value)| format!("{key}={value}")));
        found.extend(
            pods.iter()
                .filter(|(_, of_pod)| {
                    labels
                        .iter()
                        .all(|(key, value)| of_pod.get(key) == Some(value))
                })
                .map(|(workload, _)| format!("meets {workload}")),
        );
    }
    found
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn ports(object: &Value) -> BTreeSet<String> {
    let spec = &object["spec"];
    let mut found = BTreeSet::new();
    let protocol = |port: &Value| port["protocol"].as_str().unwrap_or("TCP").to_owned();
    if object["kind"] == "Service" {
        for port in items(&spec["ports"]) {
            let target = match &port["targetPort"] {
                Value::Null => text(&port["port"]),
                target => text(target),
            };
            found.insert(format!(
                "{} {}→{target} {}{}",
                text(&port["name"]),
                text(&port["port"]),
                text(&port["nodePort"]),
                protocol(port)
            ));
        }
    }
    let pod = &spec["template"]["spec"];
    for container in items(&pod["containers"]) {
        for port in items(&container["ports"]) {
            found.insert(format!(
                "container {} {} {}",
                text(&port["name"]),
                text(&port["containerPort"]),
                protocol(port)
            ));
        }
    }
    for listener in items(&spec["listeners"]) {
        found.insert(format!(
            "listener {} {} {} {}",
            text(&listener["name"]),
            text(&listener["hostname"]),
            text(&listener["port"]),
            text(&listener["protocol"])
        ));
    }
    found
}

/// Every place where Kubernetes and the Gateway API name a Secret.
fn secrets(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match key.as_str() {
                    "secretKeyRef" => {
                        found.insert(format!("{}/{}", text(&value["name"]), text(&value["key"])));
                    }
                    "secretRef" => {
                        found.insert(text(&value["name"]));
                    }
                    // A volume's own, or a source of a projected one.
                    "secret" if value.is_object() => mounted(value, found),
                    "certificateRefs" | "imagePullSecrets" => {
                        found.extend(items(value).map(|reference| text(&reference["name"])));
                    }
                    _ => {}
                }
                secrets(value, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| secrets(value, found)),
        _ => {}
    }
}

fn mounted(secret: &Value, found: &mut BTreeSet<String>) {
    let name = match &secret["secretName"] {
        Value::Null => text(&secret["name"]),
        name => text(name),
    };
    let keys: Vec<String> = items(&secret["items"])
        .map(|item| text(&item["key"]))
        .collect();
    if keys.is_empty() {
        found.insert(name);
    } else {
        found.extend(keys.into_iter().map(|key| format!("{name}/{key}")));
    }
}

/// A container's own user wins over its pod's.
fn users(object: &Value) -> BTreeSet<String> {
    let pod = &object["spec"]["template"]["spec"];
    let of_pod = &pod["securityContext"];
    let group = match &of_pod["fsGroup"] {
        Value::Null => None,
        group => Some(format!("volumes of group {}", text(group))),
    };
    items(&pod["containers"])
        .map(
            |container| match &container["securityContext"]["runAsUser"] {
                Value::Null => &of_pod["runAsUser"],
                own => own,
            },
        )
        .map(|user| format!("runs as {}", text(user)))
        .chain(group)
        .collect()
}

fn routes(object: &Value) -> BTreeSet<String> {
    let spec = &object["spec"];
    if !object["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("Route"))
    {
        return BTreeSet::new();
    }
    let parents = items(&spec["parentRefs"]).map(|parent| {
        format!(
            "parent {} {}",
            text(&parent["name"]),
            text(&parent["sectionName"])
        )
    });
    let hosts = items(&spec["hostnames"]).map(|host| format!("host {}", text(host)));
    let targets = items(&spec["rules"]).flat_map(|rule| {
        let paths: Vec<String> = items(&rule["matches"])
            .map(|matched| text(&matched["path"]["value"]))
            .collect();
        items(&rule["backendRefs"]).map(move |target| {
            format!(
                "{} to {}:{}",
                paths.join("|"),
                text(&target["name"]),
                text(&target["port"])
            )
        })
    });
    parents.chain(hosts).chain(targets).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(objects: &[Value], kind: &str) -> Facts {
        let all = of(objects);
        let found = all.into_iter().find(|((of, _), _)| of == kind);
        found.unwrap().1
    }

    fn words(set: &BTreeSet<String>) -> Vec<&str> {
        set.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_service_that_misses_its_pods_differs() {
        let service = json!({"kind": "Service", "metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}}});
        let workload = |label: &str| {
            json!({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {
                "template": {"metadata": {"labels": {"app": label}}, "spec": {"containers": []}}}})
        };
        let meets = facts(&[service.clone(), workload("a")], "Service");
        assert_eq!(words(&meets.selectors), ["app=a", "meets Deployment a"]);
        assert_ne!(meets, facts(&[service, workload("b")], "Service"));
    }

    #[test]
    fn a_job_is_known_without_the_hash_in_its_name() {
        let named = |kind: &str, name: &str| {
            super::name(&json!({"kind": kind, "metadata": {"name": name}}))
        };
        assert_eq!(named("Job", "a-migrations-0396dbf"), "a-migrations-HASH");
        assert_eq!(named("Job", "a-upgrade-check"), "a-upgrade-check");
        assert_eq!(named("Service", "a-0396dbf"), "a-0396dbf");
    }

    #[test]
    fn every_way_to_name_a_secret_is_seen() {
        let object = json!({"kind": "StatefulSet", "metadata": {"name": "a"}, "spec": {"template": {"spec": {
        "imagePullSecrets": [{"name": "pull"}],
        "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "env", "key": "k"}}}], "envFrom": [{"secretRef": {"name": "from"}}]}],
        "volumes": [
            {"secret": {"secretName": "volume"}},
            {"projected": {"sources": [{"secret": {"name": "projected", "items": [{"key": "x", "path": "y"}]}}]}}
        ]}}}});
        assert_eq!(
            words(&facts(&[object], "StatefulSet").secrets),
            ["env/k", "from", "projected/x", "pull", "volume"]
        );
        let gateway = json!({"kind": "Gateway", "metadata": {"name": "g"}, "spec": {"listeners": [
            {"name": "web", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "tls"}]}}]}});
        let seen = facts(&[gateway], "Gateway");
        assert_eq!(words(&seen.secrets), ["tls"]);
        assert_eq!(words(&seen.ports), ["listener web  443 HTTPS"]);
    }

    #[test]
    fn a_route_is_its_parent_hosts_and_targets() {
        let route = json!({"kind": "HTTPRoute", "metadata": {"name": "r"}, "spec": {
            "parentRefs": [{"name": "g", "sectionName": "web"}], "hostnames": ["a.example"],
            "rules": [{"matches": [{"path": {"value": "/"}}], "backendRefs": [{"name": "s", "port": 80}]}]}});
        assert_eq!(
            words(&facts(&[route], "HTTPRoute").routes),
            ["/ to s:80", "host a.example", "parent g web"]
        );
    }

    #[test]
    fn the_stand_in_for_prometheus_could_not_write_to_its_volume() {
        let pod = |container: Value| {
            json!({"kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": {"spec": {
                "securityContext": {"runAsUser": 65534, "fsGroup": 65534},
                "containers": [{"securityContext": container}]}}}})
        };
        let real = facts(&[pod(json!({"runAsUser": 1000}))], "Deployment");
        assert_eq!(
            words(&real.users),
            ["runs as 1000", "volumes of group 65534"]
        );
        assert_ne!(real, facts(&[pod(json!({}))], "Deployment"));
    }
}
