//! Checks names and owners of metadata when an artifact is certified or changed.
//!
//! In: an artifact and the operator's rules. Out: findings. Not here: queries.

mod rules;

use rules::Rules;
use terrane_sdk::governance::{Artifact, GateFinding, Hook, Principal, Transition};
use terrane_sdk::{CallContext, Issue, PluginError, PluginInfo};

/// The hook component.
pub struct Standards;

const CONFIG_SCHEMA: &str = r#"{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "naming": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "case": {"enum": ["snake_case", "any"]},
        "max_length": {"type": "integer", "minimum": 1, "maximum": 1000},
        "forbidden_prefixes": {"type": "array", "items": {"type": "string"}}
      }
    },
    "ownership": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "required": {"type": "boolean"},
        "domains": {"type": "array", "items": {"type": "string"}}
      }
    },
    "descriptions": {"type": "boolean"},
    "kinds": {"type": "array", "items": {"enum": ["cube", "measure", "dimension", "metric", "model"]}}
  }
}"#;

impl Hook for Standards {
    const INFO: PluginInfo =
        PluginInfo::new("governance-standards", "0.1.0", "Naming and ownership").with_config_schema(CONFIG_SCHEMA);

    fn on_certify(
        context: &CallContext,
        _: &Principal,
        item: &Artifact,
        step: Transition,
        _: &str,
    ) -> Result<Vec<GateFinding>, PluginError> {
        let rules = Rules::read(&context.config_json).map_err(PluginError::InvalidConfig)?;
        Ok(match step {
            Transition::Certify => rules.certification(item),
            // On submission, findings are advice, so that the author can correct the artifact before its certification.
            Transition::Submit => {
                let advice = |finding| GateFinding { blocking: false, ..finding };
                rules.certification(item).into_iter().map(advice).collect()
            }
            Transition::Reject | Transition::Deprecate | Transition::Archive | Transition::Restore => Vec::new(),
        })
    }

    fn on_metadata_change(
        context: &CallContext,
        _: &Principal,
        before: Option<&Artifact>,
        after: Option<&Artifact>,
    ) -> Result<Vec<GateFinding>, PluginError> {
        let rules = Rules::read(&context.config_json).map_err(PluginError::InvalidConfig)?;
        Ok(after.map(|after| rules.change(before, after)).unwrap_or_default())
    }

    fn check_config(config_json: &str) -> Result<(), Vec<Issue>> {
        Rules::read(config_json).map(|_| ())
    }
}

