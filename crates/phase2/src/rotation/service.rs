//! The three kinds of services that know a password, each with its own way to learn another one.

use std::path::PathBuf;

use secrecy::SecretString;

use super::pending::Pending;
use crate::cloudnative_pg::role_password as postgresql;
use crate::error::Error;
use crate::installer::Work;
use crate::role_passwords::role_password;
use crate::{minio, redis};

/// Whose password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    /// PostgreSQL, for this role.
    Role(&'static str),
    /// Redis.
    Redis,
    /// MinIO's root user.
    Minio,
}

impl Service {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Role(_) => "PostgreSQL",
            Self::Redis => "Redis",
            Self::Minio => "MinIO",
        }
    }

    /// Tasks whose installers bring the other copies to the new value, in this order.
    pub(super) fn tasks(self) -> &'static [&'static str] {
        match self {
            Self::Role("openbao") => &["openbao"],
            // OpenBao keeps a copy of it for the bundled one.
            Self::Role("gitlab_openbao") => &["openbao", "gitlab"],
            Self::Role(_) => &["gitlab"],
            Self::Redis => &["redis", "gitlab"],
            Self::Minio => &["minio", "buckets", "gitlab"],
        }
    }

    /// The credential's own file.
    pub(super) fn file(self, work: Work<'_>) -> PathBuf {
        let workspace = &work.context.workspace;
        match self {
            Self::Role(_) => workspace.role_passwords(),
            Self::Redis => workspace.redis_password(),
            Self::Minio => workspace.minio_password(),
        }
    }

    /// What stands in it.
    pub(super) fn filed(self, work: Work<'_>) -> Result<SecretString, Error> {
        if let Self::Role(role) = self {
            return role_password(&work.context.workspace, role);
        }
        let path = self.file(work);
        let text = blueprint_safekeeping::private_file::read_text(&path)?;
        text.filter(|text| !text.is_empty())
            .map(|text| SecretString::from(text.as_str()))
            .ok_or_else(|| Error::Failed {
                action: format!("read the password of {} from {}", self.name(), path.display()),
                found: "no file, or an empty one".to_owned(),
                hint: "run `blueprint up` first: it writes the file, from the cluster's Secret where there is one".to_owned(),
            })
    }

    pub(super) fn write(self, work: Work<'_>, value: &SecretString) -> Result<(), Error> {
        use secrecy::ExposeSecret as _;
        if let Self::Role(role) = self {
            return postgresql::write(work, role, value);
        }
        let bytes = value.expose_secret().as_bytes();
        blueprint_safekeeping::private_file::write(&self.file(work), bytes)?;
        Ok(())
    }

    /// Whether the running service takes this one. One that does not run is an error.
    pub(super) async fn takes(self, work: Work<'_>, value: &SecretString) -> Result<bool, Error> {
        match self {
            Self::Role(role) => postgresql::takes(work, role, value).await,
            Self::Redis => redis::takes(work, value).await,
            Self::Minio => minio::takes(work, value).await,
        }
    }

    /// Makes it take the next one: Redis beside the former one, the others in its stead.
    pub(super) async fn offer(self, work: Work<'_>, pending: &Pending) -> Result<(), Error> {
        match self {
            Self::Role(role) => postgresql::set(work, role, &pending.next).await,
            Self::Redis => redis::add_password(work, &pending.former, &pending.next).await,
            Self::Minio => minio::set_password(work, &pending.next).await,
        }
    }

    /// Back to the former one.
    pub(super) async fn take_back(
        self,
        work: Work<'_>,
        former: &SecretString,
    ) -> Result<(), Error> {
        match self {
            Self::Role(role) => postgresql::set(work, role, former).await,
            // It never went.
            Self::Redis => Ok(()),
            Self::Minio => minio::set_password(work, former).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::TABLE;

    #[test]
    fn every_follower_is_a_task_and_comes_in_the_tables_order() {
        for service in [
            Service::Role("gitlab"),
            Service::Role("openbao"),
            Service::Role("gitlab_openbao"),
            Service::Redis,
            Service::Minio,
        ] {
            let places: Vec<usize> = service
                .tasks()
                .iter()
                .map(|id| TABLE.tasks.iter().position(|task| task.id == *id).unwrap())
                .collect();
            assert!(places.is_sorted(), "{service:?}");
        }
    }
}
