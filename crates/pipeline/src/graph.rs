//! A checked table: every need known, no id twice, no cycle, and an order that a sequential run can take.

use crate::nearest::nearest;
use crate::table::Table;

/// What is wrong with a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A need that no task has as its id.
    #[error("task `{task}` needs `{need}`, which is not in the table")]
    UnknownNeed {
        /// Who needs it.
        task: String,
        /// What is missing.
        need: String,
        /// Nearest known id.
        nearest: Option<String>,
    },
    /// Two tasks with one id.
    #[error("two tasks are called `{0}`")]
    Duplicate(String),
    /// The tasks of one cycle, in order; the last needs the first.
    #[error("tasks need each other in a circle: {}", .0.join(" → "))]
    Cycle(Vec<String>),
    /// A task of a step that the table does not list.
    #[error("task `{task}` belongs to step {step}, which is not in the table")]
    UnknownStep {
        /// The task.
        task: String,
        /// The number.
        step: u8,
    },
    /// A task that stands before one it needs: a sequential run takes the table's order.
    #[error("task `{task}` stands before `{need}`, which it needs")]
    OutOfOrder {
        /// The task.
        task: String,
        /// What it needs.
        need: String,
    },
}

impl GraphError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::UnknownNeed {
                nearest: Some(nearest),
                ..
            } => format!("did you mean `{nearest}`?"),
            Self::UnknownNeed { need, .. } => {
                format!("add a task `{need}` to the table or take the need away")
            }
            Self::Duplicate(id) => format!("give one of the two tasks `{id}` another id"),
            Self::Cycle(_) => "one of these needs must go".to_owned(),
            Self::UnknownStep { step, .. } => {
                format!("add step {step} to the table or correct the number")
            }
            Self::OutOfOrder { task, need } => {
                format!("move `{task}` behind `{need}` in the table")
            }
        }
    }
}

/// The checked graph. Tasks are named by their place in the table.
#[derive(Debug, Clone)]
pub struct Graph {
    table: Table,
    needs: Vec<Vec<usize>>,
}

impl Graph {
    /// Checks `table`.
    pub fn new(table: Table) -> Result<Self, GraphError> {
        for (place, task) in table.tasks.iter().enumerate() {
            if table
                .tasks
                .iter()
                .take(place)
                .any(|earlier| earlier.id == task.id)
            {
                return Err(GraphError::Duplicate(task.id.to_owned()));
            }
            if table.step(task.step).is_none() {
                return Err(GraphError::UnknownStep {
                    task: task.id.to_owned(),
                    step: task.step,
                });
            }
        }
        let needs = places_of_needs(&table)?;
        if let Some(cycle) = cycle(&needs) {
            let ids = cycle
                .into_iter()
                .map(|place| table.tasks[place].id.to_owned())
                .collect();
            return Err(GraphError::Cycle(ids));
        }
        for (place, needed) in needs.iter().enumerate() {
            if let Some(&later) = needed.iter().find(|&&need| need > place) {
                return Err(GraphError::OutOfOrder {
                    task: table.tasks[place].id.to_owned(),
                    need: table.tasks[later].id.to_owned(),
                });
            }
        }
        Ok(Self { table, needs })
    }

    /// The table it was made of.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Places of the tasks that the task at `place` needs.
    pub(crate) fn needs(&self, place: usize) -> &[usize] {
        &self.needs[place]
    }

    /// The same without those that follow from another need; what is drawn.
    pub(crate) fn direct_needs(&self, place: usize) -> Vec<usize> {
        let follows = |need: usize| {
            self.needs[place]
                .iter()
                .any(|&other| other != need && self.reaches(other, need))
        };
        self.needs[place]
            .iter()
            .copied()
            .filter(|&need| !follows(need))
            .collect()
    }

    /// Whether the task at `from` needs the one at `to`, be it through others.
    fn reaches(&self, from: usize, to: usize) -> bool {
        self.needs[from]
            .iter()
            .any(|&need| need == to || self.reaches(need, to))
    }
}

