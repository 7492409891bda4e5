//! The private files that later steps rely on: one that was cut off or edited stops the run here, before anything is changed.

use std::path::Path;

use blueprint_openbao::InitFile;
use blueprint_safekeeping::private_file;
use blueprint_safekeeping::snapshot::Snapshot;

use super::Check;
use crate::error::Error;
use crate::role_passwords;
use crate::wildcard_certs;
use crate::workspace::Workspace;

const CERTIFICATES: &str = "certificates fit together";
const READABLE: &str = "private files are whole";

pub(super) fn check(workspace: &Workspace) -> Check {
    let texts = [
        workspace.redis_password(),
        workspace.minio_user(),
        workspace.minio_password(),
        workspace.system_identifier(),
        workspace.installation(),
        workspace.openbao_seal_key(),
    ];
    let mut wrong: Vec<(String, String)> = texts.iter().filter_map(|path| empty(path)).collect();
    if let Err(error) = InitFile::read(&workspace.openbao_init()) {
        wrong.push((error.to_string(), error.hint()));
    }
    if let Err(error) = Snapshot::read(&workspace.gitlab_snapshot()) {
        wrong.push((error.to_string(), error.hint()));
    }
    if let Err(found) = role_passwords::check(workspace) {
        wrong.push((
            found,
            "restore the file from a copy, or move it away: the passwords are then taken from the cluster's Secrets".to_owned(),
        ));
    }
    match wrong.first() {
        None => Check::passed(READABLE, "each that exists can be read"),
        Some((_, hint)) => Check::short(
            READABLE,
            "every private file there is to be whole",
            wrong
                .iter()
                .map(|(found, _)| found.as_str())
                .collect::<Vec<_>>()
                .join("; "),
            hint.clone(),
        ),
    }
}

/// Certificates that do not fit together stop the run before step 9 would.
pub(super) fn certificates(workspace: &Workspace, domain: &str) -> Check {
    match wildcard_certs::check(workspace, domain) {
        Ok(()) => Check::passed(CERTIFICATES, "those that exist do"),
        Err(Error::Refused {
            summary,
            expected,
            found,
            hint,
        }) => Check::short(CERTIFICATES, expected, format!("{summary}: {found}"), hint),
        Err(error) => Check::noted(CERTIFICATES, error.to_string()),
    }
}

/// A file without content is what a full disk or a cut-off copy leaves.
fn empty(path: &Path) -> Option<(String, String)> {
    match private_file::read_text(path) {
        Ok(Some(text)) if text.trim().is_empty() => Some((
            format!("{} is empty", path.display()),
            "restore it from a copy, or remove it: the value is then taken from the cluster where it still stands".to_owned(),
        )),
        Ok(_) => None,
        Err(error) => Some((error.to_string(), error.hint())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(file: impl Fn(&Workspace) -> std::path::PathBuf, text: &str) -> Check {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        private_file::write(&file(&workspace), text.as_bytes()).unwrap();
        check(&workspace)
    }

    #[test]
    fn a_cut_off_init_file_was_found_only_in_step_8() {
        let Check::Short(short) =
            judge(Workspace::openbao_init, "{\"unseal_keys_b64\": [\"c2VjcmV0")
        else {
            panic!("pre-flight must stop for it");
        };
        assert!(short.found.contains("openbao-init.json"), "{}", short.found);
        assert!(!short.found.contains("c2VjcmV0"), "{}", short.found);
    }

    #[test]
    fn cut_off_snapshots_and_empty_passwords_stop_the_run() {
        let stops = |check| matches!(check, Check::Short(_));
        assert!(stops(judge(
            Workspace::gitlab_snapshot,
            "apiVersion: v1\nkind: Sec"
        )));
        assert!(stops(judge(Workspace::redis_password, "\n")));
        assert!(stops(judge(
            Workspace::role_passwords,
            "{\"gitlab\": \"s3cr"
        )));
        assert!(stops(judge(Workspace::role_passwords, "[]")));
    }

    #[test]
    fn certificates_that_do_not_fit_together_were_found_only_in_step_9() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        private_file::write(&workspace.wildcard().join("key.pem"), b"a lone key").unwrap();
        let Check::Short(short) = certificates(&workspace, "local.example.net") else {
            panic!("pre-flight must stop for it");
        };
        assert!(short.found.contains("only key.pem"), "{}", short.found);
    }

    #[test]
    fn a_fresh_workspace_has_nothing_to_mend() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            check(&Workspace::at(folder.path())),
            Check::Passed { .. }
        ));
    }
}
