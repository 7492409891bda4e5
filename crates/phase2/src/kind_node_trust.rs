//! Installer: kind_node_trust.
