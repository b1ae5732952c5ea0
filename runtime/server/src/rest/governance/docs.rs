//! The description of governance.

use terrane_wire::governance::bulk::{GovernanceBulk, GovernanceBulkResults};
use terrane_wire::governance::report::GovernanceReport;
use terrane_wire::governance::transfer::{GovernanceImport, GovernanceRecords};
use terrane_wire::governance::{
    ArtifactMetadataPatch, ArtifactOwners, Certification, CertificationApproval, CertificationDeprecation,
    CertificationRejection, CertificationStep, CertificationSubmission, Certifications, GlossaryLink, GlossaryTerm,
    GlossaryTermPage, GlossaryTermPatch, GlossaryTerms, GovernanceHistory, GovernedArtifact, GovernedArtifacts,
    NewGlossaryTerm, NewOwner, OwnedArtifacts, OwnerAssignment,
};
use terrane_wire::{Code, schema};

use crate::openapi::{Compression, Content, Doc, Parameter, ParameterKind, RequestBody, ResponseDoc};
use crate::rest::conditional::IF_MATCH_HEADER;

const TAG: &str = "governance";

const CERTIFICATION: Content = Content::Json(schema::of::<Certification>());
const GLOSSARY_TERM: Content = Content::Json(schema::of::<GlossaryTerm>());
const GLOSSARY_TERMS: Content = Content::Json(schema::of::<GlossaryTerms>());
const ARTIFACT_OWNERS: Content = Content::Json(schema::of::<ArtifactOwners>());

const TERM_ID: Parameter = Parameter::path("term_id", "the id of a term");
const ARTIFACT_TYPE: Parameter =
    Parameter::query("artifact_type", ParameterKind::String, "`cube`, `measure`, `dimension`, `metric` or `model`");
const ARTIFACT_ID: Parameter =
    Parameter::query("artifact_id", ParameterKind::String, "such as `orders` or `orders.revenue`");
const LIMIT: Parameter =
    Parameter::query("limit", ParameterKind::Within(1, 500), "the maximum number of items; default 50");

const ALL_LIMIT: Parameter =
    Parameter::query("limit", ParameterKind::Within(1, 500), "the maximum number of items; default: all");
const OFFSET: Parameter = Parameter::query("offset", ParameterKind::Integer(0), "the number of items to skip");

/// The errors of a change of a record with a version.
const OF_CHANGES: &[Code] = &[Code::NotFound, Code::Conflict, Code::PreconditionFailed, Code::PreconditionRequired];

const fn described(status: u16, description: &'static str, content: &'static [Content]) -> ResponseDoc {
    ResponseDoc { status, description, content, compression: Compression::Accepted }
}

const OF_MOVES: &[ResponseDoc] = &[described(200, "the certification with its new status", &[CERTIFICATION])];

/// Describes a move of certification.
const fn of_move(id: &'static str, summary: &'static str, body: schema::SchemaOf) -> Doc {
    Doc {
        id,
        tag: TAG,
        summary,
        parameters: &[IF_MATCH_HEADER],
        body: Some(RequestBody::required(body)),
        answers: OF_MOVES,
        errors: OF_CHANGES,
        detail_errors: &[],
    }
}

pub(super) static SUBMIT: Doc =
    of_move("submit_certification", "Submit a draft for certification", schema::of::<CertificationSubmission>());

pub(super) static CERTIFY: Doc = of_move(
    "certify_artifact",
    "Certify the current definition of a submitted artifact, as a reviewer who did not submit it",
    schema::of::<CertificationApproval>(),
);

pub(super) static REJECT: Doc = of_move(
    "reject_certification",
    "Reject a submitted artifact, as a reviewer",
    schema::of::<CertificationRejection>(),
);

pub(super) static DEPRECATE: Doc = of_move(
    "deprecate_artifact",
    "Deprecate a certified artifact, as a reviewer or an owner",
    schema::of::<CertificationDeprecation>(),
);

pub(super) static ARCHIVE: Doc = of_move(
    "archive_artifact",
    "Archive a draft or a deprecated artifact, as a reviewer or an owner",
    schema::of::<CertificationStep>(),
);

pub(super) static RESTORE: Doc = of_move(
    "restore_artifact",
    "Restore a deprecated artifact as a draft, as a reviewer or an owner",
    schema::of::<CertificationStep>(),
);

