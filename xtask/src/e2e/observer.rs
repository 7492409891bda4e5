//! How the checks look at the cluster: kubectl and what runs inside pods.

use serde_json::Value;

use super::Scene;
use crate::error::{Error, Result};
use crate::process::Process;

/// A pod of GitLab's that has a shell and curl.
pub(super) const TOOLBOX: &str = "deployment/gitlab-toolbox";

impl Scene<'_> {
    pub(super) fn kubectl<const N: usize>(&self, args: [&str; N]) -> Process {
        self.platform.command("kubectl").args(args)
    }

    pub(super) fn objects(&self, args: &[&str]) -> Result<Value> {
        let text = self
            .kubectl(["get", "--output", "json"])
            .args(args)
            .output()?;
        serde_json::from_str(&text)
            .map_err(|error| Error::content(format!("kubectl get {}", args.join(" ")), error))
    }

    /// Runs a program in a pod; `stdin` reaches it, so that no secret stands on a command line.
    pub(super) fn in_pod(
        &self,
        namespace: &str,
        pod: &str,
        stdin: &str,
        command: &[&str],
    ) -> Result<String> {
        let exec = self
            .kubectl(["exec", "--stdin", "--namespace", namespace, pod, "--"])
            .args(command)
            .input(stdin);
        match exec.output() {
            // runc lost its own first process: nothing of the command has run.
            Err(error) if error.to_string().contains("read init-p") => exec.output(),
            told => told,
        }
    }

    /// One answer of PostgreSQL, asked in its own pod.
    pub(super) fn sql(&self, database: &str, query: &str) -> Result<String> {
        self.in_pod(
            "postgresql",
            "postgresql-cnpg-1",
            query,
            &[
                "psql",
                "--no-psqlrc",
                "--tuples-only",
                "--no-align",
                "--username",
                "postgres",
                "--dbname",
                database,
            ],
        )
    }
}

/// The items of a list, or the object itself.
pub(super) fn items(list: &Value) -> Vec<&Value> {
    match list["items"].as_array() {
        Some(items) => items.iter().collect(),
        None => vec![list],
    }
}

/// The status of a condition in `status.conditions`; empty where there is none.
pub(super) fn condition<'a>(object: &'a Value, name: &str) -> &'a str {
    object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == name)
        .and_then(|condition| condition["status"].as_str())
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_is_found_by_its_type() {
        let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(condition(&object, "Ready"), "True");
        assert_eq!(condition(&object, "Programmed"), "");
    }
}
