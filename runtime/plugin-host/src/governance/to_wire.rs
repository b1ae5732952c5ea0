//! Converts the arguments of hooks to the contract's types.
//!
//! In: the app's types. Out: the contract's types. Not here: the facts of a query (`guest`), and checks.

use terrane_app::ports::governance::{Artifact, Surface, Transition};
use terrane_app::query::RequestContext;
use terrane_json::caller::attribute_to_json;
use terrane_json::details;

use crate::bindings::governance::exports::terrane::governance::hook as wire;
use crate::bindings::ir::Arena;

pub(super) fn principal(context: &RequestContext) -> wire::Principal {
    let caller = &context.caller;
    wire::Principal {
        user_id: caller.user_id.to_string(),
        email: caller.email.as_deref().map(str::to_owned),
        tenant: context.tenant.as_deref().unwrap_or_default().to_owned(),
        auth_method: caller.auth_method.as_str().to_owned(),
        roles: caller.roles.iter().map(ToString::to_string).collect(),
        groups: caller.groups.iter().map(ToString::to_string).collect(),
        scopes: context.scopes.names().into_iter().map(str::to_owned).collect(),
        attributes: caller
            .attributes
            .iter()
            .map(|(name, attribute)| (name.to_string(), attribute_to_json(attribute).to_string()))
            .collect(),
    }
}

pub(super) fn surface(surface: Surface) -> wire::Surface {
    match surface {
        Surface::Rest => wire::Surface::Rest,
        Surface::Graphql => wire::Surface::Graphql,
        Surface::Dax => wire::Surface::Dax,
        Surface::Xmla => wire::Surface::Xmla,
        Surface::AsyncJob => wire::Surface::AsyncJob,
        Surface::SqlOnly => wire::Surface::SqlOnly,
        Surface::Internal => wire::Surface::Internal,
    }
}

pub(super) fn empty_arena() -> Arena {
    Arena {
        nodes: Vec::new(),
        args: Vec::new(),
        columns: Vec::new(),
        literals: Vec::new(),
        names: Vec::new(),
        roots: Vec::new(),
    }
}

pub(super) fn artifact(artifact: &Artifact) -> wire::Artifact {
    wire::Artifact {
        kind: artifact.kind.clone(),
        id: artifact.id.clone(),
        owner: artifact.owner.clone(),
        tags: artifact.tags.clone(),
        classification: artifact.classification.clone(),
        pii: artifact.pii,
        certification: artifact.certification.clone(),
        version: artifact.version,
        body_json: details::encode(&artifact.body).to_string(),
    }
}

pub(super) fn transition(step: Transition) -> wire::Transition {
    match step {
        Transition::Submit => wire::Transition::Submit,
        Transition::Certify => wire::Transition::Certify,
        Transition::Reject => wire::Transition::Reject,
        Transition::Deprecate => wire::Transition::Deprecate,
        Transition::Archive => wire::Transition::Archive,
        Transition::Restore => wire::Transition::Restore,
    }
}