pub(super) static STATUS: Doc = Doc {
    id: "certification_status",
    tag: TAG,
    summary: "Read the certification of an artifact; an artifact without a record is a draft of version 0",
    parameters: &[ARTIFACT_TYPE, ARTIFACT_ID],
    body: None,
    answers: &[described(200, "the certification", &[CERTIFICATION])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

pub(super) static LIST: Doc = Doc {
    id: "certifications",
    tag: TAG,
    summary: "List the recorded certifications, by artifact; with the status `draft`, also artifacts without a record",
    parameters: &[
        Parameter::query(
            "status",
            ParameterKind::String,
            "`draft`, `pending_review`, `certified`, `deprecated` or `archived`",
        ),
        ARTIFACT_TYPE,
        ALL_LIMIT,
        OFFSET,
    ],
    body: None,
    answers: &[described(200, "certifications", &[Content::Json(schema::of::<Certifications>())])],
    errors: &[],
    detail_errors: &[],
};

const CATEGORY: Parameter = Parameter::query("category", ParameterKind::String, "a category; case is ignored");
const TERM_STATUS: Parameter = Parameter::query(
    "status",
    ParameterKind::String,
    "`draft`, `approved` or `archived`; default: all terms that are not archived",
);

pub(super) static CREATE_TERM: Doc = Doc {
    id: "create_glossary_term",
    tag: TAG,
    summary: "Create a term; its name must be unique in its category",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<NewGlossaryTerm>())),
    answers: &[described(201, "the term", &[GLOSSARY_TERM])],
    errors: &[Code::NotFound, Code::Conflict, Code::PreconditionFailed],
    detail_errors: &[],
};

pub(super) static TERMS: Doc = Doc {
    id: "glossary_terms",
    tag: TAG,
    summary: "List terms, by category and name",
    parameters: &[CATEGORY, TERM_STATUS, ALL_LIMIT, OFFSET],
    body: None,
    answers: &[described(200, "terms", &[Content::Json(schema::of::<GlossaryTermPage>())])],
    errors: &[],
    detail_errors: &[],
};

