//! Installer: redis.
