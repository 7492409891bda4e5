//! What each command prints when all is well.

use crate::house::House;

const COMMANDS: [&[&str]; 25] = [
    &[],
    &["init"],
    &["cluster"],
    &["cluster", "create"],
    &["cluster", "delete"],
    &["up"],
    &["down"],
    &["smoke"],
    &["status"],
    &["doctor"],
    &["graph"],
    &["timings"],
    &["secrets", "list"],
    &["secrets", "show"],
    &["secrets", "snapshot"],
    &["secrets", "restore"],
    &["secrets", "unseal"],
    &["secrets", "rotate"],
    &["secrets", "export"],
    &["secrets", "import"],
    &["charts", "fetch"],
    &["charts", "verify"],
    &["values", "validate"],
    &["values", "render"],
    &["completions"],
];

#[test]
fn every_command_explains_itself() {
    let house = House::new();
    for command in COMMANDS {
        let said = house.run(&[command, &["--help"]].concat());
        assert_eq!(said.code, 0, "{command:?}: {}", said.talk);
        assert!(
            said.out.contains("Usage: blueprint"),
            "{command:?}: {}",
            said.out
        );
        assert_eq!(said.talk, "", "{command:?}");
    }
}

#[test]
fn init_fills_an_empty_folder_and_a_second_time_changes_nothing() {
    let house = House::initialised();
    for name in [
        "VERSIONS.json",
        "infra/kind/cluster.yaml",
        "infra/phase2/references/helm-values-redis.yaml",
    ] {
        assert!(house.path().join(name).is_file(), "{name}");
    }
    let again = house.run(&["init"]);
    assert_eq!(again.code, 0);
    assert!(again.talk.contains("0 files written"), "{}", again.talk);
}

#[test]
fn init_keeps_what_was_changed_and_says_so() {
    let house = House::initialised();
    house.write("VERSIONS.json", "{\"mine\": true}");
    let kept = house.run(&["init", "."]);
    assert!(kept.talk.contains("kept VERSIONS.json"), "{}", kept.talk);
    assert_eq!(house.read("VERSIONS.json"), "{\"mine\": true}");
    let forced = house.run(&["init", "--force"]);
    assert_eq!(forced.code, 0, "{}", forced.talk);
    assert!(house.read("VERSIONS.json").contains("helm_repositories"));
    assert_eq!(
        house.read("VERSIONS.json.old"),
        "{\"mine\": true}",
        "the former file is never lost"
    );
}

#[test]
fn the_graph_lists_all_tasks_in_each_format() {
    let house = House::new();
    let text = house.run(&["graph"]);
    assert_eq!((text.code, text.talk.as_str()), (0, ""));
    assert!(
        text.out.lines().all(|line| line.chars().count() <= 80),
        "{}",
        text.out
    );
    let dot = house.run(&["graph", "--format", "dot"]).out;
    let svg = house.run(&["graph", "--format", "svg"]).out;
    assert!(dot.starts_with("digraph") && svg.starts_with("<svg"));
    for task in ["preflight", "cnpg-cluster", "secrets-restore", "runner"] {
        for drawn in [&text.out, &dot, &svg] {
            assert!(drawn.contains(task), "{task} is missing in\n{drawn}");
        }
    }
}

