//! Bodies and query parameters of governance.
//!
//! In: bytes and query strings. Out: requests of the use cases, or a [`FieldError`] that names the field. One file: all
//! requests name artifacts, terms and owners, and read them by the same functions.

use std::sync::Arc;

use jiff::civil::Date;
use schemars::JsonSchema;
use serde_json::Value as Json;
use terrane_app::accounts::Change;
use terrane_app::domain::Precondition;
use terrane_app::governance::{
    ArtifactOrder, ArtifactQuery, CertificationFilter, CertificationMove, HistoryRequest, LinkRequest, MetadataRequest,
    NewTerm, OwnerRequest, Page, TermChange, TermFilter,
};
use terrane_app::ports::governance::Transition;
use terrane_app::ports::governance_records::{
    ArtifactRef, ArtifactType, CertificationStatus, ChangeId, LinkTarget, OwnerRole, OwnerType, Relationship,
    TERM_TYPE, TermStatus,
};

use super::{artifact_types, link_types, owner_roles, owner_types, relationships, term_statuses};
use crate::accounts::present;
use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};

pub(crate) const SUBMIT: &[&str] = &["artifact_type", "artifact_id", "notes"];
pub(crate) const CERTIFY: &[&str] = &["artifact_type", "artifact_id", "notes", "valid_until"];
pub(crate) const REJECT: &[&str] = &["artifact_type", "artifact_id", "reason"];
pub(crate) const DEPRECATE: &[&str] = &["artifact_type", "artifact_id", "reason", "replacement", "sunset_date"];
pub(crate) const ARCHIVE: &[&str] = &["artifact_type", "artifact_id", "notes"];
pub(crate) const NEW_TERM: &[&str] = &[
    "name",
    "definition",
    "synonyms",
    "category",
    "subcategory",
    "examples",
    "related_terms",
    "formula",
    "owner",
    "status",
];
pub(crate) const TERM_CHANGE: &[&str] = NEW_TERM;
pub(crate) const LINK: &[&str] = &["artifact_type", "artifact_id", "relationship"];
pub(crate) const OWNER: &[&str] = &["artifact_type", "artifact_id", "owner_type", "owner_id", "role"];
pub(crate) const METADATA: &[&str] =
    &["description", "tags", "documentation_url", "refresh_frequency", "data_classification", "pii_flag"];

const CHANGE_ID: &str = "the id of a change, such as `ownership:measure:orders.revenue:2`";
pub(super) const STRING: &str = "a string";
pub(super) const STRINGS: &str = "a list of strings";
pub(super) const DATE: &str = "a date like 2026-12-31";
pub(super) const ARTIFACT_TYPE: &str = "`cube`, `measure`, `dimension`, `metric` or `model`";
pub(super) const LINK_TYPE: &str = "`cube`, `measure`, `dimension`, `metric`, `model` or `term`";
pub(super) const STATUS: &str = "`draft`, `pending_review`, `certified`, `deprecated` or `archived`";
pub(super) const TERM_STATUS: &str = "`draft`, `approved` or `archived`";
pub(super) const RELATIONSHIP: &str = "`defines`, `relates_to` or `synonym_of`";
pub(super) const OWNER_TYPE: &str = "`user` or `team`";
pub(super) const OWNER_ROLE: &str = "`data_owner`, `data_steward` or `technical_owner`";

/// The largest number of records of a page if the request has no `limit`.
pub const DEFAULT_LIMIT: usize = 50;
/// The largest number of records of a page.
pub const MAX_LIMIT: usize = 500;

/// An artifact to submit for certification.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CertificationSubmission {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: String,
    /// The id, such as `orders` or `orders.revenue`.
    pub artifact_id: String,
    pub notes: String,
}

/// An artifact to certify.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CertificationApproval {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: String,
    pub artifact_id: String,
    pub notes: Option<String>,
    /// The last day of the certificate, such as `2026-12-31`, in the project's time zone.
    pub valid_until: Option<String>,
}

/// A submitted artifact to reject.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CertificationRejection {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: String,
    pub artifact_id: String,
    pub reason: String,
}

