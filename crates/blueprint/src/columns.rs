//! A table of text: columns as wide as their widest cell, the last one broken where the terminal ends.

use std::fmt::Write as _;

/// Tables stay within this many columns where their words allow.
const COLUMNS: usize = 100;
const GAP: &str = "  ";

/// Lays `rows` out under `head`.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let last = head.len() - 1;
    let widths: Vec<usize> = (0..last)
        .map(|at| {
            let cells = rows
                .iter()
                .filter_map(|row| row.get(at))
                .map(|cell| cell.chars().count());
            cells.chain([head[at].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let indent: usize = widths.iter().map(|width| width + GAP.len()).sum();
    let room = COLUMNS.saturating_sub(indent).max(30);
    let heading: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&heading).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "{cell:<width$}{GAP}").ok();
        }
        for (number, part) in wrapped(row.get(last).map_or("", String::as_str), room)
            .iter()
            .enumerate()
        {
            if number > 0 {
                line = " ".repeat(indent);
            }
            text.push_str(format!("{line}{part}").trim_end());
            text.push('\n');
        }
    }
    text
}

/// Breaks at spaces; a word that is too long stays whole, so that it can be copied.
pub(crate) fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let length = lines.last().map_or(0, |line| line.chars().count());
        if length > 0 && length + 1 + word.chars().count() > room {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::{table, wrapped};

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|&cell| cell.to_owned()).collect()
    }

    #[test]
    fn columns_line_up_and_no_line_ends_in_spaces() {
        let text = table(
            &["TASK", "STATE", "NOTE"],
            &[
                row(&["redis", "ready", ""]),
                row(&["gitlab", "missing", "not there"]),
            ],
        );
        assert_eq!(
            text,
            "TASK    STATE    NOTE\nredis   ready\ngitlab  missing  not there\n"
        );
    }

    #[test]
    fn a_long_last_cell_goes_on_below_itself() {
        let long = "word ".repeat(30);
        let text = table(&["A", "B"], &[row(&["x", &long])]);
        assert!(
            text.lines().all(|line| line.chars().count() <= 100),
            "{text}"
        );
        assert!(
            text.lines().nth(2).unwrap().starts_with("   word"),
            "{text}"
        );
    }

    #[test]
    fn a_word_that_is_too_long_stays_whole() {
        assert_eq!(
            wrapped("a registry.example.net/very/long b", 10),
            ["a", "registry.example.net/very/long", "b"]
        );
    }
}
