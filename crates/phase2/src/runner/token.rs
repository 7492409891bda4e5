//! Where the runner's authentication token comes from: OpenBao, else the database by description, else a new runner.

use std::time::Duration;

use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};

use crate::error::Error;
use crate::installer::Work;
use crate::names;
use crate::openbao;

/// The description a runner is found again by, whatever the cluster is called: the database outlives it.
pub(super) const DESCRIPTION: &str = "blueprint-kubernetes";
/// Path under `secret/`.
pub(crate) const KV_PATH: &str = "gitlab/runner";
/// The specified key; it holds an authentication token, because registration tokens answer 410 Gone.
pub(crate) const KV_KEY: &str = "registration_token";
/// Booting Rails takes up to a minute, on a busy machine more.
const RAILS: Duration = Duration::from_mins(5);
const BEGIN: &str = "<<<blueprint-token:";
const END: &str = ":blueprint-token>>>";

/// Looks by description before anything is created; diagnostics go to stderr, chatter on stdout is cut away by the sentinels. `CreateRunnerService` answers a
/// `ServiceResponse` (GitLab, `app/services/ci/runners/create_runner_service.rb`).
fn script() -> String {
    format!(
        r#"description = "{DESCRIPTION}"
runner = ::Ci::Runner.find_by(description: description)
created = "found"
if runner.nil?
  root = ::User.find_by(username: "root")
  abort "there is no user root" if root.nil?
  params = {{ runner_type: "instance_type", description: description, tag_list: ["kubernetes"], run_untagged: true }}
  response = ::Ci::Runners::CreateRunnerService.new(user: root, params: params).execute
  abort "runner not created: #{{response.message}}" unless response.success?
  runner = response.payload[:runner]
  created = "created"
end
puts "{BEGIN}#{{created}}:#{{runner.token}}{END}"
"#
    )
}

/// A token and where it came from.
pub(super) struct Found {
    /// `glrt-…`.
    pub(super) token: SecretString,
    /// Whether a new runner was created.
    pub(super) created: bool,
}

/// What OpenBao holds.
pub(super) async fn kept(work: Work<'_>) -> Result<Option<SecretString>, Error> {
    let (_forward, client) = openbao::client(work).await?;
    let data = client.kv_read(openbao::MOUNT, KV_PATH).await?;
    Ok(data
        .and_then(|data| data.get(KV_KEY).cloned())
        .filter(|token| !token.expose_secret().is_empty()))
}

/// Keeps the token, beside whatever else stands at that path (a write replaces all keys).
pub(super) async fn keep(work: Work<'_>, token: &SecretString) -> Result<(), Error> {
    let (_forward, client) = openbao::client(work).await?;
    let mut data = client
        .kv_read(openbao::MOUNT, KV_PATH)
        .await?
        .unwrap_or_default();
    data.insert(KV_KEY.to_owned(), token.clone());
    client.kv_write(openbao::MOUNT, KV_PATH, &data).await?;
    Ok(())
}

/// Asks the server whether a token is valid: `POST /api/v4/runners/verify` answers 200 or 403. The system id keeps this check apart from the runner's own process in
/// the list of its managers.
pub(super) async fn verifies(work: Work<'_>, token: &SecretString) -> Result<bool, Error> {
    let cluster = &work.context.cluster;
    let Some(pod) = cluster
        .ready_pod(names::GITLAB, "app=webservice,release=gitlab")
        .await?
    else {
        return Err(unverified("no webservice pod is ready"));
    };
    let forward = cluster.port_forward(names::GITLAB, &pod, 8181).await?;
    let http = reqwest::Client::builder()
        .no_proxy()
        .timeout(Duration::from_mins(1))
        .build()
        .map_err(|error| unverified(&error.without_url().to_string()))?;
    let body = serde_json::json!({"token": token.expose_secret(), "system_id": "blueprint"});
    let answer = http
        .post(format!(
            "http://{}/api/v4/runners/verify",
            forward.address()
        ))
        .json(&body)
        .send()
        .await
        .map_err(|error| unverified(&error.without_url().to_string()))?;
    judge(answer.status()).map_err(|found| unverified(&found))
}

