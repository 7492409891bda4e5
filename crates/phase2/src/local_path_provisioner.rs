//! Installer: local_path_provisioner.
