//! What is in OpenBao when step 8 is over: KV version 2 at `secret/`, a marker that proves that its storage works, and the role of GitLab's bundled OpenBao.

use std::collections::BTreeMap;

use blueprint_openbao::Client;
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::password;
use secrecy::{ExposeSecret, SecretString};

use crate::error::Error;
use crate::installer::{State, Work};
use crate::names;
use crate::role_passwords::role_password;

/// Where KV version 2 is mounted.
pub(crate) const MOUNT: &str = "secret";

const MARKER: &str = "blueprint/marker";
const BUNDLED_ROLE: &str = "gitlab_openbao";
/// Beside `gitlab/initial_root_password` and `gitlab/runner`.
pub(crate) const BUNDLED_PATH: &str = "gitlab/openbao_psql";

type Data = BTreeMap<String, SecretString>;

/// Looks only.
pub(super) async fn state(work: Work<'_>, client: &Client) -> Result<State, Error> {
    if !client.mounts().await?.contains_key(&format!("{MOUNT}/")) {
        return Ok(State::Outdated(vec![format!("no KV engine at {MOUNT}/")]));
    }
    let mut differs = Vec::new();
    if client.kv_read(MOUNT, MARKER).await?.is_none() {
        differs.push(format!("{MOUNT}/{MARKER} is missing"));
    }
    if !same(
        client.kv_read(MOUNT, BUNDLED_PATH).await?.as_ref(),
        &bundled_credentials(work)?,
    ) {
        differs.push(format!("{MOUNT}/{BUNDLED_PATH} is missing or differs"));
    }
    Ok(if differs.is_empty() {
        State::Ready
    } else {
        State::Outdated(differs)
    })
}

/// Brings it there. What is there already is read and left alone.
pub(super) async fn ensure(
    work: Work<'_>,
    client: &Client,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    if client.ensure_kv2(MOUNT).await? {
        outcome.changed(format!("mounted KV version 2 at {MOUNT}/"));
    }
    ensure_marker(client, outcome).await?;
    let wanted = bundled_credentials(work)?;
    if !same(client.kv_read(MOUNT, BUNDLED_PATH).await?.as_ref(), &wanted) {
        client.kv_write(MOUNT, BUNDLED_PATH, &wanted).await?;
        outcome.changed(format!(
            "stored the credentials of role {BUNDLED_ROLE} at {MOUNT}/{BUNDLED_PATH}"
        ));
    }
    Ok(())
}

/// Reads the marker: proof that the storage answers, which health is not (it stays 200 while PostgreSQL is gone).
pub(super) async fn read_marker(client: &Client) -> Result<(), Error> {
    let found = client.kv_read(MOUNT, MARKER).await?;
    found.map(|_| ()).ok_or_else(|| Error::Failed {
        action: format!("read {MOUNT}/{MARKER}"),
        found: "nothing there".to_owned(),
        hint: "run `blueprint up --only openbao`".to_owned(),
    })
}

async fn ensure_marker(client: &Client, outcome: &mut Outcome) -> Result<(), Error> {
    if client.kv_read(MOUNT, MARKER).await?.is_some() {
        return Ok(());
    }
    let marker = BTreeMap::from([("installation".to_owned(), password::generate(20))]);
    client.kv_write(MOUNT, MARKER, &marker).await?;
    if !same(client.kv_read(MOUNT, MARKER).await?.as_ref(), &marker) {
        return Err(Error::Failed {
            action: format!("read back {MOUNT}/{MARKER}"),
            found: "something else than was written".to_owned(),
            hint: "make sure that no second OpenBao uses the same database: each keeps mounts of its own in memory".to_owned(),
        });
    }
    outcome.changed(format!("wrote {MOUNT}/{MARKER}"));
    Ok(())
}

fn bundled_credentials(work: Work<'_>) -> Result<Data, Error> {
    let plain = |text: &str| SecretString::from(text);
    Ok(BTreeMap::from([
        (
            "host".to_owned(),
            SecretString::from(format!(
                "{}-rw.{}.svc",
                names::CNPG_CLUSTER,
                names::POSTGRESQL
            )),
        ),
        ("port".to_owned(), plain("5432")),
        ("database".to_owned(), plain(BUNDLED_ROLE)),
        ("username".to_owned(), plain(BUNDLED_ROLE)),
        (
            "password".to_owned(),
            role_password(&work.context.workspace, BUNDLED_ROLE)?,
        ),
    ]))
}

fn same(found: Option<&Data>, wanted: &Data) -> bool {
    found.is_some_and(|found| {
        found.len() == wanted.len()
            && wanted.iter().all(|(key, value)| {
                found
                    .get(key)
                    .is_some_and(|other| other.expose_secret() == value.expose_secret())
            })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: &[(&str, &str)]) -> Data {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), SecretString::from(*value)))
            .collect()
    }

    #[test]
    fn only_equal_content_is_left_alone() {
        let wanted = data(&[("username", "u"), ("password", "p")]);
        assert!(same(
            Some(&data(&[("password", "p"), ("username", "u")])),
            &wanted
        ));
        assert!(!same(
            Some(&data(&[("username", "u"), ("password", "other")])),
            &wanted
        ));
        assert!(!same(Some(&data(&[("username", "u")])), &wanted));
        assert!(!same(
            Some(&data(&[
                ("username", "u"),
                ("password", "p"),
                ("more", "m")
            ])),
            &wanted
        ));
        assert!(!same(None, &wanted));
    }
}
