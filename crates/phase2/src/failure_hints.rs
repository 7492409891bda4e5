//! The failure map: symptom → where to look and what to do.
//!
//! The rows come from what people met with set-ups of this kind; each names the file or command of this program that mends it.

/// One row: in which tasks or smoke rows, which words, and what to do about it.
struct Symptom {
    /// Substrings of the task's id or the row's name, lower case; empty matches all.
    places: &'static [&'static str],
    /// All of these must occur in the text (lower case).
    words: &'static [&'static str],
    /// What to do.
    hint: &'static str,
}

const fn row(
    places: &'static [&'static str],
    words: &'static [&'static str],
    hint: &'static str,
) -> Symptom {
    Symptom {
        places,
        words,
        hint,
    }
}

const IMAGE_GONE: &str = "the image cannot be pulled: check its name and tag under `images` in VERSIONS.json (upstreams withdraw tags), set another repository \
    there, or load it with `kind load docker-image`; then run `blueprint up` again";
const STORAGE_FULL: &str = "the disk is full or read-only: free space under the storage root and in the workspace, then run `blueprint up` again; a file is \
    replaced only after its new content is on disk, so nothing was lost";

/// The first row that fits wins: the precise ones stand before the general ones.
const SYMPTOMS: &[Symptom] = &[
    row(&[], &["imagepullbackoff"], IMAGE_GONE),
    row(&[], &["errimagepull"], IMAGE_GONE),
    row(&[], &["errimageneverpull"], IMAGE_GONE),
    row(&[], &["no space left"], STORAGE_FULL),
    row(&[], &["read-only file system"], STORAGE_FULL),
    row(&[], &["disk quota exceeded"], STORAGE_FULL),
    row(
        &[],
        &["too many open files"],
        "the inotify limits are too low for this many nodes: `sysctl -w fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=1048576` on the host",
    ),
    row(
        &[],
        &["password authentication failed for user"],
        "the password in the database is not the one in the Secret: run `blueprint up --only secrets-restore`, then compare infra/secrets/cnpg-role-passwords.json \
         with the cluster (`blueprint up --from 5`)",
    ),
    row(
        &[],
        &["permission denied", "pgdata"],
        "the volume's folder must belong to 26:26 with mode 0700: run `blueprint up --only stable-storage`",
    ),
    row(
        &["cnpg", "cloudnativepg", "postgresql"],
        &["failed calling webhook"],
        "the CloudNativePG operator is restarting: run `blueprint up` again in a moment",
    ),
    row(
        &["cnpg", "cloudnativepg", "postgresql"],
        &["crashloopbackoff"],
        "an instance that never starts on an adopted volume usually means an empty or half-written PGDATA behind PVC postgresql-cnpg-1: look at the folder on the \
         node, then run `blueprint up --from 4`",
    ),
    row(
        &["cnpg", "cloudnativepg", "postgresql"],
        &["system identifier"],
        "another database lies behind the volume than the one recorded in infra/secrets/cnpg-system-identifier.txt: put the right volume back before anything \
         writes to this one",
    ),
    row(
        &["cnpg", "cloudnativepg", "postgresql"],
        &[],
        "look at the claim's name, labels and annotations (PVC postgresql-cnpg-1, step 4) and at `kubectl -n postgresql describe cluster postgresql-cnpg`; \
         `blueprint up --from 4` goes on from there",
    ),
    row(
        &[],
        &["storageclass", "not found"],
        "a claim does not bind: its volume is Released or smaller than the claim; `blueprint up --only stable-storage` makes Released volumes ready again",
    ),
    row(
        &["redis"],
        &["redisearch"],
        "the image lacks Redis' modules: set `commonConfiguration` without loadmodule lines in infra/phase2/references/helm-values-redis.yaml",
    ),
    row(
        &["redis"],
        &["wrongpass"],
        "the running Redis has another password than infra/secrets/redis-password.txt: run `blueprint up --only redis`, which tries both",
    ),
    row(
        &["minio", "buckets"],
        &["invalidaccesskeyid"],
        "the running MinIO has other credentials than infra/secrets/minio-root-{user,password}.txt: run `blueprint up --only minio`",
    ),
    row(
        &["minio", "buckets"],
        &["signaturedoesnotmatch"],
        "the running MinIO has another password than infra/secrets/minio-root-password.txt: run `blueprint up --only minio`",
    ),
    row(
        &["openbao"],
        &["sealed"],
        "OpenBao is sealed after every restart of its pod: run `blueprint secrets unseal`",
    ),
    row(
        &["openbao"],
        &["message authentication failed"],
        "infra/secrets/openbao-init.json belongs to another database: put back the file that was written when this one was initialised",
    ),
    row(
        &["openbao"],
        &["28p01"],
        "OpenBao's pod still uses an old database password: run `blueprint up --only openbao`, which restarts it",
    ),
    row(
        &["openbao", "gitlab"],
        &["failed to decrypt keys from storage"],
        "Secret gitlab-openbao-unseal is not the one the bundled OpenBao's data was sealed with: run `blueprint up --only secrets-restore`, then \
         `kubectl -n gitlab rollout restart deployment gitlab-openbao`",
    ),
    row(
        &["gateway", "gitlab ui", "gitlab"],
        &["certificateref"],
        "a listener names a Secret that is not there: `blueprint up --only wildcard-certs`; `blueprint values validate` lists every listener's Secret",
    ),
    row(
        &["gateway"],
        &["programmed"],
        "look at the listeners' conditions (`kubectl -n gitlab describe gateway gitlab-gw`): Secrets come from step 9 (`blueprint up --only wildcard-certs`), the \
         data plane must be a NodePort Service, and `global.hosts.externalIP` must be unset",
    ),
    row(
        &["registry", "node", "trust", "pin"],
        &["x509"],
        "containerd on a node does not trust the CA: run `blueprint up --only node-trust`",
    ),
    row(
        &["registry", "node", "pin"],
        &["server misbehaving"],
        "a node cannot resolve the registry's name (its /etc/hosts is rewritten when the node restarts): run `blueprint up --only registry-pin`",
    ),
    row(
        &["registry", "node", "pin"],
        &["no such host"],
        "a node cannot resolve the registry's name (its /etc/hosts is rewritten when the node restarts): run `blueprint up --only registry-pin`",
    ),
    row(
        &["registry", "node"],
        &["minio.minio.svc"],
        "the registry redirects to the in-cluster object storage: `redirect: {disable: true}` must stand in key `config` of Secret gitlab-rails-storage \
         (`blueprint up --only buckets`)",
    ),
    row(
        &["coredns", "dns", "names"],
        &[],
        "compare the stanza between `# blueprint:begin` and `# blueprint:end` in ConfigMap kube-system/coredns with `blueprint.yaml`'s domain and run \
         `blueprint up --only coredns`; caches forget within 30 s",
    ),
    row(
        &["runner"],
        &["410"],
        "registration tokens are gone from GitLab: the runner must get an authentication token (glrt-…); run `blueprint up --only runner`",
    ),
    row(
        &["runner"],
        &[],
        "the token is read again from OpenBao (secret/gitlab/runner) and verified by `blueprint up --only runner`; look at `kubectl -n gitlab logs deploy/gitlab-runner` too",
    ),
    row(
        &["gitlab ui"],
        &["404"],
        "check that the name leads to the Gateway (`gitlab.<domain>` in /etc/hosts or DNS, host port 443 → NodePort 30443) and that the CA \
         infra/tls/wildcard/ca.pem is in the trust store",
    ),
    row(
        &["gitlab ui"],
        &["x509"],
        "the CA is not trusted or is another one: infra/tls/wildcard/ca.pem must be the one that `blueprint up --only wildcard-certs` uses",
    ),
    row(
        &["gitlab ui"],
        &["certificate"],
        "the CA is not trusted or is another one: infra/tls/wildcard/ca.pem must be the one that `blueprint up --only wildcard-certs` uses",
    ),
    row(
        &["gitlab"],
        &["rails-secret"],
        "the Secret gitlab-rails-secret must match the database: run `blueprint up --only secrets-restore`, then restart webservice and sidekiq",
    ),
    row(
        &["wildcard", "listener"],
        &[],
        "run `blueprint up --only wildcard-certs`: it checks the files in infra/tls/wildcard and writes every listener's Secret",
    ),
    row(
        &["storageclass", "local-path"],
        &[],
        "another class carries the default mark (kind's `standard` does): run `blueprint up --only local-path`",
    ),
    row(
        &[],
        &["pending-install"],
        "a helm was cut off half-way: `blueprint up` rolls back to the last deployed revision, or removes the release if none ever was",
    ),
    row(
        &[],
        &["pending-upgrade"],
        "a helm was cut off half-way: `blueprint up` rolls back to the last deployed revision",
    ),
    row(
        &[],
        &["connection refused", "6443"],
        "the API server does not answer: `docker ps` must show the control-plane container; `docker start <cluster>-control-plane`",
    ),
];

