//! Several changes of governed records in one request.
//!
//! In: a body with a list of operations. Out: one operation or its error for each item, and the results in the same
//! order. The fields of an item are those of the operation's own route, so its errors are the same. Not here: rights
//! and versions (`app::governance`).

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use terrane_app::domain::Precondition;
use terrane_app::governance::GovernanceOperation;
use terrane_app::ports::governance::Transition;

use super::request::{
    STRING, artifact, link_from_json, metadata_from_json, move_from_json, owner_from_json, removed_link_from_json,
    removed_owner_from_json, required_word,
};
use super::{link_types, owner_roles, owner_types, relationships};
use crate::body::parse;
use crate::error::ErrorBody;
use crate::fields::{FieldError, Fields, Path};
use crate::schema;

/// The largest number of operations of a request.
const MAX_OPERATIONS: usize = 100;

pub(crate) const BULK: &[&str] = &["operations"];
pub(crate) const OPERATION: &[&str] = &[
    "operation",
    "if_match",
    "term_id",
    "artifact_type",
    "artifact_id",
    "notes",
    "reason",
    "valid_until",
    "replacement",
    "sunset_date",
    "owner_type",
    "owner_id",
    "role",
    "relationship",
    "description",
    "tags",
    "documentation_url",
    "refresh_frequency",
    "data_classification",
    "pii_flag",
];

const WORDS: &str = "`submit`, `certify`, `reject`, `deprecate`, `archive`, `restore`, `assign_owner`, \
                     `remove_owner`, `set_metadata`, `link_term` or `unlink_term`";

/// The type of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperationType {
    Move(Transition),
    AssignOwner,
    RemoveOwner,
    SetMetadata,
    LinkTerm,
    UnlinkTerm,
}

impl OperationType {
    fn all() -> impl Iterator<Item = OperationType> {
        use OperationType::{AssignOwner, LinkTerm, Move, RemoveOwner, SetMetadata, UnlinkTerm};
        Transition::ALL.into_iter().map(Move).chain([AssignOwner, RemoveOwner, SetMetadata, LinkTerm, UnlinkTerm])
    }

    fn as_str(self) -> &'static str {
        match self {
            OperationType::Move(transition) => transition.as_str(),
            OperationType::AssignOwner => "assign_owner",
            OperationType::RemoveOwner => "remove_owner",
            OperationType::SetMetadata => "set_metadata",
            OperationType::LinkTerm => "link_term",
            OperationType::UnlinkTerm => "unlink_term",
        }
    }

    fn named(word: &str) -> Option<Self> {
        OperationType::all().find(|operation| operation.as_str() == word)
    }
}

fn operation_types(_: &mut SchemaGenerator) -> Schema {
    let words: Vec<&str> = OperationType::all().map(OperationType::as_str).collect();
    schema::words(&words)
}

fn only_operation_is_required(schema: &mut Schema) {
    schema.insert("required".to_owned(), json!(["operation"]));
}

/// Adds the bounds of the list to its schema, and allows items of any form: the answer has a result for each item, and
/// the result of an invalid item is an error.
fn bounded(schema: &mut Schema) {
    let item = schema.remove("items").unwrap_or_default();
    schema.insert("items".to_owned(), json!({"anyOf": [item, {}]}));
    schema.insert("minItems".to_owned(), json!(1));
    schema.insert("maxItems".to_owned(), json!(MAX_OPERATIONS));
}

/// Changes of governed records, which are made one after another.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GovernanceBulk {
    #[schemars(transform = bounded)]
    pub operations: Vec<BulkOperation>,
}

/// A change of one record. The fields are those of the operation's own route.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, transform = only_operation_is_required)]
pub struct BulkOperation {
    #[schemars(schema_with = "operation_types")]
    pub operation: String,
    /// The version of the record: the operation fails with 412 if the record has another one.
    pub if_match: Option<u64>,
    /// The term of `link_term` and `unlink_term`.
    pub term_id: Option<String>,
    #[schemars(schema_with = "link_types")]
    pub artifact_type: Option<String>,
    pub artifact_id: Option<String>,
    pub notes: Option<String>,
    pub reason: Option<String>,
    pub valid_until: Option<String>,
    pub replacement: Option<String>,
    pub sunset_date: Option<String>,
    #[schemars(schema_with = "owner_types")]
    pub owner_type: Option<String>,
    pub owner_id: Option<String>,
    #[schemars(schema_with = "owner_roles")]
    pub role: Option<String>,
    #[schemars(schema_with = "relationships")]
    pub relationship: Option<String>,
    pub description: Option<String>,
    pub tags: Option<Vec<String>>,
    pub documentation_url: Option<String>,
    pub refresh_frequency: Option<String>,
    pub data_classification: Option<String>,
    pub pii_flag: Option<bool>,
}

