//! Ctrl-C and SIGTERM: the first one stops gently where a command knows how to, the next one at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::printer::Printer;

/// The signals of this process.
#[derive(Clone)]
pub(crate) struct Interrupts {
    gently: CancellationToken,
    at_once: CancellationToken,
    can_be_gentle: Arc<AtomicBool>,
}

impl Interrupts {
    /// Listens from now on.
    pub(crate) fn watch(printer: &Printer) -> std::io::Result<Self> {
        let interrupts = Self {
            gently: CancellationToken::new(),
            at_once: CancellationToken::new(),
            can_be_gentle: Arc::default(),
        };
        let listening = interrupts.clone().listen(
            printer.clone(),
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
        );
        tokio::spawn(listening);
        Ok(interrupts)
    }

    /// For a command that can stop at a safe point: cancelled by the first signal. Without a call of this the first signal ends the program.
    pub(crate) fn gently(&self) -> CancellationToken {
        self.can_be_gentle.store(true, Ordering::SeqCst);
        self.gently.clone()
    }

    /// Cancelled when the program must end now.
    pub(crate) fn at_once(&self) -> CancellationToken {
        self.at_once.clone()
    }

    async fn listen(self, printer: Printer, mut interrupt: Signal, mut terminate: Signal) {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if self.can_be_gentle.load(Ordering::SeqCst) && !self.gently.is_cancelled() {
                printer.say("stopping: running tasks get to a safe point, nothing new starts (again to stop at once)");
                self.gently.cancel();
            } else {
                self.at_once.cancel();
            }
        }
    }
}
