//! Step 6: Redis, one server, with a password that we chose.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use blueprint_cluster::ExecOutput;
use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::password;
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

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

const TASK: &str = "redis";
pub(crate) const SECRET: &str = "redis-auth";
pub(crate) const KEY: &str = "redis-password";
const POD: &str = "redis-master-0";
const CONTAINER: &str = "redis";
/// Made by the chart's StatefulSet.
const CLAIM: &str = "redis-data-redis-master-0";
const LENGTH: usize = 40;

const RELEASE: ReleaseSpec = ReleaseSpec {
    key: "redis",
    namespace: names::REDIS,
    skip_crds: false,
    skip_schema_validation: false,
    timeout: Duration::from_mins(5),
};

const MASTER: Workload = Workload {
    kind: "StatefulSet",
    namespace: names::REDIS,
    name: "redis-master",
    pods: "app.kubernetes.io/instance=redis,app.kubernetes.io/component=master",
};

/// Redis.
#[derive(Debug, Clone, Copy)]
pub struct Redis;

/// What Redis said to a password and a PING.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ping {
    /// PONG, with the password.
    Pong,
    /// It runs with another password, or with none.
    WrongPassword,
    /// Something else, for example `LOADING …`.
    Other(String),
}

#[async_trait]
impl Installer for Redis {
    fn id(&self) -> &'static str {
        TASK
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        if password_in_cluster(work).await?.is_none() {
            return Ok(State::Missing);
        }
        release_and_workloads(
            helm_release::inspect(work, &RELEASE).await?,
            &[MASTER],
            work,
        )
        .await
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let mut outcome = Outcome::default();
        outcome
            .changes
            .extend(names::ensure_namespace(&work.context.cluster, names::REDIS).await?);
        let password = settle_password(work, &mut outcome).await?;
        let server = ServerWithSecret {
            release: &RELEASE,
            workload: &MASTER,
            secret: &manifest(&password),
            what: "the new password",
        };
        let refused = async { Ok(answer(work, &password).await? == Ping::WrongPassword) };
        Box::pin(server.ensure(work, &mut outcome, refused)).await?;
        wait_for_pong(work, &password).await?;
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::there(work, &pieces()).await
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        let mut outcome = Outcome::unchanged();
        helm_release::uninstall::check_ours(work, &RELEASE).await?;
        if removal == Removal::Keep {
            let file = work.context.workspace.redis_password();
            let in_cluster = password_in_cluster(work).await?;
            credentials::save_lost("the Redis password", &file, in_cluster, &mut outcome)?;
        }
        removal::remove(work, &pieces(), &mut outcome).await?;
        Ok(outcome)
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![smoke_row::row(row::REDIS, TASK, pong(work).await)]
    }
}

/// The chart leaves its claim behind.
fn pieces() -> [Piece; 5] {
    [
        Piece::Release(RELEASE),
        Piece::Pods {
            namespace: names::REDIS,
            selector: MASTER.pods,
        },
        Piece::claim(names::REDIS, CLAIM),
        Piece::secret(names::REDIS, SECRET),
        Piece::Namespace(names::REDIS),
    ]
}

async fn pong(work: Work<'_>) -> Result<String, Error> {
    let hint = "run `blueprint up --only redis`";
    let Some(password) = password_in_cluster(work).await? else {
        return Err(smoke_row::unexpected(
            "ping Redis",
            format!("no Secret {}/{SECRET}", names::REDIS),
            hint,
        ));
    };
    match ping(work, &password).await? {
        Ping::Pong => Ok("PONG".to_owned()),
        Ping::WrongPassword => Err(smoke_row::unexpected(
            "ping Redis",
            "it runs with another password than its Secret holds",
            hint,
        )),
        Ping::Other(answer) => Err(smoke_row::unexpected("ping Redis", answer, hint)),
    }
}

