//! `openbao.autoUnseal`: the static seal with a key of ours, and the way to it and back.
//!
//! A server is always initialised with key shares first; they stay the recovery keys under the static seal and open it again after the way back, so
//! openbao-init.json never changes. The key's private file is made before the seal is switched and set aside only when nothing is sealed with it any more: it
//! says which configuration a server that does not run yet has to start with. (OpenBao 2.7: `seal "static"`, and `disabled = "true"` for the way back; without
//! the stanza a server that is sealed with it does not start.)

use std::collections::BTreeMap;
use std::time::Duration;

use blueprint_cluster::secret::SecretManifest;
use blueprint_openbao::{Client, InitFile};
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::{password, private_file};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::credentials::former;
use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// Mounted at /openbao/unseal, see the overlay.
pub(crate) const SECRET: &str = "openbao-unseal";
pub(crate) const KEY: &str = "key";
const STANZA: &str = "seal.hcl";
const OVERLAY: &str = "profiles/static-seal/helm-values-openbao.yaml";
/// OpenBao's static seal takes exactly 32 bytes.
const LENGTH: usize = 32;
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// What a server has to start with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seal {
    /// Key shares alone.
    Shares,
    /// The static seal.
    Static,
    /// The static seal, disabled: on the way back to key shares.
    Leaving,
}

fn decide(auto_unseal: bool, initialised: bool, key: bool) -> Seal {
    match (auto_unseal, initialised, key) {
        (false, true, true) => Seal::Leaving,
        // A lost init file does not unseal what the key has sealed.
        (true, true, _) | (_, false, true) => Seal::Static,
        (_, false, false) | (false, true, false) => Seal::Shares,
    }
}

/// From the settings and the private files alone: it must be known before a server runs.
pub(super) fn wanted(work: Work<'_>) -> Result<Seal, Error> {
    let workspace = &work.context.workspace;
    let initialised = InitFile::read(&workspace.openbao_init())?.is_some();
    let key = private_file::read(&workspace.openbao_seal_key())?.is_some();
    Ok(decide(
        work.context.settings.openbao.auto_unseal,
        initialised,
        key,
    ))
}

/// The values that are laid over the chart's.
pub(super) fn overlay(work: Work<'_>) -> Result<Option<Value>, Error> {
    if wanted(work)? == Seal::Shares {
        return Ok(None);
    }
    Ok(work
        .context
        .references
        .documents(OVERLAY)?
        .into_iter()
        .next())
}

/// The Secret before the release: with the key where there is a static seal, gone where there is none.
pub(super) async fn ensure_secret(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let seal = wanted(work)?;
    if seal == Seal::Shares {
        return Ok(());
    }
    let key = key(work, outcome).await?;
    let change = work
        .context
        .cluster
        .apply_secret(&manifest(&key, seal))
        .await?;
    outcome.changes.extend(change.phrase());
    Ok(())
}

/// Once nothing mounts it any more.
pub(super) async fn remove_secret(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let gone = wanted(work)? == Seal::Shares
        && work
            .context
            .cluster
            .delete("v1", "Secret", Some(names::OPENBAO), SECRET, GONE_WITHIN)
            .await?;
    if gone {
        outcome.changed(format!("removed Secret {}/{SECRET}", names::OPENBAO));
    }
    Ok(())
}

