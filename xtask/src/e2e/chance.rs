//! Chance with a seed that is told, so that a run can be repeated.

use std::env;
use std::time::SystemTime;

pub(super) const SEED_VARIABLE: &str = "BLUEPRINT_E2E_SEED";

/// The number that a variable of the environment holds.
pub(super) fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok()?.parse().ok()
}

/// The seed to repeat, or a new one.
pub(super) fn seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    number(SEED_VARIABLE).unwrap_or_else(|| now.map_or(1, |since| u64::from(since.subsec_nanos())))
}

/// `SplitMix64` (Steele, Lea, Flood 2014): a few kills need no better one.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 to `limit`, without it.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_moments_again() {
        let moments = |seed| {
            let mut random = Random::new(seed);
            (0..9).map(|_| random.below(110_000)).collect::<Vec<_>>()
        };
        assert_eq!(moments(7), moments(7));
        assert_ne!(moments(7), moments(8));
        assert!(moments(7).iter().all(|moment| *moment < 110_000));
    }
}
