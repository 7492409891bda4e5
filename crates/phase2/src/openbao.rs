//! Installer: openbao.
