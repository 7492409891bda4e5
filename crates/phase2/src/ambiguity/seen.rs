//! What is known before anything is done, and what a way would make of it. Pure.

use blueprint_openbao::{Health, JournalState};

use super::way::Way;
use crate::cloudnative_pg::volume_decision::{Decision, Found};
use crate::cloudnative_pg::{self};
use crate::installation::Marker;
use crate::openbao::{Rows, Seen as OpenBaoSeen};

/// Everything that decides.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The workspace's installation.
    pub(super) installation: Option<String>,
    /// What the storage root says it belongs to.
    pub(super) marker: Option<Marker>,
    /// Volumes' folders that hold anything; looked at only where the marker is not ours.
    pub(super) data: Vec<String>,
    /// Whether a volume is bound: something may run on it.
    pub(super) in_use: bool,
    /// `None`: it could not be looked at.
    pub(super) postgresql: Option<cloudnative_pg::Seen>,
    /// The system identifier of the last Ready database.
    pub(super) recorded: Option<u64>,
    pub(super) openbao: OpenBao,
    pub(super) gitlab: Gitlab,
    pub(super) clashes: Vec<Clash>,
    pub(super) places: Places,
}

/// OpenBao's keys on disk, and its server.
#[derive(Debug, Clone)]
pub(super) struct OpenBao {
    pub(super) journal: JournalState,
    /// The system identifier in the journal of an intended initialisation.
    pub(super) intended_on: Option<String>,
    /// What the server or its database said; `None` when neither could be asked.
    pub(super) server: Option<(Health, Rows)>,
}

/// GitLab's keys, and data that needs them.
#[derive(Debug, Clone)]
pub(super) struct Gitlab {
    pub(super) snapshot: bool,
    /// Whether the cluster has Rails' keys.
    pub(super) keys_in_cluster: bool,
    /// Gitaly's volume holds repositories; looked at only where there are no keys.
    pub(super) repositories: bool,
}

/// Two passwords, both refused by the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clash {
    /// `the Redis password`.
    pub(super) what: String,
    pub(super) expected: String,
    pub(super) found: String,
    pub(super) hint: String,
}

/// Names for messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    pub(super) storage_root: String,
    pub(super) marker: String,
    pub(super) installation: String,
    pub(super) record: String,
    pub(super) init_file: String,
    pub(super) snapshot: String,
    pub(super) gitaly: String,
}

impl Seen {
    /// The database that is there: its system identifier, running or on the volume.
    pub(super) fn database(&self) -> Option<u64> {
        match self.postgresql.as_ref()? {
            cloudnative_pg::Seen::Running(identifier) => *identifier,
            cloudnative_pg::Seen::Volume(volume) => match volume.decide(None) {
                Ok(Decision::Adopt { system_identifier }) => Some(system_identifier),
                _ => None,
            },
        }
    }

    /// Whether the volume is known to hold no database at all.
    pub(super) fn no_database(&self) -> bool {
        match &self.postgresql {
            Some(cloudnative_pg::Seen::Volume(volume)) => volume.found == Found::default(),
            _ => false,
        }
    }

    /// What the server of OpenBao is, by the best source there is: itself, its tables, or what the storage remembers of the database that is there.
    pub(super) fn openbao(&self) -> Option<OpenBaoSeen> {
        let database = self.database().map(|identifier| identifier.to_string());
        let remembered = || {
            let on = self.marker.as_ref()?.openbao_on.as_ref()?;
            (Some(on) == database.as_ref()).then_some((Health::Sealed, Rows::Some))
        };
        let (health, rows) = self.openbao.server.or_else(remembered)?;
        let intended_on = self.openbao.intended_on.as_ref();
        Some(OpenBaoSeen {
            journal: self.openbao.journal,
            health,
            rows,
            same_database: intended_on.is_some() && intended_on == database.as_ref(),
        })
    }

    /// Whether data is there that GitLab's keys were used on.
    pub(super) fn needs_gitlab_keys(&self) -> bool {
        let database = self.database().map(|identifier| identifier.to_string());
        let remembered = self
            .marker
            .as_ref()
            .and_then(|marker| marker.gitlab_on.as_ref());
        self.gitlab.repositories || (remembered.is_some() && remembered == database.as_ref())
    }

    /// What would be there after a way was taken.
    pub(super) fn after(mut self, way: Way) -> Self {
        match way {
            Way::PgdataAside => self.empty_postgresql(),
            Way::AdoptDatabase => self.recorded = self.database(),
            Way::SecretsAside => {
                self.recorded = None;
                self.gitlab.snapshot = false;
                self.openbao.journal = JournalState::Clean;
                self.openbao.intended_on = None;
            }
            Way::OpenbaoKeysAside => {
                self.openbao.journal = JournalState::Clean;
                self.openbao.intended_on = None;
            }
            Way::OpenbaoDataAside => {
                self.openbao.server = Some((Health::Uninitialised, Rows::None));
            }
            Way::NewGitlabKeys => self.gitlab.keys_in_cluster = true,
            Way::VolumesAside => {
                self.empty_postgresql();
                self.marker = None;
                self.data.clear();
                self.gitlab.repositories = false;
                self.openbao.server = None;
            }
            Way::AdoptVolumes => {
                self.installation = self
                    .marker
                    .as_ref()
                    .map(|marker| marker.installation.clone());
            }
            Way::FilePassword | Way::ClusterPassword => self.clashes.clear(),
        }
        self
    }

    fn empty_postgresql(&mut self) {
        if let Some(cloudnative_pg::Seen::Volume(volume)) = &mut self.postgresql {
            volume.found = Found::default();
        }
    }

    /// The PostgreSQL volume in few words, for a pre-flight that passes.
    pub(super) fn in_words(&self) -> String {
        match (&self.postgresql, self.database()) {
            (None, _) => "none that could be seen".to_owned(),
            (Some(cloudnative_pg::Seen::Running(_)), _) => "none; PostgreSQL runs".to_owned(),
            (Some(_), Some(identifier)) => {
                format!(
                    "none; the PostgreSQL volume holds system {identifier}, which step 5 adopts"
                )
            }
            (Some(_), None) => "none; the PostgreSQL volume is empty".to_owned(),
        }
    }
}
