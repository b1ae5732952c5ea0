//! The adapter of the `Governance` port: calls every configured hook, one after another, in the order of ids.
//!
//! In: the caller, and the facts of a query. Out: the answer of each hook, checked against the contract, or the fault
//! of an unavailable hook. The hooks of one query run together under one permit of the hooks' `CallLimiter`, so that a
//! hook that loops never blocks a worker of the server. If the limiter has no permit in time, each hook has the fault
//! `Busy`. Not here: the consequence of a fault for the query (the app decides), and whether cubes and members exist
//! (the compiler checks).

mod arena;
pub(crate) mod from_wire;
pub(crate) mod guest;
mod to_wire;

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use terrane_app::limits::network;
use terrane_app::ports::governance::{
    Artifact, Decision, GateFinding, Governance, Hook, HookFault, HookRequest, HookResponse, MetadataChange, Transition,
};
use terrane_app::ports::plugins::PluginFault;
use terrane_app::query::RequestContext;
use terrane_compiler::governance::QueryFacts;
use wasmtime::Store;

use crate::bindings::common::PluginError;
use crate::bindings::governance::exports::terrane::governance::hook as wire;
use crate::call_limiter::{CallCapacity, CallLimiter};
use crate::engine::Guest;
use crate::host::PluginHost;
use crate::plugin::{Caller, ConfiguredPlugin, Plugin};
use crate::role::error_text;
use crate::wire::context::Moment;
use guest::{PolicyGuest, QueryFacts as LoweredFacts};
use to_wire::{principal, surface};

const ON_QUERY: &str = "on-query";
const ON_CERTIFY: &str = "on-certify";
const ON_METADATA_CHANGE: &str = "on-metadata-change";

/// The number of queries that may wait for their hooks. If every hook runs until its limit of 10 ms, two threads
/// finish these queries in 1.3 seconds.
const MAX_WAITING: usize = 256;
/// The longest time that a query waits for its hooks to begin.
const MAX_WAIT: Duration = Duration::from_secs(2);
const MAX_RUNNING: usize = 8;

/// The configured hooks of a host.
pub struct Hooks {
    host: Arc<PluginHost>,
    calls: CallLimiter,
}

impl Hooks {
    pub fn new(host: Arc<PluginHost>) -> Hooks {
        let cores = thread::available_parallelism().map_or(2, NonZero::get);
        let running = cores.clamp(2, MAX_RUNNING);
        Hooks { host, calls: CallLimiter::new(CallCapacity { running, waiting: MAX_WAITING, wait: MAX_WAIT }) }
    }

    /// Calls the hooks on the caller's own thread, for benchmarks. A hook that loops blocks that thread.
    pub fn judge_on_this_thread(
        &self,
        asking: &HookRequest<'_>,
        facts: &Arc<QueryFacts>,
    ) -> Vec<HookResponse<Decision>> {
        all_said(&self.configured(), judging(asking, facts))
    }

    /// Returns the hooks in the order of their ids.
    fn configured(&self) -> Vec<ConfiguredPlugin<PolicyGuest>> {
        let mut hooks = self.host.registry.configured::<PolicyGuest>();
        hooks.sort_by(|one, other| hook_of(one).id.cmp(&hook_of(other).id));
        hooks
    }

    /// Calls all hooks in one piece of work. If the work cannot begin, the reason is the fault of each hook.
    async fn ask<T: Send + 'static>(
        &self,
        call: &'static str,
        ask: impl Fn(&Plugin<PolicyGuest>) -> Result<T, PluginFault> + Send + 'static,
    ) -> Vec<HookResponse<T>> {
        let hooks = self.configured();
        let called: Vec<Hook> = hooks.iter().map(hook_of).collect();
        let said = self.calls.run(call, move || Ok(all_said(&hooks, ask))).await;
        said.unwrap_or_else(|reason| {
            let fault = HookFault { message: reason.to_string() };
            called.into_iter().map(|hook| HookResponse { hook, answer: Err(fault.clone()) }).collect()
        })
    }
}

/// Returns a function that calls one hook for a query.
fn judging(
    asking: &HookRequest<'_>,
    facts: &Arc<QueryFacts>,
) -> impl Fn(&Plugin<PolicyGuest>) -> Result<Decision, PluginFault> + Send + 'static {
    let (who, moment, facts) = (principal(asking.context), Moment::of_asking(asking), Arc::clone(facts));
    let surface = surface(asking.context.surface);
    let caller = caller_of(asking);
    move |plugin| {
        let query = LoweredFacts::new(&facts, surface, plugin.grants);
        let context = moment.context(plugin.limits, &plugin.config_json);
        let ask = |guest: &PolicyGuest, store: &mut Store<Guest>| guest.on_query(store, &context, &who, &query);
        call(plugin, (&caller, ON_QUERY), ask, |verdict| from_wire::decision(verdict.decision))
    }
}

fn hook_of(configured: &ConfiguredPlugin<PolicyGuest>) -> Hook {
    match configured {
        ConfiguredPlugin::Active(plugin) => {
            Hook { id: plugin.id.clone(), is_required: plugin.is_required, is_monitored: plugin.is_monitored }
        }
        ConfiguredPlugin::Unavailable { id, is_required, is_monitored, .. } => {
            Hook { id: id.clone(), is_required: *is_required, is_monitored: *is_monitored }
        }
    }
}

