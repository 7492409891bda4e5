//! A refusal in words: what was found where, and the ways out.

use super::decide::Reason;
use crate::error::Error;
use crate::workspace::Workspace;

/// `identifier` is the running PostgreSQL's.
pub(super) fn refusal(reason: Reason, workspace: &Workspace, identifier: &str) -> Error {
    let file = workspace.openbao_init();
    let file = file.display();
    let database = format!("database openbao of PostgreSQL {identifier}");
    let (summary, expected, found, hint) = match reason {
        Reason::KeysWithoutServer => (
            "OpenBao's keys are on disk, but the server has never been initialised",
            "the server that the keys belong to".to_owned(),
            format!(
                "keys in {file} (or the answer beside it), and nothing initialised in {database}"
            ),
            format!(
                "if the old data should be there, stop and bring back the PostgreSQL volume or a backup of it; if this is meant to be a new, \
                 empty installation, move {file} and the files beside it away and run again"
            ),
        ),
        Reason::ServerWithoutKeys => (
            "OpenBao is initialised, but its keys are not on disk",
            format!("unseal keys and root token in {file}"),
            format!(
                "an initialised server in {database}, no {file}, and no journal of an initialisation of ours"
            ),
            format!(
                "put the file back from a copy (the shape of `bao operator init -format=json`); without the keys its content cannot be read by \
                 anybody: to give it up, drop the tables openbao_kv_store and openbao_ha_locks in {database} and delete pod openbao-0"
            ),
        ),
        Reason::RowsWithoutInit => (
            "OpenBao calls itself uninitialised, but its tables hold rows",
            "empty tables before a first initialisation".to_owned(),
            format!(
                "rows in openbao_kv_store of {database}, no {file}, and no journal of an initialisation of ours"
            ),
            format!(
                "find out who uses {database}; if nobody needs the rows, drop openbao_kv_store and openbao_ha_locks there and run again"
            ),
        ),
        Reason::ForeignJournal => (
            "an initialisation was cut off on another PostgreSQL than the one that runs",
            "the journal and the database to belong together".to_owned(),
            format!(
                "a journal beside {file} that names another system identifier than {identifier}, and a database that is not empty"
            ),
            format!(
                "bring back the PostgreSQL volume of that time, or move the journal beside {file} away if it is of no use any more"
            ),
        ),
        Reason::SomebodyHoldsKeys => (
            "OpenBao was unsealed by somebody, but its keys are not on disk",
            format!("unseal keys and root token in {file}"),
            format!(
                "an unsealed server in {database}, and a journal of an initialisation of ours that got no answer"
            ),
            format!(
                "whoever unsealed it has the keys: write them to {file} in the shape of `bao operator init -format=json` and run again"
            ),
        ),
    };
    Error::Refused {
        summary: summary.to_owned(),
        expected,
        found,
        hint,
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
