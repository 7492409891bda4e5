//! The workspace: writable, private where it must be, and the environment around it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::Check;
use crate::context::Context;

const WRITABLE: &str = "workspace is writable";
/// The one check here that `doctor --fix` mends.
pub(crate) const PRIVATE: &str = "secrets are private";
const PROXY: &str = "proxy variables";

pub(super) fn checks(context: &Context) -> Vec<Check> {
    let workspace = &context.workspace;
    let mut all = vec![writable(workspace.root())];
    all.push(private(&[workspace.secrets(), workspace.wildcard()]));
    all.extend(proxy(|name| std::env::var(name).ok()));
    all
}

/// A temporary file that is made and gone again: the only way to know (a read-only mount and a full disk keep the mode bits of a writable folder).
fn writable(root: &Path) -> Check {
    let probe = tempfile::Builder::new()
        .prefix(".blueprint-probe")
        .tempfile_in(root)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"probe"));
    match probe {
        Ok(()) => Check::passed(WRITABLE, root.display().to_string()),
        Err(error) => Check::short(
            WRITABLE,
            format!("to write files in {}", root.display()),
            error.to_string(),
            "passwords and certificates are kept there before they are used: free space or change the folder's owner, then run again",
        ),
    }
}

/// Anything that others may read. Nothing is mended here: a file that was open to others may have been read, and people should know.
fn private(folders: &[PathBuf]) -> Check {
    let mut open = Vec::new();
    for folder in folders {
        collect_open(folder, &mut open);
    }
    if open.is_empty() {
        return Check::passed(PRIVATE, "no file is readable by others");
    }
    let first = open
        .iter()
        .take(3)
        .map(|(path, mode)| format!("{} has mode {mode:04o}", path.display()))
        .collect::<Vec<_>>();
    let more = open.len().saturating_sub(3);
    let folders = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect::<Vec<_>>()
        .join(" ");
    Check::short(
        PRIVATE,
        "files with mode 0600 and folders with mode 0700",
        format!(
            "{}{}",
            first.join(", "),
            if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            }
        ),
        format!(
            "`chmod -R go-rwx {folders}`; if other people use this machine, treat what was readable as known to them"
        ),
    )
}

fn collect_open(path: &Path, open: &mut Vec<(PathBuf, u32)>) {
    let Ok(meta) = path.symlink_metadata() else {
        return;
    };
    let mode = meta.permissions().mode() & 0o7777;
    if !meta.is_symlink() && mode & 0o077 != 0 {
        open.push((path.to_owned(), mode));
    }
    if meta.is_dir()
        && let Ok(entries) = std::fs::read_dir(path)
    {
        for entry in entries.flatten() {
            collect_open(&entry.path(), open);
        }
    }
}

/// A proxy without exceptions: our own calls do not use it for the cluster, but helm would.
fn proxy(variable: impl Fn(&str) -> Option<String>) -> Option<Check> {
    let set = |name: &str| {
        variable(name)
            .or_else(|| variable(&name.to_lowercase()))
            .filter(|value| !value.is_empty())
    };
    let proxies: Vec<&str> = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"]
        .into_iter()
        .filter(|name| set(name).is_some())
        .collect();
    if proxies.is_empty() {
        return None;
    }
    let exceptions = set("NO_PROXY").unwrap_or_default();
    let local = exceptions.split(',').any(|entry| {
        matches!(
            entry.trim(),
            "127.0.0.1" | "127.0.0.0/8" | "localhost" | "*"
        )
    });
    if local {
        return None;
    }
    Some(Check::noted(
        PROXY,
        format!(
            "{} is set and NO_PROXY does not name 127.0.0.1: helm may not reach the cluster; `export NO_PROXY=127.0.0.1,localhost,.svc`",
            proxies.join(" and ")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_others_can_read_is_named_with_its_mode() {
        let folder = tempfile::tempdir().expect("folder");
        let secrets = folder.path().join("secrets");
        std::fs::create_dir(&secrets).expect("made");
        std::fs::set_permissions(&secrets, std::fs::Permissions::from_mode(0o700)).expect("mode");
        let file = secrets.join("redis-password.txt");
        std::fs::write(&file, "x").expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("mode");
        let Check::Short(short) = private(std::slice::from_ref(&secrets)) else {
            panic!("must be found")
        };
        assert!(
            short.found.contains("redis-password.txt has mode 0644"),
            "{}",
            short.found
        );
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("mode");
        assert!(matches!(
            private(&[secrets, folder.path().join("absent")]),
            Check::Passed { .. }
        ));
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_a_shortfall_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("folder");
        assert!(matches!(writable(folder.path()), Check::Passed { .. }));
        assert_eq!(std::fs::read_dir(folder.path()).expect("listed").count(), 0);
        assert!(matches!(
            writable(&folder.path().join("absent")),
            Check::Short(_)
        ));
    }

    #[test]
    fn a_proxy_without_exceptions_for_the_cluster_is_noted() {
        let only = |name: &str| (name == "https_proxy").then(|| "http://proxy:3128".to_owned());
        assert!(matches!(proxy(only), Some(Check::Noted { .. })));
        let both = |name: &str| match name {
            "HTTPS_PROXY" => Some("http://proxy:3128".to_owned()),
            "NO_PROXY" => Some("example.org, 127.0.0.1".to_owned()),
            _ => None,
        };
        assert_eq!(proxy(both), None);
        assert_eq!(proxy(|_| None), None);
    }
}
