//! Generated credentials.

use secrecy::SecretString;

/// A password of `length` characters out of `[A-Za-z0-9]`, from the system's random source, so that no consumer (URL, YAML, INI, shell) needs quoting.
pub fn generate(length: usize) -> SecretString {
    todo!()
}
