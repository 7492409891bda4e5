//! Which changing helms of this process are under way: whoever stops gently waits for them and begins no new one.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::sync::watch;

/// Shared by all clones of a `Helm`.
#[derive(Debug, Clone)]
pub(super) struct UnderWay(Arc<watch::Sender<State>>);

#[derive(Debug, Default)]
struct State {
    releases: BTreeSet<String>,
    closed: bool,
}

impl Default for UnderWay {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }
}

/// One changing helm; it counts until this is dropped.
#[derive(Debug)]
pub(super) struct Begun {
    all: UnderWay,
    release: String,
}

impl UnderWay {
    /// Notes one; `None` once nothing new may begin.
    pub(super) fn begin(&self, release: &str) -> Option<Begun> {
        let mut begun = false;
        self.0.send_if_modified(|state| {
            begun = !state.closed;
            begun && state.releases.insert(release.to_owned())
        });
        begun.then(|| Begun {
            all: self.clone(),
            release: release.to_owned(),
        })
    }

    pub(super) fn close(&self) {
        self.0.send_modify(|state| state.closed = true);
    }

    pub(super) async fn until_idle(&self, waiting: &(dyn Fn(&str) + Send + Sync)) {
        let mut changes = self.0.subscribe();
        let idle = changes.wait_for(|state| {
            if !state.releases.is_empty() {
                let names: Vec<&str> = state.releases.iter().map(String::as_str).collect();
                waiting(&names.join(", "));
            }
            state.releases.is_empty()
        });
        // The sender lives in `self`, so the channel cannot end before.
        idle.await.ok();
    }
}

impl Begun {
    pub(super) fn release(&self) -> &str {
        &self.release
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.all.0.send_modify(|state| {
            state.releases.remove(&self.release);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn a_helm_under_way_is_waited_for_and_none_begins_any_more() {
        let all = UnderWay::default();
        let begun = all.begin("gitlab").unwrap();
        all.close();
        assert!(all.begin("runner").is_none());
        let said = Mutex::new(Vec::new());
        let say = |names: &str| said.lock().unwrap().push(names.to_owned());
        let ends = async {
            tokio::task::yield_now().await;
            drop(begun);
        };
        tokio::join!(all.until_idle(&say), ends);
        assert_eq!(*said.lock().unwrap(), ["gitlab"]);
        all.until_idle(&say).await;
        assert_eq!(said.lock().unwrap().len(), 1);
    }
}
