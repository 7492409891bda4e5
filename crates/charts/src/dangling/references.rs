//! What a rendered object refers to. Fields as in the API references of Kubernetes 1.35 and Gateway API 1.5.

use serde_json::Value;

use super::{Dangling, Home, ObjectRef};

/// The references of one object.
pub(super) fn of(object: &Value, default_namespace: &str) -> Vec<Dangling> {
    let Some(home) = Home::of(object, default_namespace) else {
        return Vec::new();
    };
    let mut found = Found {
        by: format!("{} {}/{}", home.kind, home.namespace, home.name),
        namespace: home.namespace,
        references: Vec::new(),
    };
    let spec = &object["spec"];
    match home.kind {
        "Pod" => found.pod(spec, "/spec"),
        "Deployment" | "DaemonSet" | "ReplicaSet" | "Job" | "ReplicationController" => {
            found.pod(&spec["template"]["spec"], "/spec/template/spec");
        }
        "StatefulSet" => {
            found.pod(&spec["template"]["spec"], "/spec/template/spec");
            found.claim_templates(spec);
        }
        "CronJob" => {
            found.pod(
                &spec["jobTemplate"]["spec"]["template"]["spec"],
                "/spec/jobTemplate/spec/template/spec",
            );
        }
        "ServiceAccount" => found.names(object, "", "imagePullSecrets", "Secret"),
        "PersistentVolumeClaim" => found.storage_class(spec, "/spec"),
        "Ingress" => found.ingress(spec),
        "Gateway" => found.gateway(spec),
        "HTTPRoute" | "GRPCRoute" | "TCPRoute" | "TLSRoute" | "UDPRoute" => found.route(spec),
        _ => {}
    }
    found.references
}

/// References found so far in one object.
struct Found<'a> {
    by: String,
    namespace: &'a str,
    references: Vec<Dangling>,
}

/// The items of a list with their JSON pointers.
fn items<'v>(parent: &'v Value, at: &str, key: &str) -> Vec<(&'v Value, String)> {
    let list = parent[key].as_array().into_iter().flatten();
    list.enumerate()
        .map(|(index, item)| (item, format!("{at}/{key}/{index}")))
        .collect()
}

