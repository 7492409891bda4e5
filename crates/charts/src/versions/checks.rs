//! What a well-formed VERSIONS.json must also hold to.

use std::collections::BTreeMap;

use url::Url;

use super::{ChartPin, ImagePin, ManifestPin, ToolPin, Versions};

/// The first thing that is wrong, with its place.
pub(super) fn check(versions: &Versions) -> Result<(), String> {
    for (key, pin) in &versions.helm_repositories {
        chart(pin).map_err(at("helm_repositories", key))?;
    }
    for (key, pin) in &versions.manifests {
        manifest(pin).map_err(at("manifests", key))?;
    }
    for (key, pin) in &versions.images {
        image(pin, versions).map_err(at("images", key))?;
    }
    for (name, pin) in &versions.tools {
        tool(pin).map_err(at("tools", name))?;
    }
    one_digest_a_file(versions)
}

fn at(section: &str, key: &str) -> impl FnOnce(String) -> String {
    let place = format!("{section}.{key}");
    move |what| format!("{place}.{what}")
}

fn chart(pin: &ChartPin) -> Result<(), String> {
    release_name(&pin.name)?;
    address("url", &pin.url, &["https", "http", "oci"])?;
    file_part("chart", &pin.chart)?;
    file_part("chart_version", &pin.chart_version)?;
    sha256("sha256", &pin.sha256)?;
    if pin.values_overrides.is_null() || pin.values_overrides.is_object() {
        Ok(())
    } else {
        Err("values_overrides: expected an object, a layer of helm values".to_owned())
    }
}

fn manifest(pin: &ManifestPin) -> Result<(), String> {
    file_part("version", &pin.version)?;
    address("url", &pin.url, &["https", "http"])?;
    file_part("file", &pin.file)?;
    sha256("sha256", &pin.sha256)
}

fn image(pin: &ImagePin, versions: &Versions) -> Result<(), String> {
    // Grammar of the distribution project's reference package, without ports' and length's finer points.
    let word = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-:".contains(&b))
    };
    if !pin.repository.contains('/') || !pin.repository.split('/').all(word) {
        return Err(format!(
            "repository: expected registry/path, such as docker.io/library/busybox, found {:?}",
            pin.repository
        ));
    }
    let tag_fits = pin
        .tag
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if pin.tag.is_empty() || pin.tag.len() > 128 || !tag_fits || pin.tag.starts_with(['.', '-']) {
        return Err(format!("tag: expected an image tag, found {:?}", pin.tag));
    }
    if let Some(digest) = &pin.digest {
        let hex = digest
            .strip_prefix("sha256:")
            .ok_or_else(|| format!("digest: expected sha256:…, found {digest:?}"))?;
        sha256("digest", hex)?;
    }
    if let Some(target) = &pin.sets {
        if !versions.helm_repositories.contains_key(&target.chart) {
            return Err(format!(
                "sets.chart: helm_repositories has no entry {:?}",
                target.chart
            ));
        }
        if target.at.split('.').any(str::is_empty) {
            return Err(format!(
                "sets.at: expected a dotted path of values such as server.image, found {:?}",
                target.at
            ));
        }
    }
    Ok(())
}

fn tool(pin: &ToolPin) -> Result<(), String> {
    for (field, version) in [("version", &pin.version), ("minimum", &pin.minimum)] {
        if version.is_empty()
            || !version
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        {
            return Err(format!(
                "{field}: expected numbers and dots such as 4.3.1, found {version:?}"
            ));
        }
    }
    address("url", &pin.url, &["https", "http"])
}

/// helm's own rule: a DNS label sequence of at most 53 characters.
fn release_name(name: &str) -> Result<(), String> {
    let fits = name
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if name.is_empty() || name.len() > 53 || !fits || name.starts_with('-') || name.ends_with('-') {
        return Err(format!(
            "name: expected a release name of lower-case letters, digits and dashes, found {name:?}"
        ));
    }
    Ok(())
}

/// Becomes part of a file's name in the cache.
fn file_part(field: &str, text: &str) -> Result<(), String> {
    let fits = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"._+-".contains(&b));
    if text.is_empty() || !fits || text.starts_with(['.', '-']) {
        return Err(format!(
            "{field}: expected letters, digits, dots and dashes (no path), found {text:?}"
        ));
    }
    Ok(())
}

fn sha256(field: &str, text: &str) -> Result<(), String> {
    if text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(())
    } else {
        Err(format!(
            "{field}: expected 64 hexadecimal digits, found {text:?}"
        ))
    }
}

fn address(field: &str, text: &str, schemes: &[&str]) -> Result<(), String> {
    let expected = || {
        format!(
            "{field}: expected an address with {}, found {text:?}",
            schemes.join(" or ")
        )
    };
    let url = Url::parse(text).map_err(|_| expected())?;
    if schemes.contains(&url.scheme()) && url.has_host() {
        Ok(())
    } else {
        Err(expected())
    }
}

/// Two pins of one file name would overwrite each other in the cache.
fn one_digest_a_file(versions: &Versions) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for artifact in versions.artifacts() {
        if let Some((key, sha256)) = seen.get(&artifact.file_name) {
            if *sha256 != artifact.sha256 {
                return Err(format!(
                    "{key} and {} pin different digests for {}",
                    artifact.key, artifact.file_name
                ));
            }
        } else {
            seen.insert(artifact.file_name, (artifact.key, artifact.sha256));
        }
    }
    Ok(())
}
