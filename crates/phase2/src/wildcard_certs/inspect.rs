//! What the files in infra/tls/wildcard say, and what follows from it.

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use zeroize::Zeroizing;

const DAY: i64 = 86_400;
/// With less left than this, the certificate is renewed.
pub(super) const RENEW_WITHIN_DAYS: i64 = 30;

/// The folder's content; what is not there is `None`.
#[derive(Default, Clone)]
pub(super) struct Files {
    /// ca.pem.
    pub(super) ca: Option<String>,
    /// ca-key.pem.
    pub(super) ca_key: Option<Zeroizing<String>>,
    /// cert.pem: the leaf, perhaps followed by its CA.
    pub(super) certificate: Option<String>,
    /// key.pem.
    pub(super) key: Option<Zeroizing<String>>,
}

impl Files {
    /// Neither a whole leaf nor the CA's key to make one: what the cluster has is the last copy.
    pub(super) fn serve_nobody(&self) -> bool {
        self.ca_key.is_none() && (self.certificate.is_none() || self.key.is_none())
    }
}

/// What is to be done about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// Nothing: they are used. The note is for people.
    Use {
        /// For example that it cannot be renewed.
        note: Option<String>,
    },
    /// A new leaf from the CA that is there.
    Renew {
        /// Why.
        why: String,
    },
    /// A new CA (from the lone key, if there is one) and a new leaf.
    Mint,
    /// ca.pem is missing, but stands in cert.pem's chain: it is written from there and everything looked at again.
    RestoreCa(String),
    /// Nothing may be decided here.
    Refuse {
        /// What should be.
        expected: String,
        /// What is.
        found: String,
    },
}

/// What a certificate says.
pub(super) struct Facts {
    /// Seconds since 1970.
    pub(super) not_before: i64,
    /// Seconds since 1970.
    pub(super) not_after: i64,
    /// DNS names.
    pub(super) names: Vec<String>,
}

/// Reads the first certificate of a PEM text.
pub(super) fn facts(pem: &str) -> Result<Facts, String> {
    with_certificate(pem, |certificate| {
        let names = match certificate.subject_alternative_name() {
            Ok(Some(extension)) => extension
                .value
                .general_names
                .iter()
                .filter_map(dns_name)
                .collect(),
            _ => Vec::new(),
        };
        let validity = certificate.validity();
        Ok(Facts {
            not_before: validity.not_before.timestamp(),
            not_after: validity.not_after.timestamp(),
            names,
        })
    })
}

fn dns_name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    }
}

/// Decides, without touching anything. `now` is in seconds since 1970.
pub(super) fn decide(files: &Files, domain: &str, now: i64) -> Decision {
    match (&files.ca, &files.certificate, &files.key) {
        (None, None, None) => Decision::Mint,
        (None, Some(chain), _) => match ca_of_chain(chain) {
            Some(ca) => Decision::RestoreCa(ca),
            None => refuse(
                "ca.pem beside cert.pem",
                "cert.pem without ca.pem, and its chain does not hold the CA",
            ),
        },
        (None, None, Some(_)) => refuse("cert.pem and ca.pem beside key.pem", "only key.pem"),
        (Some(ca), certificate, key) => with_ca(
            files,
            ca,
            certificate.as_deref(),
            key.as_ref().map(|key| key.as_str()),
            domain,
            now,
        ),
    }
}

fn with_ca(
    files: &Files,
    ca: &str,
    certificate: Option<&str>,
    key: Option<&str>,
    domain: &str,
    now: i64,
) -> Decision {
    let ca_facts = match facts(ca) {
        Ok(facts) => facts,
        Err(found) => return refuse("a certificate in ca.pem", &found),
    };
    if ca_facts.not_after <= now {
        return refuse(
            "a CA that is still valid",
            &format!("ca.pem expired on {}", date(ca_facts.not_after)),
        );
    }
    let can_sign = match &files.ca_key {
        None => false,
        Some(ca_key) => match key_fits(ca, ca_key) {
            Ok(true) => true,
            Ok(false) => {
                return refuse(
                    "ca-key.pem to be the key of ca.pem",
                    "it belongs to another certificate",
                );
            }
            Err(found) => return refuse("a private key in ca-key.pem", &found),
        },
    };
    let (Some(certificate), Some(key)) = (certificate, key) else {
        let missing = if certificate.is_none() {
            "cert.pem"
        } else {
            "key.pem"
        };
        return if can_sign {
            Decision::Renew {
                why: format!("{missing} was missing"),
            }
        } else {
            refuse(
                "cert.pem and key.pem, or ca-key.pem to make them with",
                &format!("{missing} and ca-key.pem are missing"),
            )
        };
    };
    let leaf = match facts(certificate) {
        Ok(leaf) => leaf,
        Err(found) => return refuse("a certificate in cert.pem", &found),
    };
    match signed_by(certificate, ca) {
        Ok(true) => {}
        Ok(false) => {
            return refuse(
                "cert.pem to be signed by ca.pem",
                "it is signed by another CA",
            );
        }
        Err(found) => return refuse("cert.pem to be signed by ca.pem", &found),
    }
    match key_fits(certificate, key) {
        Ok(true) => judge_leaf(&leaf, ca_facts.not_after, can_sign, domain, now),
        Ok(false) if can_sign => Decision::Renew {
            why: "key.pem did not belong to cert.pem (a renewal was cut off)".to_owned(),
        },
        Ok(false) => refuse(
            "key.pem to be the key of cert.pem",
            "it belongs to another certificate",
        ),
        Err(found) => refuse("a private key in key.pem", &found),
    }
}

