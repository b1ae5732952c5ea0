//! The port to governance hooks, which decide about queries, certification and changes of metadata.
//!
//! In: the caller and the facts. Out: the answer of each hook, in the order of their ids. Answers are well formed but
//! not yet checked against the model. `query::authorization` and [`governance`](crate::governance) decide about their
//! effect. Not here: WebAssembly, threads, SQL.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_compiler::governance::{Obligations, QueryFacts};

use super::audit::Details;
use super::severity::FindingSeverity;
use crate::domain::RequestContext;
pub use crate::domain::Surface;

/// The governance hooks that the operator configured.
#[async_trait]
pub trait Governance: Send + Sync {
    /// Returns whether no hook is configured.
    fn is_silent(&self) -> bool;

    /// Returns the response of each hook to a query. The response of a hook that failed is a fault.
    async fn authorize(&self, asking: &HookRequest<'_>, facts: &Arc<QueryFacts>) -> Vec<HookResponse<Decision>>;

    /// Reports obligations that cannot be applied to a query, such as an obligation for an unknown cube. This counts as
    /// a fault of the hook, like an answer that violates the contract.
    fn blame(&self, asking: &HookRequest<'_>, hook: &Hook, fault: &str);

    /// Returns the response of each hook to a step that an artifact is about to take.
    async fn certify(
        &self,
        asking: &HookRequest<'_>,
        item: &Artifact,
        step: Transition,
        notes: &str,
    ) -> Vec<HookResponse<Vec<GateFinding>>>;

    /// Returns the response of each hook to metadata that is about to be written.
    async fn change(&self, asking: &HookRequest<'_>, change: &MetadataChange) -> Vec<HookResponse<Vec<GateFinding>>>;
}

/// The adapter of a server without hooks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

#[async_trait]
impl Governance for NoHooks {
    fn is_silent(&self) -> bool {
        true
    }

    async fn authorize(&self, _: &HookRequest<'_>, _: &Arc<QueryFacts>) -> Vec<HookResponse<Decision>> {
        Vec::new()
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

/// The caller, the time and the context of a request to hooks.
#[derive(Debug, Clone, Copy)]
pub struct HookRequest<'a> {
    pub context: &'a RequestContext,
    pub now: Timestamp,
    /// The IANA name of the project's time zone.
    pub time_zone: &'a str,
}

/// A hook and its answer.
#[derive(Debug, Clone)]
pub struct HookResponse<T> {
    pub hook: Hook,
    pub answer: Result<T, HookFault>,
}

/// A configured hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub id: Arc<str>,
    /// True if a query fails when the hook does not respond.
    pub is_required: bool,
    /// True if its responses are logged but not enforced.
    pub is_monitored: bool,
}

/// The reason why a hook gave no usable answer: it is missing, its call failed, or its answer violates the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HookFault {
    pub message: String,
}

/// The response of one hook to a query.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// The hook has no opinion about the query.
    Abstain,
    Permit(Permit),
    Deny(Denial),
}

/// The decision that a query may run under conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Permit {
    pub obligations: Obligations,
    /// Warnings for the caller, sent with the answer.
    pub warnings: Vec<String>,
    /// Notes for the audit log, as keys and values.
    pub audit: Vec<(String, String)>,
}

/// The decision that a query may not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// A stable code, for use by programs.
    pub code: Arc<str>,
    /// The message for the caller.
    pub public_message: Arc<str>,
    /// The reason, for the audit log only.
    pub audit_reason: Arc<str>,
}

/// A governed artifact: a cube, measure, dimension, metric or model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Artifact {
    /// The type: `cube`, `measure`, `dimension`, `metric` or `model`.
    pub kind: String,
    /// The id, such as `orders` or `orders.revenue`.
    pub id: String,
    pub owner: Option<String>,
    pub tags: Vec<String>,
    pub classification: Option<String>,
    pub pii: bool,
    /// The status: `draft`, `pending_review`, `certified`, `deprecated` or `archived`.
    pub certification: String,
    pub version: u64,
    /// The artifact's definition and metadata.
    pub body: Details,
}

/// A step of certification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transition {
    Submit,
    Certify,
    Reject,
    Deprecate,
    Archive,
    Restore,
}

impl Transition {
    pub const ALL: [Transition; 6] = [
        Transition::Submit,
        Transition::Certify,
        Transition::Reject,
        Transition::Deprecate,
        Transition::Archive,
        Transition::Restore,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Transition::Submit => "submit",
            Transition::Certify => "certify",
            Transition::Reject => "reject",
            Transition::Deprecate => "deprecate",
            Transition::Archive => "archive",
            Transition::Restore => "restore",
        }
    }
}

/// Metadata before and after it is written.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataChange {
    Added(Artifact),
    Changed { before: Artifact, after: Artifact },
    Removed(Artifact),
}

/// A finding of one rule about an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFinding {
    /// A stable code of the rule, for use by programs.
    pub rule: String,
    pub severity: FindingSeverity,
    /// The problem, and how to resolve it.
    pub message: String,
    /// True if the finding prevents the step.
    pub is_blocking: bool,
}
