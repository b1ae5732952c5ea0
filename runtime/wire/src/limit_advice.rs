//! Advice on larger results, in the words of each interface.
//!
//! In: the context of a request. Out: the end of the message about a limit that the request exceeds.

use terrane_app::ports::governance::Surface;
use terrane_app::query::{QueryKind, RequestContext};

/// Returns advice on how to get more rows than the limit of a request, for the message about this limit.
pub fn limit_advice(context: &RequestContext) -> &'static str {
    match context.kind {
        QueryKind::Export | QueryKind::Job => " (`query.max_export_rows`)",
        _ => match context.surface {
            Surface::Rest | Surface::AsyncJob | Surface::SqlOnly => {
                "; for larger results submit the query to `/api/v1/query/async`, or request CSV or Arrow with the \
                 `Accept` header"
            }
            Surface::Graphql => "; for larger results run the query with `createJob`, or read pages with `offset`",
            Surface::Internal => "; larger results are exported as CSV or Arrow (`query.max_export_rows`)",
            Surface::Dax | Surface::Xmla => " (`query.max_limit`)",
        },
    }
}
