//! The init journal: what was intended before the one call whose answer cannot be had twice.
//!
//! `openbao-init.json.intended` is written before the call, `openbao-init.json.answer` holds the raw answer until the init file is on disk.

use std::path::{Path, PathBuf};

use blueprint_safekeeping::private_file;
use serde::{Deserialize, Serialize};

const EXPECTED: &str = "note of an intended OpenBao initialisation";

/// Where an initialisation stands, judged by what is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalState {
    /// Nothing was ever begun here.
    Clean,
    /// Init was intended and no answer reached the disk: whoever holds a key, it is not us.
    Intended,
    /// The raw answer is on disk, the init file not yet.
    Answered,
    /// The init file is there.
    Done,
}

/// The journal's files beside `openbao-init.json`.
#[derive(Debug, Clone)]
pub struct Journal {
    init_file: PathBuf,
}

impl Journal {
    /// For the given `openbao-init.json`.
    pub fn beside(init_file: &Path) -> Self {
        Self {
            init_file: init_file.to_owned(),
        }
    }

    pub(crate) fn init_file(&self) -> &Path {
        &self.init_file
    }

    /// What is on disk.
    ///
    /// The init file outranks an answer, and an answer an intention: the later file was written while the earlier ones still stood.
    pub fn state(&self) -> Result<JournalState, private_file::Error> {
        if private_file::read(&self.init_file)?.is_some() {
            Ok(JournalState::Done)
        } else if self.answer()?.is_some() {
            Ok(JournalState::Answered)
        } else if private_file::read(&self.intended_file())?.is_some() {
            Ok(JournalState::Intended)
        } else {
            Ok(JournalState::Clean)
        }
    }

    /// Notes, fsynced, that init is about to be called on a server that was seen uninitialised with empty storage; `system_identifier` is PostgreSQL's.
    pub fn intend(&self, system_identifier: &str) -> Result<(), private_file::Error> {
        let note = Intention {
            system_identifier: system_identifier.to_owned(),
            at: jiff::Timestamp::now().to_string(),
        };
        let text =
            serde_json::to_string(&note).map_err(|_| self.malformed("it cannot be written"))?;
        private_file::write(&self.intended_file(), format!("{text}\n").as_bytes()).map(|_| ())
    }

    /// The system identifier noted by [`Self::intend`].
    pub fn intended_on(&self) -> Result<Option<String>, private_file::Error> {
        let Some(bytes) = private_file::read(&self.intended_file())? else {
            return Ok(None);
        };
        let note: Intention = serde_json::from_slice(&bytes)
            .map_err(|error| self.malformed(&format!("it cannot be read: {error}")))?;
        Ok(Some(note.system_identifier))
    }

    /// Stores the raw answer before anything looks into it.
    pub fn answered(&self, raw: &[u8]) -> Result<(), private_file::Error> {
        private_file::write(&self.answer_file(), raw).map(|_| ())
    }

    /// The stored raw answer.
    pub fn answer(&self) -> Result<Option<zeroize::Zeroizing<Vec<u8>>>, private_file::Error> {
        private_file::read(&self.answer_file())
    }

    /// Removes the journal's own files once the init file is on disk. Without it nothing is removed: an answer would be lost.
    pub fn done(&self) -> Result<(), private_file::Error> {
        if private_file::read(&self.init_file)?.is_none() {
            return Err(private_file::Error::Malformed {
                path: self.init_file.clone(),
                expected: "OpenBao init file",
                found: "it is not there, so the journal beside it is kept".to_owned(),
            });
        }
        // The intention goes last: a crash in between leaves a state that says no less than the init file does.
        private_file::remove(&self.answer_file())?;
        private_file::remove(&self.intended_file())?;
        Ok(())
    }

    /// Drops an intention that is known to have come to nothing. A stored answer stays.
    pub fn forget(&self) -> Result<(), private_file::Error> {
        private_file::remove(&self.intended_file()).map(|_| ())
    }

    fn intended_file(&self) -> PathBuf {
        self.beside_it(".intended")
    }

    fn answer_file(&self) -> PathBuf {
        self.beside_it(".answer")
    }

    fn beside_it(&self, suffix: &str) -> PathBuf {
        let mut name = self.init_file.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    }

    fn malformed(&self, found: &str) -> private_file::Error {
        private_file::Error::Malformed {
            path: self.intended_file(),
            expected: EXPECTED,
            found: found.to_owned(),
        }
    }
}

/// The intention's file. It holds no secret.
#[derive(Serialize, Deserialize)]
struct Intention {
    system_identifier: String,
    at: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Home {
        _folder: tempfile::TempDir,
        init_file: PathBuf,
        journal: Journal,
    }

    fn home() -> Home {
        let folder = tempfile::tempdir().unwrap();
        let init_file = folder.path().join("secrets/openbao-init.json");
        let journal = Journal::beside(&init_file);
        Home {
            _folder: folder,
            init_file,
            journal,
        }
    }

    #[test]
    fn the_states_follow_each_other() {
        let home = home();
        let journal = &home.journal;
        assert_eq!(journal.state().unwrap(), JournalState::Clean);
        assert_eq!(journal.intended_on().unwrap(), None);
        journal.intend("7413").unwrap();
        assert_eq!(journal.state().unwrap(), JournalState::Intended);
        assert_eq!(journal.intended_on().unwrap().as_deref(), Some("7413"));
        journal.answered(b"raw").unwrap();
        assert_eq!(journal.state().unwrap(), JournalState::Answered);
        assert_eq!(journal.answer().unwrap().unwrap().as_slice(), b"raw");
        private_file::write(&home.init_file, b"{}").unwrap();
        assert_eq!(journal.state().unwrap(), JournalState::Done);
        journal.done().unwrap();
        let left: Vec<_> = std::fs::read_dir(home.init_file.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(left, [home.init_file]);
    }

    #[test]
    fn an_answer_is_never_dropped_before_the_init_file_is_there() {
        let home = home();
        home.journal.intend("7413").unwrap();
        home.journal.answered(b"raw").unwrap();
        home.journal.done().unwrap_err();
        home.journal.forget().unwrap();
        assert_eq!(home.journal.state().unwrap(), JournalState::Answered);
    }

    #[test]
    fn an_intention_that_came_to_nothing_is_forgotten() {
        let home = home();
        home.journal.intend("7413").unwrap();
        home.journal.forget().unwrap();
        assert_eq!(home.journal.state().unwrap(), JournalState::Clean);
        home.journal.forget().unwrap();
    }

    #[test]
    fn an_edited_intention_is_refused() {
        let home = home();
        private_file::write(&home.journal.intended_file(), b"{").unwrap();
        let error = home.journal.intended_on().unwrap_err();
        assert!(
            error.to_string().contains("openbao-init.json.intended"),
            "{error}"
        );
        assert_eq!(home.journal.state().unwrap(), JournalState::Intended);
    }
}
