//! Reads single files out of a chart's tarball without unpacking it.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tar::Archive;

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
    let file = File::open(tarball).map_err(CacheError::io("read", tarball))?;
    let mut files = unpack(file, wanted).map_err(|error| {
        // Whatever gzip and tar say, the file is not the archive it should be.
        CacheError::io("unpack", tarball)(io::Error::new(io::ErrorKind::InvalidData, error))
    })?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn unpack(file: File, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<ChartFile>> {
    let mut files = Vec::new();
    let mut archive = Archive::new(MultiGzDecoder::new(BufReader::new(file)));
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.to_string_lossy().into_owned();
        if wanted(&path) {
            let mut text = String::new();
            entry.read_to_string(&mut text)?;
            files.push(ChartFile { path, text });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn tarball(files: &[(&str, &str)]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut archive =
            tar::Builder::new(GzEncoder::new(file.reopen().unwrap(), Compression::fast()));
        for (path, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            archive
                .append_data(&mut header, path, text.as_bytes())
                .unwrap();
        }
        archive.into_inner().unwrap().finish().unwrap();
        file
    }

    #[test]
    fn wanted_files_come_sorted() {
        let tarball = tarball(&[
            ("chart/crds/b.yaml", "b: 1"),
            ("chart/Chart.yaml", "name: chart"),
            ("chart/crds/a.yaml", "a: 1"),
        ]);
        let files = read(tarball.path(), |path| path.starts_with("chart/crds/")).unwrap();
        let found: Vec<(&str, &str)> = files
            .iter()
            .map(|file| (file.path.as_str(), file.text.as_str()))
            .collect();
        assert_eq!(
            found,
            [("chart/crds/a.yaml", "a: 1"), ("chart/crds/b.yaml", "b: 1")]
        );
    }

    #[test]
    fn a_damaged_tarball_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"not gzip").unwrap();
        let error = read(file.path(), |_| true).unwrap_err();
        assert!(
            error
                .to_string()
                .contains(&file.path().display().to_string())
        );
        assert!(error.hint().contains("blueprint charts fetch"));
    }
}
