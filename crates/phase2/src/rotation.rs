//! `blueprint secrets rotate`: one credential changed everywhere it lives, and proven to work before the former one goes.
//!
//! The new value is on disk before anything else knows of it. From there every copy follows by the installer that owns it, so that a run that was cut off is
//! ended by the same command, and `up` finds a state that it knows.

mod password;
pub(crate) mod pending;
mod service;

use std::path::PathBuf;

use blueprint_pipeline::Outcome;

use crate::catalog::Catalog;
use crate::error::Error;
use crate::installer::Work;
use crate::workspace::Workspace;
use crate::{openbao, wildcard_certs};

use service::Service;

/// What can be rotated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Password of PostgreSQL role `gitlab`.
    PostgresqlGitlab,
    /// Password of PostgreSQL role `openbao`.
    PostgresqlOpenbao,
    /// Password of PostgreSQL role `gitlab_openbao`.
    PostgresqlGitlabOpenbao,
    /// Redis' password.
    Redis,
    /// Password of MinIO's root user.
    Minio,
    /// OpenBao's unseal keys.
    OpenbaoKeys,
    /// The wildcard certificate and its key.
    Wildcard,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PostgresqlGitlab,
        Self::PostgresqlOpenbao,
        Self::PostgresqlGitlabOpenbao,
        Self::Redis,
        Self::Minio,
        Self::OpenbaoKeys,
        Self::Wildcard,
    ];

    /// As the command line has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PostgresqlGitlab => "postgresql-gitlab",
            Self::PostgresqlOpenbao => "postgresql-openbao",
            Self::PostgresqlGitlabOpenbao => "postgresql-gitlab-openbao",
            Self::Redis => "redis",
            Self::Minio => "minio",
            Self::OpenbaoKeys => "openbao-keys",
            Self::Wildcard => "wildcard",
        }
    }

    /// In words.
    pub const fn what(self) -> &'static str {
        match self {
            Self::PostgresqlGitlab => "password of PostgreSQL role gitlab",
            Self::PostgresqlOpenbao => "password of PostgreSQL role openbao",
            Self::PostgresqlGitlabOpenbao => "password of PostgreSQL role gitlab_openbao",
            Self::Redis => "password of Redis",
            Self::Minio => "password of MinIO's root user",
            Self::OpenbaoKeys => "OpenBao's unseal keys",
            Self::Wildcard => "key of the wildcard certificate",
        }
    }
}

/// Rotates, or ends what an earlier run began and did not end.
pub async fn rotate(work: Work<'_>, catalog: &Catalog, target: Target) -> Result<Outcome, Error> {
    let mut outcome = Outcome::unchanged();
    let service = match target {
        Target::OpenbaoKeys => {
            openbao::rotate_keys(work, &mut outcome).await?;
            return Ok(outcome);
        }
        Target::Wildcard => {
            wildcard_certs::rotate(work, &mut outcome).await?;
            return Ok(outcome);
        }
        Target::PostgresqlGitlab => Service::Role("gitlab"),
        Target::PostgresqlOpenbao => Service::Role("openbao"),
        Target::PostgresqlGitlabOpenbao => Service::Role("gitlab_openbao"),
        Target::Redis => Service::Redis,
        Target::Minio => Service::Minio,
    };
    password::rotate(work, catalog, target, service, &mut outcome).await?;
    Ok(outcome)
}

/// Where the new value stands from before it is used until it is in force everywhere.
pub(crate) fn pending_file(workspace: &Workspace, target: Target) -> PathBuf {
    workspace.rotations().join(target.name())
}
