//! What every command gets: the printer, the workspace, the signals.

use std::os::unix::fs::DirBuilderExt as _;

use blueprint_phase2::{Workspace, carry};
use blueprint_safekeeping::RunLock;

use crate::cli::GlobalArgs;
use crate::interrupt::Interrupts;
use crate::printer::Printer;
use crate::problem::Problem;

/// Names a pins file, as `--versions` does.
const VERSIONS_VARIABLE: &str = "BLUEPRINT_VERSIONS";

/// One call of the program.
pub(crate) struct App {
    pub(crate) printer: Printer,
    pub(crate) workspace: Workspace,
    pub(crate) interrupts: Interrupts,
}

impl App {
    /// The workspace is the one given, else the nearest folder upwards with a VERSIONS.json, else the current folder (with the built-in files). Paths are taken from the
    /// current folder.
    pub(crate) fn new(global: &GlobalArgs, printer: Printer, interrupts: Interrupts) -> Self {
        let here = std::env::current_dir().unwrap_or_default();
        let workspace = match &global.workspace {
            Some(folder) => Workspace::at(here.join(folder)),
            None => Workspace::find(&here).unwrap_or_else(|| Workspace::at(&here)),
        };
        let versions = global.versions.clone().or_else(|| {
            std::env::var_os(VERSIONS_VARIABLE)
                .filter(|file| !file.is_empty())
                .map(Into::into)
        });
        let workspace = workspace.with_versions(versions.map(|file| here.join(file)));
        Self {
            printer,
            workspace,
            interrupts,
        }
    }

    /// For a command that changes something: no other run in this workspace until the guard is dropped. `command` is what the other one is told.
    pub(crate) fn lock(&self, command: &str) -> Result<RunLock, Problem> {
        let lock = self.lock_for_import(command)?;
        carry::refuse_unfinished(&self.workspace)?;
        Ok(lock)
    }

    /// The same for the import itself, which may have been cut off before.
    pub(crate) fn lock_for_import(&self, command: &str) -> Result<RunLock, Problem> {
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
