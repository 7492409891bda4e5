//! What every command gets: the printer, the workspace, the signals.

use blueprint_phase2::Workspace;

use crate::cli::GlobalArgs;
use crate::interrupt::Interrupts;
use crate::printer::Printer;

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
}
