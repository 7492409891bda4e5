//! The server: root keys that we chose, the chart, and a wait that asks S3 (the chart has no probes).

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::password;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::buckets::BUCKETS;
use super::s3::{Keys, PODS, S3, S3Error};
use crate::credentials::{self, Credential};
use crate::error::Error;
use crate::helm_release::{self, ReleaseSpec};
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::removal::{self, Piece, Removal};
use crate::server_with_secret::ServerWithSecret;
use crate::smoke::{CheckResult, row};
use crate::smoke_row;
use crate::workloads::{Workload, release_and_workloads};

const TASK: &str = "minio";
pub(crate) const SECRET: &str = "minio-root";
const USER: &str = "the MinIO root user";
const PASSWORD: &str = "the MinIO root password";
pub(crate) const USER_KEY: &str = "rootUser";
pub(crate) const PASSWORD_KEY: &str = "rootPassword";

const RELEASE: ReleaseSpec = ReleaseSpec {
    key: "minio",
    namespace: names::MINIO,
    skip_crds: false,
    skip_schema_validation: false,
    timeout: Duration::from_mins(5),
};

const SERVER: Workload = Workload {
    kind: "Deployment",
    namespace: names::MINIO,
    name: "minio",
    pods: PODS,
};

/// MinIO.
#[derive(Debug, Clone, Copy)]
pub struct Minio;

#[async_trait]
impl Installer for Minio {
    fn id(&self) -> &'static str {
        TASK
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        if keys_in_cluster(work).await?.is_none() {
            return Ok(State::Missing);
        }
        release_and_workloads(
            helm_release::inspect(work, &RELEASE).await?,
            &[SERVER],
            work,
        )
        .await
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        outcome
            .changes
            .extend(names::ensure_namespace(&work.context.cluster, names::MINIO).await?);
        let keys = settle_keys(work, &mut outcome).await?;
        let server = ServerWithSecret {
            release: &RELEASE,
            workload: &SERVER,
            secret: &manifest(&keys),
            what: "the new root keys",
        };
        let refused = async { Ok(!accepted(work, &keys).await?) };
        Box::pin(server.ensure(work, &mut outcome, refused)).await?;
        wait_for_s3(work, &keys).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::there(work, &pieces()).await
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        let mut outcome = Outcome::unchanged();
        helm_release::uninstall::check_ours(work, &RELEASE).await?;
        if removal == Removal::Keep {
            save_lost_keys(work, &mut outcome).await?;
        }
        removal::remove(work, &pieces(), &mut outcome).await?;
        Ok(outcome)
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![smoke_row::row(row::MINIO, TASK, reachable(work).await)]
    }
}

/// Its claim, and with it the namespace, is step 4's.
fn pieces() -> [Piece; 4] {
    [
        Piece::Release(RELEASE),
        Piece::Pods {
            namespace: names::MINIO,
            selector: SERVER.pods,
        },
        Piece::secret(names::MINIO, SECRET),
        Piece::SharedNamespace(names::MINIO),
    ]
}

async fn save_lost_keys(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let Some(keys) = keys_in_cluster(work).await? else {
        return Ok(());
    };
    let workspace = &work.context.workspace;
    let (user, password) = (workspace.minio_user(), workspace.minio_password());
    credentials::save_lost("MinIO's root user", &user, Some(keys.user), outcome)?;
    credentials::save_lost(
        "MinIO's root password",
        &password,
        Some(keys.password),
        outcome,
    )
}

async fn reachable(work: Work<'_>) -> Result<String, Error> {
    let hint = "run `blueprint up --only minio`";
    let Some(keys) = keys_in_cluster(work).await? else {
        return Err(smoke_row::unexpected(
            "list the buckets",
            format!("no Secret {}/{SECRET}", names::MINIO),
            hint,
        ));
    };
    let found = list(work, &keys)
        .await?
        .map_err(|error| smoke_row::unexpected("list the buckets", error.to_string(), hint))?;
    let ours = BUCKETS.iter().filter(|name| found.contains(**name)).count();
    Ok(format!(
        "ListBuckets answered, {ours} of {} buckets",
        BUCKETS.len()
    ))
}

/// The root keys in the cluster's Secret: what the server was started with.
pub(crate) async fn keys_in_cluster(work: Work<'_>) -> Result<Option<Keys>, Error> {
    let secret = work.context.cluster.secret(names::MINIO, SECRET).await?;
    Ok(secret.and_then(|secret| {
        let text = |key: &str| {
            secret
                .data
                .get(key)
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .map(SecretString::from)
        };
        Some(Keys {
            user: text(USER_KEY)?,
            password: text(PASSWORD_KEY)?,
        })
    }))
}

