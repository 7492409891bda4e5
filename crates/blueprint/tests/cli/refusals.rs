//! What cannot be is refused with the documented code and the next move, before anything was touched.

use crate::house::House;

/// Whether the folder holds anything that a run writes.
fn untouched(house: &House) -> bool {
    !house.path().join("infra/secrets").exists()
        && !house.path().join("infra/phase2/last_timings.json").exists()
}

#[test]
fn an_unknown_task_is_a_usage_error_with_the_nearest_one() {
    let house = House::new();
    let said = house.run(&["up", "--only", "gatewya-crds"]);
    assert_eq!(said.code, 2);
    assert!(
        said.talk
            .contains("unknown task or step `gatewya-crds` in --only"),
        "{}",
        said.talk
    );
    assert!(
        said.talk.contains("hint: did you mean `gateway-crds`?"),
        "{}",
        said.talk
    );
    assert_eq!(said.out, "");
    assert!(untouched(&house));
}

#[test]
fn an_unknown_step_lists_what_there_is() {
    let said = House::new().run(&["up", "--from", "14"]);
    assert_eq!(said.code, 2);
    assert!(said.talk.contains("steps are 1 to 13"), "{}", said.talk);
}

#[test]
fn an_unknown_flag_is_a_usage_error() {
    let said = House::new().run(&["up", "--sequental"]);
    assert_eq!(said.code, 2);
    assert!(said.talk.contains("--sequential"), "{}", said.talk);
}

#[test]
fn a_broken_versions_file_is_named_with_its_line() {
    let house = House::new();
    house.write("VERSIONS.json", "{\n  \"helm_repositories\": {\n    oops\n");
    let said = house.run(&["up"]);
    assert_eq!(said.code, 2, "{}", said.talk);
    assert!(said.talk.contains("VERSIONS.json"), "{}", said.talk);
    assert!(said.talk.contains("line 3"), "{}", said.talk);
    assert!(said.talk.contains("hint:"), "{}", said.talk);
    assert!(untouched(&house));
}

#[test]
fn a_mistyped_setting_is_a_usage_error() {
    let house = House::new();
    house.write("blueprint.yaml", "domian: example.org\n");
    let said = house.run(&["up"]);
    assert_eq!(said.code, 2, "{}", said.talk);
    assert!(said.talk.contains("domian"), "{}", said.talk);
    assert!(untouched(&house));
}

#[test]
fn a_missing_kubeconfig_is_a_usage_error() {
    let house = House::new();
    let said = house.run(&["status"]);
    assert_eq!(said.code, 2, "{}", said.talk);
    assert!(
        said.talk.contains("kubeconfig") && said.talk.contains("hint:"),
        "{}",
        said.talk
    );
}

#[test]
fn a_context_that_is_not_meant_is_refused() {
    for context in ["production", "kind-other"] {
        let house = House::new();
        house.kubeconfig(context);
        let said = house.run(&["up", "--offline"]);
        assert_eq!(said.code, 2, "{}", said.talk);
        assert!(
            said.talk.contains(context) && said.talk.contains("--context"),
            "{}",
            said.talk
        );
        assert!(!said.talk.contains("very-secret-token"));
        assert!(untouched(&house));
    }
}

#[test]
fn an_error_is_said_once() {
    let said = House::new().run(&["up", "--only", "nothing-like-it"]);
    assert_eq!(said.talk.matches("error:").count(), 1, "{}", said.talk);
}

#[test]
fn kind_that_is_not_there_is_a_preflight_shortfall() {
    let house = House::initialised();
    let said = house.run(&["cluster", "create"]);
    assert_eq!(said.code, 3, "{}", said.talk);
    assert!(
        said.talk.contains("kind") && said.talk.contains("install it:"),
        "{}",
        said.talk
    );
}

#[test]
fn a_kind_configuration_without_the_stable_storage_is_refused() {
    let house = House::initialised();
    house.write(
        "infra/kind/cluster.yaml",
        "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes: [{role: control-plane}]\n",
    );
    let said = house.run(&["cluster", "create"]);
    assert_eq!(said.code, 2, "{}", said.talk);
    assert!(said.talk.contains("/var/local/shared"), "{}", said.talk);
}

#[test]
fn a_second_run_says_who_holds_the_workspace() {
    let house = House::new();
    house.kubeconfig("kind-blueprint");
    std::fs::create_dir_all(house.path().join("infra/phase2/state")).unwrap();
    let lock = std::fs::File::create(house.path().join("infra/phase2/state/run.lock")).unwrap();
    lock.try_lock().unwrap();
    let said = house.run(&["up", "--offline"]);
    assert_eq!(said.code, 1, "{}", said.talk);
    assert!(said.talk.contains("another run holds"), "{}", said.talk);
}

