//! The helm binary: argv vectors, `HELM_*` stripped from the environment, values in 0600 files, stderr classified.
//! A helm that changes something runs in a process group of its own, writes to a log file (a pipe would kill it with its reader) and is never killed.

//!
//! helm 4 without `--wait` uses its strategy `hookOnly` (pkg/kube/client.go): it waits for hook Jobs and Pods to finish, up to `--timeout` each, and, on a first install
//! with CRDs, up to 60 s for those to be established (pkg/action/install.go); it waits for no Deployment, StatefulSet or Service.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use blueprint_failpoint::failpoint;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

mod classify;
mod error;
mod process;
mod under_way;

pub use error::HelmError;

use under_way::UnderWay;

/// How to call helm.
#[derive(Debug, Clone)]
pub struct Helm {
    binary: PathBuf,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    state_folder: PathBuf,
    under_way: UnderWay,
}

/// One `helm upgrade --install`.
#[derive(Debug, Clone)]
pub struct ReleaseInstall {
    /// Release name.
    pub name: String,
    /// Its namespace, which must be there: with `--create-namespace` helm 4 applies it as its own, and nobody could tell any more who made it.
    pub namespace: String,
    /// The verified chart tarball.
    pub chart: PathBuf,
    /// Merged values.
    pub values: Value,
    /// `--skip-crds`.
    pub skip_crds: bool,
    /// `--skip-schema-validation` (the chart's schema has a remote `$ref`).
    pub skip_schema_validation: bool,
    /// `--timeout`, for hooks.
    pub timeout: Duration,
    /// `--labels`, kept on the release record: [`Self::inputs_digest`] under `blueprint-inputs`.
    pub labels: Vec<(String, String)>,
}

impl ReleaseInstall {
    /// 16 hex digits over chart digest and values: equal means the release is as wanted. `chart_sha256` is the verified artifact's. The order of keys does not matter.
    pub fn inputs_digest(chart_sha256: &str, values: &Value) -> String {
        let mut digest = Sha256::new();
        digest.update(chart_sha256.as_bytes());
        digest_value(&mut digest, values);
        let mut text = crate::cache::hex(&digest.finalize());
        text.truncate(16);
        text
    }

    fn upgrade_arguments(&self, values: &Path) -> Vec<OsString> {
        let mut arguments = arguments(&["upgrade", "--install", &self.name]);
        arguments.push(self.chart.clone().into());
        arguments.extend(self.common_arguments(values));
        arguments.extend(self::arguments(&[
            "--timeout",
            &format!("{}s", self.timeout.as_secs().max(1)),
        ]));
        if !self.labels.is_empty() {
            let labels: Vec<String> = self
                .labels
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            arguments.extend(self::arguments(&["--labels", &labels.join(",")]));
        }
        if self.skip_crds {
            arguments.push("--skip-crds".into());
        }
        arguments
    }

    fn template_arguments(&self, values: &Path, kube_version: &str) -> Vec<OsString> {
        let mut arguments = arguments(&["template", &self.name]);
        arguments.push(self.chart.clone().into());
        arguments.extend(self.common_arguments(values));
        arguments.extend(self::arguments(&[
            "--kube-version",
            kube_version,
            "--skip-tests",
        ]));
        arguments
    }

    fn common_arguments(&self, values: &Path) -> Vec<OsString> {
        let mut arguments = arguments(&["--namespace", &self.namespace, "--values"]);
        arguments.push(values.into());
        if self.skip_schema_validation {
            arguments.push("--skip-schema-validation".into());
        }
        arguments
    }
}

fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

/// Feeds a value with its keys sorted, each piece with its kind, so that different values never give the same bytes.
fn digest_value(digest: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            digest.update(b"{");
            for key in keys {
                digest.update(Value::from(key.as_str()).to_string());
                digest.update(b":");
                digest_value(digest, &map[key]);
            }
            digest.update(b"}");
        }
        Value::Array(items) => {
            digest.update(b"[");
            for item in items {
                digest_value(digest, item);
                digest.update(b",");
            }
            digest.update(b"]");
        }
        leaf => digest.update(leaf.to_string()),
    }
}