/// A certified artifact to deprecate.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CertificationDeprecation {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: String,
    pub artifact_id: String,
    pub reason: String,
    /// The id of the artifact to use instead, of the same type.
    pub replacement: Option<String>,
    /// The day on which the artifact will be removed.
    pub sunset_date: Option<String>,
}

/// An artifact to archive or restore.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CertificationStep {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: String,
    pub artifact_id: String,
    pub notes: Option<String>,
}

/// A term to create.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, transform = optional_status)]
pub struct NewGlossaryTerm {
    pub name: String,
    pub definition: String,
    pub synonyms: Option<Vec<String>>,
    pub category: Option<String>,
    pub subcategory: Option<String>,
    pub examples: Option<Vec<String>>,
    /// The ids of other terms.
    pub related_terms: Option<Vec<String>>,
    /// The formula, in which each `cube.member` must exist.
    pub formula: Option<String>,
    pub owner: Option<String>,
    /// The default is `approved`.
    #[schemars(schema_with = "term_statuses")]
    pub status: Option<String>,
}

/// A change of a term. Omitted fields are unchanged, and a list replaces the current one.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, transform = optional_status)]
pub struct GlossaryTermPatch {
    pub name: Option<String>,
    pub definition: Option<String>,
    pub synonyms: Option<Vec<String>>,
    /// Null removes it.
    pub category: Option<String>,
    pub subcategory: Option<String>,
    pub examples: Option<Vec<String>>,
    pub related_terms: Option<Vec<String>>,
    pub formula: Option<String>,
    pub owner: Option<String>,
    #[schemars(schema_with = "term_statuses")]
    pub status: Option<String>,
}

/// Makes the field `status` optional: a field with a schema of its own is required by default.
fn optional_status(schema: &mut schemars::Schema) {
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|name| name != "status");
    }
}

/// A link to add to a term.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct GlossaryLink {
    #[schemars(schema_with = "link_types")]
    pub artifact_type: String,
    /// The id of an artifact, or of another term.
    pub artifact_id: String,
    #[schemars(schema_with = "relationships")]
    pub relationship: String,
}

/// An owner to assign.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct NewOwner {
    #[schemars(schema_with = "artifact_types")]
    pub artifact_type: String,
    pub artifact_id: String,
    #[schemars(schema_with = "owner_types")]
    pub owner_type: String,
    /// A user id, or the name of a group.
    pub owner_id: String,
    #[schemars(schema_with = "owner_roles")]
    pub role: String,
}

/// A change of metadata. Omitted fields are unchanged; null restores the value of the project's files.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ArtifactMetadataPatch {
    pub description: Option<String>,
    pub tags: Option<Vec<String>>,
    pub documentation_url: Option<String>,
    pub refresh_frequency: Option<String>,
    /// The classification of the data, such as `internal`.
    pub data_classification: Option<String>,
    pub pii_flag: Option<bool>,
}

