//! Governed records as YAML: the file of an export.
//!
//! In: records, or the text of a file. Out: the text, or the records with every problem and its place, such as
//! `terms[3].links[0].relationship`. The order of records is that of the export, so equal records give equal bytes. The
//! format has a version; fields may be added to it. This is one file, because the writer and the reader of each record
//! stand side by side and change together. Not here: rules about texts and about several records together
//! (`app::governance::import_records`).

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::governance::{ImportProblem, RecordSet};
use terrane_app::ports::governance_records::{
    ArtifactMetadata, ArtifactRef, ArtifactType, Certification, CertificationStatus, Definition, LinkTarget, Owner,
    OwnerRole, OwnerType, Ownership, RecordKind, Relationship, Step, TERM_TYPE, Term, TermLink, TermStatus,
};

use super::request::{
    ARTIFACT_TYPE, DATE, LINK_TYPE, OWNER_ROLE, OWNER_TYPE, RELATIONSHIP, STATUS, STRING, STRINGS, TERM_STATUS,
};
use crate::error::ErrorBody;
pub use crate::error::RecordsProblem;
use crate::fields::{FieldError, Fields, Path};

/// The version of the format.
const VERSION: u32 = 1;
pub(crate) const FILE: &[&str] = &["version", "terms", "ownership", "certifications", "metadata"];
const MOMENT: &str = "a time like 2026-12-31T12:00:00Z";
/// The largest number of YAML nodes of a file, enough for 50,000 terms with all their fields.
const MAX_NODES: usize = 20_000_000;
/// The number of problems after which a list is not read further.
const MAX_PROBLEMS: usize = 1_000;

impl From<FieldError> for RecordsProblem {
    fn from(error: FieldError) -> Self {
        let place = error.place().to_owned();
        RecordsProblem { place, message: ErrorBody::from(error).message }
    }
}

impl From<&ImportProblem> for RecordsProblem {
    fn from(found: &ImportProblem) -> Self {
        let dot = if found.field.is_empty() { "" } else { "." };
        let place = format!("{}[{}]{dot}{}", list_of(found.kind), found.index, found.field);
        RecordsProblem { message: format!("{} at `{place}`", found.problem), place }
    }
}

/// Returns the name of the list of a kind of records.
fn list_of(kind: RecordKind) -> &'static str {
    match kind {
        RecordKind::Term => "terms",
        RecordKind::Ownership => "ownership",
        RecordKind::Certification => "certifications",
        RecordKind::Metadata => "metadata",
    }
}

#[derive(Serialize)]
struct RecordsFile<'a> {
    version: u32,
    terms: Vec<TermEntry<'a>>,
    ownership: Vec<OwnershipEntry<'a>>,
    certifications: Vec<CertificationEntry<'a>>,
    metadata: Vec<MetadataEntry<'a>>,
}

#[derive(Serialize)]
struct TermEntry<'a> {
    id: &'a str,
    name: &'a str,
    definition: &'a str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    synonyms: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    category: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subcategory: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    examples: &'a [Arc<str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    related_terms: &'a [Arc<str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    formula: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    links: Vec<LinkEntry<'a>>,
    created_by: &'a str,
    created_at: String,
    updated_at: String,
}

#[derive(Serialize)]
struct LinkEntry<'a> {
    artifact_type: &'static str,
    artifact_id: &'a str,
    relationship: &'static str,
    linked_by: &'a str,
    linked_at: String,
}

#[derive(Serialize)]
struct OwnershipEntry<'a> {
    artifact_type: &'static str,
    artifact_id: &'a str,
    owners: Vec<OwnerEntry<'a>>,
    updated_at: String,
}

#[derive(Serialize)]
struct OwnerEntry<'a> {
    owner_type: &'static str,
    owner_id: &'a str,
    role: &'static str,
    assigned_by: &'a str,
    assigned_at: String,
}

#[derive(Serialize)]
struct StepEntry<'a> {
    by: &'a str,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<&'a str>,
}

#[derive(Serialize)]
struct DefinitionEntry<'a> {
    fingerprint: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct CertificationEntry<'a> {
    artifact_type: &'static str,
    artifact_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    submitted: Option<StepEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certified: Option<StepEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_changed_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<StepEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deprecated: Option<StepEntry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replacement: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sunset_date: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    archived: Option<StepEntry<'a>>,
    updated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<DefinitionEntry<'a>>,
}

