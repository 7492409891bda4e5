//! The ways out of ambiguous states: a closed set.

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The PGDATA on the volume goes aside.
    PgdataAside,
    /// The PGDATA on the volume is the right one.
    AdoptDatabase,
    /// The files of data that is gone go aside.
    SecretsAside,
    /// OpenBao's keys go aside.
    OpenbaoKeysAside,
    /// OpenBao's tables go aside.
    OpenbaoDataAside,
    /// GitLab goes on with new keys.
    NewGitlabKeys,
    /// All volumes go aside.
    VolumesAside,
    /// This workspace becomes the volumes' installation.
    AdoptVolumes,
    /// The file's password is set.
    FilePassword,
    /// The Secret's password is set.
    ClusterPassword,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::PgdataAside,
        Self::AdoptDatabase,
        Self::SecretsAside,
        Self::OpenbaoKeysAside,
        Self::OpenbaoDataAside,
        Self::NewGitlabKeys,
        Self::VolumesAside,
        Self::AdoptVolumes,
        Self::FilePassword,
        Self::ClusterPassword,
    ];

    /// As typed after `--accept`.
    pub const fn id(self) -> &'static str {
        match self {
            Self::PgdataAside => "pgdata-aside",
            Self::AdoptDatabase => "adopt-database",
            Self::SecretsAside => "secrets-aside",
            Self::OpenbaoKeysAside => "openbao-keys-aside",
            Self::OpenbaoDataAside => "openbao-data-aside",
            Self::NewGitlabKeys => "new-gitlab-keys",
            Self::VolumesAside => "volumes-aside",
            Self::AdoptVolumes => "adopt-volumes",
            Self::FilePassword => "file-password",
            Self::ClusterPassword => "cluster-password",
        }
    }

    /// What it does, for help, docs and messages.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::PgdataAside => {
                "moves pgdata on the volume to pgdata_aside_<time> beside it and starts with an empty database"
            }
            Self::AdoptDatabase => {
                "takes the database on the volume as the right one and records its system identifier (the former record is kept beside it)"
            }
            Self::SecretsAside => {
                "moves the files that belong to the missing data to infra/secrets/aside_<time> and starts an empty installation"
            }
            Self::OpenbaoKeysAside => {
                "moves openbao-init.json and its journal to infra/secrets/aside_<time>, so that OpenBao is initialised anew"
            }
            Self::OpenbaoDataAside => {
                "moves OpenBao's tables into the schema aside_<time> of its database in step 8 and initialises it anew"
            }
            Self::NewGitlabKeys => {
                "lets GitLab mint new keys: tokens, CI variables and two-factor logins in the old database cannot be read with them"
            }
            Self::VolumesAside => {
                "moves the volumes' folders to aside_<time> in the storage root and starts with empty ones"
            }
            Self::AdoptVolumes => {
                "makes this workspace the installation that the volumes belong to (the former id is kept beside it)"
            }
            Self::FilePassword => "sets the password of the private file in the running service",
            Self::ClusterPassword => {
                "sets the password of the cluster's Secret in the running service and saves it (the former file is kept beside it)"
            }
        }
    }

    /// By what was typed.
    pub fn by_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.id() == id)
    }
}
