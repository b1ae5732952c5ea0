//! Tests of the whole configuration: defaults, environment variables over the file, and diagnostics.

use terrane_compiler::diagnostic::Diagnostic;

use super::*;

fn read_with(file: &str, variables: &[(&str, &str)]) -> (Config, Vec<String>) {
    let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let (config, problems) = read(Some(file), &environment);
    (config, problems.iter().map(Diagnostic::to_string).collect())
}

/// Returns the only problem of a file with some variables.
fn problem(file: &str, variables: &[(&str, &str)]) -> String {
    let (_, problems) = read_with(file, variables);
    assert_eq!(problems.len(), 1, "{file}: {problems:?}");
    problems.into_iter().next().unwrap_or_default()
}

#[test]
fn empty_file_has_the_defaults() {
    let (config, problems) = read_with("name: a\n", &[]);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!((config.server.host.as_str(), config.server.port), ("127.0.0.1", 8000));
    assert_eq!(
        (config.query.timeout_seconds, config.query.default_limit, config.query.max_limit),
        (30.0, 1000, 50_000)
    );
    assert_eq!((config.server.max_concurrent_queries, config.warehouse.kind.as_str()), (32, "duckdb"));
    assert_eq!(config.state.url.expose(), "sqlite://.terrane/state.db");
    assert_eq!(config.query.timezone.iana_name(), Some("UTC"));
    assert!(config.security.enabled && config.security.anonymous.is_none());
    assert!(read(None, &Environment::default()).1.is_empty());
}