fn judge(status: StatusCode) -> Result<bool, String> {
    match status {
        status if status.is_success() => Ok(true),
        // 404 and 410 are what a token of the withdrawn kind gets.
        StatusCode::FORBIDDEN
        | StatusCode::UNAUTHORIZED
        | StatusCode::NOT_FOUND
        | StatusCode::GONE => Ok(false),
        other => Err(format!("the server answered {other}")),
    }
}

fn unverified(found: &str) -> Error {
    Error::Failed {
        action: "verify the runner's token".to_owned(),
        found: found.to_owned(),
        hint: "look at `kubectl -n gitlab get pods -l app=webservice` and their logs".to_owned(),
    }
}

/// Finds or creates the runner through Rails in the toolbox. The script goes in by stdin: nothing of it shows in an argument list.
pub(super) async fn from_rails(work: Work<'_>) -> Result<Found, Error> {
    let cluster = &work.context.cluster;
    let failed = |found: String| {
        Error::Failed {
        action: "ask GitLab for the runner's token".to_owned(),
        found,
        hint: "try `kubectl -n gitlab exec deploy/gitlab-toolbox -- gitlab-rails runner 'puts 1'`; then run `blueprint up --only runner`".to_owned(),
    }
    };
    let Some(pod) = cluster
        .ready_pod(names::GITLAB, "app=toolbox,release=gitlab")
        .await?
    else {
        return Err(failed("no toolbox pod is ready".to_owned()));
    };
    work.progress.say(format!(
        "asking Rails for the runner {DESCRIPTION} (takes up to a minute)"
    ));
    let script = script();
    let exec = cluster.exec(
        names::GITLAB,
        &pod,
        Some("toolbox"),
        &["gitlab-rails", "runner", "-"],
        Some(script.as_bytes()),
    );
    let output = tokio::time::timeout(RAILS, exec).await.map_err(|_| {
        failed(format!(
            "gitlab-rails did not end within {}s",
            RAILS.as_secs()
        ))
    })??;
    if output.code != 0 {
        let said = output
            .stderr
            .lines()
            .rev()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or("nothing")
            .to_owned();
        return Err(failed(format!(
            "gitlab-rails ended with {} and said: {said}",
            output.code
        )));
    }
    parse(&output.stdout).ok_or_else(|| failed("its answer holds no token".to_owned()))
}

fn parse(stdout: &str) -> Option<Found> {
    let (_, rest) = stdout.split_once(BEGIN)?;
    let (value, _) = rest.split_once(END)?;
    let (how, token) = value.split_once(':')?;
    let plain = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    plain.then(|| Found {
        token: SecretString::from(token.to_owned()),
        created: how == "created",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_cut_out_of_rails_chatter() {
        let found = parse(
            "warning: x\n<<<blueprint-token:created:glrt-t1_abcDEF-123:blueprint-token>>>\nbye",
        )
        .expect("a token");
        assert_eq!(found.token.expose_secret(), "glrt-t1_abcDEF-123");
        assert!(found.created);
        assert!(
            !parse("<<<blueprint-token:found:glrt-x:blueprint-token>>>")
                .expect("a token")
                .created
        );
    }

    #[test]
    fn chatter_without_a_token_is_no_token() {
        for text in [
            "",
            "glrt-abc",
            "<<<blueprint-token:created::blueprint-token>>>",
            "<<<blueprint-token:created:glrt-abc",
            "<<<blueprint-token:a:b c:blueprint-token>>>",
        ] {
            assert!(parse(text).is_none(), "{text}");
        }
    }

    #[test]
    fn the_script_looks_before_it_creates_and_holds_no_secret() {
        let script = script();
        let look = script.find("find_by(description").expect("looks");
        assert!(look < script.find("CreateRunnerService").expect("creates"));
        assert!(
            script.contains(
                "puts \"<<<blueprint-token:#{created}:#{runner.token}:blueprint-token>>>\""
            )
        );
    }

    #[test]
    fn a_gone_token_is_replaced_and_a_sick_server_is_not_blamed_on_the_token() {
        assert_eq!(judge(StatusCode::OK), Ok(true));
        assert_eq!(judge(StatusCode::FORBIDDEN), Ok(false));
        assert_eq!(judge(StatusCode::GONE), Ok(false));
        assert!(judge(StatusCode::BAD_GATEWAY).is_err());
        assert!(judge(StatusCode::INTERNAL_SERVER_ERROR).is_err());
    }
}
