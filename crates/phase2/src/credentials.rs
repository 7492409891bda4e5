//! Credentials we choose: generate → private file → Kubernetes Secret → the chart's `existingSecret`.

use std::future::Future;
use std::path::{Path, PathBuf};

use blueprint_pipeline::Outcome;
use blueprint_safekeeping::private_file;
use secrecy::{ExposeSecret, SecretString};

use crate::ambiguity::Way;
use crate::error::Error;

/// One credential, for [`settle`] and [`choose`].
#[derive(Debug, Clone, Copy)]
pub struct Credential<'a> {
    /// For messages: `the Redis password`.
    pub what: &'a str,
    /// Its private file.
    pub file: &'a Path,
    /// The ways that the user accepted: which of two passwords is set when the service takes neither.
    pub accepted: &'a [Way],
}

/// Decides between the private file's value and the cluster's: file only → file; cluster only → saved to the file first; both equal → that; both and they
/// differ → each is tried with `works` (file first) and the one that works wins, and that is said; neither → refuse, unless one was accepted. Nothing anywhere →
/// generated with `generate` and written.
pub async fn settle<F, Fut>(
    credential: Credential<'_>,
    in_cluster: Option<SecretString>,
    generate: impl FnOnce() -> SecretString,
    works: F,
    outcome: &mut Outcome,
) -> Result<SecretString, Error>
where
    F: Fn(SecretString) -> Fut,
    Fut: Future<Output = Result<bool, Error>>,
{
    let Credential { what, file, .. } = credential;
    let filed = private_file::read_text(file)?.map(|text| SecretString::from(text.as_str()));
    if let Some(filed) = &filed
        && filed.expose_secret().is_empty()
    {
        return Err(Error::Refused {
            summary: format!("{} is empty", file.display()),
            expected: format!("{what}, or no file at all"),
            found: "an empty file".to_owned(),
            hint: format!(
                "put the value back from a copy, or remove {} to take the cluster's value or a new one",
                file.display()
            ),
        });
    }
    match choose(credential, filed.clone(), in_cluster, works).await? {
        Choice::Same(value) => Ok(value),
        Choice::FileWins(value) => {
            outcome.note(format!(
                "{what} in {} and in the cluster differed; the file's one is used",
                file.display()
            ));
            Ok(value)
        }
        Choice::OnlyCluster(value) => {
            private_file::write(file, value.expose_secret().as_bytes())?;
            outcome.changed(format!(
                "saved {what} from the cluster to {}",
                file.display()
            ));
            Ok(value)
        }
        Choice::ClusterWins(value) => {
            keep_former(file)?;
            private_file::write(file, value.expose_secret().as_bytes())?;
            outcome.changed(format!(
                "saved {what} from the cluster to {}: the two differed and the cluster's one is used (the former file is kept as {})",
                file.display(),
                former(file).display()
            ));
            Ok(value)
        }
        Choice::Nothing => {
            let value = generate();
            private_file::write(file, value.expose_secret().as_bytes())?;
            outcome.changed(format!("chose {what} and wrote it to {}", file.display()));
            Ok(value)
        }
    }
}

/// Before a Secret goes: a value that no file holds is saved. One that differs from the file's is left to the file, which the next install uses.
pub(crate) fn save_lost(
    what: &str,
    file: &Path,
    in_cluster: Option<SecretString>,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    let (None, Some(value)) = (private_file::read(file)?, in_cluster) else {
        return Ok(());
    };
    private_file::write(file, value.expose_secret().as_bytes())?;
    outcome.changed(format!(
        "saved {what} from the cluster to {}",
        file.display()
    ));
    Ok(())
}

/// What is to be done about one credential.
#[derive(Debug)]
pub(crate) enum Choice {
    /// The file's value; the cluster has the same or none.
    Same(SecretString),
    /// Both differed, the file's one works.
    FileWins(SecretString),
    /// Only the cluster has one.
    OnlyCluster(SecretString),
    /// Both differed, the cluster's one works.
    ClusterWins(SecretString),
    /// There is none yet.
    Nothing,
}

