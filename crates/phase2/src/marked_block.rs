//! Our lines inside somebody else's file, between `# blueprint:begin` and `# blueprint:end`. Pure text; every other byte stays as it was.

/// The first line of a block starts with this (after its indent).
pub(crate) const BEGIN: &str = "# blueprint:begin";
/// The last line of a block.
pub(crate) const END: &str = "# blueprint:end";

/// Markers that do not pair up: somebody edited the file, and only a person can tell what was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MarkerError {
    /// A second begin before an end, or no end.
    #[error("line {line}: `# blueprint:begin` without its `# blueprint:end`")]
    Unclosed {
        /// 1-based.
        line: usize,
    },
    /// An end without a begin.
    #[error("line {line}: `# blueprint:end` without its `# blueprint:begin`")]
    Unopened {
        /// 1-based.
        line: usize,
    },
}

/// The text without any block of ours.
pub(crate) fn without(text: &str) -> Result<String, MarkerError> {
    let mut kept = String::with_capacity(text.len());
    let mut open = None;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let content = line.trim();
        if content.starts_with(BEGIN) {
            if let Some(line) = open {
                return Err(MarkerError::Unclosed { line });
            }
            open = Some(index + 1);
        } else if content == END {
            if open.take().is_none() {
                return Err(MarkerError::Unopened { line: index + 1 });
            }
        } else if open.is_none() {
            kept.push_str(line);
        }
    }
    open.map_or(Ok(kept), |line| Err(MarkerError::Unclosed { line }))
}

/// Our lines alone, markers and indents left out.
pub(crate) fn only(text: &str) -> String {
    let mut inside = false;
    let mut lines = Vec::new();
    for line in text.lines().map(str::trim) {
        if line == END {
            inside = false;
        } else if line.starts_with(BEGIN) {
            inside = true;
        } else if inside {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// A block of these lines, each with `indent`; `why` follows the begin marker.
pub(crate) fn block<'a>(
    indent: &str,
    why: &str,
    lines: impl IntoIterator<Item = &'a str>,
) -> String {
    let mut block = format!(
        "{indent}{BEGIN}{}{why}\n",
        if why.is_empty() { "" } else { " " }
    );
    for line in lines {
        block.push_str(indent);
        block.push_str(line);
        block.push('\n');
    }
    block.push_str(indent);
    block.push_str(END);
    block.push('\n');
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_goes_without_a_trace() {
        let text = format!("one\n{}two", block("  ", "(why)", ["a", "b"]));
        assert_eq!(
            text,
            "one\n  # blueprint:begin (why)\n  a\n  b\n  # blueprint:end\ntwo"
        );
        assert_eq!(without(&text).as_deref(), Ok("one\ntwo"));
        assert_eq!(only(&text), "a\nb");
    }

    #[test]
    fn markers_that_do_not_pair_up_are_refused_with_their_line() {
        assert_eq!(
            without("a\n# blueprint:begin\nb\n"),
            Err(MarkerError::Unclosed { line: 2 })
        );
        assert_eq!(
            without("# blueprint:begin\n# blueprint:begin\n# blueprint:end\n"),
            Err(MarkerError::Unclosed { line: 1 })
        );
        assert_eq!(
            without("a\n# blueprint:end\n"),
            Err(MarkerError::Unopened { line: 2 })
        );
    }
}
