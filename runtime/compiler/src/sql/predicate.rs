//! Converts tests to SQL conditions. A test is true or false for every value, including null.
//!
//! In: a [`Test`] and the tested expression. Out: a condition that is true exactly for the values that pass. For other
//! values it is false or null, which WHERE treats in the same way. `NOT` around a condition would be wrong for null, so
//! the tests themselves are negated.

use super::ast::SqlExpr;
use super::dialect_profile::Op;
use crate::query::Operand;
use crate::query::{Predicate, Test, TextMatch};
use crate::types::Value;

/// The operand of a test, in three forms.
pub(super) struct Tested<'a> {
    /// The value. A string is in the form that compares by code point.
    pub(super) value: SqlExpr<'a>,
    /// The value without a conversion around it; null if the value is null.
    pub(super) bare: Option<SqlExpr<'a>>,
    /// An expression that the engine has indexes for. It is equal for equal values, and may be equal for others too.
    pub(super) lookup: Option<SqlExpr<'a>>,
}

impl<'a> Tested<'a> {
    pub(super) fn plain(value: SqlExpr<'a>) -> Self {
        Tested { value, bare: None, lookup: None }
    }

    /// Returns the test on the value, combined with the test on the indexed expression.
    fn looked_up(&self, test: impl Fn(SqlExpr<'a>) -> SqlExpr<'a>) -> SqlExpr<'a> {
        let exact = test(self.value.clone());
        match self.lookup.clone() {
            Some(lookup) => SqlExpr::And(vec![test(lookup), exact]),
            None => exact,
        }
    }
}

/// Lowers a predicate. `operand` converts its operands to tested expressions.
pub(super) fn lower_predicate<'a>(
    predicate: &'a Predicate,
    is_negated: bool,
    operand: &mut impl FnMut(&'a Operand) -> Tested<'a>,
) -> SqlExpr<'a> {
    match predicate {
        Predicate::Test { operand: on, test } => lower_test(&operand(on), test, is_negated),
        Predicate::Not(inner) => lower_predicate(inner, !is_negated, operand),
        Predicate::And(all) => Connective::And
            .negated(is_negated)
            .join(all.iter().map(|p| lower_predicate(p, is_negated, operand)).collect()),
        Predicate::Or(all) => Connective::Or
            .negated(is_negated)
            .join(all.iter().map(|p| lower_predicate(p, is_negated, operand)).collect()),
    }
}

/// The connective of a list of conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Connective {
    And,
    Or,
}

impl Connective {
    /// Returns the connective of the negated conditions (De Morgan) if `is_negated`.
    pub(super) fn negated(self, is_negated: bool) -> Self {
        match (self, is_negated) {
            (Connective::And, false) | (Connective::Or, true) => Connective::And,
            (Connective::Or, false) | (Connective::And, true) => Connective::Or,
        }
    }

    /// Connects conditions. The conjunction of no conditions is true, their disjunction false.
    pub(super) fn join(self, mut all: Vec<SqlExpr<'_>>) -> SqlExpr<'_> {
        match (all.len(), self) {
            (0, _) => SqlExpr::Boolean(self == Connective::And),
            (1, _) => all.remove(0),
            (_, Connective::And) => SqlExpr::And(all),
            (_, Connective::Or) => SqlExpr::Or(all),
        }
    }
}

/// Returns a string in lower case. Every warehouse has this function.
fn in_lower_case(text: SqlExpr<'_>) -> SqlExpr<'_> {
    SqlExpr::Sequence { parts: vec![SqlExpr::Text("LOWER("), text, SqlExpr::Text(")")], is_atomic: true }
}

pub(super) fn lower_test<'a>(on: &Tested<'a>, test: &'a Test, is_negated: bool) -> SqlExpr<'a> {
    let compare = |op: Op, value: &'a Value| SqlExpr::op(op, vec![on.value.clone(), SqlExpr::Param(value)]);
    let bare = || on.bare.as_ref().unwrap_or(&on.value).clone();
    let is_null = || SqlExpr::op(Op::IsNull, vec![bare()]);
    let or_null = |condition: SqlExpr<'a>| SqlExpr::Or(vec![condition, is_null()]);
    match (test, is_negated) {
        (Test::Not(inner), _) => lower_test(on, inner, !is_negated),
        (Test::Never, _) => SqlExpr::Boolean(is_negated),
        (Test::IsNull | Test::NoRow, false) => is_null(),
        (Test::IsNull | Test::NoRow, true) => SqlExpr::op(Op::IsNotNull, vec![bare()]),
        (Test::Equals(value), false) => on.looked_up(|on| SqlExpr::op(Op::Eq, vec![on, SqlExpr::Param(value)])),
        (Test::Equals(value), true) => or_null(compare(Op::Ne, value)),
        (Test::Match { kind, text }, _) => {
            let op = match kind {
                TextMatch::Contains | TextMatch::ContainsAnyCase => Op::Contains,
                TextMatch::StartsWith => Op::StartsWith,
                TextMatch::EndsWith => Op::EndsWith,
            };
            let operand = match kind {
                TextMatch::ContainsAnyCase => in_lower_case(on.value.clone()),
                _ => on.value.clone(),
            };
            let condition = SqlExpr::op(op, vec![operand, SqlExpr::Param(text)]);
            if is_negated { or_null(SqlExpr::op(Op::Not, vec![condition])) } else { condition }
        }
        (Test::InList { values, or_null: with_null }, _) => {
            let list = |on| SqlExpr::InList { operand: Box::new(on), values, is_negated };
            let list = if is_negated { list(on.value.clone()) } else { on.looked_up(list) };
            match (with_null, is_negated) {
                (false, false) | (true, true) => list,
                (true, false) | (false, true) => or_null(list),
            }
        }
        (Test::Range { low, high }, false) => {
            let low = low.iter().map(|b| compare(if b.inclusive { Op::Ge } else { Op::Gt }, &b.value));
            let high = high.iter().map(|b| compare(if b.inclusive { Op::Le } else { Op::Lt }, &b.value));
            Connective::And.join(low.chain(high).collect())
        }
        (Test::Range { low, high }, true) => {
            let low = low.iter().map(|b| compare(if b.inclusive { Op::Lt } else { Op::Le }, &b.value));
            let high = high.iter().map(|b| compare(if b.inclusive { Op::Gt } else { Op::Ge }, &b.value));
            Connective::Or.join(low.chain(high).chain([is_null()]).collect())
        }
        (Test::AnyOf(tests), _) => {
            Connective::Or.negated(is_negated).join(tests.iter().map(|test| lower_test(on, test, is_negated)).collect())
        }
    }
}
