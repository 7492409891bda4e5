//! The folder that `docker build` is given: recipe files, copies, binaries.

use std::fs;
use std::path::Path;

use crate::error::{FileContext as _, Result};
use crate::go_binaries::Binary;

/// Copies a folder's contents, with modes; what is there already is overwritten.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).file("create", to)?;
    for entry in fs::read_dir(from).file("list", from)? {
        let source = entry.file("list", from)?.path();
        let place = to.join(source.file_name().unwrap_or_default());
        if source.is_dir() {
            copy_folder(&source, &place)?;
        } else {
            fs::copy(&source, &place).file("copy", &source)?;
        }
    }
    Ok(())
}

/// Puts a binary into a folder: a hard link where the file system allows it, for they are large.
pub(crate) fn place_binary(binary: &Binary, folder: &Path) -> Result<()> {
    let place = folder.join(&binary.name);
    if fs::hard_link(&binary.path, &place).is_err() {
        fs::copy(&binary.path, &place).file("copy", &binary.path)?;
    }
    Ok(())
}