fn all_said<T>(
    hooks: &[ConfiguredPlugin<PolicyGuest>],
    ask: impl Fn(&Plugin<PolicyGuest>) -> Result<T, PluginFault>,
) -> Vec<HookResponse<T>> {
    hooks.iter().map(|configured| said(configured, &ask)).collect()
}

fn said<T>(
    configured: &ConfiguredPlugin<PolicyGuest>,
    ask: &impl Fn(&Plugin<PolicyGuest>) -> Result<T, PluginFault>,
) -> HookResponse<T> {
    let answer = match configured {
        ConfiguredPlugin::Active(plugin) => ask(plugin),
        ConfiguredPlugin::Unavailable { fault, .. } => Err(fault.clone()),
    };
    HookResponse { hook: hook_of(configured), answer: answer.map_err(|fault| HookFault { message: fault.to_string() }) }
}

/// Makes one call on behalf of a caller. A declined call counts as a fault, and so does an error of `check`.
fn call<T, U>(
    plugin: &Plugin<PolicyGuest>,
    (caller, export): (&Caller, &'static str),
    ask: impl FnOnce(&PolicyGuest, &mut Store<Guest>) -> wasmtime::Result<Result<T, PluginError>>,
    check: impl FnOnce(T) -> Result<U, String>,
) -> Result<U, PluginFault> {
    plugin.call_checked(caller, export, ask, |answer| {
        let answer = answer.map_err(|error| PluginFault::Declined { call: export, message: error_text(&error) })?;
        check(answer).map_err(|message| PluginFault::Answer { call: export, message })
    })
}

/// Returns the caller's identity for limits and the memo. Callers without a tenant share one partition of the memo;
/// anonymous callers are distinguished by their network.
fn caller_of(asking: &HookRequest<'_>) -> Caller {
    let RequestContext { caller, tenant, client, .. } = asking.context;
    let tenant = tenant.clone().unwrap_or_default();
    let address = client.filter(|_| caller.user_id.is_empty()).map(|client| network(client).to_string());
    let id = format!("{tenant}\0{}\0{}", caller.user_id, address.unwrap_or_default());
    Caller { tenant, id: id.into() }
}

#[async_trait]
impl Governance for Hooks {
    fn is_silent(&self) -> bool {
        !self.host.registry.has_any::<PolicyGuest>()
    }

    fn blame(&self, asking: &HookRequest<'_>, hook: &Hook, fault: &str) {
        let fault = PluginFault::Answer { call: ON_QUERY, message: fault.to_owned() };
        for configured in self.host.registry.configured::<PolicyGuest>() {
            if let ConfiguredPlugin::Active(plugin) = configured
                && plugin.id == hook.id
            {
                plugin.health.blame(ON_QUERY, &caller_of(asking).id, &fault);
            }
        }
    }

    async fn authorize(&self, asking: &HookRequest<'_>, facts: &Arc<QueryFacts>) -> Vec<HookResponse<Decision>> {
        self.ask(ON_QUERY, judging(asking, facts)).await
    }

    async fn certify(
        &self,
        asking: &HookRequest<'_>,
        item: &Artifact,
        step: Transition,
        notes: &str,
    ) -> Vec<HookResponse<Vec<GateFinding>>> {
        let (who, moment, notes) = (principal(asking.context), Moment::of_asking(asking), notes.to_owned());
        let (item, step) = (to_wire::artifact(item), to_wire::transition(step));
        let caller = caller_of(asking);
        self.ask(ON_CERTIFY, move |plugin| {
            let context = moment.context(plugin.limits, &plugin.config_json);
            let ask = |guest: &PolicyGuest, store: &mut Store<Guest>| {
                guest.hook(&mut *store)?.call_on_certify(store, &context, &who, &item, step, &notes)
            };
            call(plugin, (&caller, ON_CERTIFY), ask, from_wire::findings)
        })
        .await
    }

    async fn change(&self, asking: &HookRequest<'_>, change: &MetadataChange) -> Vec<HookResponse<Vec<GateFinding>>> {
        let (who, moment) = (principal(asking.context), Moment::of_asking(asking));
        let (before, after): (Option<wire::Artifact>, Option<wire::Artifact>) = match change {
            MetadataChange::Added(after) => (None, Some(to_wire::artifact(after))),
            MetadataChange::Changed { before, after } => {
                (Some(to_wire::artifact(before)), Some(to_wire::artifact(after)))
            }
            MetadataChange::Removed(before) => (Some(to_wire::artifact(before)), None),
        };
        let caller = caller_of(asking);
        self.ask(ON_METADATA_CHANGE, move |plugin| {
            let context = moment.context(plugin.limits, &plugin.config_json);
            let (before, after) = (before.as_ref(), after.as_ref());
            let ask = |guest: &PolicyGuest, store: &mut Store<Guest>| {
                guest.hook(&mut *store)?.call_on_metadata_change(store, &context, &who, before, after)
            };
            call(plugin, (&caller, ON_METADATA_CHANGE), ask, from_wire::findings)
        })
        .await
    }
}
