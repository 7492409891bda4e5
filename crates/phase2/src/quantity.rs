//! Kubernetes quantities of memory and storage in bytes.

/// Bytes of `8145932Ki`, `16Gi`, `4G` or a plain number (apimachinery, resource/quantity); fractions, which nobody writes for sizes, are not read.
pub(crate) fn bytes(quantity: &str) -> Option<u64> {
    let text = quantity.trim();
    let split = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "" => 1,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_as_kubernetes_reads_them() {
        assert_eq!(bytes("16Gi"), Some(16 << 30));
        assert_eq!(bytes("24559804Ki"), Some(24_559_804 << 10));
        assert_eq!(bytes("1000"), Some(1000));
        assert_eq!(bytes("1.5Gi"), None);
    }

    #[test]
    fn sizes_compare_across_units() {
        assert_eq!(bytes("8Gi"), Some(8 << 30));
        assert!(bytes("10G").unwrap() < bytes("10Gi").unwrap());
        assert_eq!(bytes("1024Mi"), bytes("1Gi"));
        assert_eq!(bytes(""), None);
    }
}
