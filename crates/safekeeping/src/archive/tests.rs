use age::secrecy::ExposeSecret as _;
use proptest::prelude::*;
use secrecy::SecretString;

use super::*;

fn sample() -> Archive {
    let file = |path: &str, text: &str| (path.to_owned(), Zeroizing::new(text.as_bytes().to_vec()));
    Archive {
        about: BTreeMap::from([("installation".to_owned(), "abc".to_owned())]),
        files: BTreeMap::from([
            file("infra/secrets/redis-password.txt", "hush-hush-hush\n"),
            file("infra/tls/wildcard/key.pem", "-----BEGIN"),
            file("blueprint.yaml", ""),
        ]),
    }
}

/// A tar file made by hand: entries that [`Archive::to_tar`] would never write.
fn tar_of(entries: &[(&str, tar::EntryType, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, kind, bytes) in entries {
        let mut header = tar::Header::new_gnu();
        // Straight into the field: the builder's own methods refuse `..`.
        let name = &mut header.as_gnu_mut().unwrap().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, *bytes).unwrap();
    }
    tar.into_inner().unwrap()
}

fn listing(files: &[(&str, &[u8])]) -> Vec<u8> {
    let files = files
        .iter()
        .map(|(path, bytes)| Listed {
            path: (*path).to_owned(),
            size: bytes.len() as u64,
            sha256: digest(bytes),
        })
        .collect();
    serde_json::to_vec(&Manifest {
        format: FORMAT,
        about: BTreeMap::new(),
        files,
    })
    .unwrap()
}

fn refused(tar: &[u8]) -> String {
    let error = Archive::parse(tar).unwrap_err();
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hush"), "{shown}");
    shown
}

const FILE: tar::EntryType = tar::EntryType::Regular;

#[test]
fn what_goes_in_comes_out_and_the_same_files_give_the_same_bytes() {
    let tar = sample().to_tar().unwrap();
    assert!(Archive::parse(&tar).unwrap() == sample());
    assert_eq!(*sample().to_tar().unwrap(), *tar);
    let shown = format!("{:?}", sample());
    assert!(
        shown.contains("redis-password.txt") && !shown.contains("hush"),
        "{shown}"
    );
}

#[test]
fn a_path_that_leads_elsewhere_is_refused() {
    for path in [
        "../x",
        "/etc/passwd",
        "infra/../../x",
        "infra//x",
        "./x",
        "infra/.",
        "a\\b",
        "infra/secrets/",
        "a b",
    ] {
        let manifest = listing(&[(path, b"hush")]);
        let tar = tar_of(&[(MANIFEST, FILE, &manifest), (path, FILE, b"hush")]);
        assert!(refused(&tar).contains("no path"), "{path}");
    }
}

#[test]
fn links_and_folders_are_refused() {
    for kind in [
        tar::EntryType::Symlink,
        tar::EntryType::Link,
        tar::EntryType::Directory,
        tar::EntryType::Fifo,
        tar::EntryType::GNUSparse,
    ] {
        let manifest = listing(&[("infra/secrets/x", b"")]);
        let tar = tar_of(&[(MANIFEST, FILE, &manifest), ("infra/secrets/x", kind, b"")]);
        let error = Archive::parse(&tar).unwrap_err();
        assert!(matches!(error, Error::Damaged(_)), "{kind:?}: {error}");
    }
}

#[test]
fn files_and_list_must_say_the_same() {
    let with = |listed: &[(&str, &[u8])], there: &[(&str, &[u8])]| {
        let manifest = listing(listed);
        let mut entries = vec![(MANIFEST, FILE, manifest.as_slice())];
        entries.extend(there.iter().map(|(path, bytes)| (*path, FILE, *bytes)));
        refused(&tar_of(&entries))
    };
    assert!(with(&[("a", b"1")], &[]).contains("listed and not there"));
    assert!(with(&[], &[("a", b"1")]).contains("there and not listed"));
    assert!(with(&[("a", b"1")], &[("a", b"2")]).contains("is not what"));
    assert!(with(&[("a", b"1")], &[("a", b"1"), ("a", b"1")]).contains("twice"));
    let no_list = refused(&tar_of(&[("a", FILE, b"1")]));
    assert!(no_list.contains("first entry"), "{no_list}");
    assert!(refused(b"").contains("empty"));
}

#[test]
fn a_newer_format_is_named() {
    let text = br#"{"format": 2, "about": [], "files": {}}"#;
    let error = Archive::parse(&tar_of(&[(MANIFEST, FILE, text)])).unwrap_err();
    assert!(matches!(error, Error::Newer { found: 2 }), "{error}");
}

#[test]
fn a_size_that_is_a_lie_is_not_believed() {
    let mut header = tar::Header::new_gnu();
    header.set_path(MANIFEST).unwrap();
    header.set_entry_type(FILE);
    header.set_size(1 << 40);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend([b'x'; 512]);
    assert!(refused(&bytes).contains("too large"));
    header.set_size(4000);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend([b'x'; 512]);
    assert!(refused(&bytes).contains("cut off"));
}