fn places_of_needs(table: &Table) -> Result<Vec<Vec<usize>>, GraphError> {
    let place_of = |task: &str, need: &str| {
        table
            .tasks
            .iter()
            .position(|other| other.id == need)
            .ok_or_else(|| GraphError::UnknownNeed {
                task: task.to_owned(),
                need: need.to_owned(),
                nearest: nearest(need, table.tasks.iter().map(|other| other.id)).map(str::to_owned),
            })
    };
    table
        .tasks
        .iter()
        .map(|task| {
            task.needs
                .iter()
                .map(|need| place_of(task.id, need))
                .collect()
        })
        .collect()
}

/// How far the search for a cycle has come with a task.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Unseen,
    OnPath,
    Clear,
}

/// The tasks of one cycle, each needing the next and the last the first; `None` when there is none.
fn cycle(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut marks = vec![Mark::Unseen; needs.len()];
    let mut path = Vec::new();
    (0..needs.len()).find_map(|start| cycle_from(start, needs, &mut marks, &mut path))
}

fn cycle_from(
    place: usize,
    needs: &[Vec<usize>],
    marks: &mut [Mark],
    path: &mut Vec<usize>,
) -> Option<Vec<usize>> {
    match marks[place] {
        Mark::Clear => return None,
        Mark::OnPath => {
            let first = path
                .iter()
                .position(|&on_path| on_path == place)
                .unwrap_or(0);
            return Some(path[first..].to_vec());
        }
        Mark::Unseen => {}
    }
    marks[place] = Mark::OnPath;
    path.push(place);
    for &need in &needs[place] {
        if let Some(found) = cycle_from(need, needs, marks, path) {
            return Some(found);
        }
    }
    path.pop();
    marks[place] = Mark::Clear;
    None
}

#[cfg(test)]
mod tests {
    use super::{Graph, GraphError};
    use crate::table::{Step, Table, Task};
    use crate::testing::{HOUSE, task};

    const STEPS: &[Step] = &[Step {
        number: 1,
        title: "one",
    }];

    fn error(tasks: &'static [Task]) -> GraphError {
        Graph::new(Table {
            steps: STEPS,
            tasks,
        })
        .unwrap_err()
    }

    #[test]
    fn a_good_table_passes() {
        let graph = Graph::new(HOUSE).unwrap();
        assert_eq!(graph.needs(4), [1, 2, 3]);
    }

    #[test]
    fn needs_that_follow_from_others_are_not_direct() {
        let graph = Graph::new(HOUSE).unwrap();
        assert_eq!(graph.direct_needs(4), [2, 3], "walls follow from the roof");
    }

    #[test]
    fn an_unknown_need_names_task_need_and_nearest() {
        let error = error(const { &[task("redis", 1, &[]), task("gitlab", 1, &["redsi"])] });
        assert_eq!(
            error.to_string(),
            "task `gitlab` needs `redsi`, which is not in the table"
        );
        assert_eq!(error.hint(), "did you mean `redis`?");
    }

    #[test]
    fn an_id_twice_is_named() {
        let error = error(const { &[task("a", 1, &[]), task("b", 1, &[]), task("a", 1, &[])] });
        assert_eq!(error, GraphError::Duplicate("a".into()));
    }

    #[test]
    fn a_cycle_is_named_with_all_its_tasks_and_no_other() {
        let error = error(
            const {
                &[
                    task("outside", 1, &["a"]),
                    task("a", 1, &["b"]),
                    task("b", 1, &["c"]),
                    task("c", 1, &["a"]),
                ]
            },
        );
        assert_eq!(
            error,
            GraphError::Cycle(vec!["a".into(), "b".into(), "c".into()])
        );
        assert_eq!(
            error.to_string(),
            "tasks need each other in a circle: a → b → c"
        );
    }

    #[test]
    fn a_task_that_needs_itself_is_a_cycle() {
        let error = error(const { &[task("a", 1, &["a"])] });
        assert_eq!(error, GraphError::Cycle(vec!["a".into()]));
    }

    #[test]
    fn a_task_of_an_unknown_step_is_named() {
        let error = error(const { &[task("a", 7, &[])] });
        assert_eq!(
            error,
            GraphError::UnknownStep {
                task: "a".into(),
                step: 7
            }
        );
    }

    #[test]
    fn an_order_that_a_sequential_run_cannot_take_is_named() {
        let error = error(const { &[task("a", 1, &["b"]), task("b", 1, &[])] });
        assert_eq!(
            error.to_string(),
            "task `a` stands before `b`, which it needs"
        );
    }
}
