//! Installer: minio.
