//! Rowsets: rows of the snapshot, sent part by part.
//!
//! In: a Discover, or a query of a rowset. Out: a body whose rows are made while it is read, so that a large project
//! costs no memory. The rows of MDSCHEMA_MEMBERS come from a query that runs before the body begins.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::{StreamExt as _, stream};
use terrane_app::catalog::Snapshot;
use terrane_app::dax::members;
use terrane_app::governance::ArtifactNotes;
use terrane_app::query::Answer;
use terrane_compiler::Access;
use terrane_compiler::types::Granularity;
use terrane_wire::ErrorBody;
use terrane_xmla::envelope::{self, Answered};
use terrane_xmla::request::Discover;
use terrane_xmla::rows::{self, MAX_MEMBERS, RowsetRows};
use terrane_xmla::scope::{Hierarchy, Member, VisibleProject};
use terrane_xmla::{Fault, FaultCode};

use super::{XmlaCaller, fault_code, finished};
use crate::app::App;

/// The number of bytes after which a part is sent.
const PART: usize = 128 * 1_024;

pub(super) async fn discover(
    app: App,
    caller: XmlaCaller,
    discover: &Discover,
    session: Option<&str>,
) -> Result<Body, Fault> {
    let rows = RowsetRows::of_discover(discover)?;
    respond(app, caller, rows, Answered::Discover, session).await
}

/// Returns the response with rows.
pub(super) async fn respond(
    app: App,
    caller: XmlaCaller,
    rows: RowsetRows,
    answered: Answered,
    session: Option<&str>,
) -> Result<Body, Fault> {
    let snapshot = app.services.catalog.snapshot();
    let members = read_members(&app, &caller, &snapshot, &rows).await?;
    let mut out = envelope::head(answered, session);
    rows.write_head(&mut out);
    let notes = app.services.notes(&snapshot, &caller.context).await;
    let mut parts = Parts { snapshot, caller, rows, members, notes, answered };
    if !parts.fill(&mut out) {
        return Ok(finished(answered, out));
    }
    let rest = stream::unfold(Some(parts), |parts| async move {
        let mut parts = parts?;
        let mut out = Vec::with_capacity(PART + PART / 4);
        let has_more = parts.fill(&mut out);
        if !has_more {
            envelope::write_foot(parts.answered, &mut out);
        }
        Some((Bytes::from(out), has_more.then_some(parts)))
    });
    let first = stream::iter([Bytes::from(out)]);
    // Compression polls a body again after its end, so the stream is fused.
    Ok(Body::from_stream(first.chain(rest.fuse()).map(Ok::<_, Infallible>)))
}

/// The rows that are still to be sent.
struct Parts {
    snapshot: Arc<Snapshot>,
    caller: XmlaCaller,
    rows: RowsetRows,
    members: Vec<Member>,
    notes: ArtifactNotes,
    answered: Answered,
}

impl Parts {
    /// Appends rows until there are enough bytes, and returns whether there are more.
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let access = Access::of(&self.snapshot.model, &self.caller.context.caller);
        let mut scope = VisibleProject::new(&access, &self.caller.info, &self.notes);
        scope.members = std::mem::take(&mut self.members);
        let has_more = loop {
            if out.len() >= PART {
                break true;
            }
            if !self.rows.write_part(&scope, out) {
                envelope::write_rowset_foot(out);
                break false;
            }
        };
        self.members = scope.members;
        has_more
    }
}

/// Reads the members of the hierarchy if the request is for members.
async fn read_members(
    app: &App,
    caller: &XmlaCaller,
    snapshot: &Snapshot,
    rows: &RowsetRows,
) -> Result<Vec<Member>, Fault> {
    let Some(request) = rows.members() else { return Ok(Vec::new()) };
    let access = Access::of(&snapshot.model, &caller.context.caller);
    let notes = ArtifactNotes::default();
    let scope = VisibleProject::new(&access, &caller.info, &notes);
    let Some((cube, hierarchy)) = request.hierarchy(&scope) else { return Ok(Vec::new()) };
    let answer = match hierarchy {
        Hierarchy::Attribute(of, index) => Some(values(app, caller, &scope, (of, index), None).await?),
        Hierarchy::Calendar(of, index) => {
            let finest = hierarchy.finest_period(&scope);
            Some(values(app, caller, &scope, (of, index), finest).await?)
        }
        Hierarchy::Measures => None,
    };
    let values = answer.as_ref().map(|answer| (&*answer.columns, &*answer.batches));
    Ok(rows::members(&scope, cube, hierarchy, values))
}

async fn values(
    app: &App,
    caller: &XmlaCaller,
    scope: &VisibleProject<'_>,
    (cube, index): (u32, u32),
    granularity: Option<Granularity>,
) -> Result<Answer, Fault> {
    let (of, dimension) = (&scope.cube(cube).name, &scope.dimension(cube, index).name);
    let limit = MAX_MEMBERS as u64;
    let answer = members::values(&app.services.queries, &caller.context, of, dimension, granularity, limit).await;
    answer.map_err(|error| {
        let body = ErrorBody::from_run(error, caller.context.scopes);
        Fault::new(
            match fault_code(body.code) {
                FaultCode::InvalidEnvelope => FaultCode::Failed,
                code => code,
            },
            body.message,
        )
    })
}
