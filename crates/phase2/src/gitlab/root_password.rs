//! The first password of GitLab's `root`: chosen before the install, kept in OpenBao, never minted again.
//!
//! GitLab reads the Secret once, when it seeds its database. From then on another value in it would only mislead people.

use std::collections::BTreeMap;

use blueprint_pipeline::Outcome;
use blueprint_safekeeping::{password, snapshot::Snapshot};
use secrecy::{ExposeSecret, SecretString};

use super::outside_secrets::manifest;
use crate::error::Error;
use crate::installer::Work;
use crate::role_connection::{connect, query_failed};
use crate::role_passwords::role_password;
use crate::{names, openbao};

/// What `global.initialRootPassword.secret` names.
pub(crate) const SECRET: &str = "gitlab-gitlab-initial-root-password";
const KEY: &str = "password";
/// Below the KV mount.
pub(crate) const PATH: &str = "gitlab/initial_root_password";
const LENGTH: usize = 32;

/// OpenBao's value into the Secret; where OpenBao has none, the value that is in force into OpenBao first.
pub(super) async fn ensure(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let (_forward, client) = openbao::client(work).await?;
    let mut kept = client
        .kv_read(openbao::MOUNT, PATH)
        .await?
        .unwrap_or_default();
    let password = if let Some(password) = kept.get(KEY) {
        password.clone()
    } else {
        let (password, origin) = find_or_choose(work).await?;
        kept.insert(KEY.to_owned(), password.clone());
        client.kv_write(openbao::MOUNT, PATH, &kept).await?;
        confirm(&client, &password).await?;
        outcome.changed(format!(
            "kept root's first password ({origin}) in OpenBao at {}/{PATH}",
            openbao::MOUNT
        ));
        password
    };
    outcome.changes.extend(
        work.context
            .cluster
            .apply_secret(&manifest(SECRET, &password))
            .await?
            .phrase(),
    );
    Ok(())
}

async fn confirm(client: &blueprint_openbao::Client, password: &SecretString) -> Result<(), Error> {
    let read: BTreeMap<String, SecretString> = client
        .kv_read(openbao::MOUNT, PATH)
        .await?
        .unwrap_or_default();
    if read
        .get(KEY)
        .is_some_and(|read| read.expose_secret() == password.expose_secret())
    {
        return Ok(());
    }
    Err(Error::Failed {
        action: format!("read back {}/{PATH} from OpenBao", openbao::MOUNT),
        found: "something else than was written".to_owned(),
        hint: "look at OpenBao with `blueprint smoke`, then run again; GitLab was not installed with an unsaved password".to_owned(),
    })
}

async fn find_or_choose(work: Work<'_>) -> Result<(SecretString, &'static str), Error> {
    if let Some(secret) = work.context.cluster.secret(names::GITLAB, SECRET).await?
        && let Some(password) = secret.text(KEY)
    {
        return Ok((SecretString::from(password), "from the cluster"));
    }
    if let Some(password) = in_snapshot(work)? {
        return Ok((password, "from the snapshot"));
    }
    if root_exists(work).await? {
        return Err(Error::Refused {
            summary:
                "GitLab's database has a user root already, and its password is not known here"
                    .to_owned(),
            expected: format!(
                "the password in OpenBao at {}/{PATH}, in Secret {}/{SECRET} or in the snapshot",
                openbao::MOUNT,
                names::GITLAB
            ),
            found: "none of them, and a user `root` in gitlabhq_production".to_owned(),
            hint: format!(
                "write the password that is in force into the Secret and run again: kubectl -n {} create secret generic {SECRET} \
                 --from-file={KEY}=/path/to/a/private/file",
                names::GITLAB
            ),
        });
    }
    Ok((password::generate(LENGTH), "chosen"))
}

fn in_snapshot(work: Work<'_>) -> Result<Option<SecretString>, Error> {
    let snapshot = Snapshot::read(&work.context.workspace.gitlab_snapshot())?;
    let bytes = snapshot
        .as_ref()
        .and_then(|snapshot| snapshot.secrets.get(SECRET))
        .and_then(|secret| secret.data.get(KEY));
    Ok(bytes
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .map(SecretString::from))
}

/// Whether GitLab's database was seeded before.
async fn root_exists(work: Work<'_>) -> Result<bool, Error> {
    let password = role_password(&work.context.workspace, "gitlab")?;
    let connection = connect(work, "gitlab", &password, "gitlabhq_production").await?;
    let failed = |error: tokio_postgres::Error| query_failed("look for GitLab's user root", &error);
    let seeded = "select exists (select 1 from information_schema.columns \
                  where table_schema = 'public' and table_name = 'users' and column_name = 'username')";
    if !connection
        .client
        .query_one(seeded, &[])
        .await
        .map_err(failed)?
        .get::<_, bool>(0)
    {
        return Ok(false);
    }
    let root = "select exists (select 1 from public.users where username = 'root')";
    Ok(connection
        .client
        .query_one(root, &[])
        .await
        .map_err(failed)?
        .get(0))
}
