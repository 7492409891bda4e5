//! Step 9: a CA, a wildcard certificate, and the Secrets that listeners name.
//!
//! The files in infra/tls/wildcard are the truth; the CA's key never enters the cluster. Everything else follows from them.

mod inspect;
mod mint;
mod rotate;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use blueprint_cluster::secret::SecretManifest;
use blueprint_pipeline::Outcome;
use blueprint_safekeeping::private_file;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::Error;
use crate::installer::{Installer, State, Work};
use crate::names;
use crate::removal::{self, Piece, Removal};
use crate::smoke::{CheckResult, row};
use crate::workspace::Workspace;

use inspect::{Decision, Files};
pub(crate) use rotate::rotate;

/// The Secrets made from the certificate. The GitLab chart's listeners name `<listener>-tls` (values.yaml, gatewayApiResources.gateway.listeners), MinIO's listener is
/// ours, and `gitlab-wildcard-tls` switches the chart's self-signed job off. A list rather than a render of the chart: rendering takes a second on every
/// run, and `blueprint values validate` compares this list with what the render names.
pub const SECRETS: [&str; 6] = [
    "gitlab-wildcard-tls",
    "gitlab-tls",
    "registry-tls",
    "kas-tls",
    "minio-tls",
    "openbao-tls",
];

/// The four that the smoke table asks for.
const LISTENER_ROW: [&str; 4] = [
    "gitlab-wildcard-tls",
    "registry-tls",
    "kas-tls",
    "minio-tls",
];

const TLS: &str = "kubernetes.io/tls";

/// The installer of task `wildcard-certs`.
#[derive(Debug, Clone, Copy, Default)]
pub struct WildcardCerts;

#[async_trait]
impl Installer for WildcardCerts {
    fn id(&self) -> &'static str {
        "wildcard-certs"
    }

    async fn inspect(&self, work: Work<'_>) -> Result<State, Error> {
        let files = read(&work.context.workspace)?;
        match inspect::decide(&files, &work.context.settings.domain, now()) {
            Decision::Mint => return Ok(State::Missing),
            Decision::Renew { why } => {
                return Ok(State::Outdated(vec![format!(
                    "the wildcard certificate: {why}"
                )]));
            }
            Decision::RestoreCa(_) => {
                return Ok(State::Outdated(vec!["ca.pem is missing".to_owned()]));
            }
            Decision::Refuse { expected, found } => {
                return Ok(State::Broken(format!("expected {expected}; {found}")));
            }
            Decision::Use { .. } => {}
        }
        let mut differs = Vec::new();
        for manifest in manifests(&files) {
            match work
                .context
                .cluster
                .secret(names::GITLAB, &manifest.name)
                .await?
            {
                None => differs.push(format!("Secret {} is missing", manifest.name)),
                Some(live) if live.data != manifest.data => differs.push(format!(
                    "Secret {} holds another certificate",
                    manifest.name
                )),
                Some(_) => {}
            }
        }
        Ok(if differs.is_empty() {
            State::Ready
        } else {
            State::Outdated(differs)
        })
    }

    async fn install(&self, work: Work<'_>) -> Result<Outcome, Error> {
        let context = work.context;
        let mut outcome = Outcome::unchanged();
        let mut files = read(&context.workspace)?;
        if files.serve_nobody() {
            save_from_cluster(context, &mut files, &mut outcome).await?;
        }
        let files = settle(context, files, &mut outcome)?;
        outcome
            .changes
            .extend(names::ensure_namespace(&context.cluster, names::GITLAB).await?);
        for manifest in manifests(&files) {
            // The type of a Secret cannot be changed; one of another type holds nothing that the files do not.
            if let Some(live) = context
                .cluster
                .secret(names::GITLAB, &manifest.name)
                .await?
                && live.kind != TLS
            {
                context
                    .cluster
                    .delete(
                        "v1",
                        "Secret",
                        Some(names::GITLAB),
                        &manifest.name,
                        Duration::from_secs(30),
                    )
                    .await?;
                outcome.changed(format!(
                    "removed Secret {} of type {}",
                    manifest.name, live.kind
                ));
            }
            outcome
                .changes
                .extend(context.cluster.apply_secret(&manifest).await?.phrase());
        }
        Ok(outcome)
    }

    async fn remains(&self, work: Work<'_>, _removal: Removal) -> Result<Vec<String>, Error> {
        removal::there(work, &pieces()).await
    }

    async fn uninstall(&self, work: Work<'_>, removal: Removal) -> Result<Outcome, Error> {
        let context = work.context;
        let mut outcome = Outcome::unchanged();
        let mut files = read(&context.workspace)?;
        if removal == Removal::Keep && files.serve_nobody() {
            save_from_cluster(context, &mut files, &mut outcome).await?;
        }
        removal::remove(work, &pieces(), &mut outcome).await?;
        Ok(outcome)
    }

    async fn smoke(&self, work: Work<'_>) -> Vec<CheckResult> {
        vec![
            CheckResult::from_result(row::WILDCARD_CA, on_disk(work.context)),
            CheckResult::from_result(row::LISTENER_SECRETS, listener_secrets(work.context).await),
        ]
    }
}