/// Reads a list of operations. An invalid operation is an error of its own.
///
/// # Errors
/// The body has no list of 1 to 100 items.
pub fn operations_from_wire(body: &[u8]) -> Result<Vec<Result<GovernanceOperation, FieldError>>, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", BULK)?;
    let items = fields.list("operations", "a list of operations", |item, _| Ok(operation(item)))?;
    if items.is_empty() || items.len() > MAX_OPERATIONS {
        let path = Path::ROOT.field("operations");
        let expected = format!("a list of 1 to {MAX_OPERATIONS} operations");
        return Err(path.invalid_value(&format!("a list of {}", items.len()), expected));
    }
    Ok(items)
}

fn operation(item: &Json) -> Result<GovernanceOperation, FieldError> {
    let fields = Fields::new(item, &Path::ROOT, "an object", OPERATION)?;
    let kind = required_word(&fields, "operation", WORDS, OperationType::named)?;
    let version = fields.integer("if_match")?;
    let precondition = version.map_or(Precondition::None, |version| Precondition::Versions(vec![version]));
    let rest = |own: &[&str]| -> Json {
        let own = |name: &str| ["operation", "if_match"].contains(&name) || own.contains(&name);
        let fields = item.as_object().into_iter().flatten().filter(|(name, _)| !own(name));
        Json::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let term_id = || fields.required_string("term_id", STRING).map(str::to_owned);
    Ok(match kind {
        OperationType::Move(transition) => {
            GovernanceOperation::Move(move_from_json(transition, &rest(&[]), precondition)?)
        }
        OperationType::AssignOwner => GovernanceOperation::AssignOwner(owner_from_json(&rest(&[]), precondition)?),
        OperationType::RemoveOwner => {
            GovernanceOperation::RemoveOwner(removed_owner_from_json(&rest(&[]), precondition)?)
        }
        OperationType::SetMetadata => {
            let change = metadata_from_json(&rest(&["artifact_type", "artifact_id"]), precondition)?;
            GovernanceOperation::SetMetadata { artifact: artifact(&fields)?, change }
        }
        OperationType::LinkTerm => {
            let link = link_from_json(&rest(&["term_id"]), precondition)?;
            GovernanceOperation::LinkTerm { term_id: term_id()?, link }
        }
        OperationType::UnlinkTerm => {
            let link = removed_link_from_json(&rest(&["term_id"]), precondition)?;
            GovernanceOperation::UnlinkTerm { term_id: term_id()?, link }
        }
    })
}

/// The results of operations, in the order of the request.
#[derive(Debug, Serialize, JsonSchema)]
pub struct GovernanceBulkResults {
    pub succeeded: usize,
    pub failed: usize,
    pub results: Vec<BulkResult>,
}

/// The result of an operation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BulkResult {
    /// The place of the operation in the request, from 0.
    pub index: usize,
    /// 200, or the status with which the operation's own route answers the error.
    pub status: u16,
    /// The version of the record after the operation; null if it failed.
    pub version: Option<u64>,
    pub error: Option<BulkError>,
}

/// The reason why an operation failed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BulkError {
    pub code: &'static str,
    pub message: String,
    /// The details of the code, as the operation's own route sends them.
    #[schemars(schema_with = "schema::any")]
    pub details: Json,
}

impl GovernanceBulkResults {
    pub fn new(results: Vec<Result<u64, ErrorBody>>) -> Self {
        let succeeded = results.iter().filter(|result| result.is_ok()).count();
        let failed = results.len() - succeeded;
        let results = results.into_iter().enumerate().map(|(index, result)| match result {
            Ok(version) => BulkResult { index, status: 200, version: Some(version), error: None },
            Err(error) => {
                BulkResult { index, status: error.code.status(), version: None, error: Some(BulkError::from(&error)) }
            }
        });
        GovernanceBulkResults { succeeded, failed, results: results.collect() }
    }
}

impl From<&ErrorBody> for BulkError {
    fn from(error: &ErrorBody) -> Self {
        let details: Map<String, Json> = error.fields().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        BulkError { code: error.code.as_str(), message: error.message.clone(), details: details.into() }
    }
}
