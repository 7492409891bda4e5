//! When a node container was started, and starting one that stands still.

use blueprint_failpoint::failpoint;
use jiff::Timestamp;

use crate::error::Error;
use crate::nodes::{Node, Nodes, refused};

impl Nodes {
    /// Since when the container runs (the engine's clock, which is the nodes' own); `None` where the engine does not say.
    pub async fn started(&self, node: &Node) -> Result<Option<Timestamp>, Error> {
        let container = self
            .docker
            .inspect_container(&node.name, None)
            .await
            .map_err(|error| refused(&format!("look at node container {}", node.name), error))?;
        let started = container.state.and_then(|state| state.started_at);
        Ok(started.as_deref().and_then(moment))
    }

    /// Starts a container that is stopped. What runs in it comes back by itself, in its own time.
    pub async fn start(&self, node: &Node) -> Result<(), Error> {
        failpoint!(before, "start node", "{}", node.name);
        self.docker
            .start_container(&node.name, None)
            .await
            .map_err(|error| refused(&format!("start node container {}", node.name), error))?;
        failpoint!(after, "start node", "{}", node.name);
        Ok(())
    }
}

/// The engine writes RFC 3339, and the year 1 for a container that never ran.
fn moment(text: &str) -> Option<Timestamp> {
    text.parse()
        .ok()
        .filter(|moment| *moment > Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_that_never_ran_has_no_start() {
        assert_eq!(moment("0001-01-01T00:00:00Z"), None);
        assert_eq!(moment(""), None);
        assert_eq!(
            moment("2026-12-01T08:00:00.123456789Z").map(Timestamp::as_second),
            Some(1_796_112_000)
        );
    }
}
