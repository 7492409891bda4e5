//! Edits a Corefile: our rewrite between markers, every other byte as it was.

use crate::marked_block::{self, MarkerError};

/// A Corefile that will not be edited.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CorefileError {
    /// Markers.
    #[error(transparent)]
    Markers(#[from] MarkerError),
    /// No server block for the root zone.
    #[error("it has no server block `.:53 {{`")]
    NoRootBlock,
    /// A block that is never closed.
    #[error("line {line}: this block is never closed")]
    Unbalanced {
        /// 1-based.
        line: usize,
    },
    /// `NodeLocal`'s file without a block for the cluster's zone.
    #[error("it has no server block for {zone}")]
    NoClusterBlock {
        /// For example `cluster.local`.
        zone: String,
    },
}

/// Without anything of ours: the bytes from before the first edit.
pub(super) fn without_stanza(corefile: &str) -> Result<String, CorefileError> {
    Ok(marked_block::without(corefile)?)
}

/// With the rewrite of `<anything>.domain` to the Gateway's Service, as the first plugin of the root block (the order in the file means nothing to CoreDNS). A stanza
/// of ours that is there is replaced.
pub(super) fn with_stanza(
    corefile: &str,
    domain: &str,
    service: &str,
) -> Result<String, CorefileError> {
    let clean = without_stanza(corefile)?;
    let root = blocks(&clean)?
        .into_iter()
        .find(|block| is_root(&block.keys))
        .ok_or(CorefileError::NoRootBlock)?;
    let zone = cluster_zone(root.body(&clean))
        .unwrap_or("cluster.local")
        .to_owned();
    let rule = format!(
        "    name regex ^(.*)\\.{}\\.?$ {service}.svc.{zone} answer auto",
        regex_escaped(domain)
    );
    let stanza = marked_block::block("    ", "", ["rewrite stop {", &rule, "}"]);
    Ok(insert(&clean, root.body_start, &stanza))
}

/// `NodeLocal DNSCache`: its root block asks the node's upstream, which knows no Service names, so a rewrite there would lead nowhere. Instead the domain gets a server block
/// of its own that does what the cluster zone's block does (same listen addresses, forward to CoreDNS, which rewrites), without its `health` (one per address).
pub(super) fn with_forward_block(corefile: &str, domain: &str) -> Result<String, CorefileError> {
    let clean = without_stanza(corefile)?;
    let found = blocks(&clean)?;
    let cluster = found
        .iter()
        .find(|block| {
            block
                .keys
                .iter()
                .any(|key| key.starts_with("cluster.local"))
        })
        .ok_or_else(|| CorefileError::NoClusterBlock {
            zone: "cluster.local".to_owned(),
        })?;
    let header = format!("{domain}:53 {{");
    let body = cluster
        .body(&clean)
        .lines()
        .filter(|line| !line.trim_start().starts_with("health"));
    let lines: Vec<&str> = std::iter::once(header.as_str())
        .chain(body)
        .chain(std::iter::once("}"))
        .collect();
    // At the start, so that a last line without a line end stays as it is.
    Ok(insert(&clean, 0, &marked_block::block("", "", lines)))
}

fn insert(text: &str, at: usize, what: &str) -> String {
    let (before, after) = text.split_at(at);
    format!("{before}{what}{after}")
}

fn regex_escaped(domain: &str) -> String {
    domain.replace('.', "\\.")
}

/// A server block: where its body lies in the text.
struct Block {
    keys: Vec<String>,
    body_start: usize,
    body_end: usize,
}

impl Block {
    fn body<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.body_start..self.body_end).unwrap_or_default()
    }
}

/// The server blocks. In a Corefile a brace opens a block when it is the last token of a line and closes one when it is alone (coredns.io/manual/configuration).
fn blocks(text: &str) -> Result<Vec<Block>, CorefileError> {
    let mut found = Vec::new();
    let mut stack: Vec<usize> = Vec::new();
    let mut keys: Vec<String> = Vec::new();
    let mut offset = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let start = offset;
        offset += line.len();
        let mut tokens: Vec<&str> = line
            .split_whitespace()
            .take_while(|token| !token.starts_with('#'))
            .collect();
        match tokens.as_slice() {
            [] => {}
            ["}"] => {
                if stack.pop().is_none() {
                    return Err(CorefileError::Unbalanced { line: index + 1 });
                }
                if stack.is_empty()
                    && let Some(block) = found.last_mut()
                {
                    let block: &mut Block = block;
                    block.body_end = start;
                }
            }
            [.., "{"] => {
                if stack.is_empty() {
                    tokens.pop();
                    keys.extend(
                        tokens
                            .iter()
                            .flat_map(|token| token.split(','))
                            .filter(|key| !key.is_empty())
                            .map(str::to_owned),
                    );
                    found.push(Block {
                        keys: std::mem::take(&mut keys),
                        body_start: offset,
                        body_end: offset,
                    });
                }
                stack.push(index + 1);
            }
            // Keys may stand on lines of their own before the brace.
            _ if stack.is_empty() => keys.extend(
                tokens
                    .iter()
                    .flat_map(|token| token.split(','))
                    .filter(|key| !key.is_empty())
                    .map(str::to_owned),
            ),
            _ => {}
        }
    }
    match stack.first() {
        Some(line) => Err(CorefileError::Unbalanced { line: *line }),
        None => Ok(found),
    }
}

fn is_root(keys: &[String]) -> bool {
    keys.iter()
        .any(|key| matches!(key.strip_prefix("dns://").unwrap_or(key), ".:53" | "."))
}

/// The first zone of the `kubernetes` plugin: the cluster's domain.
fn cluster_zone(body: &str) -> Option<&str> {
    body.lines().find_map(|line| {
        let mut tokens = line.split_whitespace();
        (tokens.next() == Some("kubernetes"))
            .then(|| tokens.next())
            .flatten()
            .filter(|zone| *zone != "{")
            .map(|zone| zone.trim_end_matches('.'))
    })
}

#[cfg(test)]
#[path = "corefile_tests.rs"]
mod tests;
