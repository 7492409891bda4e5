//! Installer: cloudnative_pg.
