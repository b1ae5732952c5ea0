//! Tests the conditions of a query that are sent to hooks.

use super::*;

fn arena_with(values: FilterValues) -> Arena {
    let fact = |test| Condition::Test(FilterFact { member: "orders.region".into(), ty: LogicalType::Text, test });
    let list = Test::InList { values: vec![Value::Text("EU".into()), Value::Text("US".into())], or_null: true };
    let conditions = [fact(list), Condition::Not(Box::new(fact(Test::Equals(Value::Text("secret".into())))))];
    of_conditions(&conditions, values).expect("an arena")
}

#[test]
fn values_are_sent_only_with_the_grant() {
    let arena = arena_with(FilterValues::Included);
    assert!(arena.literals.iter().any(|literal| matches!(literal, Scalar::Text(text) if text == "secret")));
    let arena = arena_with(FilterValues::Withheld);
    assert!(arena.literals.iter().all(|literal| matches!(literal, Scalar::Null)), "{:?}", arena.literals);
    assert_eq!(arena.roots.len(), 2);
    assert_eq!(arena.columns, ["orders.region"]);
}

#[test]
fn conditions_beyond_the_limits_are_dropped() {
    let values = (0..600).map(Value::Integer).collect();
    let test = Test::InList { values, or_null: false };
    let fact = FilterFact { member: "orders.id".into(), ty: LogicalType::Integer, test };
    assert!(of_conditions(&[Condition::Test(fact.clone())], FilterValues::Included).is_none());
    // All withheld values share one node.
    assert!(of_conditions(&[Condition::Test(fact)], FilterValues::Withheld).is_some());
}