/// Converts a word with `read`. The error of an unknown word contains `expected`, a description of the valid words.
fn word<T>(
    path: &Path<'_>,
    value: &str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, FieldError> {
    read(value).ok_or_else(|| path.invalid_value(value, expected))
}

/// Converts the word of an optional field with `read`.
fn optional_word<T>(
    fields: &Fields<'_>,
    name: &'static str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, FieldError> {
    let found = fields.string(name, expected)?;
    found.map(|value| word(&Path::ROOT.field(name), value, expected, read)).transpose()
}

pub(super) fn required_word<T>(
    fields: &Fields<'_>,
    name: &'static str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, FieldError> {
    let value = fields.required_string(name, expected)?;
    word(&Path::ROOT.field(name), value, expected, read)
}

fn date(path: &Path<'_>, value: &str) -> Result<Date, FieldError> {
    // A timestamp has a day too, but its hour would be ignored.
    let is_day = value.len() == 10;
    value.parse().ok().filter(|_| is_day).ok_or_else(|| path.invalid_value(value, DATE))
}

fn optional_date(fields: &Fields<'_>, name: &'static str) -> Result<Option<Date>, FieldError> {
    let found = fields.string(name, DATE)?;
    found.map(|value| date(&Path::ROOT.field(name), value)).transpose()
}

fn string(fields: &Fields<'_>, name: &'static str) -> Result<Option<String>, FieldError> {
    Ok(fields.string(name, STRING)?.map(str::to_owned))
}

/// Reads a list of strings; `None` if the field is missing or null.
fn strings(fields: &Fields<'_>, name: &'static str) -> Result<Option<Vec<Arc<str>>>, FieldError> {
    let read = fields.list(name, STRINGS, |item, path| match item {
        Json::String(text) => Ok(Arc::from(text.as_str())),
        other => Err(path.invalid_type(other, STRING)),
    })?;
    Ok(fields.get(name).map(|_| read))
}

/// Reads a change of a field; null removes the value.
fn change<T>(
    fields: &Fields<'_>,
    name: &'static str,
    read: impl Fn() -> Result<Option<T>, FieldError>,
) -> Result<Change<T>, FieldError> {
    match fields.get_or_null(name) {
        None => Ok(Change::Keep),
        Some(Json::Null) => Ok(Change::Remove),
        Some(_) => Ok(read()?.map_or(Change::Remove, Change::Set)),
    }
}

pub(super) fn artifact(fields: &Fields<'_>) -> Result<ArtifactRef, FieldError> {
    let kind = required_word(fields, "artifact_type", ARTIFACT_TYPE, ArtifactType::named)?;
    Ok(ArtifactRef::new(kind, fields.required_string("artifact_id", STRING)?))
}

fn target(path: &Path<'_>, kind: &str, id: &str) -> Result<LinkTarget, FieldError> {
    if kind == TERM_TYPE {
        return Ok(LinkTarget::Term(id.into()));
    }
    let kind = word(&path.field("artifact_type"), kind, LINK_TYPE, ArtifactType::named)?;
    Ok(LinkTarget::Artifact(ArtifactRef::new(kind, id)))
}

/// Reads a request to move an artifact.
///
/// # Errors
/// Names the field that is invalid.
pub fn move_from_wire(
    transition: Transition,
    body: &[u8],
    precondition: Precondition,
) -> Result<CertificationMove, FieldError> {
    move_from_json(transition, &parse(body)?, precondition)
}

pub(super) fn move_from_json(
    transition: Transition,
    json: &Json,
    precondition: Precondition,
) -> Result<CertificationMove, FieldError> {
    let (known, notes, needs_notes) = match transition {
        Transition::Submit => (SUBMIT, "notes", true),
        Transition::Certify => (CERTIFY, "notes", false),
        Transition::Reject => (REJECT, "reason", true),
        Transition::Deprecate => (DEPRECATE, "reason", true),
        Transition::Archive | Transition::Restore => (ARCHIVE, "notes", false),
    };
    let fields = Fields::new(json, &Path::ROOT, "an object", known)?;
    let artifact = artifact(&fields)?;
    let notes = match needs_notes {
        true => Some(fields.required_string(notes, STRING)?.to_owned()),
        false => string(&fields, notes)?,
    };
    Ok(CertificationMove {
        artifact,
        transition,
        notes,
        valid_until: optional_date(&fields, "valid_until")?,
        replacement: string(&fields, "replacement")?,
        sunset_date: optional_date(&fields, "sunset_date")?,
        precondition,
    })
}

/// Reads a term to create.
///
/// # Errors
/// Names the field that is invalid.
pub fn new_term_from_wire(body: &[u8], precondition: Precondition) -> Result<NewTerm, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", NEW_TERM)?;
    Ok(NewTerm {
        name: fields.required_string("name", STRING)?.to_owned(),
        definition: fields.required_string("definition", STRING)?.to_owned(),
        synonyms: strings(&fields, "synonyms")?.unwrap_or_default(),
        category: string(&fields, "category")?,
        subcategory: string(&fields, "subcategory")?,
        examples: strings(&fields, "examples")?.unwrap_or_default(),
        related_terms: strings(&fields, "related_terms")?.unwrap_or_default(),
        formula: string(&fields, "formula")?,
        owner: string(&fields, "owner")?,
        status: optional_word(&fields, "status", TERM_STATUS, TermStatus::named)?.unwrap_or_default(),
        precondition,
    })
}

