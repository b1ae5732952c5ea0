//! The adapter of the `Governance` port: asks every configured hook, one after the other, in order of id.
//!
//! In: who asks, and the facts. Out: what each hook said, checked against the contract; a hook that is not
//! there has a fault in place of an answer. A query's hooks run on a small pool of threads of their own with
//! a bounded queue, so that a hook that loops takes no worker of the server; where the queue is full, or the
//! turn does not come in time, each hook has the fault of being overloaded. Not here: what a fault means for
//! the query (the app decides), and whether cubes and members exist (the compiler knows).

mod arena;
mod from_wire;
mod pool;
mod to_wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use terrane_app::ports::governance::{
    Artifact, Asking, Decision, GateFinding, Governance, Hook, HookFault, MetadataChange, Said, Transition,
};
use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::governance::QueryFacts;
use wasmtime::Store;

use crate::bindings::common::{CallContext, PluginError};
use crate::bindings::governance::PolicyPlugin;
use crate::bindings::governance::exports::terrane::governance::hook as wire;
use crate::engine::Guest;
use crate::host::PluginHost;
use crate::plugin::{Configured, Plugin};
use crate::role::error_text;
use pool::Pool;
use to_wire::{Moment, principal, surface};

/// A queued query waits so long for its hooks, all together.
const PATIENCE: Duration = Duration::from_secs(2);

/// The configured hooks of a host.
pub struct Hooks {
    host: Arc<PluginHost>,
    pool: Pool,
}

impl Hooks {
    /// Starts the pool's threads.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn new(host: Arc<PluginHost>) -> std::io::Result<Hooks> {
        Ok(Hooks { host, pool: Pool::start()? })
    }

    /// Asks all hooks on the pool.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl Fn(&Plugin<PolicyPlugin>) -> Result<T, PluginFault> + Send + 'static,
    ) -> Vec<Said<T>> {
        let mut hooks = self.host.registry.configured::<PolicyPlugin>();
        hooks.sort_by(|one, other| hook_of(one).id.cmp(&hook_of(other).id));
        let unanswered: Vec<Hook> = hooks.iter().map(hook_of).collect();
        let answers = self.pool.run(move || hooks.iter().map(|configured| said(configured, &ask)).collect());
        match tokio::time::timeout(PATIENCE, answers).await {
            Ok(Some(said)) => said,
            outcome => {
                let message = match outcome {
                    Ok(_) => "too many queries wait for their hooks",
                    Err(_) => "the hooks' turn did not come in time",
                };
                let fault = HookFault { message: message.to_owned() };
                unanswered.into_iter().map(|hook| Said { hook, answer: Err(fault.clone()) }).collect()
            }
        }
    }
}

fn hook_of(configured: &Configured<PolicyPlugin>) -> Hook {
    match configured {
        Configured::Active(plugin) => {
            Hook { id: plugin.id.clone(), is_required: plugin.is_required, is_monitored: plugin.is_monitored }
        }
        Configured::Down { id, is_required, is_monitored, .. } => {
            Hook { id: id.clone(), is_required: *is_required, is_monitored: *is_monitored }
        }
    }
}

fn said<T>(
    configured: &Configured<PolicyPlugin>,
    ask: &impl Fn(&Plugin<PolicyPlugin>) -> Result<T, PluginFault>,
) -> Said<T> {
    let answer = match configured {
        Configured::Active(plugin) => ask(plugin),
        Configured::Down { fault, .. } => Err(fault.clone()),
    };
    Said { hook: hook_of(configured), answer: answer.map_err(|fault| HookFault { message: fault.to_string() }) }
}