impl Helm {
    /// Finds helm on PATH (or takes `binary`). `state_folder` holds its logs, pid files and value files (all 0600), and its empty config and cache homes.
    pub fn locate(
        binary: Option<&Path>,
        kubeconfig: Option<&Path>,
        context: Option<&str>,
        state_folder: &Path,
    ) -> Result<Self, HelmError> {
        let binary = match binary {
            Some(binary) if process::is_executable(binary) => absolute(binary),
            Some(binary) => {
                return Err(HelmError::NotFound {
                    tried: format!("{} is no executable file", binary.display()),
                });
            }
            None => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                std::env::split_paths(&path)
                    .map(|folder| folder.join("helm"))
                    .find(|candidate| process::is_executable(candidate))
                    .map(|found| absolute(&found))
                    .ok_or_else(|| HelmError::NotFound {
                        tried: format!("PATH is {}", path.to_string_lossy()),
                    })?
            }
        };
        Ok(Self {
            binary,
            kubeconfig: kubeconfig.map(absolute),
            context: context.map(str::to_owned),
            state_folder: absolute(state_folder),
            under_way: UnderWay::default(),
        })
    }

    /// `helm version`, as `4.3.1`. A helm built without a release's version in it (`v4.3`) counts as that minor's first.
    pub async fn version(&self) -> Result<String, HelmError> {
        let output = self
            .read(arguments(&["version", "--template", "{{.Version}}"]))
            .await?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        process::plain_version(&said).ok_or_else(|| HelmError::Unusable {
            binary: self.binary.clone(),
            found: if output.success {
                format!(
                    "`version` answered {:?}",
                    said.chars().take(80).collect::<String>()
                )
            } else {
                format!("`version` failed: {}", output.stderr)
            },
        })
    }

    /// Waits for a mutating helm that an earlier, killed run of ours left running for this release; `waiting` is called once with its pid when there is one (0
    /// when that run was killed before it could note the pid).
    ///
    /// Such a helm holds a lock on its log file, which it inherited: the kernel lets go of it when the process ends, so neither a stale pid file nor a pid that
    /// was given to another process can mislead. Ends when helm does; the caller sets a deadline.
    pub async fn wait_for_orphan(
        &self,
        release: &str,
        waiting: &(dyn Fn(u32) + Send + Sync),
    ) -> Result<(), HelmError> {
        process::wait_for_lock(&self.state_folder, release, waiting)
            .await
            .map_err(HelmError::io(&self.binary))
    }

    /// From now on no changing helm is started; those under way go on.
    pub fn start_no_more(&self) {
        self.under_way.close();
    }

    /// Until no changing helm of this process is under way; `waiting` is told the releases whenever they change.
    pub async fn until_idle(&self, waiting: &(dyn Fn(&str) + Send + Sync)) {
        self.under_way.until_idle(waiting).await;
    }

    /// `helm upgrade --install` (no `--wait`: readiness is ours to watch). Never killed, also when the future is dropped.
    pub async fn upgrade_install(&self, release: &ReleaseInstall) -> Result<(), HelmError> {
        let values = crate::yaml::to_text(&release.values);
        let make = |file: &Path| release.upgrade_arguments(file);
        self.change("install or upgrade", &release.name, Some(&values), make)
            .await
    }

    /// `helm rollback NAME REVISION`.
    pub async fn rollback(
        &self,
        namespace: &str,
        release: &str,
        revision: u32,
    ) -> Result<(), HelmError> {
        let arguments = arguments(&[
            "rollback",
            release,
            &revision.to_string(),
            "--namespace",
            namespace,
        ]);
        self.change("roll back", release, None, |_| arguments).await
    }

    /// `helm uninstall`; `no_hooks` for the remains of a first install that was cut off. A release that is not there is uninstalled.
    pub async fn uninstall(
        &self,
        namespace: &str,
        release: &str,
        no_hooks: bool,
    ) -> Result<(), HelmError> {
        let mut arguments = arguments(&[
            "uninstall",
            release,
            "--namespace",
            namespace,
            "--ignore-not-found",
        ]);
        if no_hooks {
            arguments.push("--no-hooks".into());
        }
        self.change("uninstall", release, None, |_| arguments).await
    }

    /// `helm template` with the cluster's Kubernetes version given (no cluster is asked): all documents, hooks included, test hooks and CRDs of `crds/` not.
    pub async fn template(
        &self,
        release: &ReleaseInstall,
        kube_version: &str,
    ) -> Result<Vec<Value>, HelmError> {
        let values = process::values_file(
            &self.state_folder,
            &release.name,
            &crate::yaml::to_text(&release.values),
        )
        .map_err(HelmError::io(&self.binary))?;
        let output = self
            .read(release.template_arguments(values.path(), kube_version))
            .await?;
        let failed = |stderr: String| HelmError::Failed {
            action: "render".to_owned(),
            release: release.name.clone(),
            stderr,
        };
        if !output.success {
            return Err(failed(output.stderr));
        }
        let text = String::from_utf8(output.stdout)
            .map_err(|_| failed("its output is not UTF-8".to_owned()))?;
        let origin = release
            .chart
            .file_name()
            .unwrap_or(release.chart.as_os_str());
        crate::yaml::rendered_documents(&text, Path::new(origin))
            .map_err(|error| failed(error.to_string()))
    }

    async fn read(&self, arguments: Vec<OsString>) -> Result<process::Output, HelmError> {
        process::read(
            self.command(arguments)
                .map_err(HelmError::io(&self.binary))?,
        )
        .await
        .map_err(HelmError::io(&self.binary))
    }

    /// Runs a helm that changes something. `arguments` gets the values file's path (of no meaning without `values`).
    async fn change(
        &self,
        action: &str,
        release: &str,
        values: Option<&str>,
        arguments: impl FnOnce(&Path) -> Vec<OsString>,
    ) -> Result<(), HelmError> {
        let io = || HelmError::io(&self.binary);
        let Some(begun) = self.under_way.begin(release) else {
            return Err(HelmError::Stopping {
                release: release.to_owned(),
            });
        };
        let Some(slot) = process::Slot::take(&self.state_folder, release).map_err(io())? else {
            return Err(HelmError::Pending {
                release: release.to_owned(),
                state: "being changed by a helm that still runs".to_owned(),
            });
        };
        failpoint!(before, "helm", "{action} {release}");
        let values_file = slot.values_file();
        if let Some(values) = values {
            process::write_private(&values_file, values).map_err(io())?;
            failpoint!(after, "write", "values of {release}");
        }
        let command = self.command(arguments(&values_file)).map_err(io())?;
        let ended = slot.run(command, begun, action).await.map_err(io())?;
        failpoint!(after, "helm", "{action} {release}");
        if ended.success {
            Ok(())
        } else {
            Err(classify::failure(action, release, &ended.log))
        }
    }

    /// helm with its surroundings: nothing of the user's helm set-up reaches it.
    fn command(&self, arguments: Vec<OsString>) -> std::io::Result<tokio::process::Command> {
        let mut command = process::command(&self.binary, &self.state_folder)?;
        command.args(arguments);
        if let Some(kubeconfig) = &self.kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        if let Some(context) = &self.context {
            command.arg("--kube-context").arg(context);
        }
        Ok(command)
    }
}

/// helm gets whole paths, wherever it is started. A path that cannot be completed (no working folder) stays as it is.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
