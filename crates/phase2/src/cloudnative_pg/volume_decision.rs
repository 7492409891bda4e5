//! Adopt, initialise, or stop: decided from what is on the PostgreSQL volume and what was recorded about it.
//!
//! Both wrong turns lose data in green: initdb on a populated volume renames PGDATA away and starts empty, and an adoptable claim on an empty volume makes
//! the operator skip initdb for ever (CloudNativePG 1.30, `internal/controller/cluster_restore.go` and `pkg/management/postgres/initdb.go`).

/// What was found under the volume's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Names beside `pgdata`, without `lost+found`.
    pub(crate) beside: Vec<String>,
    /// `pgdata`, when it exists and holds anything.
    pub(crate) pgdata: Option<PgData>,
}

/// The parts of a PGDATA that tell whether it is whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PgData {
    /// Text of `PG_VERSION`.
    pub(crate) version: Option<String>,
    /// Bytes of `global/pg_control`.
    pub(crate) control: Option<Vec<u8>>,
    /// Whether template0 (database OID 4) is there: initdb makes it near its end, so a PGDATA without it is half-made.
    pub(crate) template0: bool,
}

/// What to do. Stopping is the error side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The volume is empty: only the volume is prepared, the operator makes the claim and runs initdb.
    Initialise,
    /// A whole PGDATA: an adoptable claim is made before the Cluster.
    Adopt {
        /// From `pg_control`.
        system_identifier: u64,
    },
}

/// Start of the names of a PGDATA that a person chose to set aside: it is out of the game.
pub(crate) const ASIDE: &str = "pgdata_aside_";

/// Which kind of state a person must decide about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopKind {
    /// Parts of a PGDATA are missing.
    HalfWritten,
    /// A database was recorded, and nothing is there.
    DataMissing,
    /// Another database than the recorded one.
    Foreign,
    /// Something else that only hands can put right: another major version, several databases, foreign files.
    Other,
}

/// Why a person must look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) kind: StopKind,
    pub(crate) summary: &'static str,
    pub(crate) expected: String,
    pub(crate) found: String,
    pub(crate) hint: String,
}

/// `pg_control` is written whole, `PG_CONTROL_FILE_SIZE` bytes (`src/include/catalog/pg_control.h`); its first field is the system identifier.
const CONTROL_FILE_SIZE: usize = 8192;

/// Where a person looks; parts of messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The volume's folder on the nodes.
    pub(crate) folder: &'a str,
    /// The file with the recorded identifier.
    pub(crate) record: &'a str,
}

/// The decision. `recorded` is the system identifier of the last Ready cluster, `major` the major version of the pinned image.
pub(crate) fn decide(
    found: &Found,
    recorded: Option<u64>,
    major: Option<&str>,
    places: Places<'_>,
) -> Result<Decision, Stop> {
    match &found.pgdata {
        None => decide_without_data(found, recorded, places),
        Some(pgdata) => {
            let system_identifier = whole(pgdata, places)?;
            check_version(pgdata, major, places)?;
            check_identifier(found, system_identifier, recorded, places)?;
            Ok(Decision::Adopt { system_identifier })
        }
    }
}

fn decide_without_data(
    found: &Found,
    recorded: Option<u64>,
    places: Places<'_>,
) -> Result<Decision, Stop> {
    if !found.beside.is_empty() {
        return Err(Stop {
            kind: StopKind::Other,
            summary: "the PostgreSQL volume holds something, but no PGDATA",
            expected: format!("an empty folder {0}, or {0}/pgdata", places.folder),
            found: found.beside.join(", "),
            hint: format!(
                "a folder pgdata_<time> is a database that an earlier initdb renamed away: rename the right one back to pgdata; move anything else out of {}",
                places.folder
            ),
        });
    }
    match recorded {
        None => Ok(Decision::Initialise),
        Some(recorded) => Err(Stop {
            kind: StopKind::DataMissing,
            summary: "the PostgreSQL volume is empty, but its data was there before",
            expected: format!(
                "the data of system {recorded}, recorded in {}",
                places.record
            ),
            found: format!("nothing in {}", places.folder),
            hint: format!(
                "mount or restore the data into {}/pgdata; to start over with an empty database, remove {} (GitLab's data is then gone for good)",
                places.folder, places.record
            ),
        }),
    }
}

