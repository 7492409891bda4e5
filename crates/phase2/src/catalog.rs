//! Every installer, by task id; the pipeline's TaskRunner.

use std::sync::Arc;

use crate::context::Context;
use crate::installer::Installer;

/// All installers.
pub struct Catalog {
    installers: Vec<Arc<dyn Installer>>,
}

/// Runs tasks by their installer.
pub struct Phase2 {
    /// Shared by all tasks.
    pub context: Arc<Context>,
    /// All installers.
    pub catalog: Catalog,
}
