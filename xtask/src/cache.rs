//! Content keys: what was built is found again by a digest of everything that went into it.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::error::{FileContext as _, Result};

/// Collects inputs in the order given; every part is length-prefixed, so that `ab`+`c` is not `a`+`bc`.
pub(crate) struct Key(Sha256);

impl Key {
    pub(crate) fn new(purpose: &str) -> Self {
        Self(Sha256::new()).text(purpose)
    }

    pub(crate) fn text(mut self, part: impl AsRef<[u8]>) -> Self {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
        self
    }

    pub(crate) fn file(self, path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut file = fs::File::open(path).file("open", path)?;
        file.read_to_end(&mut bytes).file("read", path)?;
        let mode = file.metadata().file("read", path)?.permissions().mode();
        // Only the executable bit is the author's: git keeps no other.
        Ok(self.text([u8::from(mode & 0o100 != 0)]).text(bytes))
    }

    /// Every file below a folder: relative names, executable bits, contents.
    pub(crate) fn folder(mut self, path: &Path) -> Result<Self> {
        let mut names: Vec<_> = fs::read_dir(path)
            .file("list", path)?
            .collect::<std::io::Result<Vec<_>>>()
            .file("list", path)?
            .into_iter()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        for name in names {
            let entry = path.join(&name);
            self = self.text(name.as_encoded_bytes());
            self = if entry.is_dir() {
                self.text("folder").folder(&entry)?.text("end")
            } else {
                self.text("file").file(&entry)?
            };
        }
        Ok(self)
    }

    /// Sixteen hexadecimal digits: enough to tell builds apart, short enough for a path.
    pub(crate) fn finish(self) -> String {
        use std::fmt::Write as _;
        self.0
            .finalize()
            .iter()
            .take(8)
            .fold(String::new(), |mut text, byte| {
                // Writing to a String does not fail.
                let _ = write!(text, "{byte:02x}");
                text
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other() {
        let one = Key::new("t").text("ab").text("c").finish();
        let two = Key::new("t").text("a").text("bc").finish();
        assert_ne!(one, two);
        assert_eq!(one.len(), 16);
    }

    #[test]
    fn a_changed_file_or_bit_changes_the_folders_key() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b");
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(&file, "1").unwrap();
        let key = || Key::new("t").folder(folder.path()).unwrap().finish();
        let first = key();
        assert_eq!(first, key());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let executable = key();
        assert_ne!(first, executable);
        fs::write(&file, "2").unwrap();
        assert_ne!(executable, key());
    }
}
