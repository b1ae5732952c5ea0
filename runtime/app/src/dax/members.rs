//! The values of a dimension, for clients that browse hierarchies.
//!
//! In: a cube and one of its dimensions. Out: the first distinct values in order ([`dimension_values`]). Not here:
//! names and levels of members.
//!
//! [`dimension_values`]: crate::dimension_values

use terrane_compiler::Access;
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
    let limit = limit.min(session.max_rows());
    let request = ValuesRequest { cube, dimension, granularity, search: None, order: ValuesOrder::ByValue, limit };
    let query = request.query(&Access::of(&session.snapshot().model, &context.caller))?;
    session.prepare(&query).await?.run().await
}
