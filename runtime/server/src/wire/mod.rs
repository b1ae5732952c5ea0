//! Wire types: JSON and query strings to a `SemanticQuery`, the model and answers to JSON.
//!
//! No type of the model, the plan or a result derives serde; each surface says for itself how it is
//! written. Here: REST.

pub(crate) mod accounts;
pub(crate) mod answer;
pub(crate) mod audit;
pub(crate) mod auth;
mod body;
pub(crate) mod explanation;
mod fields;
mod filter;
pub(crate) mod format;
pub(crate) mod lineage;
pub(crate) mod metadata;
mod number;
pub(crate) mod oauth;
pub(crate) mod parameters;
pub(crate) mod plugins;
pub(crate) mod project;
pub(crate) mod query;
pub(crate) mod registration;
mod time;

/// The fields of each body, as its reader knows them, by the name of its schema.
#[cfg(test)]
pub(crate) const BODIES: &[(&str, &[&str])] = &[
    ("Query", query::FIELDS),
    ("SqlQuery", query::FIELDS_FOR_SQL),
    ("SignIn", auth::SIGN_IN),
    ("RefreshToken", auth::REFRESH_TOKEN),
    ("RevokedTokens", auth::REVOKED_TOKENS),
    ("NewKey", accounts::KEY),
    ("KeyChange", accounts::KEY),
    ("NewUser", accounts::NEW_USER),
    ("UserChange", accounts::USER_CHANGE),
    ("ProjectLoad", project::LOAD),
    ("ProjectCompile", project::COMPILE),
    ("LineageImpact", lineage::IMPACT),
    ("CubeRegistration", registration::CUBE),
    ("NewMeasure", registration::MEASURE),
    ("NewDimension", registration::DIMENSION),
    ("OrderBy", query::ORDER_BY),
    ("TimeDimension", time::DIMENSION),
];
