//! Releases by a real helm on a real API server: nothing when nothing changed, and what a killed helm leaves is mended without losing what runs.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use blueprint_charts::Helm;
use blueprint_cluster::control_plane::{BIN_VARIABLE, CONTEXT, ControlPlane};
use blueprint_cluster::ownership;
use blueprint_phase2::helm_release::{self, ReleaseSpec, uninstall};
use blueprint_phase2::names;
use blueprint_phase2::{Context, Error, State, Work};
use blueprint_pipeline::{Outcome, Progress};

use crate::support::Fixture;

/// The chart's release name, from VERSIONS.json.
const RELEASE: &str = "redis";

/// One ConfigMap with a value in it, and a hook that ends only where a Job controller runs: here it never does.
fn files() -> Vec<(&'static str, String)> {
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: what}\ndata: {size: {{ .Values.size | quote }}}\n";
    let hook = "{{ if .Values.hang }}\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: hang\n  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}\n\
                spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}\n{{ end }}\n";
    vec![
        (
            "redis/Chart.yaml",
            "apiVersion: v2\nname: redis\nversion: 27.0.13\n".to_owned(),
        ),
        ("redis/values.yaml", "size: none\nhang: false\n".to_owned()),
        ("redis/templates/config.yaml", config.to_owned()),
        ("redis/templates/hook.yaml", hook.to_owned()),
    ]
}

fn helm_binary() -> PathBuf {
    PathBuf::from(std::env::var_os(BIN_VARIABLE).unwrap()).join("helm")
}

struct Case {
    fixture: Fixture,
    context: Context,
    spec: ReleaseSpec,
}

impl Case {
    async fn new(namespace: &'static str) -> Self {
        let mut fixture = Fixture::new();
        fixture.chart("redis", &files());
        fixture.reference("helm-values-redis.yaml", "size: small\n");
        let mut context = fixture.context().await;
        let kubeconfig = ControlPlane::shared().kubeconfig();
        let state = fixture.path().join("infra/phase2/state");
        let helm = Helm::locate(
            Some(&helm_binary()),
            Some(&kubeconfig),
            Some(CONTEXT),
            &state,
        );
        context.helm = Some(helm.unwrap());
        names::ensure_namespace(&context.cluster, namespace)
            .await
            .unwrap();
        let spec = ReleaseSpec {
            key: "redis",
            namespace,
            skip_crds: true,
            skip_schema_validation: false,
            timeout: Duration::from_secs(30),
        };
        Self {
            fixture,
            context,
            spec,
        }
    }

    async fn ensure(&self) -> (bool, Outcome) {
        let progress = Progress::silent();
        let work = Work {
            context: &self.context,
            progress: &progress,
        };
        let mut outcome = Outcome::default();
        let changed = helm_release::ensure(work, &self.spec, &mut outcome)
            .await
            .unwrap();
        (changed, outcome)
    }

    async fn inspect(&self) -> State {
        let progress = Progress::silent();
        let work = Work {
            context: &self.context,
            progress: &progress,
        };
        helm_release::inspect(work, &self.spec).await.unwrap()
    }

    /// Revision and status of each record, oldest first.
    async fn history(&self) -> Vec<(u32, String)> {
        let release = self
            .context
            .cluster
            .release(self.spec.namespace, RELEASE)
            .await
            .unwrap();
        release
            .revisions
            .into_iter()
            .map(|revision| (revision.revision, revision.status))
            .collect()
    }

    async fn size(&self) -> Option<String> {
        let found = self
            .context
            .cluster
            .get("v1", "ConfigMap", Some(self.spec.namespace), "what")
            .await
            .unwrap()?;
        found.data["data"]["size"].as_str().map(str::to_owned)
    }

