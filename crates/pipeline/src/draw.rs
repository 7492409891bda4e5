//! The graph as text, as Graphviz dot and as SVG.

use crate::graph::Graph;

/// A text table: step, task, needs.
pub fn text(graph: &Graph) -> String {
    todo!()
}

/// Graphviz source.
pub fn dot(graph: &Graph) -> String {
    todo!()
}

/// A self-contained SVG with its own layout (layers by longest path), no external program needed.
pub fn svg(graph: &Graph) -> String {
    todo!()
}
