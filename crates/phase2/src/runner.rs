//! Installer: runner.
