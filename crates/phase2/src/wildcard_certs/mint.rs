//! Makes the CA and the wildcard certificate: P-256, both dates set (rcgen's defaults run to the year 4096).

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use x509_parser::time::ASN1Time;
use zeroize::Zeroizing;

use crate::error::Error;

const DAY: i64 = 86_400;
/// Ten years.
const CA_DAYS: i64 = 3650;
/// The most that Apple's platforms accept of a certificate whose CA was added by hand (support.apple.com/103769).
const LEAF_DAYS: i64 = 825;
/// A clock that is a little slow must not meet a certificate from the future.
const BACKDATE_SECONDS: i64 = 3600;
/// X.520: the longest common name.
const COMMON_NAME_MAX: usize = 64;

/// A certificate with its key, both PEM.
pub(super) struct Pair {
    /// Certificate; for the leaf followed by the CA's.
    pub(super) certificate: String,
    /// PKCS #8 key.
    pub(super) key: Zeroizing<String>,
}

/// A CA for `domain`, from `key` when one is given (a run that was cut off between key and certificate), else from a new key.
pub(super) fn ca(domain: &str, key: Option<&str>, now: i64) -> Result<Pair, Error> {
    let key = match key {
        Some(pem) => KeyPair::from_pem(pem),
        None => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
    }
    .map_err(|source| failed("make the CA's key", &source))?;
    let mut params = CertificateParams::default();
    let named = format!("blueprint CA for {domain}");
    params.distinguished_name = name(if named.len() <= COMMON_NAME_MAX {
        &named
    } else {
        "blueprint CA"
    });
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    dates(&mut params, now, now + CA_DAYS * DAY)?;
    let certificate = params
        .self_signed(&key)
        .map_err(|source| failed("sign the CA", &source))?;
    Ok(Pair {
        certificate: certificate.pem(),
        key: Zeroizing::new(key.serialize_pem()),
    })
}

/// A leaf for `*.domain` and `domain`, signed by the CA; it never outlives it (`ca_not_after`, seconds since 1970).
pub(super) fn leaf(
    domain: &str,
    ca_pem: &str,
    ca_key_pem: &str,
    ca_not_after: i64,
    now: i64,
) -> Result<Pair, Error> {
    let ca_key =
        KeyPair::from_pem(ca_key_pem).map_err(|source| failed("read the CA's key", &source))?;
    let issuer = Issuer::from_ca_cert_pem(ca_pem, ca_key)
        .map_err(|source| failed("read the CA", &source))?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)
        .map_err(|source| failed("make the certificate's key", &source))?;
    let mut params = CertificateParams::new(vec![format!("*.{domain}"), domain.to_owned()])
        .map_err(|source| failed("name the certificate", &source))?;
    params.distinguished_name = name("blueprint wildcard");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    dates(&mut params, now, (now + LEAF_DAYS * DAY).min(ca_not_after))?;
    let certificate = params
        .signed_by(&key, &issuer)
        .map_err(|source| failed("sign the certificate", &source))?;
    Ok(Pair {
        certificate: format!("{}{}", certificate.pem(), with_line_end(ca_pem)),
        key: Zeroizing::new(key.serialize_pem()),
    })
}

fn with_line_end(pem: &str) -> String {
    format!("{}\n", pem.trim_end())
}

fn name(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::OrganizationName, "blueprint");
    name.push(DnType::CommonName, common);
    name
}

fn dates(params: &mut CertificateParams, now: i64, until: i64) -> Result<(), Error> {
    let time = |seconds| {
        ASN1Time::from_timestamp(seconds)
            .map(|time| time.to_datetime())
            .map_err(|source| failed("date the certificate", &source))
    };
    params.not_before = time(now - BACKDATE_SECONDS)?;
    params.not_after = time(until)?;
    Ok(())
}

fn failed(action: &str, source: &dyn std::fmt::Display) -> Error {
    Error::Failed {
        action: action.to_owned(),
        found: source.to_string(),
        hint: "the files in infra/tls/wildcard are PEM; keys are PKCS #8, SEC 1 or PKCS #1"
            .to_owned(),
    }
}
