//! The table: every credential and the places of its copies, the one that wins first. docs/credentials.md says the same in words.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::persistent_secrets::GENERATED;
use crate::rotation::{self, Target};
use crate::wildcard_certs;
use crate::workspace::Workspace;
use crate::{gitlab, minio, names, openbao, redis, runner};

/// A credential, before anything is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// What people call it by.
    pub name: String,
    /// What it is.
    pub what: String,
    /// Where its copies live.
    pub(crate) places: Vec<Place>,
    /// Where a rotation keeps the new value until it is in force; `None` when it cannot be rotated.
    pub(crate) rotation: Option<PathBuf>,
}

impl Known {
    /// Whether `secrets rotate` takes it.
    pub fn rotates(&self) -> bool {
        self.rotation.is_some()
    }
}

/// A copy's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A private file.
    File(PathBuf, Part),
    /// A Secret: namespace, name.
    Secret(&'static str, String, Part),
    /// A path under OpenBao's KV mount, and a key there.
    OpenBao(&'static str, &'static str),
    /// A Secret in the snapshot of the chart's Secrets.
    Snapshot(String, Part),
}

/// What of a file or a Secret is the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// One key of a Secret, one member of a JSON object.
    Key(&'static str),
    /// The password within the PostgreSQL URL under this key.
    UrlPassword(&'static str),
    /// The user within GitLab's object storage connection.
    StorageUser,
    /// The password there.
    StoragePassword,
    /// The unseal keys of the init file.
    UnsealKeys,
}

/// Every credential there can be; `chart_secrets`: names of chart-managed Secrets that were found beside those the chart is known for.
pub fn known(workspace: &Workspace, chart_secrets: &BTreeSet<String>) -> Vec<Known> {
    let mut all = roles(workspace);
    all.extend(stores(workspace));
    all.extend(openbao_and_certificates(workspace));
    all.extend(gitlabs());
    let named: BTreeSet<&str> = all.iter().map(|known| known.name.as_str()).collect();
    let chart: BTreeSet<&str> = GENERATED
        .iter()
        .copied()
        .chain(chart_secrets.iter().map(String::as_str))
        .filter(|name| !named.contains(name) && *name != gitlab::ROOT_PASSWORD)
        .collect();
    let chart: Vec<Known> = chart.into_iter().map(of_the_chart).collect();
    all.extend(chart);
    all
}

fn credential(name: &str, what: &str, places: Vec<Place>) -> Known {
    Known {
        name: name.to_owned(),
        what: what.to_owned(),
        places,
        rotation: None,
    }
}

fn rotatable(workspace: &Workspace, target: Target, places: Vec<Place>) -> Known {
    Known {
        name: target.name().to_owned(),
        what: target.what().to_owned(),
        places,
        rotation: Some(rotation::pending_file(workspace, target)),
    }
}

fn secret(namespace: &'static str, name: &str, part: Part) -> Place {
    Place::Secret(namespace, name.to_owned(), part)
}

fn roles(workspace: &Workspace) -> Vec<Known> {
    let file = |role| Place::File(workspace.role_passwords(), Part::Key(role));
    let of_operator = |name| secret(names::POSTGRESQL, name, Part::Key("password"));
    let password = Part::Key("password");
    vec![
        rotatable(
            workspace,
            Target::PostgresqlGitlab,
            vec![
                file("gitlab"),
                of_operator("pg-gitlab"),
                secret(names::GITLAB, gitlab::PSQL, password),
            ],
        ),
        rotatable(
            workspace,
            Target::PostgresqlOpenbao,
            vec![
                file("openbao"),
                of_operator("pg-openbao"),
                secret(names::OPENBAO, openbao::PG_SECRET, Part::UrlPassword("url")),
            ],
        ),
        rotatable(
            workspace,
            Target::PostgresqlGitlabOpenbao,
            vec![
                file("gitlab_openbao"),
                of_operator("pg-gitlab-openbao"),
                secret(names::GITLAB, gitlab::OPENBAO_PSQL, password),
                Place::OpenBao(openbao::BUNDLED_PATH, "password"),
            ],
        ),
    ]
}

fn stores(workspace: &Workspace) -> Vec<Known> {
    let root = |key| secret(names::MINIO, minio::SECRET, Part::Key(key));
    let storage = |part| secret(names::GITLAB, names::RAILS_STORAGE, part);
    vec![
        rotatable(
            workspace,
            Target::Redis,
            vec![
                Place::File(workspace.redis_password(), Part::Whole),
                secret(names::REDIS, redis::SECRET, Part::Key(redis::KEY)),
                secret(names::GITLAB, gitlab::REDIS, Part::Key("password")),
            ],
        ),
        credential(
            "minio-user",
            "name of MinIO's root user",
            vec![
                Place::File(workspace.minio_user(), Part::Whole),
                root(minio::USER_KEY),
                storage(Part::StorageUser),
            ],
        ),
        rotatable(
            workspace,
            Target::Minio,
            vec![
                Place::File(workspace.minio_password(), Part::Whole),
                root(minio::PASSWORD_KEY),
                storage(Part::StoragePassword),
            ],
        ),
    ]
}

fn openbao_and_certificates(workspace: &Workspace) -> Vec<Known> {
    let pem = |name: &str| Place::File(workspace.wildcard().join(name), Part::Whole);
    let mut leaf = vec![pem("key.pem")];
    leaf.extend(
        wildcard_certs::SECRETS
            .iter()
            .map(|name| secret(names::GITLAB, name, Part::Key("tls.key"))),
    );
    vec![
        rotatable(
            workspace,
            Target::OpenbaoKeys,
            vec![Place::File(workspace.openbao_init(), Part::UnsealKeys)],
        ),
        credential(
            "openbao-root-token",
            "OpenBao's root token",
            vec![Place::File(
                workspace.openbao_init(),
                Part::Key("root_token"),
            )],
        ),
        credential(
            "openbao-seal-key",
            "key of OpenBao's static seal; only with `openbao.autoUnseal`",
            vec![
                Place::File(workspace.openbao_seal_key(), Part::Whole),
                secret(
                    names::OPENBAO,
                    openbao::SEAL_SECRET,
                    Part::Key(openbao::SEAL_KEY),
                ),
            ],
        ),
        rotatable(workspace, Target::Wildcard, leaf),
        credential(
            "wildcard-ca",
            "key of the CA; never in the cluster",
            vec![pem("ca-key.pem")],
        ),
    ]
}

fn gitlabs() -> Vec<Known> {
    let password = Part::Key("password");
    vec![
        credential(
            "gitlab-root",
            "first password of GitLab's user root; one that was changed in GitLab is known to GitLab alone",
            vec![
                Place::OpenBao(gitlab::ROOT_PATH, "password"),
                secret(names::GITLAB, gitlab::ROOT_PASSWORD, password),
                Place::Snapshot(gitlab::ROOT_PASSWORD.to_owned(), password),
            ],
        ),
        credential(
            "runner",
            "authentication token of the runner",
            vec![
                Place::OpenBao(runner::KV_PATH, runner::KV_KEY),
                secret(names::GITLAB, runner::SECRET, Part::Key(runner::SECRET_KEY)),
            ],
        ),
    ]
}

fn of_the_chart(name: &str) -> Known {
    credential(
        name,
        "made for GitLab's chart",
        vec![
            Place::Snapshot(name.to_owned(), Part::Whole),
            secret(names::GITLAB, name, Part::Whole),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Known> {
        known(
            &Workspace::at("/w"),
            &BTreeSet::from(["gitlab-new-secret".to_owned()]),
        )
    }

    #[test]
    fn every_credential_has_a_name_of_its_own_and_a_place() {
        let all = all();
        let names: BTreeSet<&str> = all.iter().map(|known| known.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        assert!(all.iter().all(|known| !known.places.is_empty()));
        assert!(names.contains("gitlab-rails-secret") && names.contains("gitlab-new-secret"));
    }

    #[test]
    fn all_that_can_be_rotated_is_listed() {
        let listed: BTreeSet<String> = all()
            .into_iter()
            .filter(Known::rotates)
            .map(|known| known.name)
            .collect();
        let targets: BTreeSet<String> = Target::ALL
            .iter()
            .map(|target| target.name().to_owned())
            .collect();
        assert_eq!(listed, targets);
    }

    #[test]
    fn the_cas_key_has_no_copy_in_the_cluster() {
        let all = all();
        let ca = all
            .iter()
            .find(|known| known.name == "wildcard-ca")
            .unwrap();
        assert!(matches!(ca.places.as_slice(), [Place::File(..)]));
    }
}