impl Found<'_> {
    fn add(&mut self, kind: &str, namespace: &str, name: &str, at: String) {
        self.references.push(Dangling {
            target: ObjectRef::new(kind, namespace, name),
            by: self.by.clone(),
            at,
        });
    }

    /// `holder[field]` names an object of `kind` in the own namespace, unless `holder` is marked optional or the name is empty.
    fn name(&mut self, holder: &Value, at: &str, field: &str, kind: &str) {
        let optional = holder["optional"].as_bool().unwrap_or(false);
        if let Some(name) = holder[field]
            .as_str()
            .filter(|name| !name.is_empty() && !optional)
        {
            let namespace = self.namespace.to_owned();
            self.add(kind, &namespace, name, format!("{at}/{field}"));
        }
    }

    /// Each item of `parent[key]` names an object of `kind` by `name`.
    fn names(&mut self, parent: &Value, at: &str, key: &str, kind: &str) {
        for (item, at) in items(parent, at, key) {
            self.name(item, &at, "name", kind);
        }
    }

    fn pod(&mut self, spec: &Value, at: &str) {
        self.name(spec, at, "serviceAccountName", "ServiceAccount");
        self.names(spec, at, "imagePullSecrets", "Secret");
        if let Some(class) = spec["priorityClassName"]
            .as_str()
            .filter(|class| !class.is_empty())
        {
            self.add(
                "PriorityClass",
                "",
                class,
                format!("{at}/priorityClassName"),
            );
        }
        for (volume, at) in items(spec, at, "volumes") {
            self.volume(volume, &at);
        }
        for list in ["initContainers", "containers"] {
            for (container, at) in items(spec, at, list) {
                self.container(container, &at);
            }
        }
    }

    fn volume(&mut self, volume: &Value, at: &str) {
        self.name(
            &volume["secret"],
            &format!("{at}/secret"),
            "secretName",
            "Secret",
        );
        self.name(
            &volume["configMap"],
            &format!("{at}/configMap"),
            "name",
            "ConfigMap",
        );
        self.name(
            &volume["persistentVolumeClaim"],
            &format!("{at}/persistentVolumeClaim"),
            "claimName",
            "PersistentVolumeClaim",
        );
        for (source, at) in items(&volume["projected"], &format!("{at}/projected"), "sources") {
            self.name(&source["secret"], &format!("{at}/secret"), "name", "Secret");
            self.name(
                &source["configMap"],
                &format!("{at}/configMap"),
                "name",
                "ConfigMap",
            );
        }
    }

    fn container(&mut self, container: &Value, at: &str) {
        for (variable, at) in items(container, at, "env") {
            let from = &variable["valueFrom"];
            self.name(
                &from["secretKeyRef"],
                &format!("{at}/valueFrom/secretKeyRef"),
                "name",
                "Secret",
            );
            self.name(
                &from["configMapKeyRef"],
                &format!("{at}/valueFrom/configMapKeyRef"),
                "name",
                "ConfigMap",
            );
        }
        for (source, at) in items(container, at, "envFrom") {
            self.name(
                &source["secretRef"],
                &format!("{at}/secretRef"),
                "name",
                "Secret",
            );
            self.name(
                &source["configMapRef"],
                &format!("{at}/configMapRef"),
                "name",
                "ConfigMap",
            );
        }
    }

    fn claim_templates(&mut self, spec: &Value) {
        for (template, at) in items(spec, "/spec", "volumeClaimTemplates") {
            self.storage_class(&template["spec"], &format!("{at}/spec"));
        }
    }

    /// An empty class means "no class" and an absent one "the default": neither names anything.
    fn storage_class(&mut self, spec: &Value, at: &str) {
        if let Some(class) = spec["storageClassName"]
            .as_str()
            .filter(|class| !class.is_empty())
        {
            self.add("StorageClass", "", class, format!("{at}/storageClassName"));
        }
    }

    fn ingress(&mut self, spec: &Value) {
        for (tls, at) in items(spec, "/spec", "tls") {
            self.name(tls, &at, "secretName", "Secret");
        }
        self.name(
            &spec["defaultBackend"]["service"],
            "/spec/defaultBackend/service",
            "name",
            "Service",
        );
        for (rule, at) in items(spec, "/spec", "rules") {
            for (path, at) in items(&rule["http"], &format!("{at}/http"), "paths") {
                self.name(
                    &path["backend"]["service"],
                    &format!("{at}/backend/service"),
                    "name",
                    "Service",
                );
            }
        }
        if let Some(class) = spec["ingressClassName"]
            .as_str()
            .filter(|class| !class.is_empty())
        {
            self.add(
                "IngressClass",
                "",
                class,
                "/spec/ingressClassName".to_owned(),
            );
        }
    }

    fn gateway(&mut self, spec: &Value) {
        if let Some(class) = spec["gatewayClassName"]
            .as_str()
            .filter(|class| !class.is_empty())
        {
            self.add(
                "GatewayClass",
                "",
                class,
                "/spec/gatewayClassName".to_owned(),
            );
        }
        for (listener, at) in items(spec, "/spec", "listeners") {
            for (reference, at) in items(&listener["tls"], &format!("{at}/tls"), "certificateRefs")
            {
                self.reference(reference, &at, "Secret", &["Secret"]);
            }
        }
    }

    fn route(&mut self, spec: &Value) {
        for (parent, at) in items(spec, "/spec", "parentRefs") {
            self.parent(parent, &at);
        }
        for (rule, at) in items(spec, "/spec", "rules") {
            for (backend, at) in items(rule, &at, "backendRefs") {
                self.reference(backend, &at, "Service", &["Service"]);
            }
            for (filter, at) in items(rule, &at, "filters") {
                let mirror = &filter["requestMirror"]["backendRef"];
                self.reference(
                    mirror,
                    &format!("{at}/requestMirror/backendRef"),
                    "Service",
                    &["Service"],
                );
            }
        }
    }

    /// A route's parent: a listener where a section is named, else the Gateway itself.
    fn parent(&mut self, parent: &Value, at: &str) {
        if parent["kind"].as_str().unwrap_or("Gateway") != "Gateway" {
            return;
        }
        let Some(gateway) = parent["name"].as_str() else {
            return;
        };
        let namespace = parent["namespace"]
            .as_str()
            .unwrap_or(self.namespace)
            .to_owned();
        match parent["sectionName"].as_str() {
            Some(section) => self.add(
                "Listener",
                &namespace,
                &format!("{gateway}/{section}"),
                format!("{at}/sectionName"),
            ),
            None => self.add("Gateway", &namespace, gateway, format!("{at}/name")),
        }
    }

    /// A Gateway API object reference; kinds other than `known` are not ours to judge.
    fn reference(&mut self, reference: &Value, at: &str, default_kind: &str, known: &[&str]) {
        let kind = reference["kind"].as_str().unwrap_or(default_kind);
        let core = reference["group"].as_str().unwrap_or_default().is_empty();
        if let Some(name) = reference["name"]
            .as_str()
            .filter(|_| core && known.contains(&kind))
        {
            let namespace = reference["namespace"]
                .as_str()
                .unwrap_or(self.namespace)
                .to_owned();
            self.add(kind, &namespace, name, format!("{at}/name"));
        }
    }
}
