//! Where a passphrase comes from: a file, or a person at a terminal. Never an argument or a variable, which others can see.

use std::path::Path;

use blueprint_safekeeping::private_file;
use secrecy::{ExposeSecret as _, SecretString};

use crate::problem::Problem;

/// Whoever gets hold of the archive can try passphrases as long as they like.
const SHORTEST: usize = 12;

/// A new one: long enough, and at a terminal given twice.
pub(super) fn choose(file: Option<&Path>) -> Result<SecretString, Problem> {
    let passphrase = if let Some(file) = file {
        from_file(file)?
    } else {
        let first = ask("Passphrase for the archive: ")?;
        let second = ask("The same again: ")?;
        if first.expose_secret() != second.expose_secret() {
            return Err(Problem::usage("the two passphrases differ").hint("run again"));
        }
        first
    };
    let length = passphrase.expose_secret().chars().count();
    if length < SHORTEST {
        return Err(Problem::usage("the passphrase is too short")
            .expected(format!("at least {SHORTEST} characters"))
            .found(format!("{length}"))
            .hint("the archive holds every credential of the installation: take four random words or more"));
    }
    Ok(passphrase)
}

/// The one that an archive was made with.
pub(super) fn give(file: Option<&Path>) -> Result<SecretString, Problem> {
    match file {
        Some(file) => from_file(file),
        None => ask("Passphrase of the archive: "),
    }
}

fn ask(prompt: &str) -> Result<SecretString, Problem> {
    rpassword::prompt_password(prompt)
        .map(SecretString::from)
        .map_err(|error| {
            Problem::usage("there is no terminal to ask for the passphrase")
                .caused_by(&error)
                .hint("give --passphrase-file FILE")
        })
}

/// The file's text without its last line end.
fn from_file(file: &Path) -> Result<SecretString, Problem> {
    let Some(text) = private_file::read_text(file)? else {
        return Err(Problem::usage(format!("there is no {}", file.display()))
            .hint("--passphrase-file names a file that holds the passphrase and nothing else"));
    };
    Ok(SecretString::from(text.as_str()))
}
