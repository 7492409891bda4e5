use super::*;

fn parse(text: &str) -> Result<Settings, String> {
    Settings::parse(text, Path::new("blueprint.yaml")).map_err(|error| match error {
        Error::Refused { found, .. } => found,
        other => other.to_string(),
    })
}

#[test]
fn an_empty_file_means_the_defaults() {
    assert_eq!(parse("").as_ref(), Ok(&Settings::default()));
    assert_eq!(parse("# nothing\n").as_ref(), Ok(&Settings::default()));
}

#[test]
fn fields_given_replace_their_defaults_alone() {
    let settings = parse("domain: git.home.arpa\nprofile: full\nports:\n  ssh: 31022\n").unwrap();
    assert_eq!(settings.host("gitlab"), "gitlab.git.home.arpa");
    assert_eq!(settings.profile, Profile::Full);
    assert_eq!(
        settings.ports,
        Ports {
            https: 30443,
            http: 30080,
            ssh: 31022
        }
    );
    assert_eq!(settings.kube_context(), "kind-blueprint");
}

#[test]
fn a_mistyped_field_is_named_with_the_nearest_one() {
    assert_eq!(
        parse("domian: a.b").unwrap_err(),
        "unknown field `domian` (did you mean `domain`?)"
    );
    assert_eq!(
        parse("ports: {htps: 30443}").unwrap_err(),
        "unknown field `ports.htps` (did you mean `ports.https`?)"
    );
    assert_eq!(parse("zzz: 1").unwrap_err(), "unknown field `zzz`");
    assert_eq!(
        parse("openbao: {autounseal: true}").unwrap_err(),
        "unknown field `openbao.autounseal` (did you mean `openbao.autoUnseal`?)"
    );
}

#[test]
fn every_problem_is_named_at_once() {
    let found = parse("domain: Example\ncluster: -x\nstorage_root: relative\nports: {https: 443, http: 30022}\nprofile: huge").unwrap_err();
    for part in [
        "`domain`",
        "`cluster`",
        "`storage_root`",
        "`ports.https` is 443",
        "`ports.ssh` and `ports.http` are both 30022",
        "`profile`",
    ] {
        assert!(found.contains(part), "{part} missing in: {found}");
    }
}

#[test]
fn the_schema_judges_as_the_parser_does() {
    let validator = jsonschema::validator_for(&json_schema()).unwrap();
    assert!(validator.is_valid(&serde_json::to_value(Settings::default()).unwrap()));
    for (text, valid) in [
        ("domain: a.b", true),
        ("domain: example", false),
        ("cluster: a_b", false),
        ("storage_root: /data/../x", true),
        ("storage_root: data", false),
        ("ports: {ssh: 22}", false),
        ("profile: small", true),
        ("profile: tiny", false),
        ("nothing: 1", false),
    ] {
        let value = yaml::document(text, Path::new("x")).unwrap();
        assert_eq!(validator.is_valid(&value), valid, "{text}");
        assert!(
            parse(text).is_ok() <= valid,
            "the parser takes what the schema refuses: {text}"
        );
    }
}

#[test]
fn the_published_schema_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/blueprint.schema.json");
    if std::env::var_os("BLUEPRINT_WRITE_GENERATED").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, json_schema_text()).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == json_schema_text(),
        "docs/blueprint.schema.json is stale: run the tests once with BLUEPRINT_WRITE_GENERATED=1"
    );
}

#[test]
fn fuzz_settings() {
    let corpus: [&[u8]; 2] = [
        b"# ours\ndomain: git.home.arpa\ncluster: blueprint\nstorage_root: /var/local/shared\nprofile: full\nports:\n  https: 30443\n  http: 30080\n  ssh: 31022\n",
        b"{domain: a.b, ports: {ssh: 30022}}",
    ];
    blueprint_fuzzing::fuzz("blueprint.yaml", &corpus, |bytes| {
        let result = parse(&String::from_utf8_lossy(bytes));
        if let Ok(settings) = &result {
            let text = yaml::to_text(&serde_json::to_value(settings).unwrap());
            assert_eq!(parse(&text).as_ref(), Ok(settings), "{text}");
            assert!(!settings.storage_root.split('/').any(|part| part == ".."));
        }
        (&result).into()
    });
}
