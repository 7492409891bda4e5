//! A chart repository's `index.yaml`: where the tarball of one chart and version is.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor};

/// The fields of one version's entry that matter here.
#[derive(Deserialize)]
struct Entry {
    version: String,
    #[serde(default)]
    urls: Vec<String>,
}

/// The first address of `chart` at `version`, as the index has it (absolute, or relative to the index). `Err` says what is missing.
///
/// Indexes grow to tens of megabytes (Bitnami's), so everything but the wanted chart is skipped while reading.
pub(super) fn address(index: &str, chart: &str, version: &str) -> Result<String, String> {
    let options = serde_saphyr::options! { budget: None, with_snippet: false };
    let entries =
        serde_saphyr::with_deserializer_from_str_with_options(index, options, |deserializer| {
            Index { chart }.deserialize(deserializer)
        })
        .map_err(|error| format!("its index.yaml cannot be read: {error}"))?
        .ok_or_else(|| format!("its index.yaml has no chart {chart}"))?;
    entries
        .into_iter()
        .find(|entry| entry.version == version)
        .and_then(|entry| entry.urls.into_iter().next())
        .ok_or_else(|| format!("its index.yaml has no {chart} {version}"))
}

/// The document; answers the wanted chart's entries.
struct Index<'a> {
    chart: &'a str,
}

impl<'de> DeserializeSeed<'de> for Index<'_> {
    type Value = Option<Vec<Entry>>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Index<'_> {
    type Value = Option<Vec<Entry>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a chart repository's index")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == "entries" {
                found = map.next_value_seed(Entries { chart: self.chart })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// The `entries` map.
struct Entries<'a> {
    chart: &'a str,
}

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = Option<Vec<Entry>>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Option<Vec<Entry>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of charts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<String>()? {
            if key == self.chart {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "
apiVersion: v1
entries:
  valkey:
  - {version: 1.0.0, urls: [v.tgz]}
  redis:
  - apiVersion: v2
    version: 27.0.13
    urls:
    - oci://registry-1.docker.io/bitnamicharts/redis:27.0.13
  - version: '1.10'
    urls: [charts/redis-1.10.tgz, other]
  - version: 0.1.0
generated: \"2026-11-30T00:00:00Z\"
";

    #[test]
    fn finds_the_first_address_of_the_version() {
        assert_eq!(
            address(INDEX, "redis", "27.0.13").unwrap(),
            "oci://registry-1.docker.io/bitnamicharts/redis:27.0.13"
        );
        assert_eq!(
            address(INDEX, "redis", "1.10").unwrap(),
            "charts/redis-1.10.tgz"
        );
    }

    #[test]
    fn says_what_is_missing() {
        assert!(
            address(INDEX, "redis", "9.9.9")
                .unwrap_err()
                .contains("no redis 9.9.9")
        );
        assert!(
            address(INDEX, "redis", "0.1.0")
                .unwrap_err()
                .contains("no redis 0.1.0")
        );
        assert!(
            address(INDEX, "minio", "1")
                .unwrap_err()
                .contains("no chart minio")
        );
        assert!(
            address("<html>", "minio", "1")
                .unwrap_err()
                .contains("cannot be read")
        );
    }
}
