use std::path::Path;

use super::*;

fn look(text: &str, provided: &[ObjectRef]) -> Vec<String> {
    let objects = crate::yaml::documents(text, Path::new("rendered.yaml")).unwrap();
    let provided = provided.iter().cloned().collect();
    find(&objects, "gitlab", &provided)
        .into_iter()
        .map(|found| {
            format!(
                "{} {}/{} by {} at {}",
                found.target.kind, found.target.namespace, found.target.name, found.by, found.at
            )
        })
        .collect()
}

const DEPLOYMENT: &str = "
kind: Deployment
metadata: {name: web, namespace: apps}
spec:
  template:
    spec:
      serviceAccountName: web
      imagePullSecrets: [{name: pull}]
      volumes:
      - {name: a, secret: {secretName: rails}}
      - {name: b, configMap: {name: settings}}
      - {name: c, secret: {secretName: maybe, optional: true}}
      - name: d
        projected:
          sources: [{secret: {name: token}}, {configMap: {name: kube-root-ca.crt}}, {configMap: {name: extra, optional: true}}, {secret: {name: more}}]
      - {name: e, persistentVolumeClaim: {claimName: data}}
      - {name: f, emptyDir: {}}
      initContainers:
      - env: [{name: X, valueFrom: {secretKeyRef: {name: init, key: k}}}]
      containers:
      - env:
        - {name: A, value: plain}
        - {name: B, valueFrom: {configMapKeyRef: {name: env, key: k}}}
        - {name: C, valueFrom: {secretKeyRef: {name: absent, key: k, optional: true}}}
        - {name: D, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        envFrom: [{secretRef: {name: all}}, {configMapRef: {name: rest, optional: true}}]
";

#[test]
fn every_reference_of_a_pod_is_found_with_its_place() {
    let base = "by Deployment apps/web at /spec/template/spec";
    assert_eq!(
        look(DEPLOYMENT, &[]),
        [
            format!("ConfigMap apps/env {base}/containers/0/env/1/valueFrom/configMapKeyRef/name"),
            format!("ConfigMap apps/settings {base}/volumes/1/configMap/name"),
            format!(
                "PersistentVolumeClaim apps/data {base}/volumes/4/persistentVolumeClaim/claimName"
            ),
            format!("Secret apps/all {base}/containers/0/envFrom/0/secretRef/name"),
            format!("Secret apps/init {base}/initContainers/0/env/0/valueFrom/secretKeyRef/name"),
            format!("Secret apps/more {base}/volumes/3/projected/sources/3/secret/name"),
            format!("Secret apps/pull {base}/imagePullSecrets/0/name"),
            format!("Secret apps/rails {base}/volumes/0/secret/secretName"),
            format!("Secret apps/token {base}/volumes/3/projected/sources/0/secret/name"),
            format!("ServiceAccount apps/web {base}/serviceAccountName"),
        ]
    );
}

#[test]
fn what_is_rendered_or_provided_fulfils_and_another_namespace_does_not() {
    let text = format!(
        "{DEPLOYMENT}
---
kind: Secret
metadata: {{name: rails, namespace: apps}}
---
kind: ConfigMap
metadata: {{name: settings}}
"
    );
    let found = look(&text, &[ObjectRef::new("Secret", "apps", "all")]);
    assert!(
        !found.iter().any(
            |line| line.starts_with("Secret apps/rails") || line.starts_with("Secret apps/all")
        ),
        "{found:#?}"
    );
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("ConfigMap apps/settings")),
        "the one in gitlab is another: {found:#?}"
    );
}

#[test]
fn jobs_cron_jobs_and_service_accounts_are_read() {
    let text = "
kind: Job
metadata: {name: hook, annotations: {helm.sh/hook: pre-install}}
spec: {template: {spec: {serviceAccountName: default, volumes: [{secret: {secretName: a}}]}}}
---
kind: CronJob
metadata: {name: nightly}
spec: {jobTemplate: {spec: {template: {spec: {volumes: [{configMap: {name: b}}]}}}}}
---
kind: ServiceAccount
metadata: {name: sa}
imagePullSecrets: [{name: c}]
";
    assert_eq!(
        look(text, &[]),
        [
            "ConfigMap gitlab/b by CronJob gitlab/nightly at /spec/jobTemplate/spec/template/spec/volumes/0/configMap/name",
            "Secret gitlab/a by Job gitlab/hook at /spec/template/spec/volumes/0/secret/secretName",
            "Secret gitlab/c by ServiceAccount gitlab/sa at /imagePullSecrets/0/name",
        ]
    );
}