/// Reads a change of a term.
///
/// # Errors
/// Names the field that is invalid.
pub fn term_change_from_wire(body: &[u8], precondition: Precondition) -> Result<TermChange, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", TERM_CHANGE)?;
    for name in ["name", "definition", "status"] {
        present(&fields, name, STRING)?;
    }
    for name in ["synonyms", "examples", "related_terms"] {
        present(&fields, name, STRINGS)?;
    }
    let text = |name| change(&fields, name, || string(&fields, name));
    Ok(TermChange {
        name: string(&fields, "name")?,
        definition: string(&fields, "definition")?,
        synonyms: strings(&fields, "synonyms")?,
        category: text("category")?,
        subcategory: text("subcategory")?,
        examples: strings(&fields, "examples")?,
        related_terms: strings(&fields, "related_terms")?,
        formula: text("formula")?,
        owner: text("owner")?,
        status: optional_word(&fields, "status", TERM_STATUS, TermStatus::named)?,
        precondition,
    })
}

/// Reads a link to add.
///
/// # Errors
/// Names the field that is invalid.
pub fn link_from_wire(body: &[u8], precondition: Precondition) -> Result<LinkRequest, FieldError> {
    link_from_json(&parse(body)?, precondition)
}

pub(super) fn link_from_json(json: &Json, precondition: Precondition) -> Result<LinkRequest, FieldError> {
    let fields = Fields::new(json, &Path::ROOT, "an object", LINK)?;
    let kind = fields.required_string("artifact_type", LINK_TYPE)?;
    let target = target(&Path::ROOT, kind, fields.required_string("artifact_id", STRING)?)?;
    let relationship = required_word(&fields, "relationship", RELATIONSHIP, Relationship::named)?;
    Ok(LinkRequest { target, relationship: Some(relationship), precondition })
}

/// Reads an owner to assign.
///
/// # Errors
/// Names the field that is invalid.
pub fn owner_from_wire(body: &[u8], precondition: Precondition) -> Result<OwnerRequest, FieldError> {
    owner_from_json(&parse(body)?, precondition)
}

pub(super) fn owner_from_json(json: &Json, precondition: Precondition) -> Result<OwnerRequest, FieldError> {
    let fields = Fields::new(json, &Path::ROOT, "an object", OWNER)?;
    Ok(OwnerRequest {
        artifact: artifact(&fields)?,
        owner_type: Some(required_word(&fields, "owner_type", OWNER_TYPE, OwnerType::named)?),
        owner_id: fields.required_string("owner_id", STRING)?.to_owned(),
        role: Some(required_word(&fields, "role", OWNER_ROLE, OwnerRole::named)?),
        precondition,
    })
}

/// Reads an owner to remove: the artifact, `owner_id`, and optionally `owner_type` and `role`.
pub(super) fn removed_owner_from_json(json: &Json, precondition: Precondition) -> Result<OwnerRequest, FieldError> {
    let fields = Fields::new(json, &Path::ROOT, "an object", OWNER)?;
    Ok(OwnerRequest {
        artifact: artifact(&fields)?,
        owner_type: optional_word(&fields, "owner_type", OWNER_TYPE, OwnerType::named)?,
        owner_id: fields.required_string("owner_id", STRING)?.to_owned(),
        role: optional_word(&fields, "role", OWNER_ROLE, OwnerRole::named)?,
        precondition,
    })
}

/// Reads a link to remove: its target, and optionally `relationship`.
pub(super) fn removed_link_from_json(json: &Json, precondition: Precondition) -> Result<LinkRequest, FieldError> {
    let fields = Fields::new(json, &Path::ROOT, "an object", LINK)?;
    let kind = fields.required_string("artifact_type", LINK_TYPE)?;
    let target = target(&Path::ROOT, kind, fields.required_string("artifact_id", STRING)?)?;
    let relationship = optional_word(&fields, "relationship", RELATIONSHIP, Relationship::named)?;
    Ok(LinkRequest { target, relationship, precondition })
}