#[derive(Serialize)]
struct MetadataEntry<'a> {
    artifact_type: &'static str,
    artifact_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<&'a [Arc<str>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    documentation_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_frequency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_classification: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pii_flag: Option<bool>,
    updated_by: &'a str,
    updated_at: String,
}

/// Returns the file of a set of records.
///
/// # Errors
/// Returns the text of the error, if a value has no form in YAML.
pub fn records_to_yaml(set: &RecordSet) -> Result<String, String> {
    let file = RecordsFile {
        version: VERSION,
        terms: set.terms.iter().map(|term| term_entry(term)).collect(),
        ownership: set.ownership.iter().map(|record| ownership_entry(record)).collect(),
        certifications: set.certifications.iter().map(|record| certification_entry(record)).collect(),
        metadata: set.metadata.iter().map(|record| metadata_entry(record)).collect(),
    };
    // Each string is in quotes on one line, so that no YAML reader changes it by folding or trimming lines.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false, yaml_12: true, no_lang_directive: true };
    serde_saphyr::to_string_with_options(&file, options).map_err(|error| error.to_string())
}

fn term_entry(term: &Term) -> TermEntry<'_> {
    let links = term.links.iter().map(|link| {
        let (artifact_type, artifact_id) = link.target.parts();
        LinkEntry {
            artifact_type,
            artifact_id,
            relationship: link.relationship.as_str(),
            linked_by: &link.linked_by,
            linked_at: link.linked_at.to_string(),
        }
    });
    TermEntry {
        id: &term.id,
        name: &term.name,
        definition: &term.definition,
        synonyms: &term.synonyms,
        category: term.category.as_deref(),
        subcategory: term.subcategory.as_deref(),
        examples: &term.examples,
        related_terms: &term.related_terms,
        formula: term.formula.as_deref(),
        owner: term.owner.as_deref(),
        status: term.status.as_str(),
        links: links.collect(),
        created_by: &term.created_by,
        created_at: term.created_at.to_string(),
        updated_at: term.updated_at.to_string(),
    }
}

fn ownership_entry(record: &Ownership) -> OwnershipEntry<'_> {
    let owners = record.owners.iter().map(|owner| OwnerEntry {
        owner_type: owner.owner_type.as_str(),
        owner_id: &owner.owner_id,
        role: owner.role.as_str(),
        assigned_by: &owner.assigned_by,
        assigned_at: owner.assigned_at.to_string(),
    });
    OwnershipEntry {
        artifact_type: record.artifact.kind.as_str(),
        artifact_id: &record.artifact.id,
        owners: owners.collect(),
        updated_at: record.updated_at.to_string(),
    }
}

fn certification_entry(record: &Certification) -> CertificationEntry<'_> {
    fn step(step: &Option<Step>) -> Option<StepEntry<'_>> {
        step.as_ref().map(|step| StepEntry { by: &step.by, at: step.at.to_string(), notes: step.notes.as_deref() })
    }
    let definition = record.definition.as_ref();
    CertificationEntry {
        artifact_type: record.artifact.kind.as_str(),
        artifact_id: &record.artifact.id,
        status: record.status.as_str(),
        submitted: step(&record.submitted),
        certified: step(&record.certified),
        valid_until: record.valid_until.map(|day| day.to_string()),
        definition_changed_at: record.definition_changed_at.map(|at| at.to_string()),
        rejected: step(&record.rejected),
        deprecated: step(&record.deprecated),
        replacement: record.replacement.as_deref(),
        sunset_date: record.sunset_date.map(|day| day.to_string()),
        archived: step(&record.archived),
        updated_at: record.updated_at.to_string(),
        definition: definition.map(|of| DefinitionEntry { fingerprint: &of.fingerprint, text: &of.text }),
    }
}

fn metadata_entry(record: &ArtifactMetadata) -> MetadataEntry<'_> {
    MetadataEntry {
        artifact_type: record.artifact.kind.as_str(),
        artifact_id: &record.artifact.id,
        description: record.description.as_deref(),
        tags: record.tags.as_deref(),
        documentation_url: record.documentation_url.as_deref(),
        refresh_frequency: record.refresh_frequency.as_deref(),
        data_classification: record.data_classification.as_deref(),
        pii_flag: record.pii_flag,
        updated_by: &record.updated_by,
        updated_at: record.updated_at.to_string(),
    }
}

