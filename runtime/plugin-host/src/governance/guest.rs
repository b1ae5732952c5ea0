//! An instance of a governance hook for one query.
//!
//! In: a linked component, and the facts of a query. Out: an unchecked verdict. The code that `bindgen!` generates
//! compares the types of all five functions at each instantiation, and copies every string of the facts. This took a
//! quarter of the time of a call. This module compares only the function that queries call, once per component, and
//! copies strings only into the guest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use terrane_compiler::governance as facts;
use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, ComponentType, Instance, InstancePre, Lower, TypedFunc};

use super::arena::FilterValues;
use super::{arena, to_wire};
use crate::bindings::common::{CallContext, Issue, LogicalType, PluginError};
use crate::bindings::governance::exports::terrane::governance::hook as wire;
use crate::bindings::governance::exports::terrane::types::plugin;
use crate::bindings::ir::Arena;
use crate::engine::Guest;
use crate::plugin::Grants;
use crate::role::{Info, Role as _, VERSION};
use crate::wire::values::logical_type;

/// An instance of a governance hook.
pub(crate) struct PolicyGuest {
    instance: Instance,
    exports: Exports,
}

/// The indexes of a component's exports.
#[derive(Clone)]
struct Exports {
    plugin: Arc<plugin::GuestIndices>,
    hook: Arc<wire::GuestIndices>,
    on_query: ComponentExportIndex,
    /// True once the type of `on-query` matched the contract. All instances of a component have the same types.
    is_compared: Arc<AtomicBool>,
}

type Params<'a> = (&'a CallContext, &'a wire::Principal, &'a QueryFacts<'a>);
type Answer = (Result<wire::Verdict, PluginError>,);

/// A component that is ready to be instantiated.
pub(crate) struct PolicyPre {
    instance: InstancePre<Guest>,
    exports: Exports,
}

impl PolicyPre {
    /// Looks up the exports of a linked component.
    ///
    /// # Errors
    /// The component lacks a function of the contract.
    pub(crate) fn new(instance: InstancePre<Guest>) -> wasmtime::Result<PolicyPre> {
        let exports = Exports {
            plugin: Arc::new(plugin::GuestIndices::new(&instance)?),
            hook: Arc::new(wire::GuestIndices::new(&instance)?),
            on_query: function(instance.component(), &format!("{}@{VERSION}", PolicyGuest::INTERFACE), "on-query")?,
            is_compared: Arc::default(),
        };
        Ok(PolicyPre { instance, exports })
    }

    pub(crate) fn instantiate(&self, store: &mut Store<Guest>) -> wasmtime::Result<PolicyGuest> {
        Ok(PolicyGuest { instance: self.instance.instantiate(store)?, exports: self.exports.clone() })
    }
}

fn function(component: &Component, interface: &str, name: &str) -> wasmtime::Result<ComponentExportIndex> {
    let interface = component.get_export_index(None, interface);
    interface
        .and_then(|interface| component.get_export_index(Some(&interface), name))
        .ok_or_else(|| wasmtime::format_err!("function `{name}` is missing"))
}

impl PolicyGuest {
    pub(super) fn on_query(
        &self,
        store: &mut Store<Guest>,
        context: &CallContext,
        who: &wire::Principal,
        query: &QueryFacts<'_>,
    ) -> wasmtime::Result<Result<wire::Verdict, PluginError>> {
        let on_query = self.typed_on_query(&mut *store)?;
        Ok(on_query.call(store, (context, who, query))?.0)
    }

    #[allow(unsafe_code, reason = "what was compared for a component need not be compared for each instance of it")]
    fn typed_on_query<'a>(&self, store: &mut Store<Guest>) -> wasmtime::Result<TypedFunc<Params<'a>, Answer>> {
        let Exports { on_query, is_compared, .. } = &self.exports;
        if !is_compared.load(Ordering::Relaxed) {
            let compared = self.instance.get_typed_func::<Params<'a>, Answer>(store, *on_query)?;
            is_compared.store(true, Ordering::Relaxed);
            return Ok(compared);
        }
        let found = self.instance.get_func(store, *on_query);
        let found = found.ok_or_else(|| wasmtime::format_err!("function `on-query` is missing"))?;
        // SAFETY: an earlier call has compared the function's type with these types. The type belongs to the component,
        // so it is the same in every instance.
        Ok(unsafe { TypedFunc::new_unchecked(found) })
    }

