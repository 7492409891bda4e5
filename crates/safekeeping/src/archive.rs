//! Private files as one archive, to carry an installation to another machine: a tar file whose first entry, `manifest.json`, names every other one with its
//! size and digest; encrypted as an age file ([`seal`], [`open`]), so that `age --decrypt` and `tar` read it without blueprint.
//!
//! Nothing in here writes to disk. What comes out of [`Archive::parse`] was checked whole: paths that stay below their folder, plain files only, every digest.

mod sealed;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Cursor, Read as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

pub use sealed::{Key, Lock, open, seal};

const MANIFEST: &str = "manifest.json";
const FORMAT: u32 = 1;
/// Far beyond what an installation has; a header that claims more is not believed.
const MAX_FILE: u64 = 16 << 20;
const MAX_FILES: usize = 4096;
const MAX_PATH: usize = 200;

/// Why an archive cannot be made or read. No variant holds content of a file or a key.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its content is not what it should be.
    #[error("the archive is not intact: {0}")]
    Damaged(String),
    /// It was made by a newer blueprint.
    #[error("the archive has format {found}, and this blueprint reads format {FORMAT}")]
    Newer {
        /// The format that it names.
        found: u32,
    },
    /// It cannot be decrypted with what was given.
    #[error("the archive cannot be decrypted: {0}")]
    Locked(String),
    /// A recipient or an identity is none.
    #[error("{0}")]
    NoKey(String),
    /// It could not be put together.
    #[error("failed to make the archive: {0}")]
    Unmade(String),
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Damaged(_) => {
                "nothing was written; fetch the file again from where it was made, or make it anew with `blueprint secrets export`"
            }
            Self::Newer { .. } => {
                "nothing was written; use the blueprint that made it, or a newer one"
            }
            Self::Locked(_) => {
                "nothing was written; give the passphrase it was made with, or --identity with the key of one of its recipients"
            }
            Self::NoKey(_) => "recipients look like age1…, identities like AGE-SECRET-KEY-1…",
            Self::Unmade(_) => "run again; if it stays so, report it",
        }
    }
}

/// Files by their path below the workspace, and what is said about them.
#[derive(Clone, PartialEq, Eq)]
pub struct Archive {
    /// For people and for checks: the installation's id, its domain, …
    pub about: BTreeMap<String, String>,
    /// Path with `/` between its parts → content.
    pub files: BTreeMap<String, Zeroizing<Vec<u8>>>,
}

impl fmt::Debug for Archive {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Archive")
            .field("about", &self.about)
            .field("files", &self.files.keys().collect::<Vec<_>>())
            .finish()
    }
}

#[derive(Serialize, Deserialize)]
struct Manifest {
    format: u32,
    about: BTreeMap<String, String>,
    files: Vec<Listed>,
}

#[derive(Serialize, Deserialize)]
struct Listed {
    path: String,
    size: u64,
    sha256: String,
}

impl Archive {
    /// The plain tar file. The same files give the same bytes.
    pub fn to_tar(&self) -> Result<Zeroizing<Vec<u8>>, Error> {
        let manifest = Manifest {
            format: FORMAT,
            about: self.about.clone(),
            files: self
                .files
                .iter()
                .map(|(path, bytes)| Listed {
                    path: path.clone(),
                    size: bytes.len() as u64,
                    sha256: digest(bytes),
                })
                .collect(),
        };
        let text = serde_json::to_vec_pretty(&manifest)
            .map_err(|error| Error::Unmade(error.to_string()))?;
        let size: usize = self.files.values().map(|bytes| bytes.len() + 2048).sum();
        // Large enough that it never moves and leaves a copy behind.
        let buffer = Zeroizing::new(Vec::with_capacity(size + text.len() + 8192));
        let mut tar = tar::Builder::new(Wiped(buffer));
        append(&mut tar, MANIFEST, &text)?;
        for (path, bytes) in &self.files {
            check_path(path).map_err(Error::Unmade)?;
            append(&mut tar, path, bytes)?;
        }
        let written = tar
            .into_inner()
            .map_err(|error| Error::Unmade(error.to_string()))?;
        Ok(written.0)
    }

