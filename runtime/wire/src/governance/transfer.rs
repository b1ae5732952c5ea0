//! Export and import of governed records over HTTP.
//!
//! In: a body of YAML and query parameters. Out: a set of records and the mode of the import, or an error with the
//! problems and their places; the numbers of an import. Not here: the format itself (`records`).

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::json;
use terrane_app::governance::{ImportError, ImportMode, ImportSummary, RecordSet};

use super::records::{RecordsProblem, records_from_yaml};
use super::request::each;
use crate::body::check_names;
use crate::error::{Code, ErrorBody};
use crate::fields::{FieldError, Path};
use crate::parameters::boolean;

/// The largest number of problems in an answer.
const MAX_PROBLEMS: usize = 100;

/// Governed records as an export writes them, in JSON instead of YAML.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = json!(["version"])))]
pub struct GovernanceRecords {
    /// The version of the format: 1.
    pub version: u32,
    /// The terms of the glossary with their links.
    #[schemars(schema_with = "entries")]
    pub terms: Option<()>,
    /// The owners of artifacts.
    #[schemars(schema_with = "entries")]
    pub ownership: Option<()>,
    #[schemars(schema_with = "entries")]
    pub certifications: Option<()>,
    /// The metadata of artifacts.
    #[schemars(schema_with = "entries")]
    pub metadata: Option<()>,
}

fn entries(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "object", "additionalProperties": true } })
}

/// The result of an import: the numbers of records that it creates, changes and leaves unchanged.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GovernanceImport {
    /// True if nothing was written.
    pub dry_run: bool,
    pub created: usize,
    pub changed: usize,
    pub unchanged: usize,
}

impl GovernanceImport {
    pub fn new(mode: ImportMode, summary: ImportSummary) -> Self {
        let ImportSummary { created, changed, unchanged } = summary;
        GovernanceImport { dry_run: mode == ImportMode::Check, created, changed, unchanged }
    }
}

/// Reads `dry_run`.
///
/// # Errors
/// The value is neither `true` nor `false`.
pub fn import_mode_from_parameters(query: &str) -> Result<ImportMode, FieldError> {
    let mut mode = ImportMode::Apply;
    each(query, &["dry_run"], |_, value, path| {
        mode = if boolean(value, path)? { ImportMode::Check } else { ImportMode::Apply };
        Ok(())
    })?;
    Ok(mode)
}

/// Reads a body with the YAML of an export. JSON is a subset of YAML; a repeated key in it is refused as in all routes.
///
/// # Errors
/// Returns the problems of the body.
pub fn records_from_body(body: &[u8]) -> Result<RecordSet, Box<ErrorBody>> {
    let no_text = |_| Box::new(ErrorBody::new(Code::InvalidQuery, "the body is not UTF-8"));
    let text = std::str::from_utf8(body).map_err(no_text)?;
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        check_names(body, &Path::ROOT).map_err(|error| Box::new(ErrorBody::from(error)))?;
    }
    records_from_yaml(text).map_err(|problems| Box::new(invalid(&problems)))
}

impl From<&ImportError> for ErrorBody {
    fn from(error: &ImportError) -> Self {
        match error {
            ImportError::Invalid(problems) => invalid(&problems.iter().map(RecordsProblem::from).collect::<Vec<_>>()),
            ImportError::TooManyTerms { .. } | ImportError::Contended => {
                ErrorBody::new(Code::Conflict, error.to_string())
            }
            ImportError::Store(error) => ErrorBody::from_store(error),
        }
    }
}

/// Reports the first problems, and the number of all.
fn invalid(problems: &[RecordsProblem]) -> ErrorBody {
    let plural = if problems.len() == 1 { "" } else { "s" };
    let message = format!("the records have {} problem{plural}", problems.len());
    let first = &problems[..problems.len().min(MAX_PROBLEMS)];
    let first = serde_json::to_value(first).unwrap_or_default();
    ErrorBody::new(Code::ValidationError, message).detail("record_problems", first)
}
