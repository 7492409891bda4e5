use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::sync::Notify;

use super::*;
use crate::table::{Step, Table};
use crate::testing::{HOUSE, Kept};

/// What becomes of a task of the test, by its id: nothing bad, a failure or a panic.
type Deed = Box<dyn Fn(&str) -> Option<Failure> + Send + Sync>;

/// Does one deed a task, and writes down what began and ended in which order.
struct Scripted {
    deed: Deed,
    log: Mutex<Vec<(String, &'static str)>>,
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Scripted {
    fn new(deed: impl Fn(&str) -> Option<Failure> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            deed: Box::new(deed),
            log: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        })
    }

    fn fine() -> Arc<Self> {
        Self::new(|_| None)
    }

    fn failing(ids: &'static [&'static str]) -> Arc<Self> {
        Self::new(|id| {
            ids.contains(&id).then(|| Failure {
                summary: format!("failed to {id}"),
                ..Failure::default()
            })
        })
    }

    fn began(&self) -> Vec<String> {
        let log = self.log.lock().unwrap();
        log.iter()
            .filter(|(_, what)| *what == "begin")
            .map(|(id, _)| id.clone())
            .collect()
    }

    fn place(&self, id: &str, what: &str) -> Option<usize> {
        self.log
            .lock()
            .unwrap()
            .iter()
            .position(|entry| entry.0 == id && entry.1 == what)
    }
}

#[async_trait]
impl TaskRunner for Scripted {
    async fn run(&self, task: &str, _: Progress, _: CancellationToken) -> Result<Outcome, Failure> {
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        self.log.lock().unwrap().push((task.to_owned(), "begin"));
        for _ in 0..3 {
            tokio::task::yield_now().await;
        }
        self.log.lock().unwrap().push((task.to_owned(), "end"));
        self.now.fetch_sub(1, Ordering::SeqCst);
        match (self.deed)(task) {
            Some(failure) => Err(failure),
            None => Ok(Outcome::unchanged()),
        }
    }
}

fn all(table: &Table) -> Vec<&'static str> {
    table.tasks.iter().map(|task| task.id).collect()
}

async fn run_table(
    table: Table,
    runner: Arc<Scripted>,
    sequential: bool,
    jobs: usize,
) -> (RunReport, Vec<Event>) {
    let graph = Graph::new(table).unwrap();
    let kept = Kept::default();
    let execution = Execution {
        tasks: all(&table),
        sequential,
        jobs,
    };
    let sink = Box::new(kept.clone());
    let report = run(&graph, execution, runner, sink, CancellationToken::new()).await;
    (report, kept.events())
}