/// Reads a change of metadata.
///
/// # Errors
/// Names the field that is invalid.
pub fn metadata_from_wire(body: &[u8], precondition: Precondition) -> Result<MetadataRequest, FieldError> {
    metadata_from_json(&parse(body)?, precondition)
}

pub(super) fn metadata_from_json(json: &Json, precondition: Precondition) -> Result<MetadataRequest, FieldError> {
    let fields = Fields::new(json, &Path::ROOT, "an object", METADATA)?;
    let text = |name| change(&fields, name, || string(&fields, name));
    Ok(MetadataRequest {
        description: text("description")?,
        tags: change(&fields, "tags", || strings(&fields, "tags"))?,
        documentation_url: text("documentation_url")?,
        refresh_frequency: text("refresh_frequency")?,
        data_classification: text("data_classification")?,
        pii_flag: change(&fields, "pii_flag", || fields.boolean("pii_flag"))?,
        precondition,
    })
}

/// Reads the artifact of a path, `{type}/{id}`.
///
/// # Errors
/// The type is unknown.
pub fn artifact_of_path(kind: &str, id: &str) -> Result<ArtifactRef, FieldError> {
    let kind = word(&Path::ROOT.field("type"), kind, ARTIFACT_TYPE, ArtifactType::named)?;
    Ok(ArtifactRef::new(kind, id))
}

/// Reads query parameters one by one, except the caller's credential.
pub(super) fn each(
    query: &str,
    known: &'static [&'static str],
    mut read: impl FnMut(&str, &str, &Path<'_>) -> Result<(), FieldError>,
) -> Result<(), FieldError> {
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if name == "api_key" {
            continue;
        }
        if !known.contains(&&*name) {
            return Err(Path::ROOT.unknown_field(&name, known));
        }
        read(&name, &value, &Path::ROOT.field(&name))?;
    }
    Ok(())
}

fn required<T>(found: Option<T>, name: &'static str) -> Result<T, FieldError> {
    found.ok_or_else(|| Path::ROOT.missing_parameter(name))
}

fn number(path: &Path<'_>, value: &str, least: u64, most: u64) -> Result<u64, FieldError> {
    let number = value.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| path.invalid_value(value, format!("an integer from {least} to {most}")))
}

/// Reads `artifact_type` and `artifact_id`.
///
/// # Errors
/// Names the parameter that is missing or invalid.
pub fn artifact_from_parameters(query: &str) -> Result<ArtifactRef, FieldError> {
    let (mut kind, mut id) = (None, None);
    each(query, &["artifact_type", "artifact_id"], |name, value, path| {
        match name {
            "artifact_type" => kind = Some(word(path, value, ARTIFACT_TYPE, ArtifactType::named)?),
            _ => id = Some(value.to_owned()),
        }
        Ok(())
    })?;
    Ok(ArtifactRef::new(required(kind, "artifact_type")?, required(id, "artifact_id")?))
}

/// Reads `status`, `artifact_type`, `limit` and `offset`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn certification_filter_from_parameters(query: &str) -> Result<(CertificationFilter, Page), FieldError> {
    let (mut filter, mut page) = (CertificationFilter::default(), Page::default());
    each(query, &["status", "artifact_type", "limit", "offset"], |name, value, path| {
        match name {
            "limit" => page.limit = Some(number(path, value, 1, MAX_LIMIT as u64)? as usize),
            "offset" => page.offset = number(path, value, 0, u64::from(u32::MAX))? as usize,
            "status" => filter.status = Some(word(path, value, STATUS, CertificationStatus::named)?),
            _ => filter.artifact_type = Some(word(path, value, ARTIFACT_TYPE, ArtifactType::named)?),
        }
        Ok(())
    })?;
    Ok((filter, page))
}

