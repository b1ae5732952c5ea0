//! The GraphQL schema: types and resolvers over the use cases.
//!
//! In: one operation with its variables, and the caller. Out: the response that the `graphql` routes of the server and
//! `terrane graphql` write. Not here: HTTP, WebSockets and credentials (server).

mod context;
mod enums;
mod executor;
mod failure;
mod introspection;
mod known_operations;
mod limits;
mod operation;
mod refusal;
mod response;
mod schema;
mod settings;
mod shape;

pub use context::{GraphQlContext, GraphQlServices};
pub use enums::{
    DimensionType, FilterOperator, LineageDirection, MeasureType, OrderDirection, SearchType, TimeGranularity,
};
pub use executor::GraphQl;
pub use operation::{Operation, OperationKind};
pub use refusal::Refusal;
pub use response::Response;
pub use settings::{GraphQlSettings, Limits};

/// Returns the schema in GraphQL's definition language. It is the same for every project.
pub fn schema_text() -> String {
    let modules = schema::Modules::ALL;
    schema::text(&schema::build(async_graphql::ValidationMode::Strict, modules), modules)
}
