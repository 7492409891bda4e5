//! Every credential of the installation: what it is for, where its copies live, and whether they agree.
//!
//! Values are compared in here and leave it only through [`Found::reveal`].

mod known;
mod read;
mod value;

use std::path::Path;

use blueprint_pipeline::Progress;
use futures::future::join_all;
use jiff::Timestamp;

use crate::context::Context;
use crate::error::Error;
use crate::installer::Work;

#[cfg(test)]
pub(crate) use known::Place;
pub use known::{Known, known};
pub use value::Value;

use read::Sources;

/// One credential with its copies as they are.
#[derive(Debug)]
pub struct Found {
    /// What is known of it without looking.
    pub known: Known,
    /// In the order of [`Known::places`]: the first one that is there is the one that wins.
    pub copies: Vec<Copy>,
    /// A rotation of it has begun and is not over.
    pub rotating: bool,
}

/// One copy.
#[derive(Debug)]
pub struct Copy {
    /// `file`, `secret`, `openbao`, `snapshot`.
    pub kind: &'static str,
    /// Where, in words; files as their path.
    pub place: String,
    /// Whether it is there.
    pub state: CopyState,
    /// Of a file: its permission bits.
    pub mode: Option<u32>,
    /// When it was last written.
    pub changed: Option<Timestamp>,
}

/// Whether a copy is there.
#[derive(Debug)]
pub enum CopyState {
    /// It is, with this value.
    Present(Value),
    /// It is not.
    Missing,
    /// It could not be looked at, or is not what it should be; why.
    Unknown(String),
}

/// What the copies say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agreement {
    /// Several, all the same.
    Agree,
    /// Several, and not all the same.
    Differ,
    /// One.
    Single,
    /// None.
    Missing,
    /// None that could be looked at.
    Unknown,
}

impl Found {
    /// Compares the copies that could be read.
    pub fn agreement(&self) -> Agreement {
        let mut values = self.values();
        let Some(first) = values.next() else {
            let unknown = |copy: &Copy| matches!(copy.state, CopyState::Unknown(_));
            return if self.copies.iter().any(unknown) {
                Agreement::Unknown
            } else {
                Agreement::Missing
            };
        };
        let mut agreement = Agreement::Single;
        for other in values {
            if other != first {
                return Agreement::Differ;
            }
            agreement = Agreement::Agree;
        }
        agreement
    }

    /// The value that counts: that of the first copy that is there.
    pub fn reveal(&self) -> Option<&Value> {
        self.values().next()
    }

    /// Where that one is.
    pub fn shown_from(&self) -> Option<&str> {
        self.copies
            .iter()
            .find(|copy| matches!(copy.state, CopyState::Present(_)))
            .map(|copy| copy.place.as_str())
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.copies.iter().filter_map(|copy| match &copy.state {
            CopyState::Present(value) => Some(value),
            CopyState::Missing | CopyState::Unknown(_) => None,
        })
    }
}

/// Looks at every credential. With `offline` (why the cluster is not asked) only files are read.
pub async fn survey(context: &Context, offline: Option<&str>) -> Result<Vec<Found>, Error> {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    let sources = Sources::open(work, offline).await;
    let extra = sources.other_chart_secrets().await;
    let all = known(&context.workspace, &extra);
    Ok(join_all(all.into_iter().map(|known| found(&sources, known))).await)
}

/// Looks at one by its name; `None` when no credential is called so.
pub async fn look(
    context: &Context,
    offline: Option<&str>,
    name: &str,
) -> Result<Option<Found>, Error> {
    let progress = Progress::silent();
    let work = Work {
        context,
        progress: &progress,
    };
    let sources = Sources::open(work, offline).await;
    let extra = sources.other_chart_secrets().await;
    let all = known(&context.workspace, &extra);
    match all.into_iter().find(|known| known.name == name) {
        Some(known) => Ok(Some(found(&sources, known).await)),
        None => Ok(None),
    }
}

async fn found(sources: &Sources<'_>, known: Known) -> Found {
    let copies = join_all(known.places.iter().map(|place| sources.copy(place))).await;
    let rotating = known.rotation.as_deref().is_some_and(Path::exists);
    Found {
        known,
        copies,
        rotating,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(state: CopyState) -> Copy {
        Copy {
            kind: "file",
            place: "x".to_owned(),
            state,
            mode: None,
            changed: None,
        }
    }

    fn present(text: &str) -> CopyState {
        CopyState::Present(Value::single(text.as_bytes()))
    }

    fn agreement(states: Vec<CopyState>) -> Agreement {
        Found {
            known: Known {
                name: "x".to_owned(),
                what: "x".to_owned(),
                places: Vec::new(),
                rotation: None,
            },
            copies: states.into_iter().map(copy).collect(),
            rotating: false,
        }
        .agreement()
    }

    #[test]
    fn copies_that_could_not_be_read_take_no_side() {
        let unknown = || CopyState::Unknown("sealed".to_owned());
        assert_eq!(
            agreement(vec![present("a"), unknown(), present("a")]),
            Agreement::Agree
        );
        assert_eq!(
            agreement(vec![present("a"), CopyState::Missing, present("b")]),
            Agreement::Differ
        );
        assert_eq!(agreement(vec![unknown(), present("a")]), Agreement::Single);
        assert_eq!(
            agreement(vec![unknown(), CopyState::Missing]),
            Agreement::Unknown
        );
        assert_eq!(agreement(vec![CopyState::Missing]), Agreement::Missing);
    }
}
