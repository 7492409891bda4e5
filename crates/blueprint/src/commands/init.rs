//! `blueprint init`: the built-in files into a folder, to be read, changed and kept.

use std::path::{Path, PathBuf};

use blueprint_phase2::references::{Embedded, embedded};

use crate::app::App;
use crate::exit_code::ExitCode;
use crate::printer::Look;
use crate::problem::Problem;
use crate::words::count;

/// Write VERSIONS.json, the kind configuration and the references into a folder
///
/// Files in the folder win over those in the program. An existing file is kept; with --force it is moved aside (NAME.old) and written anew.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder [default: --workspace, else the current folder]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Write also over files that differ; the former ones stay as NAME.old
    #[arg(long)]
    force: bool,
}

/// What became of one file.
enum Written {
    New,
    Same,
    Kept,
    Replaced(PathBuf),
}

pub(crate) fn run(args: &Args, app: &App) -> Result<ExitCode, Problem> {
    let folder = match &args.folder {
        Some(folder) => folder.clone(),
        None => app.workspace.root().to_owned(),
    };
    let mut new = 0;
    let mut kept = 0;
    for file in embedded() {
        let written = write(&folder, file, args.force).map_err(|error| {
            Problem::failed(format!(
                "failed to write {}",
                folder.join(file.path).display()
            ))
            .caused_by(&error)
        })?;
        match written {
            Written::New => {
                new += 1;
                app.printer.detail(&format!("wrote {}", file.path));
            }
            Written::Same => app
                .printer
                .detail(&format!("{} is there already", file.path)),
            Written::Kept => {
                kept += 1;
                app.printer.say(&format!(
                    "kept {}, which differs from the built-in one",
                    file.path
                ));
            }
            Written::Replaced(former) => {
                new += 1;
                app.printer.say(&format!(
                    "replaced {}; the former one is {}",
                    file.path,
                    former.display()
                ));
            }
        }
    }
    let total = embedded().len();
    let done = app.printer.talk_paint().apply(Look::Good, "Done:");
    app.printer.say(&format!(
        "{done} {} written, {} there before, in {}",
        count(new, "file"),
        total - new,
        folder.display()
    ));
    if kept > 0 {
        app.printer
            .say("`blueprint init --force` writes the kept ones anew and moves yours aside.");
    }
    app.printer
        .say("Next: `blueprint cluster create`, then `blueprint up`.");
    Ok(ExitCode::Done)
}

fn write(folder: &Path, file: &Embedded, force: bool) -> std::io::Result<Written> {
    let path = folder.join(file.path);
    let written = match std::fs::read(&path) {
        Ok(there) if there == file.text.as_bytes() => return Ok(Written::Same),
        Ok(_) if !force => return Ok(Written::Kept),
        Ok(_) => {
            let former = free_name(&path);
            std::fs::rename(&path, &former)?;
            Written::Replaced(former)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Written::New,
        Err(error) => return Err(error),
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&path, file.text)?;
    Ok(written)
}

/// `NAME.old`, or the first of `NAME.old.2`, `NAME.old.3`, … that nobody has: what was moved aside before stays too.
fn free_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let numbered = |number: u32| match number {
        1 => path.with_file_name(format!("{name}.old")),
        _ => path.with_file_name(format!("{name}.old.{number}")),
    };
    let mut number = 1;
    while numbered(number).exists() {
        number += 1;
    }
    numbered(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: Embedded = Embedded {
        path: "infra/a.yaml",
        text: "built in",
    };

    #[test]
    fn a_file_of_the_users_is_kept_unless_forced_and_never_lost() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(matches!(
            write(folder.path(), &FILE, false),
            Ok(Written::New)
        ));
        assert!(matches!(
            write(folder.path(), &FILE, true),
            Ok(Written::Same)
        ));
        for (number, name) in ["infra/a.yaml.old", "infra/a.yaml.old.2"]
            .iter()
            .enumerate()
        {
            std::fs::write(folder.path().join(FILE.path), format!("mine {number}")).unwrap();
            assert!(matches!(
                write(folder.path(), &FILE, false),
                Ok(Written::Kept)
            ));
            assert_eq!(read(FILE.path), format!("mine {number}"));
            assert!(matches!(
                write(folder.path(), &FILE, true),
                Ok(Written::Replaced(_))
            ));
            assert_eq!(read(name), format!("mine {number}"));
            assert_eq!(read(FILE.path), "built in");
        }
    }
}
