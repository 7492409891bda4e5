//! Credentials we choose: generate → private file → Kubernetes Secret → the chart's `existingSecret`.

use std::future::Future;
use std::path::Path;

use blueprint_pipeline::Outcome;
use secrecy::SecretString;

use crate::error::Error;

/// Decides between the private file's value and the cluster's: file only → file; cluster only → saved to the file first; both equal → that; both and they
/// differ → each is tried with `works` (file first) and the one that works wins, and that is said; neither → refuse. Nothing anywhere → generated with
/// `generate` and written. `what` names it in messages (`the Redis password`).
pub async fn settle<F, Fut>(
    what: &str,
    file: &Path,
    in_cluster: Option<SecretString>,
    generate: impl FnOnce() -> SecretString,
    works: F,
    outcome: &mut Outcome,
) -> Result<SecretString, Error>
where
    F: Fn(SecretString) -> Fut,
    Fut: Future<Output = Result<bool, Error>>,
{
    todo!()
}