fn pieces() -> Vec<Piece> {
    let secrets = SECRETS.map(|name| Piece::secret(names::GITLAB, name));
    secrets
        .into_iter()
        .chain([Piece::SharedNamespace(names::GITLAB)])
        .collect()
}

/// The CA that signs every public name, for those who must trust it (containerd, HTTP checks).
pub fn ca_pem(workspace: &Workspace) -> Result<String, Error> {
    read(workspace)?.ca.ok_or_else(|| Error::Failed {
        action: "read the CA".to_owned(),
        found: format!("there is no {}", path(workspace, "ca.pem").display()),
        hint: "run `blueprint up --only wildcard-certs`".to_owned(),
    })
}

/// For pre-flight: the refusal of step 9, where the files do not fit together. Nothing is changed.
pub(crate) fn check(workspace: &Workspace, domain: &str) -> Result<(), Error> {
    match inspect::decide(&read(workspace)?, domain, now()) {
        Decision::Refuse { expected, found } => Err(refusal(workspace, expected, found)),
        _ => Ok(()),
    }
}

/// Seconds until the certificate on disk becomes valid (0 when it is); `None` when there is none that can be read.
pub(crate) fn starts_in(workspace: &Workspace) -> Option<i64> {
    let certificate = read(workspace).ok()?.certificate?;
    let facts = inspect::facts(&certificate).ok()?;
    Some((facts.not_before - now()).max(0))
}

fn path(workspace: &Workspace, name: &str) -> PathBuf {
    workspace.wildcard().join(name)
}

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn read(workspace: &Workspace) -> Result<Files, Error> {
    let text = |name: &str| private_file::read_text(&path(workspace, name));
    // The line end that reading takes off is part of PEM text.
    let whole = |name: &str| -> Result<Option<Zeroizing<String>>, Error> {
        Ok(text(name)?.map(|text| Zeroizing::new(format!("{}\n", text.trim_end()))))
    };
    Ok(Files {
        ca: whole("ca.pem")?.map(|text| text.to_string()),
        ca_key: whole("ca-key.pem")?,
        certificate: whole("cert.pem")?.map(|text| text.to_string()),
        key: whole("key.pem")?,
    })
}

