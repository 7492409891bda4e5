//! A small table and its pieces, for this crate's tests.

use std::sync::{Arc, Mutex};

use crate::event::{Event, EventSink};
use crate::table::{Step, Table, Task};

pub(crate) const fn task(id: &'static str, step: u8, needs: &'static [&'static str]) -> Task {
    Task {
        id,
        step,
        title: id,
        needs,
    }
}

/// Five tasks in four steps; `paint` also needs what follows from its other needs.
pub(crate) const HOUSE: Table = Table {
    steps: &[
        Step {
            number: 1,
            title: "Dig",
        },
        Step {
            number: 2,
            title: "Build",
        },
        Step {
            number: 3,
            title: "Cover",
        },
        Step {
            number: 4,
            title: "Finish",
        },
    ],
    tasks: &[
        task("ground", 1, &[]),
        task("walls", 2, &["ground"]),
        task("pipes", 2, &["ground"]),
        task("roof", 3, &["walls"]),
        task("paint", 4, &["walls", "pipes", "roof"]),
    ],
};

/// Keeps every event, in the order in which it came.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<Event>>>);

impl Kept {
    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }
}

impl EventSink for Kept {
    fn take(&mut self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}
