//! Ambiguous states of the running platform.

use std::fs;

use super::super::pipeline::Fingerprint;
use super::super::refusals::Place;
use super::super::{Evidence, Scene, expect};
use super::up_in;
use crate::error::{FileContext as _, Result};

/// On the running platform: two passwords that both fail, settled by one of them; and a server whose keys are gone.
pub(in crate::e2e) fn while_it_runs(scene: &mut Scene) -> Result<Evidence> {
    let passwords = two_passwords(scene)?;
    let before = Fingerprint::take(scene)?;
    let place = Place::copy_of(scene)?;
    let keys = place.root.join("infra/secrets/openbao-init.json");
    fs::remove_file(&keys).file("remove", &keys)?;
    let (code, message) = up_in(scene, &place.root, &[])?;
    let changes = before.differences(&Fingerprint::take(scene)?);
    expect(
        code == Some(3)
            && message.contains("a server without keys")
            && message.contains("--accept openbao-data-aside")
            && changes.is_empty(),
        "a running server without keys refused with code 3, nothing changed",
        format!(
            "{passwords}; a running server without keys → {code:?}, {} changes {}",
            changes.len(),
            changes.join(", ")
        ),
    )
}

fn two_passwords(scene: &Scene) -> Result<Evidence> {
    let place = Place::copy_of(scene)?;
    let path = place.root.join("infra/secrets/redis-password.txt");
    let right = fs::read_to_string(&path).file("read", &path)?;
    fs::write(&path, "of-the-file").file("write", &path)?;
    // Redis itself is given a third one; its Secret and the real workspace still have the right one.
    redis(scene, right.trim(), "CONFIG SET requirepass a-third-one")?;
    let before = Fingerprint::take(scene)?;
    let refused = up_in(scene, &place.root, &[]);
    let changes = before.differences(&Fingerprint::take(scene)?);
    let taken = up_in(
        scene,
        &place.root,
        &["--only", "preflight,redis", "--accept", "cluster-password"],
    );
    let (code, message) = refused?;
    let (after, taken) = taken?;
    let saved = fs::read_to_string(&path).file("read", &path)?;
    let pong = redis(scene, right.trim(), "PING")?;
    let shown = ["of-the-file", "a-third-one", right.trim()]
        .iter()
        .any(|password| message.contains(password) || taken.contains(password));
    expect(
        code == Some(3)
            && message.contains("two passwords that both fail")
            && message.contains("--accept file-password")
            && message.contains("--accept cluster-password")
            && changes.is_empty()
            && after == Some(0)
            && saved.trim() == right.trim()
            && pong.contains("PONG")
            && !shown,
        "refused with both ways and code 3, nothing changed; --accept cluster-password sets the Secret's and saves it; no password shown",
        format!(
            "two passwords that both fail → {code:?}, {} changes {}; --accept cluster-password → {after:?}, {}",
            changes.len(),
            changes.join(", "),
            if pong.contains("PONG") {
                "PONG"
            } else {
                "no PONG"
            }
        ),
    )
}

fn redis(scene: &Scene, password: &str, command: &str) -> Result<String> {
    scene.in_pod(
        "redis",
        "redis-master-0",
        &format!("AUTH {password}\n{command}\n"),
        &["redis-cli"],
    )
}
