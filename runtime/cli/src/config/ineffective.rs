//! Settings that have no effect without another setting.
//!
//! In: the configuration and the keys that were set. Out: each key without effect, with the setting that it needs or
//! that has priority. Not here: a key whose switch is set explicitly, as in `metrics: {enabled: false}`, since the author
//! chose this; and settings that prevent a start (`start_rules`).

use terrane_server::telemetry::LogOutput;

use super::place::Place;
use super::settings::ReadKeys;
use super::{Config, JwtAlgorithm};

/// A setting that has no effect without another setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IneffectiveSetting {
    pub key: &'static str,
    pub cause: IneffectiveCause,
    pub place: Place,
}

/// The reason for which a setting has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IneffectiveCause {
    /// This setting is missing. It has the spelling of a project file.
    Missing(&'static str),
    /// This setting has priority.
    Overridden(&'static str),
}

/// Keys that have no effect without one other setting.
struct Rule {
    keys: &'static [&'static str],
    needs: &'static str,
    /// The key that an author sets to switch off these keys on purpose.
    switch: Option<&'static str>,
    is_effective: fn(&Config) -> bool,
}

const RULES: &[Rule] = &[
    Rule {
        keys: &[
            "optimization.max_cost_per_query",
            "optimization.daily_budget",
            "optimization.monthly_budget",
            "optimization.alert_at_percent",
        ],
        needs: "optimization.prices",
        switch: Some("optimization.enabled"),
        is_effective: |config| config.optimization.prices.is_known(),
    },
    Rule {
        keys: &["security.jwt.max_token_age"],
        needs: "security.jwt.application_tokens: true",
        switch: Some("security.jwt.application_tokens"),
        is_effective: |config| config.security.jwt.application_tokens,
    },
    Rule {
        keys: &["security.jwt.access_token_expiry", "security.jwt.refresh_token_expiry"],
        needs: "security.jwt.secret` or `private_key_path",
        switch: Some("security.jwt.enabled"),
        is_effective: |config| config.security.jwt.is_signing(),
    },
    Rule {
        keys: &["security.jwt.verify_exp", "security.jwt.verify_iat"],
        needs: "security.jwt.secret`, `public_key_path` or `external_jwks_url",
        switch: Some("security.jwt.enabled"),
        is_effective: |config| config.security.jwt.is_on(),
    },
    Rule {
        keys: &["security.jwt.issuer", "security.jwt.audience"],
        needs: "security.jwt.secret`, `public_key_path` or `external_jwks_url",
        switch: Some("security.jwt.enabled"),
        is_effective: |config| config.security.jwt.is_on(),
    },
    Rule {
        keys: &["security.jwt.own_issuer"],
        needs: "security.jwt.secret` or `public_key_path",
        switch: Some("security.jwt.enabled"),
        is_effective: |config| config.security.jwt.has_own_key(),
    },
    Rule {
        keys: &["security.jwt.private_key_path", "security.jwt.public_key_path"],
        needs: "security.jwt.algorithm: RS256",
        switch: Some("security.jwt.enabled"),
        is_effective: |config| config.security.jwt.algorithm == Some(JwtAlgorithm::Rs256),
    },
    Rule {
        keys: &["security.jwt.jwks_refresh_seconds", "security.jwt.jwks_stale_seconds"],
        needs: "security.jwt.external_jwks_url",
        switch: Some("security.jwt.enabled"),
        is_effective: |config| config.security.jwt.is_external() || config.security.oauth.is_on(),
    },
    Rule {
        keys: &["security.jwt.algorithms"],
        needs: "security.jwt.external_jwks_url",
        switch: Some("security.jwt.enabled"),
        is_effective: |config| config.security.jwt.is_external(),
    },
    Rule {
        keys: &[
            "search.llm.key",
            "search.llm.use",
            "search.llm.max_tokens",
            "search.llm.max_members",
            "search.llm.send_values",
            "search.llm.questions_per_hour",
            "search.llm.timeout_seconds",
            "search.llm.reasoning",
        ],
        needs: "search.llm.url` and `search.llm.model",
        switch: Some("search.enabled"),
        is_effective: |config| config.search.language_model.is_some(),
    },
    Rule {
        keys: &["security.outgoing.allow"],
        needs: "security.jwt.external_jwks_url`, `security.oauth.providers`, `search.llm.url` or `anomaly.enabled: true",
        switch: Some("security.oauth.enabled"),
        is_effective: |config| {
            // Owners of monitors name webhooks without a setting.
            let is_sent_to = config.anomaly.enabled || config.search.language_model.is_some();
            config.security.jwt.is_external() || config.security.oauth.is_on() || is_sent_to
        },
    },
    Rule {
        keys: &["security.outgoing.ca_path"],
        needs: "security.jwt.external_jwks_url`, `security.oauth.providers` or `cache.url: rediss://",
        switch: Some("security.oauth.enabled"),
        is_effective: |config| {
            let is_tls = config.cache.url.as_ref().is_some_and(|url| url.expose().starts_with("rediss://"));
            config.security.jwt.is_external() || config.security.oauth.is_on() || (config.cache.enabled && is_tls)
        },
    },
    Rule {
        keys: &["security.oauth.public_url"],
        needs: "security.oauth.providers",
        switch: Some("security.oauth.enabled"),
        is_effective: |config| config.security.oauth.is_on(),
    },
    Rule {
        keys: &["cache.ttl_seconds", "cache.max_entry", "cache.stale"],
        needs: "cache.max_size` above 0 or `cache.url",
        switch: Some("cache.enabled"),
        is_effective: |config| config.cache.max_size > 0 || config.cache.url.is_some(),
    },
    Rule {
        keys: &[
            "pre_aggregations.path",
            "pre_aggregations.schema",
            "pre_aggregations.refresh_seconds",
            "pre_aggregations.build_timeout_seconds",
            "pre_aggregations.history_days",
        ],
        needs: "pre_aggregations.enabled: true",
        switch: Some("pre_aggregations.enabled"),
        is_effective: |config| config.pre_aggregations.enabled,
    },
    Rule {
        keys: &["metrics.path", "metrics.address", "metrics.include_process", "metrics.include_runtime"],
        needs: "metrics.enabled: true",
        switch: Some("metrics.enabled"),
        is_effective: |config| config.metrics.enabled,
    },
    Rule {
        keys: &["metrics.public"],
        needs: "metrics.address",
        switch: Some("metrics.enabled"),
        is_effective: |config| config.metrics.address.is_some(),
    },
    Rule {
        keys: &["telemetry.service_name", "telemetry.sample_ratio"],
        needs: "telemetry.otlp_endpoint",
        switch: Some("telemetry.otlp_endpoint"),
        is_effective: |config| config.telemetry.otlp_endpoint.is_some(),
    },
    Rule {
        keys: &["log.file", "log.max_size_mb", "log.backup_count"],
        needs: "log.output: file",
        switch: Some("log.output"),
        is_effective: |config| matches!(config.log.output, LogOutput::File(_)),
    },
    Rule {
        keys: &["warehouse.threads", "warehouse.memory_limit", "warehouse.file_access"],
        needs: "warehouse.type: duckdb",
        switch: None,
        is_effective: |config| config.warehouse.kind == "duckdb" && config.warehouse.adbc.is_none(),
    },
    Rule {
        keys: &["warehouse.connect_timeout_seconds"],
        needs: "warehouse.type: postgres`, `mysql` or `spark",
        switch: None,
        is_effective: |config| {
            config.warehouse.adbc.is_some() || !matches!(config.warehouse.kind.as_str(), "duckdb" | "sqlite")
        },
    },
];

