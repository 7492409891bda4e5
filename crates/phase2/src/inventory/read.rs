//! Reads copies: files, Secrets, OpenBao, the snapshot. Whatever cannot be read is told in words beside the others, so that one sealed server hides nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use blueprint_cluster::LocalForward;
use blueprint_cluster::secret::SecretRead;
use blueprint_openbao::{Client, InitFile};
use blueprint_safekeeping::private_file;
use blueprint_safekeeping::snapshot::Snapshot;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use super::known::{Part, Place};
use super::value::Value;
use super::{Copy, CopyState};
use crate::installer::Work;
use crate::minio::storage_secret;
use crate::{names, openbao, persistent_secrets, role_passwords, secret_readers};

/// Opened once for all copies.
pub(super) struct Sources<'a> {
    work: Work<'a>,
    offline: Option<&'a str>,
    bao: Result<(LocalForward, Client), String>,
    snapshot: Result<Option<Snapshot>, String>,
}

impl<'a> Sources<'a> {
    pub(super) async fn open(work: Work<'a>, offline: Option<&'a str>) -> Self {
        let bao = match offline {
            Some(why) => Err(why.to_owned()),
            None => openbao::client(work)
                .await
                .map_err(|error| error.to_string()),
        };
        let snapshot = Snapshot::read(&work.context.workspace.gitlab_snapshot());
        Self {
            work,
            offline,
            bao,
            snapshot: snapshot.map_err(|error| error.to_string()),
        }
    }

    /// Names of chart-managed Secrets that only the cluster or the snapshot knows.
    pub(super) async fn other_chart_secrets(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = match &self.snapshot {
            Ok(Some(snapshot)) => snapshot.secrets.keys().cloned().collect(),
            _ => BTreeSet::new(),
        };
        if self.offline.is_none()
            && let Ok(labelled) = persistent_secrets::labelled(self.work.context).await
        {
            names.extend(labelled);
        }
        names
    }

    pub(super) async fn copy(&self, place: &Place) -> Copy {
        match place {
            Place::File(path, part) => self.file(path, *part),
            Place::Secret(namespace, name, part) => self.secret(namespace, name, *part).await,
            Place::OpenBao(path, key) => self.openbao(path, key).await,
            Place::Snapshot(name, part) => self.snapshot(name, *part),
        }
    }

    fn file(&self, path: &Path, part: Part) -> Copy {
        let shown = path
            .strip_prefix(self.work.context.workspace.root())
            .unwrap_or(path)
            .display();
        let metadata = fs::metadata(path).ok();
        let modified = metadata
            .as_ref()
            .and_then(|metadata| metadata.modified().ok());
        Copy {
            kind: "file",
            place: match part {
                Part::Key(key) => format!("{shown} [{key}]"),
                _ => shown.to_string(),
            },
            state: state(of_file(path, part)),
            mode: metadata.map(|metadata| metadata.permissions().mode() & 0o7777),
            changed: modified.and_then(|time| Timestamp::try_from(time).ok()),
        }
    }

    async fn secret(&self, namespace: &str, name: &str, part: Part) -> Copy {
        let place = match part {
            Part::Key(key) | Part::UrlPassword(key) => {
                format!("Secret {namespace}/{name} [{key}]")
            }
            Part::StorageUser | Part::StoragePassword => {
                format!("Secret {namespace}/{name} [connection]")
            }
            Part::Whole | Part::UnsealKeys => format!("Secret {namespace}/{name}"),
        };
        let mut copy = Copy {
            kind: "secret",
            place,
            state: CopyState::Missing,
            mode: None,
            changed: None,
        };
        if let Some(why) = self.offline {
            copy.state = CopyState::Unknown(why.to_owned());
            return copy;
        }
        let cluster = &self.work.context.cluster;
        let (read, changed) = tokio::join!(
            cluster.secret(namespace, name),
            secret_readers::last_changed(cluster, namespace, name)
        );
        copy.changed = changed.unwrap_or_default();
        copy.state = match read {
            Ok(None) => CopyState::Missing,
            Ok(Some(secret)) => state(of_secret(&secret, part)),
            Err(error) => CopyState::Unknown(error.to_string()),
        };
        copy
    }

    async fn openbao(&self, path: &str, key: &str) -> Copy {
        let mut copy = Copy {
            kind: "openbao",
            place: format!("OpenBao {}/{path} [{key}]", openbao::MOUNT),
            state: CopyState::Missing,
            mode: None,
            changed: None,
        };
        let (_, client) = match &self.bao {
            Ok(open) => open,
            Err(why) => {
                copy.state = CopyState::Unknown(why.clone());
                return copy;
            }
        };
        copy.state = match client.kv_read(openbao::MOUNT, path).await {
            Err(error) => CopyState::Unknown(error.to_string()),
            Ok(data) => match data.as_ref().and_then(|data| data.get(key)) {
                None => CopyState::Missing,
                Some(value) => CopyState::Present(Value::single(value.expose_secret().as_bytes())),
            },
        };
        if matches!(copy.state, CopyState::Present(_)) {
            let written = client.kv_written(openbao::MOUNT, path).await;
            copy.changed = written.ok().flatten().and_then(|time| time.parse().ok());
        }
        copy
    }