/// The hint for a failed task or smoke row, judged by the task's id and the words of the failure.
pub fn hint(task: &str, text: &str) -> Option<String> {
    let (task, text) = (task.to_lowercase(), text.to_lowercase());
    SYMPTOMS
        .iter()
        .find(|symptom| {
            let here = symptom.places.is_empty()
                || symptom.places.iter().any(|place| task.contains(place));
            here && symptom.words.iter().all(|word| text.contains(word))
        })
        .map(|symptom| symptom.hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(task: &str, text: &str) -> String {
        hint(task, text).unwrap_or_default()
    }

    #[test]
    fn every_row_of_the_specified_failure_mapping_is_answered() {
        assert!(
            found("Gateway Programmed", "Programmed is False: Invalid").contains("wildcard-certs")
        );
        assert!(
            found("CloudNativePG cluster Ready", "phase Setting up primary")
                .contains("postgresql-cnpg-1")
        );
        assert!(
            found(
                "gitlab",
                "FATAL: password authentication failed for user \"gitlab\""
            )
            .contains("secrets-restore")
        );
        assert!(found("Runner registered", "403 Forbidden").contains("OpenBao"));
        assert!(found("GitLab UI returns 200", "answered 404 Not Found").contains("/etc/hosts"));
        assert!(found("OpenBao unsealed", "sealed: true").contains("blueprint secrets unseal"));
    }

    #[test]
    fn an_image_that_no_longer_exists_leads_to_the_pins_whatever_task_met_it() {
        for task in ["redis", "cnpg-cluster", "runner"] {
            let hint = found(task, "pod x/y: ImagePullBackOff docker.io/bitnami/redis:7");
            assert!(hint.contains("VERSIONS.json"), "{task}: {hint}");
        }
    }

    #[test]
    fn a_lost_hosts_line_and_a_missing_ca_are_told_apart() {
        assert!(
            found(
                "Registry reachable from every node",
                "lookup registry.x: server misbehaving"
            )
            .contains("registry-pin")
        );
        assert!(
            found(
                "Registry reachable from every node",
                "x509: certificate signed by unknown authority"
            )
            .contains("node-trust")
        );
    }

    #[test]
    fn what_the_map_does_not_know_gets_no_hint() {
        assert_eq!(hint("gateway-crds", "something unheard of"), None);
    }

    #[test]
    fn no_row_is_hidden_by_an_earlier_one() {
        for (index, symptom) in SYMPTOMS.iter().enumerate() {
            let places = if symptom.places.is_empty() {
                &["anywhere"][..]
            } else {
                symptom.places
            };
            let text = symptom.words.join(" ");
            let reached = places.iter().any(|place| {
                let first = SYMPTOMS.iter().position(|other| {
                    (other.places.is_empty() || other.places.iter().any(|p| place.contains(p)))
                        && other.words.iter().all(|w| text.contains(w))
                });
                first == Some(index)
            });
            assert!(
                reached,
                "row {index} ({:?}, {:?}) can never be chosen",
                symptom.places, symptom.words
            );
        }
    }
}
