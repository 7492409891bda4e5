//! The SVG: boxes with their step's number and colour, curved arrows, a legend of the steps; readable on light and dark pages.

use std::fmt::Write as _;

use super::layers::{self, Layout, Node, Sizes, real};
use crate::graph::Graph;
use crate::table::{Step, Task};

const BOX_WIDTH: f64 = 172.0;
const BOX_HEIGHT: f64 = 62.0;
const LAYER_HEIGHT: f64 = 112.0;
const MARGIN: f64 = 24.0;
/// Characters of a title that fit on one line of a box.
const TITLE_CHARS: usize = 26;
const LEGEND_LINE: f64 = 22.0;
const LEGEND_COLUMN: f64 = 430.0;

const STYLE: &str = "<style>\n\
    .page { fill: #ffffff; }\n\
    .box { fill: #f8fafc; stroke-width: 1.4; }\n\
    .id { font: 600 13px ui-monospace, 'DejaVu Sans Mono', monospace; fill: #0f172a; }\n\
    .title { font: 11px system-ui, 'DejaVu Sans', sans-serif; fill: #475569; }\n\
    .number { font: 700 11px system-ui, 'DejaVu Sans', sans-serif; fill: #ffffff; text-anchor: middle; }\n\
    .legend { font: 12px system-ui, 'DejaVu Sans', sans-serif; fill: #334155; }\n\
    .arrow { fill: none; stroke: #94a3b8; stroke-width: 1.5; }\n\
    .tip { fill: #94a3b8; }\n\
    @media (prefers-color-scheme: dark) {\n\
    .page { fill: #0d1117; }\n\
    .box { fill: #161b22; }\n\
    .id { fill: #f0f6fc; }\n\
    .title { fill: #9da7b3; }\n\
    .legend { fill: #c9d1d9; }\n\
    .arrow { stroke: #6e7681; }\n\
    .tip { fill: #6e7681; }\n\
    }\n\
    </style>\n";

