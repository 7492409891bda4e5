//! The declarative table: 13 steps people see, tasks the machine schedules.

use crate::nearest::nearest;

/// A numbered stage that people see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// 1-based.
    pub number: u8,
    /// For example `Install CloudNativePG + Cluster + roles and databases`.
    pub title: &'static str,
}

/// One schedulable piece of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// Unique, for example `cnpg-cluster`.
    pub id: &'static str,
    /// The number of the step it belongs to.
    pub step: u8,
    /// What it does, in a few words.
    pub title: &'static str,
    /// Ids of the tasks that must have succeeded before.
    pub needs: &'static [&'static str],
}

/// All steps and tasks, in the strict order of `--sequential`.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// In order of their numbers.
    pub steps: &'static [Step],
    /// In the order a strictly sequential run takes them.
    pub tasks: &'static [Task],
}

impl Table {
    /// A task by its id.
    pub fn task(&self, id: &str) -> Option<&'static Task> {
        self.tasks.iter().find(|task| task.id == id)
    }

    /// A step by its number.
    pub fn step(&self, number: u8) -> Option<&'static Step> {
        self.steps.iter().find(|step| step.number == number)
    }

    /// The same tasks for taking apart what they made: each needs those that needed it, and everything stands the other way round. Steps keep their numbers.
    ///
    /// A table is `'static`, so this one stays for as long as the program runs: make it once.
    #[must_use]
    pub fn reversed(&self) -> Self {
        let steps: Vec<Step> = self.steps.iter().rev().copied().collect();
        let tasks: Vec<Task> = self
            .tasks
            .iter()
            .rev()
            .map(|task| Task {
                needs: self.needed_by(task.id).leak(),
                ..*task
            })
            .collect();
        Self {
            steps: steps.leak(),
            tasks: tasks.leak(),
        }
    }

    /// The ids of the tasks that name `id` as a need, the last one first.
    fn needed_by(&self, id: &str) -> Vec<&'static str> {
        let needing = self.tasks.iter().rev();
        needing
            .filter(|task| task.needs.contains(&id))
            .map(|task| task.id)
            .collect()
    }

    /// Every task that needs one of `ids`, be it through others, and is not among them; in table order.
    pub fn dependents(&self, ids: &[&str]) -> Vec<&'static str> {
        let mut reached = ids.to_vec();
        let mut found = Vec::new();
        // One pass is enough: a need stands before what needs it.
        for task in self.tasks {
            if task.needs.iter().any(|need| reached.contains(need)) && !ids.contains(&task.id) {
                reached.push(task.id);
                found.push(task.id);
            }
        }
        found
    }

    /// The tasks of a step, in table order.
    pub fn tasks_of(&self, number: u8) -> impl Iterator<Item = &'static Task> {
        self.tasks.iter().filter(move |task| task.step == number)
    }
}

/// What a user asked to run: `--only`, `--from`, `--until`, `--skip`; ids of tasks or numbers of steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Just these (no needs are added).
    pub only: Vec<String>,
    /// From this step or task on (in table order).
    pub from: Option<String>,
    /// Up to and with this one.
    pub until: Option<String>,
    /// Without these.
    pub skip: Vec<String>,
}

/// A selection that names something that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// No such task or step.
    #[error("unknown task or step `{given}` in {flag}")]
    Unknown {
        /// The flag it was given to.
        flag: &'static str,
        /// What was given.
        given: String,
        /// Nearest known id.
        nearest: Option<&'static str>,
    },
    /// Nothing is left to run.
    #[error("the selection leaves no task to run")]
    Empty,
}

impl SelectionError {
    /// "did you mean …" or the list of ids.
    pub fn hint(&self, table: &Table) -> String {
        match self {
            Self::Unknown {
                nearest: Some(nearest),
                ..
            } => {
                format!("did you mean `{nearest}`? `blueprint graph` lists all tasks")
            }
            Self::Unknown { nearest: None, .. } => {
                let ids: Vec<_> = table.tasks.iter().map(|task| task.id).collect();
                format!(
                    "tasks are {}; steps are 1 to {}",
                    ids.join(", "),
                    table.steps.len()
                )
            }
            Self::Empty => "--from must not come after --until, and --skip must leave something: \
                            `blueprint graph` shows the order"
                .to_owned(),
        }
    }
}

impl Selection {
    /// The ids to run, in table order.
    pub fn resolve(&self, table: &Table) -> Result<Vec<&'static str>, SelectionError> {
        let only = places(table, "--only", &self.only)?;
        let skip = places(table, "--skip", &self.skip)?;
        let from = match &self.from {
            Some(given) => places_of(table, "--from", given)?
                .into_iter()
                .min()
                .unwrap_or(0),
            None => 0,
        };
        let until = match &self.until {
            Some(given) => places_of(table, "--until", given)?
                .into_iter()
                .max()
                .unwrap_or(0),
            None => table.tasks.len(),
        };
        let chosen: Vec<_> = table
            .tasks
            .iter()
            .enumerate()
            .filter(|(place, _)| (from..=until).contains(place))
            .filter(|(place, _)| self.only.is_empty() || only.contains(place))
            .filter(|(place, _)| !skip.contains(place))
            .map(|(_, task)| task.id)
            .collect();
        if chosen.is_empty() {
            Err(SelectionError::Empty)
        } else {
            Ok(chosen)
        }
    }
}

