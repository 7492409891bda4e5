//! The URL by which OpenBao reaches PostgreSQL, with the password inside.

use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

use super::storage::{DATABASE, ROLE};
use crate::names;

/// CloudNativePG always serves TLS with a certificate of its own making, so it is required, and not verified: the operator's CA is in another namespace.
pub(super) fn connection_url(password: &SecretString) -> Zeroizing<String> {
    let password = percent_encoded(password.expose_secret());
    let host = format!("{}-rw.{}.svc", names::CNPG_CLUSTER, names::POSTGRESQL);
    Zeroizing::new(format!(
        "postgres://{ROLE}:{}@{host}:5432/{DATABASE}?sslmode=require",
        password.as_str()
    ))
}

/// The password inside; `None` when there is none, or the text is no URL.
pub(crate) fn password_in_url(text: &str) -> Option<SecretString> {
    let (_, rest) = text.split_once("://")?;
    let (authority, _) = rest.split_once('/')?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    percent_decoded(password)
}

/// Everything but RFC 3986's unreserved characters.
fn percent_encoded(text: &str) -> Zeroizing<String> {
    let mut encoded = Zeroizing::new(String::with_capacity(text.len() * 3));
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.push(hex_digit(byte >> 4));
            encoded.push(hex_digit(byte & 15));
        }
    }
    encoded
}

fn hex_digit(half: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(half & 15)])
}

fn percent_decoded(text: &str) -> Option<SecretString> {
    let mut decoded = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(if byte == b'%' {
            let mut digit = || char::from(bytes.next()?).to_digit(16);
            u8::try_from(digit()? * 16 + digit()?).ok()?
        } else {
            byte
        });
    }
    std::str::from_utf8(&decoded).ok().map(SecretString::from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_password_from_an_older_installation_cannot_break_the_url() {
        let url = connection_url(&SecretString::from("p@ss/w:rd?#%ü"));
        assert_eq!(
            url.as_str(),
            "postgres://openbao:p%40ss%2Fw%3Ard%3F%23%25%C3%BC@postgresql-cnpg-rw.postgresql.svc:5432/openbao?sslmode=require"
        );
    }

    #[test]
    fn a_text_that_is_no_url_has_no_password() {
        for text in [
            "",
            "hush",
            "postgres://host/db",
            "postgres://u:%4@h/d",
            "postgres://u:%ff@h/d",
        ] {
            assert!(password_in_url(text).is_none(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_password_comes_back(password in "\\PC{0,40}") {
            let url = connection_url(&SecretString::from(password.as_str()));
            let back = password_in_url(&url).unwrap();
            prop_assert_eq!(back.expose_secret(), password);
        }
    }
}
