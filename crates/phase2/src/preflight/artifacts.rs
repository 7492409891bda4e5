//! helm, and every pinned file in the cache with the right digest.

use super::Check;
use super::measure::version;
use crate::context::Context;
use crate::error::Error;
use crate::made_with::{self, Refusal};

const HELM: &str = "helm";
const KIND: &str = "charts of one kind";
const CACHE: &str = "charts and manifests in the cache";

pub(super) async fn helm(context: &Context) -> Check {
    let minimum = match context.versions.tool("helm") {
        Ok(pin) => pin,
        Err(error) => {
            return Check::short(
                HELM,
                "a pin under `tools` in VERSIONS.json",
                error.to_string(),
                error.hint(),
            );
        }
    };
    let expected = format!("helm {} or newer", minimum.minimum);
    let hint = || {
        format!(
            "install it: {}; blueprint is tested with {}",
            minimum.url, minimum.version
        )
    };
    let helm = match context.helm() {
        Ok(helm) => helm,
        Err(error) => return Check::short(HELM, expected, error.to_string(), hint()),
    };
    match helm.version().await {
        Ok(found) if version(&found) >= version(&minimum.minimum) => Check::passed(HELM, found),
        Ok(found) => Check::short(HELM, expected, format!("helm {found}"), hint()),
        Err(error) => Check::short(HELM, expected, error.to_string(), hint()),
    }
}

/// Reads every artifact once: about 4 MB, a few milliseconds.
pub(super) async fn cached(context: &Context) -> Vec<Check> {
    let (cache, artifacts) = (context.cache.clone(), context.versions.artifacts());
    let count = artifacts.len();
    let verified = tokio::task::spawn_blocking(move || {
        let check = |artifact: &blueprint_charts::Artifact| {
            cache
                .verified(artifact)
                .err()
                .map(|error| (artifact.label.clone(), error))
        };
        artifacts.iter().filter_map(check).collect::<Vec<_>>()
    });
    match verified.await {
        Ok(errors) if errors.is_empty() => vec![Check::passed(
            CACHE,
            format!("{count} files, digests as pinned"),
        )],
        Ok(errors) => {
            let short = |(label, error): (String, blueprint_charts::CacheError)| {
                Check::short(
                    CACHE,
                    format!("{label} as VERSIONS.json pins it"),
                    error.to_string(),
                    error.hint(),
                )
            };
            errors.into_iter().map(short).collect()
        }
        Err(error) => vec![Check::short(
            CACHE,
            "to read the cache",
            error.to_string(),
            "run `blueprint charts verify`",
        )],
    }
}

/// Stand-in charts and upstream's are not for the same data.
pub(super) async fn kind(context: &Context, answers: bool) -> Check {
    if !answers {
        return Check::noted(KIND, "not looked at, the API server does not answer");
    }
    match made_with::refusal(context).await {
        Ok(None) => Check::passed(KIND, "the workspace and the cluster are made with these"),
        Ok(Some(Refusal {
            expected,
            found,
            hint,
        })) => Check::short(KIND, expected, found, hint),
        Err(Error::Refused {
            summary,
            expected,
            found,
            hint,
        }) => Check::short(KIND, expected, format!("{summary}: {found}"), hint),
        // Each release is looked at again before it is changed.
        Err(error) => Check::noted(KIND, format!("could not be looked at: {error}")),
    }
}
