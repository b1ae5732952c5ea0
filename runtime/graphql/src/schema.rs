//! The schema: the root types, and the state of one request.

mod query;

use async_graphql::{EmptyMutation, EmptySubscription, SDLExportOptions, Schema};

use crate::context::{GraphQlContext, GraphQlServices};
use crate::settings::Limits;

pub(crate) type GraphQlSchema = Schema<query::Query, EmptyMutation, EmptySubscription>;

/// Returns the schema. It is the same for every project.
pub(crate) fn build() -> GraphQlSchema {
    Schema::build(query::Query, EmptyMutation, EmptySubscription).finish()
}

/// Returns the schema's text.
pub(crate) fn text(schema: &GraphQlSchema) -> String {
    schema.sdl_with_options(SDLExportOptions::new())
}

/// The use cases and the caller of one request.
pub(crate) struct RequestState {
    pub(crate) services: GraphQlServices,
    pub(crate) limits: Limits,
    pub(crate) context: GraphQlContext,
}

impl RequestState {
    pub(crate) fn new(services: GraphQlServices, limits: Limits, context: GraphQlContext) -> Self {
        RequestState { services, limits, context }
    }
}
