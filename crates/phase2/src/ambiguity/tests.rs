use blueprint_openbao::{Health, JournalState};

use super::judge::{Ambiguity, State, judge, plan};
use super::seen::{Clash, Gitlab, OpenBao, Places, Seen};
use super::way::Way;
use crate::cloudnative_pg;
use crate::cloudnative_pg::volume_decision::{Found, PgData};
use crate::cloudnative_pg::volume_probe::Volume;
use crate::installation::Marker;
use crate::openbao::Rows;

fn pgdata(identifier: u64) -> Found {
    let mut control = vec![0; 8192];
    control[..8].copy_from_slice(&identifier.to_le_bytes());
    Found {
        beside: Vec::new(),
        pgdata: Some(PgData {
            version: Some("17\n".to_owned()),
            control: Some(control),
            template0: true,
        }),
    }
}

fn on_volume(found: Found) -> cloudnative_pg::Seen {
    cloudnative_pg::Seen::Volume(Volume::of(found, "/s/cnpg"))
}

fn marker(installation: &str, database: Option<&str>) -> Marker {
    Marker {
        installation: installation.to_owned(),
        since: "2026-11-30T10:00:00Z".to_owned(),
        openbao_on: database.map(str::to_owned),
        gitlab_on: database.map(str::to_owned),
    }
}

/// An empty machine: nothing anywhere.
fn empty() -> Seen {
    Seen {
        installation: None,
        marker: None,
        data: Vec::new(),
        in_use: false,
        postgresql: Some(on_volume(Found::default())),
        recorded: None,
        openbao: OpenBao {
            journal: JournalState::Clean,
            intended_on: None,
            server: None,
        },
        gitlab: Gitlab {
            snapshot: false,
            keys_in_cluster: false,
            repositories: false,
        },
        clashes: Vec::new(),
        places: Places {
            storage_root: "/s".to_owned(),
            marker: "/s/.blueprint-installation.json".to_owned(),
            installation: "infra/secrets/installation-id.txt".to_owned(),
            record: "infra/secrets/cnpg-system-identifier.txt".to_owned(),
            init_file: "infra/secrets/openbao-init.json".to_owned(),
            snapshot: "infra/secrets/gitlab-runtime-secrets.yaml".to_owned(),
            gitaly: "/s/gitaly".to_owned(),
        },
    }
}

/// A whole installation whose cluster was deleted.
fn recreated() -> Seen {
    Seen {
        installation: Some("ours".to_owned()),
        marker: Some(marker("ours", Some("42"))),
        postgresql: Some(on_volume(pgdata(42))),
        recorded: Some(42),
        openbao: OpenBao {
            journal: JournalState::Done,
            intended_on: None,
            server: None,
        },
        gitlab: Gitlab {
            snapshot: true,
            keys_in_cluster: false,
            repositories: false,
        },
        ..empty()
    }
}

/// The same, running.
fn running() -> Seen {
    let mut seen = recreated();
    seen.postgresql = Some(cloudnative_pg::Seen::Running(Some(42)));
    seen.openbao.server = Some((Health::Active, Rows::Some));
    seen.in_use = true;
    seen
}

