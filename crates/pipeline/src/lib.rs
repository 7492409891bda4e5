//! The table of steps and tasks, the graph made of it, the executor that runs it and the events that it emits.
//!
//! Knows nothing of Kubernetes or of the command line.

pub mod draw;
pub mod event;
pub mod execute;
pub mod graph;
mod nearest;
pub mod outcome;
mod schedule;
pub mod table;
#[cfg(test)]
mod testing;
pub mod timings;

pub use event::{Event, EventSink};
pub use execute::{Execution, Progress, RunReport, TaskRunner};
pub use graph::{Graph, GraphError};
pub use outcome::{Failure, Outcome};
pub use table::{Selection, SelectionError, Step, Table, Task};