/// The system identifier of a PGDATA that is whole.
fn whole(pgdata: &PgData, places: Places<'_>) -> Result<u64, Stop> {
    let half_written = |found: String| Stop {
        kind: StopKind::HalfWritten,
        summary: "the PostgreSQL volume holds a half-written PGDATA",
        expected: format!(
            "a whole PGDATA in {}/pgdata, or an empty folder",
            places.folder
        ),
        found,
        hint: format!(
            "if a first install was cut off and nothing of value is there, remove {}/pgdata and run again; otherwise restore it from a backup",
            places.folder
        ),
    };
    let Some(control) = &pgdata.control else {
        return Err(half_written("pgdata has no global/pg_control".to_owned()));
    };
    if pgdata
        .version
        .as_ref()
        .is_none_or(|version| version.trim().is_empty())
    {
        return Err(half_written("pgdata has no PG_VERSION".to_owned()));
    }
    if control.len() != CONTROL_FILE_SIZE {
        return Err(half_written(format!(
            "pgdata/global/pg_control has {} bytes, not {CONTROL_FILE_SIZE}",
            control.len()
        )));
    }
    // Little endian on every platform that the images are made for.
    let system_identifier = control
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes));
    if system_identifier == 0 {
        return Err(half_written(
            "pgdata/global/pg_control holds no system identifier".to_owned(),
        ));
    }
    if !pgdata.template0 {
        return Err(half_written(
            "pgdata has no template0: its initdb did not come to an end".to_owned(),
        ));
    }
    Ok(system_identifier)
}

fn check_version(pgdata: &PgData, major: Option<&str>, places: Places<'_>) -> Result<(), Stop> {
    let version = pgdata.version.as_deref().unwrap_or_default().trim();
    match major {
        Some(major) if major != version => Err(Stop {
            kind: StopKind::Other,
            summary: "the PostgreSQL volume was written by another major version",
            expected: format!(
                "a PGDATA of PostgreSQL {major}, the version of images.postgresql in VERSIONS.json"
            ),
            found: format!("PG_VERSION {version} in {}/pgdata", places.folder),
            hint: format!(
                "pin a PostgreSQL {version} image in VERSIONS.json; to change the major version, start with that image and upgrade by CloudNativePG's own offline \
                 in-place upgrade"
            ),
        }),
        _ => Ok(()),
    }
}

