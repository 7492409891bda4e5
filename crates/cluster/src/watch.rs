//! One object, watched through everything that can happen to its API server.

use std::pin::pin;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{DynamicObject, TypeMeta};
use kube::runtime::watcher::{self, Event, watcher};
use tokio::time::Instant;

use crate::answer::Answer;
use crate::connect::Cluster;
use crate::error::Error;
use crate::object::describe;

/// A watch is begun anew after this long, so a connection that died silently is noticed.
const ONE_WATCH_SECONDS: u32 = 60;
/// Before a broken watch is begun again. A restarting API server is back within seconds, and one object is a cheap question.
const AFTER_A_BREAK: Duration = Duration::from_millis(500);
/// Before an unknown kind is looked up again: discovery cannot be watched.
const UNTIL_THE_KIND_EXISTS: Duration = Duration::from_secs(1);

type Events = BoxStream<'static, Result<Event<DynamicObject>, watcher::Error>>;

/// What the watch shows.
pub(crate) enum Seen {
    /// The object, or its kind, is not there.
    Absent,
    /// As it is now.
    Present(Box<DynamicObject>),
    /// The API server does not answer, or refuses for the moment; why.
    Broken(String),
}

/// A watch of one object by name.
pub(crate) struct ObjectWatch<'a> {
    cluster: &'a Cluster,
    api_version: &'a str,
    kind: &'a str,
    namespace: Option<&'a str>,
    name: &'a str,
    events: Option<Events>,
    listed: bool,
    not_before: Option<Instant>,
}

impl<'a> ObjectWatch<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        api_version: &'a str,
        kind: &'a str,
        namespace: Option<&'a str>,
        name: &'a str,
    ) -> Self {
        Self {
            cluster,
            api_version,
            kind,
            namespace,
            name,
            events: None,
            listed: false,
            not_before: None,
        }
    }

    /// The next sight. May be dropped and called again without losing one. Fails only for good (rights, a wrong manifest, a foreign certificate).
    pub(crate) async fn next(&mut self) -> Result<Seen, Error> {
        loop {
            if let Some(not_before) = self.not_before {
                tokio::time::sleep_until(not_before).await;
                self.not_before = None;
            }
            if self.events.is_none() {
                match self.begin().await {
                    Ok(events) => self.events = Some(events),
                    Err(Error::UnknownKind { .. }) => {
                        self.pause(UNTIL_THE_KIND_EXISTS);
                        return Ok(Seen::Absent);
                    }
                    Err(error) => return self.broken(error),
                }
            }
            let Some(events) = self.events.as_mut() else {
                continue;
            };
            match pin!(events).next().await {
                Some(Ok(event)) => {
                    if let Some(seen) = self.sight(event) {
                        return Ok(seen);
                    }
                }
                Some(Err(error)) => {
                    if let Some(seen) = self.fault(error)? {
                        return Ok(seen);
                    }
                }
                None => self.events = None,
            }
        }
    }

    async fn begin(&mut self) -> Result<Events, Error> {
        let kind = self.cluster.kind_now(self.api_version, self.kind).await?;
        let api = self.cluster.api_for_one(&kind, self.namespace, self.name)?;
        let config = watcher::Config::default()
            .fields(&format!("metadata.name={}", self.name))
            .timeout(ONE_WATCH_SECONDS);
        Ok(watcher(api, config).boxed())
    }

    fn sight(&mut self, event: Event<DynamicObject>) -> Option<Seen> {
        match event {
            Event::Init => {
                self.listed = false;
                None
            }
            Event::InitApply(object) | Event::Apply(object) => {
                self.listed = true;
                Some(Seen::Present(Box::new(self.typed(object))))
            }
            Event::InitDone if self.listed => None,
            Event::InitDone | Event::Delete(_) => Some(Seen::Absent),
        }
    }

    /// Items of a list come without their type.
    fn typed(&self, mut object: DynamicObject) -> DynamicObject {
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: self.api_version.to_owned(),
            kind: self.kind.to_owned(),
        });
        object
    }

    fn fault(&mut self, error: watcher::Error) -> Result<Option<Seen>, Error> {
        let error = match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => error,
            // The watcher lists again by itself: 410 Gone is routine.
            watcher::Error::WatchError(status) if status.code == 410 => return Ok(None),
            watcher::Error::WatchError(status) => kube::Error::Api(status),
            watcher::Error::NoResourceVersion => {
                self.pause(AFTER_A_BREAK);
                return Ok(Some(Seen::Broken(
                    "the list came without a resourceVersion".to_owned(),
                )));
            }
        };
        if Answer::is_absence(&error) {
            // The CRD went away.
            self.cluster.forget_kind(self.api_version, self.kind);
            self.events = None;
            self.pause(UNTIL_THE_KIND_EXISTS);
            return Ok(Some(Seen::Absent));
        }
        let action = format!("watch {}", describe(self.kind, self.namespace, self.name));
        self.broken(Error::api(action, error)).map(Some)
    }

    fn broken(&mut self, error: Error) -> Result<Seen, Error> {
        match error {
            Error::Api { source, .. } if source.is_transient() => {
                self.pause(AFTER_A_BREAK);
                Ok(Seen::Broken(source.to_string()))
            }
            error => Err(error),
        }
    }

    fn pause(&mut self, how_long: Duration) {
        self.not_before = Some(Instant::now() + how_long);
    }
}