/// Reads a file of records.
///
/// # Errors
/// Returns every problem of the file. A list with about 1,000 problems is not read further.
pub fn records_from_yaml(text: &str) -> Result<RecordSet, Vec<RecordsProblem>> {
    let whole = |message: String| vec![RecordsProblem { place: String::new(), message }];
    let mut options = serde_saphyr::Options::default();
    // In YAML 1.2, `no` is a string.
    options.strict_booleans = true;
    if let Some(budget) = &mut options.budget {
        (budget.max_nodes, budget.max_events) = (MAX_NODES, MAX_NODES);
        // The format has no aliases, which could make a small file a large one.
        (budget.max_aliases, budget.max_anchors) = (0, 0);
    }
    let json: Json = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| whole(format!("the file is not YAML: {error}")))?;
    let mut problems = Vec::new();
    let set = file(&json, &mut problems);
    match set {
        Some(set) if problems.is_empty() => Ok(set),
        _ => Err(problems.into_iter().map(RecordsProblem::from).collect()),
    }
}

fn file(json: &Json, problems: &mut Vec<FieldError>) -> Option<RecordSet> {
    let mut reader = Reader::new(json, &Path::ROOT, FILE, problems)?;
    let version = reader.fields.integer("version");
    match reader.take(version) {
        Some(Some(version)) if version == u64::from(VERSION) => {}
        Some(Some(version)) => {
            let error = Path::ROOT.field("version").invalid_value(&version.to_string(), VERSION.to_string());
            reader.problems.push(error);
        }
        Some(None) => reader.problems.push(Path::ROOT.missing("version")),
        None => {}
    }
    Some(RecordSet {
        terms: arcs(reader.list("terms", term)),
        ownership: arcs(reader.list("ownership", ownership)),
        certifications: arcs(reader.list("certifications", certification)),
        metadata: arcs(reader.list("metadata", metadata)),
    })
}

fn arcs<T>(items: Vec<T>) -> Vec<Arc<T>> {
    items.into_iter().map(Arc::new).collect()
}

/// Reads the fields of an object, and continues after a problem, so that all problems are found.
struct Reader<'a, 'p> {
    fields: Fields<'a>,
    path: &'a Path<'a>,
    problems: &'p mut Vec<FieldError>,
}

impl<'a, 'p> Reader<'a, 'p> {
    fn new(
        json: &'a Json,
        path: &'a Path<'a>,
        known: &'static [&'static str],
        problems: &'p mut Vec<FieldError>,
    ) -> Option<Self> {
        let (fields, unknown) = match Fields::with_unknown(json, path, "an object", known) {
            Ok(found) => found,
            Err(error) => {
                problems.push(error);
                return None;
            }
        };
        problems.extend(unknown);
        Some(Reader { fields, path, problems })
    }

    fn take<T>(&mut self, read: Result<T, FieldError>) -> Option<T> {
        read.map_err(|error| self.problems.push(error)).ok()
    }

    fn text(&mut self, name: &'static str) -> Option<Arc<str>> {
        let read = self.fields.string(name, STRING);
        self.take(read)?.map(Into::into)
    }

    fn required(&mut self, name: &'static str) -> Option<Arc<str>> {
        let read = self.fields.required_string(name, STRING);
        self.take(read).map(Into::into)
    }

    fn texts(&mut self, name: &'static str) -> Option<Vec<Arc<str>>> {
        self.fields.get(name)?;
        Some(self.items(name, STRINGS, |item, path, problems| match item {
            Json::String(text) => Some(Arc::from(text.as_str())),
            other => {
                problems.push(path.invalid_type(other, STRING));
                None
            }
        }))
    }

    fn word<T>(&mut self, name: &'static str, expected: &'static str, read: fn(&str) -> Option<T>) -> Option<T> {
        let word = self.required(name)?;
        let found = read(&word);
        if found.is_none() {
            self.problems.push(self.path.field(name).invalid_value(&word, expected));
        }
        found
    }

    fn moment(&mut self, name: &'static str) -> Option<Timestamp> {
        let text = self.text(name)?;
        // The state database stores microseconds.
        let read = text.parse::<Timestamp>().ok().and_then(|at| Timestamp::from_microsecond(at.as_microsecond()).ok());
        if read.is_none() {
            self.problems.push(self.path.field(name).invalid_value(&text, MOMENT));
        }
        read
    }

    fn required_moment(&mut self, name: &'static str) -> Option<Timestamp> {
        if self.fields.get(name).is_none() {
            self.problems.push(self.path.missing(name));
        }
        self.moment(name)
    }

    fn day(&mut self, name: &'static str) -> Option<Date> {
        let text = self.text(name)?;
        let read = text.parse::<Date>().ok().filter(|_| text.len() == 10);
        if read.is_none() {
            self.problems.push(self.path.field(name).invalid_value(&text, DATE));
        }
        read
    }

    fn artifact(&mut self) -> Option<ArtifactRef> {
        let kind = self.word("artifact_type", ARTIFACT_TYPE, ArtifactType::named);
        let id = self.required("artifact_id");
        Some(ArtifactRef { kind: kind?, id: id? })
    }

    /// Reads the items of a list, without those that have a problem.
    fn items<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        read: impl Fn(&Json, &Path<'_>, &mut Vec<FieldError>) -> Option<T>,
    ) -> Vec<T> {
        let path = self.path.field(name);
        match self.fields.get(name) {
            None => Vec::new(),
            Some(Json::Array(items)) => {
                let mut found = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    if self.problems.len() >= MAX_PROBLEMS {
                        break;
                    }
                    found.extend(read(item, &path.item(index), self.problems));
                }
                found
            }
            Some(other) => {
                self.problems.push(path.invalid_type(other, expected));
                Vec::new()
            }
        }
    }

    fn list<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&Json, &Path<'_>, &mut Vec<FieldError>) -> Option<T>,
    ) -> Vec<T> {
        self.items(name, "a list", read)
    }

    /// Reads an optional object.
    fn object<T>(
        &mut self,
        name: &'static str,
        read: impl Fn(&Json, &Path<'_>, &mut Vec<FieldError>) -> Option<T>,
    ) -> Option<T> {
        let path = self.path.field(name);
        read(self.fields.get(name)?, &path, self.problems)
    }
}

