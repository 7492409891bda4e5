//! Which Pod Security level every pod passes, and which pods hold a token for the API server: as docs/trust.md says.
//!
//! The judge is the API server's own admission (KEP-2579): each pod's spec is sent as a dry run into a namespace that enforces a level.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::observer::items;
use super::{Evidence, Scene, expect};
use crate::error::{Error, Result};

const DOCUMENT: &str = include_str!("../../../docs/trust.md");
const NAMESPACE: &str = "blueprint-pod-security";
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
/// The cluster's own pods are kind's and Kubernetes'.
const NOT_OURS: &str = "kube-system";
/// What the API server fills in, or refuses in a pod that is made anew; accounts are those of another namespace.
const SET_BY_THE_SERVER: [&str; 7] = [
    "nodeName",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "serviceAccount",
    "serviceAccountName",
    "ephemeralContainers",
];

/// A row of the table: pods of one workload.
#[derive(Debug, PartialEq)]
struct Row<'a> {
    namespace: &'a str,
    /// How the names of its pods begin.
    prefix: &'a str,
    level: &'a str,
    token: bool,
}

pub(super) fn pod_security(scene: &mut Scene) -> Result<Evidence> {
    let rows = rows(DOCUMENT);
    let pods = scene.objects(&["pods", "--all-namespaces"])?;
    let pods: Vec<&Value> = items(&pods)
        .into_iter()
        .filter(|pod| pod["metadata"]["namespace"] != NOT_OURS)
        .collect();
    let levels = levels(scene, &pods)?;
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut tokens = 0;
    for pod in &pods {
        let name = name_of(pod);
        let level = levels.get(&name).copied().unwrap_or("privileged");
        let token = holds_token(pod);
        *counts.entry(level).or_default() += 1;
        tokens += usize::from(token);
        match row_of(&rows, pod) {
            None => wrong.push(format!("{name} ({level}, token {token}) has no row")),
            Some(row) if row.level != level || row.token != token => wrong.push(format!(
                "{name} is {level}, token {token}; said is {}, token {}",
                row.level, row.token
            )),
            Some(_) => {}
        }
    }
    let seen = format!(
        "{} pods: {}; {tokens} hold a token",
        pods.len(),
        counts
            .iter()
            .map(|(level, count)| format!("{count} {level}"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    expect(
        wrong.is_empty() && !pods.is_empty(),
        "every pod as docs/trust.md says",
        if wrong.is_empty() {
            seen
        } else {
            format!("{seen}; {}", wrong.join("; "))
        },
    )
}

fn name_of(pod: &Value) -> String {
    format!(
        "{}.{}",
        pod["metadata"]["namespace"].as_str().unwrap_or_default(),
        pod["metadata"]["name"].as_str().unwrap_or_default()
    )
}

/// The strictest level that each pod passes.
fn levels(scene: &Scene, pods: &[&Value]) -> Result<BTreeMap<String, &'static str>> {
    // The remains of a run that was cut off.
    remove(scene)?;
    scene.kubectl(["create", "namespace", NAMESPACE]).output()?;
    let judged = judge(scene, pods);
    remove(scene)?;
    judged
}

fn judge(scene: &Scene, pods: &[&Value]) -> Result<BTreeMap<String, &'static str>> {
    // Until then every pod is refused, whatever its level.
    scene
        .kubectl(["wait", "--for=create", "--timeout=60s"])
        .args(["--namespace", NAMESPACE, "serviceaccount/default"])
        .output()?;
    let list = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": pods.iter().map(|pod| anew(pod)).collect::<Vec<_>>(),
    });
    let mut levels = BTreeMap::new();
    for level in ["baseline", "restricted"] {
        scene
            .kubectl(["label", "--overwrite", "namespace", NAMESPACE])
            .args([&format!("{ENFORCE}={level}")])
            .output()?;
        for name in admitted(scene, &list)? {
            levels.insert(name, level);
        }
    }
    Ok(levels)
}

