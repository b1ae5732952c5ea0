//! Rewrites of secured plans, as a list of small functions.
//!
//! In: a [`SecuredPlan`]. Out: a plan that returns the same rows, and that more engines accept or that engines answer
//! faster. A rule changes the plan and never its protection. Not here: decisions that are made while joins are planned,
//! because the joins depend on them, such as semi-joins (`semi_join`).

mod constant_order;

use super::SecuredPlan;

type Rule = for<'m> fn(SecuredPlan<'m>) -> SecuredPlan<'m>;

/// The rules, in the order in which they are applied.
const RULES: &[Rule] = &[constant_order::apply];

/// Applies every rule once.
pub(super) fn apply(plan: SecuredPlan<'_>) -> SecuredPlan<'_> {
    RULES.iter().fold(plan, |plan, rule| rule(plan))
}
