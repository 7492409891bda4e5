//! The exit codes: a public contract, documented in docs/exit-codes.md.

use std::fmt::Write as _;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCode {
    Done,
    TaskFailed,
    Usage,
    Preflight,
    SmokeFailed,
    ChangesFound,
    Interrupted,
}

impl ExitCode {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 7] = [
        Self::Done,
        Self::TaskFailed,
        Self::Usage,
        Self::Preflight,
        Self::SmokeFailed,
        Self::ChangesFound,
        Self::Interrupted,
    ];

    /// What the shell sees.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::TaskFailed => 1,
            Self::Usage => 2,
            Self::Preflight => 3,
            Self::SmokeFailed => 4,
            Self::ChangesFound => 5,
            // 128 + SIGINT, as shells have it.
            Self::Interrupted => 130,
        }
    }

    /// The sentence of docs/exit-codes.md.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "Done: everything that was asked for is so.",
            Self::TaskFailed => {
                "A task failed, or another run holds the workspace or the cluster. What was done before stays; the next run goes on from there."
            }
            Self::Usage => {
                "Not understood: an unknown flag, task or step, a broken VERSIONS.json or blueprint.yaml, a missing kubeconfig, or a context that is not the one \
                 meant. Nothing was touched."
            }
            Self::Preflight => {
                "Pre-flight found something that the run needs and that is not there or not as it must be, such as an edited chart or a half-written PGDATA. Nothing was changed."
            }
            Self::SmokeFailed => {
                "`smoke`: at least one check failed. `doctor`: something does not work (what only differs from the workspace's files does not count)."
            }
            Self::ChangesFound => {
                "`up --check`: something is not as wanted, `up` would change it; `down --check`: something of blueprint's is there, `down` would remove it."
            }
            Self::Interrupted => "Stopped by Ctrl-C or SIGTERM.",
        }
    }

    /// docs/exit-codes.md.
    pub(crate) fn document() -> String {
        let mut text = String::from(
            "# Exit codes\n\nA contract: scripts may rely on them.\n\n| code | meaning |\n|---|---|\n",
        );
        for code in Self::ALL {
            writeln!(text, "| {} | {} |", code.number(), code.meaning()).ok();
        }
        text
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode;

    #[test]
    fn the_document_says_what_the_program_does() {
        let documented = include_str!("../../../docs/exit-codes.md");
        assert_eq!(
            documented,
            ExitCode::document(),
            "write `blueprint docs exit-codes` to docs/exit-codes.md"
        );
    }

    #[test]
    fn no_number_stands_for_two_things() {
        let mut numbers: Vec<_> = ExitCode::ALL.iter().map(|code| code.number()).collect();
        numbers.dedup();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 130]);
    }
}