#[test]
fn missing_charts_are_named_with_the_command_that_mends_it() {
    let house = House::initialised();
    let said = house.run(&["charts", "verify"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("missing"), "{}", said.out);
    assert!(
        said.talk.contains("blueprint charts fetch"),
        "{}",
        said.talk
    );
}

#[test]
fn preflight_names_all_shortfalls_at_once_and_nothing_else_runs() {
    let house = House::initialised();
    house.kubeconfig("kind-blueprint");
    let said = house.run(&["up", "--offline"]);
    assert_eq!(said.code, 3, "{}", said.talk);
    for shortfall in [
        "API server",
        "helm",
        "container engine",
        "blueprint charts fetch",
    ] {
        assert!(said.talk.contains(shortfall), "{shortfall}: {}", said.talk);
    }
    assert!(
        said.talk.contains("[bootstrap] Step 1/13  Pre-flight"),
        "{}",
        said.talk
    );
    assert!(!said.talk.contains("Step 2/13"), "{}", said.talk);
    assert!(!said.talk.contains("very-secret-token"));
    assert!(untouched(&house));
}

#[test]
fn a_run_as_json_keeps_stdout_to_events() {
    let house = House::initialised();
    house.kubeconfig("kind-blueprint");
    let said = house.run(&["up", "--offline", "--output", "json"]);
    assert_eq!(said.code, 3, "{}", said.talk);
    let events: Vec<serde_json::Value> = said
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["event"], "run-started");
    assert_eq!(events.last().unwrap()["event"], "run-finished");
    assert_eq!(events.last().unwrap()["skipped"], 17);
    assert!(!said.out.contains("very-secret-token"));
}

#[test]
fn a_check_of_a_cluster_that_does_not_answer_is_a_preflight_shortfall() {
    let house = House::initialised();
    house.kubeconfig("kind-blueprint");
    for flag in ["--check", "--summary"] {
        let said = house.run(&["up", flag]);
        assert_eq!((said.code, said.out.as_str()), (3, ""), "{}", said.talk);
    }
    assert!(
        !house.path().join("infra/phase2/state/run.lock").exists(),
        "a check changes nothing"
    );
}

#[test]
fn credentials_that_are_open_to_others_are_closed_and_that_is_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::initialised();
    house.kubeconfig("kind-blueprint");
    house.write("infra/secrets/redis-password.txt", "correct-horse");
    let path = house.path().join("infra/secrets/redis-password.txt");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let said = house.run(&["up", "--offline"]);
    assert!(
        said.talk
            .contains("redis-password.txt was open to others (mode 0644)"),
        "{}",
        said.talk
    );
    assert!(!said.talk.contains("correct-horse"));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_wipe_is_refused_without_the_installations_name() {
    let house = House::initialised();
    house.kubeconfig("kind-blueprint");
    house.write("infra/secrets/redis-password.txt", "correct-horse");
    let refused = [
        (&["down", "--wipe"] as &[&str], "no terminal to type it on"),
        (&["down", "--wipe", "--yes", "lab"], "`lab`"),
        (
            &["down", "--wipe", "--yes", "kind-blueprint"],
            "`kind-blueprint`",
        ),
    ];
    for (words, found) in refused {
        let said = house.run(words);
        assert_eq!(said.code, 2, "{words:?}: {}", said.talk);
        assert!(said.talk.contains(found), "{words:?}: {}", said.talk);
        assert!(said.talk.contains("blueprint"), "{words:?}: {}", said.talk);
    }
    assert_eq!(
        house.read("infra/secrets/redis-password.txt"),
        "correct-horse"
    );
    // The right name is taken; what is missing then is the cluster.
    let said = house.run(&["down", "--wipe", "--yes", "blueprint"]);
    assert_eq!(said.code, 3, "{}", said.talk);
}

#[test]
fn what_cannot_be_taken_down_is_a_usage_error() {
    let house = House::initialised();
    house.kubeconfig("kind-blueprint");
    let said = house.run(&["down", "--only", "redsi"]);
    assert_eq!(said.code, 2, "{}", said.talk);
    assert!(said.talk.contains("did you mean `redis`"), "{}", said.talk);
    let said = house.run(&["down", "--wipe", "--only", "redis"]);
    assert_eq!(said.code, 2, "{}", said.talk);
}