/// Keys that have no effect beside another key, which has priority.
const OVERRIDDEN: &[(&str, &str)] = &[
    ("security.jwt.claims_mapping.user_id", "security.jwt.claims.user_id"),
    ("security.jwt.claims_mapping.email", "security.jwt.claims.email"),
    ("security.jwt.claims_mapping.roles", "security.jwt.claims.roles"),
    ("security.jwt.claims_mapping.groups", "security.jwt.claims.groups"),
    ("security.jwt.claims_mapping.attributes", "security.jwt.claims.attributes"),
    ("security.jwt.claims_mapping.scopes", "security.jwt.claims.scopes"),
];

/// Returns the settings without effect, in the order of the rules.
pub(super) fn find(config: &Config, written: &ReadKeys) -> Vec<IneffectiveSetting> {
    let is_chosen = |rule: &Rule| rule.switch.is_some_and(|switch| written.place(switch).is_some());
    let rules = RULES.iter().filter(|rule| !(rule.is_effective)(config) && !is_chosen(rule));
    let missing = rules.flat_map(|rule| rule.keys.iter().map(|key| (*key, IneffectiveCause::Missing(rule.needs))));
    let overridden = OVERRIDDEN.iter().filter(|(_, by)| written.place(by).is_some());
    let overridden = overridden.map(|(key, by)| (*key, IneffectiveCause::Overridden(by)));
    let set = missing.chain(overridden).filter_map(|(key, cause)| {
        let place = written.place(key)?.clone();
        Some(IneffectiveSetting { key, cause, place })
    });
    set.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, read};

    fn found(file: &str) -> Vec<&'static str> {
        let (config, problems) = read(Some(file), &Environment::default());
        assert!(problems.is_empty(), "{file}: {problems:?}");
        config.ineffective.iter().map(|setting| setting.key).collect()
    }

    /// Adds a key to the settings of a file, with the first value that the key accepts. Returns the settings without
    /// effect.
    fn found_beside(file: &str, key: &str) -> Vec<IneffectiveSetting> {
        const VALUES: &[&str] = &[
            "60",
            "true",
            "/measurements",
            "name_of_it",
            "[10.0.0.0/8]",
            "[RS256]",
            "https://a.b",
            "127.0.0.1:9100",
            "1GB",
            "0.5",
            "600",
            "always",
            "project",
        ];
        let variable = format!("SERVICE_{}", key.to_uppercase().replace('.', "__"));
        let mut read = VALUES.iter().map(|value| {
            let environment: Environment = [(variable.clone(), (*value).to_owned())].into_iter().collect();
            read(Some(file), &environment)
        });
        read.find(|(_, problems)| problems.is_empty()).unwrap_or_else(|| panic!("no value fits {key}")).0.ineffective
    }

    #[test]
    fn every_rule_names_each_of_its_keys_once() {
        // Each of these switches off a need that the defaults fulfil.
        const FILE: &str = "anomaly: {enabled: false}\nwarehouse: {type: sqlite}\ncache: {max_size: 0}\n";
        for rule in RULES {
            for key in rule.keys {
                let found = found_beside(FILE, key);
                let [setting] = found.as_slice() else { panic!("{key}: {found:?}") };
                assert_eq!((setting.key, setting.cause), (*key, IneffectiveCause::Missing(rule.needs)));
                if rule.switch.is_some() {
                    assert_eq!(found_beside(&switched_off(rule, FILE), key), [], "{key} beside its switch");
                }
            }
        }
        for (key, by) in OVERRIDDEN {
            let (outer, name) = by.rsplit_once('.').unwrap();
            assert_eq!(outer, "security.jwt.claims");
            let found = found_beside(&format!("security: {{jwt: {{claims: {{{name}: a}}}}}}\n"), key);
            let [setting] = found.as_slice() else { panic!("{key}: {found:?}") };
            assert_eq!((setting.key, setting.cause), (*key, IneffectiveCause::Overridden(by)));
            assert_eq!(found_beside("", key), []);
        }
    }

    /// Returns a file with the switch of a rule, set as an author sets it to leave the keys without effect.
    fn switched_off(rule: &Rule, file: &str) -> String {
        let switch = rule.switch.unwrap();
        let value = match switch {
            "log.output" => "stdout",
            "telemetry.otlp_endpoint" => "\"\"",
            _ => "false",
        };
        let keys: Vec<&str> = switch.split('.').collect();
        let (name, outer) = keys.split_last().unwrap();
        let open: String = outer.iter().skip(1).map(|key| format!("{key}: {{")).collect();
        let close = "}".repeat(outer.len());
        let rest: String = file.lines().filter(|line| !line.starts_with(outer[0])).map(|l| format!("{l}\n")).collect();
        format!("{rest}{}: {{{open}{name}: {value}{close}\n", outer[0])
    }

    #[test]
    fn setting_without_its_switch_is_found() {
        for (file, key) in [
            ("security: {jwt: {max_token_age: 60}}", "security.jwt.max_token_age"),
            ("security: {jwt: {refresh_token_expiry: 60}}", "security.jwt.refresh_token_expiry"),
            ("security: {jwt: {verify_iat: true}}", "security.jwt.verify_iat"),
            ("security: {jwt: {jwks_stale_seconds: 60}}", "security.jwt.jwks_stale_seconds"),
            ("security: {outgoing: {allow: [10.0.0.0/8]}}\nanomaly: {enabled: false}", "security.outgoing.allow"),
            ("security: {outgoing: {allow: [10.0.0.0/8]}}", ""),
            ("security: {oauth: {public_url: \"https://a.b\"}}", "security.oauth.public_url"),
            ("metrics: {path: /m}", "metrics.path"),
            ("metrics: {enabled: true, public: true}", ""),
            ("metrics: {public: true}", "metrics.public"),
            ("telemetry: {sample_ratio: 0.5}", "telemetry.sample_ratio"),
            ("log: {file: a.log}", "log.file"),
            ("warehouse: {type: sqlite, threads: 4}", "warehouse.threads"),
            ("warehouse: {connect_timeout_seconds: 4}", "warehouse.connect_timeout_seconds"),
        ] {
            let keys = found(&format!("{file}\n"));
            let expected: &[&str] = if key.is_empty() { &[] } else { &[key] };
            assert_eq!(keys, expected, "{file}");
        }
    }

    #[test]
    fn setting_with_its_switch_is_effective() {
        const SECRET: &str = "secret: 0123456789abcdef0123456789abcdef";
        for file in [
            format!("security: {{jwt: {{max_token_age: 60, application_tokens: true, {SECRET}}}}}\n"),
            format!("security: {{jwt: {{access_token_expiry: 60, verify_exp: true, {SECRET}}}}}\n"),
            "security: {jwt: {application_tokens: false, max_token_age: 60}}\n".to_owned(),
            "metrics: {enabled: false, path: /m}\n".to_owned(),
            "log: {output: stdout, file: a.log}\n".to_owned(),
            "log: {output: file, file: a.log, backup_count: 3}\n".to_owned(),
            "warehouse: {threads: 4, memory_limit: 1GB}\n".to_owned(),
        ] {
            assert_eq!(found(&file), Vec::<&str>::new(), "{file}");
        }
    }
}