fn passphrase(text: &str) -> SecretString {
    SecretString::from(text)
}

#[test]
fn only_the_passphrase_it_was_made_with_opens_it() {
    let plain = sample().to_tar().unwrap();
    let sealed = seal(&plain, &Lock::Passphrase(passphrase("open sesame"))).unwrap();
    assert!(!sealed.windows(4).any(|window| window == b"hush"));
    let opened = open(&sealed, &Key::Passphrase(passphrase("open sesame"))).unwrap();
    assert_eq!(*opened, *plain);
    let error = open(&sealed, &Key::Passphrase(passphrase("open barley"))).unwrap_err();
    assert!(matches!(error, Error::Locked(_)), "{error}");
}

#[test]
fn recipients_open_it_with_their_identity() {
    let (one, other) = (
        age::x25519::Identity::generate(),
        age::x25519::Identity::generate(),
    );
    let lock = Lock::Recipients(vec![one.to_public().to_string()]);
    let sealed = seal(b"plain", &lock).unwrap();
    let key = |identity: &age::x25519::Identity| {
        let text = format!("# a comment\n{}\n", identity.to_string().expose_secret());
        Key::Identities(SecretString::from(text))
    };
    assert_eq!(open(&sealed, &key(&one)).unwrap().as_slice(), b"plain");
    assert!(matches!(open(&sealed, &key(&other)), Err(Error::Locked(_))));
    let by_passphrase = open(&sealed, &Key::Passphrase(passphrase("x"))).unwrap_err();
    assert!(by_passphrase.to_string().contains("for recipients"));
    let none = seal(b"plain", &Lock::Recipients(vec!["age1nonsense".to_owned()])).unwrap_err();
    assert!(matches!(none, Error::NoKey(_)), "{none}");
    let none = open(&sealed, &Key::Identities(SecretString::from("# nothing\n"))).unwrap_err();
    assert!(matches!(none, Error::NoKey(_)), "{none}");
}

#[test]
fn a_sealed_archive_that_was_cut_off_or_changed_anywhere_is_refused() {
    let identity = age::x25519::Identity::generate();
    // More than one of age's 64 KiB chunks, so that a cut can fall between two.
    let plain = vec![7_u8; 70_000];
    let sealed = seal(
        &plain,
        &Lock::Recipients(vec![identity.to_public().to_string()]),
    )
    .unwrap();
    let key = Key::Identities(SecretString::from(identity.to_string().expose_secret()));
    let header = sealed.len() - plain.len() - 100;
    for cut in (0..header).chain([header + 65_552, sealed.len() - 17, sealed.len() - 1]) {
        assert!(open(&sealed[..cut], &key).is_err(), "cut at {cut}");
    }
    for at in (0..header + 64).chain((header + 64..sealed.len()).step_by(997)) {
        let mut changed = sealed.clone();
        changed[at] ^= 1;
        assert!(open(&changed, &key).is_err(), "changed at {at}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        let _ = Archive::parse(&bytes);
        let _ = open(&bytes, &Key::Passphrase(passphrase("x")));
    }

    #[test]
    fn a_changed_tar_is_refused_or_holds_the_same_files(at in 0_usize..20_000, bit in 0_u8..8) {
        let mut tar = sample().to_tar().unwrap().to_vec();
        let at = at % tar.len();
        tar[at] ^= 1 << bit;
        // Mode, owner and time of an entry count for nothing; neither does the padding.
        if let Ok(archive) = Archive::parse(&tar) {
            prop_assert!(archive.files == sample().files);
        }
    }

    #[test]
    fn a_tar_cut_off_anywhere_is_refused_or_whole(cut in 0_usize..20_000) {
        let tar = sample().to_tar().unwrap();
        if let Ok(archive) = Archive::parse(&tar[..cut % tar.len()]) {
            prop_assert!(archive == sample());
        }
    }

    #[test]
    fn arbitrary_paths_are_safe_or_refused(path in "\\PC{0,40}") {
        if check_path(&path).is_ok() {
            let root = std::path::Path::new("/w");
            let normal = |part| matches!(part, std::path::Component::Normal(_));
            prop_assert!(std::path::Path::new(&path).components().all(normal));
            prop_assert!(root.join(&path).starts_with(root));
        }
    }
}

#[test]
fn fuzz_archive() {
    let ours = sample().to_tar().unwrap();
    let by_hand = tar_of(&[
        (MANIFEST, FILE, &listing(&[("infra/tls/x", b"1")])),
        ("infra/tls/x", FILE, b"1"),
    ]);
    blueprint_fuzzing::fuzz("archive", &[ours.as_slice(), &by_hand], |bytes| {
        let result = Archive::parse(bytes);
        if let Ok(archive) = &result {
            assert!(archive.files.keys().all(|path| check_path(path).is_ok()));
            let back = Archive::parse(&archive.to_tar().unwrap()).unwrap();
            assert!(back == *archive, "what was read is not what is written");
        }
        (&result).into()
    });
}
