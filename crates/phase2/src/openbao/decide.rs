//! What to do about OpenBao's initialisation: a pure function of what is on disk, what the server says and what its database holds.
//!
//! An init answer that is lost in transit cannot be had again: nobody holds a key, and the server answers 400 for ever. A server that is initialised again
//! beside an old database, or keys that are thrown away although they would open something, is lost data. So every combination is decided here, and
//! everything that is not plainly safe is refused with what was found.

use blueprint_openbao::{Health, JournalState};

/// What is known before anything is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The init file and the journal beside it.
    pub(crate) journal: JournalState,
    /// What the server says of itself.
    pub(crate) health: Health,
    /// Whether OpenBao's tables hold any row.
    pub(crate) rows: Rows,
    /// Whether the journal was written for the PostgreSQL that runs now (its system identifier).
    pub(crate) same_database: bool,
}

/// OpenBao's storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// No table, or an empty one.
    None,
    /// Something.
    Some,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Note the intention, then initialise.
    Init,
    /// Unseal with the keys of the init file.
    Unseal,
    /// The answer reached the disk, the init file did not: write it.
    FinishAnswered,
    /// The answer was lost and nothing was ever stored: empty the tables, start over.
    RecoverLostInit,
    /// Not ours to decide.
    Refuse(Reason),
    /// Initialised, unsealed, and the keys are on disk.
    Nothing,
}

/// Why it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Keys on disk, but the server has never been initialised.
    KeysWithoutServer,
    /// The server is initialised, but there are neither keys nor a journal.
    ServerWithoutKeys,
    /// The server calls itself uninitialised although its tables hold rows.
    RowsWithoutInit,
    /// A journal of another PostgreSQL.
    ForeignJournal,
    /// Our init got no answer, yet somebody unsealed the server: somebody holds keys.
    SomebodyHoldsKeys,
}

/// Decides.
pub(crate) fn decide(seen: Seen) -> Decision {
    let initialised = seen.health != Health::Uninitialised;
    match seen.journal {
        JournalState::Done => match seen.health {
            Health::Uninitialised => Decision::Refuse(Reason::KeysWithoutServer),
            Health::Sealed => Decision::Unseal,
            Health::Active | Health::Standby => Decision::Nothing,
        },
        JournalState::Answered if initialised => Decision::FinishAnswered,
        JournalState::Answered => Decision::Refuse(Reason::KeysWithoutServer),
        JournalState::Intended => after_an_intention(seen),
        JournalState::Clean if initialised => Decision::Refuse(Reason::ServerWithoutKeys),
        JournalState::Clean => match seen.rows {
            Rows::None => Decision::Init,
            Rows::Some => Decision::Refuse(Reason::RowsWithoutInit),
        },
    }
}

/// Init was intended on storage that was seen empty, and no answer reached the disk.
fn after_an_intention(seen: Seen) -> Decision {
    match (seen.health, seen.rows) {
        // The call never arrived, or its tables are gone: nothing to lose, on whichever database.
        (Health::Uninitialised, Rows::None) => Decision::Init,
        (Health::Active | Health::Standby, _) => Decision::Refuse(Reason::SomebodyHoldsKeys),
        (Health::Uninitialised | Health::Sealed, _) if seen.same_database => {
            Decision::RecoverLostInit
        }
        (Health::Uninitialised | Health::Sealed, _) => Decision::Refuse(Reason::ForeignJournal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOURNALS: [JournalState; 4] = [
        JournalState::Clean,
        JournalState::Intended,
        JournalState::Answered,
        JournalState::Done,
    ];
    const HEALTHS: [Health; 4] = [
        Health::Uninitialised,
        Health::Sealed,
        Health::Active,
        Health::Standby,
    ];

    fn expected(
        journal: JournalState,
        health: Health,
        rows: Rows,
        same_database: bool,
    ) -> Decision {
        use Decision::{FinishAnswered, Init, Nothing, RecoverLostInit, Refuse, Unseal};
        use Health::{Active, Sealed, Standby, Uninitialised};
        use JournalState::{Answered, Clean, Done, Intended};
        match (journal, health, rows, same_database) {
            (Clean | Intended, Uninitialised, Rows::None, _) => Init,
            (Clean, Uninitialised, Rows::Some, _) => Refuse(Reason::RowsWithoutInit),
            (Clean, Sealed | Active | Standby, _, _) => Refuse(Reason::ServerWithoutKeys),
            (Intended, Uninitialised, Rows::Some, true) | (Intended, Sealed, _, true) => {
                RecoverLostInit
            }
            (Intended, Uninitialised, Rows::Some, false) | (Intended, Sealed, _, false) => {
                Refuse(Reason::ForeignJournal)
            }
            (Intended, Active | Standby, _, _) => Refuse(Reason::SomebodyHoldsKeys),
            (Answered | Done, Uninitialised, _, _) => Refuse(Reason::KeysWithoutServer),
            (Answered, Sealed | Active | Standby, _, _) => FinishAnswered,
            (Done, Sealed, _, _) => Unseal,
            (Done, Active | Standby, _, _) => Nothing,
        }
    }

    #[test]
    fn every_combination_is_decided_as_written_down() {
        let mut combinations = 0;
        for journal in JOURNALS {
            for health in HEALTHS {
                for rows in [Rows::None, Rows::Some] {
                    for same_database in [true, false] {
                        let seen = Seen {
                            journal,
                            health,
                            rows,
                            same_database,
                        };
                        assert_eq!(
                            decide(seen),
                            expected(journal, health, rows, same_database),
                            "{seen:?}"
                        );
                        combinations += 1;
                    }
                }
            }
        }
        assert_eq!(combinations, 64);
    }

    #[test]
    fn tables_are_dropped_only_when_nobody_can_hold_a_key() {
        for journal in JOURNALS {
            for health in HEALTHS {
                for rows in [Rows::None, Rows::Some] {
                    for same_database in [true, false] {
                        let decision = decide(Seen {
                            journal,
                            health,
                            rows,
                            same_database,
                        });
                        if decision == Decision::RecoverLostInit {
                            assert!(
                                journal == JournalState::Intended && same_database,
                                "{journal:?}"
                            );
                            assert!(matches!(health, Health::Uninitialised | Health::Sealed));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn keys_on_disk_are_never_written_over_by_a_new_init() {
        for journal in [JournalState::Answered, JournalState::Done] {
            for health in HEALTHS {
                for rows in [Rows::None, Rows::Some] {
                    let decision = decide(Seen {
                        journal,
                        health,
                        rows,
                        same_database: true,
                    });
                    assert!(
                        !matches!(decision, Decision::Init | Decision::RecoverLostInit),
                        "{journal:?} {health:?} {rows:?}"
                    );
                }
            }
        }
    }
}
