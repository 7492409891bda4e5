//! Installer: persistent_secrets.
