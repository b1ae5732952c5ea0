//! The values of a dimension, for clients that browse hierarchies.
//!
//! In: a cube and one of its dimensions. Out: the first distinct values in order. They come through the query pipeline,
//! so that policies and limits hold. Absent: names and levels of members.

use std::sync::Arc;

use terrane_compiler::query::{MemberRef, OrderBy, SemanticQuery};

use super::dax_context;
use crate::query::{Answer, QueryRunError, QueryService, RequestContext};

/// Returns the first values of a dimension.
///
/// # Errors
/// [`QueryRunError`]
pub async fn values(
    queries: &QueryService,
    context: &RequestContext,
    cube: &str,
    dimension: &str,
    limit: u64,
) -> Result<Answer, QueryRunError> {
    let context = dax_context(context);
    let session = queries.session(&context);
    let member: MemberRef = format!("{cube}.{dimension}").parse()?;
    let query = SemanticQuery {
        cube: Some(Arc::from(cube)),
        dimensions: vec![member.clone()],
        order: vec![OrderBy { member, descending: false }],
        limit: Some(limit.min(session.max_rows())),
        skip_total: true,
        ..SemanticQuery::default()
    };
    session.prepare(&query).await?.run().await
}
