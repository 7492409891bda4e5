//! Installer: stable_storage.
