//! The governance hooks of a world: one for each policy that is defined by a hook.
//!
//! In: a [`World`]. Out: the port's answers. The same condition is written in two forms, so that both are tested.

use std::sync::Arc;

use async_trait::async_trait;
use terrane_app::ports::governance::{
    Artifact, Decision, GateFinding, Governance, Hook, HookRequest, HookResponse, MetadataChange, Permit, Transition,
};
use terrane_compiler::governance::{HookCondition, Obligations, QueryFacts, RowFilter, TestOperator};
use terrane_compiler::types::Value;

use crate::world::{Cell, RowPolicy, World};

/// The row filter that each hook requires for its cube.
#[derive(Default)]
pub struct WorldHooks(Vec<RowFilter>);

impl WorldHooks {
    pub fn of(world: &World) -> Self {
        let filter = |policy: &crate::world::Policy| {
            let RowPolicy::Hook { dimension, values, is_negated } = &policy.row_filter else { return None };
            world.cube(&policy.cube)?.hooked(dimension)?;
            let condition = condition(dimension, values, *is_negated);
            Some(RowFilter { cube: policy.cube.as_str().into(), condition })
        };
        WorldHooks(world.policies.iter().filter_map(filter).collect())
    }
}

/// Returns a condition that compares with one value or with a list of values.
fn condition(dimension: &str, values: &[Cell], is_negated: bool) -> HookCondition {
    let values: Vec<Value> = values.iter().map(value).collect();
    let test = |operator, values| HookCondition::Test { member: dimension.into(), operator, values };
    match (values.len(), is_negated) {
        (1, true) => test(TestOperator::Ne, values),
        (1, false) => test(TestOperator::Eq, values),
        (_, true) => HookCondition::Not(Box::new(test(TestOperator::InList, values))),
        (_, false) => test(TestOperator::InList, values),
    }
}

fn value(cell: &Cell) -> Value {
    match cell {
        Cell::Bool(value) => Value::Boolean(*value),
        Cell::Int(value) => Value::Integer(*value),
        Cell::Text(text) => Value::Text(text.as_str().into()),
        // `hooked` accepts no other types.
        _ => Value::Null,
    }
}

#[async_trait]
impl Governance for WorldHooks {
    fn is_silent(&self) -> bool {
        self.0.is_empty()
    }

    async fn authorize(&self, _: &HookRequest<'_>, facts: &Arc<QueryFacts>) -> Vec<HookResponse<Decision>> {
        let said = |(index, filter): (usize, &RowFilter)| {
            let hook = Hook { id: format!("hook{index}").into(), is_required: true, is_monitored: false };
            let decision = match facts.cubes.contains(&filter.cube) {
                true => {
                    let obligations = Obligations { row_filters: vec![filter.clone()], ..Obligations::default() };
                    Decision::Permit(Permit { obligations, ..Permit::default() })
                }
                false => Decision::Abstain,
            };
            HookResponse { hook, answer: Ok(decision) }
        };
        self.0.iter().enumerate().map(said).collect()
    }

    fn blame(&self, _: &HookRequest<'_>, _: &Hook, _: &str) {}

    async fn certify(
        &self,
        _: &HookRequest<'_>,
        _: &Artifact,
        _: Transition,
        _: &str,
    ) -> Vec<HookResponse<Vec<GateFinding>>> {
        Vec::new()
    }

    async fn change(&self, _: &HookRequest<'_>, _: &MetadataChange) -> Vec<HookResponse<Vec<GateFinding>>> {
        Vec::new()
    }
}
