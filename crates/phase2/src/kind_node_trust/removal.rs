//! The trust taken back: the hosts' folders that we wrote, told by the first line of their `hosts.toml`, whatever the domain was then.

use blueprint_cluster::{Node, Nodes};
use blueprint_pipeline::Outcome;

use super::containerd::CERTS_D;
use super::{BEFORE, CONFIG, HEADER, MADE, RESTART_DUE, containerd, kubernetes_nodes, restart};
use crate::error::Error;
use crate::installer::Work;

/// `$1` is the folder, `$2` our first line. Prints the folder of each host that is ours.
const FIND: &str = r#"for file in "$1"/*/hosts.toml; do
  test -f "$file" && test "$(head -n 1 -- "$file")" = "$2" && dirname -- "$file"
done
exit 0"#;

async fn folders(nodes: &Nodes, node: &Node) -> Result<Vec<String>, Error> {
    let listed = nodes
        .run(node, &["sh", "-c", FIND, "sh", CERTS_D, HEADER], None)
        .await?;
    Ok(listed.lines().map(|line| line.trim().to_owned()).collect())
}

/// How containerd's configuration stands to what it was before us.
enum Config {
    /// We never changed it, or it has been put back.
    Untouched,
    /// With our `config_path`; it was this.
    Ours(Vec<u8>),
    /// Put back by a run that was cut off before it was done.
    PutBack,
    /// Somebody changed it since.
    Changed,
}

async fn config(nodes: &Nodes, node: &Node) -> Result<Config, Error> {
    let Some(before) = nodes.read_file(node, BEFORE).await? else {
        return Ok(Config::Untouched);
    };
    let current = nodes.read_file(node, CONFIG).await?.unwrap_or_default();
    Ok(judge(before, &current))
}

fn judge(before: Vec<u8>, current: &[u8]) -> Config {
    let text = std::str::from_utf8(&before).ok();
    let ours = text.and_then(containerd::with_config_path);
    if before == current {
        Config::PutBack
    } else if ours.as_deref().map(str::as_bytes) == Some(current) {
        Config::Ours(before)
    } else {
        Config::Changed
    }
}

pub(super) async fn remains(work: Work<'_>) -> Result<Vec<String>, Error> {
    let nodes = work.context.nodes()?;
    let mut found = Vec::new();
    for node in kubernetes_nodes(nodes).await? {
        for folder in folders(nodes, &node).await? {
            found.push(format!("{folder} on {}", node.name));
        }
        if matches!(
            config(nodes, &node).await?,
            Config::Ours(_) | Config::PutBack
        ) {
            found.push(format!("our config_path in {CONFIG} on {}", node.name));
        }
    }
    Ok(found)
}

pub(super) async fn run(work: Work<'_>) -> Result<Outcome, Error> {
    let nodes = work.context.nodes()?;
    let mut outcome = Outcome::unchanged();
    for node in kubernetes_nodes(nodes).await? {
        for folder in folders(nodes, &node).await? {
            forget(nodes, &node, &folder, &mut outcome).await?;
        }
        leave(nodes, &node).await?;
        restore_config(nodes, &node, &mut outcome).await?;
    }
    Ok(outcome)
}

/// Only the two files that we wrote, `hosts.toml` last: a removal that is cut off finds the folder again.
async fn forget(
    nodes: &Nodes,
    node: &Node,
    folder: &str,
    outcome: &mut Outcome,
) -> Result<(), Error> {
    for name in ["ca.pem", "hosts.toml"] {
        let path = format!("{folder}/{name}");
        nodes.change(node, &["rm", "-f", "--", &path]).await?;
    }
    let emptied = nodes.exec(node, &["rmdir", "--", folder], None).await?;
    if emptied.code != 0 {
        outcome.note(format!(
            "{folder} on {} stays: it holds files that are not blueprint's",
            node.name
        ));
    }
    outcome.changed(format!("removed our files in {folder} on {}", node.name));
    Ok(())
}

/// The folder of all hosts, if we made it and nobody else uses it.
async fn leave(nodes: &Nodes, node: &Node) -> Result<(), Error> {
    if nodes.exec(node, &["test", "-e", MADE], None).await?.code == 0 {
        nodes.change(node, &["rm", "-f", MADE]).await?;
        nodes
            .change(node, &["rmdir", "--ignore-fail-on-non-empty", CERTS_D])
            .await?;
    }
    Ok(())
}

async fn restore_config(nodes: &Nodes, node: &Node, outcome: &mut Outcome) -> Result<(), Error> {
    match config(nodes, node).await? {
        Config::Untouched => return Ok(()),
        Config::Changed => {
            outcome.note(format!(
                "{CONFIG} on {} stays: it was changed since blueprint set its config_path (before that it was {BEFORE})",
                node.name
            ));
            return Ok(());
        }
        Config::Ours(before) => {
            nodes.write_file(node, RESTART_DUE, b"\n", 0o644).await?;
            nodes.write_file(node, CONFIG, &before, 0o644).await?;
        }
        Config::PutBack => {}
    }
    restart(nodes, node).await?;
    nodes.change(node, &["rm", "-f", BEFORE]).await?;
    outcome.changed(format!(
        "put {CONFIG} on {} back to what it was and restarted containerd",
        node.name
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE_US: &str = "version = 2\n";

    #[test]
    fn only_a_configuration_that_is_still_ours_is_put_back() {
        let before = || BEFORE_US.as_bytes().to_vec();
        let ours = containerd::with_config_path(BEFORE_US).unwrap();
        assert!(matches!(judge(before(), ours.as_bytes()), Config::Ours(_)));
        assert!(matches!(
            judge(before(), BEFORE_US.as_bytes()),
            Config::PutBack
        ));
        let edited = format!("{ours}# mine\n");
        assert!(matches!(
            judge(before(), edited.as_bytes()),
            Config::Changed
        ));
    }
}
