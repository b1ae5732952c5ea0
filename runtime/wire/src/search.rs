//! Search and suggestions: bodies of requests, and hits as JSON.
//!
//! In: bodies; hits of `app::search`. Out: requests, or a [`FieldError`]; hits with the parts of their texts that
//! match.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Value as Json, json};
use terrane_app::ports::governance_records::CertificationStatus;
use terrane_app::search::{
    DEFAULT_LIMIT, DEFAULT_SUGGESTIONS, Hit, HitType, Hits, MAX_LIMIT, MarkedField, Marks, SearchRequest,
    SuggestionRequest,
};

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};
use crate::governance::{CertificationBadge, statuses};
use crate::schema;

pub(crate) const SEARCH: &[&str] = &["query", "types", "cube", "tags", "certification_status", "limit"];
pub(crate) const AUTOCOMPLETION: &[&str] = &["query", "context", "types", "tags", "certification_status", "limit"];
pub(crate) const CONTEXT: &[&str] = &["cube_name"];

const TEXT: &str = "a string like \"average delay\"";
const TYPE: &str = "`cube`, `measure`, `dimension`, `metric` or `value`";
const STATUS: &str = "`draft`, `pending_review`, `certified`, `deprecated` or `archived`";
const LIMIT: &str = "an integer from 1 to 100";

/// Words to search for.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, extend("required" = json!(["query"])))]
pub struct Search {
    /// Words to find in names, titles, synonyms, tags, owners, units, descriptions and values. At most 300 characters
    /// and 16 words.
    pub query: String,
    /// Only hits of these types; all types if it is absent or empty.
    #[schemars(schema_with = "type_lists")]
    pub types: Option<Vec<String>>,
    /// Only this cube and its members, and metrics that are computed from it.
    pub cube: Option<String>,
    /// Only artifacts with all of these tags.
    pub tags: Option<Vec<String>>,
    /// Only artifacts with this status of certification.
    #[schemars(schema_with = "statuses")]
    pub certification_status: Option<String>,
    /// The largest number of hits, 1 to 100. Default: 20.
    pub limit: Option<u64>,
}

/// Words that a user types.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Autocompletion {
    /// The text so far. The last word may be unfinished; an empty text suggests everything.
    pub query: String,
    pub context: Option<AutocompletionContext>,
    /// Only suggestions of these types; all types if it is absent or empty.
    #[schemars(schema_with = "type_lists")]
    pub types: Option<Vec<String>>,
    /// Only artifacts with all of these tags.
    pub tags: Option<Vec<String>>,
    /// Only artifacts with this status of certification.
    #[schemars(schema_with = "statuses")]
    pub certification_status: Option<String>,
    /// The largest number of suggestions, 1 to 100. Default: 10.
    pub limit: Option<u64>,
}

/// The place in which a user types.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AutocompletionContext {
    /// Only members that a query of this cube can use, its own first.
    pub cube_name: Option<String>,
}

fn types(_: &mut SchemaGenerator) -> Schema {
    schema::words(&HitType::ALL.map(HitType::as_str))
}

fn type_lists(generator: &mut SchemaGenerator) -> Schema {
    let items = types(generator);
    schemars::json_schema!({"type": "array", "items": items})
}

fn fields(_: &mut SchemaGenerator) -> Schema {
    schema::words(&MarkedField::ALL.map(MarkedField::as_str))
}

/// Reads the body of a search.
///
/// # Errors
/// Names the field that is invalid.
pub fn search_from_wire(body: &[u8]) -> Result<SearchRequest, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object like {\"query\": \"average delay\"}", SEARCH)?;
    Ok(SearchRequest {
        text: fields.required_string("query", TEXT)?.to_owned(),
        types: types_of(&fields)?,
        cube: fields.string("cube", "a cube's name")?.map(str::to_owned),
        tags: tags_of(&fields)?,
        status: status_of(&fields)?,
        limit: limit(&fields, DEFAULT_LIMIT)?,
    })
}

/// Reads the body of a request for suggestions.
///
/// # Errors
/// Names the field that is invalid.
pub fn autocompletion_from_wire(body: &[u8]) -> Result<SuggestionRequest, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object like {\"query\": \"dep\"}", AUTOCOMPLETION)?;
    let path = Path::ROOT.field("context");
    let context = fields.get("context");
    let context =
        context.map(|context| Fields::new(context, &path, "an object like {\"cube_name\": \"flights\"}", CONTEXT));
    let cube = match context.transpose()? {
        Some(context) => context.string("cube_name", "a cube's name")?.map(str::to_owned),
        None => None,
    };
    Ok(SuggestionRequest {
        text: fields.required_string("query", TEXT)?.to_owned(),
        cube,
        types: types_of(&fields)?,
        tags: tags_of(&fields)?,
        status: status_of(&fields)?,
        limit: limit(&fields, DEFAULT_SUGGESTIONS)?,
    })
}

fn types_of(fields: &Fields<'_>) -> Result<Vec<HitType>, FieldError> {
    fields.list("types", "a list like [\"measure\"]", hit_type)
}

fn tags_of(fields: &Fields<'_>) -> Result<Vec<String>, FieldError> {
    fields.list("tags", "a list of strings", text)
}