/// The key: the file's, else the Secret's, else a new one. Two different ones are refused: only one opens the data.
async fn key(work: Work<'_>, outcome: &mut Outcome) -> Result<SecretString, Error> {
    let path = work.context.workspace.openbao_seal_key();
    let filed = private_file::read_text(&path)?.map(|text| SecretString::from(text.as_str()));
    let there = work.context.cluster.secret(names::OPENBAO, SECRET).await?;
    let in_cluster = there
        .as_ref()
        .and_then(|secret| secret.text(KEY))
        .map(SecretString::from);
    match (filed, in_cluster) {
        (Some(filed), Some(other)) if filed.expose_secret() != other.expose_secret() => {
            Err(Error::Refused {
                summary: "OpenBao's seal key is known twice".to_owned(),
                expected: format!(
                    "the same key in {} and in Secret {}/{SECRET}",
                    path.display(),
                    names::OPENBAO
                ),
                found: "two different keys; only one of them opens the data".to_owned(),
                hint: format!(
                    "the Secret's is the one that the server started with: if OpenBao is unsealed now, move {0} away and run again, which saves the Secret's to {0}; \
                     else put the right one back from a copy",
                    path.display()
                ),
            })
        }
        (Some(filed), _) => Ok(filed),
        (None, Some(other)) => {
            private_file::write(&path, other.expose_secret().as_bytes())?;
            outcome.changed(format!(
                "saved OpenBao's seal key from the cluster to {}",
                path.display()
            ));
            Ok(other)
        }
        (None, None) => {
            let key = password::generate(LENGTH);
            private_file::write(&path, key.expose_secret().as_bytes())?;
            outcome.changed(format!(
                "chose OpenBao's seal key and wrote it to {}",
                path.display()
            ));
            Ok(key)
        }
    }
}

fn manifest(key: &SecretString, seal: Seal) -> SecretManifest {
    let bytes = |text: &str| Zeroizing::new(text.as_bytes().to_vec());
    SecretManifest {
        namespace: names::OPENBAO.to_owned(),
        name: SECRET.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data: BTreeMap::from([
            (KEY.to_owned(), bytes(key.expose_secret())),
            (STANZA.to_owned(), bytes(&stanza(seal))),
        ]),
    }
}

fn stanza(seal: Seal) -> String {
    let disabled = if seal == Seal::Leaving {
        "  disabled = \"true\"\n"
    } else {
        ""
    };
    format!(
        "seal \"static\" {{\n{disabled}  current_key_id = \"blueprint\"\n  current_key = \"file:///openbao/unseal/{KEY}\"\n}}\n"
    )
}

/// With an active server: whether it has to be started once more to get to the wanted seal. On the way back the key is set aside as soon as the shares seal again.
pub(super) async fn goes_on(
    work: Work<'_>,
    client: &Client,
    outcome: &mut Outcome,
) -> Result<bool, Error> {
    let sealed_by = client.seal_status().await?.kind;
    match (wanted(work)?, sealed_by.as_str()) {
        (Seal::Static, "shamir") => Ok(true),
        (Seal::Leaving, "shamir") => {
            retire_key(work, outcome)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

/// Sets the key's file aside: nothing is sealed with it any more, but a copy of old data may be.
pub(super) fn retire_key(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let path = work.context.workspace.openbao_seal_key();
    if let Some(key) = private_file::read(&path)? {
        private_file::write(&former(&path), &key)?;
        private_file::remove(&path)?;
        outcome.changed(format!(
            "set OpenBao's seal key aside as {}",
            former(&path).display()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_initialised_with_shares_and_then_switched() {
        assert_eq!(decide(true, false, false), Seal::Shares);
        assert_eq!(decide(true, true, false), Seal::Static);
        assert_eq!(decide(true, true, true), Seal::Static);
    }

    #[test]
    fn the_way_back_needs_the_key_until_nothing_is_sealed_with_it() {
        assert_eq!(decide(false, true, true), Seal::Leaving);
        assert_eq!(decide(false, true, false), Seal::Shares);
        // Without the stanza such a server would not even start.
        assert_eq!(decide(false, false, true), Seal::Static);
    }

    #[test]
    fn the_stanza_names_a_file_and_never_the_key() {
        let key = SecretString::from("0123456789abcdef0123456789abcdef");
        for seal in [Seal::Static, Seal::Leaving] {
            let text = stanza(seal);
            assert!(
                text.contains("file:///openbao/unseal/key") && !text.contains(key.expose_secret())
            );
            assert_eq!(text.contains("disabled"), seal == Seal::Leaving);
        }
        let shown = format!("{:?}", manifest(&key, Seal::Static));
        assert!(!shown.contains(key.expose_secret()), "{shown}");
    }
}
