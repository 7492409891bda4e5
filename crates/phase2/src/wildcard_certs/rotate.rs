//! `blueprint secrets rotate wildcard`: a new key and certificate from the same CA. Whoever trusts the CA notices nothing; the former certificate stays valid until
//! it runs out, as every certificate does that is not revoked, and its key is gone.

use std::time::Duration;

use blueprint_pipeline::Outcome;
use blueprint_safekeeping::private_file;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::inspect::{self, Decision, Files};
use super::{WildcardCerts, mint, now, path, read, refusal};
use crate::error::Error;
use crate::gitlab;
use crate::installer::{Installer as _, Work};
use crate::rotation::pending::{self, Pending, Stage};
use crate::rotation::{Target, pending_file};

/// Envoy takes a changed Secret within seconds.
const SERVED: Duration = Duration::from_mins(2);
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Rotates, or ends what an earlier run began.
pub(crate) async fn rotate(work: Work<'_>, outcome: &mut Outcome) -> Result<(), Error> {
    let workspace = &work.context.workspace;
    let file = pending_file(workspace, Target::Wildcard);
    let files = read(workspace)?;
    let present = joined(&files);
    let pending = match pending::stage(&file, &present)? {
        Stage::Begun(pending) | Stage::Committed(pending) => pending,
        Stage::None | Stage::Overtaken => {
            let pending = Pending {
                next: mint_next(work, &files)?,
                former: present,
            };
            pending::write(&file, &pending)?;
            pending
        }
    };
    put(work, &pending.next)?;
    let installed = WildcardCerts.install(work).await?;
    outcome.changed(format!(
        "minted a new key and certificate for *.{}",
        work.context.settings.domain
    ));
    outcome.changes.extend(installed.changes);
    outcome.notes.extend(installed.notes);
    if !gitlab::serves(work).await? {
        outcome.note("no Gateway runs that could show it");
    } else if let Err(error) = wait_served(work, &pending.next).await {
        work.progress
            .say("that did not work: bringing the former one back");
        put(work, &pending.former)?;
        WildcardCerts.install(work).await?;
        private_file::remove(&file)?;
        return Err(error);
    } else {
        outcome.note("the Gateway shows the new certificate");
    }
    private_file::remove(&file)?;
    Ok(())
}

/// A new pair that fits the CA, judged as step 9 would judge it.
fn mint_next(work: Work<'_>, files: &Files) -> Result<SecretString, Error> {
    let context = work.context;
    let (workspace, domain) = (&context.workspace, &context.settings.domain);
    let refused = |expected: &str, found: String| refusal(workspace, expected.to_owned(), found);
    let (Some(ca), Some(ca_key)) = (&files.ca, &files.ca_key) else {
        return Err(refused(
            "ca.pem and ca-key.pem, to sign a new certificate with",
            "one of them is missing".to_owned(),
        ));
    };
    let until = inspect::facts(ca)
        .map_err(|found| refused("a certificate in ca.pem", found))?
        .not_after;
    let leaf = mint::leaf(domain, ca, ca_key, until, now())?;
    let mut wanted = files.clone();
    wanted.certificate = Some(leaf.certificate);
    wanted.key = Some(leaf.key);
    match inspect::decide(&wanted, domain, now()) {
        Decision::Use { .. } => Ok(joined(&wanted)),
        Decision::Refuse { expected, found } => Err(refused(&expected, found)),
        Decision::Renew { why } => Err(refused("a CA that can sign for this domain", why)),
        Decision::Mint | Decision::RestoreCa(_) => Err(refused(
            "ca.pem, to sign a new certificate with",
            "none that can be used".to_owned(),
        )),
    }
}

/// Key first, as step 9 writes them: a cut in between is one that it knows.
fn put(work: Work<'_>, pair: &SecretString) -> Result<(), Error> {
    let text = pair.expose_secret();
    let (key, certificate) = text.split_at(text.find(CERTIFICATE).unwrap_or(text.len()));
    let workspace = &work.context.workspace;
    private_file::write(&path(workspace, "key.pem"), key.as_bytes())?;
    private_file::write(&path(workspace, "cert.pem"), certificate.as_bytes())?;
    Ok(())
}

/// Key and certificate as one text.
fn joined(files: &Files) -> SecretString {
    let key = files.key.as_ref().map_or("", |key| key.as_str());
    let certificate = files.certificate.as_deref().unwrap_or_default();
    let text = Zeroizing::new(format!("{key}{certificate}"));
    SecretString::from(text.as_str())
}

async fn wait_served(work: Work<'_>, pair: &SecretString) -> Result<(), Error> {
    let text = pair.expose_secret();
    let from = text.find(CERTIFICATE).unwrap_or(text.len());
    let wanted = CertificateDer::from_pem_slice(&text.as_bytes()[from..]).map_err(|_| {
        refusal(
            &work.context.workspace,
            "a certificate in cert.pem".to_owned(),
            "something else".to_owned(),
        )
    })?;
    let wanted: &[u8] = wanted.as_ref();
    let host = format!("gitlab.{}", work.context.settings.domain);
    let host = host.as_str();
    let say = |blocker| work.progress.waiting(blocker);
    let attempt = || async move {
        Ok(match gitlab::served_certificate(work, host).await {
            Ok(served) if served == wanted => Ok(()),
            Ok(_) => Err(format!("{host} still shows the former certificate")),
            Err(error) => Err(error.to_string()),
        })
    };
    let cluster = &work.context.cluster;
    cluster
        .wait_until(
            "the Gateway to show the new certificate",
            SERVED,
            Duration::from_secs(1),
            &say,
            attempt,
        )
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_put_back_as_it_was() {
        let ca = mint::ca("example.net", None, 1_800_000_000).unwrap();
        let leaf = mint::leaf(
            "example.net",
            &ca.certificate,
            &ca.key,
            1_900_000_000,
            1_800_000_000,
        )
        .unwrap();
        let files = Files {
            certificate: Some(leaf.certificate.clone()),
            key: Some(leaf.key.clone()),
            ..Files::default()
        };
        let joined = joined(&files);
        let text = joined.expose_secret();
        let at = text.find(CERTIFICATE).unwrap();
        assert_eq!(&text[..at], leaf.key.as_str());
        assert_eq!(&text[at..], leaf.certificate);
        let der = CertificateDer::from_pem_slice(&text.as_bytes()[at..]).unwrap();
        assert!(inspect::signed_by(&leaf.certificate, &ca.certificate).unwrap() && !der.is_empty());
    }
}
