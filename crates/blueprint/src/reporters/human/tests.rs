use blueprint_phase2::table::TABLE;
use blueprint_pipeline::Failure;

use super::*;
use crate::cli::{ColorWhen, GlobalArgs};
use crate::reporters::Voice;

fn reporter() -> Human {
    let global = GlobalArgs {
        workspace: None,
        versions: None,
        verbose: 0,
        quiet: true,
        no_progress: true,
        color: ColorWhen::Never,
    };
    Human::new(Printer::new(&global), TABLE, Voice::UP)
}

fn begun() -> Human {
    let mut human = reporter();
    let tasks = ["minio", "buckets", "openbao"].map(str::to_owned).to_vec();
    human.take(&Event::RunStarted {
        tasks,
        mode: "parallel",
    });
    human
}

fn finish(human: &mut Human, task: &str, changes: &[&str]) {
    let changes = changes.iter().map(|&change| change.to_owned()).collect();
    let outcome = Outcome {
        changes,
        notes: vec![],
    };
    human.take(&Event::TaskFinished {
        task: task.into(),
        step: 7,
        seconds: 1.0,
        outcome,
    });
}

fn start(human: &mut Human, task: &str) {
    human.take(&Event::TaskStarted {
        task: task.into(),
        step: 7,
        title: "its title".into(),
    });
}

#[test]
fn only_steps_of_the_run_are_shown() {
    let human = begun();
    assert_eq!(human.steps.keys().collect::<Vec<_>>(), [&7, &8]);
    assert_eq!(
        human.steps[&8].bar.message(),
        "·  8 Install OpenBao + init + unseal"
    );
}

#[test]
fn a_running_task_shows_what_it_does_and_then_who_blocks_it() {
    let mut human = begun();
    start(&mut human, "minio");
    assert_eq!(human.tasks["minio"].message(), "its title");
    human.take(&Event::Waiting {
        task: "minio".into(),
        step: 7,
        blocker: "pod minio/x: starting".into(),
    });
    assert_eq!(
        human.tasks["minio"].message(),
        "waits: pod minio/x: starting"
    );
}

#[test]
fn a_step_ends_with_its_last_task_and_counts_the_changes_of_all() {
    let mut human = begun();
    start(&mut human, "minio");
    finish(&mut human, "minio", &["a", "b"]);
    assert!(
        !human.steps[&7].bar.is_finished(),
        "the buckets are missing"
    );
    start(&mut human, "buckets");
    finish(&mut human, "buckets", &["c"]);
    assert!(human.steps[&7].bar.is_finished());
    assert_eq!(
        human.steps[&7].bar.message(),
        "✔  7 Install MinIO + 11 buckets  3 changes"
    );
    assert!(human.tasks.is_empty());
}

#[test]
fn a_failed_step_is_marked_even_when_its_other_task_did_not_run() {
    let mut human = begun();
    start(&mut human, "minio");
    human.take(&Event::TaskFailed {
        task: "minio".into(),
        step: 7,
        seconds: 1.0,
        failure: Failure::default(),
    });
    human.take(&Event::TaskSkipped {
        task: "buckets".into(),
        step: 7,
        reason: "needs minio, which failed".into(),
    });
    assert_eq!(
        human.steps[&7].bar.message(),
        "✘  7 Install MinIO + 11 buckets  failed"
    );
}
