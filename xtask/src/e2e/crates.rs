//! The crates' own tests that need more than `make test` has: a cluster with kubelets and nodes, an OpenBao server.

use super::{Evidence, Scene, expect};
use crate::error::Result;

/// Crate and test binary, whose tests are ignored elsewhere.
const BINARIES: [(&str, &str); 2] = [
    ("blueprint-cluster", "lab"),
    ("blueprint-openbao", "server"),
];

pub(super) fn ignored_tests(scene: &mut Scene) -> Result<Evidence> {
    let mut seen = Vec::new();
    for (package, test) in BINARIES {
        let (code, stdout, stderr) = scene
            .platform
            .command("cargo")
            .env("BLUEPRINT_TEST_BIN", scene.lab.bin())
            .args(["test", "--locked", "--package", package, "--test", test])
            .args(["--", "--ignored"])
            .captured()?;
        let result = stdout.lines().find(|line| line.starts_with("test result:"));
        expect(
            code == Some(0) && result.is_some_and(|line| !line.contains(" 0 passed")),
            &format!("the ignored tests of {package} to pass"),
            result.map_or(stderr, str::to_owned),
        )?;
        seen.extend(result.map(|line| format!("{package}: {line}")));
    }
    Ok(seen.join("; "))
}
