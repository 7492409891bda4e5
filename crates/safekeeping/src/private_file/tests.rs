use super::*;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn writes_reads_and_leaves_equal_bytes_alone() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("a/b/password.txt");
    assert!(read(&path).unwrap().is_none());
    assert_eq!(write(&path, b"one\n").unwrap(), Written::Created);
    let before = fs::metadata(&path).unwrap();
    assert_eq!(write(&path, b"one\n").unwrap(), Written::Unchanged);
    let after = fs::metadata(&path).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    assert_eq!(write(&path, b"two\r\n").unwrap(), Written::Replaced);
    assert_eq!(read_text(&path).unwrap().unwrap().as_str(), "two");
    assert_eq!(
        fs::read_dir(path.parent().unwrap()).unwrap().count(),
        1,
        "no temporary file stays behind"
    );
}

#[test]
fn makes_only_missing_folders_private() {
    let home = tempfile::tempdir().unwrap();
    let there = home.path().join("infra");
    fs::create_dir(&there).unwrap();
    fs::set_permissions(&there, Permissions::from_mode(0o755)).unwrap();
    write(&there.join("tls/wildcard/key.pem"), b"x").unwrap();
    assert_eq!(mode(&there), 0o755);
    assert_eq!(mode(&there.join("tls")), 0o700);
    assert_eq!(mode(&there.join("tls/wildcard")), 0o700);
    assert_eq!(mode(&there.join("tls/wildcard/key.pem")), 0o600);
}

#[test]
fn an_unchanged_file_that_others_could_read_is_mended() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secret");
    write(&path, b"x").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(write(&path, b"x").unwrap(), Written::Unchanged);
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn mends_modes_without_following_links() {
    let home = tempfile::tempdir().unwrap();
    let outside = home.path().join("outside");
    fs::write(&outside, b"x").unwrap();
    fs::set_permissions(&outside, Permissions::from_mode(0o644)).unwrap();
    let folder = home.path().join("secrets");
    write(&folder.join("tight"), b"x").unwrap();
    write(&folder.join("deep/loose"), b"x").unwrap();
    fs::set_permissions(folder.join("deep"), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.join("deep/loose"), Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&outside, folder.join("link")).unwrap();
    let mended = mend_modes(&folder).unwrap();
    assert_eq!(
        mended,
        [
            Mended {
                path: folder.join("deep"),
                found: 0o755
            },
            Mended {
                path: folder.join("deep/loose"),
                found: 0o640
            }
        ]
    );
    assert_eq!(mode(&folder.join("deep/loose")), 0o600);
    assert_eq!(mode(&outside), 0o644);
    assert!(mend_modes(&folder).unwrap().is_empty());
    assert!(mend_modes(&home.path().join("nowhere")).unwrap().is_empty());
}

#[test]
fn a_link_stays_a_link() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().join("real");
    write(&real, b"one").unwrap();
    let link = home.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(write(&link, b"two").unwrap(), Written::Replaced);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&real).unwrap().unwrap().as_slice(), b"two");
}

#[test]
fn a_write_that_fails_leaves_the_old_file_intact_and_no_temporary_one() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("state/secret");
    write(&path, b"old").unwrap();
    let below_a_file = path.join("below");
    let error = write(&below_a_file, b"new").unwrap_err();
    assert!(matches!(&error, Error::Io { .. }), "{error}");
    assert_eq!(read(&path).unwrap().unwrap().as_slice(), b"old");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn hints_name_the_next_move() {
    let error = |kind| Error::Io {
        action: "write",
        path: "/x/y".into(),
        source: io::Error::from(kind),
    };
    assert!(
        error(ErrorKind::StorageFull)
            .hint()
            .contains("free some space")
    );
    assert!(
        error(ErrorKind::ReadOnlyFilesystem)
            .hint()
            .contains("read-only")
    );
    assert!(error(ErrorKind::PermissionDenied).hint().contains("ls -ld"));
}

#[test]
fn text_that_is_not_utf8_is_named_by_position_only() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secret");
    write(&path, b"hush\xff").unwrap();
    let error = read_text(&path).unwrap_err();
    assert!(error.to_string().contains("byte 4"), "{error}");
    assert!(!format!("{error:?}").contains("hush"));
}

#[test]
fn removing_says_whether_there_was_something() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("secret");
    write(&path, b"x").unwrap();
    assert!(remove(&path).unwrap());
    assert!(!remove(&path).unwrap());
}

#[test]
fn a_killed_write_leaves_no_copy_of_the_secret_behind() {
    let home = tempfile::tempdir().unwrap();
    let (ours, foreign) = (
        home.path().join(".secret.Ab12Cd.new"),
        home.path().join(".secret.txt.Ab12Cd.new"),
    );
    fs::write(&ours, "half of a sec").unwrap();
    fs::write(&foreign, "of the file secret.txt").unwrap();
    write(&home.path().join("secret"), b"whole").unwrap();
    assert!(!ours.exists() && foreign.exists());
}

proptest::proptest! {
    #[test]
    fn any_bytes_come_back(bytes: Vec<u8>) {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("secret");
        write(&path, &bytes).unwrap();
        let back = read(&path).unwrap().unwrap();
        proptest::prop_assert_eq!(back.as_slice(), bytes.as_slice());
    }
}

#[test]
fn a_file_is_set_aside_whole_and_never_onto_another() {
    let home = tempfile::tempdir().unwrap();
    let (file, folder) = (home.path().join("keys.json"), home.path().join("aside"));
    assert!(!set_aside(&file, &folder).unwrap());
    write(&file, b"one").unwrap();
    assert!(set_aside(&file, &folder).unwrap());
    assert_eq!(fs::read(folder.join("keys.json")).unwrap(), b"one");
    assert!(!file.exists());
    write(&file, b"two").unwrap();
    assert!(set_aside(&file, &folder).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"two");
    assert_eq!(fs::read(folder.join("keys.json")).unwrap(), b"one");
}
