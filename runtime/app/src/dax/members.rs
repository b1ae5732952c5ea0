//! The values of a dimension, for clients that browse hierarchies.
//!
//! In: a cube and one of its dimensions. Out: the first distinct values in order ([`dimension_values`]). Absent: names
//! and levels of members.
//!
//! [`dimension_values`]: crate::dimension_values

use std::sync::Arc;

use terrane_compiler::query::{MemberRef, OrderBy, SemanticQuery};
use terrane_compiler::types::Granularity;

use super::dax_context;
use crate::dimension_values::{ValuesOrder, ValuesRequest};
use crate::query::{Answer, QueryRunError, QueryService, RequestContext};

/// Returns the first values of a dimension, or its first periods of a granularity.
///
/// # Errors
/// [`QueryRunError`]
pub async fn values(
    queries: &QueryService,
    context: &RequestContext,
    cube: &str,
    dimension: &str,
    granularity: Option<Granularity>,
    limit: u64,
) -> Result<Answer, QueryRunError> {
    let context = dax_context(context);
    let session = queries.session(&context);
    let suffix = granularity.map(|granularity| format!(".{}", granularity.as_str())).unwrap_or_default();
    let member: MemberRef = format!("{cube}.{dimension}{suffix}").parse()?;
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
