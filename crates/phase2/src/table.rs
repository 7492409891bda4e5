//! The order, as data. Why each step stands where it does is said in docs/steps.md and printed by `blueprint graph`.

use std::sync::LazyLock;

use blueprint_pipeline::{Step, Table, Task};

const fn step(number: u8, title: &'static str) -> Step {
    Step { number, title }
}

const fn task(
    id: &'static str,
    step: u8,
    title: &'static str,
    needs: &'static [&'static str],
) -> Task {
    Task {
        id,
        step,
        title,
        needs,
    }
}

/// The 13 steps and their tasks.
pub const TABLE: Table = Table {
    steps: &[
        step(1, "Pre-flight"),
        step(2, "Install Gateway API CRDs"),
        step(3, "Install local-path StorageClass"),
        step(4, "Pre-create stable PV/PVC pairs"),
        step(5, "Install CloudNativePG + Cluster + roles and databases"),
        step(6, "Install Redis (single node)"),
        step(7, "Install MinIO + 11 buckets"),
        step(8, "Install OpenBao + init + unseal"),
        step(9, "Mint wildcard TLS + listener Secrets"),
        step(10, "Patch CoreDNS"),
        step(11, "Mount wildcard CA into containerd"),
        step(
            12,
            "Restore chart-managed Secrets + install GitLab + snapshot",
        ),
        step(13, "Pin the registry in /etc/hosts + install Runner"),
    ],
    tasks: &[
        task("preflight", 1, "check everything the run needs", &[]),
        task(
            "gateway-crds",
            2,
            "Gateway API, TCPRoute and Envoy Gateway CRDs",
            &["preflight"],
        ),
        task(
            "local-path",
            3,
            "local-path provisioner as the only default class",
            &["preflight"],
        ),
        task(
            "stable-storage",
            4,
            "directories and volumes that outlive the cluster",
            &["local-path"],
        ),
        task("cnpg-operator", 5, "CloudNativePG operator", &["preflight"]),
        task(
            "cnpg-cluster",
            5,
            "PostgreSQL cluster, roles, databases",
            &["cnpg-operator", "stable-storage"],
        ),
        task("redis", 6, "Redis", &["stable-storage"]),
        task("minio", 7, "MinIO", &["stable-storage"]),
        task("buckets", 7, "buckets and connection Secret", &["minio"]),
        task(
            "openbao",
            8,
            "OpenBao on PostgreSQL, initialised and unsealed",
            &["cnpg-cluster", "stable-storage"],
        ),
        task(
            "wildcard-certs",
            9,
            "CA, wildcard certificate, listener Secrets",
            &["preflight"],
        ),
        task(
            "coredns",
            10,
            "names of the domain resolve to the Gateway",
            &["preflight"],
        ),
        task(
            "node-trust",
            11,
            "containerd on every node trusts the CA",
            &["wildcard-certs"],
        ),
        task(
            "secrets-restore",
            12,
            "Secrets of the snapshot back into place",
            &["preflight"],
        ),
        task(
            "gitlab",
            12,
            "GitLab",
            &[
                "gateway-crds",
                "cnpg-cluster",
                "redis",
                "buckets",
                "openbao",
                "wildcard-certs",
                "coredns",
                "node-trust",
                "secrets-restore",
            ],
        ),
        task(
            "secrets-snapshot",
            12,
            "snapshot of the chart-managed Secrets",
            &["gitlab"],
        ),
        task(
            "registry-pin",
            13,
            "the registry's names in every node's /etc/hosts",
            &["coredns"],
        ),
        task(
            "runner",
            13,
            "GitLab Runner",
            &["gitlab", "registry-pin", "secrets-snapshot"],
        ),
    ],
};

/// What the steps do when they are taken down, from the first on.
const TAKEN_DOWN: [&str; 13] = [
    "Take leave of the workspace",
    "Remove Gateway API CRDs",
    "Remove local-path StorageClass",
    "Release the stable volumes",
    "Remove PostgreSQL + CloudNativePG",
    "Remove Redis",
    "Remove MinIO",
    "Remove OpenBao",
    "Remove listener Secrets",
    "Give CoreDNS its Corefile back",
    "Take the wildcard CA out of containerd",
    "Snapshot chart-managed Secrets + remove GitLab",
    "Remove Runner + unpin the registry",
];

/// The table backwards, for `down`: whoever needed something goes before it. Steps keep their numbers.
pub static TEARDOWN: LazyLock<Table> = LazyLock::new(|| {
    let table = TABLE.reversed();
    let steps: Vec<Step> = table
        .steps
        .iter()
        .zip(TAKEN_DOWN.iter().rev())
        .map(|(step, title)| Step { title, ..*step })
        .collect();
    Table {
        steps: steps.leak(),
        ..table
    }
});

#[cfg(test)]
mod tests {
    use blueprint_pipeline::Graph;

    use super::*;

    fn place(id: &str) -> usize {
        let place = TEARDOWN.tasks.iter().position(|task| task.id == id);
        place.unwrap()
    }

    #[test]
    fn what_is_needed_goes_after_what_needs_it() {
        assert!(Graph::new(*TEARDOWN).is_ok());
        for task in TABLE.tasks {
            for need in task.needs {
                assert!(place(task.id) < place(need), "{} before {need}", task.id);
                let waits = TEARDOWN.task(need).unwrap().needs;
                assert!(waits.contains(&task.id), "{need} waits for {}", task.id);
            }
        }
    }

    #[test]
    fn the_last_snapshot_is_taken_before_gitlab_goes_and_files_go_last() {
        assert!(
            TEARDOWN
                .task("gitlab")
                .unwrap()
                .needs
                .contains(&"secrets-snapshot")
        );
        assert_eq!(TEARDOWN.tasks.last().unwrap().id, "preflight");
    }

    #[test]
    fn every_step_has_its_number_and_a_title_of_its_own() {
        for step in TABLE.steps {
            let down = TEARDOWN.step(step.number).unwrap();
            assert_ne!(down.title, step.title);
        }
        assert!(TEARDOWN.step(6).unwrap().title.contains("Redis"));
        assert!(TEARDOWN.step(13).unwrap().title.contains("Runner"));
    }
}