/// A self-contained SVG with its own layout (layers by longest path), no external program needed. Needs that follow from others get no arrow.
pub fn svg(graph: &Graph) -> String {
    let table = graph.table();
    let sizes = Sizes {
        box_width: BOX_WIDTH,
        bend_width: 14.0,
        gap: 24.0,
    };
    let layout = layers::layout(graph, &sizes);
    let legend_columns = if layout.width >= 2.0 * LEGEND_COLUMN {
        2
    } else {
        1
    };
    let legend_rows = table.steps.len().div_ceil(legend_columns);
    let body = MARGIN + real(layout.layers) * LAYER_HEIGHT - (LAYER_HEIGHT - BOX_HEIGHT);
    let legend = body + MARGIN + LEGEND_LINE;
    let width = layout.width.max(LEGEND_COLUMN) + 2.0 * MARGIN;
    let height = legend + real(legend_rows) * LEGEND_LINE + MARGIN / 2.0;

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"Tasks and what they need\">\n{STYLE}\
         <rect class=\"page\" width=\"{width:.0}\" height=\"{height:.0}\" rx=\"12\"/>\n"
    );
    for arrow in &layout.arrows {
        svg.push_str(&draw_arrow(arrow, &layout));
    }
    for (node, kind) in layout.nodes.iter().enumerate() {
        if let Node::Task(place) = *kind {
            let left = MARGIN + layout.x[node] - BOX_WIDTH / 2.0;
            svg.push_str(&draw_box(
                &table.tasks[place],
                left,
                top(layout.layer[node]),
            ));
        }
    }
    for (place, step) in table.steps.iter().enumerate() {
        let left = MARGIN + real(place / legend_rows) * LEGEND_COLUMN;
        svg.push_str(&draw_legend(
            *step,
            left,
            legend + real(place % legend_rows) * LEGEND_LINE,
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

fn top(layer: usize) -> f64 {
    MARGIN + real(layer) * LAYER_HEIGHT
}

fn draw_box(task: &Task, left: f64, top: f64) -> String {
    let colour = colour(task.step);
    let mut text = format!(
        "<g><title>{}</title><rect class=\"box\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{BOX_WIDTH}\" \
         height=\"{BOX_HEIGHT}\" rx=\"10\" stroke=\"{colour}\"/>\n{}",
        escaped(task.title),
        badge(task.step, left + 18.0, top + 17.0)
    );
    writeln!(
        text,
        "<text class=\"id\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        left + 34.0,
        top + 21.5,
        escaped(task.id)
    )
    .ok();
    for (line, words) in two_lines(task.title).iter().enumerate() {
        writeln!(
            text,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left + 10.0,
            top + 39.0 + real(line) * 14.0,
            escaped(words)
        )
        .ok();
    }
    text.push_str("</g>\n");
    text
}

fn draw_legend(step: Step, left: f64, middle: f64) -> String {
    format!(
        "{}<text class=\"legend\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\n",
        badge(step.number, left + 10.0, middle - 4.0),
        left + 28.0,
        middle,
        escaped(step.title)
    )
}

/// The step's number on its colour.
fn badge(number: u8, x: f64, y: f64) -> String {
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"9.5\" fill=\"{}\"/>\
         <text class=\"number\" x=\"{x:.1}\" y=\"{:.1}\">{number}</text>\n",
        colour(number),
        y + 4.0
    )
}

/// One colour a step: hues a golden angle apart, so that neighbours differ; dark enough for white digits, bright enough for a dark page.
fn colour(step: u8) -> String {
    let hue = (f64::from(step) * 137.5 + 75.0) % 360.0;
    format!("hsl({hue:.0}, 55%, 45%)")
}

/// Down from the box that is needed, straight through each bend's layer, into the top of the box that needs it.
fn draw_arrow(arrow: &[usize], layout: &Layout) -> String {
    let (Some((&first, rest)), Some(&last)) = (arrow.split_first(), arrow.last()) else {
        return String::new();
    };
    let x = |node: usize| MARGIN + layout.x[node];
    let mut at = (x(first), top(layout.layer[first]) + BOX_HEIGHT);
    let mut path = format!("M{:.1},{:.1}", at.0, at.1);
    for &node in rest {
        let entry = (
            x(node),
            top(layout.layer[node]) - if node == last { 7.0 } else { 0.0 },
        );
        let pull = (entry.1 - at.1) / 2.0;
        write!(
            path,
            " C{:.1},{:.1} {:.1},{:.1} {:.1},{:.1}",
            at.0,
            at.1 + pull,
            entry.0,
            entry.1 - pull,
            entry.0,
            entry.1
        )
        .ok();
        at = entry;
        if node != last {
            at.1 += BOX_HEIGHT;
            write!(path, " V{:.1}", at.1).ok();
        }
    }
    let (x, y) = (x(last), top(layout.layer[last]));
    format!(
        "<path class=\"arrow\" d=\"{path}\"/>\n<path class=\"tip\" d=\"M{x:.1},{y:.1} l-4.5,-8 h9 z\"/>\n"
    )
}

/// A title on at most two lines; what does not fit ends in `…` (the whole of it is the box's tooltip).
fn two_lines(title: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in title.split_whitespace() {
        let on_last = lines.len() == 2;
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= TITLE_CHARS {
            line.push(' ');
            line.push_str(word);
        } else if !on_last {
            lines.push(word.to_owned());
        } else {
            line.push('…');
            break;
        }
    }
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_title_takes_two_lines_and_says_when_it_was_cut() {
        assert_eq!(two_lines("GitLab"), ["GitLab"]);
        assert_eq!(
            two_lines("directories and volumes that outlive the cluster"),
            ["directories and volumes", "that outlive the cluster"]
        );
        let cut =
            two_lines("one title that is far longer than what two lines of a box can ever hold");
        assert_eq!(cut.len(), 2);
        assert!(cut[1].ends_with('…'));
    }

    #[test]
    fn steps_beside_each_other_differ_in_colour() {
        for step in 1..13 {
            assert_ne!(colour(step), colour(step + 1));
        }
    }

    #[test]
    fn titles_cannot_break_the_markup() {
        assert_eq!(escaped("a < b & \"c\""), "a &lt; b &amp; &quot;c&quot;");
    }
}
