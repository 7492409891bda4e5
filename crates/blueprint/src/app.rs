//! What every command gets: the printer, the workspace, the signals.

use std::os::unix::fs::DirBuilderExt as _;

use blueprint_phase2::Workspace;
use blueprint_safekeeping::RunLock;

use crate::cli::GlobalArgs;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::problem::Problem;

/// One call of the program.
pub(crate) struct App {
    pub(crate) printer: Printer,
    pub(crate) workspace: Workspace,
    pub(crate) interrupts: Interrupts,
}

impl App {
    /// The workspace is the one given, else the nearest folder upwards with a VERSIONS.json, else the current folder (with the built-in files).
    pub(crate) fn new(global: &GlobalArgs, printer: Printer, interrupts: Interrupts) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let workspace = match &global.workspace {
            Some(folder) => Workspace::at(here.join(folder)),
            None => Workspace::find(&here).unwrap_or_else(|| Workspace::at(here)),
        };
        Self {
            printer,
            workspace,
            interrupts,
        }
    }

    /// For a command that changes something: no other run in this workspace until the guard is dropped. `command` is what the other one is told.
    pub(crate) fn lock(&self, command: &str) -> Result<RunLock, Problem> {
        let state = self.workspace.state();
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&state)
            .map_err(|error| {
                Problem::failed(format!("failed to make {}", state.display())).caused_by(&error)
            })?;
        Ok(RunLock::acquire(&state.join("run.lock"), command)?)
    }
}
