//! `values validate`: references against their schemas, and what rendered charts name and nobody makes.

use crate::context::Context;
use crate::error::Error;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Validation {
    /// What was checked, a line each.
    pub checked: Vec<String>,
    /// What is wrong, a line each.
    pub problems: Vec<String>,
}
