//! Reads single files out of a chart's tarball without unpacking it.

use std::path::Path;

use crate::cache::CacheError;

/// One file of a chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartFile {
    /// Its path inside the tarball.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The files whose path inside the tarball `wanted` accepts, sorted by path.
pub fn read(tarball: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<ChartFile>, CacheError> {
    todo!()
}
