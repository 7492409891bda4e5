//! Whether a value works, asked of the service itself. A refusal must be one in the service's own words: something that is merely broken is an error.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::super::Scene;
use super::super::observer::TOOLBOX;
use crate::error::{Error, FileContext as _, Result};

/// The password comes by stdin, so that it stands on no argument list.
const PSQL: &str = r#"read -r PGPASSWORD; export PGPASSWORD; exec psql --no-psqlrc --tuples-only --no-align --host 127.0.0.1 --username "$0" --dbname postgres --command 'select 1'"#;
const UNSEAL: &str =
    "export BAO_ADDR=http://127.0.0.1:8200; exec bao write -format=json sys/unseal key=-";
const GATEWAY: &str = "gitlab.local.example.net";

/// One way to try.
#[derive(Debug, Clone, Copy)]
pub(super) enum Trial {
    /// A login of this PostgreSQL role.
    Role(&'static str),
    /// AUTH.
    Redis,
    /// A signed request.
    Minio,
    /// A restart, and three keys.
    UnsealKeys,
    /// A TLS handshake.
    Certificate,
}

impl Trial {
    /// The value in the private file.
    pub(super) fn value(self, scene: &Scene) -> Result<String> {
        let read = |name: &str| {
            let path = scene.lab.checkout().join(name);
            fs::read_to_string(&path).file("read", &path)
        };
        match self {
            Self::Role(role) => {
                let text = read(super::ROLES)?;
                let passwords: Value = serde_json::from_str(&text)
                    .map_err(|error| Error::content(super::ROLES, error))?;
                Ok(passwords[role].as_str().unwrap_or_default().to_owned())
            }
            Self::Redis => Ok(read("infra/secrets/redis-password.txt")?.trim().to_owned()),
            Self::Minio => Ok(read("infra/secrets/minio-root-password.txt")?
                .trim()
                .to_owned()),
            Self::UnsealKeys => read("infra/secrets/openbao-init.json"),
            Self::Certificate => Ok(first_certificate(&read("infra/tls/wildcard/cert.pem")?)),
        }
    }

    pub(super) fn works(self, scene: &Scene, value: &str) -> Result<bool> {
        match self {
            Self::Role(role) => role_login(scene, role, value),
            Self::Redis => redis(scene, value),
            Self::Minio => minio(scene, value),
            Self::UnsealKeys => unseal(scene, value),
            Self::Certificate => certificate(scene).map(|served| served == value),
        }
    }
}

/// Exit code zero and what was said, whatever the code.
fn tried(
    scene: &Scene,
    namespace: &str,
    pod: &str,
    stdin: &str,
    command: &[&str],
) -> Result<(bool, String)> {
    let (code, out, err) = scene
        .kubectl([
            "exec",
            "--quiet",
            "--stdin",
            "--namespace",
            namespace,
            pod,
            "--",
        ])
        .args(command)
        .input(stdin)
        .captured()?;
    Ok((code == Some(0), format!("{out}{err}")))
}

fn verdict(what: &str, worked: bool, said: &str, refusal: &str) -> Result<bool> {
    match worked {
        true => Ok(true),
        false if said.contains(refusal) => Ok(false),
        false => Err(Error::content(what, said.trim().to_owned())),
    }
}

fn role_login(scene: &Scene, role: &str, password: &str) -> Result<bool> {
    let stdin = format!("{password}\n");
    let command = ["sh", "-c", PSQL, role];
    let (worked, said) = tried(scene, "postgresql", "postgresql-cnpg-1", &stdin, &command)?;
    verdict("psql", worked, &said, "password authentication failed")
}

fn redis(scene: &Scene, password: &str) -> Result<bool> {
    let stdin = format!("AUTH {password}\nPING\n");
    let (_, said) = tried(scene, "redis", "redis-master-0", &stdin, &["redis-cli"])?;
    let worked = said.lines().any(|line| line.trim() == "PONG");
    verdict("redis-cli", worked, &said, "WRONGPASS")
}

fn minio(scene: &Scene, password: &str) -> Result<bool> {
    let path = scene
        .lab
        .checkout()
        .join("infra/secrets/minio-root-user.txt");
    let user = fs::read_to_string(&path).file("read", &path)?;
    let config = format!(
        "url = \"http://minio.minio.svc:9000/\"\naws-sigv4 = \"aws:amz:us-east-1:s3\"\nuser = \"{}:{password}\"\n\
         silent\nshow-error\noutput = \"/dev/null\"\nwrite-out = \"%{{http_code}}\"\n",
        user.trim()
    );
    let command = ["curl", "--config", "-"];
    let (_, said) = tried(scene, "gitlab", TOOLBOX, &config, &command)?;
    verdict("curl", said.trim() == "200", &said, "403")
}

/// A new pod is sealed; three keys of the file open it, or do not.
fn unseal(scene: &Scene, init_file: &str) -> Result<bool> {
    let init: Value = serde_json::from_str(init_file)
        .map_err(|error| Error::content("openbao-init.json", error))?;
    let threshold = init["unseal_threshold"].as_u64().unwrap_or(3);
    scene
        .kubectl(["delete", "pod", "openbao-0", "--namespace", "openbao"])
        .output()?;
    for number in 0..threshold {
        let number = usize::try_from(number).unwrap_or_default();
        let key = init["unseal_keys_b64"][number].as_str().unwrap_or_default();
        let (worked, said) = give(scene, key)?;
        if !verdict("bao", worked, &said, "message authentication failed")? {
            return Ok(false);
        }
        if number + 1 == usize::try_from(threshold).unwrap_or_default() {
            return Ok(said.contains("\"sealed\": false"));
        }
    }
    Ok(false)
}

/// One key, as soon as the server answers.
fn give(scene: &Scene, key: &str) -> Result<(bool, String)> {
    let begun = Instant::now();
    loop {
        let (worked, said) = tried(scene, "openbao", "openbao-0", key, &["sh", "-c", UNSEAL])?;
        let answered = worked || said.contains("Code: 400");
        if answered || begun.elapsed() > Duration::from_mins(2) {
            return Ok((worked, said));
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// What the Gateway shows to a new connection.
fn certificate(scene: &Scene) -> Result<String> {
    let shown = scene
        .platform
        .command("openssl")
        .args([
            "s_client",
            "-connect",
            "127.0.0.1:443",
            "-servername",
            GATEWAY,
        ])
        .input("")
        .output()?;
    Ok(first_certificate(&shown))
}

fn first_certificate(text: &str) -> String {
    let begin = "-----BEGIN CERTIFICATE-----";
    let body = text.split_once(begin).map_or("", |(_, rest)| rest);
    let body = body.split_once("-----END").map_or("", |(body, _)| body);
    body.split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_certificate_of_a_chain_is_compared_without_its_line_ends() {
        let pem = "x\n-----BEGIN CERTIFICATE-----\nAB\r\nCD\n-----END CERTIFICATE-----\n-----BEGIN CERTIFICATE-----\nEF\n-----END CERTIFICATE-----\n";
        assert_eq!(first_certificate(pem), "ABCD");
        assert_eq!(first_certificate("nothing"), "");
    }

    #[test]
    fn something_broken_is_no_refusal() {
        assert!(verdict("x", true, "", "refused").unwrap());
        assert!(!verdict("x", false, "it was refused", "refused").unwrap());
        verdict("x", false, "no route to host", "refused").unwrap_err();
    }
}
