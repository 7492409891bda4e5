//! A workspace in an empty folder and the program in it.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// An empty folder, an environment without the user's kubeconfig.
pub(crate) struct House {
    folder: TempDir,
}

/// What the program said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) talk: String,
}

impl House {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// A folder after `blueprint init`.
    pub(crate) fn initialised() -> Self {
        let house = Self::new();
        let said = house.run(&["init"]);
        assert_eq!(said.code, 0, "{}", said.talk);
        house
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap()
    }

    /// A kubeconfig whose one context has this name; nothing listens at its server.
    pub(crate) fn kubeconfig(&self, context: &str) {
        self.kubeconfig_for(context, 1);
    }

    /// The same with a server at this local port.
    pub(crate) fn kubeconfig_for(&self, context: &str, port: u16) {
        self.write(
            "kubeconfig",
            &format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: {context}\n\
                 clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}}}]\n\
                 users: [{{name: u, user: {{token: very-secret-token}}}}]\n\
                 contexts: [{{name: {context}, context: {{cluster: c, user: u}}}}]\n"
            ),
        );
    }

    /// The program in this folder, ready to be started.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("blueprint"));
        command
            .args(words)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path())
            .env("PATH", self.path().join("bin"))
            .env("KUBECONFIG", self.path().join("kubeconfig"))
            .env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Said {
        let output = self.command(words).output().unwrap();
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            talk: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