pub(super) static TERM: Doc = Doc {
    id: "glossary_term",
    tag: TAG,
    summary: "Read a term",
    parameters: &[TERM_ID],
    body: None,
    answers: &[described(200, "the term", &[GLOSSARY_TERM])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

pub(super) static CHANGE_TERM: Doc = Doc {
    id: "change_glossary_term",
    tag: TAG,
    summary: "Change a term; omitted fields stay unchanged",
    parameters: &[TERM_ID, IF_MATCH_HEADER],
    body: Some(RequestBody::required(schema::of::<GlossaryTermPatch>())),
    answers: &[described(200, "the term after the change", &[GLOSSARY_TERM])],
    errors: OF_CHANGES,
    detail_errors: &[],
};

pub(super) static ARCHIVE_TERM: Doc = Doc {
    id: "archive_glossary_term",
    tag: TAG,
    summary: "Archive a term; it remains readable, and its name can be used again",
    parameters: &[TERM_ID, IF_MATCH_HEADER],
    body: None,
    answers: &[described(204, "the term is archived", &[])],
    errors: OF_CHANGES,
    detail_errors: &[],
};

pub(super) static LINK: Doc = Doc {
    id: "link_glossary_term",
    tag: TAG,
    summary: "Link a term to an artifact or to another term; a link that closes a cycle is refused",
    parameters: &[TERM_ID, IF_MATCH_HEADER],
    body: Some(RequestBody::required(schema::of::<GlossaryLink>())),
    answers: &[described(201, "the term after the change", &[GLOSSARY_TERM])],
    errors: OF_CHANGES,
    detail_errors: &[],
};

pub(super) static UNLINK: Doc = Doc {
    id: "unlink_glossary_term",
    tag: TAG,
    summary: "Remove a link from a term",
    parameters: &[
        TERM_ID,
        Parameter::query(
            "artifact_type",
            ParameterKind::String,
            "the type of the target: a type of artifact, or `term`",
        ),
        Parameter::query("artifact_id", ParameterKind::String, "the id of the target"),
        Parameter::query(
            "relationship",
            ParameterKind::String,
            "`defines`, `relates_to` or `synonym_of`; default: all relationships",
        ),
        IF_MATCH_HEADER,
    ],
    body: None,
    answers: &[described(200, "the term after the change", &[GLOSSARY_TERM])],
    errors: OF_CHANGES,
    detail_errors: &[],
};

pub(super) static SEARCH_TERMS: Doc = Doc {
    id: "search_glossary",
    tag: TAG,
    summary: "Search terms whose name, synonyms or definition contain all words, best match first",
    parameters: &[
        Parameter::query("query", ParameterKind::String, "the words to search for"),
        CATEGORY,
        TERM_STATUS,
        LIMIT,
    ],
    body: None,
    answers: &[described(200, "terms", &[GLOSSARY_TERMS])],
    errors: &[],
    detail_errors: &[],
};

pub(super) static ASSIGN: Doc = Doc {
    id: "assign_owner",
    tag: TAG,
    summary: "Assign an owner to an artifact",
    parameters: &[IF_MATCH_HEADER],
    body: Some(RequestBody::required(schema::of::<NewOwner>())),
    answers: &[described(201, "the assignment", &[Content::Json(schema::of::<OwnerAssignment>())])],
    errors: OF_CHANGES,
    detail_errors: &[],
};

pub(super) static OWNERS: Doc = Doc {
    id: "owners",
    tag: TAG,
    summary: "List the owners of an artifact",
    parameters: &[ARTIFACT_TYPE, ARTIFACT_ID],
    body: None,
    answers: &[described(200, "the owners", &[ARTIFACT_OWNERS])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

pub(super) static REMOVE_OWNER: Doc = Doc {
    id: "remove_owner",
    tag: TAG,
    summary: "Remove an assigned owner",
    parameters: &[
        ARTIFACT_TYPE,
        ARTIFACT_ID,
        Parameter::query("owner_id", ParameterKind::String, "the user id or the name of the group"),
        Parameter::query("owner_type", ParameterKind::String, "`user` or `team`; default: both"),
        Parameter::query(
            "role",
            ParameterKind::String,
            "`data_owner`, `data_steward` or `technical_owner`; default: all roles",
        ),
        IF_MATCH_HEADER,
    ],
    body: None,
    answers: &[described(200, "the owners after the change", &[ARTIFACT_OWNERS])],
    errors: OF_CHANGES,
    detail_errors: &[],
};

pub(super) static BY_OWNER: Doc = Doc {
    id: "artifacts_by_owner",
    tag: TAG,
    summary: "List the artifacts of an owner",
    parameters: &[
        Parameter::query("owner_id", ParameterKind::String, "a user id, or the name of a group"),
        Parameter::query("owner_type", ParameterKind::String, "`user` or `team`; default: both"),
    ],
    body: None,
    answers: &[described(
        200,
        "artifacts with the roles of the owner",
        &[Content::Json(schema::of::<OwnedArtifacts>())],
    )],
    errors: &[],
    detail_errors: &[],
};

pub(super) static SEARCH_ARTIFACTS: Doc = Doc {
    id: "search_artifacts",
    tag: TAG,
    summary: "Search artifacts by words, tags and certification, best match first; without parameters, list all artifacts",
    parameters: &[
        Parameter::query("query", ParameterKind::String, "words to find in ids, titles, descriptions, tags and terms"),
        Parameter::query("tags", ParameterKind::String, "tags that the artifact has, separated by commas").repeated(),
        Parameter::query(
            "certification_status",
            ParameterKind::String,
            "`draft`, `pending_review`, `certified`, `deprecated` or `archived`",
        ),
        ARTIFACT_TYPE,
        LIMIT,
        Parameter::query("offset", ParameterKind::Integer(0), "the number of artifacts to skip"),
    ],
    body: None,
    answers: &[described(200, "a page of artifacts", &[Content::Json(schema::of::<GovernedArtifacts>())])],
    errors: &[],
    detail_errors: &[],
};

pub(super) static CATALOG: Doc = Doc {
    id: "governance_catalog",
    tag: TAG,
    summary: "List the artifacts that the caller may see, by type and id",
    parameters: &[
        Parameter::query("type", ParameterKind::String, "`cube`, `measure`, `dimension`, `metric` or `model`"),
        Parameter::query("cube", ParameterKind::String, "a cube, which selects the cube and its members"),
        Parameter::query("tag", ParameterKind::String, "a tag that the artifact has; may be repeated").repeated(),
        Parameter::query(
            "certification",
            ParameterKind::String,
            "`draft`, `pending_review`, `certified`, `deprecated` or `archived`",
        ),
        Parameter::query("owner", ParameterKind::String, "a user id, or the name of a group"),
        LIMIT,
        OFFSET,
    ],
    body: None,
    answers: &[described(200, "a page of artifacts", &[Content::Json(schema::of::<GovernedArtifacts>())])],
    errors: &[],
    detail_errors: &[],
};

const TYPE: Parameter = Parameter::path("type", "`cube`, `measure`, `dimension`, `metric` or `model`");
const ID: Parameter = Parameter::path("id", "such as `orders` or `orders.revenue`");
const GOVERNED_ARTIFACT: Content = Content::Json(schema::of::<GovernedArtifact>());

pub(super) static ARTIFACT: Doc = Doc {
    id: "governed_artifact",
    tag: TAG,
    summary: "Read an artifact with its metadata, owners, certification and terms; each value names its origin",
    parameters: &[TYPE, ID],
    body: None,
    answers: &[described(200, "the artifact", &[GOVERNED_ARTIFACT])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

pub(super) static METADATA: Doc = Doc {
    id: "change_artifact_metadata",
    tag: TAG,
    summary: "Set metadata of an artifact; null restores the value in the project's files",
    parameters: &[TYPE, ID, IF_MATCH_HEADER],
    body: Some(RequestBody::required(schema::of::<ArtifactMetadataPatch>())),
    answers: &[described(200, "the artifact after the change", &[GOVERNED_ARTIFACT])],
    errors: OF_CHANGES,
    detail_errors: &[],
};

pub(super) static HISTORY: Doc = Doc {
    id: "governance_history",
    tag: TAG,
    summary: "List the changes of governed records, newest first",
    parameters: &[
        ARTIFACT_TYPE,
        ARTIFACT_ID,
        Parameter::query("term_id", ParameterKind::String, "the id of a term, instead of an artifact"),
        Parameter::query(
            "before",
            ParameterKind::String,
            "the id of a change: the value of `next` in the previous page",
        ),
        LIMIT,
    ],
    body: None,
    answers: &[described(200, "a page", &[Content::Json(schema::of::<GovernanceHistory>())])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

pub(super) static REPORT: Doc = Doc {
    id: "governance_report",
    tag: TAG,
    summary: "Read the compliance report: the certified share, and artifacts with findings; as CSV, one record for each artifact",
    parameters: &[],
    body: None,
    answers: &[described(
        200,
        "the report",
        &[Content::Json(schema::of::<GovernanceReport>()), Content::Text("text/csv"), Content::Text("text/html")],
    )],
    errors: &[Code::UnsupportedMediaType],
    detail_errors: &[],
};

pub(super) static EXPORT: Doc = Doc {
    id: "export_governance",
    tag: TAG,
    summary: "Export all governed records as YAML, in a fixed order",
    parameters: &[],
    body: None,
    answers: &[described(200, "the records", &[Content::Text("text/plain")])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};

pub(super) static IMPORT: Doc = Doc {
    id: "import_governance",
    tag: TAG,
    summary: "Import governed records in one transaction; the body is an export, in YAML (`application/yaml`) or JSON",
    parameters: &[Parameter::query(
        "dry_run",
        ParameterKind::Boolean,
        "true to validate the records and write nothing; default false",
    )],
    // Generators of clients do not know bodies in YAML.
    body: Some(RequestBody::required(schema::of::<GovernanceRecords>())),
    answers: &[described(
        200,
        "the numbers of created, changed and unchanged records",
        &[Content::Json(schema::of::<GovernanceImport>())],
    )],
    errors: &[
        Code::NotFound,
        Code::Conflict,
        Code::ValidationError,
        Code::RequestTimeout,
        Code::PayloadTooLarge,
        Code::UnsupportedMediaType,
    ],
    detail_errors: &[],
};

pub(super) static BULK: Doc = Doc {
    id: "change_governance",
    tag: TAG,
    summary: "Make up to 100 changes one after another, each with its own status; a failed change does not undo others",
    parameters: &[],
    body: Some(RequestBody::required(schema::of::<GovernanceBulk>())),
    answers: &[described(200, "the results", &[Content::Json(schema::of::<GovernanceBulkResults>())])],
    errors: &[Code::NotFound],
    detail_errors: &[],
};
