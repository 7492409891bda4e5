//! `openbao.autoUnseal` switched on and off again: the server keeps what it holds, opens itself in between, and its key shares stay the same.

use std::fs;
use std::path::PathBuf;

use super::identity::{self, Identity};
use super::pipeline::run_blueprint;
use super::restarts::{must_open, replace_pod};
use super::{Evidence, Scene, expect};
use crate::error::{FileContext as _, Result};

const SWITCHED_ON: &str = "openbao:\n  autoUnseal: true\n";

/// A blueprint.yaml of the check's own; the former one, or none, is put back however the check ends.
struct Setting {
    path: PathBuf,
    before: Option<String>,
}

impl Setting {
    fn switched_on(scene: &Scene) -> Result<Self> {
        let path = scene.lab.checkout().join("blueprint.yaml");
        let before = path
            .exists()
            .then(|| fs::read_to_string(&path).file("read", &path))
            .transpose()?;
        let text = format!("{}{SWITCHED_ON}", before.as_deref().unwrap_or_default());
        fs::write(&path, text).file("write", &path)?;
        Ok(Self { path, before })
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // The next `up` says what it finds; nothing better can be done here.
        let _ = match &self.before {
            Some(text) => fs::write(&self.path, text),
            None => fs::remove_file(&self.path),
        };
    }
}

pub(super) fn auto_unseal(scene: &mut Scene) -> Result<Evidence> {
    identity::mark(scene)?;
    let before = Identity::take(scene)?;
    let setting = Setting::switched_on(scene)?;
    run_blueprint(scene, &["up", "--output", "plain"])?;
    sealed_by(scene, "static")?;
    replace_pod(scene)?;
    // Nobody runs blueprint here.
    must_open(scene)?;
    run_blueprint(scene, &["smoke"])?;
    let again = run_blueprint(scene, &["up", "--output", "plain"])?;
    drop(setting);

    run_blueprint(scene, &["up", "--output", "plain"])?;
    sealed_by(scene, "shamir")?;
    let key = scene
        .lab
        .checkout()
        .join("infra/secrets/openbao-seal-key.txt");
    expect(
        !key.exists(),
        "no seal key in use after the way back",
        key.display().to_string(),
    )?;
    run_blueprint(scene, &["smoke"])?;
    let mut lost = before.differences(&Identity::take(scene)?);
    // The key that was set aside stays beside it: older data may be sealed with it.
    lost.retain(|difference| !difference.contains("openbao-seal-key"));
    expect(
        lost.is_empty(),
        "every marker and identity as before, the key shares too",
        lost.join("; "),
    )?;
    expect(
        !again.contains("restarted") && !again.contains("seal key"),
        "nothing done by a second `up` under the static seal",
        "switched on, opened by itself in a new pod, a second `up` changed nothing, switched off: key shares, markers and identities as before",
    )
}

fn sealed_by(scene: &Scene, kind: &str) -> Result<()> {
    let told = identity::bao(scene, &["status", "-format=json"])?;
    expect(
        told.contains(&format!("\"type\": \"{kind}\"")) && told.contains("\"sealed\": false"),
        &format!("an open server with the seal `{kind}`"),
        told,
    )
    .map(drop)
}
