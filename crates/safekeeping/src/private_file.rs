//! One private file: read, written, its mode mended.

use std::fmt;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use blueprint_failpoint::failpoint;
use zeroize::{Zeroize as _, Zeroizing};

/// Mode of every private file.
const FILE_MODE: u32 = 0o600;
/// Mode of every folder made for private files.
const FOLDER_MODE: u32 = 0o700;
/// How the name of a file that is not renamed yet ends.
const UNFINISHED: &str = ".new";

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The file did not exist before.
    Created,
    /// The content differed and was replaced.
    Replaced,
    /// The same bytes were there already; nothing was touched.
    Unchanged,
}

/// A file or folder whose mode was looser than 0600 or 0700 and was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mended {
    /// The file or folder.
    pub path: PathBuf,
    /// The permission bits found, for example `0o644`.
    pub found: u32,
}

impl fmt::Display for Mended {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            to,
            "{} was open to others (mode {:04o}): now for its owner alone",
            self.path.display(),
            self.found & 0o7777
        )
    }
}

/// Why a private file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error("failed to {action} {path}")]
    Io {
        /// What was tried ("read", "write", …).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: std::io::Error,
    },
    /// The file's content is not what it should be.
    #[error("{path} is not a valid {expected}: {found}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What is wrong with it; never contains a value of the file.
        found: String,
    },
}

impl Error {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Io {
                action,
                path,
                source,
            } => {
                let folder = path.parent().unwrap_or(path).display();
                match source.kind() {
                    ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                        format!(
                            "free some space for {folder} and run the command again; what was there before is untouched"
                        )
                    }
                    ErrorKind::ReadOnlyFilesystem => {
                        format!(
                            "{folder} is on a read-only file system: remount it writable, or use a workspace elsewhere; what was there before is untouched"
                        )
                    }
                    ErrorKind::PermissionDenied => {
                        format!(
                            "give the user that runs blueprint the right to {action} {} (check owner and mode with `ls -ld`)",
                            path.display()
                        )
                    }
                    ErrorKind::IsADirectory | ErrorKind::NotADirectory => {
                        format!(
                            "expected a plain file at {}; move away what stands in its place",
                            path.display()
                        )
                    }
                    _ => format!(
                        "check {} and its folder, then run the command again",
                        path.display()
                    ),
                }
            }
            Self::Malformed { path, expected, .. } => format!(
                "put back an intact copy of {} ({expected}) from a backup; move the file away only if the data that belongs to it may be lost",
                path.display()
            ),
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

/// Writes `bytes` to `path` with mode 0600: temporary file beside it, fsync, rename, fsync of the folder. Missing parent folders are made 0700.
/// The same bytes already there leave the file untouched (its mode is mended). A symbolic link stays one: the file it leads to is written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<Written, Error> {
    match prepare(path, bytes)? {
        None => Ok(Written::Unchanged),
        Some(prepared) => prepared.commit(),
    }
}

/// New content that is on disk, fsynced, beside the file that it will replace: all that needs space has been done. Dropped, it is gone again.
#[derive(Debug)]
pub struct Prepared {
    new: tempfile::NamedTempFile,
    target: PathBuf,
    written: Written,
}

/// The first half of [`write`]; `None` when the same bytes are there already (the mode is mended).
pub fn prepare(path: &Path, bytes: &[u8]) -> Result<Option<Prepared>, Error> {
    let target = follow_link(path)?;
    let written = match read(&target)? {
        Some(present) if present.as_slice() == bytes => {
            mend_mode(&target, FILE_MODE)?;
            return Ok(None);
        }
        Some(_) => Written::Replaced,
        None => Written::Created,
    };
    let folder = parent_of(&target);
    create_folders(folder)?;
    let name = name_of(&target);
    remove_unfinished(folder, &name)?;
    failpoint!(before, "write", "{name}");
    let mut new = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(UNFINISHED)
        .permissions(Permissions::from_mode(FILE_MODE))
        .tempfile_in(folder)
        .map_err(Error::io("write", &target))?;
    new.write_all(bytes)
        .and_then(|()| new.as_file().sync_all())
        .map_err(Error::io("write", &target))?;
    failpoint!(under_way, "write", "{name}");
    Ok(Some(Prepared {
        new,
        target,
        written,
    }))
}

impl Prepared {
    /// The second half: the rename, made durable.
    pub fn commit(self) -> Result<Written, Error> {
        let target = self.target;
        self.new
            .persist(&target)
            .map_err(|error| Error::io("write", &target)(error.error))?;
        sync_folder(parent_of(&target))?;
        failpoint!(after, "write", "{}", name_of(&target));
        Ok(self.written)
    }
}

/// Reads a private file; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(Zeroizing::new(bytes))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::io("read", path)(source)),
    }
}

