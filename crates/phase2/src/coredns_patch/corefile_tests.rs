use proptest::prelude::*;

use super::*;

const SERVICE: &str = "gitlab-gateway.gitlab";

/// kubeadm's Corefile, as kind clusters have it.
const KUBEADM: &str = ".:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
";

const NODE_LOCAL: &str = "cluster.local:53 {
    errors
    cache {
            success 9984 30
            denial 9984 5
    }
    reload
    loop
    bind 169.254.20.10 10.96.0.10
    forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
    }
    prometheus :9253
    health 169.254.20.10:8080
    }
.:53 {
    errors
    bind 169.254.20.10 10.96.0.10
    forward . __PILLAR__UPSTREAM__SERVERS__
}
";

fn edited(corefile: &str) -> String {
    with_stanza(corefile, "local.example.net", SERVICE).expect("edited")
}

#[test]
fn the_stanza_stands_in_the_root_block_and_nothing_else_changed() {
    let text = edited(KUBEADM);
    assert!(text.starts_with(
        ".:53 {\n    # blueprint:begin\n    rewrite stop {\n        name regex ^(.*)\\.local\\.example\\.net\\.?$ gitlab-gateway.gitlab.svc.cluster.local answer auto\n    }\n    # blueprint:end\n    errors\n"
    ), "{text}");
    assert_eq!(without_stanza(&text).as_deref(), Ok(KUBEADM));
}

#[test]
fn a_changed_domain_replaces_the_old_stanza() {
    let text = with_stanza(&edited(KUBEADM), "git.example.org", SERVICE).expect("edited");
    assert!(text.contains("git\\.example\\.org") && !text.contains("local\\.example\\.net"));
    assert_eq!(text.matches("blueprint:begin").count(), 1);
}

#[test]
fn the_cluster_s_own_zone_is_used() {
    let text = edited(&KUBEADM.replace("kubernetes cluster.local", "kubernetes k8s.lan"));
    assert!(text.contains("gitlab-gateway.gitlab.svc.k8s.lan answer auto"));
}

#[test]
fn foreign_server_blocks_before_and_after_stay() {
    let corefile = format!(
        "corp.example:53 {{\n    forward . 10.0.0.53\n}}\n{KUBEADM}# the end, without a line end"
    );
    let text = edited(&corefile);
    assert!(text.starts_with(
        "corp.example:53 {\n    forward . 10.0.0.53\n}\n.:53 {\n    # blueprint:begin"
    ));
    assert_eq!(without_stanza(&text).as_deref(), Ok(corefile.as_str()));
}

#[test]
fn a_corefile_without_a_root_block_is_refused() {
    assert_eq!(
        with_stanza("example.org:53 {\n    errors\n}\n", "a.b", SERVICE),
        Err(CorefileError::NoRootBlock)
    );
    assert_eq!(
        with_stanza("", "a.b", SERVICE),
        Err(CorefileError::NoRootBlock)
    );
}

#[test]
fn unbalanced_markers_and_braces_are_refused() {
    let torn = KUBEADM.replacen("    errors\n", "    # blueprint:begin\n    errors\n", 1);
    assert!(matches!(
        with_stanza(&torn, "a.b", SERVICE),
        Err(CorefileError::Markers(_))
    ));
    assert_eq!(
        with_stanza(".:53 {\n    errors\n", "a.b", SERVICE),
        Err(CorefileError::Unbalanced { line: 1 })
    );
    assert_eq!(
        with_stanza(".:53 {\n}\n}\n", "a.b", SERVICE),
        Err(CorefileError::Unbalanced { line: 3 })
    );
}

#[test]
fn a_root_block_in_its_other_spellings_is_found() {
    for header in [
        ". {",
        "dns://.:53 {",
        "example.org, .:53 {",
        ".:53 example.org {",
    ] {
        let corefile = KUBEADM.replacen(".:53 {", header, 1);
        assert_eq!(
            without_stanza(&edited(&corefile)).as_deref(),
            Ok(corefile.as_str()),
            "{header}"
        );
    }
}