/// Reads `category`, `status`, `limit` and `offset`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn term_filter_from_parameters(query: &str) -> Result<(TermFilter, Page), FieldError> {
    let (mut filter, mut page) = (TermFilter::default(), Page::default());
    each(query, &["category", "status", "limit", "offset"], |name, value, path| {
        match name {
            "limit" => page.limit = Some(number(path, value, 1, MAX_LIMIT as u64)? as usize),
            "offset" => page.offset = number(path, value, 0, u64::from(u32::MAX))? as usize,
            "category" => filter.category = Some(value.to_owned()),
            _ => filter.status = Some(word(path, value, TERM_STATUS, TermStatus::named)?),
        }
        Ok(())
    })?;
    Ok((filter, page))
}

/// Reads `query`, `category`, `status` and `limit`.
///
/// # Errors
/// Names the parameter that is missing or invalid.
pub fn term_search_from_parameters(query: &str) -> Result<(String, TermFilter, usize), FieldError> {
    let (mut text, mut filter, mut limit) = (None, TermFilter::default(), DEFAULT_LIMIT);
    each(query, &["query", "category", "status", "limit"], |name, value, path| {
        match name {
            "query" => text = Some(value.to_owned()),
            "category" => filter.category = Some(value.to_owned()),
            "status" => filter.status = Some(word(path, value, TERM_STATUS, TermStatus::named)?),
            _ => limit = number(path, value, 1, MAX_LIMIT as u64)? as usize,
        }
        Ok(())
    })?;
    Ok((required(text, "query")?, filter, limit))
}

/// Reads the link to remove: `artifact_type`, `artifact_id` and `relationship`.
///
/// # Errors
/// Names the parameter that is missing or invalid.
pub fn link_from_parameters(query: &str, precondition: Precondition) -> Result<LinkRequest, FieldError> {
    let (mut kind, mut id, mut relationship) = (None, None, None);
    each(query, LINK, |name, value, path| {
        match name {
            "artifact_type" => kind = Some(value.to_owned()),
            "artifact_id" => id = Some(value.to_owned()),
            _ => relationship = Some(word(path, value, RELATIONSHIP, Relationship::named)?),
        }
        Ok(())
    })?;
    let (kind, id) = (required(kind, "artifact_type")?, required(id, "artifact_id")?);
    Ok(LinkRequest { target: target(&Path::ROOT, &kind, &id)?, relationship, precondition })
}

/// Reads the owner to remove: the artifact, `owner_id`, and optionally `owner_type` and `role`.
///
/// # Errors
/// Names the parameter that is missing or invalid.
pub fn owner_from_parameters(query: &str, precondition: Precondition) -> Result<OwnerRequest, FieldError> {
    let (mut kind, mut id, mut owner_id, mut owner_type, mut role) = (None, None, None, None, None);
    each(query, OWNER, |name, value, path| {
        match name {
            "artifact_type" => kind = Some(word(path, value, ARTIFACT_TYPE, ArtifactType::named)?),
            "artifact_id" => id = Some(value.to_owned()),
            "owner_type" => owner_type = Some(word(path, value, OWNER_TYPE, OwnerType::named)?),
            "role" => role = Some(word(path, value, OWNER_ROLE, OwnerRole::named)?),
            _ => owner_id = Some(value.to_owned()),
        }
        Ok(())
    })?;
    let artifact = ArtifactRef::new(required(kind, "artifact_type")?, required(id, "artifact_id")?);
    Ok(OwnerRequest { artifact, owner_type, owner_id: required(owner_id, "owner_id")?, role, precondition })
}

/// Reads `owner_id` and `owner_type`.
///
/// # Errors
/// Names the parameter that is missing or invalid.
pub fn owner_of_parameters(query: &str) -> Result<(String, Option<OwnerType>), FieldError> {
    let (mut owner_id, mut owner_type) = (None, None);
    each(query, &["owner_id", "owner_type"], |name, value, path| {
        match name {
            "owner_type" => owner_type = Some(word(path, value, OWNER_TYPE, OwnerType::named)?),
            _ => owner_id = Some(value.to_owned()),
        }
        Ok(())
    })?;
    Ok((required(owner_id, "owner_id")?, owner_type))
}

