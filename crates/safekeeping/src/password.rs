//! Generated credentials.

use rand::TryRngCore as _;
use rand::distr::{Alphanumeric, SampleString as _};
use rand::rngs::OsRng;
use secrecy::SecretString;

/// A password of `length` characters out of `[A-Za-z0-9]`, from the system's random source, so that no consumer (URL, YAML, INI, shell) needs quoting.
///
/// # Panics
///
/// If the system has no random source: no credential is better than a guessable one.
pub fn generate(length: usize) -> SecretString {
    SecretString::from(Alphanumeric.sample_string(&mut OsRng.unwrap_err(), length))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn has_the_length_asked_for_and_only_letters_and_digits() {
        for length in [0, 1, 32, 64] {
            let password = generate(length);
            assert_eq!(password.expose_secret().len(), length);
            assert!(
                password
                    .expose_secret()
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric())
            );
        }
    }

    #[test]
    fn two_passwords_differ() {
        assert_ne!(generate(32).expose_secret(), generate(32).expose_secret());
    }
}
