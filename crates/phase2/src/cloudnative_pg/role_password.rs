//! Another password for one role, for `blueprint secrets rotate`.

use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::{cluster, roles};
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// Whether PostgreSQL takes this one. Without a primary that is ready there is no answer, and that is an error.
pub(crate) async fn takes(
    work: Work<'_>,
    role: &str,
    password: &SecretString,
) -> Result<bool, Error> {
    let cluster = &work.context.cluster;
    let primary = cluster
        .ready_pod(names::POSTGRESQL, cluster::PRIMARY)
        .await?;
    if primary.is_none() {
        return Err(Error::Failed {
            action: format!("try the password of role {role}"),
            found: "no primary pod of PostgreSQL is ready".to_owned(),
            hint: "run `blueprint up --only cnpg-cluster` first".to_owned(),
        });
    }
    roles::works(work, role, password).await
}

/// Puts it into the Secret that the operator watches; it sets it on the role within a second.
pub(crate) async fn set(work: Work<'_>, role: &str, password: &SecretString) -> Result<(), Error> {
    let declared = cluster::declared_roles(work)?;
    let role = declared
        .iter()
        .find(|declared| declared.name == role)
        .ok_or_else(|| Error::Failed {
            action: format!("find the Secret of role {role}"),
            found: "cluster-postgresql.yaml does not declare it".to_owned(),
            hint: "declare it under spec.managed.roles with a passwordSecret".to_owned(),
        })?;
    let password = Zeroizing::new(password.expose_secret().to_owned());
    let secret = roles::secret(role, &password);
    work.context.cluster.apply_secret(&secret).await?;
    Ok(())
}

/// Into the file of all roles; the others' lines stay as they are.
pub(crate) fn write(work: Work<'_>, role: &str, password: &SecretString) -> Result<(), Error> {
    let mut filed = roles::read(work)?;
    let password = Zeroizing::new(password.expose_secret().to_owned());
    filed.insert(role.to_owned(), password);
    roles::write(work, &filed)
}
