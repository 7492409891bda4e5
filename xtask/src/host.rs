//! What the lab has to know about this machine.

use std::path::Path;

/// `v2` where the unified hierarchy is mounted, else `v1`.
pub(crate) fn cgroup_version() -> &'static str {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        "v2"
    } else {
        "v1"
    }
}

/// Whether pods' cgroups are made by systemd. On cgroup v1 without systemd on the host only cgroupfs works.
pub(crate) fn systemd_cgroup() -> bool {
    cgroup_version() == "v2"
}
