//! The cluster destroyed and created again: the same data, the same identities, and, built step by step this time, the same objects.

use std::time::{Duration, Instant};

use super::identity::{self, Identity};
use super::pipeline::run_blueprint;
use super::{Evidence, Scene, expect, objects};
use crate::cluster::Cluster;
use crate::error::Result;
use crate::lab;
use crate::report::seconds;

/// What a cluster with cached parts may take, and `up` on it.
const WHOLE: Duration = Duration::from_mins(5);
const UP: Duration = Duration::from_mins(3);

pub(super) fn identity_survives_and_sequential_is_the_same(scene: &mut Scene) -> Result<Evidence> {
    identity::mark(scene)?;
    let before = Identity::take(scene)?;
    expect(
        before.markers_hold(),
        "every marker as written",
        "another value",
    )?;
    let parallel = objects::take(scene)?;

    delete_cluster(scene)?;
    let begun = Instant::now();
    lab::up(scene.lab, Some(scene.platform.program()), scene.report)?;
    let created = begun.elapsed();
    run_blueprint(scene, &["up", "--sequential", "--output", "plain"])?;
    let whole = begun.elapsed();
    run_blueprint(scene, &["smoke"])?;

    let after = Identity::take(scene)?;
    let lost = before.differences(&after);
    expect(
        lost.is_empty(),
        "every marker and identity as before",
        lost.join("; "),
    )?;
    let sequential = objects::take(scene)?;
    let other = objects::differences(&parallel, &sequential);
    expect(
        other.is_empty(),
        "the same objects by default and by --sequential",
        other.join("; "),
    )?;
    let up = whole.saturating_sub(created);
    expect(
        whole < WHOLE && up < UP,
        "under 5 minutes in all, `up` under 3",
        format!(
            "5 markers and {} identities the same; {} objects the same by default and --sequential; cluster and images {}, up --sequential {}",
            after.len() - 5,
            sequential.len(),
            seconds(created),
            seconds(up)
        ),
    )
}

/// Deletes the cluster as a user does, by `blueprint cluster delete`.
pub(super) fn delete_cluster(scene: &Scene) -> Result<()> {
    run_blueprint(scene, &["cluster", "delete"])?;
    let left = Cluster::open(scene.lab, scene.platform.engine())?.nodes()?;
    expect(left.is_empty(), "no node container left", left.join(", ")).map(drop)
}
