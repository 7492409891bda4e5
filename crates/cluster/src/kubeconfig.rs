//! The kubeconfig: which files, which context, and whether that context is the one meant.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use url::{Host, Url};

use crate::connect::ConnectOptions;
use crate::error::Error;

/// kind's prefix for the contexts it makes.
const KIND: &str = "kind-";

/// The decided context.
pub(crate) struct Chosen {
    /// Its name.
    pub(crate) context: String,
    /// The one file that holds all of it.
    pub(crate) file: Option<PathBuf>,
    merged: Kubeconfig,
    /// How messages name the source.
    place: String,
}

/// Reads the files and decides.
pub(crate) fn choose(options: &ConnectOptions) -> Result<Chosen, Error> {
    let files = files(
        options.kubeconfig.as_deref(),
        std::env::var_os("KUBECONFIG").as_deref(),
        std::env::home_dir().as_deref(),
    )?;
    let place = files
        .iter()
        .map(|file| file.display().to_string())
        .collect::<Vec<_>>()
        .join(", ");
    let mut read = Vec::with_capacity(files.len());
    for file in files {
        let config = Kubeconfig::read_from(&file).map_err(|error| unreadable(&file, &error))?;
        read.push((file, config));
    }
    let merged = read
        .iter()
        .try_fold(Kubeconfig::default(), |merged, (_, config)| {
            merged.merge(config.clone())
        })
        .map_err(|error| Error::Context {
            summary: format!("the kubeconfig files {place} cannot be merged: {error}"),
            hint: "name one of them with --kubeconfig".to_owned(),
        })?;
    let context = decide(options, &merged, &place)?;
    let file = read
        .into_iter()
        .find(|(_, config)| holds_all_of(config, &context))
        .map(|(file, _)| file);
    Ok(Chosen {
        context,
        file,
        merged,
        place,
    })
}

/// The files to read. Of a KUBECONFIG list, missing ones are passed over as kubectl does; all missing is an error.
fn files(
    option: Option<&Path>,
    variable: Option<&std::ffi::OsStr>,
    home: Option<&Path>,
) -> Result<Vec<PathBuf>, Error> {
    let (wanted, from) = if let Some(file) = option {
        (vec![file.to_owned()], "--kubeconfig")
    } else {
        let listed = variable.map(|list| {
            std::env::split_paths(list)
                .filter(|file| !file.as_os_str().is_empty())
                .collect::<Vec<_>>()
        });
        match listed {
            Some(listed) if !listed.is_empty() => (listed, "KUBECONFIG"),
            _ => (
                home.map(|home| home.join(".kube/config"))
                    .into_iter()
                    .collect(),
                "the default place",
            ),
        }
    };
    let found = wanted
        .iter()
        .filter(|file| file.exists())
        .cloned()
        .collect::<Vec<_>>();
    if found.is_empty() {
        let names = wanted
            .iter()
            .map(|file| file.display().to_string())
            .collect::<Vec<_>>()
            .join(", ");
        return Err(Error::Context {
            summary: format!("there is no kubeconfig: expected {} ({from}), found no file", if names.is_empty() { "~/.kube/config" } else { &names }),
            hint: "make a cluster with `blueprint cluster create`, or name a kubeconfig with --kubeconfig".to_owned(),
        });
    }
    Ok(found)
}

/// The rules of [`ConnectOptions`].
fn decide(options: &ConnectOptions, config: &Kubeconfig, place: &str) -> Result<String, Error> {
    let names = config
        .contexts
        .iter()
        .map(|context| context.name.as_str())
        .collect::<Vec<_>>();
    let has = |name: &str| names.contains(&name);
    if let Some(wanted) = &options.context {
        if has(wanted) {
            return Ok(wanted.clone());
        }
        return Err(Error::Context {
            summary: format!(
                "expected the context {wanted} in {place}, found {}",
                list(&names)
            ),
            hint: did_you_mean(wanted, &names),
        });
    }
    let remedy = |expected: &str| {
        if has(expected) {
            format!(
                "pass `--context {expected}`, or make it current: `kubectl config use-context {expected}`"
            )
        } else {
            format!(
                "make the cluster with `blueprint cluster create`, or name the context you mean with --context (found {})",
                list(&names)
            )
        }
    };
    let current = config
        .current_context
        .as_deref()
        .filter(|name| !name.is_empty());
    match (current, options.expected_context.as_deref()) {
        (None, Some(expected)) => Err(Error::Context {
            summary: format!("expected the current context {expected}, found none in {place}"),
            hint: remedy(expected),
        }),
        (None, None) => Err(Error::Context {
            summary: format!(
                "no current context is set in {place} (found {})",
                list(&names)
            ),
            hint: "name the context you mean with --context".to_owned(),
        }),
        (Some(current), Some(expected)) if current != expected => {
            let other = if current.starts_with(KIND) || has(expected) {
                String::new()
            } else {
                format!("; if {current} is really meant, pass `--context {current}`")
            };
            Err(Error::Context {
                summary: format!(
                    "expected the context {expected}, found the current context {current} in {place}"
                ),
                hint: remedy(expected) + &other,
            })
        }
        (Some(current), _) if !current.starts_with(KIND) => Err(Error::Context {
            summary: format!(
                "the current context {current} does not belong to a kind cluster: expected {KIND}…"
            ),
            hint: format!("if {current} is really meant, pass `--context {current}`"),
        }),
        (Some(current), _) if !has(current) => Err(Error::Context {
            summary: format!(
                "the current context {current} is not defined in {place}, found {}",
                list(&names)
            ),
            hint: did_you_mean(current, &names),
        }),
        (Some(current), _) => Ok(current.to_owned()),
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "no context".to_owned()
    } else {
        names.join(", ")
    }
}