terrane_sdk::export_hook!(Standards);

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Artifact {
        Artifact {
            kind: "measure".to_owned(),
            id: "orders.net_revenue".to_owned(),
            owner: Some("ada@example.com".to_owned()),
            tags: Vec::new(),
            classification: None,
            pii: false,
            certification: "pending_review".to_owned(),
            version: 3,
            body_json: r#"{"name": "net_revenue", "description": "After refunds"}"#.to_owned(),
        }
    }

    fn context(config: &str) -> CallContext {
        CallContext { config_json: config.to_owned(), ..CallContext::for_tests() }
    }

    fn found(findings: &[GateFinding]) -> Vec<(&str, bool)> {
        findings.iter().map(|finding| (finding.rule.as_str(), finding.blocking)).collect()
    }

    fn certify(config: &str, item: &Artifact, step: Transition) -> Vec<GateFinding> {
        Standards::on_certify(&context(config), &Principal::anonymous(), item, step, "").unwrap()
    }

    fn change(config: &str, before: Option<&Artifact>, after: Option<&Artifact>) -> Vec<GateFinding> {
        Standards::on_metadata_change(&context(config), &Principal::anonymous(), before, after).unwrap()
    }

    #[test]
    fn compliant_artifact_is_certified() {
        assert_eq!(found(&certify("", &orders(), Transition::Certify)), []);
        let strict = r#"{"naming": {"max_length": 11, "forbidden_prefixes": ["tmp_"]}, "ownership": {"domains": ["example.com"]}, "descriptions": true}"#;
        assert_eq!(found(&certify(strict, &orders(), Transition::Certify)), []);
    }

    #[test]
    fn each_rule_reports_its_violations() {
        let certified = |config, item: Artifact| {
            let findings = certify(config, &item, Transition::Certify);
            findings.into_iter().map(|finding| (finding.rule, finding.blocking)).collect::<Vec<_>>()
        };
        let blocks = |rule: &str| vec![(rule.to_owned(), true)];
        let named = |id: &str| Artifact { id: id.to_owned(), ..orders() };
        for id in ["orders.NetRevenue", "orders.net-revenue", "orders._net", "orders.net__x", "orders.", "orders.1st"] {
            assert_eq!(certified("", named(id)), blocks("name_case"), "{id}");
        }
        assert_eq!(certified(r#"{"naming": {"case": "any"}}"#, named("orders.NetRevenue")), []);
        assert_eq!(certified(r#"{"naming": {"max_length": 10}}"#, orders()), blocks("name_length"));
        assert_eq!(certified(r#"{"naming": {"forbidden_prefixes": ["net_"]}}"#, orders()), blocks("name_prefix"));
        let owned = |owner: Option<&str>| Artifact { owner: owner.map(str::to_owned), ..orders() };
        assert_eq!(certified("", owned(None)), blocks("owner_missing"));
        assert_eq!(certified("", owned(Some("  "))), blocks("owner_missing"));
        assert_eq!(certified(r#"{"ownership": {"required": false}}"#, owned(None)), []);
        let domains = r#"{"ownership": {"domains": ["example.com"]}}"#;
        for owner in ["ada@example.org", "ada@notexample.com", "example.com", "@example.com"] {
            assert_eq!(certified(domains, owned(Some(owner))), blocks("owner_domain"), "{owner}");
        }
        assert_eq!(certified(domains, owned(Some("ada@EXAMPLE.com"))), []);
        let silent = Artifact { body_json: r#"{"description": " "}"#.to_owned(), ..orders() };
        assert_eq!(certified("", silent.clone()), [("description_missing".to_owned(), false)]);
        assert_eq!(certified(r#"{"descriptions": true}"#, silent), blocks("description_missing"));
        assert_eq!(certified("", Artifact { pii: true, ..orders() }), blocks("classification_missing"));
        let other = Artifact { kind: "dimension".to_owned(), owner: None, ..orders() };
        assert_eq!(certified(r#"{"kinds": ["measure"]}"#, other), []);
    }

    #[test]
    fn submission_has_advice_and_other_steps_are_unchecked() {
        let item = Artifact { owner: None, ..orders() };
        assert_eq!(found(&certify("", &item, Transition::Submit)), [("owner_missing", false)]);
        for step in [Transition::Reject, Transition::Deprecate, Transition::Archive, Transition::Restore] {
            assert_eq!(found(&certify("", &item, step)), []);
        }
    }

    #[test]
    fn changes_that_add_violations_are_blocked() {
        let (old, nameless) = (orders(), Artifact { owner: None, ..orders() });
        let misnamed = Artifact { id: "orders.NetRevenue".to_owned(), ..orders() };
        assert_eq!(found(&change("", None, Some(&misnamed))), [("name_case", true)]);
        assert_eq!(found(&change("", Some(&old), Some(&misnamed))), [("name_case", true)]);
        // An existing problem does not block other changes.
        assert_eq!(found(&change("", Some(&misnamed), Some(&misnamed))), []);
        assert_eq!(found(&change("", Some(&old), Some(&nameless))), [("owner_removed", true)]);
        assert_eq!(found(&change("", Some(&nameless), Some(&nameless))), []);
        let elsewhere = Artifact { owner: Some("eve@elsewhere.net".to_owned()), ..orders() };
        let domains = r#"{"ownership": {"domains": ["example.com"]}}"#;
        assert_eq!(found(&change(domains, Some(&old), Some(&elsewhere))), [("owner_domain", true)]);
        assert_eq!(found(&change("", Some(&old), None)), []);
    }

    #[test]
    fn invalid_configuration_is_rejected_with_its_position() {
        let place = |config: &str| {
            let issues = Standards::check_config(config).expect_err(config);
            issues.into_iter().map(|issue| issue.path).collect::<Vec<_>>()
        };
        assert_eq!(place("[]"), [""]);
        assert_eq!(place("{"), [""]);
        assert_eq!(place(r#"{"name": 1}"#), ["/name"]);
        assert_eq!(place(r#"{"naming": {"case": "Title"}}"#), ["/naming/case"]);
        assert_eq!(place(r#"{"naming": {"max_length": 0}}"#), ["/naming/max_length"]);
        assert_eq!(place(r#"{"naming": {"forbidden_prefixes": [1]}}"#), ["/naming/forbidden_prefixes"]);
        assert_eq!(
            place(r#"{"ownership": {"required": "yes"}, "kinds": ["table"]}"#),
            ["/ownership/required", "/kinds"]
        );
        assert!(Standards::check_config("").is_ok());
    }

    #[test]
    fn manifest_matches_the_plugin() {
        terrane_sdk::manifest::check(Standards::INFO, include_str!("../plugin.toml"));
    }
}