/// User and password are settled one after the other; each is tried together with the Secret's other half, as the server knows only whole pairs.
async fn settle_keys(work: Work<'_>, outcome: &mut Outcome) -> Result<Keys, Error> {
    let workspace = &work.context.workspace;
    let in_cluster = keys_in_cluster(work).await?;
    let with_password = in_cluster.as_ref().map(|keys| keys.password.clone());
    let user = credentials::settle(
        credential(work, USER, &workspace.minio_user()),
        in_cluster.as_ref().map(|keys| keys.user.clone()),
        || SecretString::from(format!("root-{}", password::generate(12).expose_secret())),
        |user| {
            let password = with_password.clone();
            async move {
                match password {
                    Some(password) => accepted(work, &Keys { user, password }).await,
                    None => Ok(true),
                }
            }
        },
        outcome,
    )
    .await?;
    let password = credentials::settle(
        credential(work, PASSWORD, &workspace.minio_password()),
        in_cluster.map(|keys| keys.password),
        || password::generate(40),
        |password| {
            let user = user.clone();
            async move { accepted(work, &Keys { user, password }).await }
        },
        outcome,
    )
    .await?;
    Ok(Keys { user, password })
}

/// For pre-flight: refuses when there are two passwords and MinIO takes neither. The user is tried with the Secret's password, the password with the Secret's user.
pub(crate) async fn try_passwords(work: Work<'_>) -> Result<(), Error> {
    let Some(there) = keys_in_cluster(work).await? else {
        return Ok(());
    };
    let workspace = &work.context.workspace;
    let Keys { user, password } = &there;
    credentials::try_both(
        credential(work, USER, &workspace.minio_user()),
        Some(user.clone()),
        |user| async move {
            let password = password.clone();
            accepted(work, &Keys { user, password }).await
        },
    )
    .await?;
    credentials::try_both(
        credential(work, PASSWORD, &workspace.minio_password()),
        Some(password.clone()),
        |password| async move {
            let user = user.clone();
            accepted(work, &Keys { user, password }).await
        },
    )
    .await
}

/// Whether the running server takes this password for its root user. One that does not answer is an error.
pub(crate) async fn takes(work: Work<'_>, password: &SecretString) -> Result<bool, Error> {
    let keys = with_password(work, password).await?;
    match list(work, &keys).await? {
        Ok(_) => Ok(true),
        Err(S3Error::Rejected(_)) => Ok(false),
        Err(error) => Err(smoke_row::unexpected(
            "list the buckets",
            error.to_string(),
            "run `blueprint up --only minio`",
        )),
    }
}

/// Puts a password into the server's Secret and starts it anew: it reads its root keys only then.
pub(crate) async fn set_password(work: Work<'_>, password: &SecretString) -> Result<(), Error> {
    let keys = with_password(work, password).await?;
    work.context.cluster.apply_secret(&manifest(&keys)).await?;
    SERVER.restart(work).await?;
    SERVER.wait(work, Duration::from_mins(5)).await
}

/// The root user as it is, with another password.
async fn with_password(work: Work<'_>, password: &SecretString) -> Result<Keys, Error> {
    let present = keys_in_cluster(work).await?.ok_or_else(|| {
        smoke_row::unexpected(
            "read MinIO's root user",
            format!("no Secret {}/{SECRET}", names::MINIO),
            "run `blueprint up --only minio`",
        )
    })?;
    Ok(Keys {
        user: present.user,
        password: password.clone(),
    })
}

fn credential<'a>(work: Work<'a>, what: &'a str, file: &'a Path) -> Credential<'a> {
    Credential {
        what,
        file,
        accepted: &work.context.accepted,
    }
}

/// Whether the running server takes these keys. MinIO keeps its root keys in no data, so while none runs any will do.
async fn accepted(work: Work<'_>, keys: &Keys) -> Result<bool, Error> {
    Ok(!matches!(
        list(work, keys).await?,
        Err(S3Error::Rejected(_))
    ))
}

async fn list(
    work: Work<'_>,
    keys: &Keys,
) -> Result<Result<std::collections::BTreeSet<String>, S3Error>, Error> {
    match S3::open(work, keys).await {
        Ok(Ok(s3)) => Ok(s3.list_buckets().await),
        Ok(Err(error)) => Ok(Err(error)),
        Err(Error::Cluster(error)) => Ok(Err(S3Error::Unreachable(error.to_string()))),
        Err(error) => Err(error),
    }
}

async fn wait_for_s3(work: Work<'_>, keys: &Keys) -> Result<(), Error> {
    let say = |blocker| work.progress.waiting(blocker);
    let attempt = || async move {
        Ok(match list(work, keys).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("MinIO: {error}")),
            Err(error) => Err(error.to_string()),
        })
    };
    work.context
        .cluster
        .wait_until(
            "an answer from MinIO's S3 API",
            Duration::from_mins(2),
            Duration::from_secs(1),
            &say,
            attempt,
        )
        .await?;
    Ok(())
}

fn manifest(keys: &Keys) -> SecretManifest {
    let bytes = |text: &SecretString| Zeroizing::new(text.expose_secret().as_bytes().to_vec());
    SecretManifest {
        namespace: names::MINIO.to_owned(),
        name: SECRET.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data: BTreeMap::from([
            (USER_KEY.to_owned(), bytes(&keys.user)),
            (PASSWORD_KEY.to_owned(), bytes(&keys.password)),
        ]),
    }
}