fn did_you_mean(wanted: &str, names: &[&str]) -> String {
    let nearest = names
        .iter()
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, name)) if likeness > 0.8 => format!("did you mean `--context {name}`?"),
        _ => "name one of them with --context, or another file with --kubeconfig".to_owned(),
    }
}

fn holds_all_of(config: &Kubeconfig, context: &str) -> bool {
    let Some(context) = config
        .contexts
        .iter()
        .find(|named| named.name == context)
        .and_then(|named| named.context.as_ref())
    else {
        return false;
    };
    config
        .clusters
        .iter()
        .any(|named| named.name == context.cluster)
        && context
            .user
            .as_ref()
            .is_none_or(|user| config.auth_infos.iter().any(|named| named.name == *user))
}

impl Chosen {
    /// kube's configuration of it. kube takes `HTTPS_PROXY` for every address; a loopback or private one is asked directly.
    pub(crate) async fn config(&self) -> Result<Config, Error> {
        let mut merged = self.merged.clone();
        let named = merged
            .contexts
            .iter()
            .find(|named| named.name == self.context)
            .and_then(|named| named.context.as_ref())
            .map(|context| context.cluster.clone());
        let mut direct = false;
        if let Some(cluster) = merged
            .clusters
            .iter_mut()
            .find(|cluster| Some(&cluster.name) == named.as_ref())
            .and_then(|named| named.cluster.as_mut())
        {
            let server = cluster.server.clone().unwrap_or_default();
            if cluster.proxy_url.as_ref().is_none_or(String::is_empty)
                && is_near(&server, &no_proxy())
            {
                direct = true;
                // With a proxy of its own, the cluster's entry keeps kube from looking (and failing) at the environment.
                cluster.proxy_url = Some("http://localhost".to_owned());
            }
        }
        let options = KubeConfigOptions {
            context: Some(self.context.clone()),
            ..KubeConfigOptions::default()
        };
        let mut config = Config::from_custom_kubeconfig(merged, &options)
            .await
            .map_err(|error| self.incomplete(&error))?;
        if direct {
            config.proxy_url = None;
        }
        if let Some(proxy) = &config.proxy_url {
            // The host alone: a proxy's URL may hold a password.
            let host = proxy.host().unwrap_or("of the environment");
            return Err(Error::Context {
                summary: format!(
                    "{} would be reached through the proxy {host}, which blueprint cannot do",
                    config.cluster_url
                ),
                hint:
                    "add the API server's host to NO_PROXY, or take proxy-url out of the kubeconfig"
                        .to_owned(),
            });
        }
        Ok(config)
    }

    fn incomplete(&self, error: &KubeconfigError) -> Error {
        Error::Context {
            summary: format!(
                "the context {} of {} cannot be used: {}",
                self.context,
                self.place,
                words(error)
            ),
            hint: "write the kubeconfig anew (for kind: `kind export kubeconfig --name NAME`)"
                .to_owned(),
        }
    }
}

/// A client could not be made from what the context says.
pub(crate) fn unusable(chosen: &Chosen, error: &kube::Error) -> Error {
    Error::Context {
        summary: format!(
            "the context {} of {} cannot be used: {error}",
            chosen.context, chosen.place
        ),
        hint: "write the kubeconfig anew (for kind: `kind export kubeconfig --name NAME`)"
            .to_owned(),
    }
}

fn unreadable(file: &Path, error: &KubeconfigError) -> Error {
    Error::Context {
        summary: format!("failed to read the kubeconfig {}: {}", file.display(), words(error)),
        hint: "mend or move the file (for kind: `kind export kubeconfig --name NAME` writes a good one), or name another with --kubeconfig".to_owned(),
    }
}

/// A parser's own text may quote the line, and a kubeconfig's lines are keys and tokens: only the place is told.
fn words(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(parse) => match parse.location() {
            Some(location) => format!(
                "not a kubeconfig in YAML (line {}, column {})",
                location.line(),
                location.column()
            ),
            None => "not a kubeconfig in YAML".to_owned(),
        },
        other => other.to_string(),
    }
}

fn no_proxy() -> String {
    std::env::var("NO_PROXY")
        .or_else(|_| std::env::var("no_proxy"))
        .unwrap_or_default()
}

/// Whether a server is asked without a proxy: on this machine, in a private network, or excepted by `NO_PROXY` (names, `.suffixes`, `*`).
fn is_near(server: &str, no_proxy: &str) -> bool {
    let Ok(url) = Url::parse(server) else {
        return false;
    };
    let near = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(v4)) => is_private(v4.into()),
        Some(Host::Ipv6(v6)) => is_private(v6.into()),
        None => false,
    };
    if near {
        return true;
    }
    let host = url.host_str().unwrap_or_default();
    no_proxy
        .split(',')
        .map(|entry| entry.trim().to_lowercase())
        .filter(|entry| !entry.is_empty())
        .any(|entry| {
            let name = entry.trim_start_matches("*.").trim_start_matches('.');
            entry == "*"
                || host == name
                || host
                    .strip_suffix(name)
                    .is_some_and(|rest| rest.ends_with('.'))
        })
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.is_unspecified()
        }
    }
}

#[cfg(test)]
#[path = "kubeconfig_tests.rs"]
mod tests;
