//! "Did you mean": the known word nearest to a mistyped one.

/// How alike two words must be (Jaro-Winkler, 0 to 1) before one is offered for the other. Below it, a list of what there is helps more.
const ALIKE: f64 = 0.8;

/// The known word nearest to `given`, if one is near enough.
pub(crate) fn nearest<'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let given = given.to_lowercase();
    known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(&given, word), word))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const KNOWN: [&str; 4] = ["gateway-crds", "cnpg-operator", "cnpg-cluster", "redis"];

    #[test]
    fn a_typing_error_finds_its_word() {
        assert_eq!(nearest("gatewya-crds", KNOWN), Some("gateway-crds"));
        assert_eq!(nearest("Redsi", KNOWN), Some("redis"));
        assert_eq!(nearest("cnpg-clutser", KNOWN), Some("cnpg-cluster"));
    }

    #[test]
    fn something_else_finds_nothing() {
        assert_eq!(nearest("zzz", KNOWN), None);
        assert_eq!(nearest("", KNOWN), None);
    }
}