/// The decision alone, without touching a file; for files that hold several credentials.
pub(crate) async fn choose<F, Fut>(
    credential: Credential<'_>,
    filed: Option<SecretString>,
    in_cluster: Option<SecretString>,
    works: F,
) -> Result<Choice, Error>
where
    F: Fn(SecretString) -> Fut,
    Fut: Future<Output = Result<bool, Error>>,
{
    match (filed, in_cluster) {
        (None, None) => Ok(Choice::Nothing),
        (Some(value), None) => Ok(Choice::Same(value)),
        (None, Some(value)) => Ok(Choice::OnlyCluster(value)),
        (Some(filed), Some(other)) if filed.expose_secret() == other.expose_secret() => {
            Ok(Choice::Same(filed))
        }
        (Some(filed), Some(other)) => {
            if works(filed.clone()).await? {
                Ok(Choice::FileWins(filed))
            } else if works(other.clone()).await? {
                Ok(Choice::ClusterWins(other))
            } else if credential.accepted.contains(&Way::FilePassword) {
                Ok(Choice::FileWins(filed))
            } else if credential.accepted.contains(&Way::ClusterPassword) {
                Ok(Choice::ClusterWins(other))
            } else {
                let Credential { what, file, .. } = credential;
                Err(Error::Refused {
                    summary: format!("{what} is known twice, and neither works"),
                    expected: format!(
                        "the running service to take the one in {} or the one in the cluster",
                        file.display()
                    ),
                    found: "two different values, both refused by the service".to_owned(),
                    hint: format!(
                        "put the value that the service was set up with into {} and run again",
                        file.display()
                    ),
                })
            }
        }
    }
}

/// What pre-flight asks: whether one of the two works, where there are two. Nothing is changed; only a refusal counts.
pub(crate) async fn try_both<F, Fut>(
    credential: Credential<'_>,
    in_cluster: Option<SecretString>,
    works: F,
) -> Result<(), Error>
where
    F: Fn(SecretString) -> Fut,
    Fut: Future<Output = Result<bool, Error>>,
{
    let undecided = Credential {
        accepted: &[],
        ..credential
    };
    let filed = private_file::read_text(credential.file)?
        .filter(|text| !text.is_empty())
        .map(|text| SecretString::from(text.as_str()));
    choose(undecided, filed, in_cluster, works).await.map(drop)
}

/// Where the losing file is kept.
pub(crate) fn former(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(".former");
    file.with_file_name(name)
}

