//! What a point does in a test build.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Which point ends the process.
const DIE_AT: &str = "BLUEPRINT_FAILPOINT";
/// Where the points are listed.
const LOG: &str = "BLUEPRINT_FAILPOINT_LOG";

/// A point is reached. Comes back, unless the process was told to end here.
pub fn reach(moment: &str, effect: &str, what: fmt::Arguments<'_>) {
    static RUN: OnceLock<Mutex<Run>> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        Mutex::new(Run::new(
            std::env::var(DIE_AT).ok().as_deref(),
            std::env::var_os(LOG).map(PathBuf::from),
        ))
    });
    let kind = format!("{} {effect} ", moment.replace('_', " "));
    let point = format!("{kind}{what}");
    let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
    if run.dies_at(&kind, &point) {
        // Like SIGKILL: no destructor runs, no buffer is flushed, no other thread gets any further.
        std::process::abort();
    }
}

/// The order to die.
#[derive(Debug, PartialEq, Eq)]
enum Order {
    Never,
    /// The point of this number in the run, from 1.
    Number(u64),
    /// A point by its words, the time of this number that it is reached.
    Named(String, u64),
    /// The first point that the file does not name, as long as it names fewer than this number of the same kind.
    New(usize, PathBuf),
}

impl Order {
    fn of(text: Option<&str>) -> Self {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Self::Never;
        };
        if let Ok(number) = text.parse() {
            return Self::Number(number);
        }
        if let Some(file) = text.strip_prefix("new:") {
            return Self::New(usize::MAX, PathBuf::from(file));
        }
        let few = text
            .strip_prefix("few:")
            .and_then(|rest| rest.split_once(':'));
        if let Some((Ok(most), file)) = few.map(|(most, file)| (most.parse(), file)) {
            return Self::New(most, PathBuf::from(file));
        }
        match text
            .rsplit_once('#')
            .map(|(point, number)| (point, number.parse()))
        {
            Some((point, Ok(number))) => Self::Named(point.to_owned(), number),
            _ => Self::Named(text.to_owned(), 1),
        }
    }
}

/// The points of this process so far.
struct Run {
    order: Order,
    log: Option<PathBuf>,
    /// Points that an earlier process died at.
    died_at: BTreeSet<String>,
    reached: u64,
    times: BTreeMap<String, u64>,
}

impl Run {
    fn new(order: Option<&str>, log: Option<PathBuf>) -> Self {
        let order = Order::of(order);
        let died_at = match &order {
            Order::New(_, file) => fs::read_to_string(file)
                .unwrap_or_default()
                .lines()
                .map(str::to_owned)
                .collect(),
            _ => BTreeSet::new(),
        };
        Self {
            order,
            log,
            died_at,
            reached: 0,
            times: BTreeMap::new(),
        }
    }

    fn dies_at(&mut self, kind: &str, point: &str) -> bool {
        self.reached += 1;
        let times = self.times.entry(point.to_owned()).or_default();
        *times += 1;
        if let Some(log) = &self.log {
            note(log, point);
        }
        match &self.order {
            Order::Never => false,
            Order::Number(number) => self.reached == *number,
            Order::Named(name, number) => name == point && times == number,
            Order::New(most, _)
                if self.died_at.contains(point)
                    || self
                        .died_at
                        .iter()
                        .filter(|other| other.starts_with(kind))
                        .count()
                        >= *most =>
            {
                false
            }
            Order::New(_, file) => {
                note(file, point);
                true
            }
        }
    }
}

/// A sweep whose list cannot be written would never end: that ends the process with a word.
fn note(file: &Path, point: &str) {
    let written = add_line(file, point);
    assert!(
        written.is_ok(),
        "failed to add a failpoint to {}: {written:?}",
        file.display()
    );
}

fn add_line(file: &Path, point: &str) -> io::Result<()> {
    let mut file = File::options().append(true).create(true).open(file)?;
    // No fsync: the process ends, the machine does not.
    file.write_all(format!("{point}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dies(order: &str, points: &[&str]) -> Option<usize> {
        let mut run = Run::new(Some(order), None);
        points.iter().position(|point| {
            let kind = point.rsplit_once(' ').map(|(kind, _)| format!("{kind} "));
            run.dies_at(&kind.unwrap_or_default(), point)
        })
    }

    const WAY: [&str; 4] = [
        "before apply a",
        "after apply a",
        "before apply a",
        "before helm b",
    ];

    #[test]
    fn by_number_by_name_and_by_the_time_it_comes() {
        assert_eq!(dies("3", &WAY), Some(2));
        assert_eq!(dies("5", &WAY), None);
        assert_eq!(dies("before apply a", &WAY), Some(0));
        assert_eq!(dies("before apply a#2", &WAY), Some(2));
        assert_eq!(dies("before helm b", &WAY), Some(3));
        assert_eq!(dies("", &WAY), None);
    }

    #[test]
    fn a_few_of_each_kind_are_enough() {
        let file =
            std::env::temp_dir().join(format!("blueprint-failpoint-few-{}", std::process::id()));
        let order = format!("few:1:{}", file.display());
        let way = [
            "before apply a",
            "after apply a",
            "before apply b",
            "before helm b",
        ];
        let deaths: Vec<_> = (0..4).map(|_| dies(&order, &way)).collect();
        fs::remove_file(&file).ok();
        assert_eq!(deaths, [Some(0), Some(1), Some(3), None]);
    }

    #[test]
    fn run_again_and_again_it_dies_at_every_point_once() {
        let file = std::env::temp_dir().join(format!("blueprint-failpoint-{}", std::process::id()));
        let order = format!("new:{}", file.display());
        let deaths: Vec<_> = (0..4).map(|_| dies(&order, &WAY)).collect();
        let listed = fs::read_to_string(&file);
        fs::remove_file(&file).ok();
        assert_eq!(deaths, [Some(0), Some(1), Some(3), None]);
        assert_eq!(
            listed.ok().as_deref(),
            Some("before apply a\nafter apply a\nbefore helm b\n")
        );
    }
}
