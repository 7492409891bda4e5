//! The log of our own crates, for `-v`: through the printer, so that it does not tear a live display.

use std::io;

use tracing_subscriber::EnvFilter;

use crate::printer::Printer;

/// Other crates stay silent whatever is asked for: an HTTP client's trace holds headers, and those hold tokens. `blueprint` is the prefix of all our crates.
fn filter(verbose: u8) -> EnvFilter {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    EnvFilter::new(format!("off,blueprint={level}"))
}

/// Begins to log.
pub(crate) fn install(printer: &Printer, verbose: u8) {
    let printer = printer.clone();
    tracing_subscriber::fmt()
        .with_env_filter(filter(verbose))
        .with_writer(move || Line(printer.clone()))
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .init();
}

/// One event; tracing-subscriber writes each in one piece.
struct Line(Printer);

impl io::Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.say(String::from_utf8_lossy(bytes).trim_end());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
