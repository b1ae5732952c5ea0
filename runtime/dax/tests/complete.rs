//! Completions against the model of the golden tests' shop.

use std::sync::OnceLock;

use terrane_compiler::model::Model;
use terrane_compiler::{Access, SecurityContext};
use terrane_dax::{Completion, CompletionKind, MAX_COMPLETIONS, complete};
use terrane_golden_tests::case::models;

fn shop() -> &'static Model {
    static SHOP: OnceLock<Model> = OnceLock::new();
    SHOP.get_or_init(|| models().remove("shop").expect("the shop"))
}

/// Returns the completions at the position `¦` of a query.
fn at_for(text: &str, role: &str) -> Vec<Completion> {
    let caller = SecurityContext { roles: vec![role.into()], ..SecurityContext::default() };
    let offset = text.find('¦').expect("a position");
    let text = text.replace('¦', "");
    complete(&text, offset, &Access::of(shop(), &caller))
}

fn labels(text: &str) -> Vec<String> {
    at_for(text, "analyst").into_iter().map(|item| item.label).collect()
}

#[test]
fn quote_offers_tables() {
    assert_eq!(labels("EVALUATE 'ord¦"), ["'orders'"]);
    let all = labels("EVALUATE '¦");
    assert!(all.contains(&"'customers'".to_owned()) && all.iter().all(|label| label.starts_with('\'')));
}

#[test]
fn bracket_offers_members() {
    let members = labels("EVALUATE VALUES(customers[¦");
    assert!(members.contains(&"[region]".to_owned()) && members.contains(&"[credit]".to_owned()));
    assert_eq!(labels("EVALUATE FILTER('orders', 'orders'[sta¦"), ["[status]"]);
    let bare = labels("DEFINE MEASURE orders[mine] = 1 EVALUATE {[¦");
    for name in ["[mine]", "[revenue]", "[net_revenue]", "[buyers]"] {
        assert!(bare.contains(&name.to_owned()), "{name}: {bare:?}");
    }
    // A bare `count` would be ambiguous, so it is not offered.
    assert!(!bare.contains(&"[count]".to_owned()) && !bare.contains(&"[region]".to_owned()));
}

#[test]
fn words_are_completed() {
    let found = at_for("EVALUATE SUMMAR¦", "analyst");
    let labels: Vec<&str> = found.iter().map(|item| &*item.label).collect();
    assert_eq!(labels, ["SUMMARIZE", "SUMMARIZECOLUMNS"]);
    assert_eq!(found[1].insert_text, "SUMMARIZECOLUMNS(");
    assert_eq!((found[1].replaces.start, found[1].replaces.end), (9, 15));
    assert!(found[1].documentation.as_ref().is_some_and(|text| text.starts_with("SUMMARIZECOLUMNS([<group_column>]")));
    // The position is in the middle of a word.
    let middle: Vec<Completion> = at_for("EVALUATE cust¦omers", "analyst");
    assert_eq!((&*middle[0].label, middle[0].kind), ("customers", CompletionKind::Table));
}

#[test]
fn arguments_offer_what_fits() {
    let first = labels("EVALUATE FILTER(¦");
    assert!(first.contains(&"orders".to_owned()) && first.contains(&"VALUES".to_owned()));
    assert!(!first.contains(&"SUM".to_owned()));
    let column = labels("EVALUATE {SUM(¦");
    assert!(column.contains(&"orders[id]".to_owned()) && !column.contains(&"SUM".to_owned()));
    assert_eq!(labels("EVALUATE TOPN(1, orders, orders[id], ¦"), ["ASC", "DESC"]);
    assert!(labels("EVALUATE {DATEDIFF(1, 2, ¦").contains(&"QUARTER".to_owned()));
    let variable = labels("EVALUATE VAR total = 1 RETURN ROW(\"a\", to¦");
    assert_eq!(variable[0], "total");
}

#[test]
fn keywords_start_a_query() {
    assert_eq!(labels("¦"), ["DEFINE", "EVALUATE"]);
    assert_eq!(labels("EV¦"), ["EVALUATE"]);
    assert_eq!(labels("DEFINE ¦"), ["MEASURE", "VAR"]);
    assert!(labels("EVALUATE orders ¦").contains(&"ORDER BY".to_owned()));
}

#[test]
fn strings_and_comments_offer_nothing() {
    for text in ["EVALUATE {\"a¦", "EVALUATE orders // or¦", "EVALUATE orders /* or¦", "-- ¦"] {
        assert_eq!(labels(text), Vec::<String>::new(), "{text}");
    }
    assert!(!labels("-- a comment\n¦").is_empty());
}

#[test]
fn denied_and_hidden_members_are_not_offered() {
    let offered = |role: &str| at_for("EVALUATE {customers[¦", role).into_iter().any(|item| item.label == "[credit]");
    assert!(offered("analyst") && !offered("guest"));
}

#[test]
fn every_position_of_a_query_completes() {
    let text =
        "DEFINE MEASURE orders[m] = [revenue] EVALUATE /* é */ FILTER('orders', orders[status] = \"é\" && [m] > 1)";
    let caller = SecurityContext::default();
    let access = Access::of(shop(), &caller);
    for offset in 0..=text.len() + 1 {
        assert!(complete(text, offset, &access).len() <= MAX_COMPLETIONS);
    }
}
