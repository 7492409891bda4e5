//! Phase 2: the table of steps, the catalog of installers, one file per installer, the smoke checks and the failure hints.

pub mod catalog;
pub mod cloudnative_pg;
pub mod context;
pub mod coredns_patch;
pub mod credentials;
pub mod error;
pub mod failure_hints;
pub mod gateway;
pub mod gitlab;
pub mod helm_release;
pub mod installer;
pub mod kind_node_trust;
pub mod local_path_provisioner;
pub mod minio;
pub mod names;
pub mod openbao;
pub mod persistent_secrets;
pub mod preflight;
pub mod redis;
pub mod references;
pub mod registry_dns_pin;
pub mod runner;
pub mod settings;
pub mod smoke;
pub mod stable_storage;
pub mod table;
pub mod validate;
pub mod wildcard_certs;
pub mod workspace;

pub use context::Context;
pub use error::Error;
pub use installer::{Installer, State, Work};
pub use settings::Settings;
pub use workspace::Workspace;
