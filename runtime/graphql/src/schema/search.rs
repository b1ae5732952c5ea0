//! Search of cubes, members, metrics and values, and suggestions while a user types.
//!
//! In: hits of the use case. Out: their strings, with the parts that match. The warnings of a search are extensions of
//! the response, because the fields are lists.

use async_graphql::{Context, SimpleObject};
use terrane_app::search::{
    DEFAULT_LIMIT, DEFAULT_SUGGESTIONS, Hit, HitType, Hits, MAX_LIMIT, SearchError, SearchRequest, SearchService,
    SuggestionRequest,
};
use terrane_wire::ErrorBody;
use terrane_wire::search::SearchHit;

use super::cube::Certification;
use super::inputs::checked_limit;
use super::request::state;
use crate::enums::{CertificationStatus, SearchType};
use crate::failure::Failure;

/// A cube, member or metric that matches, or a value of a dimension.
#[derive(SimpleObject)]
pub(crate) struct SearchResult {
    #[graphql(name = "type")]
    ty: SearchType,
    /// The name in queries, such as `orders.revenue`; for a value, the name of its dimension.
    name: String,
    /// The value that matches, as a filter takes it; null unless the type is `VALUE`.
    value: Option<String>,
    /// The cube of a member.
    cube: Option<String>,
    title: String,
    description: Option<String>,
    tags: Vec<String>,
    /// The texts that match. The first one is the reason of the hit.
    matches: Vec<SearchMatch>,
    /// Null without governance.
    certification: Option<Certification>,
    /// The ids of users and teams.
    owners: Vec<String>,
}

/// A name, tag, owner, unit, description or value that matches.
#[derive(SimpleObject)]
pub(crate) struct SearchMatch {
    /// `name`, `title`, `synonym`, `tag`, `owner`, `unit`, `description` or `value`.
    field: String,
    text: String,
    /// The parts that match: the start and the exclusive end of each, in Unicode code points from 0.
    ranges: Vec<Vec<u32>>,
}

/// The hits that a search selects.
pub(crate) struct SearchFilter {
    pub(crate) types: Option<Vec<SearchType>>,
    pub(crate) cube: Option<String>,
    pub(crate) tags: Option<Vec<String>>,
    pub(crate) status: Option<CertificationStatus>,
}

/// Returns the cubes, members, metrics and values that a search finds.
///
/// # Errors
/// The text or the limit is invalid, the cube is unknown, or the document resolves too many fields.
pub(crate) async fn search(
    context: &Context<'_>,
    text: String,
    filter: SearchFilter,
    limit: Option<i64>,
) -> Result<Vec<SearchResult>, Failure> {
    let request = SearchRequest {
        text,
        types: filter.types.unwrap_or_default().into_iter().map(HitType::from).collect(),
        cube: filter.cube,
        tags: filter.tags.unwrap_or_default(),
        status: filter.status.map(Into::into),
        limit: checked(limit, DEFAULT_LIMIT)?,
    };
    let found = service(context)?.search(&request, &state(context).parts.context.request).await;
    results(context, found)
}

/// Returns suggestions for the beginning of a search.
///
/// # Errors
/// The text, the cube or the limit is invalid, or the document resolves too many fields.
pub(crate) async fn suggestions(
    context: &Context<'_>,
    text: String,
    filter: SearchFilter,
    limit: Option<i64>,
) -> Result<Vec<SearchResult>, Failure> {
    let request = SuggestionRequest {
        text,
        cube: filter.cube,
        types: filter.types.unwrap_or_default().into_iter().map(HitType::from).collect(),
        tags: filter.tags.unwrap_or_default(),
        status: filter.status.map(Into::into),
        limit: checked(limit, DEFAULT_SUGGESTIONS)?,
    };
    let found = service(context)?.suggest(&request, &state(context).parts.context.request).await;
    results(context, found)
}

fn service<'c>(context: &Context<'c>) -> Result<&'c SearchService, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let off = || ErrorBody::new(terrane_wire::Code::NotFound, "search is switched off on this server").into();
    state.parts.services.search.as_deref().ok_or_else(off)
}

fn checked(limit: Option<i64>, default: usize) -> Result<usize, Failure> {
    checked_limit(limit, default as u32, MAX_LIMIT as u32).map(|limit| limit as usize)
}

fn results(context: &Context<'_>, found: Result<Hits, SearchError>) -> Result<Vec<SearchResult>, Failure> {
    let found = found?;
    let results: Vec<SearchResult> = found.hits.iter().map(SearchResult::from).collect();
    let matches = results.iter().map(|result| result.matches.len()).sum();
    state(context).count(context, results.len(), &|list| (list == "matches").then_some(matches))?;
    state(context).warn(context, &found.warnings);
    Ok(results)
}

impl From<&Hit> for SearchResult {
    fn from(hit: &Hit) -> Self {
        let ty = SearchType::from(hit.hit_type());
        let certification = hit.badge().map(Certification::from);
        let hit = SearchHit::from(hit);
        SearchResult {
            ty,
            name: hit.name.to_owned(),
            value: hit.value.map(str::to_owned),
            cube: hit.cube.map(str::to_owned),
            title: hit.title.to_owned(),
            description: hit.description.map(str::to_owned),
            tags: hit.tags.into_iter().map(str::to_owned).collect(),
            matches: hit.matches.iter().map(SearchMatch::from).collect(),
            certification,
            owners: hit.owners.iter().map(|owner| owner.id.to_owned()).collect(),
        }
    }
}

impl From<&terrane_wire::search::SearchMatch<'_>> for SearchMatch {
    fn from(found: &terrane_wire::search::SearchMatch<'_>) -> Self {
        let ranges = found.ranges.iter().map(|[start, end]| vec![*start as u32, *end as u32]);
        SearchMatch { field: found.field.to_owned(), text: found.text.to_owned(), ranges: ranges.collect() }
    }
}
