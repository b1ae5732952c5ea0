//! A governance hook that restricts `orders` to the regions in the caller's attribute `regions`.

use terrane_sdk::filter::column;
use terrane_sdk::governance::{Hook, Obligations, Principal, QueryFacts, Verdict};
use terrane_sdk::{CallContext, PluginError, PluginInfo};

/// The component.
pub struct Plugin;

impl Hook for Plugin {
    const INFO: PluginInfo = PluginInfo::new("hook-template", "0.1.0", "Template");

    fn on_query(_: &CallContext, who: &Principal, query: &QueryFacts) -> Result<Verdict, PluginError> {
        if !query.reads("orders") {
            return Ok(Verdict::abstain());
        }
        // A caller without regions sees no rows.
        let own = column("region").in_list(who.texts("regions"));
        Ok(Verdict::permit(Obligations::default().row_filter("orders", &own)))
    }
}

terrane_sdk::export_hook!(Plugin);

#[cfg(test)]
mod tests {
    use terrane_sdk::governance::Decision;

    use super::*;

    #[test]
    fn orders_are_filtered_by_the_callers_regions() {
        let attributes = vec![("regions".to_owned(), "[\"EMEA\"]".to_owned())];
        let who = Principal { attributes, ..Principal::anonymous() };
        let verdict = Plugin::on_query(&CallContext::for_tests(), &who, &QueryFacts::for_tests(&["orders"])).unwrap();
        let Decision::Permit(obligations) = verdict.decision else { panic!("{verdict:?}") };
        assert_eq!(obligations.row_filters[0].predicate.columns, ["region"]);
    }

    #[test]
    fn manifest_matches_the_plugin() {
        terrane_sdk::manifest::check(Plugin::INFO, include_str!("../plugin.toml"));
    }
}
