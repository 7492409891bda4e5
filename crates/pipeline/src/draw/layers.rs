//! Where each task of the picture goes: layers by longest path, few crossings inside them, straight lines where there is room.
//!
//! The classic layered layout (Sugiyama, Tagawa and Toda, 1981) in its simplest form: an arrow over several layers gets a bend in each of them, bends
//! are ordered and placed like boxes, only narrower.

use crate::graph::Graph;

/// Times the order of the layers is improved downwards and upwards.
const SWEEPS: usize = 12;
/// Times the places are pulled towards their neighbours.
const PULLS: usize = 60;

/// Sizes in the picture's units.
pub(super) struct Sizes {
    pub(super) box_width: f64,
    pub(super) bend_width: f64,
    pub(super) gap: f64,
}

/// A box, or the bend of a long arrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    Task(usize),
    Bend,
}

/// One arrow: its nodes from what is needed to what needs it.
pub(super) type Arrow = Vec<usize>;

/// The finished layout. Nodes are named by their index.
pub(super) struct Layout {
    pub(super) nodes: Vec<Node>,
    /// Layer of each node.
    pub(super) layer: Vec<usize>,
    /// Centre of each node, from the left edge.
    pub(super) x: Vec<f64>,
    pub(super) arrows: Vec<Arrow>,
    pub(super) layers: usize,
    pub(super) width: f64,
}

/// Lays the graph out.
pub(super) fn layout(graph: &Graph, sizes: &Sizes) -> Layout {
    let mut net = Net::of(graph);
    net.order();
    let x = net.place(sizes);
    let half = |node: usize| net.width(node, sizes) / 2.0;
    let left = (0..x.len())
        .map(|node| x[node] - half(node))
        .fold(f64::INFINITY, f64::min);
    let right = (0..x.len())
        .map(|node| x[node] + half(node))
        .fold(f64::NEG_INFINITY, f64::max);
    Layout {
        x: x.iter().map(|at| at - left).collect(),
        layers: net.rows.len(),
        width: (right - left).max(0.0),
        nodes: net.nodes,
        layer: net.layer,
        arrows: net.arrows,
    }
}

/// Nodes with their neighbours in the layers above and below.
struct Net {
    nodes: Vec<Node>,
    layer: Vec<usize>,
    above: Vec<Vec<usize>>,
    below: Vec<Vec<usize>>,
    arrows: Vec<Arrow>,
    /// Nodes of each layer from left to right.
    rows: Vec<Vec<usize>>,
}

impl Net {
    fn of(graph: &Graph) -> Self {
        let count = graph.table().tasks.len();
        let mut depth = vec![0; count];
        for place in 0..count {
            depth[place] = graph
                .needs(place)
                .iter()
                .map(|&need| depth[need] + 1)
                .max()
                .unwrap_or(0);
        }
        let mut net = Self {
            nodes: (0..count).map(Node::Task).collect(),
            layer: depth.clone(),
            above: vec![Vec::new(); count],
            below: vec![Vec::new(); count],
            arrows: Vec::new(),
            rows: Vec::new(),
        };
        for place in 0..count {
            for need in graph.direct_needs(place) {
                net.add_arrow(need, place);
            }
        }
        net.rows = vec![Vec::new(); net.layer.iter().max().map_or(0, |last| last + 1)];
        for node in 0..net.nodes.len() {
            net.rows[net.layer[node]].push(node);
        }
        net
    }

    fn add_arrow(&mut self, from: usize, to: usize) {
        let mut arrow = vec![from];
        for layer in self.layer[from] + 1..self.layer[to] {
            self.nodes.push(Node::Bend);
            self.layer.push(layer);
            self.above.push(Vec::new());
            self.below.push(Vec::new());
            arrow.push(self.nodes.len() - 1);
        }
        arrow.push(to);
        for pair in arrow.windows(2) {
            self.below[pair[0]].push(pair[1]);
            self.above[pair[1]].push(pair[0]);
        }
        self.arrows.push(arrow);
    }