/// Names of the pods that the namespace takes.
fn admitted(scene: &Scene, list: &Value) -> Result<Vec<String>> {
    let (_, out, told) = scene
        .kubectl(["create", "--dry-run=server", "--filename", "-"])
        .args(["--output", "name"])
        .input(list.to_string())
        .captured()?;
    let refused = told.matches("violates PodSecurity").count();
    let names: Vec<String> = out
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pod/"))
        .map(str::to_owned)
        .collect();
    // Any other refusal would be taken for a level.
    if names.len() + refused == items(list).len() {
        Ok(names)
    } else {
        Err(Error::content("the admission's answer", told))
    }
}

fn anew(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        for field in SET_BY_THE_SERVER {
            spec.remove(field);
        }
        spec.insert("automountServiceAccountToken".to_owned(), json!(false));
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name_of(pod), "namespace": NAMESPACE},
        "spec": spec,
    })
}

fn remove(scene: &Scene) -> Result<()> {
    scene
        .kubectl(["delete", "namespace", "--ignore-not-found", NAMESPACE])
        .output()
        .map(drop)
}

/// A volume with a token for the API server, mounted automatically or by hand.
fn holds_token(pod: &Value) -> bool {
    pod["spec"]["volumes"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|volume| volume["projected"]["sources"].as_array())
        .flatten()
        .any(|source| source["serviceAccountToken"].is_object())
}

/// The row whose prefix fits best.
fn row_of<'a>(rows: &'a [Row<'a>], pod: &Value) -> Option<&'a Row<'a>> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    rows.iter()
        .filter(|row| pod["metadata"]["namespace"] == row.namespace && name.starts_with(row.prefix))
        .max_by_key(|row| row.prefix.len())
}

/// The table whose first column is headed `pods`: `namespace/prefix`, level, token, reason.
fn rows(document: &str) -> Vec<Row<'_>> {
    document
        .lines()
        .skip_while(|line| !line.starts_with("| pods |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let (namespace, prefix) = cells.next()?.trim_matches('`').split_once('/')?;
            Some(Row {
                namespace,
                prefix,
                level: cells.next()?,
                token: cells.next()? == "yes",
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(namespace: &str, name: &str) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name}, "spec": {"nodeName": "a", "volumes": []}})
    }

    #[test]
    fn every_row_of_the_document_is_read_and_says_a_level() {
        let rows = rows(DOCUMENT);
        let lines = DOCUMENT
            .lines()
            .filter(|line| line.starts_with("| `") && line.contains('/'))
            .count();
        assert!(lines > 5);
        assert_eq!(rows.len(), lines);
        for row in rows {
            assert!(
                ["restricted", "baseline", "privileged"].contains(&row.level),
                "{row:?}"
            );
        }
    }

    #[test]
    fn the_longest_prefix_wins_in_its_own_namespace() {
        let rows = rows(
            "| pods | level | token | why |\n|---|---|---|---|\n| `a/web` | baseline | yes | x |\n| `a/web-db` | restricted | no | x |\n",
        );
        assert_eq!(row_of(&rows, &pod("a", "web-db-0")), Some(&rows[1]));
        assert_eq!(row_of(&rows, &pod("a", "web-0")), Some(&rows[0]));
        assert_eq!(row_of(&rows, &pod("b", "web-0")), None);
    }

    #[test]
    fn a_pod_made_anew_keeps_what_is_judged() {
        let mut one = pod("a", "web-0");
        one["spec"]["hostNetwork"] = json!(true);
        let anew = anew(&one);
        assert_eq!(anew["metadata"]["name"], "a.web-0");
        assert_eq!(anew["spec"]["hostNetwork"], true);
        assert!(anew["spec"].get("nodeName").is_none());
    }

    #[test]
    fn a_token_is_seen_in_a_projected_volume() {
        let mut one = pod("a", "web-0");
        assert!(!holds_token(&one));
        one["spec"]["volumes"] =
            json!([{"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]);
        assert!(holds_token(&one));
    }
}
