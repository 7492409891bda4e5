//! Installer: coredns_patch.
