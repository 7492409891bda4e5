//! From what was seen to the states that need a person, and which accepted ways settle them. Pure.

use blueprint_openbao::JournalState;

use super::seen::{Clash, Seen};
use super::way::Way;
use crate::cloudnative_pg;
use crate::cloudnative_pg::volume_decision::{Stop, StopKind};
use crate::error::Error;
use crate::openbao::{Decision, Reason, decide};
use crate::preflight::Check;

/// Which kind of ambiguity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    HalfWrittenPgdata,
    /// A database that is not the recorded one, or one that only hands can put right.
    OtherDatabase,
    SecretsWithoutVolumes,
    VolumesWithoutSecrets,
    KeysWithoutServer,
    ServerWithoutKeys,
    ForeignVolumes,
    TwoPasswords,
}

impl State {
    /// As people read it, and as docs/identity.md calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::HalfWrittenPgdata => "half-written PGDATA",
            Self::OtherDatabase => "another database",
            Self::SecretsWithoutVolumes => "secrets without volumes",
            Self::VolumesWithoutSecrets => "volumes without secrets",
            Self::KeysWithoutServer => "keys without a server",
            Self::ServerWithoutKeys => "a server without keys",
            Self::ForeignVolumes => "volumes of another installation",
            Self::TwoPasswords => "two passwords that both fail",
        }
    }
}

/// One state with all that a person needs to decide.
#[derive(Debug, Clone)]
pub(crate) struct Ambiguity {
    pub(crate) state: State,
    pub(crate) expected: String,
    pub(crate) found: String,
    /// What can be done by hand.
    pub(crate) by_hand: String,
    /// What `--accept` can do.
    pub(crate) ways: Vec<Way>,
}

impl Ambiguity {
    fn hint(&self) -> String {
        self.ways.iter().fold(self.by_hand.clone(), |text, way| {
            format!(
                "{text}; or `blueprint up --accept {}`, which {}",
                way.id(),
                way.meaning()
            )
        })
    }

    pub(crate) fn as_check(&self) -> Check {
        Check::short(self.state.name(), &self.expected, &self.found, self.hint())
    }

    pub(crate) fn into_error(self) -> Error {
        Error::Refused {
            summary: self.state.name().to_owned(),
            hint: self.hint(),
            expected: self.expected,
            found: self.found,
        }
    }
}

/// What the accepted ways come to.
#[derive(Debug)]
pub(super) struct Plan {
    /// The ways to take, in this order, each with the state it settles.
    pub(super) take: Vec<(Way, State)>,
    /// What is still undecided.
    pub(super) left: Vec<Ambiguity>,
    /// Accepted, but there is no state that they fit.
    pub(super) unfit: Vec<Way>,
}

/// Takes the accepted ways in thought, one after the other: settling one state may show another (a database set aside leaves its keys without a server).
pub(super) fn plan(seen: &Seen, accepted: &[Way]) -> Plan {
    let mut seen = seen.clone();
    let mut take: Vec<(Way, State)> = Vec::new();
    loop {
        let found = judge(&seen);
        let next = accepted
            .iter()
            .filter(|way| take.iter().all(|(taken, _)| taken != *way))
            .find_map(|way| {
                let fits = found.iter().find(|ambiguity| ambiguity.ways.contains(way));
                fits.map(|ambiguity| (*way, ambiguity.state))
            });
        let Some((way, state)) = next else {
            let unfit = accepted
                .iter()
                .filter(|way| take.iter().all(|(taken, _)| taken != *way))
                .copied()
                .collect();
            return Plan {
                take,
                left: found,
                unfit,
            };
        };
        seen = seen.after(way);
        take.push((way, state));
    }
}

/// Every state that needs a person.
pub(super) fn judge(seen: &Seen) -> Vec<Ambiguity> {
    let mut found: Vec<Ambiguity> = seen.clashes.iter().map(clash).collect();
    // What else does not fit together follows from this one.
    if let Some(foreign) = foreign_volumes(seen) {
        found.push(foreign);
        return found;
    }
    if let Some(missing) = without_volumes(seen) {
        found.push(missing);
        return found;
    }
    found.extend(volume(seen));
    found.extend(openbao(seen));
    found.extend(gitlab(seen));
    found
}

fn foreign_volumes(seen: &Seen) -> Option<Ambiguity> {
    let marker = seen.marker.as_ref()?;
    if seen.installation.as_ref() == Some(&marker.installation) || seen.data.is_empty() {
        return None;
    }
    // Only the id was lost: the record says that it is ours.
    if seen.installation.is_none() && seen.recorded.is_some() && seen.recorded == seen.database() {
        return None;
    }
    let places = &seen.places;
    let ours = match &seen.installation {
        Some(id) => format!("installation {id} ({})", places.installation),
        None => format!("no installation yet (no {})", places.installation),
    };
    Some(Ambiguity {
        state: State::ForeignVolumes,
        expected: format!(
            "empty volumes in {}, or those of this workspace",
            places.storage_root
        ),
        found: format!(
            "data of installation {} since {} ({}) in {}; this workspace is {ours}",
            marker.installation,
            marker.since,
            places.marker,
            seen.data.join(", ")
        ),
        by_hand: format!(
            "work in the workspace of installation {}, or put its infra/secrets and infra/tls here; or mount another storage folder",
            marker.installation
        ),
        ways: with_free_volumes(seen, &[Way::AdoptVolumes]),
    })
}

