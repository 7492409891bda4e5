//! Installer: gateway.