#[test]
fn storage_classes_are_named_by_claims_and_claim_templates() {
    let text = "
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {storageClassName: fast}
---
kind: PersistentVolumeClaim
metadata: {name: by-hand}
spec: {storageClassName: ''}
---
kind: StatefulSet
metadata: {name: gitaly}
spec: {template: {spec: {}}, volumeClaimTemplates: [{spec: {storageClassName: standard}}, {spec: {}}]}
";
    assert_eq!(
        look(text, &[ObjectRef::new("StorageClass", "", "local-path")]),
        [
            "StorageClass /fast by PersistentVolumeClaim gitlab/data at /spec/storageClassName",
            "StorageClass /standard by StatefulSet gitlab/gitaly at /spec/volumeClaimTemplates/0/spec/storageClassName",
        ]
    );
}

const GATEWAY: &str = "
kind: Gateway
metadata: {name: gitlab-gw}
spec:
  gatewayClassName: gitlab-gw
  listeners:
  - {name: gitlab-web, tls: {certificateRefs: [{name: gitlab-tls}]}}
  - {name: shared, tls: {certificateRefs: [{kind: Secret, group: '', name: wildcard, namespace: tls}]}}
  - {name: gitlab-ssh}
---
kind: HTTPRoute
metadata: {name: web}
spec:
  parentRefs: [{name: gitlab-gw, sectionName: gitlab-web}, {name: other}, {kind: Service, name: mesh}]
  rules:
  - backendRefs: [{name: webservice, port: 8181}, {kind: Backend, group: gateway.envoyproxy.io, name: x}]
---
kind: TCPRoute
metadata: {name: shell, namespace: apps}
spec:
  parentRefs: [{name: gitlab-gw, namespace: gitlab, sectionName: gitlab-sssh}]
  rules: [{backendRefs: [{name: shell, namespace: gitlab}]}]
";

#[test]
fn route_to_a_gateway_that_does_not_exist_is_found() {
    assert_eq!(
        look(
            GATEWAY,
            &[
                ObjectRef::new("Service", "gitlab", "shell"),
                ObjectRef::new("Secret", "tls", "wildcard")
            ]
        ),
        [
            "Gateway gitlab/other by HTTPRoute gitlab/web at /spec/parentRefs/1/name",
            "GatewayClass /gitlab-gw by Gateway gitlab/gitlab-gw at /spec/gatewayClassName",
            "Listener gitlab/gitlab-gw/gitlab-sssh by TCPRoute apps/shell at /spec/parentRefs/0/sectionName",
            "Secret gitlab/gitlab-tls by Gateway gitlab/gitlab-gw at /spec/listeners/0/tls/certificateRefs/0/name",
            "Service gitlab/webservice by HTTPRoute gitlab/web at /spec/rules/0/backendRefs/0/name",
        ]
    );
}

#[test]
fn an_ingress_names_its_secret_class_and_services() {
    let text = "
kind: Ingress
metadata: {name: web}
spec:
  ingressClassName: nginx
  tls: [{hosts: [x], secretName: tls}, {hosts: [y]}]
  defaultBackend: {service: {name: fallback}}
  rules: [{http: {paths: [{backend: {service: {name: web}}}]}}]
";
    assert_eq!(
        look(text, &[]),
        [
            "IngressClass /nginx by Ingress gitlab/web at /spec/ingressClassName",
            "Secret gitlab/tls by Ingress gitlab/web at /spec/tls/0/secretName",
            "Service gitlab/fallback by Ingress gitlab/web at /spec/defaultBackend/service/name",
            "Service gitlab/web by Ingress gitlab/web at /spec/rules/0/http/paths/0/backend/service/name",
        ]
    );
}

#[test]
fn objects_of_odd_shape_are_passed_over() {
    assert!(look("[]\n---\nkind: Pod\n---\nkind: Pod\nmetadata: {name: x}\nspec: {volumes: {a: 1}, containers: [1, null]}\n", &[]).is_empty());
}