/// Brings the files to a usable state and answers them. Written in this order: CA key, CA, leaf key, leaf. A run that is cut off in between finds a state that
/// [`inspect::decide`] knows how to go on from.
fn settle(context: &Context, mut files: Files, outcome: &mut Outcome) -> Result<Files, Error> {
    let (workspace, domain) = (&context.workspace, &context.settings.domain);
    loop {
        match inspect::decide(&files, domain, now()) {
            Decision::Use { note } => {
                outcome.notes.extend(note);
                return Ok(files);
            }
            Decision::RestoreCa(ca) => {
                private_file::write(&path(workspace, "ca.pem"), ca.as_bytes())?;
                outcome.changed("wrote ca.pem from cert.pem's chain");
                files.ca = Some(ca);
            }
            Decision::Mint => {
                let ca = mint::ca(domain, files.ca_key.as_ref().map(|key| key.as_str()), now())?;
                private_file::write(&path(workspace, "ca-key.pem"), ca.key.as_bytes())?;
                private_file::write(&path(workspace, "ca.pem"), ca.certificate.as_bytes())?;
                outcome.changed(format!("minted a CA for {domain}"));
                outcome.note(format!(
                    "add {} to your trust store to open https://gitlab.{domain} without a warning",
                    path(workspace, "ca.pem").display()
                ));
                files.ca = Some(ca.certificate);
                files.ca_key = Some(ca.key);
            }
            Decision::Renew { why } => {
                renew(workspace, domain, &mut files)?;
                outcome.changed(format!(
                    "minted a certificate for *.{domain} with the same CA ({why})"
                ));
            }
            Decision::Refuse { expected, found } => {
                return Err(refusal(workspace, expected, found));
            }
        }
    }
}

fn renew(workspace: &Workspace, domain: &str, files: &mut Files) -> Result<(), Error> {
    let (Some(ca), Some(ca_key)) = (&files.ca, &files.ca_key) else {
        return Err(refusal(
            workspace,
            "ca.pem and ca-key.pem".to_owned(),
            "one of them is missing".to_owned(),
        ));
    };
    let until = inspect::facts(ca)
        .map_err(|found| refusal(workspace, "a certificate in ca.pem".to_owned(), found))?
        .not_after;
    let leaf = mint::leaf(domain, ca, ca_key, until, now())?;
    private_file::write(&path(workspace, "key.pem"), leaf.key.as_bytes())?;
    private_file::write(&path(workspace, "cert.pem"), leaf.certificate.as_bytes())?;
    files.certificate = Some(leaf.certificate);
    files.key = Some(leaf.key);
    Ok(())
}

fn refusal(workspace: &Workspace, expected: String, found: String) -> Error {
    let folder = workspace.wildcard();
    Error::Refused {
        summary: format!(
            "the certificates in {} do not fit together",
            folder.display()
        ),
        expected,
        found,
        hint: format!(
            "either put the right files back from your copy, or move the folder away (`mv {0} {0}.old`) and run `blueprint up --only wildcard-certs`: a new CA is minted then, \
             and everybody who trusted the old one has to trust the new one",
            folder.display()
        ),
    }
}

