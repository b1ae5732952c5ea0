//! Fields of modules that can be switched off.
//!
//! In: the use cases of a server. Out: the fields that the schema lacks, for introspection, for the text of the schema
//! and for documents. On the command line, no field is missing. Not here: the text ([`text`](super::text)).

use async_graphql::Context;

use crate::context::GraphQlServices;
use crate::operation::OperationKind;

/// The modules that a server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modules {
    search: bool,
    governance: bool,
    cost: bool,
    profiles: bool,
    monitors: bool,
}

/// A field of a root, and whether the modules that it needs are on.
type ModuleField = (OperationKind, &'static str, fn(&Modules) -> bool);

const FIELDS: &[ModuleField] = &[
    (OperationKind::Query, "search", |modules| modules.search),
    (OperationKind::Query, "autocomplete", |modules| modules.search),
    (OperationKind::Query, "ask", |modules| modules.search),
    (OperationKind::Query, "glossaryTerms", |modules| modules.governance),
    (OperationKind::Query, "cubeProfile", |modules| modules.profiles),
    (OperationKind::Query, "budgetUsage", |modules| modules.cost),
    (OperationKind::Query, "recommendations", |modules| modules.cost),
    (OperationKind::Query, "queryHistory", |modules| modules.cost),
    (OperationKind::Query, "guardrails", |modules| modules.cost),
    (OperationKind::Query, "subjectGuardrails", |modules| modules.cost),
    (OperationKind::Query, "allGuardrails", |modules| modules.cost),
    (OperationKind::Query, "predictCost", |modules| modules.cost),
    (OperationKind::Query, "checkGuardrails", |modules| modules.cost),
    (OperationKind::Query, "monitors", |modules| modules.monitors),
    (OperationKind::Query, "detections", |modules| modules.monitors),
    (OperationKind::Query, "alerts", |modules| modules.monitors),
    (OperationKind::Query, "deliveries", |modules| modules.monitors),
    (OperationKind::Query, "glossaryTerm", |modules| modules.governance),
    (OperationKind::Query, "certification", |modules| modules.governance),
    (OperationKind::Query, "certifications", |modules| modules.governance),
    (OperationKind::Query, "owners", |modules| modules.governance),
    (OperationKind::Query, "artifactsByOwner", |modules| modules.governance),
    (OperationKind::Query, "catalog", |modules| modules.governance),
    (OperationKind::Query, "searchArtifacts", |modules| modules.governance),
    (OperationKind::Query, "artifact", |modules| modules.governance),
    (OperationKind::Query, "governanceHistory", |modules| modules.governance),
    (OperationKind::Query, "governanceReport", |modules| modules.governance),
    (OperationKind::Query, "qualityScore", |modules| modules.profiles),
    (OperationKind::Query, "profileChanges", |modules| modules.profiles),
    (OperationKind::Query, "monitor", |modules| modules.monitors),
    (OperationKind::Query, "alert", |modules| modules.monitors),
    (OperationKind::Query, "rootCause", |modules| modules.monitors),
    (OperationKind::Query, "detectors", |modules| modules.monitors),
    (OperationKind::Query, "channels", |modules| modules.monitors),
    (OperationKind::Subscription, "alerts", |modules| modules.monitors),
];

impl Modules {
    pub(crate) const ALL: Modules =
        Modules { search: true, governance: true, cost: true, profiles: true, monitors: true };

    pub(crate) fn of(services: &GraphQlServices) -> Self {
        let Some(server) = &services.server else { return Modules::ALL };
        Modules {
            search: services.search.is_some(),
            governance: server.governance.is_some(),
            cost: server.cost.is_some(),
            profiles: server.profiles.is_some(),
            monitors: server.monitors.is_some(),
        }
    }

    /// Returns whether the schema has a field of a root.
    pub(crate) fn has(&self, root: OperationKind, field: &str) -> bool {
        FIELDS.iter().all(|(of, name, is_on)| *of != root || *name != field || is_on(self))
    }
}

/// Returns the modules of a schema.
fn modules(context: &Context<'_>) -> Modules {
    context.data_opt::<Modules>().copied().unwrap_or(Modules::ALL)
}

pub(super) fn has_search(context: &Context<'_>) -> bool {
    modules(context).search
}

pub(super) fn has_governance(context: &Context<'_>) -> bool {
    modules(context).governance
}

pub(super) fn has_cost(context: &Context<'_>) -> bool {
    modules(context).cost
}

pub(super) fn has_profiles(context: &Context<'_>) -> bool {
    modules(context).profiles
}

pub(super) fn has_monitors(context: &Context<'_>) -> bool {
    modules(context).monitors
}

#[cfg(test)]
impl Modules {
    pub(super) const NONE: Modules =
        Modules { search: false, governance: false, cost: false, profiles: false, monitors: false };

    /// Returns the fields of modules as pairs of the root's name and the field.
    pub(super) fn fields() -> impl Iterator<Item = (&'static str, &'static str)> {
        FIELDS.iter().map(|(root, name, _)| (root.type_name(), *name))
    }
}
