//! Edits an /etc/hosts: our line between markers, every other byte as it was.

use crate::marked_block::{self, MarkerError};

/// With one line that gives `names` the `address`. It stands at the start: resolvers take the first line that fits, and the file need not end with a line end.
pub(super) fn with_pin(
    hosts: &str,
    address: &str,
    names: &[String],
) -> Result<String, MarkerError> {
    let line = format!("{address}\t{}", names.join(" "));
    let block = marked_block::block(
        "",
        "(the registry and its token realm, by the Gateway's ClusterIP)",
        [line.as_str()],
    );
    Ok(format!("{block}{}", marked_block::without(hosts)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODE: &str =
        "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n172.18.0.3\tlab-worker\n";

    fn names() -> Vec<String> {
        vec![
            "registry.local.example.net".to_owned(),
            "gitlab.local.example.net".to_owned(),
        ]
    }

    #[test]
    fn the_pin_comes_first_and_the_rest_stays() {
        let text = with_pin(NODE, "10.96.1.2", &names()).expect("edited");
        assert!(text.contains("\n10.96.1.2\tregistry.local.example.net gitlab.local.example.net\n# blueprint:end\n127.0.0.1\tlocalhost\n"), "{text}");
        assert_eq!(marked_block::without(&text).as_deref(), Ok(NODE));
    }

    #[test]
    fn a_new_address_replaces_the_old_pin() {
        let text = with_pin(
            &with_pin(NODE, "10.96.1.2", &names()).expect("edited"),
            "10.96.9.9",
            &names(),
        )
        .expect("edited");
        assert!(text.contains("10.96.9.9") && !text.contains("10.96.1.2"));
    }

    #[test]
    fn a_torn_block_is_refused() {
        assert!(
            with_pin(
                "# blueprint:begin\n127.0.0.1 localhost\n",
                "10.96.1.2",
                &names()
            )
            .is_err()
        );
    }

    #[test]
    fn fuzz_hosts() {
        let ours = with_pin(NODE, "10.96.1.2", &names()).expect("edited");
        blueprint_fuzzing::fuzz("hosts", &[NODE.as_bytes(), ours.as_bytes()], |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let result = with_pin(&text, "10.96.1.2", &names());
            if let Ok(once) = &result {
                assert_eq!(
                    with_pin(once, "10.96.1.2", &names()).as_ref(),
                    Ok(once),
                    "twice is not once"
                );
                assert_eq!(
                    marked_block::without(once),
                    marked_block::without(&text),
                    "a foreign line changed"
                );
                assert!(marked_block::only(once).starts_with("10.96.1.2"));
            }
            (&result).into()
        });
    }

    proptest! {
        #[test]
        fn pinning_twice_is_pinning_once_and_foreign_bytes_never_change(hosts in "([0-9a-f.:]{1,15}[ \t][a-z. -]{1,20}(#[ a-z]{0,9})?\r?\n){0,8}([0-9.]{0,9} x)?") {
            let once = with_pin(&hosts, "10.96.1.2", &names()).expect("edited");
            prop_assert_eq!(&with_pin(&once, "10.96.1.2", &names()).expect("edited again"), &once);
            prop_assert_eq!(marked_block::without(&once).expect("removed"), hosts);
        }
    }
}