/// No files (or only the first ones of a run that was cut off in here), but perhaps a certificate in the cluster: it is saved before anything else. The CA's
/// key was never there. Files that hold something else than the cluster are left to the decision.
async fn save_from_cluster(
    context: &Context,
    files: &mut Files,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let Some(secret) = context.cluster.secret(names::GITLAB, SECRETS[0]).await? else {
        return Ok(());
    };
    let text = |key: &str| {
        secret
            .data
            .get(key)
            .and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
            .map(Zeroizing::new)
    };
    let (certificate, key) = (text("tls.crt"), text("tls.key"));
    let ca = text("ca.crt").map(|ca| ca.to_string()).or_else(|| {
        certificate
            .as_ref()
            .and_then(|chain| inspect::ca_of_chain(chain))
    });
    let ca = ca.or_else(|| files.ca.clone());
    let (Some(certificate), Some(key), Some(ca)) = (certificate, key, ca) else {
        return Err(Error::Refused {
            summary:
                "the wildcard certificate is in the cluster, but not on disk, and its CA is nowhere"
                    .to_owned(),
            expected: format!(
                "ca.pem, cert.pem and key.pem in {}",
                context.workspace.wildcard().display()
            ),
            found: format!("Secret {}/{} without the CA", names::GITLAB, SECRETS[0]),
            hint: format!(
                "put the files back from your copy; or, to mint a new CA, delete the Secret (`kubectl -n {} delete secret {}`) and run `blueprint up --only wildcard-certs`",
                names::GITLAB,
                SECRETS[0]
            ),
        });
    };
    let same = |there: Option<&str>, live: &str| {
        there.is_none_or(|there| there.trim_end() == live.trim_end())
    };
    if !same(files.ca.as_deref(), &ca)
        || !same(files.certificate.as_deref(), &certificate)
        || !same(files.key.as_ref().map(|key| key.as_str()), &key)
    {
        return Ok(());
    }
    let workspace = &context.workspace;
    private_file::write(&path(workspace, "ca.pem"), ca.as_bytes())?;
    private_file::write(&path(workspace, "key.pem"), key.as_bytes())?;
    private_file::write(&path(workspace, "cert.pem"), certificate.as_bytes())?;
    outcome.changed(format!(
        "saved the wildcard certificate from Secret {}/{}",
        names::GITLAB,
        SECRETS[0]
    ));
    outcome.note("the CA's key is lost: this certificate serves until it runs out, then a new CA is needed (move infra/tls/wildcard away and run `up`)");
    *files = Files {
        ca: Some(ca),
        ca_key: files.ca_key.take(),
        certificate: Some(certificate.to_string()),
        key: Some(key),
    };
    Ok(())
}

fn manifests(files: &Files) -> Vec<SecretManifest> {
    let (Some(ca), Some(certificate), Some(key)) = (&files.ca, &files.certificate, &files.key)
    else {
        return Vec::new();
    };
    let data: BTreeMap<String, Zeroizing<Vec<u8>>> = [
        ("tls.crt", certificate.as_bytes()),
        ("tls.key", key.as_bytes()),
        ("ca.crt", ca.as_bytes()),
    ]
    .into_iter()
    .map(|(name, bytes)| (name.to_owned(), Zeroizing::new(bytes.to_vec())))
    .collect();
    SECRETS
        .iter()
        .map(|name| SecretManifest {
            namespace: names::GITLAB.to_owned(),
            name: (*name).to_owned(),
            kind: TLS.to_owned(),
            labels: BTreeMap::new(),
            data: data.clone(),
        })
        .collect()
}

fn on_disk(context: &Context) -> Result<String, String> {
    let files = read(&context.workspace).map_err(|error| error.to_string())?;
    match inspect::decide(&files, &context.settings.domain, now()) {
        Decision::Use { .. } => {}
        Decision::Refuse { expected, found } => {
            return Err(format!("expected {expected}; {found}"));
        }
        Decision::Renew { why } => return Err(format!("the certificate is due: {why}")),
        Decision::Mint | Decision::RestoreCa(_) => {
            return Err(format!(
                "ca.pem is missing in {}",
                context.workspace.wildcard().display()
            ));
        }
    }
    let until = inspect::facts(files.certificate.as_deref().unwrap_or_default())?.not_after;
    Ok(format!(
        "ca.pem, cert.pem, key.pem fit together, valid until {}",
        inspect::date(until)
    ))
}

async fn listener_secrets(context: &Context) -> Result<String, String> {
    let mut missing = Vec::new();
    for name in LISTENER_ROW {
        match context.cluster.secret(names::GITLAB, name).await {
            Ok(Some(secret))
                if secret.data.contains_key("tls.crt") && secret.data.contains_key("tls.key") => {}
            Ok(Some(_)) => missing.push(format!("{name} lacks tls.crt or tls.key")),
            Ok(None) => missing.push(format!("{name} is missing")),
            Err(error) => return Err(error.to_string()),
        }
    }
    if missing.is_empty() {
        Ok(LISTENER_ROW.join(", "))
    } else {
        Err(missing.join("; "))
    }
}
