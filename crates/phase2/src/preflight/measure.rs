//! Numbers out of texts: versions, `df`. Pure.

/// `v1.35.4`, `4.3.1`, `1.31.2+k3s1` as numbers; missing parts are 0.
pub(super) fn version(text: &str) -> Option<(u64, u64, u64)> {
    let mut parts = text
        .trim()
        .trim_start_matches('v')
        .split(['.', '-', '+'])
        .map(str::parse::<u64>);
    let major = parts.next()?.ok()?;
    let mut next = || parts.next().and_then(Result::ok).unwrap_or(0);
    Some((major, next(), next()))
}

/// Free bytes out of `df -Pk PATH` (POSIX: the fourth column of the last line, in KiB).
pub(super) fn df_free(output: &str) -> Option<u64> {
    output
        .lines()
        .last()?
        .split_whitespace()
        .nth(3)?
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// `5.2 GiB`.
pub(super) fn gib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) / (1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// How far two clocks are apart, in seconds, where an uncertainty (a round trip) speaks for the clocks.
pub(super) fn skew(ours: i64, theirs: i64, uncertainty: i64) -> i64 {
    ((ours - theirs).abs() - uncertainty).max(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_not_as_text() {
        assert!(version("v1.9.0") < version("v1.30.0"));
        assert_eq!(version("4.3.1+g123"), Some((4, 3, 1)));
        assert_eq!(version("v1.35"), Some((1, 35, 0)));
        assert_eq!(version("helm"), None);
    }

    #[test]
    fn the_free_space_is_the_fourth_column() {
        let output = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n/dev/vda1         51474912 20971520  27856128      43% /var/local/shared\n";
        assert_eq!(df_free(output), Some(27_856_128 * 1024));
        assert_eq!(df_free("df: no such file"), None);
        assert_eq!(gib(27_856_128 * 1024), "26.5 GiB");
    }

    #[test]
    fn a_slow_answer_is_no_skew() {
        assert_eq!(skew(1000, 970, 40), 0);
        assert_eq!(skew(1000, 900, 2), 98);
        assert_eq!(skew(900, 1000, 2), 98);
    }
}
