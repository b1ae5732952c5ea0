//! The schema: its roots, types and inputs, and the state of one request.
//!
//! In: use cases, and the caller of each request. Out: the schema, which is the same for every project, except for
//! modules that are switched off. Resolvers only translate; they never decide what a caller may see or do.

mod alert_rules;
mod alert_state;
mod anomaly_fields;
mod artifact_ref;
mod ask;
mod catalog;
mod certification;
mod channel;
mod compliance;
mod cost;
mod cost_fields;
mod cube;
mod delivery;
mod detector;
mod glossary;
mod governance;
mod governance_fields;
mod governance_history;
mod guardrail;
mod inputs;
mod item_count;
mod job;
mod json;
mod lineage;
mod modules;
mod monitor;
mod mutation;
mod ownership;
mod preaggregation;
mod prediction;
mod profile;
mod profile_fields;
mod query;
mod query_history;
mod question;
mod request;
mod result;
mod root_cause;
mod search;
mod subscription;
mod text;
mod values;

use async_graphql::{SDLExportOptions, Schema, ValidationMode};

pub(crate) use modules::Modules;
pub(crate) use request::{FieldWarning, RequestState};

pub(crate) type GraphQlSchema = Schema<query::Query, mutation::Mutation, subscription::Subscription>;

/// Returns the schema. With `ValidationMode::Fast`, the schema does not check the rules of validation; this mode is for
/// operations that are known to follow the rules.
pub(crate) fn build(validation: ValidationMode, modules: Modules) -> GraphQlSchema {
    // The library's limits are not set: this crate's own rules check documents before they reach the schema.
    Schema::build(query::Query::default(), mutation::Mutation::default(), subscription::Subscription::default())
        .validation_mode(validation)
        .data(modules)
        .finish()
}

/// Returns the schema in GraphQL's definition language, with the fields of these modules.
pub(crate) fn text(schema: &GraphQlSchema, modules: Modules) -> String {
    text::of_modules(&schema.sdl_with_options(SDLExportOptions::new()), modules)
}

#[cfg(test)]
mod tests;
