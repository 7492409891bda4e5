//! Which task may start next: Kahn's algorithm over the tasks that were selected.

use std::collections::BTreeSet;

use crate::graph::Graph;

/// How a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stand {
    /// Not part of this run: what needs it takes it for done.
    Outside,
    /// Its needs are not met yet, or it waits for a free place.
    Pending,
    Started,
    Succeeded,
    Failed,
    /// With the reason.
    Skipped(String),
}

/// The selected tasks by place in the table, and how each stands.
#[derive(Debug)]
pub(crate) struct Schedule<'a> {
    graph: &'a Graph,
    stands: Vec<Stand>,
    ready: BTreeSet<usize>,
}

impl<'a> Schedule<'a> {
    pub(crate) fn new(graph: &'a Graph, selected: &[&str]) -> Self {
        let stands = graph
            .table()
            .tasks
            .iter()
            .map(|task| {
                if selected.contains(&task.id) {
                    Stand::Pending
                } else {
                    Stand::Outside
                }
            })
            .collect();
        let mut schedule = Self {
            graph,
            stands,
            ready: BTreeSet::new(),
        };
        schedule.refresh();
        schedule
    }

    /// Takes the first task in table order whose needs are met. With one place at a time this is the strict order of the table, because every need
    /// stands before what needs it (checked by [`Graph::new`]).
    pub(crate) fn start_next(&mut self) -> Option<usize> {
        let place = self.ready.pop_first()?;
        self.stands[place] = Stand::Started;
        Some(place)
    }

    pub(crate) fn succeeded(&mut self, place: usize) {
        self.stands[place] = Stand::Succeeded;
        self.refresh();
    }

    /// Marks a failure and answers everything that will not run because of it, with the reason.
    pub(crate) fn failed(&mut self, place: usize) -> Vec<(usize, String)> {
        self.stands[place] = Stand::Failed;
        let mut skipped = Vec::new();
        // One pass is enough: a need stands before what needs it.
        for later in 0..self.stands.len() {
            if self.stands[later] != Stand::Pending {
                continue;
            }
            if let Some(reason) = self.reason(later) {
                self.stands[later] = Stand::Skipped(reason.clone());
                skipped.push((later, reason));
            }
        }
        skipped
    }

    /// Everything that has not started is given up.
    pub(crate) fn give_up(&mut self, reason: &str) -> Vec<(usize, String)> {
        self.ready.clear();
        let mut skipped = Vec::new();
        for (place, stand) in self.stands.iter_mut().enumerate() {
            if *stand == Stand::Pending {
                *stand = Stand::Skipped(reason.to_owned());
                skipped.push((place, reason.to_owned()));
            }
        }
        skipped
    }

    /// Why the task at `place` cannot run: `needs gitlab, which needs redis, which failed`.
    fn reason(&self, place: usize) -> Option<String> {
        self.graph.needs(place).iter().find_map(|&need| {
            let id = self.graph.table().tasks[need].id;
            match &self.stands[need] {
                Stand::Failed => Some(format!("needs {id}, which failed")),
                Stand::Skipped(reason) => Some(format!("needs {id}, which {reason}")),
                _ => None,
            }
        })
    }

    fn refresh(&mut self) {
        let met = |need: &usize| matches!(self.stands[*need], Stand::Outside | Stand::Succeeded);
        self.ready = (0..self.stands.len())
            .filter(|&place| self.stands[place] == Stand::Pending)
            .filter(|&place| self.graph.needs(place).iter().all(met))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::Schedule;
    use crate::graph::Graph;
    use crate::testing::HOUSE;

    const ALL: [&str; 5] = ["ground", "walls", "pipes", "roof", "paint"];

    #[test]
    fn a_need_outside_the_selection_counts_as_met() {
        let graph = Graph::new(HOUSE).unwrap();
        let mut schedule = Schedule::new(&graph, &["walls", "roof"]);
        assert_eq!(schedule.start_next(), Some(1));
        assert_eq!(schedule.start_next(), None, "the roof needs the walls");
        schedule.succeeded(1);
        assert_eq!(schedule.start_next(), Some(3));
    }

    #[test]
    fn a_failure_skips_the_whole_chain_with_its_reason() {
        let graph = Graph::new(HOUSE).unwrap();
        let mut schedule = Schedule::new(&graph, &ALL);
        assert_eq!(schedule.start_next(), Some(0));
        schedule.succeeded(0);
        assert_eq!(schedule.start_next(), Some(1));
        let skipped = schedule.failed(1);
        assert_eq!(
            skipped,
            [
                (3, "needs walls, which failed".to_owned()),
                (4, "needs walls, which failed".to_owned())
            ]
        );
        assert_eq!(
            schedule.start_next(),
            Some(2),
            "pipes do not need the walls"
        );
    }

    #[test]
    fn a_chain_names_each_link() {
        let graph = Graph::new(HOUSE).unwrap();
        let mut schedule = Schedule::new(&graph, &ALL);
        assert_eq!(schedule.start_next(), Some(0));
        let skipped = schedule.failed(0);
        assert_eq!(
            skipped[2],
            (
                3,
                "needs walls, which needs ground, which failed".to_owned()
            )
        );
    }
}