#[test]
fn the_graph_goes_to_a_file() {
    let house = House::new();
    let said = house.run(&["graph", "--format", "svg", "-o", "graph.svg"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert!(house.read("graph.svg").ends_with("</svg>\n"));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let said = House::new().run(&["completions", shell]);
        assert_eq!(said.code, 0);
        assert!(said.out.contains("sequential"), "{shell}");
    }
}

#[test]
fn timings_without_a_run_say_so() {
    let said = House::new().run(&["timings"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
    assert!(
        said.talk.contains("no run has been recorded yet"),
        "{}",
        said.talk
    );
}

#[test]
fn timings_are_drawn_and_a_slow_task_is_named() {
    let house = House::new();
    let run = |seconds: f64| {
        format!(
            r#"{{"started":"2026-11-30T12:00:00Z","total_seconds":{seconds},"tasks":[{{"task":"redis","step":6,"seconds":{seconds},"changed":true}}]}}"#
        )
    };
    house.write(
        "infra/phase2/timings_history.json",
        &format!("[{},{},{}]", run(10.0), run(11.0), run(30.0)),
    );
    let said = house.run(&["timings"]);
    assert!(
        said.out.contains("redis") && said.out.contains("30.0 s"),
        "{}",
        said.out
    );
    assert!(
        said.talk
            .contains("slower than usual: redis took 30.0 s, usually 10.5 s"),
        "{}",
        said.talk
    );
}

#[test]
fn quiet_says_nothing_but_errors() {
    let house = House::new();
    assert_eq!(house.run(&["--quiet", "init"]).talk, "");
    assert!(
        house
            .run(&["--quiet", "up", "--only", "nothing"])
            .talk
            .contains("error:")
    );
}

#[test]
fn the_workspace_is_found_upwards() {
    let house = House::initialised();
    house.write("infra/phase2/timings_history.json", "[");
    let said = house.run(&["--workspace", ".", "timings"]);
    assert_eq!(said.code, 1);
    assert!(said.talk.contains("timings_history.json"), "{}", said.talk);
}

#[test]
fn generated_pages_are_printed() {
    let house = House::new();
    assert!(house.run(&["docs", "exit-codes"]).out.contains("| 130 |"));
    assert!(
        house
            .run(&["docs", "cli"])
            .out
            .contains("## `blueprint up`")
    );
    assert!(
        house
            .run(&["docs", "man"])
            .out
            .starts_with(".TH BLUEPRINT 1")
    );
    assert!(
        house
            .run(&["docs", "settings-schema"])
            .out
            .contains("storage_root")
    );
}

#[test]
fn another_pins_file_is_used_by_flag_and_by_variable_and_must_be_there() {
    let house = House::initialised();
    let stand_ins = house
        .read("VERSIONS.json")
        .replace("\"27.0.13\"", "\"27.0.13+standin\"");
    house.write("elsewhere/pins.json", &stand_ins);
    let by_flag = house.run(&["charts", "verify", "--versions", "elsewhere/pins.json"]);
    assert!(
        by_flag.out.contains("redis-27.0.13+standin.tgz"),
        "{}",
        by_flag.out
    );
    let mut command = house.command(&["charts", "verify"]);
    command.env("BLUEPRINT_VERSIONS", "elsewhere/pins.json");
    let by_variable = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert_eq!(by_variable, by_flag.out);
    let mut command = house.command(&["charts", "verify"]);
    command.env("BLUEPRINT_VERSIONS", "");
    let unset = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(unset.contains("redis-27.0.13.tgz"), "{unset}");

    let missing = house.run(&["charts", "verify", "--versions", "nowhere.json"]);
    assert_eq!(missing.code, 2, "{}", missing.talk);
    assert!(missing.talk.contains("nowhere.json"), "{}", missing.talk);
}

#[test]
fn a_chart_that_nobody_has_names_the_three_places_and_the_ways_out() {
    let house = House::initialised();
    let said = house.run(&["charts", "fetch", "--offline"]);
    assert_eq!(said.code, 1, "{}", said.talk);
    let hints = said.talk.matches("hint:").count();
    assert_eq!(hints, 1, "the same next move is told once: {}", said.talk);
    for part in [
        "cache: chart redis",
        "folders: none was given (--from DIR, BLUEPRINT_CHARTS)",
        "upstream: not asked (offline)",
        "run `blueprint charts fetch` on a machine that reaches upstream",
        "bundle",
    ] {
        assert!(said.talk.contains(part), "{part}: {}", said.talk);
    }
}
