//! Ctrl-C while a run waits: gently first, at once the second time.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::house::House;

fn interrupt(child: &Child) {
    let sent = Command::new("sh")
        .arg("-c")
        .arg(format!("kill -INT {}", child.id()))
        .status()
        .unwrap();
    assert!(sent.success());
}

#[test]
fn the_first_ctrl_c_says_what_happens_and_the_second_ends_at_once() {
    // A server that takes connections and never answers keeps pre-flight waiting.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let house = House::initialised();
    house.kubeconfig_for("kind-blueprint", silent.local_addr().unwrap().port());
    let mut child = house
        .command(&["up", "--offline"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(talk.any(|line| line.contains("Step 1/13")));
    interrupt(&child);
    assert!(talk.any(|line| line.contains("stopping: running tasks get to a safe point")));
    let second = Instant::now();
    interrupt(&child);
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(130));
    assert!(
        second.elapsed() < Duration::from_secs(2),
        "{:?}",
        second.elapsed()
    );
}
