//! The GraphQL schema: types and resolvers over the use cases.
//!
//! In: one operation with its variables, and the caller. Out: the response that the `graphql` routes of the server
//! and `terrane graphql` write. Absent on purpose: HTTP, WebSockets and credentials (server).

mod enums;

pub use enums::{
    DimensionType, FilterOperator, LineageDirection, MeasureType, OrderDirection, SearchType, TimeGranularity,
};
