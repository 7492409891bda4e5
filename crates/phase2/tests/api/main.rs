//! Installers against a real API server (see `blueprint_cluster::control_plane`): what they apply, leave alone and refuse, and that a second run moves no
//! resourceVersion.

mod down;
mod gateway;
mod local_path;
mod postgresql;
mod releases;
mod support;
mod sweep;
mod volumes;
