//! Shows managers the orders of their own regions, and some roles all orders. Other callers see none.

use terrane_sdk::filter::column;
use terrane_sdk::governance::{Hook, Obligations, Principal, QueryFacts, Verdict};
use terrane_sdk::json::Json;
use terrane_sdk::{CallContext, Issue, PluginError, PluginInfo};

/// The component.
pub struct Plugin;

const SCHEMA: &str = r#"{
    "type": "object", "additionalProperties": false,
    "properties": {"see_all": {"type": "array", "items": {"type": "string"}}}
}"#;

impl Hook for Plugin {
    const INFO: PluginInfo = PluginInfo::new("policy-region", "0.1.0", "Policy Region").with_config_schema(SCHEMA);

    fn check_config(config_json: &str) -> Result<(), Vec<Issue>> {
        let config = Json::config(config_json).map_err(|message| vec![Issue { path: String::new(), message }])?;
        config.only(&["see_all"])?;
        config.text_list("see_all").map(|_| ()).map_err(|issue| vec![issue])
    }

    fn on_query(context: &CallContext, who: &Principal, query: &QueryFacts) -> Result<Verdict, PluginError> {
        if !query.reads("orders") {
            return Ok(Verdict::abstain());
        }
        let config = Json::config(&context.config_json).map_err(PluginError::Internal)?;
        // The roles that see all regions.
        let see_all = config.text_list("see_all").map_err(|issue| PluginError::Internal(issue.message))?;
        if see_all.iter().any(|role| who.has_role(role)) {
            return Ok(Verdict::permit(Obligations::default().note("regions", "all")));
        }
        if !who.has_role("manager") {
            return Ok(Verdict::deny("managers_only", "orders are for managers", "the caller has no role `manager`"));
        }
        let regions = who.texts("regions");
        let own = Obligations::default().note("regions", &regions.join(", "));
        Ok(Verdict::permit(own.row_filter("orders", &column("region").in_list(regions))))
    }
}

terrane_sdk::export_hook!(Plugin);

#[cfg(test)]
mod tests {
    use terrane_sdk::governance::Decision;

    use super::*;

    fn decision(roles: &[&str], cubes: &[&str]) -> Decision {
        let who = Principal {
            roles: roles.iter().map(|role| (*role).to_owned()).collect(),
            attributes: vec![("regions".to_owned(), r#"["EMEA"]"#.to_owned())],
            ..Principal::anonymous()
        };
        let context = CallContext { config_json: r#"{"see_all": ["finance"]}"#.to_owned(), ..CallContext::for_tests() };
        Plugin::on_query(&context, &who, &QueryFacts::for_tests(cubes)).unwrap().decision
    }

    #[test]
    fn managers_see_their_regions() {
        let Decision::Permit(obligations) = decision(&["manager"], &["orders"]) else { panic!("not permitted") };
        assert_eq!(obligations.row_filters[0].predicate.columns, ["region"]);
        assert_eq!(obligations.audit, [("regions".to_owned(), "EMEA".to_owned())]);
    }

    #[test]
    fn finance_sees_all_and_others_nothing() {
        let Decision::Permit(obligations) = decision(&["finance"], &["orders"]) else { panic!("not permitted") };
        assert!(obligations.row_filters.is_empty());
        assert!(matches!(decision(&[], &["orders"]), Decision::Deny(_)));
        assert!(matches!(decision(&[], &["products"]), Decision::Abstain));
    }

    #[test]
    fn configuration_of_another_shape_is_refused() {
        assert!(Plugin::check_config("").is_ok());
        for (config, path) in [
            (r#"{"see_all": [1]}"#, "/see_all/0"),
            (r#"{"see_all": "finance"}"#, "/see_all"),
            (r#"{"see_al": ["finance"]}"#, "/see_al"),
            ("see_all", ""),
        ] {
            assert_eq!(Plugin::check_config(config).unwrap_err()[0].path, path, "{config}");
        }
    }

    #[test]
    fn manifest_matches_the_plugin() {
        terrane_sdk::manifest::check(Plugin::INFO, include_str!("../plugin.toml"));
    }
}
