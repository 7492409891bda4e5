//! Passwords of the three roles: chosen by us, kept in one private file, declared to the operator as basic-auth Secrets.

use std::collections::BTreeMap;

use blueprint_cluster::object::describe;
use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::{password, private_file};
use kube::api::DynamicObject;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, NoTls};
use zeroize::Zeroizing;

use crate::credentials::{self, Choice, Credential};
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// Length of generated passwords; 32 of 62 characters are 190 bits.
const LENGTH: usize = 32;
/// The label by which the operator notices a changed password; without it a new one is never read.
const RELOAD: &str = "cnpg.io/reload";

/// A managed role and the Secret of its password, as the Cluster's reference names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) name: String,
    pub(super) secret: String,
}

/// The roles that a Cluster manifest declares.
pub(super) fn declared(cluster: &Value) -> Vec<Role> {
    let roles = cluster["spec"]["managed"]["roles"]
        .as_array()
        .into_iter()
        .flatten();
    roles
        .filter_map(|role| {
            Some(Role {
                name: role["name"].as_str()?.to_owned(),
                secret: role["passwordSecret"]["name"].as_str()?.to_owned(),
            })
        })
        .collect()
}

/// Settles every role's password and applies the Secrets. The file is written, whole, before any Secret changes.
pub(super) async fn ensure(
    work: Work<'_>,
    roles: &[Role],
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let file = work.context.workspace.role_passwords();
    let mut filed = read(work)?;
    let mut changes = Vec::new();
    let mut keep_former = false;
    for role in roles {
        let what = format!("the password of PostgreSQL role {}", role.name);
        let in_file = filed
            .get(&role.name)
            .map(|text| SecretString::from(text.as_str()));
        let in_cluster = in_cluster(work, role).await?;
        let works =
            |candidate: SecretString| async move { works(work, &role.name, &candidate).await };
        let credential = Credential {
            what: &what,
            file: &file,
            accepted: &work.context.accepted,
        };
        let value = match credentials::choose(credential, in_file, in_cluster, works).await? {
            Choice::Same(_) => continue,
            Choice::FileWins(_) => {
                outcome.note(format!(
                    "{what} differed between {} and the cluster; the file's one is used",
                    file.display()
                ));
                continue;
            }
            Choice::OnlyCluster(value) => {
                changes.push(format!(
                    "saved {what} from the cluster to {}",
                    file.display()
                ));
                value
            }
            Choice::ClusterWins(value) => {
                keep_former = true;
                changes.push(format!("saved {what} from the cluster to {}: the two differed and the cluster's one works", file.display()));
                value
            }
            Choice::Nothing => {
                changes.push(format!("chose {what} and wrote it to {}", file.display()));
                password::generate(LENGTH)
            }
        };
        filed.insert(
            role.name.clone(),
            Zeroizing::new(value.expose_secret().to_owned()),
        );
    }
    if !changes.is_empty() {
        if keep_former {
            credentials::keep_former(&file)?;
        }
        write(work, &filed)?;
        outcome.changes.extend(changes);
    }
    for role in roles {
        if let Some(password) = filed.get(&role.name) {
            outcome.changes.extend(
                work.context
                    .cluster
                    .apply_secret(&secret(role, password))
                    .await?
                    .phrase(),
            );
        }
    }
    Ok(())
}

/// For pre-flight: refuses when a role has two passwords and PostgreSQL takes neither.
pub(super) async fn try_passwords(work: Work<'_>, roles: &[Role]) -> Result<(), Error> {
    let file = work.context.workspace.role_passwords();
    let filed = read(work)?;
    for role in roles {
        let in_file = filed
            .get(&role.name)
            .map(|text| SecretString::from(text.as_str()));
        let in_cluster = in_cluster(work, role).await?;
        let works =
            |candidate: SecretString| async move { works(work, &role.name, &candidate).await };
        let credential = Credential {
            what: &format!("the password of PostgreSQL role {}", role.name),
            file: &file,
            accepted: &[],
        };
        credentials::choose(credential, in_file, in_cluster, works).await?;
    }
    Ok(())
}

