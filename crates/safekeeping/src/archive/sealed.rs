//! An age file (<https://age-encryption.org/v1>) around the archive: by a passphrase, or for recipients.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::iter;
use std::str::FromStr as _;

use age::{DecryptError, Decryptor, Encryptor, Identity, Recipient, scrypt, x25519};
use secrecy::{ExposeSecret as _, SecretString};
use zeroize::Zeroizing;

use super::Error;

/// scrypt's work: 2^18, about a second and 256 MiB, as the age program uses.
#[cfg(not(test))]
const WORK: u8 = 18;
#[cfg(test)]
const WORK: u8 = 2;
/// The most that is accepted of an archive; the age specification warns of files that ask for hours.
const MOST_WORK: u8 = 20;
/// What an archive may be in all, decrypted.
const MAX_SIZE: u64 = 256 << 20;

/// What the archive is encrypted with.
#[derive(Clone)]
pub enum Lock {
    /// A passphrase.
    Passphrase(SecretString),
    /// Public keys, `age1…`.
    Recipients(Vec<String>),
}

/// What it is decrypted with.
#[derive(Clone)]
pub enum Key {
    /// The passphrase.
    Passphrase(SecretString),
    /// The text of an identity file: one `AGE-SECRET-KEY-1…` a line, comments with `#`.
    Identities(SecretString),
}

impl fmt::Debug for Lock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passphrase(_) => to.write_str("Passphrase"),
            Self::Recipients(keys) => to.debug_tuple("Recipients").field(keys).finish(),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Passphrase(_) => "Passphrase",
            Self::Identities(_) => "Identities",
        })
    }
}

/// Encrypts.
pub fn seal(plain: &[u8], lock: &Lock) -> Result<Vec<u8>, Error> {
    let unmade = |error: &dyn fmt::Display| Error::Unmade(error.to_string());
    let recipients: Vec<Box<dyn Recipient>> = match lock {
        Lock::Passphrase(passphrase) => {
            let mut recipient = scrypt::Recipient::new(passphrase.clone());
            recipient.set_work_factor(WORK);
            vec![Box::new(recipient)]
        }
        Lock::Recipients(keys) => keys
            .iter()
            .map(|key| {
                let recipient = x25519::Recipient::from_str(key.trim())
                    .map_err(|_| Error::NoKey(format!("`{key}` is no age recipient")))?;
                Ok(Box::new(recipient) as Box<dyn Recipient>)
            })
            .collect::<Result<_, Error>>()?,
    };
    let encryptor = Encryptor::with_recipients(recipients.iter().map(AsRef::as_ref))
        .map_err(|error| unmade(&error))?;
    let mut sealed = Vec::with_capacity(plain.len() + plain.len() / 1024 + 1024);
    let mut writer = encryptor
        .wrap_output(&mut sealed)
        .map_err(|error| unmade(&error))?;
    writer
        .write_all(plain)
        .and_then(|()| writer.finish().map(|_| ()))
        .map_err(|error| unmade(&error))?;
    Ok(sealed)
}

/// Decrypts the whole, or nothing: every chunk is authenticated, and the last one is marked as the last.
pub fn open(sealed: &[u8], key: &Key) -> Result<Zeroizing<Vec<u8>>, Error> {
    let decryptor = Decryptor::new(sealed).map_err(|error| why(&error))?;
    let identities: Vec<Box<dyn Identity>> = match key {
        Key::Passphrase(passphrase) => {
            let mut identity = scrypt::Identity::new(passphrase.clone());
            identity.set_max_work_factor(MOST_WORK);
            vec![Box::new(identity)]
        }
        Key::Identities(text) => identities(text)?,
    };
    let with_passphrase = matches!(key, Key::Passphrase(_));
    if decryptor.is_scrypt() != with_passphrase {
        return Err(Error::Locked(
            if with_passphrase {
                "it was made for recipients, not with a passphrase"
            } else {
                "it was made with a passphrase, not for recipients"
            }
            .to_owned(),
        ));
    }
    let reader = decryptor
        .decrypt(identities.iter().map(AsRef::as_ref))
        .map_err(|error| why(&error))?;
    let mut plain = Zeroizing::new(Vec::with_capacity(sealed.len()));
    reader
        .take(MAX_SIZE)
        .read_to_end(&mut plain)
        .map_err(|_| Error::Damaged("it was changed or cut off after it was made".to_owned()))?;
    Ok(plain)
}

fn identities(text: &SecretString) -> Result<Vec<Box<dyn Identity>>, Error> {
    let lines = text
        .expose_secret()
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut found: Vec<Box<dyn Identity>> = Vec::new();
    for (line, number) in lines.zip(1..) {
        let identity = x25519::Identity::from_str(line)
            .map_err(|_| Error::NoKey(format!("key {number} of the identity file is none")))?;
        found.extend(iter::once(Box::new(identity) as Box<dyn Identity>));
    }
    if found.is_empty() {
        return Err(Error::NoKey("the identity file holds no key".to_owned()));
    }
    Ok(found)
}

fn why(error: &DecryptError) -> Error {
    match error {
        DecryptError::InvalidHeader | DecryptError::UnknownFormat | DecryptError::Io(_) => {
            Error::Damaged("it is no age file, or cut off".to_owned())
        }
        DecryptError::InvalidMac => Error::Damaged("its header was changed".to_owned()),
        DecryptError::ExcessiveWork { required, .. } => Error::Locked(format!(
            "it asks for 2^{required} rounds of work; 2^{MOST_WORK} is the most that is accepted"
        )),
        DecryptError::DecryptionFailed
        | DecryptError::KeyDecryptionFailed
        | DecryptError::NoMatchingKeys => {
            Error::Locked("the passphrase or key is not the one it was made with".to_owned())
        }
    }
}
