//! `infra/helm-charts`: artifacts by file name, each checked against its pin whenever it is used.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use crate::artifact::{Artifact, Source, VerifiedArtifact};

mod chart_index;
mod upstream;

/// The cache folder.
#[derive(Debug, Clone)]
pub struct ArtifactCache {
    folder: PathBuf,
}

/// Where a fetched artifact came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// It was there.
    Cached,
    /// Copied from a folder given.
    Folder(PathBuf),
    /// Downloaded.
    Upstream(String),
}

/// Why an artifact cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// Not there.
    #[error("{label} is not in the cache ({path})")]
    Missing {
        /// The artifact.
        label: String,
        /// Where it should be.
        path: PathBuf,
    },
    /// There, but other bytes.
    #[error("{path} does not match its pin: expected sha256 {expected}, found {found}")]
    DigestMismatch {
        /// The file.
        path: PathBuf,
        /// Pinned.
        expected: String,
        /// Of the file.
        found: String,
    },
    /// No place has it.
    #[error("{label} could not be had: {}", .tried.join("; "))]
    NotFound {
        /// The artifact.
        label: String,
        /// Each place with its answer.
        tried: Vec<String>,
    },
    /// I/O.
    #[error("failed to {action} {path}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl CacheError {
    /// The command that mends it (`blueprint charts fetch …`).
    pub fn hint(&self) -> String {
        match self {
            Self::Missing { path, .. } => format!(
                "run `blueprint charts fetch`, or, without a network, `blueprint charts fetch --from DIR` with a folder that holds {}",
                file_name(path)
            ),
            Self::DigestMismatch { path, found, .. } => format!(
                "run `blueprint charts fetch --from DIR` with a folder that holds the pinned {}; if the new file is meant, set its sha256 in VERSIONS.json to {found}",
                file_name(path)
            ),
            Self::NotFound { .. } => {
                "run `blueprint charts fetch` on a machine that reaches upstream and copy its infra/helm-charts here: any folder will do, named by `--from DIR` or \
                 BLUEPRINT_CHARTS (a bundle that carries charts and images is planned, and not there yet); if another file is meant, re-pin it in VERSIONS.json"
                    .to_owned()
            }
            Self::Io { path, source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some disk space and run the command again".to_owned(),
                ErrorKind::InvalidData => format!("{} is damaged: run `blueprint charts fetch`", path.display()),
                _ => format!("check that {} can be used by the user that runs blueprint", path.display()),
            },
        }
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

fn file_name(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
}

impl ArtifactCache {
    /// A cache in `folder` (made when first written).
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The artifact's path, after its digest was checked.
    pub fn verified(&self, artifact: &Artifact) -> Result<VerifiedArtifact, CacheError> {
        let path = self.folder.join(&artifact.file_name);
        match digest_of(&path)? {
            None => Err(CacheError::Missing {
                label: artifact.label.clone(),
                path,
            }),
            Some(found) if found == artifact.sha256 => Ok(VerifiedArtifact {
                path,
                sha256: found,
            }),
            Some(found) => Err(CacheError::DigestMismatch {
                path,
                expected: artifact.sha256.clone(),
                found,
            }),
        }
    }

    /// Makes sure the cache has it: cache, then `folders` (searched by file name, also in their direct subfolders), then upstream unless `offline`.
    /// Every byte is checked before it gets its final name. A wrong file in the cache is replaced only by a right one.
    pub async fn fetch(
        &self,
        artifact: &Artifact,
        folders: &[PathBuf],
        offline: bool,
    ) -> Result<Fetched, CacheError> {
        let in_cache = match self.verified(artifact) {
            Ok(_) => return Ok(Fetched::Cached),
            Err(error @ (CacheError::Missing { .. } | CacheError::DigestMismatch { .. })) => error,
            Err(error) => return Err(error),
        };
        let mut tried = vec![format!("cache: {in_cache}")];
        if folders.is_empty() {
            tried.push("folders: none was given (--from DIR, BLUEPRINT_CHARTS)".to_owned());
        }
        for folder in folders {
            match self.copy_from(artifact, folder)? {
                Ok(path) => return Ok(Fetched::Folder(path)),
                Err(answers) => tried.extend(answers),
            }
        }
        if offline {
            tried.push("upstream: not asked (offline)".to_owned());
        } else {
            let mut download = self.download()?;
            match upstream::download(artifact, &mut download).await {
                Ok(address) => match self.keep(download, artifact)? {
                    Ok(_) => return Ok(Fetched::Upstream(address)),
                    Err(found) => tried.push(format!(
                        "upstream: {address}: expected sha256 {}, found {found}",
                        artifact.sha256
                    )),
                },
                Err(upstream::Failure::Answer(answer)) => tried.push(format!("upstream: {answer}")),
                Err(upstream::Failure::Disk(source)) => {
                    return Err(CacheError::io("write", &self.folder)(source));
                }
            }
        }
        Err(CacheError::NotFound {
            label: artifact.label.clone(),
            tried,
        })
    }

    /// Copies from a folder: the copied file's path, or what each place said.
    fn copy_from(
        &self,
        artifact: &Artifact,
        folder: &Path,
    ) -> Result<Result<PathBuf, Vec<String>>, CacheError> {
        let mut answers = Vec::new();
        for candidate in candidates(artifact, folder) {
            let mut source = match File::open(&candidate) {
                Ok(source) => source,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => {
                    answers.push(format!("{}: {error}", candidate.display()));
                    continue;
                }
            };
            let mut download = self.download()?;
            if let Err(error) = copy(&mut source, &mut download) {
                return Err(CacheError::io("copy", &candidate)(error));
            }
            match self.keep(download, artifact)? {
                Ok(_) => return Ok(Ok(candidate)),
                Err(found) => {
                    answers.push(format!(
                        "{}: expected sha256 {}, found {found}",
                        candidate.display(),
                        artifact.sha256
                    ));
                }
            }
        }
        if answers.is_empty() {
            answers.push(format!("{}: no {}", folder.display(), artifact.file_name));
        }
        Ok(Err(answers))
    }

    fn download(&self) -> Result<Download, CacheError> {
        fs::create_dir_all(&self.folder).map_err(CacheError::io("create", &self.folder))?;
        let file = tempfile::Builder::new()
            .prefix(".fetch.")
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(&self.folder)
            .map_err(CacheError::io("write", &self.folder))?;
        Ok(Download {
            file,
            digest: Sha256::new(),
        })
    }

    /// Gives the file its name if its digest is right; answers the digest found otherwise.
    fn keep(
        &self,
        download: Download,
        artifact: &Artifact,
    ) -> Result<Result<PathBuf, String>, CacheError> {
        let found = hex(&download.digest.finalize());
        if found != artifact.sha256 {
            return Ok(Err(found));
        }
        let path = self.folder.join(&artifact.file_name);
        download
            .file
            .as_file()
            .sync_all()
            .map_err(CacheError::io("write", &path))?;
        download
            .file
            .persist(&path)
            .map_err(|error| CacheError::io("write", &path)(error.error))?;
        Ok(Ok(path))
    }
}

/// A file on its way into the cache; without a name until its digest is known to be right.
pub(crate) struct Download {
    file: NamedTempFile,
    digest: Sha256,
}

impl Download {
    /// Takes the next bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.digest.update(bytes);
        self.file.write_all(bytes)
    }
}