fn term(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<Term> {
    const KNOWN: &[&str] = &[
        "id",
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
        "links",
        "created_by",
        "created_at",
        "updated_at",
    ];
    let mut reader = Reader::new(json, path, KNOWN, problems)?;
    let (id, name, definition) = (reader.required("id"), reader.required("name"), reader.required("definition"));
    let (synonyms, examples) = (reader.texts("synonyms"), reader.texts("examples"));
    let related_terms = reader.texts("related_terms");
    let (category, subcategory) = (reader.text("category"), reader.text("subcategory"));
    let (formula, owner) = (reader.text("formula"), reader.text("owner"));
    let status = reader.word("status", TERM_STATUS, TermStatus::named);
    let links = reader.list("links", link);
    let created_by = reader.required("created_by");
    let (created_at, updated_at) = (reader.required_moment("created_at"), reader.required_moment("updated_at"));
    Some(Term {
        id: id?,
        name: name?,
        definition: definition?,
        synonyms: synonyms.unwrap_or_default(),
        category,
        subcategory,
        examples: examples.unwrap_or_default(),
        related_terms: related_terms.unwrap_or_default(),
        formula,
        formula_by: None,
        owner,
        status: status?,
        links,
        created_by: created_by?,
        created_at: created_at?,
        updated_at: updated_at?,
        version: 0,
    })
}

fn link(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<TermLink> {
    const KNOWN: &[&str] = &["artifact_type", "artifact_id", "relationship", "linked_by", "linked_at"];
    /// Returns the type of an artifact. Returns `Some(None)` for a term, and `None` for an unknown word.
    fn kind(word: &str) -> Option<Option<ArtifactType>> {
        if word == TERM_TYPE { Some(None) } else { ArtifactType::named(word).map(Some) }
    }
    let mut reader = Reader::new(json, path, KNOWN, problems)?;
    let kind = reader.word("artifact_type", LINK_TYPE, kind);
    let id = reader.required("artifact_id");
    let relationship = reader.word("relationship", RELATIONSHIP, Relationship::named);
    let (linked_by, linked_at) = (reader.required("linked_by"), reader.required_moment("linked_at"));
    let target = match kind? {
        None => LinkTarget::Term(id?),
        Some(kind) => LinkTarget::Artifact(ArtifactRef { kind, id: id? }),
    };
    Some(TermLink { target, relationship: relationship?, linked_by: linked_by?, linked_at: linked_at? })
}

fn ownership(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<Ownership> {
    const KNOWN: &[&str] = &["artifact_type", "artifact_id", "owners", "updated_at"];
    let mut reader = Reader::new(json, path, KNOWN, problems)?;
    let artifact = reader.artifact();
    let (owners, updated_at) = (reader.list("owners", owner), reader.required_moment("updated_at"));
    Some(Ownership { artifact: artifact?, owners, version: 0, updated_at: updated_at? })
}

fn owner(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<Owner> {
    const KNOWN: &[&str] = &["owner_type", "owner_id", "role", "assigned_by", "assigned_at"];
    let mut reader = Reader::new(json, path, KNOWN, problems)?;
    let owner_type = reader.word("owner_type", OWNER_TYPE, OwnerType::named);
    let owner_id = reader.required("owner_id");
    let role = reader.word("role", OWNER_ROLE, OwnerRole::named);
    let (assigned_by, assigned_at) = (reader.required("assigned_by"), reader.required_moment("assigned_at"));
    Some(Owner {
        owner_type: owner_type?,
        owner_id: owner_id?,
        role: role?,
        assigned_by: assigned_by?,
        assigned_at: assigned_at?,
    })
}

fn step(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<Step> {
    let mut reader = Reader::new(json, path, &["by", "at", "notes"], problems)?;
    let (by, at, notes) = (reader.required("by"), reader.required_moment("at"), reader.text("notes"));
    Some(Step { by: by?, at: at?, notes })
}

fn definition(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<Definition> {
    let mut reader = Reader::new(json, path, &["fingerprint", "text"], problems)?;
    let (fingerprint, text) = (reader.required("fingerprint"), reader.required("text"));
    Some(Definition { text: text?, fingerprint: fingerprint? })
}

fn certification(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<Certification> {
    const KNOWN: &[&str] = &[
        "artifact_type",
        "artifact_id",
        "status",
        "submitted",
        "certified",
        "valid_until",
        "definition_changed_at",
        "rejected",
        "deprecated",
        "replacement",
        "sunset_date",
        "archived",
        "updated_at",
        "definition",
    ];
    let mut reader = Reader::new(json, path, KNOWN, problems)?;
    let artifact = reader.artifact();
    let status = reader.word("status", STATUS, CertificationStatus::named);
    let (submitted, certified) = (reader.object("submitted", step), reader.object("certified", step));
    let (rejected, deprecated) = (reader.object("rejected", step), reader.object("deprecated", step));
    let archived = reader.object("archived", step);
    let (valid_until, sunset_date) = (reader.day("valid_until"), reader.day("sunset_date"));
    let definition_changed_at = reader.moment("definition_changed_at");
    let definition = reader.object("definition", definition);
    let replacement = reader.text("replacement");
    let updated_at = reader.required_moment("updated_at");
    Some(Certification {
        artifact: artifact?,
        status: status?,
        version: 0,
        submitted,
        certified,
        valid_until,
        definition,
        definition_changed_at,
        rejected,
        deprecated,
        replacement,
        sunset_date,
        archived,
        updated_at: updated_at?,
    })
}

fn metadata(json: &Json, path: &Path<'_>, problems: &mut Vec<FieldError>) -> Option<ArtifactMetadata> {
    const KNOWN: &[&str] = &[
        "artifact_type",
        "artifact_id",
        "description",
        "tags",
        "documentation_url",
        "refresh_frequency",
        "data_classification",
        "pii_flag",
        "updated_by",
        "updated_at",
    ];
    let mut reader = Reader::new(json, path, KNOWN, problems)?;
    let artifact = reader.artifact();
    let (description, tags) = (reader.text("description"), reader.texts("tags"));
    let documentation_url = reader.text("documentation_url");
    let refresh_frequency = reader.text("refresh_frequency");
    let data_classification = reader.text("data_classification");
    let pii_flag = reader.fields.boolean("pii_flag");
    let pii_flag = reader.take(pii_flag).flatten();
    let (updated_by, updated_at) = (reader.required("updated_by"), reader.required_moment("updated_at"));
    Some(ArtifactMetadata {
        artifact: artifact?,
        description,
        tags,
        documentation_url,
        refresh_frequency,
        data_classification,
        pii_flag,
        version: 0,
        updated_by: updated_by?,
        updated_at: updated_at?,
    })
}