    /// Returns all functions of the hook.
    pub(super) fn hook(&self, store: &mut Store<Guest>) -> wasmtime::Result<wire::Guest> {
        self.exports.hook.load(store, &self.instance)
    }

    /// Compares the types of all functions with the contract's.
    pub(crate) fn load_all(&self, store: &mut Store<Guest>) -> wasmtime::Result<()> {
        self.hook(&mut *store)?;
        self.exports.plugin.load(store, &self.instance)?;
        Ok(())
    }

    pub(crate) fn describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<Info> {
        let info = self.exports.plugin.load(&mut *store, &self.instance)?.call_describe(store)?;
        Ok(Info {
            id: info.id,
            version: info.version,
            display_name: info.display_name,
            api: info.api,
            config_schema_json: info.config_schema_json,
        })
    }

    pub(crate) fn check_config(
        &self,
        store: &mut Store<Guest>,
        json: &str,
    ) -> wasmtime::Result<Result<(), Vec<Issue>>> {
        self.exports.plugin.load(&mut *store, &self.instance)?.call_check_config(store, json)
    }
}

/// The record `query-facts` of the contract, with borrowed strings.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct QueryFacts<'a> {
    surface: wire::Surface,
    cubes: &'a [Arc<str>],
    members: Vec<MemberUse<'a>>,
    filters: Arena,
    limit: Option<u64>,
    #[component(name = "estimated-bytes")]
    estimated_bytes: Option<u64>,
    #[component(name = "estimated-cost")]
    estimated_cost: Option<f64>,
    extra: Vec<(&'static str, &'static str)>,
}

/// The record `member-use` of the contract, with borrowed strings.
#[derive(ComponentType, Lower)]
#[component(record)]
pub(super) struct MemberUse<'a> {
    cube: &'a str,
    member: &'a str,
    ty: LogicalType,
    #[component(name = "is-measure")]
    is_measure: bool,
    #[component(name = "used-as")]
    used_as: wire::Usage,
    tags: &'a [Arc<str>],
    pii: bool,
    classification: Option<&'a str>,
}

impl<'a> QueryFacts<'a> {
    /// Converts the facts of a query. If the conditions do not fit into an arena, they are omitted and `extra` says so;
    /// their members are still listed.
    pub(super) fn new(facts: &'a facts::QueryFacts, surface: wire::Surface, grants: Grants) -> QueryFacts<'a> {
        let values = if grants.query_values { FilterValues::Included } else { FilterValues::Withheld };
        let filters = arena::of_conditions(&facts.filters, values);
        let left_out = filters.is_none().then_some(("filters-left-out", "true"));
        QueryFacts {
            surface,
            cubes: &facts.cubes,
            members: facts.members.iter().map(member_use).collect(),
            filters: filters.unwrap_or_else(to_wire::empty_arena),
            limit: Some(facts.limit),
            estimated_bytes: None,
            estimated_cost: None,
            extra: left_out.into_iter().collect(),
        }
    }
}

fn member_use(member: &facts::MemberUse) -> MemberUse<'_> {
    MemberUse {
        cube: &member.cube,
        member: &member.member,
        ty: logical_type(member.ty),
        is_measure: member.is_measure,
        used_as: match member.usage {
            facts::Usage::Selected => wire::Usage::Selected,
            facts::Usage::Filtered => wire::Usage::Filtered,
            facts::Usage::Ordered => wire::Usage::Ordered,
            facts::Usage::Joined => wire::Usage::Joined,
        },
        tags: &member.tags,
        pii: member.pii,
        classification: member.classification.as_deref(),
    }
}
