//! A chart's archive whose bytes depend on nothing but the chart's files: order, times, owners and modes are fixed.

use std::collections::BTreeMap;

use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};

use crate::error::{FileContext as _, Result};

/// The `.tgz` of a chart, its files below a folder of the chart's name as helm wants them.
pub(super) fn of(chart: &str, files: &BTreeMap<String, Vec<u8>>) -> Result<Vec<u8>> {
    // GzBuilder writes no name and the time 0 unless told otherwise.
    let gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    let mut archive = Builder::new(gzip);
    for (name, bytes) in files {
        let path = format!("{chart}/{name}");
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        archive
            .append_data(&mut header, &path, bytes.as_slice())
            .file("pack", &path)?;
    }
    archive
        .into_inner()
        .and_then(flate2::write::GzEncoder::finish)
        .file("pack", chart)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_same_files_give_the_same_bytes_and_long_names_stay_whole() {
        let long = format!("charts/{}/x.yaml", "a".repeat(120));
        let files: BTreeMap<_, _> = [("Chart.yaml", "name: x\n"), (long.as_str(), "y")]
            .into_iter()
            .map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()))
            .collect();
        let first = of("x", &files).unwrap();
        assert_eq!(first, of("x", &files).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(first.as_slice()));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_string_lossy().into_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            seen.push((path, text));
        }
        assert_eq!(seen[0], ("x/Chart.yaml".to_owned(), "name: x\n".to_owned()));
        assert_eq!(seen[1], (format!("x/{long}"), "y".to_owned()));
    }
}