/// Reads `query`, `tags` (with commas between them, or repeated), `certification_status`, `artifact_type`, `limit` and
/// `offset`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn artifact_query_from_parameters(query: &str) -> Result<ArtifactQuery, FieldError> {
    const KNOWN: &[&str] = &["query", "tags", "certification_status", "artifact_type", "limit", "offset"];
    let mut wanted = ArtifactQuery { limit: DEFAULT_LIMIT, ..ArtifactQuery::default() };
    each(query, KNOWN, |name, value, path| {
        match name {
            "query" => wanted.text = value.to_owned(),
            "tags" => {
                let tags = value.split(',').map(str::trim).filter(|tag| !tag.is_empty());
                wanted.tags.extend(tags.map(str::to_owned));
            }
            "certification_status" => wanted.status = Some(word(path, value, STATUS, CertificationStatus::named)?),
            "artifact_type" => wanted.artifact_type = Some(word(path, value, ARTIFACT_TYPE, ArtifactType::named)?),
            "limit" => wanted.limit = number(path, value, 1, MAX_LIMIT as u64)? as usize,
            _ => wanted.offset = number(path, value, 0, u64::from(u32::MAX))? as usize,
        }
        Ok(())
    })?;
    Ok(wanted)
}

/// Reads `type`, `cube`, `tag` (may be repeated), `certification`, `owner`, `limit` and `offset`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn catalog_query_from_parameters(query: &str) -> Result<ArtifactQuery, FieldError> {
    const KNOWN: &[&str] = &["type", "cube", "tag", "certification", "owner", "limit", "offset"];
    let mut wanted = ArtifactQuery { order: ArtifactOrder::Artifact, limit: DEFAULT_LIMIT, ..ArtifactQuery::default() };
    each(query, KNOWN, |name, value, path| {
        match name {
            "type" => wanted.artifact_type = Some(word(path, value, ARTIFACT_TYPE, ArtifactType::named)?),
            "cube" => wanted.cube = Some(value.to_owned()),
            "tag" => wanted.tags.push(value.to_owned()),
            "certification" => wanted.status = Some(word(path, value, STATUS, CertificationStatus::named)?),
            "owner" => wanted.owner_id = Some(value.to_owned()),
            "limit" => wanted.limit = number(path, value, 1, MAX_LIMIT as u64)? as usize,
            _ => wanted.offset = number(path, value, 0, u64::from(u32::MAX))? as usize,
        }
        Ok(())
    })?;
    Ok(wanted)
}

/// Reads `artifact_type` with `artifact_id`, or `term_id`, and `before` and `limit`.
///
/// # Errors
/// Names the parameter that is missing or invalid.
pub fn history_from_parameters(query: &str) -> Result<HistoryRequest, FieldError> {
    const KNOWN: &[&str] = &["artifact_type", "artifact_id", "term_id", "before", "limit"];
    let (mut kind, mut id) = (None, None);
    let mut filter = HistoryRequest { limit: DEFAULT_LIMIT as u32, ..HistoryRequest::default() };
    each(query, KNOWN, |name, value, path| {
        match name {
            "artifact_type" => kind = Some(word(path, value, ARTIFACT_TYPE, ArtifactType::named)?),
            "artifact_id" => id = Some(value.to_owned()),
            "term_id" => filter.term_id = Some(value.into()),
            "before" => filter.before = Some(word(path, value, CHANGE_ID, ChangeId::parse)?),
            _ => filter.limit = number(path, value, 1, MAX_LIMIT as u64)? as u32,
        }
        Ok(())
    })?;
    filter.artifact = match (kind, id) {
        (None, None) => None,
        (kind, id) => Some(ArtifactRef::new(required(kind, "artifact_type")?, required(id, "artifact_id")?)),
    };
    if filter.artifact.is_some() && filter.term_id.is_some() {
        return Err(Path::ROOT.both(["artifact_id", "term_id"]));
    }
    Ok(filter)
}