/// The places in the table of everything that was given to one flag.
fn places(
    table: &Table,
    flag: &'static str,
    given: &[String],
) -> Result<Vec<usize>, SelectionError> {
    let mut places = Vec::new();
    for one in given {
        places.extend(places_of(table, flag, one)?);
    }
    Ok(places)
}

/// The places of one task, or of all tasks of one step.
fn places_of(table: &Table, flag: &'static str, given: &str) -> Result<Vec<usize>, SelectionError> {
    let given = given.trim();
    let number = given.parse::<u8>().ok();
    let places: Vec<_> = table
        .tasks
        .iter()
        .enumerate()
        .filter(|(_, task)| task.id == given || Some(task.step) == number)
        .map(|(place, _)| place)
        .collect();
    if places.is_empty() {
        return Err(SelectionError::Unknown {
            flag,
            given: given.to_owned(),
            nearest: nearest(given, table.tasks.iter().map(|task| task.id)),
        });
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::{Selection, SelectionError};
    use crate::testing::HOUSE;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn reversed_a_table_is_taken_apart_from_its_last_task_on() {
        let reversed = HOUSE.reversed();
        let ids: Vec<_> = reversed.tasks.iter().map(|task| task.id).collect();
        assert_eq!(ids, ["paint", "roof", "pipes", "walls", "ground"]);
        let needs = |id: &str| reversed.task(id).unwrap().needs;
        assert_eq!(needs("walls"), ["paint", "roof"]);
        assert_eq!(needs("paint"), [""; 0]);
        assert!(crate::Graph::new(reversed).is_ok(), "the order can be run");
        let numbers: Vec<_> = reversed.steps.iter().map(|step| step.number).collect();
        assert_eq!(numbers, [4, 3, 2, 1]);
    }

    #[test]
    fn dependents_are_found_through_others_and_never_among_the_asked() {
        assert_eq!(HOUSE.dependents(&["walls"]), ["roof", "paint"]);
        assert_eq!(HOUSE.dependents(&["walls", "paint"]), ["roof"]);
        assert!(HOUSE.dependents(&["paint"]).is_empty());
    }

    #[test]
    fn nothing_asked_runs_everything_in_table_order() {
        let ids = Selection::default().resolve(&HOUSE).unwrap();
        assert_eq!(ids, ["ground", "walls", "pipes", "roof", "paint"]);
    }

    #[test]
    fn only_takes_tasks_and_whole_steps_without_their_needs() {
        let asked = Selection {
            only: strings(&["paint", "2"]),
            ..Selection::default()
        };
        assert_eq!(asked.resolve(&HOUSE).unwrap(), ["walls", "pipes", "paint"]);
    }

    #[test]
    fn from_and_until_take_both_ends() {
        let asked = Selection {
            from: Some("2".into()),
            until: Some("roof".into()),
            ..Selection::default()
        };
        assert_eq!(asked.resolve(&HOUSE).unwrap(), ["walls", "pipes", "roof"]);
    }

    #[test]
    fn until_a_step_takes_all_its_tasks() {
        let asked = Selection {
            until: Some("2".into()),
            ..Selection::default()
        };
        assert_eq!(asked.resolve(&HOUSE).unwrap(), ["ground", "walls", "pipes"]);
    }

    #[test]
    fn skip_takes_away() {
        let asked = Selection {
            skip: strings(&["2", "paint"]),
            ..Selection::default()
        };
        assert_eq!(asked.resolve(&HOUSE).unwrap(), ["ground", "roof"]);
    }

    #[test]
    fn an_unknown_name_says_the_flag_and_the_nearest() {
        let asked = Selection {
            skip: strings(&["wals"]),
            ..Selection::default()
        };
        let error = asked.resolve(&HOUSE).unwrap_err();
        assert_eq!(
            error,
            SelectionError::Unknown {
                flag: "--skip",
                given: "wals".into(),
                nearest: Some("walls")
            }
        );
        assert!(error.hint(&HOUSE).contains("did you mean `walls`"));
    }

    #[test]
    fn an_unknown_step_lists_what_there_is() {
        let asked = Selection {
            from: Some("9".into()),
            ..Selection::default()
        };
        let hint = asked.resolve(&HOUSE).unwrap_err().hint(&HOUSE);
        assert!(hint.contains("ground, walls, pipes, roof, paint"), "{hint}");
        assert!(hint.contains("1 to 4"), "{hint}");
    }

    #[test]
    fn a_selection_that_leaves_nothing_is_refused() {
        let asked = Selection {
            from: Some("paint".into()),
            until: Some("ground".into()),
            ..Selection::default()
        };
        assert_eq!(asked.resolve(&HOUSE), Err(SelectionError::Empty));
    }
}
