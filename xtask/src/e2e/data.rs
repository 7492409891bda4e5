//! What holds data: PostgreSQL, the buckets, OpenBao, and the runner that GitLab's database knows.

use serde_json::Value;

use super::observer::{TOOLBOX, condition};
use super::{Evidence, Scene, expect};
use crate::error::{Error, Result};

const ROLES: &str = "gitlab gitlab_openbao openbao";
/// Database, and the extensions it must have.
const DATABASES: [(&str, &str); 3] = [
    ("gitlabhq_production", "amcheck btree_gist pg_trgm"),
    ("gitlab_openbao", ""),
    ("openbao", ""),
];
const BUCKETS: [&str; 11] = [
    "git-lfs",
    "gitlab-artifacts",
    "gitlab-backups",
    "gitlab-ci-secure-files",
    "gitlab-dependency-proxy",
    "gitlab-packages",
    "gitlab-pages",
    "gitlab-snippets",
    "gitlab-terraform-state",
    "gitlab-uploads",
    "registry",
];

pub(super) fn postgresql(scene: &mut Scene) -> Result<Evidence> {
    let cluster = scene.objects(&[
        "clusters.postgresql.cnpg.io",
        "--namespace",
        "postgresql",
        "postgresql-cnpg",
    ])?;
    expect(
        condition(&cluster, "Ready") == "True",
        "Cluster postgresql-cnpg Ready",
        cluster["status"]["phase"].to_string(),
    )?;
    // The operator's own roles are left out.
    let roles = scene.sql(
        "postgres",
        "select string_agg(rolname, ' ' order by rolname) from pg_roles where rolcanlogin and rolname not in ('postgres', 'streaming_replica') and rolname not like 'cnpg\\_%'",
    )?;
    expect(roles == ROLES, &format!("the roles {ROLES}"), roles)?;
    let wanted: Vec<_> = DATABASES.iter().map(|(name, _)| *name).collect();
    for (database, extensions) in DATABASES {
        let found = scene.sql(
            database,
            "select coalesce(string_agg(extname, ' ' order by extname), '') from pg_extension where extname <> 'plpgsql'",
        )?;
        expect(
            found == extensions,
            &format!("the extensions `{extensions}` in {database}"),
            found,
        )?;
    }
    Ok(format!(
        "Cluster Ready; roles {ROLES}; databases {}; extensions {} in {}",
        wanted.join(" "),
        DATABASES[0].1,
        DATABASES[0].0
    ))
}

pub(super) fn buckets(scene: &mut Scene) -> Result<Evidence> {
    let found = bucket_names(scene)?;
    expect(
        found == BUCKETS,
        &format!("the 11 buckets {}", BUCKETS.join(" ")),
        format!("{} buckets by the S3 API: {}", found.len(), found.join(" ")),
    )
}

pub(super) fn bucket_names(scene: &Scene) -> Result<Vec<String>> {
    Ok(names_in(&s3(scene, "", "")?))
}

/// One call of the S3 API with the keys that GitLab has; `options` are further lines of curl's configuration. curl signs the request itself;
/// its configuration comes by stdin.
pub(super) fn s3(scene: &Scene, path: &str, options: &str) -> Result<String> {
    let secret = scene.objects(&["secret", "--namespace", "gitlab", "gitlab-rails-storage"])?;
    let connection = decoded(&secret, "connection")?;
    let connection: Value = serde_saphyr::from_str(&connection)
        .map_err(|error| Error::content("the key `connection` of gitlab-rails-storage", error))?;
    let field = |name: &str| connection[name].as_str().unwrap_or_default().to_owned();
    let config = format!(
        "url = \"{}/{path}\"\naws-sigv4 = \"aws:amz:{}:s3\"\nuser = \"{}:{}\"\nsilent\nshow-error\nfail\n{options}",
        field("endpoint").trim_end_matches('/'),
        field("region"),
        field("aws_access_key_id"),
        field("aws_secret_access_key"),
    );
    scene.in_pod("gitlab", TOOLBOX, &config, &["curl", "--config", "-"])
}

/// The `<Name>` of each `<Bucket>` in S3's answer, sorted.
fn names_in(listing: &str) -> Vec<String> {
    let mut names: Vec<String> = listing
        .split("<Bucket>")
        .skip(1)
        .filter_map(|bucket| {
            let (_, rest) = bucket.split_once("<Name>")?;
            let (name, _) = rest.split_once("</Name>")?;
            Some(name.to_owned())
        })
        .collect();
    names.sort();
    names
}

pub(super) fn openbao(scene: &mut Scene) -> Result<Evidence> {
    let text = scene.in_pod(
        "openbao",
        "openbao-0",
        "",
        &[
            "env",
            "BAO_ADDR=http://127.0.0.1:8200",
            "bao",
            "status",
            "-format=json",
        ],
    )?;
    let status: Value =
        serde_json::from_str(&text).map_err(|error| Error::content("bao status", error))?;
    expect(
        status["sealed"] == false
            && status["initialized"] == true
            && status["storage_type"] == "postgresql",
        "initialized, unsealed, storage postgresql",
        format!(
            "sealed={} storage={} version={}",
            status["sealed"], status["storage_type"], status["version"]
        ),
    )
}

pub(super) fn runner(scene: &mut Scene) -> Result<Evidence> {
    let counts = scene.sql(
        "gitlabhq_production",
        "select count(*) || ' known, ' || count(*) filter (where contacted_at > now() - interval '2 minutes') || ' online' from ci_runners",
    )?;
    expect(counts == "1 known, 1 online", "one runner, online", counts)
}

pub(super) fn decoded(secret: &Value, key: &str) -> Result<String> {
    let encoded = secret["data"][key].as_str().unwrap_or_default();
    crate::process::Process::new("base64")
        .arg("--decode")
        .input(encoded)
        .output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_are_told_from_the_owners() {
        let listing = "<Owner><DisplayName>x</DisplayName></Owner><Buckets><Bucket><Name>b</Name></Bucket>\
                       <Bucket><CreationDate>1</CreationDate><Name>a</Name></Bucket></Buckets>";
        assert_eq!(names_in(listing), ["a", "b"]);
    }
}
