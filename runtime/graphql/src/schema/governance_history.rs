//! The history of governed records.
//!
//! In: a page of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, ID, SimpleObject};
use serde_json::Value;
use terrane_app::governance::HistoryRequest;
use terrane_app::ports::governance_records::ChangeId;
use terrane_wire::governance as wire;

use super::artifact_ref::{ArtifactType, artifact};
use super::governance::{page, service};
use super::inputs::malformed;
use super::json::Json;
use super::request::state;
use crate::failure::Failure;

/// A page of the history, newest first.
#[derive(SimpleObject)]
pub(crate) struct GovernanceHistory {
    changes: Vec<GovernanceChange>,
    /// The value of `before` for the next page; null on the last page.
    next: Option<String>,
}

/// A change of a governed record.
#[derive(SimpleObject)]
pub(crate) struct GovernanceChange {
    /// The record and the version that the change made, such as `ownership:measure:orders.revenue:2`.
    id: ID,
    at: String,
    actor: String,
    /// The event of the audit record, such as `artifact_certified`.
    action: String,
    /// `certification`, `ownership`, `metadata` or `term`.
    record: String,
    /// Null for a term.
    artifact_type: Option<ArtifactType>,
    artifact_id: Option<String>,
    term_id: Option<ID>,
    /// The version after the change.
    version: u64,
    notes: Option<String>,
    /// The record before the change. Null for callers to whom policies apply.
    before: Option<Json>,
    /// The record after the change. Null for callers to whom policies apply.
    after: Option<Json>,
}

/// The arguments of the field, as the caller wrote them.
pub(crate) struct HistoryArguments {
    pub(crate) artifact_type: Option<ArtifactType>,
    pub(crate) artifact_id: Option<String>,
    pub(crate) term_id: Option<ID>,
    pub(crate) before: Option<String>,
    pub(crate) limit: Option<i64>,
}

impl HistoryArguments {
    /// Returns the request of the use case.
    ///
    /// # Errors
    /// An argument is missing or invalid. The error names it.
    fn request(self) -> Result<HistoryRequest, Failure> {
        let artifact = match (self.artifact_type, self.artifact_id) {
            (None, None) => None,
            (Some(kind), Some(id)) => Some(artifact(kind, id)),
            (Some(_), None) => return Err(malformed("expected `artifactId` with `artifactType`", "artifactId")),
            (None, Some(_)) => return Err(malformed("expected `artifactType` with `artifactId`", "artifactType")),
        };
        if artifact.is_some() && self.term_id.is_some() {
            return Err(malformed("expected either `artifactId` or `termId`", "termId"));
        }
        let before = |text: String| {
            let expected = "expected the id of a change, such as `ownership:measure:orders.revenue:2`, at `before`";
            ChangeId::parse(&text).ok_or_else(|| malformed(expected, "before"))
        };
        let (limit, _) = page((self.limit, None))?;
        Ok(HistoryRequest {
            artifact,
            term_id: self.term_id.map(|id| id.as_str().into()),
            before: self.before.map(before).transpose()?,
            limit: limit as u32,
        })
    }
}

/// Returns the changes of governed records that the caller may see.
///
/// # Errors
/// Governance is switched off, an argument is invalid, or the artifact, the term or the change does not exist for the
/// caller.
pub(crate) async fn history(context: &Context<'_>, arguments: HistoryArguments) -> Result<GovernanceHistory, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let service = service(context)?;
    let found = service.history(&arguments.request()?, &state.parts.context.request).await;
    let found = wire::GovernanceHistory::from(&found.map_err(|error| Failure::from(&error))?);
    state.count(context, 1, &|list| (list == "changes").then_some(found.changes.len()))?;
    let changes = found.changes.into_iter().map(GovernanceChange::try_from).collect::<Result<_, _>>()?;
    Ok(GovernanceHistory { changes, next: found.next })
}

fn json(value: Value) -> Option<Json> {
    (!value.is_null()).then(|| Json::text(value.to_string()))
}

impl TryFrom<wire::GovernanceChange> for GovernanceChange {
    type Error = Failure;

    fn try_from(change: wire::GovernanceChange) -> Result<Self, Failure> {
        Ok(GovernanceChange {
            id: change.id.into(),
            at: change.at,
            actor: change.actor,
            action: change.action,
            record: change.record.to_owned(),
            artifact_type: change.artifact_type.map(ArtifactType::named).transpose()?,
            artifact_id: change.artifact_id,
            term_id: change.term_id.map(ID::from),
            version: change.version,
            notes: change.notes,
            before: json(change.before),
            after: json(change.after),
        })
    }
}
