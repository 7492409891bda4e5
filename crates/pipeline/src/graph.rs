//! A checked table: every need known, no id twice, no cycle.

use crate::table::Table;

/// What is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A need that no task has as its id.
    #[error("task `{task}` needs `{need}`, which is not in the table")]
    UnknownNeed {
        /// Who needs it.
        task: String,
        /// What is missing.
        need: String,
        /// Nearest known id.
        nearest: Option<String>,
    },
    /// Two tasks with one id.
    #[error("two tasks are called `{0}`")]
    Duplicate(String),
    /// The tasks of one cycle, in order; the last needs the first.
    #[error("tasks need each other in a circle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    /// A task of a step that the table does not list.
    #[error("task `{task}` belongs to step {step}, which is not in the table")]
    UnknownStep {
        /// The task.
        task: String,
        /// The number.
        step: u8,
    },
}

/// The checked graph.
#[derive(Debug, Clone)]
pub struct Graph {
    table: Table,
}

impl Graph {
    /// Checks `table`.
    pub fn new(table: Table) -> Result<Self, GraphError> {
        todo!()
    }

    /// The table it was made of.
    pub fn table(&self) -> &Table {
        &self.table
    }
}
