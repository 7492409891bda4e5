//! Which container engine's socket to talk to.

/// What a user without an engine can do.
pub(crate) const HINT: &str = "start Docker or Podman (with its socket), or name the socket: DOCKER_HOST=unix:///path/to/docker.sock";