/// Before the Secrets go: the passwords that no file holds.
pub(super) async fn save_lost(
    work: Work<'_>,
    roles: &[Role],
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let mut filed = read(work)?;
    let before = filed.len();
    for role in roles
        .iter()
        .filter(|role| !filed.contains_key(&role.name))
        .collect::<Vec<_>>()
    {
        if let Some(password) = in_cluster(work, role).await? {
            filed.insert(
                role.name.clone(),
                Zeroizing::new(password.expose_secret().to_owned()),
            );
        }
    }
    if filed.len() > before {
        write(work, &filed)?;
        outcome.changed(format!(
            "saved {} role password(s) from the cluster to {}",
            filed.len() - before,
            work.context.workspace.role_passwords().display()
        ));
    }
    Ok(())
}

/// Every line of the file, also those of roles that are not ours.
pub(super) fn read(work: Work<'_>) -> Result<BTreeMap<String, Zeroizing<String>>, Error> {
    let path = work.context.workspace.role_passwords();
    let Some(bytes) = private_file::read(&path)? else {
        return Ok(BTreeMap::new());
    };
    // serde's own message could quote a value, so only the place is told.
    let parsed: BTreeMap<String, String> = serde_json::from_slice(&bytes).map_err(|error| Error::Refused {
        summary: format!("{} is not readable", path.display()),
        expected: "a JSON object of role name to password".to_owned(),
        found: format!("something else at line {}, column {}", error.line(), error.column()),
        hint: "restore the file from a copy, or move it away: the passwords are then taken from the cluster's Secrets".to_owned(),
    })?;
    let empty: Vec<&str> = parsed
        .iter()
        .filter(|(_, password)| password.is_empty())
        .map(|(role, _)| role.as_str())
        .collect();
    if !empty.is_empty() {
        return Err(Error::Refused {
            summary: format!("{} has an empty password", path.display()),
            expected: "a password for every role in the file".to_owned(),
            found: format!("nothing for {}", empty.join(", ")),
            hint: "put the password back, or remove the role's line to take it from the cluster"
                .to_owned(),
        });
    }
    Ok(parsed
        .into_iter()
        .map(|(role, password)| (role, Zeroizing::new(password)))
        .collect())
}

pub(super) fn write(
    work: Work<'_>,
    passwords: &BTreeMap<String, Zeroizing<String>>,
) -> Result<(), Error> {
    let plain: BTreeMap<&str, &str> = passwords
        .iter()
        .map(|(role, password)| (role.as_str(), password.as_str()))
        .collect();
    let path = work.context.workspace.role_passwords();
    let mut text =
        Zeroizing::new(
            serde_json::to_string_pretty(&plain).map_err(|error| Error::Failed {
                action: format!("write {}", path.display()),
                found: error.to_string(),
                hint: "report this: a map of strings always is JSON".to_owned(),
            })?,
        );
    text.push('\n');
    private_file::write(&path, text.as_bytes())?;
    Ok(())
}

async fn in_cluster(work: Work<'_>, role: &Role) -> Result<Option<SecretString>, Error> {
    let found = work
        .context
        .cluster
        .secret(names::POSTGRESQL, &role.secret)
        .await?;
    let password = found
        .as_ref()
        .and_then(|secret| secret.data.get("password"));
    Ok(password
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .filter(|text| !text.is_empty())
        .map(SecretString::from))
}

pub(super) fn secret(role: &Role, password: &Zeroizing<String>) -> SecretManifest {
    SecretManifest {
        namespace: names::POSTGRESQL.to_owned(),
        name: role.secret.clone(),
        kind: "kubernetes.io/basic-auth".to_owned(),
        labels: BTreeMap::from([(RELOAD.to_owned(), "true".to_owned())]),
        data: BTreeMap::from([
            (
                "username".to_owned(),
                Zeroizing::new(role.name.clone().into_bytes()),
            ),
            (
                "password".to_owned(),
                Zeroizing::new(password.as_bytes().to_vec()),
            ),
        ]),
    }
}

