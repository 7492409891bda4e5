//! `values validate`: references against their schemas, and what rendered charts name and nobody makes. Nothing is asked of a cluster.

mod provided;

use std::path::Path;
use std::time::Duration;

use blueprint_charts::{ReleaseInstall, dangling, schema, yaml};
use serde_json::Value;

use crate::context::Context;
use crate::error::Error;
use crate::helm_release::chart_artifact;
use crate::names;
use crate::references::embedded;

const FOLDER: &str = "infra/phase2/references/";

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validation {
    /// What was checked, a line each.
    pub checked: Vec<String>,
    /// What is wrong, a line each.
    pub problems: Vec<String>,
}

/// Where a chart goes and which of its own checks are off, as the installers have it.
pub(crate) struct Rendered {
    pub(crate) key: &'static str,
    pub(crate) namespace: &'static str,
    skip_crds: bool,
    skip_schema_validation: bool,
}

pub(crate) const CHARTS: [Rendered; 6] = [
    chart("cnpg", names::CNPG_SYSTEM),
    chart("redis", names::REDIS),
    chart("minio", names::MINIO),
    chart("openbao", names::OPENBAO),
    // Its schema has a remote `$ref`; ours stands in for it.
    Rendered {
        key: "gitlab",
        namespace: names::GITLAB,
        skip_crds: true,
        skip_schema_validation: true,
    },
    chart("runner", names::GITLAB),
];

const fn chart(key: &'static str, namespace: &'static str) -> Rendered {
    Rendered {
        key,
        namespace,
        skip_crds: false,
        skip_schema_validation: false,
    }
}

/// Checks every reference against the schema beside it, and every rendered chart for references that nobody fulfils.
pub async fn validate(context: &Context) -> Result<Validation, Error> {
    let mut validation = Validation::default();
    for file in embedded()
        .iter()
        .filter(|file| file.path.starts_with(FOLDER) && is_yaml(file.path))
    {
        check_file(context, file.path, &mut validation)?;
    }
    for chart in &CHARTS {
        check_merged_values(context, chart, &mut validation)?;
    }
    let charts = futures::future::join_all(CHARTS.iter().map(|chart| render(context, chart))).await;
    let rendered = charts.into_iter().collect::<Result<Vec<_>, _>>()?;
    check_references(&rendered, &mut validation);
    Ok(validation)
}

fn is_yaml(path: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "yaml")
}

/// The schema beside `path`, parsed.
fn schema_of(context: &Context, path: &str) -> Result<Option<Value>, Error> {
    let beside = path.replace(".yaml", ".schema.json");
    let Some(text) = context.references.text(&beside)? else {
        return Ok(None);
    };
    let parsed = serde_json::from_str(&text).map_err(|error| Error::Failed {
        action: format!("read {beside}"),
        found: error.to_string(),
        hint: "mend the file, or remove it from the workspace to use the built-in one".to_owned(),
    })?;
    Ok(Some(parsed))
}

fn check_file(context: &Context, path: &str, validation: &mut Validation) -> Result<(), Error> {
    let Some(schema) = schema_of(context, path)? else {
        // Profiles are layers: what they come to together with their reference is checked against the reference's schema.
        if path.contains("/helm-values-") && !path.contains("/profiles/") {
            validation
                .problems
                .push(format!("{path} has no schema beside it"));
        }
        return Ok(());
    };
    let text = context.references.text(path)?.unwrap_or_default();
    let documents = match yaml::documents(&text, Path::new(path)) {
        Ok(documents) => documents,
        Err(error) => {
            validation.problems.push(error.to_string());
            return Ok(());
        }
    };
    // An empty values file is an empty map.
    let empty = [Value::Object(serde_json::Map::new())];
    let documents = if documents.is_empty() {
        &empty[..]
    } else {
        &documents[..]
    };
    for document in documents {
        report(path, &schema::check(&schema, document), validation);
    }
    validation
        .checked
        .push(format!("{path} against its schema"));
    Ok(())
}

/// Reference, profile and `values_overrides` together: an override may break what each file alone keeps.
fn check_merged_values(
    context: &Context,
    chart: &Rendered,
    validation: &mut Validation,
) -> Result<(), Error> {
    let path = format!("{FOLDER}helm-values-{}.yaml", chart.key);
    let Some(schema) = schema_of(context, &path)? else {
        return Ok(());
    };
    let values = context.references.values(chart.key, &context.versions)?;
    let merged = format!(
        "values of {} (reference, profile {}, overrides)",
        chart.key,
        context.settings.profile.name()
    );
    report(&merged, &schema::check(&schema, &values), validation);
    validation.checked.push(merged);
    Ok(())
}

fn report(what: &str, violations: &[schema::Violation], validation: &mut Validation) {
    for violation in violations {
        let at = if violation.at.is_empty() {
            "/"
        } else {
            violation.at.as_str()
        };
        validation
            .problems
            .push(format!("{what} at {at}: {}", violation.message));
    }
}

/// What helm would install of a chart, by its key in VERSIONS.json: its objects, rendered with the merged values; hooks included, CRDs of `crds/` not.
pub async fn rendered(context: &Context, key: &str) -> Result<Vec<Value>, Error> {
    let Some(chart) = CHARTS.iter().find(|chart| chart.key == key) else {
        let keys: Vec<&str> = CHARTS.iter().map(|chart| chart.key).collect();
        return Err(Error::Refused {
            summary: format!("no chart is called `{key}`"),
            expected: format!("one of {}", keys.join(", ")),
            found: key.to_owned(),
            hint: "take a key of helm_repositories in VERSIONS.json".to_owned(),
        });
    };
    Ok(render(context, chart).await?.1)
}

async fn render<'a>(
    context: &Context,
    chart: &'a Rendered,
) -> Result<(&'a Rendered, Vec<Value>), Error> {
    let pin = context.versions.chart(chart.key)?;
    let verified = context
        .cache
        .verified(&chart_artifact(&context.versions, chart.key, pin))?;
    let release = ReleaseInstall {
        name: pin.name.clone(),
        namespace: chart.namespace.to_owned(),
        chart: verified.path,
        values: context.references.values(chart.key, &context.versions)?,
        skip_crds: chart.skip_crds,
        skip_schema_validation: chart.skip_schema_validation,
        timeout: Duration::from_mins(1),
        labels: Vec::new(),
    };
    // The node image's tag is the Kubernetes version that the charts will meet.
    let kubernetes = &context.versions.image("kind-node")?.tag;
    Ok((chart, context.helm()?.template(&release, kubernetes).await?))
}

fn check_references(rendered: &[(&Rendered, Vec<Value>)], validation: &mut Validation) {
    let mut provided = provided::all();
    for (chart, objects) in rendered {
        let count = objects.len();
        for missing in dangling::find(objects, chart.namespace, &provided) {
            validation.problems.push(format!(
                "{} names {} {}/{} at {}, and nobody makes it",
                missing.by,
                missing.target.kind,
                missing.target.namespace,
                missing.target.name,
                missing.at
            ));
        }
        validation.checked.push(format!(
            "references of {count} objects of chart {}",
            chart.key
        ));
        // Later charts may lean on Services of earlier ones.
        provided.extend(
            objects
                .iter()
                .filter_map(|object| provided::identity(object, chart.namespace)),
        );
    }
}
