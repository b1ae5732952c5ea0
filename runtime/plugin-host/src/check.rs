//! The interface `terrane:profiling/check` behind the port `Checks`.
//!
//! In: columns, then answers. Out: plans and findings that were checked: indexes that exist, sizes within
//! the contract's, conditions over the cube's own dimensions, scores from 0 to 1. Not here: what the
//! warehouse is asked (app), and the SQL of it (compiler).

mod finding;
mod plan;
mod predicate;

use std::sync::Arc;

use async_trait::async_trait;
use terrane_app::ports::calls::ComponentFault;
use terrane_app::ports::checks::{CheckAnswer, CheckCall, CheckPlan, Checks, Finding, ProfiledColumn};
use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::types::{LogicalType, Value};
use wasmtime::Store;

use crate::bindings::check::CheckPlugin;
use crate::bindings::check::exports::terrane::profiling::check as wire;
use crate::bindings::common::{CallContext, LogicalType as WireType};
use crate::bindings::ir::Scalar;
use crate::engine::Guest;
use crate::host::PluginHost;
use crate::plugin::{Configured, Plugin};
use crate::role::error_text;

/// The checks among the components of a host.
pub struct ComponentChecks {
    host: Arc<PluginHost>,
}

impl ComponentChecks {
    pub fn new(host: Arc<PluginHost>) -> Self {
        ComponentChecks { host }
    }

    async fn configured(&self) -> Result<Vec<Configured<CheckPlugin>>, ComponentFault> {
        let host = Arc::clone(&self.host);
        let found = self.host.blocking.run(move || Ok(host.registry.configured::<CheckPlugin>())).await;
        found.map_err(|fault| ComponentFault { component: "host".into(), fault })
    }
}

#[async_trait]
impl Checks for ComponentChecks {
    async fn plans(&self, call: &CheckCall, columns: Arc<[ProfiledColumn]>) -> Vec<Result<CheckPlan, ComponentFault>> {
        let mut plans = Vec::new();
        let configured = match self.configured().await {
            Ok(configured) => configured,
            // Checks that nobody could look for are not checks that there aren't.
            Err(fault) => return vec![Err(fault)],
        };
        for entry in configured {
            let (component, outcome) = match entry {
                Configured::Down { id, fault, .. } => (id, Err(fault)),
                Configured::Active(plugin) => {
                    let (called, columns) = (Arc::clone(&plugin), Arc::clone(&columns));
                    let context = context(call, &plugin);
                    let work = move || make_plan(&called, &context, &columns);
                    (Arc::clone(&plugin.id), self.host.blocking.run(work).await)
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
            Configured::Active(plugin) if &*plugin.id == component => Some(plugin),
            _ => None,
        });
        let Some(plugin) = active else {
            return Err(failed(PluginFault::Host { message: "it is not there any more".to_owned() }));
        };
        let context = context(call, &plugin);
        self.host.blocking.run(move || evaluate(&plugin, &context, &columns, answers)).await.map_err(failed)
    }
}

fn make_plan(
    plugin: &Plugin<CheckPlugin>,
    (tenant, context): &Asking,
    columns: &[ProfiledColumn],
) -> Result<Vec<terrane_app::ports::checks::CheckRequest>, PluginFault> {
    let wired: Vec<wire::Column> = columns.iter().map(column).collect();
    let ask = |guest: &CheckPlugin, store: &mut Store<Guest>| {
        guest.terrane_profiling_check().call_make_plan(store, context, &wired)
    };
    plugin.call_checked(tenant, plan::CALL, ask, |found| {
        let found = found.map_err(|error| PluginFault::Declined { call: plan::CALL, message: error_text(&error) })?;
        plan::checked(found, columns, plugin.grants)
    })
}

fn evaluate(
    plugin: &Plugin<CheckPlugin>,
    (tenant, context): &Asking,
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
    plugin.call_checked(tenant, finding::CALL, ask, |found| {
        let found =
            found.map_err(|error| PluginFault::Declined { call: finding::CALL, message: error_text(&error) })?;
        finding::checked(found, columns.len(), &plugin.id)
    })
}

/// For whom a component is called, and what it is told.
type Asking = (Arc<str>, CallContext);

fn context(call: &CheckCall, plugin: &Plugin<CheckPlugin>) -> Asking {
    let context = CallContext {
        now_unix_ms: call.facts.now_unix_ms,
        time_zone: call.facts.time_zone.to_string(),
        correlation_id: call.facts.correlation_id.to_string(),
        budget_ms: u32::try_from(plugin.limits.time_ms).unwrap_or(u32::MAX),
        config_json: plugin.config_json.to_string(),
        extra: vec![("profile-config".to_owned(), call.profile_config_json.to_string())],
    };
    (call.facts.tenant.clone().unwrap_or_default(), context)
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

fn logical_type(ty: LogicalType) -> WireType {
    match ty {
        LogicalType::Text => WireType::Text,
        LogicalType::Integer => WireType::Integer,
        LogicalType::Decimal => WireType::Decimal,
        LogicalType::Float => WireType::Float,
        LogicalType::Boolean => WireType::Boolean,
        LogicalType::Date => WireType::Date,
        LogicalType::Timestamp => WireType::Timestamp,
        LogicalType::TimestampTz => WireType::TimestampTz,
        LogicalType::Geo => WireType::Geo,
        LogicalType::Binary => WireType::Binary,
        LogicalType::Unknown => WireType::Unknown,
    }
}

fn scalar(value: &Value) -> Scalar {
    match value {
        Value::Null => Scalar::Null,
        Value::Boolean(value) => Scalar::Boolean(*value),
        Value::Integer(value) => Scalar::Integer(*value),
        Value::Float(value) if value.is_nan() => Scalar::Float(f64::NAN),
        Value::Float(value) => Scalar::Float(*value),
        Value::Decimal(digits) => Scalar::Decimal(digits.to_string()),
        Value::Text(text) => Scalar::Text(text.to_string()),
        Value::Date(days) => Scalar::DateDays(*days),
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Scalar::TimestampUs(*micros),
    }
}
