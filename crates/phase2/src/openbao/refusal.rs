//! A refusal in words: what was found where, and the ways out.

use super::decide::Reason;
use crate::error::Error;
use crate::workspace::Workspace;

impl Reason {
    /// What it is, what was expected, what was found, and what can be done by hand. `file` is the init file, `identifier` PostgreSQL's.
    pub(crate) fn words(
        self,
        file: &str,
        identifier: &str,
    ) -> (&'static str, String, String, String) {
        let database = format!("database openbao of PostgreSQL {identifier}");
        match self {
            Self::KeysWithoutServer => (
                "OpenBao's keys are on disk, but the server has never been initialised",
                "the server that the keys belong to".to_owned(),
                format!(
                    "keys in {file} (or the answer beside it), and nothing initialised in {database}"
                ),
                format!(
                    "stop and bring back the PostgreSQL volume that {file} belongs to, or a backup of it"
                ),
            ),
            Self::ServerWithoutKeys => (
                "OpenBao is initialised, but its keys are not on disk",
                format!("unseal keys and root token in {file}"),
                format!(
                    "an initialised server in {database}, no {file}, and no journal of an initialisation of ours"
                ),
                format!(
                    "put {file} back from a copy (the shape of `bao operator init -format=json`); without the keys the content of {database} cannot be read by anybody"
                ),
            ),
            Self::RowsWithoutInit => (
                "OpenBao calls itself uninitialised, but its tables hold rows",
                "empty tables before a first initialisation".to_owned(),
                format!(
                    "rows in openbao_kv_store of {database}, no {file}, and no journal of an initialisation of ours"
                ),
                format!("find out who uses {database}"),
            ),
            Self::ForeignJournal => (
                "an initialisation was cut off on another PostgreSQL than the one that runs",
                "the journal and the database to belong together".to_owned(),
                format!(
                    "a journal beside {file} that names another system identifier than {identifier}, and a database that is not empty"
                ),
                "bring back the PostgreSQL volume of that time".to_owned(),
            ),
            Self::SomebodyHoldsKeys => (
                "OpenBao was unsealed by somebody, but its keys are not on disk",
                format!("unseal keys and root token in {file}"),
                format!(
                    "an unsealed server in {database}, and a journal of an initialisation of ours that got no answer"
                ),
                format!(
                    "whoever unsealed it has the keys: write them to {file} in the shape of `bao operator init -format=json` and run again"
                ),
            ),
        }
    }
}

/// The refusal of step 8. `identifier` is the running PostgreSQL's.
pub(super) fn refusal(reason: Reason, workspace: &Workspace, identifier: &str) -> Error {
    let file = workspace.openbao_init();
    let (summary, expected, found, by_hand) = reason.words(&file.display().to_string(), identifier);
    Error::Refused {
        summary: summary.to_owned(),
        expected,
        found,
        hint: format!(
            "{by_hand}; or run `blueprint up` again: now that PostgreSQL runs, pre-flight lists what `--accept` can do"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_names_the_file_and_the_database() {
        let workspace = Workspace::at("/w");
        for reason in [
            Reason::KeysWithoutServer,
            Reason::ServerWithoutKeys,
            Reason::RowsWithoutInit,
            Reason::ForeignJournal,
            Reason::SomebodyHoldsKeys,
        ] {
            let Error::Refused {
                expected,
                found,
                hint,
                ..
            } = refusal(reason, &workspace, "7421")
            else {
                panic!("{reason:?}")
            };
            let text = format!("{expected} {found} {hint}");
            assert!(
                text.contains("infra/secrets/openbao-init.json") && text.contains("7421"),
                "{reason:?}: {text}"
            );
        }
    }
}
