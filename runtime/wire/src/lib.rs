//! The data of the interface: requests as clients send them, answers and errors as clients receive them.
//!
//! In: JSON bodies and query strings; results of the use cases. Out: types of the compiler and of the use cases, or a
//! [`FieldError`] that names the place; JSON, CSV and Arrow. The server and the command line use the same readers and
//! writers, so that both accept, reject and answer in the same way. Each type that is sent or read derives its JSON
//! Schema, from which the description of the interface is made. Not here: HTTP (server), and serde on types of the
//! model, the plan or a result.

pub mod accounts;
pub mod anomaly;
pub mod answer;
mod arrow_stream;
pub mod audit;
pub mod auth;
mod body;
pub mod cache;
pub mod caller;
pub mod cells;
pub mod cost;
mod csv;
pub mod data_tests;
pub mod dax;
pub mod error;
pub mod explanation;
mod fields;
mod filter;
pub mod governance;
pub mod graphql;
pub mod jobs;
pub mod json;
pub mod limit_advice;
pub mod lineage;
pub mod metadata;
mod number;
mod numbers;
pub mod oauth;
pub mod operations;
pub mod parameters;
pub mod plugins;
mod pre_aggregation;
pub mod preaggregations;
pub mod profile;
pub mod profile_config;
pub mod project;
pub mod query;
pub mod questions;
pub mod registration;
pub mod rows;
pub mod schema;
pub mod search;
pub mod size;
mod time;
mod value;

pub use error::{Code, ErrorBody, QueryForm};
pub use fields::FieldError;
pub use project::Audience;
pub use rows::{RowEncoder, RowsError};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::schema::{self, Components, SchemaOf};
    use crate::{
        accounts, auth, cache, dax, governance, lineage, preaggregations, profile, profile_config, project, query,
        questions, registration, search, time,
    };

    /// The schema of each body, and the fields that its reader accepts.
    const BODIES: &[(&str, SchemaOf, &[&str])] = &[
        ("Query", schema::of::<query::Query>(), query::FIELDS),
        ("SqlQuery", schema::of::<query::SqlQuery>(), query::FIELDS_FOR_SQL),
        ("CacheInvalidation", schema::of::<cache::CacheInvalidation>(), cache::INVALIDATION),
        ("DaxQuery", schema::of::<dax::DaxQuery>(), dax::QUERY),
        ("DaxExecution", schema::of::<dax::DaxExecution>(), dax::EXECUTION),
        ("DaxPosition", schema::of::<dax::DaxPosition>(), dax::POSITION),
        ("PreaggregationRefresh", schema::of::<preaggregations::PreaggregationRefresh>(), preaggregations::REFRESH),
        ("SignIn", schema::of::<auth::SignIn>(), auth::SIGN_IN),
        ("RefreshToken", schema::of::<auth::RefreshToken>(), auth::REFRESH_TOKEN),
        ("RevokedTokens", schema::of::<auth::TokensToRevoke>(), auth::REVOKED_TOKENS),
        ("NewKey", schema::of::<accounts::NewKey>(), accounts::KEY),
        ("KeyChange", schema::of::<accounts::KeyPatch>(), accounts::KEY),
        ("NewUser", schema::of::<accounts::NewUser>(), accounts::NEW_USER),
        ("UserChange", schema::of::<accounts::UserPatch>(), accounts::USER_CHANGE),
        ("CertificationSubmission", schema::of::<governance::CertificationSubmission>(), governance::request::SUBMIT),
        ("CertificationApproval", schema::of::<governance::CertificationApproval>(), governance::request::CERTIFY),
        ("CertificationRejection", schema::of::<governance::CertificationRejection>(), governance::request::REJECT),
        (
            "CertificationDeprecation",
            schema::of::<governance::CertificationDeprecation>(),
            governance::request::DEPRECATE,
        ),
        ("CertificationStep", schema::of::<governance::CertificationStep>(), governance::request::ARCHIVE),
        ("NewGlossaryTerm", schema::of::<governance::NewGlossaryTerm>(), governance::request::NEW_TERM),
        ("GlossaryTermPatch", schema::of::<governance::GlossaryTermPatch>(), governance::request::TERM_CHANGE),
        ("GlossaryLink", schema::of::<governance::GlossaryLink>(), governance::request::LINK),
        ("NewOwner", schema::of::<governance::NewOwner>(), governance::request::OWNER),
        ("ArtifactMetadataPatch", schema::of::<governance::ArtifactMetadataPatch>(), governance::request::METADATA),
        ("GovernanceBulk", schema::of::<governance::bulk::GovernanceBulk>(), governance::bulk::BULK),
        ("BulkOperation", schema::of::<governance::bulk::BulkOperation>(), governance::bulk::OPERATION),
        ("GovernanceRecords", schema::of::<governance::transfer::GovernanceRecords>(), governance::records::FILE),
        ("ProjectLoad", schema::of::<project::ProjectLoad>(), project::LOAD),
        ("ProjectCompile", schema::of::<project::ProjectCompile>(), project::COMPILE),
        ("LineageImpact", schema::of::<lineage::LineageImpact>(), lineage::IMPACT),
        ("ProfileRequest", schema::of::<profile::ProfileRequest>(), profile::stored::REQUEST),
        ("ProfileConfig", schema::of::<profile_config::ProfileConfigBody>(), profile_config::KEYS),
        ("QualityThresholds", schema::of::<profile_config::QualityThresholds>(), profile_config::THRESHOLDS),
        ("ProfileFilters", schema::of::<profile::ProfileFilters>(), profile::stored::FILTERS),
        ("ProfileRange", schema::of::<profile::ProfileRange>(), profile::stored::DATE_RANGE),
        ("NaturalLanguageQuery", schema::of::<questions::NaturalLanguageQuery>(), questions::QUESTION),
        ("Search", schema::of::<search::Search>(), search::SEARCH),
        ("Autocompletion", schema::of::<search::Autocompletion>(), search::AUTOCOMPLETION),
        ("AutocompletionContext", schema::of::<search::AutocompletionContext>(), search::CONTEXT),
        ("CubeRegistration", schema::of::<registration::CubeRegistration>(), registration::CUBE),
        ("NewMeasure", schema::of::<registration::MeasureRegistration>(), registration::MEASURE),
        ("NewDimension", schema::of::<registration::DimensionRegistration>(), registration::DIMENSION),
        ("OrderBy", schema::of::<query::Order>(), query::ORDER_BY),
        ("TimeDimension", schema::of::<time::TimeDimensionBody>(), time::DIMENSION),
        ("TimeRangeObject", schema::of::<time::TimeRangeObject>(), time::RANGE),
        ("CompareShift", schema::of::<time::CompareShift>(), time::SHIFT),
    ];

    #[test]
    fn schemas_of_bodies_have_the_fields_of_their_readers() {
        let mut components = Components::new();
        for (_, schema, _) in BODIES {
            components.request(*schema);
        }
        let schemas = components.finish();
        for (name, _, known) in BODIES {
            let schema = &schemas[*name];
            let described: BTreeSet<&str> =
                schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
            assert_eq!(described, known.iter().copied().collect(), "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
        }
    }
}