fn judge_leaf(leaf: &Facts, ca_not_after: i64, can_sign: bool, domain: &str, now: i64) -> Decision {
    let wildcard = format!("*.{domain}");
    let has = |name: &str| {
        leaf.names
            .iter()
            .any(|found| found.eq_ignore_ascii_case(name))
    };
    let until = date(leaf.not_after);
    let due = leaf.not_after - now < RENEW_WITHIN_DAYS * DAY;
    // A leaf that already ends with its CA gains nothing from a renewal.
    let renewable = can_sign && leaf.not_after < ca_not_after;
    if !has(&wildcard) || (can_sign && !has(domain)) {
        let found = format!("it is made for {}", leaf.names.join(", "));
        return if can_sign {
            Decision::Renew { why: found }
        } else {
            refuse(&format!("a certificate for {wildcard}"), &found)
        };
    }
    if due && renewable {
        return Decision::Renew {
            why: format!("it ran until {until}"),
        };
    }
    if leaf.not_after <= now {
        return refuse(
            "a certificate that is still valid",
            &format!("cert.pem expired on {until} and there is no ca-key.pem to renew it with"),
        );
    }
    let note = match (due, can_sign) {
        (true, true) => Some(format!(
            "the CA itself ends on {}: plan for a new one, which everybody has to trust again",
            date(ca_not_after)
        )),
        (true, false) => Some(format!(
            "cert.pem runs out on {until} and cannot be renewed: ca-key.pem is not there"
        )),
        (false, _) => None,
    };
    Decision::Use { note }
}

fn refuse(expected: &str, found: &str) -> Decision {
    Decision::Refuse {
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}

/// `2027-03-01`.
pub(super) fn date(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(
        |_| "an unreadable date".to_owned(),
        |time| time.strftime("%Y-%m-%d").to_string(),
    )
}

/// The last certificate of a chain, if it is a CA that signed itself.
pub(super) fn ca_of_chain(chain: &str) -> Option<String> {
    let last = chain.rfind("-----BEGIN CERTIFICATE-----")?;
    let pem = chain.get(last..)?;
    let is_ca = with_certificate(pem, |certificate| {
        Ok(certificate.is_ca() && certificate.verify_signature(None).is_ok())
    })
    .unwrap_or(false);
    is_ca.then(|| format!("{}\n", pem.trim_end()))
}

pub(super) fn signed_by(certificate: &str, ca: &str) -> Result<bool, String> {
    with_certificate(ca, |ca| {
        with_certificate(certificate, |leaf| {
            Ok(leaf.issuer() == ca.subject()
                && leaf.verify_signature(Some(ca.public_key())).is_ok())
        })
    })
}

/// Whether a private key (PKCS #8, SEC 1 or PKCS #1) is the one of the first certificate.
fn key_fits(certificate: &str, key: &str) -> Result<bool, String> {
    let der = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .map_err(|_| "it is not a PEM private key".to_owned())?;
    let signing = rustls::crypto::ring::sign::any_supported_type(&der)
        .map_err(|_| "it is a key of a kind that TLS servers cannot use".to_owned())?;
    let public = signing
        .public_key()
        .ok_or_else(|| "its public half cannot be told".to_owned())?;
    with_certificate(certificate, |certificate| {
        Ok(certificate.public_key().raw == public.as_ref())
    })
}

fn with_certificate<T>(
    pem: &str,
    read: impl FnOnce(&X509Certificate<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let block = Pem::iter_from_buffer(pem.as_bytes())
        .filter_map(Result::ok)
        .find(|block| block.label == "CERTIFICATE")
        .ok_or_else(|| "there is no PEM certificate in it".to_owned())?;
    let certificate = block
        .parse_x509()
        .map_err(|_| "its certificate cannot be read".to_owned())?;
    read(&certificate)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