fn only(seen: &Seen) -> Ambiguity {
    let mut found = judge(seen);
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// After these ways nothing is left to decide.
fn settled_by(seen: &Seen, ways: &[Way]) {
    let plan = plan(seen, ways);
    assert!(plan.left.is_empty() && plan.unfit.is_empty(), "{plan:?}");
    assert_eq!(plan.take.len(), ways.len());
}

#[test]
fn what_is_whole_or_empty_is_not_ambiguous() {
    for seen in [empty(), recreated(), running()] {
        assert!(judge(&seen).is_empty(), "{:?}", judge(&seen));
    }
    // A first run that was cut off between PostgreSQL and OpenBao.
    let mut cut_off = empty();
    cut_off.postgresql = Some(on_volume(pgdata(42)));
    cut_off.recorded = Some(42);
    cut_off.marker = Some(marker("ours", None));
    cut_off.installation = Some("ours".to_owned());
    assert!(judge(&cut_off).is_empty());
    // What could not be looked at is no state.
    let mut blind = recreated();
    blind.postgresql = None;
    assert!(judge(&blind).is_empty());
}

#[test]
fn an_older_storage_without_a_marker_is_no_obstacle() {
    let mut seen = recreated();
    seen.marker = None;
    seen.installation = None;
    assert!(judge(&seen).is_empty());
    // Nor is a lost id, where the record says that the database is ours.
    let mut seen = recreated();
    seen.installation = None;
    seen.data = vec!["/s/cnpg".to_owned()];
    assert!(judge(&seen).is_empty());
}

#[test]
fn half_written_pgdata_stops_and_goes_aside() {
    let mut seen = empty();
    let mut half = pgdata(42);
    half.pgdata.as_mut().unwrap().control = None;
    seen.postgresql = Some(on_volume(half));
    let found = only(&seen);
    assert_eq!(found.state, State::HalfWrittenPgdata);
    assert!(found.found.contains("pg_control"));
    settled_by(&seen, &[Way::PgdataAside]);
    // With a record, the database that was there is then missing: that is a decision of its own.
    seen.recorded = Some(42);
    let after = plan(&seen, &[Way::PgdataAside]);
    assert_eq!(after.left[0].state, State::SecretsWithoutVolumes);
    settled_by(&seen, &[Way::PgdataAside, Way::SecretsAside]);
}

#[test]
fn a_foreign_database_is_adopted_or_set_aside_only_on_request() {
    let mut seen = recreated();
    seen.postgresql = Some(on_volume(pgdata(7)));
    let found = only(&seen);
    assert_eq!(found.state, State::OtherDatabase);
    assert!(found.found.contains('7') && found.expected.contains("42"));
    settled_by(&seen, &[Way::AdoptDatabase]);
    settled_by(&seen, &[Way::PgdataAside, Way::SecretsAside]);
}

#[test]
fn secrets_without_volumes_name_every_file() {
    let mut seen = recreated();
    seen.postgresql = Some(on_volume(Found::default()));
    let found = only(&seen);
    assert_eq!(found.state, State::SecretsWithoutVolumes);
    for part in ["42", "openbao-init.json", "gitlab-runtime-secrets.yaml"] {
        assert!(found.found.contains(part), "{}", found.found);
    }
    settled_by(&seen, &[Way::SecretsAside]);
}

#[test]
fn volumes_without_secrets_are_known_by_the_marker_and_by_the_repositories() {
    let mut by_marker = recreated();
    by_marker.gitlab.snapshot = false;
    let mut by_repositories = by_marker.clone();
    by_repositories.marker = None;
    by_repositories.gitlab.repositories = true;
    for seen in [by_marker.clone(), by_repositories] {
        let found = only(&seen);
        assert_eq!(found.state, State::VolumesWithoutSecrets);
        settled_by(&seen, &[Way::NewGitlabKeys]);
    }
    // The cluster still has them: the next snapshot saves them.
    by_marker.gitlab.keys_in_cluster = true;
    assert!(judge(&by_marker).is_empty());
}

#[test]
fn volumes_are_not_moved_under_something_that_runs() {
    let mut seen = running();
    seen.gitlab.snapshot = false;
    assert_eq!(only(&seen).ways, [Way::NewGitlabKeys]);
    seen.in_use = false;
    assert_eq!(only(&seen).ways, [Way::NewGitlabKeys, Way::VolumesAside]);
}

#[test]
fn keys_without_a_server_are_known_by_the_server_by_its_tables_and_by_an_empty_volume() {
    let mut by_server = running();
    by_server.openbao.server = Some((Health::Uninitialised, Rows::None));
    let mut by_volume = empty();
    by_volume.openbao.journal = JournalState::Done;
    for seen in [by_server, by_volume] {
        let found = only(&seen);
        assert_eq!(found.state, State::KeysWithoutServer);
        assert!(found.found.contains("openbao-init.json"), "{}", found.found);
        settled_by(&seen, &[Way::OpenbaoKeysAside]);
    }
}

#[test]
fn a_server_without_keys_is_known_by_the_server_and_by_the_marker() {
    let mut by_server = running();
    by_server.openbao.journal = JournalState::Clean;
    let mut by_marker = recreated();
    by_marker.openbao.journal = JournalState::Clean;
    for seen in [by_server, by_marker] {
        let found = only(&seen);
        assert_eq!(found.state, State::ServerWithoutKeys);
        assert!(found.found.contains("42"), "{}", found.found);
        settled_by(&seen, &[Way::OpenbaoDataAside]);
    }
    // What the storage remembers of another database says nothing about this one.
    let mut other = recreated();
    other.openbao.journal = JournalState::Clean;
    other.marker = Some(marker("ours", Some("7")));
    assert!(judge(&other).is_empty());
}

#[test]
fn a_lost_init_answer_is_not_ambiguous() {
    let mut seen = running();
    seen.openbao.journal = JournalState::Intended;
    seen.openbao.intended_on = Some("42".to_owned());
    seen.openbao.server = Some((Health::Sealed, Rows::Some));
    assert!(judge(&seen).is_empty());
}

#[test]
fn volumes_of_another_installation_stop_alone() {
    let mut seen = recreated();
    seen.installation = Some("another".to_owned());
    seen.recorded = Some(7);
    seen.data = vec!["/s/cnpg".to_owned(), "/s/redis".to_owned()];
    let found = only(&seen);
    assert_eq!(found.state, State::ForeignVolumes);
    for part in ["installation ours", "another", "/s/redis"] {
        assert!(found.found.contains(part), "{}", found.found);
    }
    // Each way shows what follows from it.
    let adopted = plan(&seen, &[Way::AdoptVolumes]);
    assert_eq!(adopted.left[0].state, State::OtherDatabase);
    settled_by(&seen, &[Way::AdoptVolumes, Way::AdoptDatabase]);
    settled_by(&seen, &[Way::VolumesAside, Way::SecretsAside]);
    // A foreign marker on empty volumes is of no account.
    seen.data.clear();
    seen.recorded = Some(42);
    assert!(judge(&seen).is_empty());
}

#[test]
fn two_passwords_that_both_fail_are_settled_by_one_way_and_not_by_two() {
    let mut seen = running();
    seen.clashes = vec![Clash {
        what: "the Redis password is known twice, and neither works".to_owned(),
        expected: "one that works".to_owned(),
        found: "two".to_owned(),
        hint: "put the right one back".to_owned(),
    }];
    assert_eq!(only(&seen).state, State::TwoPasswords);
    settled_by(&seen, &[Way::FilePassword]);
    settled_by(&seen, &[Way::ClusterPassword]);
    let both = plan(&seen, &[Way::FilePassword, Way::ClusterPassword]);
    assert_eq!(both.unfit, [Way::ClusterPassword]);
}

#[test]
fn a_way_fits_only_its_states() {
    for way in Way::ALL {
        assert_eq!(plan(&recreated(), &[way]).unfit, [way], "{way:?}");
    }
}

#[test]
fn the_message_alone_tells_what_to_do() {
    let mut seen = recreated();
    seen.openbao.journal = JournalState::Clean;
    let crate::preflight::Check::Short(short) = only(&seen).as_check() else {
        panic!("it must stop the run");
    };
    assert_eq!(short.check, "a server without keys");
    assert!(short.hint.contains("from a copy"), "{}", short.hint);
    assert!(
        short
            .hint
            .contains("`blueprint up --accept openbao-data-aside`, which moves"),
        "{}",
        short.hint
    );
}

#[test]
fn ways_are_found_by_their_ids_and_no_two_share_one() {
    for way in Way::ALL {
        assert_eq!(Way::by_id(way.id()), Some(way));
    }
    assert_eq!(Way::by_id("pgdata"), None);
}

#[test]
fn every_state_and_every_way_is_documented() {
    let document = include_str!("../../../../docs/identity.md");
    for way in Way::ALL {
        let row = format!("| `{}` | {} |", way.id(), way.meaning());
        assert!(document.contains(&row), "{row}");
    }
    for state in [
        State::HalfWrittenPgdata,
        State::OtherDatabase,
        State::SecretsWithoutVolumes,
        State::VolumesWithoutSecrets,
        State::KeysWithoutServer,
        State::ServerWithoutKeys,
        State::ForeignVolumes,
        State::TwoPasswords,
    ] {
        let row = format!("\n| {} | ", state.name());
        assert!(document.contains(&row), "{row}");
    }
}
