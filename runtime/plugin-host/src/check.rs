//! The adapter of the port `Checks` to the interface `terrane:profiling/check`.
//!
//! In: the columns of a profile, then the statistics of the columns. Out: checked plans and findings, with indexes in
//! range, sizes within the contract's limits, conditions over the cube's own dimensions, and scores from 0 to 1. Not
//! here: running the statements in the warehouse (app), and their SQL (compiler).

pub(crate) mod finding;
pub(crate) mod plan;
mod predicate;

use std::sync::Arc;

use async_trait::async_trait;
use terrane_app::ports::calls::ComponentFault;
use terrane_app::ports::checks::{CheckAnswer, CheckCall, CheckPlan, Checks, Finding, ProfiledColumn};
use terrane_app::ports::plugins::PluginFault;
use wasmtime::Store;

use crate::bindings::check::CheckPlugin;
use crate::bindings::check::exports::terrane::profiling::check as wire;
use crate::bindings::common::CallContext;
use crate::engine::Guest;
use crate::host::PluginHost;
use crate::plugin::{Caller, ConfiguredPlugin, Plugin};
use crate::role::error_text;
use crate::wire::context::Moment;
use crate::wire::values::{logical_type, logical_type_of, scalar};

/// The check components of a host.
pub struct ComponentChecks {
    host: Arc<PluginHost>,
}

impl ComponentChecks {
    pub fn new(host: Arc<PluginHost>) -> Self {
        ComponentChecks { host }
    }

    async fn configured(&self) -> Result<Vec<ConfiguredPlugin<CheckPlugin>>, ComponentFault> {
        let host = Arc::clone(&self.host);
        let found = self.host.long_calls.run(plan::CALL, move || Ok(host.registry.configured::<CheckPlugin>())).await;
        found.map_err(|fault| ComponentFault { component: "host".into(), fault })
    }
}

#[async_trait]
impl Checks for ComponentChecks {
    async fn plans(&self, call: &CheckCall, columns: Arc<[ProfiledColumn]>) -> Vec<Result<CheckPlan, ComponentFault>> {
        let mut plans = Vec::new();
        let configured = match self.configured().await {
            Ok(configured) => configured,
            // If the search for plugins failed, the result must not look like a list without plugins.
            Err(fault) => return vec![Err(fault)],
        };
        for entry in configured {
            let (component, outcome) = match entry {
                ConfiguredPlugin::Unavailable { id, fault, .. } => (id, Err(fault)),
                ConfiguredPlugin::Active(plugin) => {
                    let (called, columns) = (Arc::clone(&plugin), Arc::clone(&columns));
                    let context = context(call, &plugin);
                    let work = move || make_plan(&called, &context, &columns);
                    (Arc::clone(&plugin.id), self.host.long_calls.run(plan::CALL, work).await)
                }
            };
            plans.push(match outcome {
                Ok(requests) => Ok(CheckPlan { component, requests }),
                Err(fault) => Err(ComponentFault { component, fault }),
            });
        }
        plans
    }

    async fn evaluate(
        &self,
        call: &CheckCall,
        component: &str,
        columns: Arc<[ProfiledColumn]>,
        answers: Vec<CheckAnswer>,
    ) -> Result<Vec<Finding>, ComponentFault> {
        let failed = |fault| ComponentFault { component: component.into(), fault };
        let configured = self.configured().await?;
        let active = configured.into_iter().find_map(|entry| match entry {
            ConfiguredPlugin::Active(plugin) if &*plugin.id == component => Some(plugin),
            _ => None,
        });
        let Some(plugin) = active else {
            return Err(failed(PluginFault::Host { message: "it was removed".to_owned() }));
        };
        let context = context(call, &plugin);
        let work = move || evaluate(&plugin, &context, &columns, answers);
        self.host.long_calls.run(finding::CALL, work).await.map_err(failed)
    }
}

fn make_plan(
    plugin: &Plugin<CheckPlugin>,
    (caller, context): &CallTarget,
    columns: &[ProfiledColumn],
) -> Result<Vec<terrane_app::ports::checks::CheckRequest>, PluginFault> {
    let wired: Vec<wire::Column> = columns.iter().map(column).collect();
    let ask = |guest: &CheckPlugin, store: &mut Store<Guest>| {
        guest.terrane_profiling_check().call_make_plan(store, context, &wired)
    };
    plugin.call_checked(caller, plan::CALL, ask, |found| {
        let found = found.map_err(|error| PluginFault::Declined { call: plan::CALL, message: error_text(&error) })?;
        plan::checked(found, columns, plugin.grants)
    })
}

fn evaluate(
    plugin: &Plugin<CheckPlugin>,
    (caller, context): &CallTarget,
    columns: &[ProfiledColumn],
    answers: Vec<CheckAnswer>,
) -> Result<Vec<Finding>, PluginFault> {
    let wired: Vec<wire::Column> = columns.iter().map(column).collect();
    let answer = |(request, answer): (u32, CheckAnswer)| wire::Answer {
        request,
        values: answer.values.iter().map(scalar).collect(),
        counts: answer.counts,
    };
    let answers: Vec<wire::Answer> = (0..).zip(answers).map(answer).collect();
    let ask = |guest: &CheckPlugin, store: &mut Store<Guest>| {
        guest.terrane_profiling_check().call_evaluate(store, context, &wired, &answers)
    };
    plugin.call_checked(caller, finding::CALL, ask, |found| {
        let found =
            found.map_err(|error| PluginFault::Declined { call: finding::CALL, message: error_text(&error) })?;
        finding::checked(found, columns.len(), &plugin.id)
    })
}

type CallTarget = (Caller, CallContext);

fn context(call: &CheckCall, plugin: &Plugin<CheckPlugin>) -> CallTarget {
    let mut context = Moment::of_call(&call.facts).context(plugin.limits, &plugin.config_json);
    context.extra.push(("profile-config".to_owned(), call.profile_config_json.to_string()));
    (Caller::of_tenant(call.facts.tenant.as_ref()), context)
}

/// Converts a column that was sent to a guest back to the port's type.
pub(crate) fn profiled(column: &wire::Column) -> ProfiledColumn {
    ProfiledColumn {
        cube: column.cube.as_str().into(),
        member: column.member.as_str().into(),
        ty: logical_type_of(column.ty),
        is_measure: column.is_measure,
        is_primary_key: column.is_primary_key,
        tags: column.tags.iter().map(|tag| tag.as_str().into()).collect(),
        pii: column.pii,
    }
}

fn column(column: &ProfiledColumn) -> wire::Column {
    wire::Column {
        cube: column.cube.to_string(),
        member: column.member.to_string(),
        ty: logical_type(column.ty),
        is_measure: column.is_measure,
        is_primary_key: column.is_primary_key,
        tags: column.tags.iter().map(ToString::to_string).collect(),
        pii: column.pii,
    }
}
