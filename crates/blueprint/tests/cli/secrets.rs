//! `secrets list` and `secrets show` with files alone.

use std::os::unix::fs::PermissionsExt as _;

use crate::house::House;

fn with_redis_password() -> House {
    let house = House::initialised();
    house.write("infra/secrets/redis-password.txt", "hush-hush-hush\n");
    let file = house.path().join("infra/secrets/redis-password.txt");
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
    house
}

#[test]
fn without_a_cluster_the_list_shows_the_files_and_no_value() {
    let house = with_redis_password();
    let said = house.run(&["secrets", "list"]);
    assert_eq!(said.code, 0, "{}", said.talk);
    assert!(
        said.talk.contains("only files are looked at"),
        "{}",
        said.talk
    );
    let line = said
        .out
        .lines()
        .find(|line| line.starts_with("redis "))
        .unwrap();
    assert!(
        line.contains("single")
            && line.contains("0600")
            && line.contains("infra/secrets/redis-password.txt"),
        "{line}"
    );
    assert!(!said.out.contains("hush"), "{}", said.out);

    let said = house.run(&["secrets", "list", "--output", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let redis = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "redis")
        .unwrap();
    assert_eq!(redis["copies_agree"], "single");
    assert_eq!(redis["copies"][0]["mode"], "0600");
    assert_eq!(redis["copies"][1]["state"], "unknown");
    assert!(!said.out.contains("hush"), "{}", said.out);
}

#[test]
fn a_value_goes_into_a_pipe_only_when_that_is_said() {
    let house = with_redis_password();
    let said = house.run(&["secrets", "show", "redis"]);
    assert_eq!(said.code, 2, "{}", said.talk);
    assert!(said.talk.contains("--reveal"), "{}", said.talk);
    assert!(!format!("{}{}", said.out, said.talk).contains("hush"));

    let said = house.run(&["secrets", "show", "redis", "--reveal"]);
    assert_eq!((said.code, said.out.as_str()), (0, "hush-hush-hush\n"));
    assert!(!said.talk.contains("hush"));
}

#[test]
fn a_name_that_is_none_and_a_value_that_is_nowhere_are_told_apart() {
    let house = with_redis_password();
    let said = house.run(&["secrets", "show", "rediss", "--reveal"]);
    assert_eq!(said.code, 2);
    assert!(
        said.talk.contains("no credential is called `rediss`"),
        "{}",
        said.talk
    );
    let said = house.run(&["secrets", "show", "minio", "--reveal"]);
    assert_ne!(said.code, 0);
    assert!(said.talk.contains("nowhere to be found"), "{}", said.talk);
}

fn tree(house: &House) -> Vec<(String, String, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![
        house.path().join("infra/secrets"),
        house.path().join("infra/tls"),
    ];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let mode = path.metadata().unwrap().permissions().mode() & 0o777;
            let name = path
                .strip_prefix(house.path())
                .unwrap()
                .display()
                .to_string();
            found.push((name, std::fs::read_to_string(&path).unwrap(), mode));
        }
    }
    found.sort();
    found
}

#[test]
fn an_installation_is_carried_into_an_empty_workspace() {
    let old = with_redis_password();
    old.write("infra/tls/wildcard/ca.pem", "not a certificate\n");
    std::fs::set_permissions(
        old.path().join("infra/tls/wildcard/ca.pem"),
        std::fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    old.write("passphrase", "four random words here\n");
    let file = old.path().join("carried.age");
    let file = file.to_str().unwrap();
    let passphrase = old.path().join("passphrase");
    let with = ["--passphrase-file", passphrase.to_str().unwrap()];

    let said = old.run(&[&["secrets", "export", file], with.as_slice()].concat());
    assert_eq!(said.code, 0, "{}", said.talk);
    let sealed = std::fs::read(file).unwrap();
    assert!(sealed.starts_with(b"age-encryption.org/v1\n"));
    assert_eq!(
        std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let again = old.run(&[&["secrets", "export", file], with.as_slice()].concat());
    assert_eq!(
        again.code, 2,
        "an archive is not overwritten: {}",
        again.talk
    );

    let new = House::initialised();
    let said = new.run(&[&["secrets", "import", file], with.as_slice()].concat());
    assert_eq!(said.code, 0, "{}", said.talk);
    assert_eq!(tree(&new), tree(&old));

    let other = House::initialised();
    other.write("infra/secrets/redis-password.txt", "mine");
    let before = tree(&other);
    let said = other.run(&[&["secrets", "import", file], with.as_slice()].concat());
    assert_eq!(said.code, 1, "{}", said.talk);
    assert!(said.talk.contains("is not empty"), "{}", said.talk);
    assert_eq!(tree(&other), before);

    let empty = House::initialised();
    std::fs::write(empty.path().join("cut.age"), &sealed[..sealed.len() - 1]).unwrap();
    let said = empty.run(&[&["secrets", "import", "cut.age"], with.as_slice()].concat());
    assert_eq!(said.code, 1, "{}", said.talk);
    assert!(said.talk.contains("not intact"), "{}", said.talk);
    assert!(tree(&empty).is_empty());
    for talk in [said.talk, again.talk] {
        assert!(
            !talk.contains("hush") && !talk.contains("four random"),
            "{talk}"
        );
    }
}

#[test]
fn without_a_terminal_a_passphrase_comes_from_a_file_and_a_short_one_is_refused() {
    let house = with_redis_password();
    house.write("short", "too short\n");
    let said = house.run(&["secrets", "export", "x.age", "--passphrase-file", "short"]);
    assert_eq!(said.code, 2, "{}", said.talk);
    assert!(said.talk.contains("at least 12"), "{}", said.talk);
    assert!(!house.path().join("x.age").exists());
    let said = house.run(&["secrets", "export", "x.age", "--recipient", "age1nonsense"]);
    assert_eq!(said.code, 1, "{}", said.talk);
    assert!(said.talk.contains("no age recipient"), "{}", said.talk);
}
