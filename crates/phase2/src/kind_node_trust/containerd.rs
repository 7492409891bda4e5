//! What containerd's configuration says about per-host registry folders.

/// The folder every kind node image uses.
pub(super) const CERTS_D: &str = "/etc/containerd/certs.d";

/// How a node's containerd finds registries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Registry {
    /// `config_path` holds our folder: it is read anew at each pull.
    Ready,
    /// No `config_path`.
    Missing,
    /// `config_path` leads elsewhere.
    Elsewhere(String),
    /// `mirrors` or `configs` tables: with `config_path` beside them containerd refuses to load its CRI plugin.
    Mirrors(String),
}

/// Judges TOML as `containerd config dump` prints it (one table header or key a line). Only the CRI's `registry` table counts: other plugins have a `config_path` too.
pub(super) fn judge(dump: &str) -> Registry {
    let mut table = "";
    let mut path = None;
    for line in dump.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_end_matches(']').trim();
            if let Some((_, below)) = table.split_once(".registry.")
                && (below.starts_with("mirrors.") || below.starts_with("configs."))
            {
                return Registry::Mirrors(format!("[{table}]"));
            }
        } else if is_registry(table)
            && let Some((key, value)) = line.split_once('=')
            && key.trim() == "config_path"
        {
            path = Some(value.trim().trim_matches(['"', '\'']));
        }
    }
    match path {
        None | Some("") => Registry::Missing,
        Some(path)
            if path
                .split(':')
                .any(|folder| folder.trim_end_matches('/') == CERTS_D) =>
        {
            Registry::Ready
        }
        Some(path) => Registry::Elsewhere(path.to_owned()),
    }
}

fn is_registry(table: &str) -> bool {
    table.ends_with(".registry") && table.contains("cri")
}

/// The configuration file with our `config_path`, or `None` where a table of that name stands already and only a person should edit it. The plugin's name depends on the
/// file's version (containerd docs/cri/registry.md).
pub(super) fn with_config_path(config: &str) -> Option<String> {
    if config
        .lines()
        .any(|line| line.trim().starts_with('[') && line.contains(".registry"))
    {
        return None;
    }
    let version = config.lines().find_map(|line| {
        line.split_once('=')
            .filter(|(key, _)| key.trim() == "version")
            .map(|(_, value)| value.trim().to_owned())
    });
    let plugin = if version.as_deref() == Some("3") {
        "'io.containerd.cri.v1.images'"
    } else {
        "\"io.containerd.grpc.v1.cri\""
    };
    let gap = if config.is_empty() || config.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    Some(format!(
        "{config}{gap}\n[plugins.{plugin}.registry]\n  config_path = \"{CERTS_D}\"\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cri_table_is_told_from_other_plugins() {
        let dump = "version = 3\n[plugins]\n  [plugins.'io.containerd.cri.v1.images'.registry]\n    config_path = '/etc/containerd/certs.d'\n\
            [plugins.'io.containerd.transfer.v1.local']\n    config_path = ''\n";
        assert_eq!(judge(dump), Registry::Ready);
        let other = "[plugins.'io.containerd.transfer.v1.local']\n    config_path = '/etc/containerd/certs.d'\n[plugins.'io.containerd.cri.v1.images'.registry]\n config_path = ''\n";
        assert_eq!(judge(other), Registry::Missing);
    }

    #[test]
    fn a_list_of_folders_with_ours_will_do_and_another_folder_will_not() {
        let table = "[plugins.\"io.containerd.grpc.v1.cri\".registry]\n";
        assert_eq!(
            judge(&format!(
                "{table}config_path = \"/etc/containerd/certs.d:/etc/docker/certs.d\"\n"
            )),
            Registry::Ready
        );
        assert_eq!(
            judge(&format!("{table}config_path = \"/opt/certs\"\n")),
            Registry::Elsewhere("/opt/certs".to_owned())
        );
    }

    #[test]
    fn mirrors_beside_config_path_are_seen() {
        let dump = "[plugins.\"io.containerd.grpc.v1.cri\".registry]\n  config_path = \"\"\n  [plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors]\n\
            \x20   [plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"localhost:5000\"]\n      endpoint = [\"http://kind-registry:5000\"]\n";
        assert!(matches!(judge(dump), Registry::Mirrors(_)));
        let empty = "[plugins.\"io.containerd.grpc.v1.cri\".registry]\n config_path = \"\"\n[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors]\n";
        assert_eq!(
            judge(empty),
            Registry::Missing,
            "an empty mirrors table is containerd's default"
        );
    }

    #[test]
    fn config_path_is_added_under_the_name_of_the_files_version() {
        let two = with_config_path(
            "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  enable_cdi = true",
        )
        .expect("added");
        assert_eq!(judge(&two), Registry::Ready);
        assert!(two.contains("io.containerd.grpc.v1.cri\".registry]"));
        assert!(
            with_config_path("version = 3\n")
                .expect("added")
                .contains("'io.containerd.cri.v1.images'.registry]")
        );
        assert_eq!(with_config_path(&two), None);
    }
}