/// Reads a private file as UTF-8 text without its last line end; `None` if there is none.
pub fn read_text(path: &Path) -> Result<Option<Zeroizing<String>>, Error> {
    let Some(mut bytes) = read(path)? else {
        return Ok(None);
    };
    let mut text = match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Zeroizing::new(text),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            error.into_bytes().zeroize();
            return Err(Error::Malformed {
                path: path.to_owned(),
                expected: "text file",
                found: format!("its byte {valid} is not UTF-8"),
            });
        }
    };
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(Some(text))
}

/// Removes a private file, fsynced; answers whether there was one.
pub fn remove(path: &Path) -> Result<bool, Error> {
    failpoint!(before, "remove", "{}", name_of(path));
    match fs::remove_file(path) {
        Ok(()) => {
            sync_folder(parent_of(path))?;
            failpoint!(after, "remove", "{}", name_of(path));
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::io("remove", path)(source)),
    }
}

/// Moves a private file into a folder (made 0700), under its own name, fsynced; answers whether there was one. A name that is taken there is an error.
pub fn set_aside(path: &Path, folder: &Path) -> Result<bool, Error> {
    match fs::symlink_metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(Error::io("inspect", path)(source)),
    }
    create_folders(folder)?;
    let target = folder.join(path.file_name().unwrap_or_default());
    if target.exists() {
        let taken = io::Error::from(ErrorKind::AlreadyExists);
        return Err(Error::io("move a file to", &target)(taken));
    }
    failpoint!(before, "set aside", "{}", name_of(path));
    fs::rename(path, &target).map_err(Error::io("move away", path))?;
    sync_folder(folder)?;
    sync_folder(parent_of(path))?;
    failpoint!(after, "set aside", "{}", name_of(path));
    Ok(true)
}

/// Walks `folder` and brings every file to 0600 and every folder to 0700; answers what was looser. A missing folder is no error. Symbolic links are not
/// followed: what they lead to is not ours.
pub fn mend_modes(folder: &Path) -> Result<Vec<Mended>, Error> {
    let mut mended = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        match fs::symlink_metadata(&folder) {
            Ok(metadata) if metadata.is_dir() => mended.extend(mend_mode(&folder, FOLDER_MODE)?),
            Ok(_) => continue,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(source) => return Err(Error::io("inspect", &folder)(source)),
        }
        for entry in fs::read_dir(&folder).map_err(Error::io("list", &folder))? {
            let entry = entry.map_err(Error::io("list", &folder))?;
            let kind = entry
                .file_type()
                .map_err(Error::io("inspect", &entry.path()))?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                mended.extend(mend_mode(&entry.path(), FILE_MODE)?);
            }
        }
    }
    mended.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(mended)
}

/// Takes away the permission bits beyond `most`; stricter modes are left alone.
fn mend_mode(path: &Path, most: u32) -> Result<Option<Mended>, Error> {
    let found = fs::metadata(path)
        .map_err(Error::io("inspect", path))?
        .permissions()
        .mode()
        & 0o7777;
    if found & !most == 0 {
        return Ok(None);
    }
    fs::set_permissions(path, Permissions::from_mode(found & most))
        .map_err(Error::io("change the mode of", path))?;
    Ok(Some(Mended {
        path: path.to_owned(),
        found,
    }))
}

fn follow_link(path: &Path) -> Result<PathBuf, Error> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_symlink() => {
            fs::canonicalize(path).map_err(Error::io("follow the link", path))
        }
        _ => Ok(path.to_owned()),
    }
}

/// The folder a file is in; `.` for a bare name.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn name_of(path: &Path) -> std::borrow::Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// Makes the missing ones among `folder` and its parents, 0700 each, and makes their names durable. Folders that exist keep their mode.
fn create_folders(folder: &Path) -> Result<(), Error> {
    let missing: Vec<&Path> = folder
        .ancestors()
        .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
        .collect();
    for folder in missing.into_iter().rev() {
        match DirBuilder::new().mode(FOLDER_MODE).create(folder) {
            Ok(()) => sync_folder(parent_of(folder))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(source) => return Err(Error::io("create the folder", folder)(source)),
        }
    }
    Ok(())
}

/// Removes what a run that was killed while it wrote the same file left behind: its text may be a secret that nothing else holds any more.
fn remove_unfinished(folder: &Path, name: &str) -> Result<(), Error> {
    let prefix = format!(".{name}.");
    for entry in fs::read_dir(folder).map_err(Error::io("list", folder))? {
        let entry = entry.map_err(Error::io("list", folder))?;
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let middle = found
            .strip_prefix(&prefix)
            .and_then(|rest| rest.strip_suffix(UNFINISHED));
        // tempfile's six letters and digits, and nothing else: `.a.b.123456.new` belongs to the file `a.b`.
        if middle.is_some_and(|middle| middle.bytes().all(|byte| byte.is_ascii_alphanumeric())) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("remove", &entry.path())(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> Result<(), Error> {
    File::open(folder)
        .and_then(|file| file.sync_all())
        .map_err(Error::io("make durable", folder))
}

#[cfg(test)]
mod tests;
