use std::collections::BTreeMap;
use std::path::Path;

use blueprint_charts::ArtifactCache;
use blueprint_cluster::{Cluster, ConnectOptions};

use super::*;
use crate::references::{References, embedded_text};
use crate::settings::Settings;

/// A workspace with pins of one kind; its cluster answers nothing.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn versions(stand_ins: bool) -> Versions {
        let mut pins: serde_json::Value =
            serde_json::from_str(embedded_text("VERSIONS.json").unwrap()).unwrap();
        if stand_ins {
            for pin in pins["helm_repositories"]
                .as_object_mut()
                .unwrap()
                .values_mut()
            {
                let version = format!("{}+standin", pin["chart_version"].as_str().unwrap());
                pin["chart_version"] = version.into();
            }
        }
        Versions::parse(&pins.to_string(), Path::new("VERSIONS.json")).unwrap()
    }

    async fn context(&self, stand_ins: bool) -> Context {
        let kubeconfig = self.0.path().join("kubeconfig");
        std::fs::write(
            &kubeconfig,
            "{apiVersion: v1, kind: Config, current-context: kind-x, users: [{name: u, user: {}}], \
             clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}], contexts: [{name: kind-x, context: {cluster: c, user: u}}]}",
        )
        .unwrap();
        let options = ConnectOptions {
            kubeconfig: Some(kubeconfig),
            ..ConnectOptions::default()
        };
        let _ = rustls::crypto::ring::default_provider().install_default();
        let given = stand_ins.then(|| self.0.path().join("stand-ins.json"));
        let workspace = Workspace::at(self.0.path()).with_versions(given);
        let settings = Settings::default();
        Context {
            cluster: Cluster::connect(&options).await.unwrap(),
            helm: None,
            cache: ArtifactCache::new(workspace.cache()),
            versions: Self::versions(stand_ins),
            references: References::new(workspace.clone(), settings.clone()),
            settings,
            workspace,
            nodes: None,
            no_engine: None,
            accepted: Vec::new(),
        }
    }
}

fn release(label: Option<&str>) -> Release {
    let labels = label.map(|label| (CHART_LABEL.to_owned(), label.to_owned()));
    Release {
        revisions: vec![ReleaseRevision {
            revision: 1,
            status: "deployed".to_owned(),
            labels: labels.into_iter().collect::<BTreeMap<_, _>>(),
        }],
    }
}

fn refused(answer: Result<(), Error>) -> (String, String) {
    match answer {
        Err(Error::Refused { found, hint, .. }) => (found, hint),
        other => panic!("must be refused: {other:?}"),
    }
}

#[test]
fn only_stand_ins_ask_for_attention() {
    assert_eq!(attention(&Place::versions(false)), None);
    let text = attention(&Place::versions(true)).unwrap();
    assert!(
        text.contains("6 of 6 charts are STAND-INS") && text.contains("gitlab 10.1.1+standin"),
        "{text}"
    );
}

#[tokio::test]
async fn real_pins_over_data_of_stand_ins_are_refused_and_the_record_stays() {
    let place = Place::new();
    let stand_ins = place.context(true).await;
    enter(&stand_ins).unwrap();
    enter(&stand_ins).unwrap();
    let record = std::fs::read(stand_ins.workspace.charts_record()).unwrap();

    let real = place.context(false).await;
    let (found, hint) = refused(enter(&real));
    assert!(
        found.contains("redis 27.0.13+standin") && found.contains("charts.json"),
        "{found}"
    );
    let pins = place.0.path().join("stand-ins.json");
    assert!(
        hint.contains(&format!("blueprint --versions {} up", pins.display()))
            && hint.contains("blueprint cluster delete"),
        "{hint}"
    );
    assert_eq!(
        std::fs::read(real.workspace.charts_record()).unwrap(),
        record
    );
}

#[tokio::test]
async fn stand_ins_over_real_data_are_refused_also_where_no_record_was_kept_yet() {
    let place = Place::new();
    let stand_ins = place.context(true).await;
    private_file::write(&stand_ins.workspace.redis_password(), b"x").unwrap();
    let (found, hint) = refused(enter(&stand_ins));
    assert!(found.contains("upstream's charts"), "{found}");
    assert!(
        hint.contains("workspace and a cluster of their own"),
        "{hint}"
    );
    assert!(!stand_ins.workspace.charts_record().exists());

    enter(&place.context(false).await).unwrap();
    let (found, _) = refused(enter(&stand_ins));
    assert!(
        found.contains("made with cloudnative-pg 0.29.0,"),
        "{found}"
    );
}

#[tokio::test]
async fn another_version_of_the_same_kind_is_an_upgrade() {
    let place = Place::new();
    let mut context = place.context(true).await;
    enter(&context).unwrap();
    let pin = context.versions.helm_repositories.get_mut("redis").unwrap();
    pin.chart_version = "27.0.14+standin".to_owned();
    enter(&context).unwrap();
    let kept = Record::read(&context.workspace).unwrap().unwrap();
    assert_eq!(kept.charts["redis"], "27.0.14+standin");
}

#[tokio::test]
async fn a_release_of_the_other_kind_is_never_upgraded_over() {
    let place = Place::new();
    let (real, stand_ins) = (place.context(false).await, place.context(true).await);
    let check = |context: &Context, label: Option<&str>| {
        let pin = context.versions.chart("redis").unwrap();
        check_release(context, pin, "redis", &release(label))
    };
    let (found, _) = refused(check(&real, Some("27.0.13_standin")));
    assert!(
        found.contains("release redis/redis 27.0.13+standin"),
        "{found}"
    );
    for label in [None, Some("27.0.13")] {
        refused(check(&stand_ins, label));
        check(&real, label).unwrap();
    }
    check(&stand_ins, Some("27.0.12_standin")).unwrap();
}

#[test]
fn the_label_is_one_that_the_api_server_takes() {
    let versions = Place::versions(true);
    let mut pin = versions.chart("redis").unwrap().clone();
    assert_eq!(label(&pin), "27.0.13_standin");
    pin.chart_version = format!("1.0.0+{}-", "a".repeat(80));
    assert_eq!(label(&pin).len(), LABEL_LENGTH);
}

#[tokio::test]
async fn a_cut_off_record_is_named_and_nothing_is_guessed() {
    let place = Place::new();
    let context = place.context(false).await;
    private_file::write(&context.workspace.charts_record(), b"{\"charts\": {").unwrap();
    let (found, hint) = refused(enter(&context));
    assert!(
        found.contains("EOF") && hint.contains("restore it"),
        "{found} {hint}"
    );
}