#[test]
fn environment_overrides_the_file() {
    let file = "warehouse: {path: a.db, init: [one]}\nquery: {timeout: 5}\nlog: {level: ERROR}\n";
    let (config, problems) = read_with(
        file,
        &[
            ("SERVICE_WAREHOUSE__PATH", "b: {c.db"),
            ("SERVICE_WAREHOUSE__INIT", "[\"two, three\", four]"),
            ("SERVICE_QUERY__TIMEOUT", "0.5"),
            ("SERVICE_LOG_LEVEL", "debug"),
            ("SERVICE_LOG_OUTPUT", "stderr"),
            ("SERVICE_METRICS__ENABLED", "true"),
            ("SERVICE_SECURITY__ANONYMOUS", "{scopes: [read]}"),
            ("SERVICE_SECURITY__ANONYMOUS__ROLES", "[a, b]"),
            ("SERVICE_SERVER__CORS__ORIGINS", "[https://a.example]"),
        ],
    );
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(config.warehouse.path.map(|path| path.value).as_deref(), Some("b: {c.db"));
    let init: Vec<&str> = config.warehouse.init.iter().map(|statement| statement.value.as_str()).collect();
    assert_eq!(init, ["two, three", "four"]);
    assert_eq!(config.query.timeout_seconds, 0.5);
    assert_eq!(config.log.level, terrane_server::telemetry::LogLevel::Debug);
    assert_eq!(config.log.output, terrane_server::telemetry::LogOutput::Stderr);
    assert!(config.metrics.enabled);
    assert_eq!(config.security.anonymous.map(|anonymous| anonymous.roles), Some(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(config.server.cors.origins, ["https://a.example"]);
}

#[test]
fn environment_changes_settings_of_the_file() {
    let file = "name: a\nversion: 1.10\nmodels: {materialization: view}\nvars: {First: 1, who: \"${WHO}\"}\npaths: {cubes: c}\n";
    let (config, problems) = read_with(
        file,
        &[
            ("SERVICE_NAME", "b"),
            ("SERVICE_MODELS__SCHEMA", "main"),
            ("SERVICE_VARS__FIRST", "2"),
            ("SERVICE_VARS__LIST", "[x, \"1\"]"),
            ("SERVICE_PATHS__CUBES", "d"),
            ("WHO", "me"),
        ],
    );
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(config.folders.cubes, "d");
    let expected = r#"{"name":"b","version":1.10,"paths":{"cubes":"d"},"models":{"materialization":"view","schema":"main"},"vars":{"First":2,"who":"me","list":["x","1"]}}"#;
    assert_eq!(config.definitions.as_deref(), Some(expected));
    assert_eq!(
        read_with("name: a\nvars: {x: 1}\nserver: {port: 1}\n", &[("SERVICE_SERVER__PORT", "2")]).0.definitions,
        None
    );
}

#[test]
fn variables_in_values_are_replaced() {
    let (config, problems) = read_with(
        "warehouse: {url: \"pg://${DB_USER}@h\"}\nserver: {port: \"${P}\"}\n",
        &[("DB_USER", "ann"), ("P", "81")],
    );
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(config.warehouse.url.as_ref().map(Secret::expose), Some("pg://ann@h"));
    assert_eq!(config.server.port, 81);
    assert_eq!(format!("{:?}", config.warehouse.url), "Some(***)");
    let text = problem("state:\n  url: sqlite://${GONE}/a.db\n", &[]);
    assert!(text.starts_with("service_project.yml:2:8: error[missing-variable]: environment variable GONE"), "{text}");
}

#[test]
fn problems_have_a_place_and_the_nearest_name() {
    for (file, start, words) in [
        ("name: a\nserver: {prot: 1}\n", "service_project.yml:2:10: error[unknown-key]", "Did you mean `port`"),
        ("warehuose: {}\n", "service_project.yml:1:1: error[unknown-key]", "Did you mean `warehouse`"),
        ("server: {port: 70000}\n", "service_project.yml:1:16: error[wrong-value]", "from 0 to 65535"),
        ("server: [1]\n", "service_project.yml:1:9: error[wrong-type]", "must be a mapping"),
        ("server: {port: [1]}\n", "service_project.yml:1:16: error[wrong-type]", "one value"),
        (
            "server: {port: 1, port: 2}\n",
            "service_project.yml:1:19: error[duplicate-key]",
            "duplicate key `port` in `server`",
        ),
        ("query: {timezone: Mars/North}\n", "service_project.yml:1:19: error[wrong-value]", "IANA"),
        ("query: {timeout: 0}\n", "service_project.yml:1:18: error[wrong-value]", "seconds"),
        ("query: {default_limit: 10, max_limit: 5}\n", "service_project.yml:1:24: error[wrong-value]", "max_limit"),
        ("warehouse: {memory_limit: \"1GB'; DROP\"}\n", "service_project.yml:1:27: error[wrong-value]", "4GB"),
        ("warehouse: {connect_timeout_seconds: 0}\n", "service_project.yml:1:38: error[wrong-value]", "1 to 600"),
        ("warehouse: {init: SELECT 1}\n", "service_project.yml:1:19: error[wrong-type]", "must be a list"),
        ("security: {anonymous: {scopes: [raed]}}\n", "service_project.yml:1:23: error[wrong-value]", "`raed`"),
        ("security: {jwt: {secrets: x}}\n", "service_project.yml:1:18: error[unknown-key]", "Did you mean `secret`"),
        ("log: {format: xml}\n", "service_project.yml:1:15: error[wrong-value]", "json, console, pretty"),
        ("a: [\n", "service_project.yml:1:4: error[yaml-syntax]", "unclosed"),
        ("[]\n", "service_project.yml:1:1: error[wrong-type]", "mapping"),
    ] {
        let text = problem(file, &[]);
        assert!(text.starts_with(start) && text.contains(words), "{file}: {text}");
    }
}

#[test]
fn variables_of_unknown_settings_are_reported() {
    let text = problem("", &[("SERVICE_SERVER__PROT", "1")]);
    assert!(text.starts_with("warning[unknown-variable]") && text.contains("SERVICE_SERVER__PORT"), "{text}");
    let text = problem("", &[("SERVICE_FOO", "1")]);
    assert!(text.starts_with("warning[unknown-variable]") && !text.contains("Did you mean"), "{text}");
    // A misspelled security setting may leave access open.
    let text = problem("", &[("SERVICE_SECURITY__ENABELD", "true")]);
    assert!(text.starts_with("error[unknown-variable]"), "{text}");
    let text = problem("", &[("SERVICE_SERVER__PORT", "many")]);
    assert!(text.contains("environment variable SERVICE_SERVER__PORT: `server.port` must be"), "{text}");
}

#[test]
fn credentials_set_anywhere_are_seen() {
    for (file, variables) in [
        ("security: {jwt: {secret: x}}\n", &[][..]),
        ("", &[("SERVICE_SECURITY__JWT_SECRET", "x")][..]),
        ("", &[("SERVICE_SECURITY__JWT", "{secret: x}")][..]),
    ] {
        let (config, problems) = read_with(file, variables);
        assert!(problems.is_empty(), "{problems:?}");
        assert!(config.security.jwt.is_on(), "{file} {variables:?}");
        assert!(!format!("{config:?}").contains("secret: x"));
    }
    let (config, problems) = read_with("", &[("SERVICE_SECURITY__JWT__EXTERNAL_JWKS_URL", "https://a")]);
    assert!(problems.is_empty() && config.security.jwt.is_external(), "{problems:?}");
    let file = "security: {oauth: {providers: [{name: a, client_secret: hush, claims_mapping: {roles: a.b}}]}}\n";
    let (config, problems) = read_with(file, &[]);
    assert!(problems.is_empty() && config.security.oauth.is_on(), "{problems:?}");
    assert_eq!(config.security.oauth.providers[0].claims.roles.as_deref(), Some("a.b"));
    assert!(!format!("{config:?}").contains("hush"));
    let text = problem("security: {jwt: {algorithms: [RS256, HS256]}}\n", &[]);
    assert!(text.starts_with("service_project.yml:1:38: error[wrong-value]") && text.contains("RS384"), "{text}");
}

#[test]
fn plugins_are_folders_or_a_list() {
    let (config, problems) = read_with("plugins: {paths: [a, b]}\n", &[]);
    let paths: Vec<&str> = config.plugins.paths.iter().map(|path| path.value.as_str()).collect();
    assert!(problems.is_empty() && paths == ["a", "b"], "{problems:?}");
    let digest = "Ab".repeat(32);
    let entry = format!(
        "{{id: policy-region, role: governance, source: a.wasm, sha256: {digest}, enforcement: optional, mode: monitor, config: {{allow: [eu, 1, true], salt: '${{SALT}}'}}, grants: [memo, query-values], limits: {{time_ms: 5}}}}"
    );
    for file in [format!("plugins:\n  - {entry}\n"), format!("plugins: {{list: [{entry}]}}\n")] {
        let (config, problems) = read_with(&file, &[("SALT", "hush")]);
        let [plugin] = &config.plugins.listed[..] else { panic!("{problems:?}") };
        assert!(problems.is_empty() && !plugin.is_required && plugin.is_monitored, "{problems:?}");
        assert_eq!(&*plugin.config_json, r#"{"allow":["eu",1,true],"salt":"hush"}"#);
        assert_eq!(plugin.sha256, Some("ab".repeat(32)));
        assert!(plugin.grants.memo && plugin.grants.query_values && !plugin.grants.sample_rows);
        assert_eq!((plugin.limits.time_ms, plugin.limits.fuel), (Some(5), None));
        // `hush` comes from the plugin's own `config`, whose values must not be listed among the settings.
        assert!(!format!("{:?}", config.settings).contains("hush"));
    }
}

#[test]
fn hook_is_required_unless_it_is_monitored() {
    for (entry, is_required) in [
        ("role: governance", true),
        ("role: governance, mode: protect", true),
        ("role: governance, mode: monitor", false),
        ("role: governance, enforcement: optional", false),
        ("role: check", false),
        ("role: check, enforcement: required", true),
    ] {
        let (config, problems) = read_with(&format!("plugins:\n  - {{id: x, {entry}}}\n"), &[]);
        assert!(problems.is_empty() && config.plugins.listed[0].is_required == is_required, "{entry}: {problems:?}");
    }
}

#[test]
fn problems_of_a_plugin_have_a_place() {
    for (entry, words) in [
        ("{id: X, role: check}", "2:10: error[wrong-value]"),
        ("{id: x, role: hook}", "one of dialect, detector, check, governance"),
        ("{role: check}", "a plugin of the list has no `id`"),
        ("{id: x}", "a plugin of the list has no `role`"),
        ("{id: x, role: check, sha256: abc}", "64 hexadecimal digits"),
        ("{id: x, role: check, grants: [network]}", "is not a grant"),
        ("{id: x, role: check, limits: {memory_mb: 65}}", "from 1 to 64"),
        ("{id: x, role: check, limits: {time: 1}}", "unknown key `time`"),
        ("{id: x, role: check, signature: y}", "unknown key `signature`"),
        ("{id: x, role: check, config: [1]}", "must be a mapping"),
        ("{id: x, role: dialect}", "is not the id of a dialect"),
        ("{id: x, role: governance, mode: monitor, enforcement: required}", "cannot be `required`"),
        ("{id: x, role: check, mode: monitor}", "has no effect on a check"),
        ("{id: x, role: check}\n  - {id: x, role: check}", "3:10: error[duplicate-name]"),
    ] {
        let text = problem(&format!("plugins:\n  - {entry}\n"), &[]);
        assert!(text.contains(words), "{entry}: {text}");
    }
    let text = problem("plugins: {keys: [abc]}\n", &[]);
    assert!(text.contains("64 hexadecimal digits"), "{text}");
    let text = problem("plugins: {require_signatures: true}\n", &[]);
    assert!(text.contains("`plugins.keys` is empty"), "{text}");
}

/// The defaults that `config show` lists are the effective ones: setting all of them explicitly changes nothing.
#[test]
fn reference_lists_the_actual_defaults() {
    // These keys are not compared. For some of them, the configuration distinguishes a value that is set from a missing
    // one. For the others, the default is applied only after the configuration is read.
    let left_out = [
        "security.anonymous",
        "security.jwt.claims",
        "security.jwt.algorithm",
        "security.jwt.issuer",
        "security.jwt.own_issuer",
        "security.jwt.audience",
        "security.tenant_claim",
        "warehouse.adbc",
        "warehouse.max_connections",
        "warehouse.connect_timeout_seconds",
        "log.file",
        "pre_aggregations.path",
        "optimization.prices",
        "optimization.max_",
        "optimization.daily_budget",
        "optimization.monthly_budget",
        "optimization.alert_at_percent",
        "optimization.timezone",
    ];
    let plain = |config: &Config| {
        let config = Config { settings: Vec::new(), ineffective: Vec::new(), definitions: None, ..config.clone() };
        let text = format!("{config:#?}");
        // The places of the values differ between the configurations, so the fields with places are not compared.
        let mut lines: Vec<&str> = Vec::new();
        let mut skipped = None;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            match skipped {
                Some(depth) if indent > depth => continue,
                Some(depth) if indent == depth && line.trim_start().starts_with([')', '}']) => continue,
                _ => skipped = None,
            }
            if line.split_once(':').is_some_and(|(name, _)| name.ends_with("place")) {
                skipped = Some(indent);
                continue;
            }
            lines.push(line);
        }
        lines.join("\n")
    };
    let (default, problems) = read_with("", &[]);
    assert!(problems.is_empty(), "{problems:?}");
    let is_left_out = |key: &str| left_out.iter().any(|left| key.starts_with(left));
    let mut set = 0;
    for setting in default.settings.iter().filter(|setting| !is_left_out(&setting.key)) {
        let Some(value) = setting.value.as_deref().filter(|value| !value.starts_with('(')) else { continue };
        let variable = reader::SPELLED.iter().find(|(key, _)| *key == setting.key);
        let regular = format!("SERVICE_{}", setting.key.to_uppercase().replace('.', "__"));
        let (config, problems) = read_with("", &[(variable.map_or(&*regular, |(_, name)| name), value)]);
        assert!(problems.is_empty(), "{}: {problems:?}", setting.key);
        assert_eq!(plain(&config), plain(&default), "{}", setting.key);
        set += 1;
    }
    assert!(set > 25, "{set} defaults were compared");
}

#[test]
fn every_setting_is_shown_with_its_source() {
    let file = "server: {port: 81}\nstate:\n  url: \"postgres://me:${P}@db/x\"\nwarehouse: {init: [\"CREATE SECRET 'hidden'\"]}\n\
                security: {oauth: {providers: [{name: a, client_secret: hidden}, {name: b}]}}\n";
    let (config, _) = read_with(
        file,
        &[
            ("P", "hidden"),
            ("SERVICE_SERVER__HOST", "::1"),
            ("SERVICE_QUERY", "{timeout: 5}"),
            ("SERVICE_SECURITY__JWT_SECRET", "hidden"),
        ],
    );
    let shown: Vec<String> = config
        .settings
        .iter()
        .map(|Setting { key, value, source }| format!("{key} = {} ({source})", value.as_deref().unwrap_or("-")))
        .collect();
    for line in [
        "server.port = 81 (service_project.yml:1)",
        "server.host = ::1 (environment variable SERVICE_SERVER__HOST)",
        "server.workers = (one per core) (default)",
        "query.timeout = 5 (environment variable SERVICE_QUERY)",
        "query.max_limit = 50000 (default)",
        "state.url = postgres://***@db/x (service_project.yml:3, with the environment)",
        "security.jwt.secret = *** (environment variable SERVICE_SECURITY__JWT_SECRET)",
        "security.jwt.issuer = terrane (default)",
        "warehouse.init = (SQL, not shown) (service_project.yml:4)",
        "warehouse.url = - (default)",
        "security.oauth.providers[0].client_secret = *** (service_project.yml:5)",
        "security.oauth.providers[1].name = b (service_project.yml:5)",
        "name = - (default)",
    ] {
        assert!(shown.iter().any(|found| found == line), "{line} is not in {shown:#?}");
    }
    assert!(!shown.concat().contains("hidden"), "{shown:#?}");
}

/// Checks that the reference lists every setting that is read, and no other.
#[test]
fn reference_lists_every_setting() {
    let reference = include_str!("../../../docs/reference/settings.md");
    let environment = Environment::default();
    let mut collected = Collected::default();
    let rates = "limits: {rate: {per_key: {}, per_tenant: {}, anonymous: {}, failed_credentials: {}}}
";
    let security = "security: {anonymous: {}, oauth: {providers: [{}]}}
";
    collect(
        Some(&format!(
            "{security}anomaly: {{channels: [{{}}]}}
plugins: {{paths: [], list: [{{}}]}}
{rates}"
        )),
        &environment,
        &mut collected,
    );
    // Keys of list items have no variables.
    let within_lists = |key: &str| {
        ["anomaly.channels.", "plugins.list.", "security.oauth.providers."].iter().any(|list| key.starts_with(list))
    };
    let items = collected.read_keys.settings().into_iter().map(|setting| setting.key.replace("[0]", ""));
    let items: Vec<String> = items.filter(|key| within_lists(key)).collect();
    let holds_others = |key: &String| items.iter().any(|other| other.starts_with(&format!("{key}.")));
    let items: Vec<String> = items.iter().filter(|key| !holds_others(key)).cloned().collect();
    assert!(items.len() > 20, "{items:?}");
    let variables = collected.variables;
    let spelled = |name: &str| reader::SPELLED.iter().any(|(_, variable)| *variable == name);
    let is_section = |name: &str| variables.iter().any(|other| other.starts_with(&format!("{name}__")));
    let path_of = |name: &str| name.trim_start_matches("SERVICE_").to_lowercase().replace("__", ".");
    let leaves = variables.iter().filter(|name| !spelled(name) && !is_section(name));
    // The compiler reads the keys below `models`.
    let keys: Vec<String> =
        leaves.map(|name| path_of(name)).filter(|path| path != "models").chain(items.iter().cloned()).collect();
    assert!(keys.len() > 60, "{keys:?}");
    for key in &keys {
        assert!(reference.contains(&format!("`{key}`")), "settings.md does not name `{key}`");
    }
    for (key, variable) in reader::SPELLED {
        let line = reference.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
        assert!(line.is_some_and(|line| line.contains(&format!("`{variable}`"))), "settings.md: `{key}`, `{variable}`");
    }
    for row in reference.lines().filter(|line| line.starts_with("| `")) {
        let mut cells = row.split('|').map(str::trim);
        let (named, variable) = (cells.nth(1).unwrap_or_default(), cells.next().unwrap_or_default());
        for key in named.split(", ").map(|key| key.trim_matches('`')) {
            let is_known = keys.iter().any(|known| known == key || known.starts_with(&format!("{key}.")));
            assert!(is_known || key.starts_with("models."), "settings.md names `{key}`, which nothing reads");
            let regular = format!("`SERVICE_{}`", key.to_uppercase().replace('.', "__"));
            if variable.starts_with("`SERVICE_") && !spelled(variable.trim_matches('`')) {
                assert_eq!(variable, regular, "settings.md: `{key}`");
            }
        }
    }
}

#[test]
fn variables_cannot_set_items_of_a_list() {
    let file = "plugins: [{id: guard, role: governance}, {id: watch, role: governance}]\n";
    let set = |name: &str| [(name.to_owned(), "monitor".to_owned())].into_iter().collect();
    for name in ["SERVICE_PLUGINS__MODE", "SERVICE_PLUGINS__LIST__MODE", "SERVICE_PLUGINS__REQUIRE_SIGNATURES"] {
        let (config, problems) = read(Some(file), &set(name));
        assert!(config.plugins.listed.iter().all(|plugin| !plugin.is_monitored), "{name}");
        assert!(problems.iter().any(|problem| problem.is_error() && problem.message.contains(name)), "{name}");
    }
}

#[test]
fn variable_can_disable_anonymous_access_of_the_file() {
    let file = "security: {anonymous: {scopes: [read], roles: []}}\n";
    let variables = |value: &str| [("SERVICE_SECURITY__ANONYMOUS".to_owned(), value.to_owned())].into_iter().collect();
    let (config, problems) = read(Some(file), &variables("none"));
    assert!(problems.is_empty() && config.security.anonymous.is_none(), "{problems:?}");
    let (config, _) = read(Some("security: {anonymous: none}\n"), &Environment::default());
    assert!(config.security.anonymous.is_none());
    let (config, problems) = read(Some(file), &variables("{scopes: [read]}"));
    assert!(problems.is_empty() && config.security.anonymous.is_some(), "{problems:?}");
}

#[test]
fn channels_are_checked_by_their_type() {
    let read = |channels: &str| read_with(&format!("anomaly: {{channels: [{channels}]}}\n"), &[("HOOK", "https://x")]);
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let (config, problems) = read(&format!(
        "{{type: slack, name: a, url: '${{HOOK}}'}}, {{type: webhook, name: a, url: 'https://x', secret: {secret}}}, \
         {{type: email, host: mail, from: a@b.example, encryption: tls}}"
    ));
    assert!(problems.is_empty(), "{problems:?}");
    let channels = &config.anomaly.channels;
    assert_eq!((&*channels.slack[0].url, channels.email.as_ref().unwrap().port), ("https://x", 465));
    assert_eq!(channels.webhooks[0].secrets.len(), 1);
    for (channels, problem) in [
        ("{name: a}", "has no `type`"),
        ("{type: fax}", "must be one of webhook"),
        ("{type: slack, name: a}", "the slack channel of `anomaly.channels` has no `url`"),
        ("{type: slack, name: a, url: 'https://x', token: t}", "`token` is not a key of a slack channel"),
        ("{type: webhook, name: a, url: 'https://x', secret: short}", "must be `whsec_`"),
        ("{type: email, host: h, from: f, username: u}", "only one of `username` and `password`"),
        ("{type: email, host: h, from: f, username: u, password: p, encryption: none}", "in plain text"),
        (
            "{type: slack, name: a, url: x}, {type: slack, name: a, url: y}",
            "two channels of the type `slack` named `a`",
        ),
        ("{type: sms, url: x}, {type: sms, url: y}", "two channels of the type `sms`"),
    ] {
        let (_, problems) = read(channels);
        assert!(problems.iter().any(|found| found.contains(problem)), "{channels}: {problems:?}");
    }
}

#[test]
fn options_of_a_driver_are_text_from_the_environment() {
    let file = "warehouse: {type: snowflake, adbc: {driver: snowflake, options: {uri: \"${DB_URI}\", port: 443, tls: true, none: }}}\n";
    let environment = Environment::from_iter([("DB_URI".to_owned(), "me:hidden@h".to_owned())]);
    let (config, problems) = read(Some(file), &environment);
    assert!(problems.is_empty(), "{problems:?}");
    let adbc = config.warehouse.adbc.as_ref().unwrap();
    let options: Vec<_> = adbc.options.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(options, [("uri", "me:hidden@h"), ("port", "443"), ("tls", "true")]);
    assert_eq!((adbc.driver.value.as_str(), &adbc.entrypoint, adbc.session.is_none()), ("snowflake", &None, true));
    assert!(!format!("{adbc:?}").contains("hidden"));
    let shown = config.settings.iter().find(|setting| setting.key == "warehouse.adbc.options").unwrap();
    assert_eq!(shown.value.as_deref(), Some("***"));
}

#[test]
fn driver_can_be_set_by_the_environment_only() {
    let variables = [
        ("SERVICE_WAREHOUSE__TYPE", "databricks"),
        ("SERVICE_WAREHOUSE__ADBC__DRIVER", "/opt/driver.so"),
        ("SERVICE_WAREHOUSE__ADBC__OPTIONS", "{uri: x}"),
        ("SERVICE_WAREHOUSE__ADBC__SESSION", "[SET a = 1]"),
    ];
    let environment = Environment::from_iter(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let (config, problems) = read(None, &environment);
    assert!(problems.is_empty(), "{problems:?}");
    let adbc = config.warehouse.adbc.as_ref().unwrap();
    assert_eq!((adbc.driver.value.as_str(), adbc.options.len()), ("/opt/driver.so", 1));
    assert_eq!(adbc.session.as_ref().map(|session| session[0].value.as_str()), Some("SET a = 1"));
    assert_eq!(config.warehouse.dialect(), "spark");
}

#[test]
fn incomplete_driver_is_reported() {
    for (file, words) in [
        ("warehouse: {adbc: {options: {a: 1}}}\n", "needs the key `driver`"),
        ("warehouse: {adbc: {driver: \"\"}}\n", "needs the key `driver`"),
        ("warehouse: {adbc: {driver: x, options: {a: [1]}}}\n", "option `a`"),
        ("warehouse: {adbc: {driver: x, options: [1]}}\n", "must be a mapping"),
        ("warehouse: {adbc: {driver: x, option: {}}}\n", "option"),
    ] {
        let (_, problems) = read(Some(file), &Environment::default());
        assert!(problems.iter().any(|problem| problem.to_string().contains(words)), "{file}: {problems:?}");
    }
}