    fn snapshot(&self, name: &str, part: Part) -> Copy {
        let path = self.work.context.workspace.gitlab_snapshot();
        let file = self.file(&path, Part::Whole);
        let place = match part {
            Part::Key(key) => format!("{} [{name}: {key}]", file.place),
            _ => format!("{} [{name}]", file.place),
        };
        let state = match &self.snapshot {
            Err(why) => CopyState::Unknown(why.clone()),
            Ok(None) => CopyState::Missing,
            Ok(Some(snapshot)) => match snapshot.secrets.get(name) {
                None => CopyState::Missing,
                Some(kept) => state(of_data(&kept.data, part)),
            },
        };
        Copy {
            kind: "snapshot",
            place,
            state,
            mode: file.mode,
            changed: file.changed,
        }
    }
}

fn state(read: Result<Option<Value>, String>) -> CopyState {
    match read {
        Ok(Some(value)) => CopyState::Present(value),
        Ok(None) => CopyState::Missing,
        Err(why) => CopyState::Unknown(why),
    }
}

fn of_file(path: &Path, part: Part) -> Result<Option<Value>, String> {
    let said = |error: private_file::Error| error.to_string();
    match part {
        Part::UnsealKeys => {
            let init = InitFile::read(path).map_err(said)?;
            Ok(init.map(|init| {
                let named = |(at, key): (usize, &secrecy::SecretString)| {
                    let value = Zeroizing::new(key.expose_secret().as_bytes().to_vec());
                    (format!("key {}", at + 1), value)
                };
                Value::several(init.unseal_keys.iter().enumerate().map(named).collect())
            }))
        }
        Part::Key("root_token") => {
            let init = InitFile::read(path).map_err(said)?;
            Ok(init.map(|init| Value::single(init.root_token.expose_secret().as_bytes())))
        }
        Part::Key(role) => {
            let Some(bytes) = private_file::read(path).map_err(said)? else {
                return Ok(None);
            };
            let passwords = role_passwords::parse(&bytes)?;
            Ok(passwords
                .get(role)
                .map(|password| Value::single(password.as_bytes())))
        }
        _ => Ok(private_file::read(path)
            .map_err(said)?
            .map(|bytes| Value::single(&bytes))),
    }
}

fn of_secret(secret: &SecretRead, part: Part) -> Result<Option<Value>, String> {
    of_data(&secret.data, part)
}

fn of_data(
    data: &BTreeMap<String, Zeroizing<Vec<u8>>>,
    part: Part,
) -> Result<Option<Value>, String> {
    let storage = || {
        let text = std::str::from_utf8(data.get("connection")?).ok()?;
        storage_secret::keys_in_connection(text)
    };
    let plain = |text: secrecy::SecretString| Value::single(text.expose_secret().as_bytes());
    match part {
        Part::Whole | Part::UnsealKeys => Ok(Some(Value::several(data.clone()))),
        Part::Key(key) => Ok(data.get(key).map(|bytes| Value::single(bytes))),
        Part::UrlPassword(key) => {
            let Some(bytes) = data.get(key) else {
                return Ok(None);
            };
            std::str::from_utf8(bytes)
                .ok()
                .and_then(openbao::password_in_url)
                .map(|password| Some(plain(password)))
                .ok_or_else(|| "it holds no PostgreSQL URL with a password".to_owned())
        }
        Part::StorageUser | Part::StoragePassword => match storage() {
            Some(keys) if part == Part::StorageUser => Ok(Some(plain(keys.user))),
            Some(keys) => Ok(Some(plain(keys.password))),
            None => Err(format!(
                "its key `connection` is not what {} has",
                names::RAILS_STORAGE
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(key: &str, value: &str) -> BTreeMap<String, Zeroizing<Vec<u8>>> {
        BTreeMap::from([(key.to_owned(), Zeroizing::new(value.as_bytes().to_vec()))])
    }

    #[test]
    fn a_password_within_a_url_is_compared_decoded() {
        let url = "postgres://openbao:p%40ss%2Fw@host:5432/openbao?sslmode=require";
        let found = of_data(&data("url", url), Part::UrlPassword("url"))
            .unwrap()
            .unwrap();
        assert!(found == Value::single(b"p@ss/w"));
        let why = of_data(&data("url", "hush"), Part::UrlPassword("url")).unwrap_err();
        assert!(!why.contains("hush"), "{why}");
    }

    #[test]
    fn each_roles_line_is_a_credential_and_a_broken_file_is_told_without_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("roles.json");
        private_file::write(&path, br#"{"gitlab": "hush"}"#).unwrap();
        assert!(of_file(&path, Part::Key("gitlab")).unwrap() == Some(Value::single(b"hush")));
        assert!(of_file(&path, Part::Key("openbao")).unwrap().is_none());
        private_file::write(&path, br#"{"gitlab": "hush""#).unwrap();
        let why = of_file(&path, Part::Key("gitlab")).unwrap_err();
        assert!(!why.contains("hush"), "{why}");
    }

    #[test]
    fn a_file_that_is_not_there_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        for part in [Part::Whole, Part::UnsealKeys, Part::Key("root_token")] {
            assert!(of_file(&folder.path().join("x"), part).unwrap().is_none());
        }
    }
}
