//! What every laptop does every morning: all nodes stopped and started in another order. `blueprint up` alone mends it.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use super::doctor::Doctor;
use super::identity::{self, Identity};
use super::nodes;
use super::pipeline::run_blueprint;
use super::{Evidence, Scene, expect};
use crate::error::{Error, Result};
use crate::report::seconds;

/// From the API server's first answer to the end of `up`.
const MENDED_WITHIN: Duration = Duration::from_secs(30);
const ANSWERS_WITHIN: Duration = Duration::from_mins(2);

pub(super) fn reboot(scene: &mut Scene) -> Result<Evidence> {
    identity::mark(scene)?;
    let before = Identity::take(scene)?;
    let names = nodes::names(scene)?;
    let old = nodes::addresses(scene, &names)?;

    nodes::docker(scene, &["stop"], &names)?;
    let asked = Instant::now();
    let stopped = Doctor::ask(scene, &[])?;
    let asked = asked.elapsed();
    stopped.must_blame("node containers", &["stopped", "docker start"])?;
    stopped.must_blame("API server", &["stopped"])?;
    start_in_another_order(scene, &old)?;
    let lost: Vec<String> = names
        .iter()
        .map(|name| nodes::registry_on(scene, name))
        .collect();
    expect(
        lost.iter().all(String::is_empty),
        "every hosts line gone by the reboot",
        lost.join(", "),
    )?;

    let (answered, told, ended) = up_beside_the_first_answer(scene)?;
    let took = ended.saturating_duration_since(answered);
    let new = nodes::addresses(scene, &names)?;
    expect(
        old.iter()
            .all(|(name, address)| new.get(name) != Some(address)),
        "every node at another address",
        format!("{old:?} → {new:?}"),
    )?;
    nodes::must_be_routed(scene, &new)?;
    let resolved = nodes::must_resolve_the_registry(scene, &names)?;
    let unready = nodes::unready_pods(scene)?;
    expect(
        unready.is_empty(),
        "every pod Ready when `up` ends",
        unready.join(", "),
    )?;
    for mended in ["unsealed OpenBao", "/etc/hosts"] {
        expect(
            told.contains(mended),
            &format!("`{mended}` told by `up`"),
            told.clone(),
        )?;
    }
    let lost = before.differences(&Identity::take(scene)?);
    expect(
        lost.is_empty(),
        "every marker and identity as before",
        lost.join("; "),
    )?;
    Doctor::ask(scene, &[])?.must_be_clean()?;
    expect(
        took < MENDED_WITHIN,
        &format!(
            "mended within {} of the API server's first answer",
            seconds(MENDED_WITHIN)
        ),
        format!(
            "mended {} after the API server's first answer; {resolved}; addresses of all {} nodes changed; doctor told of the stopped nodes in {}",
            seconds(took),
            names.len(),
            seconds(asked)
        ),
    )
}

/// All nodes stopped and started, so that each has another one's address.
pub(super) fn in_another_order(scene: &Scene, names: &[String]) -> Result<()> {
    let old = nodes::addresses(scene, names)?;
    nodes::docker(scene, &["stop"], names)?;
    start_in_another_order(scene, &old)
}

fn start_in_another_order(scene: &Scene, old: &BTreeMap<String, String>) -> Result<()> {
    for name in rotated(old) {
        nodes::docker(scene, &["start"], &[name])?;
    }
    Ok(())
}

/// The engine gives the lowest free address to the first to start: each gets the next one's, the control plane as well.
fn rotated(old: &BTreeMap<String, String>) -> Vec<String> {
    let last = |address: &str| {
        address
            .rsplit('.')
            .next()
            .and_then(|part| part.parse::<u8>().ok())
    };
    let mut names: Vec<&String> = old.keys().collect();
    names.sort_by_key(|name| last(&old[*name]));
    names.rotate_left(1);
    names.into_iter().cloned().collect()
}

/// Runs `up` at once, as a person does who does not know what the cluster is up to; notes beside it when the API server first answered.
fn up_beside_the_first_answer(scene: &Scene) -> Result<(Instant, String, Instant)> {
    thread::scope(|scope| {
        let answer = scope.spawn(|| nodes::api_answers(scene, ANSWERS_WITHIN));
        let told = run_blueprint(scene, &["up", "--output", "plain"]);
        let ended = Instant::now();
        let answered = answer.join().map_err(|_| {
            Error::content(
                "the API server's first answer",
                "the thread that waited for it ended early",
            )
        })??;
        Ok((answered, told?, ended))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_gets_another_address() {
        let old = BTreeMap::from([
            ("cp".to_owned(), "172.18.0.10".to_owned()),
            ("w1".to_owned(), "172.18.0.2".to_owned()),
            ("w2".to_owned(), "172.18.0.3".to_owned()),
        ]);
        assert_eq!(rotated(&old), ["w2", "cp", "w1"]);
    }
}