    /// Reads a plain tar file and checks all of it: only listed files, each once, each with its size and digest, and none that leads elsewhere.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut tar = tar::Archive::new(Cursor::new(bytes));
        let mut entries = tar
            .entries()
            .map_err(|error| Error::Damaged(error.to_string()))?;
        let mut next = || match entries.next() {
            None => Ok(None),
            Some(entry) => entry
                .map_err(|_| Error::Damaged("an entry's header cannot be read".to_owned()))
                .and_then(plain_file)
                .map(Some),
        };
        let Some((name, text)) = next()? else {
            return Err(Error::Damaged("it is empty".to_owned()));
        };
        if name != MANIFEST {
            return Err(Error::Damaged(format!("{MANIFEST} is not its first entry")));
        }
        let manifest = manifest(&text)?;
        let mut files = BTreeMap::new();
        while let Some((path, content)) = next()? {
            if files.len() == MAX_FILES {
                return Err(Error::Damaged(format!(
                    "it holds more than {MAX_FILES} files"
                )));
            }
            check_path(&path).map_err(Error::Damaged)?;
            if files.insert(path.clone(), content).is_some() {
                return Err(Error::Damaged(format!("it holds {path} twice")));
            }
        }
        compare(&manifest, &files)?;
        Ok(Self {
            about: manifest.about,
            files,
        })
    }
}

fn manifest(text: &[u8]) -> Result<Manifest, Error> {
    // What a later format adds is not to be guessed at, so the number is looked at before the rest.
    #[derive(Deserialize)]
    struct Numbered {
        format: u32,
    }
    let unreadable = |_| Error::Damaged(format!("{MANIFEST} cannot be read"));
    let Numbered { format } = serde_json::from_slice(text).map_err(unreadable)?;
    if format != FORMAT {
        return Err(Error::Newer { found: format });
    }
    serde_json::from_slice(text).map_err(unreadable)
}

fn compare(manifest: &Manifest, files: &BTreeMap<String, Zeroizing<Vec<u8>>>) -> Result<(), Error> {
    for listed in &manifest.files {
        let path = &listed.path;
        let Some(content) = files.get(path) else {
            return Err(Error::Damaged(format!("{path} is listed and not there")));
        };
        if listed.size != content.len() as u64 || listed.sha256 != digest(content) {
            return Err(Error::Damaged(format!(
                "{path} is not what {MANIFEST} says it is"
            )));
        }
    }
    let listed = |path: &String| manifest.files.iter().any(|listed| listed.path == *path);
    match files.keys().find(|path| !listed(path)) {
        Some(path) => Err(Error::Damaged(format!("{path} is there and not listed"))),
        None => Ok(()),
    }
}

fn append(tar: &mut tar::Builder<Wiped>, path: &str, bytes: &[u8]) -> Result<(), Error> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o600);
    tar.append_data(&mut header, path, bytes)
        .map_err(|error| Error::Unmade(format!("{path}: {error}")))
}

/// Name and content of an entry that is a plain file.
fn plain_file(
    mut entry: tar::Entry<'_, Cursor<&[u8]>>,
) -> Result<(String, Zeroizing<Vec<u8>>), Error> {
    let name = String::from_utf8(entry.path_bytes().into_owned())
        .map_err(|_| Error::Damaged("a path is not UTF-8".to_owned()))?;
    if !entry.header().entry_type().is_file() {
        return Err(Error::Damaged(
            "it holds something other than plain files".to_owned(),
        ));
    }
    let size = entry.size();
    if size > MAX_FILE {
        return Err(Error::Damaged("a file claims to be too large".to_owned()));
    }
    // One more than claimed, so that it never has to grow.
    let mut content = Zeroizing::new(Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1));
    entry
        .read_to_end(&mut content)
        .map_err(|_| Error::Damaged("it is cut off".to_owned()))?;
    if content.len() as u64 != size {
        return Err(Error::Damaged("it is cut off".to_owned()));
    }
    Ok((name, content))
}

/// A path below the workspace, in one spelling only: no `..`, no `.`, no empty part, nothing absolute, plain characters.
fn check_path(path: &str) -> Result<(), String> {
    let plain = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._@+".contains(&byte))
    };
    if path.len() <= MAX_PATH && path != MANIFEST && path.split('/').all(plain) {
        Ok(())
    } else {
        Err(format!("{path:?} is no path for a file of an archive"))
    }
}

fn digest(bytes: &[u8]) -> String {
    use fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// tar's builder wants to own its writer.
struct Wiped(Zeroizing<Vec<u8>>);

impl std::io::Write for Wiped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
