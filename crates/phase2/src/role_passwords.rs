//! `infra/secrets/cnpg-role-passwords.json`, as step 5 wrote it: role name to password. Read here by the components that connect as those roles.

use std::collections::BTreeMap;

use blueprint_safekeeping::private_file;
use secrecy::SecretString;

use crate::error::Error;
use crate::workspace::Workspace;

/// The password of one role.
pub(crate) fn role_password(workspace: &Workspace, role: &str) -> Result<SecretString, Error> {
    let path = workspace.role_passwords();
    let missing = |found: &str| {
        Error::Failed {
        action: format!("read the password of PostgreSQL role `{role}` from {}", path.display()),
        found: found.to_owned(),
        hint: "run `blueprint up --only cnpg-cluster`: it writes the file, from the cluster's Secrets where they exist".to_owned(),
    }
    };
    let bytes = private_file::read(&path)?.ok_or_else(|| missing("no such file"))?;
    parse(&bytes)
        .map_err(|found| missing(&found))?
        .get(role)
        .map(|password| SecretString::from(password.as_str()))
        .ok_or_else(|| missing("the role is not in it"))
}

/// Whether the file, where there is one, is what it should be; the words say what is wrong and quote no value.
pub(crate) fn check(workspace: &Workspace) -> Result<(), String> {
    let path = workspace.role_passwords();
    let Some(bytes) = private_file::read(&path).map_err(|error| error.to_string())? else {
        return Ok(());
    };
    match parse(&bytes) {
        Ok(_) => Ok(()),
        Err(found) => Err(format!("{} is {found}", path.display())),
    }
}

/// serde's message could quote a value, so only the place is told.
pub(crate) fn parse(bytes: &[u8]) -> Result<BTreeMap<String, String>, String> {
    serde_json::from_slice(bytes).map_err(|error| {
        format!(
            "no JSON object of strings (line {}, column {})",
            error.line(),
            error.column()
        )
    })
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn workspace(text: &str) -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace::at(folder.path());
        private_file::write(&workspace.role_passwords(), text.as_bytes()).unwrap();
        (folder, workspace)
    }

    #[test]
    fn a_roles_password_is_read() {
        let (_folder, workspace) = workspace(r#"{"gitlab": "one", "openbao": "two"}"#);
        assert_eq!(
            role_password(&workspace, "openbao")
                .unwrap()
                .expose_secret(),
            "two"
        );
    }

    #[test]
    fn an_edited_file_is_named_without_showing_what_it_holds() {
        let (_folder, workspace) = workspace(r#"{"gitlab": 4711471147}"#);
        let shown = format!("{:?}", role_password(&workspace, "gitlab").unwrap_err());
        assert!(
            shown.contains("cnpg-role-passwords.json") && !shown.contains("4711471147"),
            "{shown}"
        );
    }

    #[test]
    fn an_unknown_role_is_named() {
        let (_folder, workspace) = workspace("{}");
        assert!(
            role_password(&workspace, "openbao")
                .unwrap_err()
                .to_string()
                .contains("`openbao`")
        );
    }
}