/// Whether the running server takes this password. With no server to ask any will do: the operator sets on it what the Secret says.
pub(super) async fn works(
    work: Work<'_>,
    role: &str,
    password: &SecretString,
) -> Result<bool, Error> {
    let Some(pod) = work
        .context
        .cluster
        .ready_pod(names::POSTGRESQL, super::cluster::PRIMARY)
        .await?
    else {
        return Ok(true);
    };
    let forward = work
        .context
        .cluster
        .port_forward(names::POSTGRESQL, &pod, super::cluster::PORT)
        .await?;
    let mut config = Config::new();
    config
        .host(forward.address().ip().to_string())
        .port(forward.address().port())
        .user(role)
        .password(password.expose_secret())
        .dbname("postgres")
        .connect_timeout(std::time::Duration::from_secs(10));
    match config.connect(NoTls).await {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some(&SqlState::INVALID_PASSWORD) => Ok(false),
        Err(error) => Err(Error::Failed {
            action: format!(
                "try the password of role {role} on {}",
                describe("pod", Some(names::POSTGRESQL), &pod)
            ),
            found: error
                .as_db_error()
                .map_or_else(|| error.to_string(), |answer| answer.message().to_owned()),
            hint: "see the pod's log, then run again".to_owned(),
        }),
    }
}

/// What keeps the declared roles from being as declared; empty when all are. Role errors do not touch the Cluster's Ready condition.
pub(super) fn unreconciled(cluster: &DynamicObject, roles: &[Role]) -> Vec<String> {
    let status = &cluster.data["status"]["managedRolesStatus"];
    let reconciled: Vec<&str> = status["byStatus"]["reconciled"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    roles
        .iter()
        .filter(|role| !reconciled.contains(&role.name.as_str()))
        .map(|role| {
            let errors: Vec<&str> = status["cannotReconcile"][&role.name]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            if errors.is_empty() {
                format!("role {} is not there yet", role.name)
            } else {
                format!("role {}: {}", role.name, errors.join("; "))
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::references::References;
    use crate::settings::Settings;
    use crate::workspace::Workspace;

    fn role(name: &str) -> Role {
        Role {
            name: name.to_owned(),
            secret: format!("pg-{name}"),
        }
    }

    fn cluster(status: &Value) -> DynamicObject {
        serde_json::from_value(json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "metadata": {"name": "c"}, "status": status})).unwrap()
    }

    #[test]
    fn the_reference_declares_the_three_roles() {
        let folder = tempfile::tempdir().unwrap();
        let references = References::new(Workspace::at(folder.path()), Settings::default());
        let manifest = &references.documents("cluster-postgresql.yaml").unwrap()[0];
        let declared: Vec<(String, String)> = declared(manifest)
            .into_iter()
            .map(|role| (role.name, role.secret))
            .collect();
        let expected = [
            ("gitlab", "pg-gitlab"),
            ("openbao", "pg-openbao"),
            ("gitlab_openbao", "pg-gitlab-openbao"),
        ];
        assert_eq!(
            declared,
            expected.map(|(name, secret)| (name.to_owned(), secret.to_owned()))
        );
    }

    #[test]
    fn every_role_must_be_reconciled_although_the_cluster_is_ready() {
        let status = json!({"managedRolesStatus": {
            "byStatus": {"reconciled": ["gitlab"], "pending-reconciliation": ["openbao"]},
            "cannotReconcile": {"openbao": ["secret not found"]}
        }});
        let roles = [role("gitlab"), role("openbao"), role("gitlab_openbao")];
        assert_eq!(
            unreconciled(&cluster(&status), &roles),
            [
                "role openbao: secret not found",
                "role gitlab_openbao is not there yet"
            ]
        );
        let status =
            json!({"managedRolesStatus": {"byStatus": {"reconciled": ["openbao", "gitlab"]}}});
        assert!(unreconciled(&cluster(&status), &roles[..2]).is_empty());
    }

    #[test]
    fn an_unlabelled_role_secret_would_never_be_read_again() {
        let manifest = secret(&role("gitlab"), &Zeroizing::new("pw".to_owned()));
        assert_eq!(
            manifest.labels.get("cnpg.io/reload").map(String::as_str),
            Some("true")
        );
        assert_eq!(manifest.kind, "kubernetes.io/basic-auth");
        assert_eq!(manifest.data["username"].as_slice(), b"gitlab");
    }
}
