//! The graph as text, as Graphviz dot and as SVG.

mod layers;
mod picture;

use std::fmt::Write as _;

use crate::graph::Graph;
use crate::table::Task;

pub use picture::svg;

/// Lines of text stay within a terminal of 80 columns.
const COLUMNS: usize = 80;

/// A text table: step, task, needs.
pub fn text(graph: &Graph) -> String {
    let table = graph.table();
    let width = table
        .tasks
        .iter()
        .map(|task| task.id.len())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for step in table.steps {
        writeln!(text, "{:>2}  {}", step.number, step.title).ok();
        for task in table.tasks_of(step.number) {
            let mut first = format!("    {:<width$}", task.id);
            for line in needs_in_lines(task, width) {
                writeln!(text, "{first}  {line}").ok();
                first = " ".repeat(first.len());
            }
        }
    }
    text
}

/// `← a, b, c`, broken so that each line ends within the columns.
fn needs_in_lines(task: &Task, width: usize) -> Vec<String> {
    let room = COLUMNS - 4 - width - 2;
    let mut lines = vec![if task.needs.is_empty() { "·" } else { "←" }.to_owned()];
    for (place, need) in task.needs.iter().enumerate() {
        let comma = if place + 1 < task.needs.len() {
            ","
        } else {
            ""
        };
        let word = format!(" {need}{comma}");
        let full = lines
            .last()
            .is_some_and(|line| line.chars().count() + word.len() > room);
        if full {
            lines.push(" ".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(&word);
        }
    }
    lines
}

/// Graphviz source.
pub fn dot(graph: &Graph) -> String {
    let table = graph.table();
    let mut text = String::from(
        "digraph blueprint {\n  rankdir=TB;\n  node [shape=box, style=rounded, fontname=\"sans-serif\"];\n",
    );
    for step in table.steps {
        writeln!(text, "  subgraph cluster_{} {{", step.number).ok();
        writeln!(
            text,
            "    label={};",
            quoted(&format!("{} {}", step.number, step.title))
        )
        .ok();
        for task in table.tasks_of(step.number) {
            writeln!(
                text,
                "    {} [tooltip={}];",
                quoted(task.id),
                quoted(task.title)
            )
            .ok();
        }
        text.push_str("  }\n");
    }
    for task in table.tasks {
        for need in task.needs {
            writeln!(text, "  {} -> {};", quoted(need), quoted(task.id)).ok();
        }
    }
    text.push_str("}\n");
    text
}

/// A dot string: only the quote and the backslash have a meaning in it.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Step, Table};
    use crate::testing::{HOUSE, task};

    fn house() -> Graph {
        Graph::new(HOUSE).unwrap()
    }

    #[test]
    fn text_of_the_house() {
        insta::assert_snapshot!(text(&house()));
    }

    #[test]
    fn dot_of_the_house() {
        insta::assert_snapshot!(dot(&house()));
    }

    #[test]
    fn svg_of_the_house() {
        insta::assert_snapshot!(svg(&house()));
    }

    #[test]
    fn many_needs_are_broken_within_eighty_columns() {
        const IDS: [&str; 6] = [
            "first-of-the-needs",
            "second-of-the-needs",
            "third-of-the-needs",
            "fourth-of-the-needs",
            "fifth-of-the-needs",
            "sixth-of-the-needs",
        ];
        let tasks = const {
            &[
                task(IDS[0], 1, &[]),
                task(IDS[1], 1, &[]),
                task(IDS[2], 1, &[]),
                task(IDS[3], 1, &[]),
                task(IDS[4], 1, &[]),
                task(IDS[5], 1, &[]),
                task("all", 1, &IDS),
            ]
        };
        let table = Table {
            steps: &[Step {
                number: 1,
                title: "One",
            }],
            tasks,
        };
        let text = text(&Graph::new(table).unwrap());
        assert!(
            text.lines().all(|line| line.chars().count() <= COLUMNS),
            "{text}"
        );
        for id in IDS {
            assert!(text.matches(id).count() >= 2, "{id} stands in:\n{text}");
        }
    }

    #[test]
    fn quotes_in_titles_do_not_end_a_dot_string() {
        assert_eq!(quoted("a \"b\" \\"), "\"a \\\"b\\\" \\\\\"");
    }
}