/// Volumes are moved only while nothing runs on them.
fn with_free_volumes(seen: &Seen, ways: &[Way]) -> Vec<Way> {
    let aside = (!seen.in_use).then_some(Way::VolumesAside);
    ways.iter().copied().chain(aside).collect()
}

/// Files that belong to data, and no data.
fn without_volumes(seen: &Seen) -> Option<Ambiguity> {
    if !seen.no_database() {
        return None;
    }
    let keys = match seen.openbao.journal {
        JournalState::Done => Some(seen.places.init_file.clone()),
        JournalState::Answered => Some(format!("{}.answer", seen.places.init_file)),
        JournalState::Intended | JournalState::Clean => None,
    };
    let record = seen
        .recorded
        .map(|identifier| format!("system identifier {identifier} in {}", seen.places.record));
    let snapshot = seen.gitlab.snapshot.then(|| seen.places.snapshot.clone());
    let only_keys = record.is_none() && snapshot.is_none();
    let files: Vec<String> = [record, keys, snapshot].into_iter().flatten().collect();
    if files.is_empty() {
        return None;
    }
    let root = &seen.places.storage_root;
    Some(if only_keys {
        Ambiguity {
            state: State::KeysWithoutServer,
            expected: "the server that OpenBao's keys belong to".to_owned(),
            found: format!(
                "keys in {}, and no database on the PostgreSQL volume in {root}",
                files.join(", ")
            ),
            by_hand: format!("mount or restore the PostgreSQL volume into {root}"),
            ways: vec![Way::OpenbaoKeysAside],
        }
    } else {
        Ambiguity {
            state: State::SecretsWithoutVolumes,
            expected: format!("the data that this workspace's files belong to, in {root}"),
            found: format!(
                "{}, and no database on the PostgreSQL volume",
                files.join(", ")
            ),
            by_hand: format!(
                "mount the right folder at {root} in every node, or restore its content"
            ),
            ways: vec![Way::SecretsAside],
        }
    })
}

fn volume(seen: &Seen) -> Option<Ambiguity> {
    let Some(cloudnative_pg::Seen::Volume(volume)) = &seen.postgresql else {
        return None;
    };
    let Stop {
        kind,
        summary,
        expected,
        found,
        hint,
    } = volume.decide(seen.recorded).err()?;
    let (state, ways) = match kind {
        StopKind::HalfWritten => (State::HalfWrittenPgdata, vec![Way::PgdataAside]),
        StopKind::Foreign => (
            State::OtherDatabase,
            vec![Way::AdoptDatabase, Way::PgdataAside],
        ),
        StopKind::DataMissing | StopKind::Other => (State::OtherDatabase, Vec::new()),
    };
    Some(Ambiguity {
        state,
        expected,
        found: format!("{summary}: {found}"),
        by_hand: hint,
        ways,
    })
}

fn openbao(seen: &Seen) -> Option<Ambiguity> {
    let Decision::Refuse(reason) = decide(seen.openbao()?) else {
        return None;
    };
    let (state, ways): (State, &[Way]) = match reason {
        Reason::KeysWithoutServer => (State::KeysWithoutServer, &[Way::OpenbaoKeysAside]),
        Reason::ForeignJournal => (State::ServerWithoutKeys, &[Way::OpenbaoKeysAside]),
        Reason::ServerWithoutKeys | Reason::RowsWithoutInit => {
            (State::ServerWithoutKeys, &[Way::OpenbaoDataAside])
        }
        Reason::SomebodyHoldsKeys => (State::ServerWithoutKeys, &[]),
    };
    let database = seen.database().map_or_else(
        || "not known".to_owned(),
        |identifier| identifier.to_string(),
    );
    let (summary, expected, found, by_hand) = reason.words(&seen.places.init_file, &database);
    Some(Ambiguity {
        state,
        expected,
        found: format!("{summary}: {found}"),
        by_hand,
        ways: ways.to_vec(),
    })
}

fn gitlab(seen: &Seen) -> Option<Ambiguity> {
    if seen.gitlab.snapshot || seen.gitlab.keys_in_cluster || !seen.needs_gitlab_keys() {
        return None;
    }
    let mut data = Vec::new();
    if let Some(identifier) = seen.database() {
        data.push(format!("database {identifier}"));
    }
    if seen.gitlab.repositories {
        data.push(format!("repositories in {}", seen.places.gitaly));
    }
    Some(Ambiguity {
        state: State::VolumesWithoutSecrets,
        expected: format!(
            "{} (or one of its copies .1 to .5), made when this data was",
            seen.places.snapshot
        ),
        found: format!(
            "GitLab's data ({}), and its keys neither there nor in the cluster",
            data.join(", ")
        ),
        by_hand: format!("put {} back from a copy", seen.places.snapshot),
        ways: with_free_volumes(seen, &[Way::NewGitlabKeys]),
    })
}

fn clash(clash: &Clash) -> Ambiguity {
    Ambiguity {
        state: State::TwoPasswords,
        expected: clash.expected.clone(),
        found: format!("{}: {}", clash.what, clash.found),
        by_hand: clash.hint.clone(),
        ways: vec![Way::FilePassword, Way::ClusterPassword],
    }
}
