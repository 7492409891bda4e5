//! The declarative table: 13 steps people see, tasks the machine schedules.

/// A numbered stage that people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// 1-based.
    pub number: u8,
    /// For example `Install CloudNativePG + Cluster + roles and databases`.
    pub title: &'static str,
}

/// One schedulable piece of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Unique, for example `cnpg-cluster`.
    pub id: &'static str,
    /// The number of the step it belongs to.
    pub step: u8,
    /// What it does, in a few words.
    pub title: &'static str,
    /// Ids of the tasks that must have succeeded before.
    pub needs: &'static [&'static str],
}

/// All steps and tasks, in the strict order of `--sequential`.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// In order of their numbers.
    pub steps: &'static [Step],
    /// In the order a strictly sequential run takes them.
    pub tasks: &'static [Task],
}

/// What a user asked to run: `--only`, `--from`, `--until`, `--skip`; ids of tasks or numbers of steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Just these (no needs are added).
    pub only: Vec<String>,
    /// From this step or task on (in table order).
    pub from: Option<String>,
    /// Up to and with this one.
    pub until: Option<String>,
    /// Without these.
    pub skip: Vec<String>,
}

/// A selection that names something that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No such task or step.
    #[error("unknown task or step `{given}` in {flag}")]
    Unknown {
        /// The flag it was given to.
        flag: &'static str,
        /// What was given.
        given: String,
        /// Nearest known id.
        nearest: Option<&'static str>,
    },
    /// Nothing is left to run.
    #[error("the selection leaves no task to run")]
    Empty,
}

impl SelectionError {
    /// "did you mean …" or the list of ids.
    pub fn hint(&self, table: &Table) -> String {
        todo!()
    }
}

impl Selection {
    /// The ids to run, in table order.
    pub fn resolve(&self, table: &Table) -> Result<Vec<&'static str>, SelectionError> {
        todo!()
    }
}
