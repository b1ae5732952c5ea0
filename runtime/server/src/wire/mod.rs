//! Wire types: JSON and query strings to a `SemanticQuery`, the model and answers to JSON.
//!
//! No type of the model, the plan or a result derives serde; each surface says for itself how it is
//! written. Here: REST.

pub(crate) mod answer;
pub(crate) mod audit;
pub(crate) mod auth;
pub(crate) mod explanation;
mod fields;
mod filter;
pub(crate) mod format;
pub(crate) mod metadata;
mod number;
mod parameters;
pub(crate) mod query;
mod time;