fn status_of(fields: &Fields<'_>) -> Result<Option<CertificationStatus>, FieldError> {
    let status = fields.string("certification_status", STATUS)?.map(|text| {
        let named = CertificationStatus::ALL.into_iter().find(|status| status.as_str() == text);
        named.ok_or_else(|| Path::ROOT.field("certification_status").invalid_value(text, STATUS))
    });
    status.transpose()
}

fn limit(fields: &Fields<'_>, default: usize) -> Result<usize, FieldError> {
    match fields.integer("limit")? {
        None => Ok(default),
        Some(limit) if (1..=MAX_LIMIT as u64).contains(&limit) => Ok(limit as usize),
        Some(other) => Err(Path::ROOT.field("limit").invalid_value(&other.to_string(), LIMIT)),
    }
}

fn hit_type(value: &Json, path: &Path<'_>) -> Result<HitType, FieldError> {
    let Json::String(name) = value else { return Err(path.invalid_type(value, TYPE)) };
    HitType::ALL.into_iter().find(|kind| kind.as_str() == name).ok_or_else(|| path.invalid_value(name, TYPE))
}

fn text(value: &Json, path: &Path<'_>) -> Result<String, FieldError> {
    match value {
        Json::String(text) => Ok(text.clone()),
        other => Err(path.invalid_type(other, "a string")),
    }
}

/// Artifacts and values that match, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchResults<'a> {
    pub results: Vec<SearchHit<'a>>,
    /// True if more artifacts or values match than the limit.
    pub has_more: bool,
    /// The dimensions whose values were not searched, or not all of them.
    pub warnings: &'a [String],
}

/// Suggestions, best first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Suggestions<'a> {
    pub suggestions: Vec<SearchHit<'a>>,
    /// True if there are more suggestions than the limit.
    pub has_more: bool,
    /// The dimensions whose values were not searched, or not all of them.
    pub warnings: &'a [String],
}

/// An artifact that matches, or a value of a dimension.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchHit<'a> {
    #[schemars(schema_with = "types")]
    pub r#type: &'static str,
    /// The name in queries, such as `orders.revenue`; for a value, the name of its dimension.
    pub name: &'a str,
    /// The value that matches, as a filter takes it; null unless the type is `value`.
    pub value: Option<&'a str>,
    /// The cube of a member.
    pub cube: Option<&'a str>,
    pub title: &'a str,
    pub description: Option<&'a str>,
    pub tags: Vec<&'a str>,
    /// The texts that match. The first one is the reason of the hit.
    pub matches: Vec<SearchMatch<'a>>,
    /// Null if the module of governance is switched off.
    pub certification: Option<CertificationBadge>,
    /// The owners: users and teams.
    pub owners: Vec<SearchOwner<'a>>,
    /// The score of the hit, which is comparable only within one answer.
    pub score: i64,
}

/// A name, tag, owner, unit, description or value that matches.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchMatch<'a> {
    #[schemars(schema_with = "fields")]
    pub field: &'static str,
    pub text: &'a str,
    /// The parts that match: the start and the exclusive end of each, in Unicode code points from 0.
    pub ranges: Vec<[usize; 2]>,
}

/// An owner of an artifact.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchOwner<'a> {
    #[schemars(schema_with = "crate::governance::owner_types")]
    pub r#type: &'static str,
    pub id: &'a str,
    #[schemars(schema_with = "crate::governance::owner_roles")]
    pub role: &'static str,
}

impl<'a> From<&'a Hits> for SearchResults<'a> {
    fn from(found: &'a Hits) -> Self {
        SearchResults {
            results: found.hits.iter().map(SearchHit::from).collect(),
            has_more: found.has_more,
            warnings: &found.warnings,
        }
    }
}

impl<'a> From<&'a Hits> for Suggestions<'a> {
    fn from(found: &'a Hits) -> Self {
        Suggestions {
            suggestions: found.hits.iter().map(SearchHit::from).collect(),
            has_more: found.has_more,
            warnings: &found.warnings,
        }
    }
}

impl<'a> From<&'a Hit> for SearchHit<'a> {
    fn from(hit: &'a Hit) -> Self {
        let artifact = &hit.artifact;
        let owners = hit.governed.iter().flat_map(|view| &view.owners.owners);
        SearchHit {
            r#type: hit.hit_type().as_str(),
            name: &artifact.reference.id,
            value: hit.value.as_deref(),
            cube: artifact.cube.as_deref(),
            title: &artifact.title,
            description: artifact.description.as_deref(),
            tags: artifact.tags.iter().map(|tag| &**tag).collect(),
            matches: hit.marks.iter().map(SearchMatch::from).collect(),
            certification: hit.badge().map(CertificationBadge::from),
            owners: owners
                .map(|owner| SearchOwner {
                    r#type: owner.owner_type.as_str(),
                    id: &owner.owner_id,
                    role: owner.role.as_str(),
                })
                .collect(),
            score: hit.score,
        }
    }
}

impl<'a> From<&'a Marks> for SearchMatch<'a> {
    fn from(marks: &'a Marks) -> Self {
        SearchMatch {
            field: marks.field.as_str(),
            text: &marks.text,
            ranges: marks.parts.iter().map(|part| [part.start, part.end]).collect(),
        }
    }
}