fn check_identifier(
    found: &Found,
    there: u64,
    recorded: Option<u64>,
    places: Places<'_>,
) -> Result<(), Stop> {
    match recorded {
        Some(recorded) if recorded == there => Ok(()),
        Some(recorded) => Err(Stop {
            kind: StopKind::Foreign,
            summary: "the PostgreSQL volume holds a foreign database",
            expected: format!("system identifier {recorded}, recorded in {}", places.record),
            found: format!("system identifier {there} in {}/pgdata", places.folder),
            hint: format!(
                "adopted, it would come up without error and without your data. Put the right data into {}/pgdata, or, if this is the database that you want, \
                 write {there} into {}",
                places.folder, places.record
            ),
        }),
        // Nothing tells which of two databases is the right one.
        None if found.beside.iter().any(|name| name.starts_with("pgdata")) => Err(Stop {
            kind: StopKind::Other,
            summary: "the PostgreSQL volume holds more than one database",
            expected: format!("one folder pgdata in {}, or the right one's system identifier in {}", places.folder, places.record),
            found: format!("pgdata and {}", found.beside.join(", ")),
            hint: "a folder pgdata_<time> is a database that an earlier initdb renamed away: keep the right one as pgdata and move the others out".to_owned(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: Places<'static> = Places {
        folder: "/s/cnpg",
        record: "infra/secrets/cnpg-system-identifier.txt",
    };

    fn control(identifier: u64) -> Vec<u8> {
        let mut bytes = vec![0; CONTROL_FILE_SIZE];
        bytes[..8].copy_from_slice(&identifier.to_le_bytes());
        bytes
    }

    fn pgdata(identifier: u64) -> PgData {
        PgData {
            version: Some("17\n".to_owned()),
            control: Some(control(identifier)),
            template0: true,
        }
    }

    fn with(pgdata: Option<PgData>, beside: &[&str]) -> Found {
        Found {
            beside: beside.iter().map(ToString::to_string).collect(),
            pgdata,
        }
    }

    fn judge(found: &Found, recorded: Option<u64>) -> Result<Decision, Stop> {
        decide(found, recorded, Some("17"), PLACES)
    }

    #[test]
    fn an_empty_volume_is_initialised() {
        assert_eq!(judge(&with(None, &[]), None), Ok(Decision::Initialise));
    }

    #[test]
    fn whole_data_is_adopted_when_its_identifier_is_the_recorded_one() {
        assert_eq!(
            judge(&with(Some(pgdata(42)), &[]), Some(42)),
            Ok(Decision::Adopt {
                system_identifier: 42
            })
        );
    }

    #[test]
    fn whole_data_without_a_record_is_adopted() {
        assert_eq!(
            judge(&with(Some(pgdata(42)), &[]), None),
            Ok(Decision::Adopt {
                system_identifier: 42
            })
        );
    }

    #[test]
    fn preserved_pgdata_is_never_replaced_by_an_empty_one() {
        let stop = judge(&with(None, &["pgdata_20261130T101010Z"]), None).unwrap_err();
        assert!(stop.found.contains("pgdata_20261130T101010Z"));
    }

    #[test]
    fn an_empty_volume_with_a_recorded_identifier_means_that_data_is_missing() {
        let stop = judge(&with(None, &[]), Some(42)).unwrap_err();
        assert!(stop.expected.contains("42") && stop.hint.contains(PLACES.record));
    }

    #[test]
    fn foreign_pgdata_is_not_adopted_in_green() {
        let stop = judge(&with(Some(pgdata(7)), &[]), Some(42)).unwrap_err();
        assert!(stop.found.contains('7') && stop.expected.contains("42"));
    }

    #[test]
    fn each_kind_of_half_written_pgdata_stops_with_what_is_missing() {
        let whole = pgdata(42);
        for (half, part) in [
            (
                PgData {
                    version: None,
                    ..whole.clone()
                },
                "PG_VERSION",
            ),
            (
                PgData {
                    version: Some("\n".to_owned()),
                    ..whole.clone()
                },
                "PG_VERSION",
            ),
            (
                PgData {
                    control: None,
                    ..whole.clone()
                },
                "pg_control",
            ),
            (
                PgData {
                    control: Some(vec![1; 100]),
                    ..whole.clone()
                },
                "100 bytes",
            ),
            (
                PgData {
                    control: Some(control(0)),
                    ..whole.clone()
                },
                "system identifier",
            ),
            (
                PgData {
                    template0: false,
                    ..whole
                },
                "template0",
            ),
        ] {
            let stop = judge(&with(Some(half), &[]), Some(42)).unwrap_err();
            assert!(
                stop.summary.contains("half-written") && stop.found.contains(part),
                "{stop:?}"
            );
        }
    }

    #[test]
    fn another_major_version_stops() {
        let old = PgData {
            version: Some("16\n".to_owned()),
            ..pgdata(42)
        };
        assert!(
            judge(&with(Some(old.clone()), &[]), Some(42))
                .unwrap_err()
                .found
                .contains("16")
        );
        assert!(decide(&with(Some(old), &[]), Some(42), None, PLACES).is_ok());
    }

    #[test]
    fn two_databases_without_a_record_stop_and_with_one_do_not() {
        let two = with(Some(pgdata(42)), &["pgdata_20261130T101010Z"]);
        assert!(judge(&two, None).is_err());
        assert!(judge(&two, Some(42)).is_ok());
    }

    #[test]
    fn something_else_beside_whole_data_is_no_obstacle() {
        assert!(judge(&with(Some(pgdata(42)), &["notes.txt"]), None).is_ok());
        assert!(judge(&with(None, &["notes.txt"]), None).is_err());
    }
}
