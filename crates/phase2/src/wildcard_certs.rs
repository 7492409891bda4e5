//! Installer: wildcard_certs.
