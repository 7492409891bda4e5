//! The command line as a manual page, man(7).

use std::fmt::Write as _;

use clap::Command;

use super::reference::{commands, meaning, name, visible};
use crate::exit_code::ExitCode;

/// One page for the program and all its commands.
pub(super) fn roff(root: &Command) -> String {
    let version = root.get_version().unwrap_or_default();
    let about = root
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut text =
        format!(".TH BLUEPRINT 1 \"\" \"blueprint {version}\" \"User Commands\"\n.SH NAME\n");
    writeln!(text, "blueprint \\- {}", escaped(&about)).ok();
    text.push_str(".SH SYNOPSIS\n.B blueprint\n.RI [ options ] \" command\"\n.SH OPTIONS\n");
    options(root, true, &mut text);
    text.push_str(".SH COMMANDS\n");
    for command in commands(root) {
        section(command, "blueprint", &mut text);
    }
    text.push_str(".SH EXIT STATUS\n");
    for code in ExitCode::ALL {
        write!(
            text,
            ".TP\n.B {}\n{}\n",
            code.number(),
            escaped(code.meaning())
        )
        .ok();
    }
    text
}

fn section(command: &Command, parent: &str, text: &mut String) {
    let path = format!("{parent} {}", command.get_name());
    let about = command
        .get_long_about()
        .or(command.get_about())
        .map(ToString::to_string)
        .unwrap_or_default();
    write!(text, ".SS {path}\n{}\n", escaped(&about)).ok();
    options(command, false, text);
    for child in commands(command) {
        section(child, &path, text);
    }
}

fn options(command: &Command, with_global: bool, text: &mut String) {
    for argument in visible(command, with_global) {
        write!(
            text,
            ".TP\n.B {}\n{}\n",
            escaped(&name(argument)),
            escaped(&meaning(argument))
        )
        .ok();
    }
}

/// A backslash and a dash mean something to roff, and so does a dot or a quote at the start of a line.
fn escaped(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let line = line.replace('\\', "\\e").replace('-', "\\-");
            if line.starts_with(['.', '\'']) {
                format!("\\&{line}")
            } else {
                line
            }
        });
    lines.collect::<Vec<_>>().join("\n.br\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::{escaped, roff};

    #[test]
    fn the_page_has_the_sections_of_a_manual() {
        let mut command = crate::cli::Cli::command();
        command.build();
        let text = roff(&command);
        for part in [
            ".TH BLUEPRINT 1",
            ".SH NAME",
            ".SH SYNOPSIS",
            ".SS blueprint cluster create",
            ".SH EXIT STATUS",
        ] {
            assert!(text.contains(part), "{part} is missing");
        }
    }

    #[test]
    fn text_cannot_become_a_request() {
        assert_eq!(escaped(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(escaped("a\\b --c"), "a\\eb \\-\\-c");
    }
}