/// One call on behalf of a tenant: what the guest itself declined, and what `check` finds wrong with its
/// answer, are faults of the call.
fn call<T, U>(
    plugin: &Plugin<PolicyPlugin>,
    (tenant, export): (&str, &'static str),
    ask: impl FnOnce(&PolicyPlugin, &mut Store<Guest>) -> wasmtime::Result<Result<T, PluginError>>,
    check: impl FnOnce(T) -> Result<U, String>,
) -> Result<U, PluginFault> {
    plugin.call_checked(tenant, export, ask, |answer| {
        let answer = answer.map_err(|error| PluginFault::Declined { call: export, message: error_text(&error) })?;
        check(answer).map_err(|message| PluginFault::Answer { call: export, message })
    })
}

/// Those without a tenant share one room of notes.
fn tenant_of(asking: &Asking<'_>) -> String {
    asking.context.tenant.as_deref().unwrap_or_default().to_owned()
}

fn context_of(plugin: &Plugin<PolicyPlugin>, moment: &Moment) -> CallContext {
    CallContext {
        now_unix_ms: moment.now_unix_ms,
        time_zone: moment.time_zone.clone(),
        correlation_id: moment.correlation_id.clone(),
        budget_ms: u32::try_from(plugin.limits.time_ms).unwrap_or(u32::MAX),
        config_json: plugin.config_json.to_string(),
        extra: Vec::new(),
    }
}

#[async_trait]
impl Governance for Hooks {
    fn is_silent(&self) -> bool {
        self.host.registry.configured::<PolicyPlugin>().is_empty()
    }

    async fn judge(&self, asking: &Asking<'_>, facts: &Arc<QueryFacts>) -> Vec<Said<Decision>> {
        const CALL: &str = "on-query";
        let (who, moment, facts) = (principal(asking.context), Moment::of(asking), Arc::clone(facts));
        let surface = surface(asking.context.surface);
        let tenant = tenant_of(asking);
        self.ask(move |plugin| {
            let query = to_wire::query_facts(&facts, surface, plugin.grants.query_values);
            let context = context_of(plugin, &moment);
            let ask = |guest: &PolicyPlugin, store: &mut Store<Guest>| {
                guest.terrane_governance_hook().call_on_query(store, &context, &who, &query)
            };
            call(plugin, (&tenant, CALL), ask, |verdict| from_wire::decision(verdict.decision))
        })
        .await
    }

    async fn certify(
        &self,
        asking: &Asking<'_>,
        item: &Artifact,
        step: Transition,
        notes: &str,
    ) -> Vec<Said<Vec<GateFinding>>> {
        const CALL: &str = "on-certify";
        let (who, moment, notes) = (principal(asking.context), Moment::of(asking), notes.to_owned());
        let (item, step) = (to_wire::artifact(item), to_wire::transition(step));
        let tenant = tenant_of(asking);
        self.ask(move |plugin| {
            let context = context_of(plugin, &moment);
            let ask = |guest: &PolicyPlugin, store: &mut Store<Guest>| {
                guest.terrane_governance_hook().call_on_certify(store, &context, &who, &item, step, &notes)
            };
            call(plugin, (&tenant, CALL), ask, from_wire::findings)
        })
        .await
    }

    async fn change(&self, asking: &Asking<'_>, change: &MetadataChange) -> Vec<Said<Vec<GateFinding>>> {
        const CALL: &str = "on-metadata-change";
        let (who, moment) = (principal(asking.context), Moment::of(asking));
        let (before, after): (Option<wire::Artifact>, Option<wire::Artifact>) = match change {
            MetadataChange::Added(after) => (None, Some(to_wire::artifact(after))),
            MetadataChange::Changed { before, after } => {
                (Some(to_wire::artifact(before)), Some(to_wire::artifact(after)))
            }
            MetadataChange::Removed(before) => (Some(to_wire::artifact(before)), None),
        };
        let tenant = tenant_of(asking);
        self.ask(move |plugin| {
            let context = context_of(plugin, &moment);
            let (before, after) = (before.as_ref(), after.as_ref());
            let ask = |guest: &PolicyPlugin, store: &mut Store<Guest>| {
                guest.terrane_governance_hook().call_on_metadata_change(store, &context, &who, before, after)
            };
            call(plugin, (&tenant, CALL), ask, from_wire::findings)
        })
        .await
    }
}
