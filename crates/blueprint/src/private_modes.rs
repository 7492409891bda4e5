//! At the start of every command that works with the workspace's private files: what others may read is mended, and said.

use blueprint_safekeeping::private_file;

use crate::app::App;

/// Files with credentials are for their owner alone, whoever copied them here with whichever mode. One that cannot be mended (another owner, a read-only disk)
/// stops nothing here: pre-flight finds it still open and refuses.
pub(crate) fn mend(app: &App) {
    for folder in app.workspace.private_folders() {
        match private_file::mend_modes(&folder) {
            Ok(mended) => {
                for mended in mended {
                    app.printer.say(&mended.to_string());
                }
            }
            Err(error) => app.printer.warn(&format!("{error}; {}", error.hint())),
        }
    }
}
