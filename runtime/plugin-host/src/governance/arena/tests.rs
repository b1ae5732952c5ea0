//! What of a query's conditions hooks are told.

use super::*;

fn told(with_values: bool) -> Arena {
    let fact = |test| Condition::Test(FilterFact { member: "orders.region".into(), ty: LogicalType::Text, test });
    let list = Test::InList { values: vec![Value::Text("EU".into()), Value::Text("US".into())], or_null: true };
    let conditions = [fact(list), Condition::Not(Box::new(fact(Test::Equals(Value::Text("secret".into())))))];
    of_conditions(&conditions, with_values).expect("an arena")
}

#[test]
fn values_are_told_only_where_they_are_granted() {
    let arena = told(true);
    assert!(arena.literals.iter().any(|literal| matches!(literal, Scalar::Text(text) if text == "secret")));
    let arena = told(false);
    assert!(arena.literals.iter().all(|literal| matches!(literal, Scalar::Null)), "{:?}", arena.literals);
    assert_eq!(arena.roots.len(), 2);
    assert_eq!(arena.columns, ["orders.region"]);
}

#[test]
fn conditions_that_do_not_fit_are_none() {
    let values = (0..600).map(Value::Integer).collect();
    let test = Test::InList { values, or_null: false };
    let fact = FilterFact { member: "orders.id".into(), ty: LogicalType::Integer, test };
    assert!(of_conditions(&[Condition::Test(fact.clone())], true).is_none());
    // Not told, they are one node.
    assert!(of_conditions(&[Condition::Test(fact)], false).is_some());
}
