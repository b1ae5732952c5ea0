//! Settings that have no effect without another setting.
//!
//! In: the configuration and the keys that were set. Out: each key without effect, with the setting that it needs. Not
//! here: a key whose switch is set explicitly, as in `metrics: {enabled: false}`, since the author chose this; and
//! settings that prevent a start (`start_rules`).

use terrane_server::telemetry::LogOutput;

use super::Config;
use super::place::Place;
use super::settings::ReadKeys;

/// A setting that has no effect without another setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IneffectiveSetting {
    pub key: &'static str,
    /// The setting that is missing, as an author writes it.
    pub needs: &'static str,
    pub place: Place,
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
        needs: "optimization.prices.second",
        switch: Some("optimization.enabled"),
        is_effective: |config| config.optimization.price_of_second.is_some(),
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

/// Returns the settings without effect, in the order of the rules.
pub(super) fn find(config: &Config, written: &ReadKeys) -> Vec<IneffectiveSetting> {
    let is_chosen = |rule: &Rule| rule.switch.is_some_and(|switch| written.place(switch).is_some());
    let rules = RULES.iter().filter(|rule| !(rule.is_effective)(config) && !is_chosen(rule));
    let settings = rules.flat_map(|rule| {
        let set = rule.keys.iter().filter_map(|key| Some((*key, written.place(key)?.clone())));
        set.map(|(key, place)| IneffectiveSetting { key, needs: rule.needs, place })
    });
    settings.collect()
}

#[cfg(test)]
mod tests {
    use crate::config::{Environment, read};

    fn found(file: &str) -> Vec<(&'static str, &'static str)> {
        let (config, problems) = read(Some(file), &Environment::default());
        assert!(problems.is_empty(), "{file}: {problems:?}");
        config.ineffective.iter().map(|setting| (setting.key, setting.needs)).collect()
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
            let keys: Vec<&str> = found(&format!("{file}\n")).into_iter().map(|(key, _)| key).collect();
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
            assert_eq!(found(&file), [], "{file}");
        }
    }
}
