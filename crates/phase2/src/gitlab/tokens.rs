//! The tokens that GitLab's parts know each other by, chosen here before the install. The chart's shared-secrets job would mint them with
//! `kubectl create secret --from-literal`, where every process list on the node shows them; it keeps those that it finds.
//! Names, keys and forms: `templates/shared-secrets/_generate_secrets.sh.tpl` of the chart.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::password;
use secrecy::ExposeSecret;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::installer::Work;
use crate::names;

/// How a value is made of random characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Letters and digits, this many.
    Plain(usize),
    /// The same in base64.
    Encoded(usize),
    /// A JSON list of one such value.
    Listed(usize),
}

/// Secret, key, form.
const TOKENS: [(&str, &str, Form); 10] = [
    ("gitlab-gitlab-shell-secret", "secret", Form::Plain(64)),
    ("gitlab-gitaly-secret", "token", Form::Plain(64)),
    (RUNNER, "runner-registration-token", Form::Plain(64)),
    (
        "gitlab-gitlab-kas-secret",
        "kas_shared_secret",
        Form::Encoded(32),
    ),
    (
        "gitlab-kas-private-api",
        "kas_private_api_secret",
        Form::Encoded(32),
    ),
    // 72 bytes, as HS512 wants at least 64.
    (
        "gitlab-kas-websocket-token",
        "kas_websocket_token_secret",
        Form::Encoded(72),
    ),
    (
        "gitlab-gitlab-workhorse-secret",
        "shared_secret",
        Form::Encoded(32),
    ),
    ("gitlab-registry-httpsecret", "secret", Form::Encoded(128)),
    ("gitlab-registry-notification", "secret", Form::Listed(32)),
    ("gitlab-openbao-audit-secret", "token", Form::Plain(32)),
];
/// The job expects a second key in this one, empty.
const RUNNER: &str = "gitlab-gitlab-runner-secret";

/// Makes those that are missing; one that exists is never touched, running data may depend on it.
pub(super) async fn ensure(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let cluster = &work.context.cluster;
    for (name, key, form) in TOKENS {
        if cluster.secret(names::GITLAB, name).await?.is_none() {
            let made = cluster.apply_secret(&manifest(name, key, form)).await?;
            outcome.changes.extend(made.phrase());
        }
    }
    Ok(())
}

fn manifest(name: &str, key: &str, form: Form) -> SecretManifest {
    let mut data = BTreeMap::from([(key.to_owned(), value(form))]);
    if name == RUNNER {
        data.insert("runner-token".to_owned(), Zeroizing::default());
    }
    SecretManifest {
        namespace: names::GITLAB.to_owned(),
        name: name.to_owned(),
        kind: "Opaque".to_owned(),
        labels: BTreeMap::new(),
        data,
    }
}

fn value(form: Form) -> Zeroizing<Vec<u8>> {
    let (Form::Plain(length) | Form::Encoded(length) | Form::Listed(length)) = form;
    let random = password::generate(length);
    let random = random.expose_secret();
    Zeroizing::new(
        match form {
            Form::Plain(_) => random.to_owned(),
            Form::Encoded(_) => STANDARD.encode(random),
            Form::Listed(_) => format!("[\"{random}\"]"),
        }
        .into_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::persistent_secrets::GENERATED;

    #[test]
    fn every_token_is_one_that_the_job_makes_and_the_snapshot_keeps() {
        for (name, _, _) in TOKENS {
            assert!(GENERATED.contains(&name), "{name}");
        }
    }

    #[test]
    fn values_have_the_forms_that_the_chart_gives_them() {
        let text = |form| String::from_utf8(value(form).to_vec()).unwrap();
        assert_eq!(text(Form::Plain(64)).len(), 64);
        assert_eq!(STANDARD.decode(text(Form::Encoded(72))).unwrap().len(), 72);
        let list: Vec<String> = serde_json::from_str(&text(Form::Listed(32))).unwrap();
        assert_eq!((list.len(), list[0].len()), (1, 32));
        assert_ne!(text(Form::Plain(32)), text(Form::Plain(32)));
    }

    #[test]
    fn the_runners_secret_has_both_keys() {
        let made = manifest(RUNNER, "runner-registration-token", Form::Plain(64));
        assert_eq!(
            made.data.keys().collect::<Vec<_>>(),
            ["runner-registration-token", "runner-token"]
        );
        assert!(made.data["runner-token"].is_empty());
    }
}