/// Copies a private file that is about to lose its value.
pub(crate) fn keep_former(file: &Path) -> Result<(), Error> {
    if let Some(bytes) = private_file::read(file)? {
        private_file::write(&former(file), &bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    struct Case {
        folder: tempfile::TempDir,
        asked: RefCell<Vec<String>>,
        outcome: Outcome,
        accepted: Vec<Way>,
    }

    impl Case {
        fn new(filed: Option<&str>) -> Self {
            let folder = tempfile::tempdir().unwrap();
            if let Some(text) = filed {
                private_file::write(&folder.path().join("password.txt"), text.as_bytes()).unwrap();
            }
            Self {
                folder,
                asked: RefCell::default(),
                outcome: Outcome::default(),
                accepted: Vec::new(),
            }
        }

        async fn settle(
            &mut self,
            in_cluster: Option<&str>,
            working: &str,
        ) -> Result<String, Error> {
            let asked = &self.asked;
            settle(
                Credential {
                    what: "the password",
                    file: &self.folder.path().join("password.txt"),
                    accepted: &self.accepted,
                },
                in_cluster.map(SecretString::from),
                || SecretString::from("generated"),
                |value| {
                    asked.borrow_mut().push(value.expose_secret().to_owned());
                    let works = value.expose_secret() == working;
                    async move { Ok(works) }
                },
                &mut self.outcome,
            )
            .await
            .map(|value| value.expose_secret().to_owned())
        }

        fn file(&self, name: &str) -> Option<String> {
            private_file::read_text(&self.folder.path().join(name))
                .unwrap()
                .map(|text| text.to_string())
        }
    }

    #[tokio::test]
    async fn nothing_anywhere_is_generated_and_written_before_it_is_used() {
        let mut case = Case::new(None);
        assert_eq!(case.settle(None, "").await.unwrap(), "generated");
        assert_eq!(case.file("password.txt").as_deref(), Some("generated"));
        assert_eq!(case.outcome.changes.len(), 1);
    }

    #[tokio::test]
    async fn the_file_alone_is_used_and_nothing_is_tried() {
        let mut case = Case::new(Some("filed"));
        assert_eq!(case.settle(None, "").await.unwrap(), "filed");
        assert_eq!(case.outcome, Outcome::unchanged());
        assert!(case.asked.borrow().is_empty());
    }

    #[tokio::test]
    async fn the_clusters_alone_is_saved_first() {
        let mut case = Case::new(None);
        assert_eq!(
            case.settle(Some("clustered"), "").await.unwrap(),
            "clustered"
        );
        assert_eq!(case.file("password.txt").as_deref(), Some("clustered"));
        assert!(case.asked.borrow().is_empty());
    }

    #[tokio::test]
    async fn equal_ones_change_nothing() {
        let mut case = Case::new(Some("same"));
        assert_eq!(case.settle(Some("same"), "").await.unwrap(), "same");
        assert_eq!(case.outcome, Outcome::unchanged());
    }

    #[tokio::test]
    async fn of_two_the_files_is_tried_first_and_wins_when_it_works() {
        let mut case = Case::new(Some("filed"));
        assert_eq!(
            case.settle(Some("clustered"), "filed").await.unwrap(),
            "filed"
        );
        assert_eq!(*case.asked.borrow(), ["filed"]);
        assert_eq!(case.outcome.notes.len(), 1);
    }

    #[tokio::test]
    async fn of_two_the_clusters_wins_when_only_it_works_and_the_former_file_is_kept() {
        let mut case = Case::new(Some("filed"));
        assert_eq!(
            case.settle(Some("clustered"), "clustered").await.unwrap(),
            "clustered"
        );
        assert_eq!(case.file("password.txt").as_deref(), Some("clustered"));
        assert_eq!(case.file("password.txt.former").as_deref(), Some("filed"));
        assert_eq!(case.outcome.changes.len(), 1);
    }

    #[tokio::test]
    async fn two_that_both_fail_are_refused_without_showing_either() {
        let mut case = Case::new(Some("filed"));
        let error = case.settle(Some("clustered"), "third").await.unwrap_err();
        let shown = format!("{error} {error:?}");
        assert!(matches!(error, Error::Refused { .. }));
        assert!(
            !shown.contains("clustered")
                && !shown.contains("filed ")
                && !shown.contains("\"filed\""),
            "{shown}"
        );
        assert_eq!(case.file("password.txt").as_deref(), Some("filed"));
    }

    #[tokio::test]
    async fn of_two_that_both_fail_the_accepted_one_is_set() {
        let mut case = Case::new(Some("filed"));
        case.accepted = vec![Way::FilePassword];
        assert_eq!(
            case.settle(Some("clustered"), "third").await.unwrap(),
            "filed"
        );
        case.accepted = vec![Way::ClusterPassword];
        assert_eq!(
            case.settle(Some("clustered"), "third").await.unwrap(),
            "clustered"
        );
        assert_eq!(case.file("password.txt.former").as_deref(), Some("filed"));
    }

    #[tokio::test]
    async fn a_password_that_only_the_cluster_has_is_saved_before_its_secret_goes() {
        let mut case = Case::new(None);
        let path = case.folder.path().join("password.txt");
        let secret = || Some(SecretString::from("clustered"));
        save_lost("x", &path, secret(), &mut case.outcome).unwrap();
        assert_eq!(case.file("password.txt").as_deref(), Some("clustered"));
        let other = Some(SecretString::from("other"));
        save_lost("x", &path, other, &mut case.outcome).unwrap();
        assert_eq!(case.file("password.txt").as_deref(), Some("clustered"));
    }

    #[tokio::test]
    async fn an_empty_file_is_refused_instead_of_setting_an_empty_password() {
        let mut case = Case::new(Some(""));
        assert!(matches!(
            case.settle(Some("clustered"), "clustered").await,
            Err(Error::Refused { .. })
        ));
    }
}