#[test]
fn node_local_dns_forwards_the_domain_to_coredns_instead_of_its_upstream() {
    let text = with_forward_block(NODE_LOCAL, "local.example.net").expect("edited");
    let ours = text.split("# blueprint:end").next().expect("block");
    assert!(
        ours.contains("local.example.net:53 {")
            && ours.contains("__PILLAR__CLUSTER__DNS__")
            && ours.contains("bind 169.254.20.10 10.96.0.10")
    );
    assert!(!ours.contains("health") && !ours.contains("UPSTREAM"));
    assert!(blocks(&text).is_ok_and(|blocks| blocks.len() == 3));
    assert_eq!(without_stanza(&text).as_deref(), Ok(NODE_LOCAL));
    assert_eq!(
        with_forward_block(&text, "local.example.net").as_deref(),
        Ok(text.as_str())
    );
}

fn plugin_line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,8}( [a-z0-9./:*-]{1,10}){0,3}",
        Just("# a comment with { and } in it".to_owned()),
        Just(String::new()),
        Just("forward . {$UPSTREAM}".to_owned()),
        Just("template IN A {\n       answer x\n    }".to_owned()),
    ]
}

fn server_block(header: &'static str) -> impl Strategy<Value = String> {
    (
        proptest::collection::vec(plugin_line(), 0..6),
        prop_oneof![Just("    "), Just("\t"), Just("")],
    )
        .prop_map(move |(lines, indent)| {
            format!(
                "{header} {{\n{}}}\n",
                lines
                    .iter()
                    .map(|line| [indent, line.as_str(), "\n"].concat())
                    .collect::<Vec<_>>()
                    .concat()
            )
        })
}

fn corefile() -> impl Strategy<Value = String> {
    (
        proptest::collection::vec(server_block("corp.example:53"), 0..3),
        server_block(".:53"),
        proptest::collection::vec(server_block("lan.example:5353"), 0..2),
        "(\n|# end)?",
    )
        .prop_map(|(before, root, after, end)| {
            format!("{}{root}{}{end}", before.concat(), after.concat())
        })
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once_and_removing_gives_the_original_bytes(corefile in corefile(), domain in "[a-z]{1,8}(\\.[a-z]{1,8}){1,3}") {
        let once = with_stanza(&corefile, &domain, SERVICE).expect("edited");
        prop_assert_eq!(&with_stanza(&once, &domain, SERVICE).expect("edited again"), &once);
        prop_assert_eq!(without_stanza(&once).expect("removed"), corefile);
    }

    #[test]
    fn foreign_lines_never_change(corefile in corefile()) {
        let foreign: Vec<String> = edited(&corefile).lines().map(str::to_owned).collect();
        let mut rest = foreign.iter();
        for line in corefile.lines() {
            prop_assert!(rest.any(|kept| kept == line), "{:?} is gone or moved", line);
        }
    }

    #[test]
    fn any_text_is_edited_or_refused_but_never_breaks(text in "(\\PC|\n){0,200}") {
        if let Ok(once) = with_stanza(&text, "a.b", SERVICE) {
            prop_assert_eq!(without_stanza(&once).expect("removed"), without_stanza(&text).expect("clean"));
        }
    }
}

#[test]
fn fuzz_corefile() {
    let ours = edited(KUBEADM);
    let corpus = [KUBEADM.as_bytes(), NODE_LOCAL.as_bytes(), ours.as_bytes()];
    blueprint_fuzzing::fuzz("Corefile", &corpus, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let rewrite = |text: &str| with_stanza(text, "git.home.arpa", SERVICE);
        let forward = |text: &str| with_forward_block(text, "git.home.arpa");
        let results = [holds(&text, rewrite), holds(&text, forward)];
        results
            .into_iter()
            .find(Result::is_ok)
            .as_ref()
            .unwrap_or(&Err(()))
            .into()
    });
}

/// Twice is once, and removing gives what was there without ours.
fn holds(text: &str, edit: impl Fn(&str) -> Result<String, CorefileError>) -> Result<(), ()> {
    let once = edit(text).map_err(drop)?;
    assert_eq!(edit(&once).as_ref(), Ok(&once), "twice is not once");
    assert_eq!(
        without_stanza(&once),
        without_stanza(text),
        "a foreign line changed"
    );
    Ok(())
}