/// Where a folder may have the artifact: by its name in the cache or at upstream, in the folder or in a direct subfolder.
fn candidates(artifact: &Artifact, folder: &Path) -> Vec<PathBuf> {
    let mut names = vec![artifact.file_name.as_str()];
    if let Source::File { url } = &artifact.source
        && let Some((_, upstream_name)) = url.rsplit_once('/')
        && !upstream_name.is_empty()
        && upstream_name != artifact.file_name
    {
        names.push(upstream_name);
    }
    let mut places = vec![folder.to_owned()];
    let mut below: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    below.sort();
    places.append(&mut below);
    places
        .iter()
        .flat_map(|place| names.iter().map(|name| place.join(name)))
        .collect()
}

fn copy(source: &mut File, download: &mut Download) -> io::Result<()> {
    in_pieces(source, |piece| download.take(piece))
}

/// The file's SHA-256 in lower-case hex; `None` if there is none.
fn digest_of(path: &Path) -> Result<Option<String>, CacheError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(CacheError::io("read", path)(source)),
    };
    let mut digest = Sha256::new();
    in_pieces(&mut file, |piece| {
        digest.update(piece);
        Ok(())
    })
    .map_err(CacheError::io("read", path))?;
    Ok(Some(hex(&digest.finalize())))
}

fn in_pieces(file: &mut File, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut piece = vec![0; 64 * 1024];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => each(&piece[..length])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

#[cfg(test)]
mod tests;
