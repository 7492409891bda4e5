//! One node restarted, and OpenBao sealed by a restart of its pod.

use std::time::Duration;

use super::doctor::Doctor;
use super::nodes;
use super::pipeline::run_blueprint;
use super::{Evidence, Scene, expect};
use crate::error::Result;
use crate::report::seconds;

const ANSWERS_WITHIN: Duration = Duration::from_mins(2);

pub(super) fn node_restarted(scene: &mut Scene) -> Result<Evidence> {
    let names = nodes::names(scene)?;
    let mut told = Vec::new();
    // The control plane last: with it goes the API server.
    for name in names.iter().rev() {
        nodes::docker(scene, &["restart"], std::slice::from_ref(name))?;
        let found = nodes::registry_on(scene, name);
        expect(
            found.is_empty(),
            &format!("the hosts line of {name} gone by its restart"),
            found,
        )?;
        let answered = nodes::api_answers(scene, ANSWERS_WITHIN)?;
        Doctor::ask(scene, &[])?.must_blame("registry-pin", &[name, "/etc/hosts"])?;
        run_blueprint(scene, &["up", "--output", "plain"])?;
        told.push(format!("{name} {}", seconds(answered.elapsed())));
        nodes::must_resolve_the_registry(scene, &names)?;
        let unready = nodes::unready_pods(scene)?;
        expect(
            unready.is_empty(),
            "every pod Ready when `up` ends",
            unready.join(", "),
        )?;
    }
    nodes::must_be_routed(scene, &nodes::addresses(scene, &names)?)?;
    Doctor::ask(scene, &[])?.must_be_clean()?;
    Ok(format!(
        "blamed by doctor, mended by `up`, clean afterwards: {}",
        told.join(", ")
    ))
}

/// Each of the three ways opens it, through the pod.
pub(super) fn openbao_resealed(scene: &mut Scene) -> Result<Evidence> {
    reseal(scene)?;
    let doctor = Doctor::ask(scene, &[])?;
    doctor.must_blame("openbao", &["sealed", "unseal"])?;
    expect(
        doctor.ill().first() == Some(&"openbao"),
        "the root before what follows from it",
        doctor.ill().join(", "),
    )?;
    run_blueprint(scene, &["secrets", "unseal"])?;
    must_open(scene)?;

    reseal(scene)?;
    let fixed = Doctor::ask(scene, &["--fix"])?;
    must_open(scene)?;
    fixed.must_be_clean()?;

    reseal(scene)?;
    let told = run_blueprint(scene, &["up", "--output", "plain"])?;
    must_open(scene)?;
    expect(
        told.contains("unsealed OpenBao"),
        "`up` to say what it mended",
        told,
    )?;
    Doctor::ask(scene, &[])?.must_be_clean()?;
    Ok("sealed three times; opened by `secrets unseal`, by `doctor --fix` and by `up`".to_owned())
}

/// Deletes the pod and waits until the next one runs.
pub(super) fn replace_pod(scene: &Scene) -> Result<()> {
    scene
        .kubectl([
            "delete",
            "pod",
            "--namespace",
            "openbao",
            "openbao-0",
            "--grace-period=1",
        ])
        .output()?;
    for state in ["create", "jsonpath={.status.phase}=Running"] {
        scene
            .kubectl([
                "wait",
                "--namespace",
                "openbao",
                "pod/openbao-0",
                "--timeout=60s",
            ])
            .arg(format!("--for={state}"))
            .output()?;
    }
    Ok(())
}

/// A new pod, and the server in it is sealed.
fn reseal(scene: &Scene) -> Result<()> {
    replace_pod(scene)?;
    let (_, status, _) = scene
        .kubectl(["exec", "--namespace", "openbao", "openbao-0", "--"])
        .args(["sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do out=$(BAO_ADDR=http://127.0.0.1:8200 bao status -format=json); echo \"$out\" | grep -q sealed && break; sleep 1; done; echo \"$out\""])
        .captured()?;
    expect(
        status.contains("\"sealed\": true"),
        "a sealed server in the new pod",
        status,
    )
    .map(drop)
}

/// Its readiness probe is `bao status`, so kubectl can tell.
pub(super) fn must_open(scene: &Scene) -> Result<()> {
    scene
        .kubectl([
            "wait",
            "--namespace",
            "openbao",
            "pod/openbao-0",
            "--for=condition=Ready",
            "--timeout=30s",
        ])
        .output()
        .map(drop)
}
