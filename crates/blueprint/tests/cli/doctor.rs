//! `doctor` where hardly anything answers, and the modes of private files.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use crate::house::House;

fn dead() -> House {
    let house = House::initialised();
    house.kubeconfig("kind-blueprint");
    house
}

fn open_to_others(house: &House) -> std::path::PathBuf {
    house.write("infra/secrets/redis-password.txt", "not-a-real-password");
    let file = house.path().join("infra/secrets/redis-password.txt");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    file
}

fn mode(file: &std::path::Path) -> u32 {
    std::fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn without_api_server_and_engine_the_doctor_says_what_it_can_still_check() {
    let house = dead();
    let begun = Instant::now();
    let said = house.run(&["doctor"]);
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "every check waited for the API server: {:?}",
        begun.elapsed()
    );
    assert_eq!(said.code, 4, "{}", said.talk);
    let first = said.out.lines().next().unwrap();
    assert!(first.starts_with("✘ API server"), "{}", said.out);
    for words in [
        "✘ container engine",
        "✘ helm",
        "not looked at, they need the API server",
        "well: ",
        "workspace is writable",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    assert!(!said.out.contains("very-secret-token"));
    assert!(said.talk.contains("not well"), "{}", said.talk);
}

#[test]
fn the_doctor_answers_as_json() {
    let said = dead().run(&["doctor", "--output", "json"]);
    assert_eq!(said.code, 4, "{}", said.talk);
    assert!(
        said.out.starts_with("{\n  \"verdict\": \"ill\""),
        "{}",
        said.out
    );
}

#[test]
fn the_doctor_looks_and_only_with_fix_mends() {
    let house = dead();
    let file = open_to_others(&house);
    let said = house.run(&["doctor"]);
    assert!(
        said.out.contains("redis-password.txt has mode 0644"),
        "{}",
        said.out
    );
    assert_eq!(mode(&file), 0o644, "a look changes nothing");
    let fixed = house.run(&["doctor", "--fix"]);
    assert!(
        fixed.talk.contains("redis-password.txt was open to others"),
        "{}",
        fixed.talk
    );
    assert!(!fixed.out.contains("has mode 0644"), "{}", fixed.out);
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn private_files_that_others_may_read_are_mended_and_said_at_every_start() {
    for command in [
        &["status"][..],
        &["secrets", "unseal"],
        &["up", "--offline"],
    ] {
        let house = dead();
        let file = open_to_others(&house);
        let said = house.run(command);
        assert!(
            said.talk
                .contains("redis-password.txt was open to others (mode 0644)"),
            "{command:?}: {}",
            said.talk
        );
        assert_eq!(mode(&file), 0o600, "{command:?}");
    }
}