#[tokio::test]
async fn sequential_takes_the_order_of_the_table_one_at_a_time() {
    let runner = Scripted::fine();
    let (report, _) = run_table(HOUSE, Arc::clone(&runner), true, 8).await;
    assert!(report.succeeded());
    assert_eq!(
        runner.began(),
        ["ground", "walls", "pipes", "roof", "paint"]
    );
    assert_eq!(runner.most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn tasks_that_do_not_need_each_other_run_side_by_side() {
    let runner = Scripted::fine();
    run_table(HOUSE, Arc::clone(&runner), false, 8).await;
    assert_eq!(runner.most.load(Ordering::SeqCst), 2, "walls and pipes");
}

#[tokio::test]
async fn a_failure_stops_what_needs_it_and_nothing_else_in_both_modes() {
    for sequential in [true, false] {
        let runner = Scripted::failing(&["walls"]);
        let (report, _) = run_table(HOUSE, runner, sequential, 4).await;
        assert!(!report.succeeded());
        assert_eq!(
            report.finished.keys().collect::<Vec<_>>(),
            ["ground", "pipes"]
        );
        assert_eq!(report.failed.keys().collect::<Vec<_>>(), ["walls"]);
        assert_eq!(report.skipped["roof"], "needs walls, which failed");
        assert_eq!(report.skipped["paint"], "needs walls, which failed");
    }
}

#[tokio::test]
async fn a_panicking_task_is_a_failed_task() {
    let runner = Scripted::new(|id| {
        assert!(id != "pipes", "a pipe burst");
        None
    });
    let (report, _) = run_table(HOUSE, runner, false, 4).await;
    let (_, failure) = &report.failed["pipes"];
    assert_eq!(failure.found.as_deref(), Some("a pipe burst"));
    assert!(failure.summary.contains("pipes"), "{}", failure.summary);
    assert_eq!(report.skipped.keys().collect::<Vec<_>>(), ["paint"]);
    assert!(report.finished.contains_key("roof"), "the rest goes on");
}

#[tokio::test]
async fn events_come_in_order_and_end_with_the_counts() {
    let (_, events) = run_table(HOUSE, Scripted::failing(&["roof"]), true, 1).await;
    let short: Vec<String> = events
        .iter()
        .map(|event| match event {
            Event::RunStarted { tasks, mode } => format!("run {} {mode}", tasks.len()),
            Event::TaskStarted { task, .. } => format!("start {task}"),
            Event::TaskFinished { task, .. } => format!("finish {task}"),
            Event::TaskFailed { task, .. } => format!("fail {task}"),
            Event::TaskSkipped { task, .. } => format!("skip {task}"),
            Event::RunFinished {
                succeeded,
                failed,
                skipped,
                ..
            } => {
                format!("done {succeeded} {failed} {skipped}")
            }
            Event::Attention { .. } | Event::Progress { .. } | Event::Waiting { .. } => {
                "talk".to_owned()
            }
        })
        .collect();
    let expected = "run 5 sequential,start ground,finish ground,start walls,finish walls,start pipes,\
                    finish pipes,start roof,fail roof,skip paint,done 3 1 1";
    assert_eq!(short.join(","), expected);
}

/// Stays in a task until the run is cancelled, as a wait would.
struct UntilCancelled(Notify);

#[async_trait]
impl TaskRunner for UntilCancelled {
    async fn run(
        &self,
        _: &str,
        _: Progress,
        cancel: CancellationToken,
    ) -> Result<Outcome, Failure> {
        self.0.notify_one();
        cancel.cancelled().await;
        Ok(Outcome::unchanged())
    }
}

#[tokio::test]
async fn after_a_cancel_nothing_starts_and_what_runs_gets_to_its_end() {
    let graph = Graph::new(HOUSE).unwrap();
    let runner = Arc::new(UntilCancelled(Notify::new()));
    let cancel = CancellationToken::new();
    let execution = Execution {
        tasks: all(&HOUSE),
        sequential: false,
        jobs: 4,
    };
    let running = run(
        &graph,
        execution,
        Arc::clone(&runner) as Arc<dyn TaskRunner>,
        Box::new(Kept::default()),
        cancel.clone(),
    );
    let stop = async {
        runner.0.notified().await;
        cancel.cancel();
    };
    let (report, ()) = tokio::join!(running, stop);
    assert!(report.interrupted && !report.succeeded());
    assert_eq!(report.finished.keys().collect::<Vec<_>>(), ["ground"]);
    assert_eq!(report.skipped.len(), 4);
    assert_eq!(report.skipped["walls"], "the run was interrupted");
}

#[tokio::test]
async fn the_same_blocker_is_told_once() {
    let (events, mut receiver) = unbounded_channel();
    let progress = Progress::new("redis".into(), 6, events);
    progress.waiting("pod redis-master-0: starting");
    progress.clone().waiting("pod redis-master-0: starting");
    progress.waiting("pod redis-master-0: ImagePullBackOff");
    progress.waiting("pod redis-master-0: starting");
    drop(progress);
    let mut told = 0;
    while receiver.recv().await.is_some() {
        told += 1;
    }
    assert_eq!(told, 3);
}

/// Leaves a handle behind that outlives its task.
struct Leaky(Mutex<Vec<Progress>>);

#[async_trait]
impl TaskRunner for Leaky {
    async fn run(
        &self,
        _: &str,
        progress: Progress,
        _: CancellationToken,
    ) -> Result<Outcome, Failure> {
        self.0.lock().unwrap().push(progress);
        Ok(Outcome::unchanged())
    }
}

#[tokio::test]
async fn a_handle_left_behind_does_not_keep_the_run_open() {
    let graph = Graph::new(HOUSE).unwrap();
    let runner = Arc::new(Leaky(Mutex::default()));
    let execution = Execution {
        tasks: all(&HOUSE),
        sequential: false,
        jobs: 4,
    };
    let kept = Kept::default();
    let ended = run(
        &graph,
        execution,
        Arc::clone(&runner) as Arc<dyn TaskRunner>,
        Box::new(kept.clone()),
        CancellationToken::new(),
    );
    let report = tokio::time::timeout(Duration::from_secs(5), ended)
        .await
        .expect("the run ends");
    assert!(report.succeeded());
    assert!(matches!(
        kept.events().last(),
        Some(Event::RunFinished { .. })
    ));
}

/// A random graph: the needs of each task are among those before it. Leaked, because a table is made of constants.
fn random_table() -> impl Strategy<Value = Table> {
    let edges = proptest::collection::vec(proptest::collection::vec(any::<bool>(), 14), 1..14);
    edges.prop_map(|rows| {
        let ids: Vec<&'static str> = (0..rows.len())
            .map(|n| &*Box::leak(format!("t{n}").into_boxed_str()))
            .collect();
        let tasks: Vec<Task> = rows
            .iter()
            .enumerate()
            .map(|(place, row)| {
                let needs: Vec<_> = (0..place)
                    .filter(|&need| row[need])
                    .map(|need| ids[need])
                    .collect();
                Task {
                    id: ids[place],
                    step: 1,
                    title: "",
                    needs: Vec::leak(needs),
                }
            })
            .collect();
        Table {
            steps: const {
                &[Step {
                    number: 1,
                    title: "one",
                }]
            },
            tasks: Vec::leak(tasks),
        }
    })
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_task_runs_once_after_its_needs_and_within_the_limit(
        table in random_table(),
        jobs in 1_usize..5,
        sequential in any::<bool>(),
    ) {
        let runner = Scripted::fine();
        let (report, _) = block_on(run_table(table, Arc::clone(&runner), sequential, jobs));
        prop_assert!(report.succeeded());
        let mut began = runner.began();
        if sequential {
            prop_assert_eq!(&began, &all(&table));
        }
        began.sort_unstable();
        let mut wanted = all(&table);
        wanted.sort_unstable();
        prop_assert_eq!(began, wanted, "each exactly once");
        for task in table.tasks {
            for need in task.needs {
                prop_assert!(runner.place(need, "end") < runner.place(task.id, "begin"));
            }
        }
        let limit = if sequential { 1 } else { jobs };
        prop_assert!(runner.most.load(Ordering::SeqCst) <= limit);
    }

    #[test]
    fn a_failure_skips_exactly_what_reaches_it(table in random_table(), pick in any::<prop::sample::Index>()) {
        let broken = table.tasks[pick.index(table.tasks.len())].id;
        let runner = Scripted::new(move |id| (id == broken).then(Failure::default));
        let (report, _) = block_on(run_table(table, runner, false, 4));
        let mut doomed = BTreeSet::from([broken]);
        for task in table.tasks {
            if task.needs.iter().any(|need| doomed.contains(need)) {
                doomed.insert(task.id);
            }
        }
        doomed.remove(broken);
        let skipped: BTreeSet<&str> = report.skipped.keys().map(String::as_str).collect();
        prop_assert_eq!(skipped, doomed);
        prop_assert_eq!(report.finished.len() + report.failed.len() + report.skipped.len(), table.tasks.len());
    }
}
