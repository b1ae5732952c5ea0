//! Removes order keys whose masks are the same for all rows.
//!
//! Such a key has no effect, and some engines refuse it. The rows are ordered by the shown columns instead.

use crate::plan::{LogicalPlan, PlannedOrder, PlannedTarget, Protection, SecuredPlan};

pub(super) fn apply(plan: SecuredPlan<'_>) -> SecuredPlan<'_> {
    plan.rewrite(order_by_shown_columns)
}

fn order_by_shown_columns<'m>(plan: &mut LogicalPlan<'m>, protection: &Protection<'m>) {
    let count_before = plan.order.len();
    plan.order.retain(|order| match order.target {
        PlannedTarget::Dimension(id) => !protection.mask_of(id).is_some_and(|mask| mask.is_constant()),
        _ => true,
    });
    if plan.order.len() == count_before {
        return;
    }
    for index in 0..plan.groups.len() {
        let is_group = |order: &PlannedOrder<'_>| matches!(order.target, PlannedTarget::Group(own) if own == index);
        if !plan.order.iter().any(is_group) {
            let target = PlannedTarget::Group(index);
            plan.order.push(PlannedOrder { target, descending: false, is_explicit: false });
        }
    }
}
