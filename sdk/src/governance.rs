//! The governance role: the trait to implement, and the macro that exports it.
//!
//! In: a type that implements [`Hook`]. Out: a component of the world `policy-plugin`.
//!
//! ```
//! use terrane_sdk::filter::column;
//! use terrane_sdk::governance::{Hook, Obligations, Principal, QueryFacts, Verdict};
//! use terrane_sdk::{CallContext, PluginError, PluginInfo};
//!
//! struct OwnRegion;
//!
//! impl Hook for OwnRegion {
//!     const INFO: PluginInfo = PluginInfo::new("hook-own-region", "1.0.0", "Own region");
//!
//!     fn on_query(_: &CallContext, who: &Principal, query: &QueryFacts) -> Result<Verdict, PluginError> {
//!         if !query.reads("orders") {
//!             return Ok(Verdict::abstain());
//!         }
//!         let own = column("region").in_list(who.texts("regions"));
//!         Ok(Verdict::permit(Obligations::default().row_filter("orders", &own)))
//!     }
//! }
//!
//! terrane_sdk::export_hook!(OwnRegion);
//!
//! let elsewhere = OwnRegion::on_query(&CallContext::for_tests(), &Principal::anonymous(), &QueryFacts::for_tests(&[]));
//! assert_eq!(elsewhere.unwrap(), Verdict::abstain());
//! ```

mod build;

pub use crate::bindings::governance::exports::terrane::governance::hook::{
    Artifact, Decision, Denial, DependsOn, GateFinding, Mask, MemberMask, MemberUse, Obligations, Principal,
    QueryFacts, RowFilter, Surface, Transition, Usage, Verdict,
};
pub use crate::bindings::terrane::types::common::Severity;
pub use crate::bindings::terrane::types::ir::{Arena, Scalar};

use crate::bindings::governance::exports::terrane::governance::hook as wire;
use crate::{CallContext, Issue, PluginError, PluginInfo};

/// A governance hook. It narrows queries, and takes part in certification and in changes of metadata. The default
/// implementations have no effect.
pub trait Hook {
    const INFO: PluginInfo;

    /// Decides about a query. The host calls it once per query, before any statement runs.
    ///
    /// # Errors
    /// Returns an error if the hook cannot decide. If the hook is required, the host refuses the query.
    fn on_query(context: &CallContext, who: &Principal, query: &QueryFacts) -> Result<Verdict, PluginError> {
        let _ = (context, who, query);
        Ok(Verdict::abstain())
    }

    /// Decides about a step of an artifact's certification. The host calls it before the step is taken.
    ///
    /// # Errors
    /// Returns an error if the hook cannot decide. If the hook is required, the host refuses the step.
    fn on_certify(
        context: &CallContext,
        who: &Principal,
        item: &Artifact,
        step: Transition,
        notes: &str,
    ) -> Result<Vec<GateFinding>, PluginError> {
        let _ = (context, who, item, step, notes);
        Ok(Vec::new())
    }

    /// Decides about a change of metadata. The host calls it before the change is written.
    ///
    /// # Errors
    /// Returns an error if the hook cannot decide. If the hook is required, the host refuses the change.
    fn on_metadata_change(
        context: &CallContext,
        who: &Principal,
        before: Option<&Artifact>,
        after: Option<&Artifact>,
    ) -> Result<Vec<GateFinding>, PluginError> {
        let _ = (context, who, before, after);
        Ok(Vec::new())
    }

    /// Checks the configuration, which is a JSON object or an empty string.
    ///
    /// # Errors
    /// Returns every problem of the configuration.
    fn check_config(config_json: &str) -> Result<(), Vec<Issue>> {
        crate::plugin::takes_no_config(Self::INFO.id, config_json)
    }
}

impl<H: Hook> wire::Guest for H {
    fn on_query(context: CallContext, who: Principal, query: QueryFacts) -> Result<Verdict, PluginError> {
        <H as Hook>::on_query(&context, &who, &query)
    }

    fn on_certify(
        context: CallContext,
        who: Principal,
        item: Artifact,
        step: Transition,
        notes: String,
    ) -> Result<Vec<GateFinding>, PluginError> {
        <H as Hook>::on_certify(&context, &who, &item, step, &notes)
    }

    fn on_metadata_change(
        context: CallContext,
        who: Principal,
        before: Option<Artifact>,
        after: Option<Artifact>,
    ) -> Result<Vec<GateFinding>, PluginError> {
        <H as Hook>::on_metadata_change(&context, &who, before.as_ref(), after.as_ref())
    }
}

/// Exports a type that implements [`Hook`](crate::governance::Hook) as a component. On targets other
/// than WebAssembly, the macro does nothing.
#[macro_export]
macro_rules! export_hook {
    ($hook:ident) => {
        $crate::export_role!($hook, governance::Hook, export_governance_role, governance);
    };
}