async fn settle_password(work: Work<'_>, outcome: &mut Outcome) -> Result<SecretString, Error> {
    let in_cluster = password_in_cluster(work).await?;
    let file = work.context.workspace.redis_password();
    credentials::settle(
        credential(work, &file),
        in_cluster,
        || password::generate(LENGTH),
        |candidate| works(work, candidate),
        outcome,
    )
    .await
}

/// For pre-flight: refuses when there are two passwords and Redis takes neither.
pub(crate) async fn try_passwords(work: Work<'_>) -> Result<(), Error> {
    let in_cluster = password_in_cluster(work).await?;
    let file = work.context.workspace.redis_password();
    credentials::try_both(credential(work, &file), in_cluster, |candidate| {
        works(work, candidate)
    })
    .await
}

fn credential<'a>(work: Work<'a>, file: &'a Path) -> Credential<'a> {
    Credential {
        what: "the Redis password",
        file,
        accepted: &work.context.accepted,
    }
}

/// Redis keeps no password in its data, so as long as none runs any value will do.
async fn works(work: Work<'_>, candidate: SecretString) -> Result<bool, Error> {
    if running(work).await? {
        Ok(ping(work, &candidate).await? != Ping::WrongPassword)
    } else {
        Ok(true)
    }
}

/// The password in the Secret; the one GitLab's settings are made from.
pub(crate) async fn password_in_cluster(work: Work<'_>) -> Result<Option<SecretString>, Error> {
    let secret = work.context.cluster.secret(names::REDIS, SECRET).await?;
    Ok(secret.and_then(|secret| {
        let bytes = secret.data.get(KEY)?;
        std::str::from_utf8(bytes).ok().map(SecretString::from)
    }))
}

fn manifest(password: &SecretString) -> SecretManifest {
    SecretManifest {
        namespace: names::REDIS.to_owned(),
        name: SECRET.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data: BTreeMap::from([(
            KEY.to_owned(),
            Zeroizing::new(password.expose_secret().as_bytes().to_vec()),
        )]),
    }
}

async fn running(work: Work<'_>) -> Result<bool, Error> {
    let pods = work.context.cluster.pods(names::REDIS, MASTER.pods).await?;
    Ok(pods.iter().any(|pod| {
        pod.metadata.deletion_timestamp.is_none()
            && pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref())
                == Some("Running")
    }))
}

async fn wait_for_pong(work: Work<'_>, password: &SecretString) -> Result<(), Error> {
    let say = |blocker| work.progress.waiting(blocker);
    let attempt = || async move {
        Ok(match answer(work, password).await {
            Ok(Ping::Pong) => Ok(()),
            Ok(Ping::WrongPassword) => Err("Redis refuses the password".to_owned()),
            Ok(Ping::Other(answer)) => Err(format!("Redis answered {answer}")),
            Err(error) => Err(error.to_string()),
        })
    };
    work.context
        .cluster
        .wait_until(
            "a PONG from Redis",
            Duration::from_mins(1),
            Duration::from_secs(1),
            &say,
            attempt,
        )
        .await?;
    Ok(())
}

/// Whether the running server takes this password. One that does not answer is an error.
pub(crate) async fn takes(work: Work<'_>, password: &SecretString) -> Result<bool, Error> {
    match ping(work, password).await? {
        Ping::Pong => Ok(true),
        Ping::WrongPassword => Ok(false),
        Ping::Other(answer) => Err(smoke_row::unexpected(
            "ping Redis",
            answer,
            "run `blueprint up --only redis`",
        )),
    }
}