    /// Puts each node near the middle of its neighbours, downwards and upwards in turn, and keeps the order that crosses least.
    fn order(&mut self) {
        let mut best = (self.crossings(), self.rows.clone());
        for sweep in 0..SWEEPS {
            let down = sweep % 2 == 0;
            let count = self.rows.len();
            for step in 1..count {
                let row = if down { step } else { count - 1 - step };
                let places = self.places();
                let neighbours = if down { &self.above } else { &self.below };
                let weight =
                    |&node: &usize| middle(&neighbours[node], &places).unwrap_or(places[node]);
                let mut ordered = self.rows[row].clone();
                ordered.sort_by(|one, other| weight(one).total_cmp(&weight(other)));
                self.rows[row] = ordered;
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.rows.clone());
            }
        }
        self.rows = best.1;
    }

    /// Each node's place in its layer, as a share of the layer's length, so that layers of different lengths compare.
    fn places(&self) -> Vec<f64> {
        let mut places = vec![0.0; self.nodes.len()];
        for row in &self.rows {
            for (place, &node) in row.iter().enumerate() {
                places[node] = (real(place) + 0.5) / real(row.len());
            }
        }
        places
    }

    fn crossings(&self) -> usize {
        let mut place = vec![0; self.nodes.len()];
        for row in &self.rows {
            for (at, &node) in row.iter().enumerate() {
                place[node] = at;
            }
        }
        let crossed = |one: (usize, usize), other: (usize, usize)| {
            (place[one.0] < place[other.0] && place[one.1] > place[other.1])
                || (place[one.0] > place[other.0] && place[one.1] < place[other.1])
        };
        let mut count = 0;
        for row in &self.rows {
            let lines: Vec<(usize, usize)> = row
                .iter()
                .flat_map(|&node| self.below[node].iter().map(move |&to| (node, to)))
                .collect();
            for (at, &line) in lines.iter().enumerate() {
                count += lines[at + 1..]
                    .iter()
                    .filter(|&&other| crossed(line, other))
                    .count();
            }
        }
        count
    }

    /// Centres: each node is pulled to the middle of its neighbours again and again, as far as the order and the gaps allow.
    fn place(&self, sizes: &Sizes) -> Vec<f64> {
        let mut x = vec![0.0; self.nodes.len()];
        for row in &self.rows {
            let wishes: Vec<f64> = row.iter().map(|_| 0.0).collect();
            self.settle(row, &wishes, sizes, &mut x);
        }
        for pull in 0..PULLS {
            let rows: Box<dyn Iterator<Item = &Vec<usize>>> = if pull % 2 == 0 {
                Box::new(self.rows.iter())
            } else {
                Box::new(self.rows.iter().rev())
            };
            for row in rows {
                let wishes: Vec<f64> = row.iter().map(|&node| self.wish(node, &x)).collect();
                self.settle(row, &wishes, sizes, &mut x);
            }
        }
        x
    }

    /// Where a node would like to be: between its neighbours, bends counting double so that long arrows run straight.
    fn wish(&self, node: usize, x: &[f64]) -> f64 {
        let mut sum = 0.0;
        let mut weights = 0.0;
        for &other in self.above[node].iter().chain(&self.below[node]) {
            let bends = [node, other]
                .iter()
                .filter(|&&end| self.nodes[end] == Node::Bend)
                .count();
            let weight = [1.0, 2.0, 8.0][bends];
            sum += x[other] * weight;
            weights += weight;
        }
        if weights > 0.0 {
            sum / weights
        } else {
            x[node]
        }
    }

    /// The nearest places to `wishes` that keep order and gaps: neighbours that collide are merged into blocks at the mean of their wishes.
    fn settle(&self, row: &[usize], wishes: &[f64], sizes: &Sizes, x: &mut [f64]) {
        let mut offsets = Vec::with_capacity(row.len());
        let mut offset = 0.0;
        for (at, &node) in row.iter().enumerate() {
            if at > 0 {
                offset += self.width(row[at - 1], sizes) / 2.0
                    + sizes.gap
                    + self.width(node, sizes) / 2.0;
            }
            offsets.push(offset);
        }
        // Blocks of (mean of wish minus offset, members): a later block must not lie left of an earlier one.
        let mut blocks: Vec<(f64, usize)> = Vec::new();
        for (wish, offset) in wishes.iter().zip(&offsets) {
            let mut block = (wish - offset, 1);
            while let Some(last) = blocks.pop_if(|last| last.0 > block.0) {
                let members = last.1 + block.1;
                let mean = (last.0 * real(last.1) + block.0 * real(block.1)) / real(members);
                block = (mean, members);
            }
            blocks.push(block);
        }
        let starts = blocks
            .iter()
            .flat_map(|&(start, members)| std::iter::repeat_n(start, members));
        for ((&node, offset), start) in row.iter().zip(&offsets).zip(starts) {
            x[node] = start + offset;
        }
    }

    fn width(&self, node: usize, sizes: &Sizes) -> f64 {
        match self.nodes[node] {
            Node::Task(_) => sizes.box_width,
            Node::Bend => sizes.bend_width,
        }
    }
}

fn middle(neighbours: &[usize], places: &[f64]) -> Option<f64> {
    let sum: f64 = neighbours.iter().map(|&neighbour| places[neighbour]).sum();
    (!neighbours.is_empty()).then(|| sum / real(neighbours.len()))
}

#[expect(clippy::cast_precision_loss, reason = "counts of tasks are small")]
pub(super) fn real(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::HOUSE;

    const SIZES: Sizes = Sizes {
        box_width: 100.0,
        bend_width: 10.0,
        gap: 20.0,
    };

    fn house() -> Layout {
        layout(&Graph::new(HOUSE).unwrap(), &SIZES)
    }

    #[test]
    fn a_task_stands_below_everything_it_needs() {
        let layout = house();
        assert_eq!(layout.layer[..5], [0, 1, 1, 2, 3]);
        for arrow in &layout.arrows {
            for pair in arrow.windows(2) {
                assert_eq!(layout.layer[pair[0]] + 1, layout.layer[pair[1]]);
            }
        }
    }

    #[test]
    fn nodes_of_a_layer_do_not_overlap_and_stay_inside_the_width() {
        let layout = house();
        let half = |node: usize| match layout.nodes[node] {
            Node::Task(_) => SIZES.box_width / 2.0,
            Node::Bend => SIZES.bend_width / 2.0,
        };
        for one in 0..layout.nodes.len() {
            assert!(layout.x[one] - half(one) >= -0.001);
            assert!(layout.x[one] + half(one) <= layout.width + 0.001);
            for other in one + 1..layout.nodes.len() {
                if layout.layer[one] == layout.layer[other] {
                    let apart = (layout.x[one] - layout.x[other]).abs();
                    assert!(apart + 0.001 >= half(one) + half(other) + SIZES.gap);
                }
            }
        }
    }
}
