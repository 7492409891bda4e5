//! Fuzzing on the stable toolchain, for tests alone: real files are mutated, and a property must hold for every mutant.
//!
//! In `make test` each target runs a few hundred mutants. `cargo xtask fuzz` gives them minutes of processor time. Every run begins with its seed; the
//! same seed gives the same mutants in the same order.

mod clock;
mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant, SystemTime};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};

pub use mutate::mutant;

/// Processor seconds for each target; without it [`BRIEFLY`] mutants are tried.
pub const SECONDS_VARIABLE: &str = "BLUEPRINT_FUZZ_SECONDS";
/// A seed to repeat.
pub const SEED_VARIABLE: &str = "BLUEPRINT_FUZZ_SEED";

/// Mutants of a run without a time.
const BRIEFLY: u64 = 400;
/// Accepted mutants that are mutated further, beside the real files.
const POOL: usize = 400;
/// One mutant may not keep the processor for longer: the texts are small.
const ONE_WITHIN: Duration = Duration::from_secs(2);

/// What the property made of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Read: worth mutating further.
    Accepted,
    /// Refused with an error.
    Refused,
}

impl<T, E> From<&Result<T, E>> for Judged {
    fn from(result: &Result<T, E>) -> Self {
        if result.is_ok() {
            Self::Accepted
        } else {
            Self::Refused
        }
    }
}

/// Mutates `corpus` and hands every mutant to `property`, which panics where something does not hold.
///
/// # Panics
/// With the property's own panic, after the mutant and the seed were printed; and when a mutant takes longer than two seconds of processor time.
pub fn fuzz(target: &str, corpus: &[&[u8]], property: impl Fn(&[u8]) -> Judged) {
    let seconds = number(SECONDS_VARIABLE).map(Duration::from_secs);
    let seed = number(SEED_VARIABLE).unwrap_or_else(fresh_seed);
    fuzz_from(target, seed, seconds, corpus, property);
}

fn fuzz_from(
    target: &str,
    seed: u64,
    seconds: Option<Duration>,
    corpus: &[&[u8]],
    property: impl Fn(&[u8]) -> Judged,
) {
    say(&format!("fuzz {target}: seed {seed}"));
    let mut random = StdRng::seed_from_u64(seed);
    let mut pool: Vec<Vec<u8>> = corpus.iter().map(|text| text.to_vec()).collect();
    let largest = corpus.iter().map(|text| text.len()).max().unwrap_or(0);
    let (mut tried, mut accepted) = (0_u64, 0_u64);
    let begun = clock::spent();
    loop {
        let over = match seconds {
            None => tried >= BRIEFLY,
            // The clock is a file: not for every mutant.
            Some(seconds) => {
                tried.is_multiple_of(64) && clock::spent().saturating_sub(begun) >= seconds
            }
        };
        if over {
            break;
        }
        let Some(parent) = pool.choose(&mut random) else {
            break;
        };
        let mutant = mutant(parent, &pool, &mut random);
        tried += 1;
        let small = mutant.len() <= largest * 2;
        if judge(target, seed, tried, &mutant, &property) == Judged::Accepted {
            accepted += 1;
            // Insertions would make the texts longer and longer, and every one of them slow.
            if !small {
                continue;
            }
            if pool.len() < POOL {
                pool.push(mutant);
            } else {
                let at = random.random_range(corpus.len().min(POOL - 1)..POOL);
                pool[at] = mutant;
            }
        }
    }
    let spent = clock::spent().saturating_sub(begun);
    say(&format!(
        "fuzz {target}: {tried} mutants, {accepted} accepted, {:.1} s of processor time, nothing found",
        spent.as_secs_f64()
    ));
}

fn judge(
    target: &str,
    seed: u64,
    number: u64,
    mutant: &[u8],
    property: &impl Fn(&[u8]) -> Judged,
) -> Judged {
    let (wall, processor) = (Instant::now(), clock::spent());
    let found = |what: &str| {
        say(&format!(
            "fuzz {target}: {what} at mutant {number} of seed {seed}: b\"{}\"",
            mutant.escape_ascii()
        ));
    };
    match catch_unwind(AssertUnwindSafe(|| property(mutant))) {
        Err(panic) => {
            found("a property does not hold");
            resume_unwind(panic)
        }
        Ok(judged) => {
            // A machine that is busy elsewhere is no fault of the mutant's.
            let slow = wall.elapsed() > ONE_WITHIN
                && clock::spent().saturating_sub(processor) > ONE_WITHIN;
            if slow {
                found("too slow");
            }
            assert!(
                !slow,
                "a mutant took more than {ONE_WITHIN:?} of processor time"
            );
            judged
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::from(now.map_or(0, |since| since.subsec_nanos()))
        ^ u64::from(std::process::id()).rotate_left(32)
}

#[expect(
    clippy::print_stdout,
    reason = "a test's own words; the test harness keeps them unless they are wanted"
)]
fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that breaks on a tab that follows a digit.
    fn faulty(text: &[u8]) -> Judged {
        assert!(
            !text
                .windows(2)
                .any(|pair| pair[0].is_ascii_digit() && pair[1] == b'\t')
        );
        Judged::Accepted
    }

    /// With seeds of its own: a run with one fresh seed misses this fault now and then.
    #[test]
    fn a_fault_in_a_reader_is_found() {
        let found = (0..20).any(|seed| {
            catch_unwind(|| fuzz_from("faulty", seed, None, &[b"port: 30443\n"], faulty)).is_err()
        });
        assert!(found, "20 runs never brought a tab behind a digit");
    }

    #[test]
    fn a_seed_gives_the_same_mutants() {
        let mutants = |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            let pool = [b"one\ntwo\n".to_vec(), b"{\"a\": [1, 2]}".to_vec()];
            (0..50)
                .map(|_| mutant(&pool[0], &pool, &mut random))
                .collect::<Vec<_>>()
        };
        assert_eq!(mutants(7), mutants(7));
        assert_ne!(mutants(7), mutants(8));
    }
}
