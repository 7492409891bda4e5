//! Which container engine's socket to talk to.

use std::path::{Path, PathBuf};

use bollard::{ClientVersion, Docker};

use crate::error::Error;

/// What a user without an engine can do.
pub(crate) const HINT: &str = "start Docker or Podman (with its socket), or name the socket: DOCKER_HOST=unix:///path/to/docker.sock";

/// Seconds that one request may take until its answer begins.
const REQUEST_SECONDS: u64 = 60;

/// API versions to try: Docker 29 refuses those before 1.44 (its minimum), Docker 20.10 to 24 and Podman those after 1.41.
const API_VERSIONS: [ClientVersion; 2] = [
    ClientVersion {
        major_version: 1,
        minor_version: 44,
    },
    ClientVersion {
        major_version: 1,
        minor_version: 41,
    },
];

/// The sockets to try, in order.
#[derive(Debug, PartialEq, Eq)]
enum Sockets {
    /// `DOCKER_HOST` names it: no other will do.
    Named(PathBuf),
    /// The usual ones.
    Usual(Vec<PathBuf>),
    /// `DOCKER_HOST` names something that is not a local socket.
    Unsupported(String),
}

fn sockets(docker_host: Option<&str>, runtime_dir: Option<&str>) -> Sockets {
    if let Some(host) = docker_host.map(str::trim).filter(|host| !host.is_empty()) {
        return match host.strip_prefix("unix://") {
            Some(path) => Sockets::Named(path.into()),
            None if host.starts_with('/') => Sockets::Named(host.into()),
            None => Sockets::Unsupported(host.to_owned()),
        };
    }
    let own = |path: &str| {
        runtime_dir
            .filter(|dir| !dir.is_empty())
            .map(|dir| Path::new(dir).join(path))
    };
    let usual = [
        Some("/var/run/docker.sock".into()),
        own("docker.sock"),
        own("podman/podman.sock"),
        Some("/run/podman/podman.sock".into()),
    ];
    Sockets::Usual(usual.into_iter().flatten().collect())
}

/// Connects to the first socket that answers.
pub(crate) async fn connect() -> Result<Docker, Error> {
    let docker_host = std::env::var("DOCKER_HOST").ok();
    let runtime_dir = std::env::var("XDG_RUNTIME_DIR").ok();
    let candidates = match sockets(docker_host.as_deref(), runtime_dir.as_deref()) {
        Sockets::Named(path) => vec![path],
        Sockets::Usual(paths) => paths,
        Sockets::Unsupported(host) => {
            let found = format!(
                "DOCKER_HOST is {host}; expected a local socket: unix:///path/to/docker.sock (tcp:// and ssh:// are not supported)"
            );
            return Err(Error::NoEngine {
                socket: host,
                source: Some(found.into()),
            });
        }
    };
    let names = candidates
        .iter()
        .map(|path| path.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let mut fault = None;
    for path in candidates.iter().filter(|path| path.exists()) {
        match answer(path).await {
            Ok(docker) => return Ok(docker),
            // The first that is there and does not answer is the one to complain about.
            Err(error) => {
                fault = fault.or_else(|| {
                    Some(Error::NoEngine {
                        socket: path.display().to_string(),
                        source: Some(Box::new(error)),
                    })
                });
            }
        }
    }
    Err(fault.unwrap_or(Error::NoEngine {
        socket: names,
        source: Some("no such socket".into()),
    }))
}

async fn answer(path: &Path) -> Result<Docker, bollard::errors::Error> {
    let path = path.display().to_string();
    let mut fault = None;
    for version in &API_VERSIONS {
        let docker = Docker::connect_with_unix(&path, REQUEST_SECONDS, version)?;
        match docker.ping().await {
            Ok(_) => return Ok(docker),
            Err(
                error @ bollard::errors::Error::DockerResponseServerError {
                    status_code: 400, ..
                },
            ) => fault = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(fault.unwrap_or(bollard::errors::Error::APIVersionParseError {}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_host_names_the_only_socket() {
        assert_eq!(
            sockets(Some("unix:///run/lab/docker.sock"), None),
            Sockets::Named("/run/lab/docker.sock".into())
        );
        assert_eq!(
            sockets(Some("/run/lab/docker.sock"), None),
            Sockets::Named("/run/lab/docker.sock".into())
        );
        assert_eq!(
            sockets(Some("tcp://127.0.0.1:2375"), None),
            Sockets::Unsupported("tcp://127.0.0.1:2375".to_owned())
        );
    }

    #[test]
    fn rootless_and_podman_sockets_are_tried_too() {
        let Sockets::Usual(paths) = sockets(Some(""), Some("/run/user/1000")) else {
            panic!("the usual sockets were expected")
        };
        let paths = paths
            .iter()
            .map(|path| path.display().to_string())
            .collect::<Vec<_>>();
        assert_eq!(
            paths,
            [
                "/var/run/docker.sock",
                "/run/user/1000/docker.sock",
                "/run/user/1000/podman/podman.sock",
                "/run/podman/podman.sock"
            ]
        );
    }
}
