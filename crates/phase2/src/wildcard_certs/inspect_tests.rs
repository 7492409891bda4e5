use super::super::mint;
use super::*;

const DOMAIN: &str = "local.example.net";

fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn minted(now: i64) -> Files {
    let ca = mint::ca(DOMAIN, None, now).expect("a CA");
    let until = facts(&ca.certificate).expect("facts").not_after;
    let leaf = mint::leaf(DOMAIN, &ca.certificate, &ca.key, until, now).expect("a leaf");
    Files {
        ca: Some(ca.certificate),
        ca_key: Some(ca.key),
        certificate: Some(leaf.certificate),
        key: Some(leaf.key),
    }
}

fn refused(decision: &Decision) -> &str {
    match decision {
        Decision::Refuse { found, .. } => found,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn what_is_minted_is_used_as_it_is() {
    let files = minted(now());
    assert_eq!(decide(&files, DOMAIN, now()), Decision::Use { note: None });
    let leaf = facts(files.certificate.as_deref().expect("certificate")).expect("facts");
    assert_eq!(leaf.names, ["*.local.example.net", "local.example.net"]);
    let days = (leaf.not_after - now()) / 86_400;
    assert!((823..=825).contains(&days), "{days} days");
}

#[test]
fn a_certificate_with_less_than_thirty_days_is_renewed_with_the_same_ca() {
    let files = minted(now() - 800 * 86_400);
    assert!(matches!(
        decide(&files, DOMAIN, now()),
        Decision::Renew { .. }
    ));
}

#[test]
fn a_changed_domain_renews_with_the_same_ca() {
    assert!(matches!(
        decide(&minted(now()), "other.example.org", now()),
        Decision::Renew { .. }
    ));
}

#[test]
fn an_installation_of_the_old_tool_without_the_cas_key_is_used() {
    let files = Files {
        ca_key: None,
        ..minted(now())
    };
    assert_eq!(decide(&files, DOMAIN, now()), Decision::Use { note: None });
}

#[test]
fn a_due_certificate_without_the_cas_key_is_used_with_a_warning_until_it_expires() {
    let files = Files {
        ca_key: None,
        ..minted(now() - 800 * 86_400)
    };
    assert!(matches!(
        decide(&files, DOMAIN, now()),
        Decision::Use { note: Some(_) }
    ));
    assert!(refused(&decide(&files, DOMAIN, now() + 30 * 86_400)).contains("expired"));
}

#[test]
fn nothing_at_all_is_minted_and_so_is_a_lone_ca_key() {
    assert_eq!(decide(&Files::default(), DOMAIN, now()), Decision::Mint);
    let lone = Files {
        ca_key: minted(now()).ca_key,
        ..Files::default()
    };
    assert_eq!(decide(&lone, DOMAIN, now()), Decision::Mint);
    let again =
        mint::ca(DOMAIN, lone.ca_key.as_ref().map(|key| key.as_str()), now()).expect("a CA");
    assert!(key_fits(&again.certificate, lone.ca_key.as_ref().expect("key")).expect("fits"));
}

#[test]
fn a_renewal_that_was_cut_off_between_key_and_certificate_is_done_again() {
    let files = minted(now());
    let other = minted(now());
    let torn = Files {
        key: other.key,
        ..files
    };
    assert!(matches!(
        decide(&torn, DOMAIN, now()),
        Decision::Renew { .. }
    ));
    assert!(
        refused(&decide(
            &Files {
                ca_key: None,
                ..torn
            },
            DOMAIN,
            now()
        ))
        .contains("another certificate")
    );
}

#[test]
fn a_certificate_of_another_ca_is_never_replaced() {
    let files = minted(now());
    let other = minted(now());
    let mixed = Files {
        certificate: other.certificate,
        key: other.key,
        ..files
    };
    assert!(refused(&decide(&mixed, DOMAIN, now())).contains("another CA"));
}

#[test]
fn a_ca_key_of_another_ca_is_refused() {
    let files = Files {
        ca_key: minted(now()).ca_key,
        ..minted(now())
    };
    assert!(refused(&decide(&files, DOMAIN, now())).contains("another certificate"));
}

#[test]
fn a_missing_ca_is_taken_from_the_chain() {
    let files = minted(now());
    let ca = files.ca.clone().expect("ca");
    let without = Files { ca: None, ..files };
    assert_eq!(decide(&without, DOMAIN, now()), Decision::RestoreCa(ca));
}

#[test]
fn a_missing_certificate_without_the_cas_key_is_refused() {
    let files = Files {
        certificate: None,
        ca_key: None,
        ..minted(now())
    };
    assert!(refused(&decide(&files, DOMAIN, now())).contains("missing"));
}

#[test]
fn truncated_files_are_refused_not_replaced() {
    let files = minted(now());
    let cut = |text: &str| text.chars().take(60).collect::<String>();
    let bad_ca = Files {
        ca: files.ca.as_deref().map(cut),
        ..files.clone()
    };
    assert!(refused(&decide(&bad_ca, DOMAIN, now())).contains("no PEM certificate"));
    let bad_leaf = Files {
        certificate: files.certificate.as_deref().map(cut),
        ..files.clone()
    };
    assert!(refused(&decide(&bad_leaf, DOMAIN, now())).contains("no PEM certificate"));
    let bad_key = Files {
        key: Some(Zeroizing::new(
            "-----BEGIN PRIVATE KEY-----\nMIG".to_owned(),
        )),
        ..files
    };
    assert!(refused(&decide(&bad_key, DOMAIN, now())).contains("private key"));
}

#[test]
fn a_leaf_never_outlives_its_ca() {
    let long_ago = now() - 3600 * 86_400;
    let ca = mint::ca(DOMAIN, None, long_ago).expect("a CA");
    let until = facts(&ca.certificate).expect("facts").not_after;
    let leaf = mint::leaf(DOMAIN, &ca.certificate, &ca.key, until, now()).expect("a leaf");
    assert_eq!(facts(&leaf.certificate).expect("facts").not_after, until);
    let files = Files {
        ca: Some(ca.certificate),
        ca_key: Some(ca.key),
        certificate: Some(leaf.certificate),
        key: Some(leaf.key),
    };
    assert_eq!(decide(&files, DOMAIN, now()), Decision::Use { note: None });
    assert!(
        matches!(
            decide(&files, DOMAIN, until - 86_400),
            Decision::Use { note: Some(_) }
        ),
        "renewing would change nothing"
    );
}
