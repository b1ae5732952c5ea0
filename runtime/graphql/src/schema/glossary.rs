//! The terms of the glossary.
//!
//! In: terms of the use case, with the links that the caller may see. Out: the fields that REST sends.

use async_graphql::{Context, Enum, ID, SimpleObject};
use terrane_app::governance::{Page, TermFilter, TermView};
use terrane_app::ports::governance_records::TermStatus;
use terrane_wire::governance as wire;

use super::governance::service;
use super::inputs::checked_limit;
use super::request::state;
use crate::failure::Failure;

const DEFAULT_LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1_000;

/// The status of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum GlossaryStatus {
    Draft,
    Approved,
    Archived,
}

/// A term of the glossary.
#[derive(SimpleObject)]
pub(crate) struct GlossaryTerm {
    id: ID,
    name: String,
    definition: String,
    synonyms: Vec<String>,
    category: Option<String>,
    subcategory: Option<String>,
    examples: Vec<String>,
    /// The ids of other terms.
    related_terms: Vec<ID>,
    formula: Option<String>,
    owner: Option<String>,
    /// `draft`, `approved` or `archived`.
    status: String,
    /// The links that the caller may see.
    links: Vec<GlossaryLink>,
    created_by: String,
    created_at: String,
    updated_at: String,
    version: u64,
}

/// A link of a term to an artifact or another term.
#[derive(SimpleObject)]
pub(crate) struct GlossaryLink {
    /// `cube`, `measure`, `dimension`, `metric`, `model` or `term`.
    artifact_type: String,
    artifact_id: String,
    /// `defines`, `relates_to` or `synonym_of`.
    relationship: String,
}

/// Returns terms. With `search`, the best matches come first; otherwise terms are ordered by category and name.
///
/// # Errors
/// Governance is switched off, or the limit is invalid.
pub(crate) async fn terms(
    context: &Context<'_>,
    search: Option<String>,
    category: Option<String>,
    status: Option<GlossaryStatus>,
    limit: Option<i64>,
) -> Result<Vec<GlossaryTerm>, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let limit = checked_limit(limit, DEFAULT_LIMIT, MAX_LIMIT)? as usize;
    let (service, request) = (service(context)?, &state.parts.context.request);
    let filter = TermFilter { category, status: status.map(TermStatus::from) };
    let found = match search {
        Some(text) => service.search_terms(&text, &filter, limit, request).await,
        None => service.terms(&filter, &Page::default(), request).await.map(|page| page.terms),
    };
    let mut found = found.map_err(|error| Failure::from(&error))?;
    found.truncate(limit);
    let found: Vec<GlossaryTerm> = found.iter().map(GlossaryTerm::from).collect();
    state.count(context, found.len(), &|list| items(&found, list))?;
    Ok(found)
}

/// Returns one term.
///
/// # Errors
/// Governance is switched off, or the term does not exist.
pub(crate) async fn term(context: &Context<'_>, id: &str) -> Result<GlossaryTerm, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let view = service(context)?.term(id, &state.parts.context.request).await;
    let term = GlossaryTerm::from(&view.map_err(|error| Failure::from(&error))?);
    state.count(context, 1, &|list| items(std::slice::from_ref(&term), list))?;
    Ok(term)
}

/// Returns the number of items in all lists of a name below terms.
fn items(terms: &[GlossaryTerm], list: &str) -> Option<usize> {
    let length: fn(&GlossaryTerm) -> usize = match list {
        "synonyms" => |term| term.synonyms.len(),
        "examples" => |term| term.examples.len(),
        "relatedTerms" => |term| term.related_terms.len(),
        "links" => |term| term.links.len(),
        _ => return None,
    };
    Some(terms.iter().map(length).sum())
}

impl From<GlossaryStatus> for TermStatus {
    fn from(status: GlossaryStatus) -> Self {
        match status {
            GlossaryStatus::Draft => TermStatus::Draft,
            GlossaryStatus::Approved => TermStatus::Approved,
            GlossaryStatus::Archived => TermStatus::Archived,
        }
    }
}

impl From<&TermView> for GlossaryTerm {
    fn from(view: &TermView) -> Self {
        let term = wire::GlossaryTerm::from(view);
        GlossaryTerm {
            id: term.id.into(),
            name: term.name,
            definition: term.definition,
            synonyms: term.synonyms,
            category: term.category,
            subcategory: term.subcategory,
            examples: term.examples,
            related_terms: term.related_terms.into_iter().map(ID::from).collect(),
            formula: term.formula,
            owner: term.owner,
            status: term.status.to_owned(),
            links: term.links.into_iter().map(GlossaryLink::from).collect(),
            created_by: term.created_by,
            created_at: term.created_at,
            updated_at: term.updated_at,
            version: term.version,
        }
    }
}

impl From<wire::TermLink> for GlossaryLink {
    fn from(link: wire::TermLink) -> Self {
        GlossaryLink {
            artifact_type: link.artifact_type.to_owned(),
            artifact_id: link.artifact_id,
            relationship: link.relationship.to_owned(),
        }
    }
}