/// Lets the running server take `next` as well as `present`. A restart forgets it: then the Secret's one counts alone.
pub(crate) async fn add_password(
    work: Work<'_>,
    present: &SecretString,
    next: &SecretString,
) -> Result<(), Error> {
    let rule = Zeroizing::new(format!(">{}", next.expose_secret()));
    let commands = Zeroizing::new(format!(
        "AUTH {}\nACL SETUSER default {}\n",
        quoted(present.expose_secret()).as_str(),
        quoted(&rule).as_str()
    ));
    let output = tell(work, &commands).await?;
    let answers: Vec<&str> = output.stdout.split_whitespace().collect();
    if answers == ["OK", "OK"] {
        return Ok(());
    }
    // An answer could quote what it was given.
    Err(smoke_row::unexpected(
        "give Redis a second password",
        "it did not answer OK to AUTH and to ACL SETUSER",
        "Redis 6 and later know ACLs: look at its version with `kubectl -n redis exec redis-master-0 -- redis-server --version`",
    ))
}

/// [`ping`], where a pod that cannot be reached for the moment is an answer too.
async fn answer(work: Work<'_>, password: &SecretString) -> Result<Ping, Error> {
    match ping(work, password).await {
        Err(Error::Cluster(error)) => Ok(Ping::Other(error.to_string())),
        other => other,
    }
}

/// AUTH and PING by `redis-cli` in the pod. The commands go in on standard input, so that the password is on no argument list.
async fn ping(work: Work<'_>, password: &SecretString) -> Result<Ping, Error> {
    let commands = Zeroizing::new(format!(
        "AUTH {}\nPING\n",
        quoted(password.expose_secret()).as_str()
    ));
    let output = tell(work, &commands).await?;
    Ok(judge(&output.stdout, &output.stderr))
}

async fn tell(work: Work<'_>, commands: &str) -> Result<ExecOutput, Error> {
    let command = ["redis-cli", "-h", "127.0.0.1", "-p", "6379"];
    let cluster = &work.context.cluster;
    Ok(cluster
        .exec(
            names::REDIS,
            POD,
            Some(CONTAINER),
            &command,
            Some(commands.as_bytes()),
        )
        .await?)
}

fn judge(stdout: &str, stderr: &str) -> Ping {
    let lines: Vec<&str> = stdout
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    if stdout.contains("WRONGPASS") || stdout.contains("without any password configured") {
        return Ping::WrongPassword;
    }
    match lines.as_slice() {
        ["OK", "PONG"] => Ping::Pong,
        [] => Ping::Other(stderr.lines().next_back().unwrap_or("nothing").to_owned()),
        [.., last] => Ping::Other((*last).to_owned()),
    }
}

/// As redis-cli's line reader takes it (`sdssplitargs`): in double quotes, with `\` and `"` escaped.
fn quoted(text: &str) -> Zeroizing<String> {
    let mut quoted = Zeroizing::new(String::with_capacity(text.len() + 2));
    quoted.push('"');
    for character in text.chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pong_counts_only_after_the_password_was_taken() {
        assert_eq!(judge("OK\nPONG\n", ""), Ping::Pong);
        let refused = "WRONGPASS invalid username-password pair or user is disabled.\n\nNOAUTH Authentication required.\n\n";
        assert_eq!(judge(refused, ""), Ping::WrongPassword);
        let open = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?\n\nPONG\n";
        assert_eq!(judge(open, ""), Ping::WrongPassword);
    }

    #[test]
    fn a_server_that_still_loads_is_named() {
        let loading = "OK\nLOADING Redis is loading the dataset in memory\n";
        assert_eq!(
            judge(loading, ""),
            Ping::Other("LOADING Redis is loading the dataset in memory".to_owned())
        );
        let refused = "Could not connect to Redis at 127.0.0.1:6379: Connection refused\n";
        assert_eq!(
            judge("", refused),
            Ping::Other(
                "Could not connect to Redis at 127.0.0.1:6379: Connection refused".to_owned()
            )
        );
    }

    #[test]
    fn a_password_from_an_older_installation_is_quoted_for_the_line_reader() {
        assert_eq!(quoted("plain1").as_str(), "\"plain1\"");
        assert_eq!(quoted(r#"a "b\c"#).as_str(), r#""a \"b\\c""#);
    }
}
