//! Processor time of this thread.

use std::fs;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Since some moment before; where the kernel does not tell, time as a clock on the wall shows it.
pub(crate) fn spent() -> Duration {
    static SINCE: OnceLock<Instant> = OnceLock::new();
    // The first number: nanoseconds on a processor (Documentation/scheduler/sched-stats.rst).
    let told = fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .filter(|nanoseconds| *nanoseconds > 0);
    told.map_or_else(
        || SINCE.get_or_init(Instant::now).elapsed(),
        Duration::from_nanos,
    )
}
