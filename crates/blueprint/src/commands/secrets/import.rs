//! `blueprint secrets import FILE`: an archive into a workspace that has no private files yet.

use std::path::PathBuf;

use blueprint_phase2::carry;
use blueprint_safekeeping::archive::{self, Archive, Key};
use blueprint_safekeeping::private_file;
use secrecy::SecretString;

use super::passphrase;
use crate::app::App;
use crate::exit_code::ExitCode;
use crate::problem::Problem;
use crate::words::count;

/// Write the files of an archive that `secrets export` made into this workspace
///
/// The archive is decrypted and checked whole before the first file is written. A workspace with other private files is refused.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The archive
    file: PathBuf,
    /// A file that holds the passphrase
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// An age identity file with the key of one of the archive's recipients
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    identity: Option<PathBuf>,
}

pub(super) fn run(args: &Args, app: &App) -> Result<ExitCode, Problem> {
    let missing = |file: &PathBuf| Problem::usage(format!("there is no {}", file.display()));
    let sealed = private_file::read(&args.file)?.ok_or_else(|| missing(&args.file))?;
    let _lock = app.lock_for_import("blueprint secrets import")?;
    let key = match &args.identity {
        Some(file) => {
            let text = private_file::read_text(file)?.ok_or_else(|| missing(file))?;
            Key::Identities(SecretString::from(text.as_str()))
        }
        None => Key::Passphrase(passphrase::give(args.passphrase_file.as_deref())?),
    };
    let archive = Archive::parse(&archive::open(&sealed, &key)?)?;
    let new = carry::unpack(&app.workspace, &archive)?;
    app.printer.say(&format!(
        "imported {} ({} new)",
        carry::describe(&archive),
        count(new, "file")
    ));
    app.printer.say(
        "next: copy the old infra/storage here (or name its folder), then `blueprint cluster create` and `blueprint up`",
    );
    Ok(ExitCode::Done)
}