    /// Starts a helm that hangs in its hook and kills it there, as a power cut would.
    async fn cut_off(&self, status: &str) {
        let chart = self
            .fixture
            .path()
            .join("infra/helm-charts/redis-27.0.13.tgz");
        let mut helm: Child = Command::new(helm_binary())
            .args([
                "upgrade",
                "--install",
                RELEASE,
                "--set",
                "hang=true",
                "--set",
                "size=broken",
            ])
            .args([
                "--namespace",
                self.spec.namespace,
                "--kube-context",
                CONTEXT,
                "--kubeconfig",
            ])
            .arg(ControlPlane::shared().kubeconfig())
            .arg(chart)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        for _ in 0..200 {
            if self
                .history()
                .await
                .last()
                .is_some_and(|(_, newest)| newest == status)
            {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        helm.kill().unwrap();
        helm.wait().unwrap();
        assert_eq!(
            self.history()
                .await
                .last()
                .map(|(_, status)| status.clone()),
            Some(status.to_owned())
        );
    }

    async fn uninstall(&self) -> Result<Outcome, Error> {
        let progress = Progress::silent();
        let work = Work {
            context: &self.context,
            progress: &progress,
        };
        let mut outcome = Outcome::default();
        uninstall::run(work, &self.spec, &mut outcome).await?;
        Ok(outcome)
    }

    /// A release as somebody else installs it.
    fn installed_by_another(&self) {
        let chart = self
            .fixture
            .path()
            .join("infra/helm-charts/redis-27.0.13.tgz");
        let installed = Command::new(helm_binary())
            .args(["install", RELEASE, "--set", "size=theirs"])
            .args(["--namespace", self.spec.namespace])
            .args(["--kube-context", CONTEXT, "--kubeconfig"])
            .arg(ControlPlane::shared().kubeconfig())
            .arg(chart)
            .output()
            .unwrap();
        assert!(installed.status.success(), "{installed:?}");
    }
}

/// Regression: helm's `--create-namespace` applied the namespace as helm's own, so `down` took it for somebody else's and left it behind.
#[tokio::test]
async fn a_namespace_with_a_release_in_it_stays_ours() {
    let case = Case::new("release-in-ours").await;
    assert!(case.ensure().await.0);
    let namespace = case
        .context
        .cluster
        .get("v1", "Namespace", None, case.spec.namespace)
        .await
        .unwrap()
        .unwrap();
    assert!(ownership::applied_by_us(&namespace.metadata));
    assert!(!ownership::namespace_of_another(&namespace.metadata));
}

#[tokio::test]
async fn the_same_inputs_make_no_new_revision_and_other_values_make_one() {
    let case = Case::new("release-same").await;
    assert_eq!(case.inspect().await, State::Missing);
    let (changed, outcome) = case.ensure().await;
    assert!(changed && outcome.changes[0].starts_with("installed release redis"));
    assert_eq!(case.history().await, [(1, "deployed".to_owned())]);

    assert_eq!(case.ensure().await, (false, Outcome::default()));
    assert_eq!(case.inspect().await, State::Ready);
    assert_eq!(case.history().await.len(), 1);

    case.fixture
        .reference("helm-values-redis.yaml", "size: large\n");
    assert!(matches!(case.inspect().await, State::Outdated(_)));
    let (changed, outcome) = case.ensure().await;
    assert!(changed && outcome.changes[0].starts_with("upgraded release redis"));
    assert_eq!(case.size().await.as_deref(), Some("large"));
    assert_eq!(case.history().await.len(), 2);
}

#[tokio::test]
async fn helm_killed_in_the_first_install_is_cleared_and_installed() {
    let case = Case::new("release-first").await;
    case.cut_off("pending-install").await;
    assert!(matches!(case.inspect().await, State::Broken(_)));
    let (changed, outcome) = case.ensure().await;
    assert!(changed, "{outcome:?}");
    assert!(
        outcome.changes[0].contains("first install was cut off"),
        "{outcome:?}"
    );
    assert_eq!(case.size().await.as_deref(), Some("small"));
    assert_eq!(case.inspect().await, State::Ready);
}

/// Regression: a retry that deletes a live release.
#[tokio::test]
async fn helm_killed_in_an_upgrade_goes_back_to_what_ran_and_deletes_nothing() {
    let case = Case::new("release-upgrade").await;
    case.ensure().await;
    let uid = || async {
        let found = case
            .context
            .cluster
            .get("v1", "ConfigMap", Some(case.spec.namespace), "what")
            .await;
        found.unwrap().unwrap().metadata.uid
    };
    let before = uid().await;
    case.cut_off("pending-upgrade").await;
    let (changed, outcome) = case.ensure().await;
    assert!(
        changed && outcome.changes[0].contains("back to revision 1"),
        "{outcome:?}"
    );
    assert_eq!(case.inspect().await, State::Ready);
    assert_eq!(case.size().await.as_deref(), Some("small"));
    assert_eq!(uid().await, before, "the object was deleted and made anew");
}

/// The real helm must take the label, and keep it when it rolls back: by it alone a stand-in is known in the cluster.
#[tokio::test]
async fn a_stand_ins_release_is_refused_to_real_pins_and_stays_as_it_is() {
    let mut case = Case::new("release-standin").await;
    let cache = case.fixture.path().join("infra/helm-charts");
    std::fs::copy(
        cache.join("redis-27.0.13.tgz"),
        cache.join("redis-27.0.13+standin.tgz"),
    )
    .unwrap();
    let pin = |case: &mut Case, version: &str| {
        let pins = &mut case.context.versions.helm_repositories;
        pins.get_mut("redis").unwrap().chart_version = version.to_owned();
    };
    pin(&mut case, "27.0.13+standin");
    case.ensure().await;
    case.cut_off("pending-upgrade").await;
    let (changed, _) = case.ensure().await;
    assert!(
        changed,
        "the cut-off upgrade is mended, its pins are of the same kind"
    );
    let before = case.history().await;

    pin(&mut case, "27.0.13");
    let progress = Progress::silent();
    let work = Work {
        context: &case.context,
        progress: &progress,
    };
    let refused = helm_release::ensure(work, &case.spec, &mut Outcome::default()).await;
    assert!(
        matches!(&refused, Err(Error::Refused { found, .. }) if found.contains("release release-standin/redis 27.0.13+standin")),
        "{refused:?}"
    );
    assert_eq!(case.history().await, before);
}

#[tokio::test]
async fn our_release_goes_and_a_second_time_there_is_nothing() {
    let case = Case::new("release-down").await;
    case.ensure().await;
    let outcome = case.uninstall().await.unwrap();
    assert_eq!(outcome.changes, ["uninstalled release redis"]);
    assert_eq!((case.history().await, case.size().await), (vec![], None));
    assert_eq!(case.uninstall().await.unwrap(), Outcome::default());
}

#[tokio::test]
async fn a_release_that_somebody_else_installed_is_refused_and_stays() {
    let case = Case::new("release-theirs").await;
    case.installed_by_another();
    let error = case.uninstall().await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert!(error.to_string().contains("not blueprint's"), "{error}");
    assert_eq!(case.size().await.as_deref(), Some("theirs"));
    assert_eq!(case.history().await, [(1, "deployed".to_owned())]);
}

/// Regression: helm refuses what another helm left half done; an uninstall takes it all the same.
#[tokio::test]
async fn helm_killed_in_an_upgrade_is_no_obstacle_to_down() {
    let case = Case::new("release-cut-off-down").await;
    case.ensure().await;
    case.cut_off("pending-upgrade").await;
    case.uninstall().await.unwrap();
    assert_eq!((case.history().await, case.size().await), (vec![], None));
}
