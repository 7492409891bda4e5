//! Asking again while the API server or a webhook refuses for the moment.

use std::time::{Duration, Instant};

use backon::{ExponentialBuilder, Retryable};

use crate::error::Error;

/// How long a refusal of the moment is borne: an API server's restart takes about 10 s, an operator's webhook up to 7 s.
const PATIENCE: Duration = Duration::from_secs(30);

/// One try must end: a node that was paused or cut off leaves connections that never answer.
const ONE_TRY: Duration = Duration::from_mins(1);

/// Runs `attempt` until it succeeds, fails for good, or [`PATIENCE`] is over. The last error is kube's own.
pub(crate) async fn patiently<T, F, Fut>(action: &str, attempt: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, kube::Error>>,
{
    let mut attempt = attempt;
    let started = Instant::now();
    let pauses = ExponentialBuilder::new()
        .with_min_delay(Duration::from_millis(200))
        .with_max_delay(Duration::from_secs(3))
        .with_total_delay(Some(PATIENCE))
        .without_max_times()
        .with_jitter();
    (|| {
        let one = attempt();
        async move { once(action, one).await }
    })
    .retry(pauses)
    .when(|error| error.is_transient() && started.elapsed() < PATIENCE)
    .notify(|error, pause| tracing::debug!(action, ?error, ?pause, "asking the API server again"))
    .await
}

/// A single try, bounded in time.
pub(crate) async fn once<T>(
    action: &str,
    attempt: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout(ONE_TRY, attempt).await {
        Ok(answer) => answer.map_err(|error| Error::api(action, error)),
        Err(elapsed) => Err(Error::api(action, kube::Error::Service(Box::new(elapsed)))),
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
