//! `blueprint secrets export FILE`: the installation's private files as one encrypted archive.

use std::path::PathBuf;

use blueprint_phase2::carry;
use blueprint_safekeeping::archive::{self, Lock};
use blueprint_safekeeping::private_file;

use super::passphrase;
use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::setup;
use crate::words::count;

/// Write all private files into one age-encrypted archive, to carry the installation to another machine
///
/// It holds infra/secrets, infra/tls and blueprint.yaml; the data itself (infra/storage) is copied by other means. The archive is encrypted with a
/// passphrase, asked for on the terminal unless a file holds it, or for age recipients. `age --decrypt FILE | tar -x` reads it without blueprint.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The archive; an existing file is not overwritten
    file: PathBuf,
    /// A file that holds the passphrase
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Encrypt for this age public key (age1…) instead; can be given several times
    #[arg(long, value_name = "KEY", conflicts_with = "passphrase_file")]
    recipient: Vec<String>,
}

pub(super) fn run(args: &Args, app: &App) -> Result<ExitCode, Problem> {
    let pins = setup::pins(&app.workspace, None)?;
    let _lock = app.lock("blueprint secrets export")?;
    if args.file.symlink_metadata().is_ok() {
        return Err(
            Problem::usage(format!("{} exists already", args.file.display()))
                .expected("a new file")
                .hint("choose another name, or remove the file first"),
        );
    }
    let archive = carry::collect(&app.workspace, &pins.settings)?;
    let lock = if args.recipient.is_empty() {
        Lock::Passphrase(passphrase::choose(args.passphrase_file.as_deref())?)
    } else {
        Lock::Recipients(args.recipient.clone())
    };
    let sealed = archive::seal(&archive.to_tar()?, &lock)?;
    private_file::write(&args.file, &sealed)?;
    app.printer.say(&format!(
        "wrote {} ({}, {})",
        args.file.display(),
        count(archive.files.len(), "file"),
        carry::describe(&archive)
    ));
    app.printer
        .say("the data itself is in infra/storage and not in the archive");
    Ok(ExitCode::Done)
}
