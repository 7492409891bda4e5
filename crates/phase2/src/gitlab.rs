//! Installer: gitlab.
