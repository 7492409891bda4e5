//! Figures and small phrases as people read them.

/// `0.4 s`, `12.3 s`, `2 min 05 s`.
pub(crate) fn duration(seconds: f64) -> String {
    // Rounded first, so that 59.96 s does not become 60.0 s.
    let tenths = (seconds * 10.0).round() / 10.0;
    if tenths < 60.0 {
        return format!("{tenths:.1} s");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a run's seconds are few and not negative"
    )]
    let whole = seconds.round() as u64;
    format!("{} min {:02} s", whole / 60, whole % 60)
}

/// `1 task`, `3 tasks`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    if number == 1 {
        format!("1 {thing}")
    } else {
        format!("{number} {thing}s")
    }
}

#[cfg(test)]
mod tests {
    use super::{count, duration};

    #[test]
    fn durations_are_short_and_clear() {
        assert_eq!(duration(0.04), "0.0 s");
        assert_eq!(duration(12.34), "12.3 s");
        assert_eq!(duration(59.97), "1 min 00 s");
        assert_eq!(duration(125.4), "2 min 05 s");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(count(1, "task"), "1 task");
        assert_eq!(count(0, "task"), "0 tasks");
    }
}
