//! The glossary: terms, their synonyms, and links to artifacts and to other terms.
//!
//! The name of a term is unique among the terms of its category that are not archived, ignoring case. `defines` links
//! between terms form no cycle. `relates_to` and `synonym_of` are symmetric, so two terms may link to each other with
//! them. A caller does not see links to artifacts that are hidden from it, nor a formula that names a hidden member,
//! metric or cube.

use std::collections::HashSet;
use std::sync::Arc;

use terrane_compiler::model::Member;

use super::artifacts::Sight;
use super::details::term_details;
use super::error::GovernanceError;
use super::page::Page;
use super::service::{Decided, GovernanceService};
use super::state::GovernanceState;
use super::text::{self, TextProblem};
use crate::accounts::Change;
use crate::domain::{Precondition, RequestContext};
use crate::ports::governance_records::{
    ArtifactRef, ArtifactType, GovernedRecord, LinkTarget, RecordChange, Relationship, Term, TermLink, TermStatus,
    unique_name,
};

/// The largest number of terms, including archived terms.
pub(super) const MAX_TERMS: usize = 50_000;
/// The largest number of links of one term.
pub(super) const MAX_LINKS: usize = 1_000;

/// A term to create.
#[derive(Debug, Clone, Default)]
pub struct NewTerm {
    pub name: String,
    pub definition: String,
    pub synonyms: Vec<Arc<str>>,
    pub category: Option<String>,
    pub subcategory: Option<String>,
    pub examples: Vec<Arc<str>>,
    /// The ids of other terms.
    pub related_terms: Vec<Arc<str>>,
    pub formula: Option<String>,
    pub owner: Option<String>,
    pub status: TermStatus,
    pub precondition: Precondition,
}

/// A change of a term. `None` leaves a field unchanged. A list replaces the current list.
#[derive(Debug, Clone, Default)]
pub struct TermChange {
    pub name: Option<String>,
    pub definition: Option<String>,
    pub synonyms: Option<Vec<Arc<str>>>,
    pub category: Change<String>,
    pub subcategory: Change<String>,
    pub examples: Option<Vec<Arc<str>>>,
    pub related_terms: Option<Vec<Arc<str>>>,
    pub formula: Change<String>,
    pub owner: Change<String>,
    pub status: Option<TermStatus>,
    pub precondition: Precondition,
}

/// A link to add or remove.
#[derive(Debug, Clone)]
pub struct LinkRequest {
    pub target: LinkTarget,
    /// The relationship, which is required to add a link; `None` to remove the links of all relationships.
    pub relationship: Option<Relationship>,
    pub precondition: Precondition,
}

/// A selection of terms.
#[derive(Debug, Clone, Default)]
pub struct TermFilter {
    pub category: Option<String>,
    /// The status of the terms; `None` for all except archived terms.
    pub status: Option<TermStatus>,
}

#[derive(Debug, Clone, Default)]
pub struct TermPage {
    pub terms: Vec<TermView>,
    /// The number of terms on all pages.
    pub total: usize,
}

/// A term as the caller sees it.
#[derive(Debug, Clone)]
pub struct TermView {
    /// The term, with the links that the caller may see.
    pub term: Arc<Term>,
    /// The ids and names of related terms that are not archived.
    pub related: Vec<(Arc<str>, Arc<str>)>,
}

impl GovernanceService {
    /// Returns a term.
    ///
    /// # Errors
    /// [`GovernanceError::UnknownTerm`], [`GovernanceError::Store`].
    pub async fn term(&self, id: &str, request: &RequestContext) -> Result<TermView, GovernanceError> {
        self.read(request, |sight, state| Ok(seen(sight, state, find(state, None, id)?))).await
    }

    /// Returns a page of terms, by category and name.
    ///
    /// # Errors
    /// [`GovernanceError::Store`].
    pub async fn terms(
        &self,
        filter: &TermFilter,
        page: &Page,
        request: &RequestContext,
    ) -> Result<TermPage, GovernanceError> {
        self.read(request, |sight, state| {
            let mut found: Vec<&Arc<Term>> = state.terms.values().filter(|term| is_selected(term, filter)).collect();
            found.sort_by_cached_key(|term| (unique_name(term.category.as_deref(), &term.name), term.id.clone()));
            let terms = page.of(found.iter()).map(|term| seen(sight, state, term)).collect();
            Ok(TermPage { terms, total: found.len() })
        })
        .await
    }

    /// Returns the terms that a search finds. Terms with exactly this name come first, then terms with this synonym,
    /// then terms whose name or synonyms contain the text, then terms that contain all words.
    ///
    /// # Errors
    /// [`GovernanceError::Store`].
    pub async fn search_terms(
        &self,
        query: &str,
        filter: &TermFilter,
        limit: usize,
        request: &RequestContext,
    ) -> Result<Vec<TermView>, GovernanceError> {
        self.read(request, |sight, state| {
            let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
            let whole = words.join(" ");
            let ranked = state.terms.values().filter(|term| is_selected(term, filter));
            let ranked = ranked.filter_map(|term| Some((rank(term, &whole, &words)?, term)));
            let mut ranked: Vec<(u8, &Arc<Term>)> = ranked.collect();
            ranked.sort_by(|(one, a), (other, b)| one.cmp(other).then_with(|| (&a.name, &a.id).cmp(&(&b.name, &b.id))));
            Ok(ranked.into_iter().take(limit).map(|(_, term)| seen(sight, state, term)).collect())
        })
        .await
    }

    /// Creates a term.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn create_term(&self, wanted: &NewTerm, request: &RequestContext) -> Result<TermView, GovernanceError> {
        let id = self.new_id();
        self.change(request, |sight, state| {
            wanted.precondition.check_new()?;
            if state.terms.len() >= MAX_TERMS {
                return Err(GovernanceError::TooMany { what: "terms", max: MAX_TERMS });
            }
            let optional = |field, value: &Option<String>| text::optional_line(field, value.as_deref());
            let term = Term {
                id: id.clone(),
                name: text::line("name", &wanted.name)?,
                definition: text::paragraph("definition", &wanted.definition, text::MAX_TEXT)?,
                synonyms: text::lines("synonyms", &wanted.synonyms)?,
                category: optional("category", &wanted.category)?,
                subcategory: optional("subcategory", &wanted.subcategory)?,
                examples: text::paragraphs("examples", &wanted.examples)?,
                related_terms: related(state, &id, &wanted.related_terms)?,
                formula: formula(sight, wanted.formula.as_deref())?,
                formula_by: wanted.formula.as_ref().map(|_| request.caller.user_id.clone()),
                owner: optional("owner", &wanted.owner)?,
                status: wanted.status,
                links: Vec::new(),
                created_by: request.caller.user_id.clone(),
                created_at: sight.now,
                updated_at: sight.now,
                version: 1,
            };
            check_name(state, &term)?;
            Ok(self.term_changed("term_created", None, term, request))
        })
        .await?;
        self.term(&id, request).await
    }

    /// Changes a term.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn change_term(
        &self,
        id: &str,
        wanted: &TermChange,
        request: &RequestContext,
    ) -> Result<TermView, GovernanceError> {
        self.change(request, |sight, state| {
            let before = find(state, None, id)?;
            wanted.precondition.check(before.version, sight.settings.require_if_match)?;
            let line = |field, change: &Change<String>, present: &Option<Arc<str>>| {
                Ok::<_, GovernanceError>(match change {
                    Change::Keep => present.clone(),
                    Change::Remove => None,
                    Change::Set(value) => text::optional_line(field, Some(value))?,
                })
            };
            let mut after = Term::clone(before);
            if let Some(name) = &wanted.name {
                after.name = text::line("name", name)?;
            }
            if let Some(definition) = &wanted.definition {
                after.definition = text::paragraph("definition", definition, text::MAX_TEXT)?;
            }
            if let Some(synonyms) = &wanted.synonyms {
                after.synonyms = text::lines("synonyms", synonyms)?;
            }
            if let Some(examples) = &wanted.examples {
                after.examples = text::paragraphs("examples", examples)?;
            }
            if let Some(terms) = &wanted.related_terms {
                after.related_terms = related(state, &before.id, terms)?;
            }
            after.category = line("category", &wanted.category, &before.category)?;
            after.subcategory = line("subcategory", &wanted.subcategory, &before.subcategory)?;
            after.owner = line("owner", &wanted.owner, &before.owner)?;
            match &wanted.formula {
                Change::Keep => {}
                // A hidden formula is sent to the caller as null. If the caller sends the term back, null must not
                // remove it.
                Change::Remove if hides_formula(sight, before) => {}
                Change::Remove => after.formula = None,
                Change::Set(text) => {
                    let text = formula(sight, Some(text))?;
                    if text != before.formula || hides_formula(sight, before) {
                        (after.formula, after.formula_by) = (text, Some(request.caller.user_id.clone()));
                    }
                }
            }
            after.status = wanted.status.unwrap_or(before.status);
            if after == **before {
                return match wanted.is_empty() {
                    true => Err(GovernanceError::NothingToChange),
                    false => Ok(Decided::nothing(())),
                };
            }
            check_name(state, &after)?;
            let event = match (before.status, after.status) {
                (TermStatus::Archived, TermStatus::Archived) => "term_changed",
                (_, TermStatus::Archived) => "term_archived",
                _ => "term_changed",
            };
            (after.version, after.updated_at) = (before.version + 1, sight.now);
            Ok(self.term_changed(event, Some(before), after, request))
        })
        .await?;
        self.term(id, request).await
    }

    /// Archives a term. Its name can be used again.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn archive_term(
        &self,
        id: &str,
        precondition: &Precondition,
        request: &RequestContext,
    ) -> Result<(), GovernanceError> {
        self.change(request, |sight, state| {
            let before = find(state, None, id)?;
            precondition.check(before.version, sight.settings.require_if_match)?;
            if before.status == TermStatus::Archived {
                return Err(GovernanceError::ArchivedTerm);
            }
            let after = Term {
                status: TermStatus::Archived,
                version: before.version + 1,
                updated_at: sight.now,
                ..Term::clone(before)
            };
            Ok(self.term_changed("term_archived", Some(before), after, request))
        })
        .await
    }

    /// Links a term to an artifact or to another term.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn link_term(
        &self,
        id: &str,
        wanted: &LinkRequest,
        request: &RequestContext,
    ) -> Result<TermView, GovernanceError> {
        self.change(request, |sight, state| {
            let before = find(state, None, id)?;
            wanted.precondition.check(before.version, sight.settings.require_if_match)?;
            if before.status == TermStatus::Archived {
                return Err(GovernanceError::ArchivedTerm);
            }
            let relationship = wanted.relationship.unwrap_or(Relationship::RelatesTo);
            match &wanted.target {
                LinkTarget::Artifact(artifact) => sight.require("artifact_id", artifact)?,
                LinkTarget::Term(other) => {
                    let other = find(state, Some("artifact_id"), other)?;
                    if other.status == TermStatus::Archived {
                        return Err(GovernanceError::ArchivedTerm);
                    }
                    check_cycle(state, before, other, relationship)?;
                }
            }
            let is_same = |link: &TermLink| link.target == wanted.target && link.relationship == relationship;
            if before.links.iter().any(is_same) {
                return Err(GovernanceError::LinkExists);
            }
            if before.links.len() >= MAX_LINKS {
                return Err(GovernanceError::TooMany { what: "links of one term", max: MAX_LINKS });
            }
            let mut after = Term { version: before.version + 1, updated_at: sight.now, ..Term::clone(before) };
            after.links.push(TermLink {
                target: wanted.target.clone(),
                relationship,
                linked_by: request.caller.user_id.clone(),
                linked_at: sight.now,
            });
            Ok(self.term_changed("term_linked", Some(before), after, request))
        })
        .await?;
        self.term(id, request).await
    }

    /// Removes a link of a term.
    ///
    /// # Errors
    /// [`GovernanceError`]; nothing is changed.
    pub async fn unlink_term(
        &self,
        id: &str,
        wanted: &LinkRequest,
        request: &RequestContext,
    ) -> Result<TermView, GovernanceError> {
        self.change(request, |sight, state| {
            let before = find(state, None, id)?;
            wanted.precondition.check(before.version, sight.settings.require_if_match)?;
            let is_seen = match &wanted.target {
                LinkTarget::Artifact(artifact) => sight.sees_records_of(artifact),
                LinkTarget::Term(_) => true,
            };
            let mut after = Term { version: before.version + 1, updated_at: sight.now, ..Term::clone(before) };
            after.links.retain(|link| {
                link.target != wanted.target || wanted.relationship.is_some_and(|of| of != link.relationship)
            });
            if !is_seen || after.links.len() == before.links.len() {
                return Err(GovernanceError::UnknownLink);
            }
            Ok(self.term_changed("term_unlinked", Some(before), after, request))
        })
        .await?;
        self.term(id, request).await
    }

    fn term_changed(
        &self,
        event: &'static str,
        before: Option<&Arc<Term>>,
        after: Term,
        request: &RequestContext,
    ) -> Decided<()> {
        let mut entry = self.entry(event, request, format!("term:{}", after.id));
        (entry.before, entry.after) = (before.map(|term| term_details(term)), Some(term_details(&after)));
        let record = GovernedRecord::Term(Arc::new(after));
        Decided { changes: vec![RecordChange { record, entry }], question: None, result: () }
    }
}

impl TermChange {
    fn is_empty(&self) -> bool {
        let lines = [&self.category, &self.subcategory, &self.formula, &self.owner];
        let lists = [&self.synonyms, &self.examples, &self.related_terms];
        self.name.is_none()
            && self.definition.is_none()
            && self.status.is_none()
            && lines.into_iter().all(|line| *line == Change::Keep)
            && lists.into_iter().all(Option::is_none)
    }
}

fn find<'s>(
    state: &'s GovernanceState,
    field: Option<&'static str>,
    id: &str,
) -> Result<&'s Arc<Term>, GovernanceError> {
    let unknown = || GovernanceError::UnknownTerm { field, id: id.chars().take(200).collect::<String>().into() };
    state.terms.get(id).ok_or_else(unknown)
}

fn is_selected(term: &Term, filter: &TermFilter) -> bool {
    let category = filter.category.as_deref().map(|text| text.trim().to_lowercase());
    let is_of_category =
        category.is_none_or(|category| term.category.as_deref().is_some_and(|own| own.to_lowercase() == category));
    is_of_category
        && match filter.status {
            Some(status) => term.status == status,
            None => term.status != TermStatus::Archived,
        }
}

/// Returns the rank of a term in a search, 0 for the best match; `None` if the search does not find it.
fn rank(term: &Term, whole: &str, words: &[String]) -> Option<u8> {
    let name = term.name.to_lowercase();
    let synonyms: Vec<String> = term.synonyms.iter().map(|synonym| synonym.to_lowercase()).collect();
    if words.is_empty() {
        return Some(0);
    }
    if name == whole {
        return Some(0);
    }
    if synonyms.iter().any(|synonym| synonym == whole) {
        return Some(1);
    }
    if name.starts_with(whole) {
        return Some(2);
    }
    if name.contains(whole) || synonyms.iter().any(|synonym| synonym.contains(whole)) {
        return Some(3);
    }
    let text = format!("{name}\n{}\n{}", synonyms.join("\n"), term.definition.to_lowercase());
    words.iter().all(|word| text.contains(word.as_str())).then_some(4)
}

/// Returns a term with the links and the formula that the caller may see.
pub(super) fn seen(sight: &Sight<'_>, state: &GovernanceState, term: &Arc<Term>) -> TermView {
    let is_seen = |link: &TermLink| match &link.target {
        LinkTarget::Artifact(artifact) => sight.sees_records_of(artifact),
        LinkTarget::Term(id) => state.terms.get(id).is_some_and(|term| term.status != TermStatus::Archived),
    };
    let has_hidden_formula = hides_formula(sight, term);
    let related = term.related_terms.iter().filter_map(|id| state.terms.get(id));
    let related = related.filter(|term| term.status != TermStatus::Archived);
    let related = related.map(|term| (term.id.clone(), term.name.clone())).collect();
    if !has_hidden_formula && term.links.iter().all(is_seen) {
        return TermView { term: term.clone(), related };
    }
    let formula = term.formula.clone().filter(|_| !has_hidden_formula);
    let links = term.links.iter().filter(|link| is_seen(link)).cloned().collect();
    TermView { term: Arc::new(Term { formula, links, ..Term::clone(term) }), related }
}

/// Returns whether the formula of a term names a member, a metric or a cube that the caller may not see. A formula of
/// the caller itself may contain any word: if it were hidden, the caller would learn that the word is a hidden name.
fn hides_formula(sight: &Sight<'_>, term: &Term) -> bool {
    let is_own = |by: &Arc<str>| !by.is_empty() && *by == sight.caller.user_id;
    term.formula.as_deref().is_some_and(|formula| {
        unseen_member(sight, formula).is_some()
            || !term.formula_by.as_ref().is_some_and(is_own) && has_hidden_name(sight, formula)
    })
}

/// Checks that no other term of the category has the name.
fn check_name(state: &GovernanceState, term: &Term) -> Result<(), GovernanceError> {
    let Some(name) = term.unique_name() else { return Ok(()) };
    let mut others = state.terms.values().filter(|other| other.id != term.id);
    match others.find(|other| other.unique_name().is_some_and(|taken| taken == name)) {
        Some(other) => Err(GovernanceError::TermExists { name: term.name.clone(), id: other.id.clone() }),
        None => Ok(()),
    }
}

/// Reads the ids of related terms.
fn related(state: &GovernanceState, own: &str, ids: &[Arc<str>]) -> Result<Vec<Arc<str>>, GovernanceError> {
    let ids = text::lines("related_terms", ids)?;
    for id in &ids {
        if **id == *own {
            return Err(TextProblem::SameTerm.of("related_terms"));
        }
        find(state, Some("related_terms"), id)?;
    }
    Ok(ids)
}

/// Reads a formula. Each `cube.member` in it must exist for the caller. Words without a dot are not checked, because an
/// error would distinguish a hidden metric from an unknown name.
fn formula(sight: &Sight<'_>, formula: Option<&str>) -> Result<Option<Arc<str>>, GovernanceError> {
    let Some(text) = text::notes("formula", formula)? else { return Ok(None) };
    match unseen_member(sight, &text) {
        Some(name) => Err(TextProblem::UnknownMember { name: name.into() }.of("formula")),
        None => Ok(Some(text)),
    }
}

/// Returns the first `cube.member` of a formula that does not exist for the caller.
fn unseen_member<'f>(sight: &Sight<'_>, formula: &'f str) -> Option<&'f str> {
    let is_name = |text: &str| text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let is_member = |cube: &str, member: &str| is_name(cube) && is_name(member);
    words(formula).find(|word| {
        word.split_once('.').is_some_and(|(cube, name)| is_member(cube, name) && is_unseen_member(sight, cube, name))
    })
}

/// Returns whether a word of a formula is the name of a metric or cube that is hidden from the caller.
fn has_hidden_name(sight: &Sight<'_>, formula: &str) -> bool {
    let is_hidden = |word: &str| {
        [ArtifactType::Metric, ArtifactType::Cube].into_iter().any(|kind| {
            let artifact = ArtifactRef::new(kind, word);
            sight.exists(&artifact) && !sight.sees(&artifact)
        })
    };
    !sight.sees_everything() && words(formula).any(|word| !word.contains('.') && is_hidden(word))
}

fn words(formula: &str) -> impl Iterator<Item = &str> {
    formula.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).map(|word| word.trim_matches('.'))
}

/// Returns whether a member does not exist for the caller.
fn is_unseen_member(sight: &Sight<'_>, cube: &str, name: &str) -> bool {
    let of = sight.snapshot.model.cube_named(cube).and_then(|cube| cube.member(name));
    let kind = match of {
        Some(Member::Measure(_)) => ArtifactType::Measure,
        Some(Member::Dimension(_)) => ArtifactType::Dimension,
        Some(Member::Segment(_)) | None => return true,
    };
    !sight.sees(&ArtifactRef::new(kind, format!("{cube}.{name}")))
}

/// Checks that a new link does not close a cycle. Only `defines` links form cycles; besides, no term links to itself.
pub(super) fn check_cycle(
    state: &GovernanceState,
    from: &Term,
    to: &Arc<Term>,
    relationship: Relationship,
) -> Result<(), GovernanceError> {
    if from.id == to.id {
        return Err(GovernanceError::Cycle { names: vec![from.name.to_string(), from.name.to_string()] });
    }
    if relationship != Relationship::Defines {
        return Ok(());
    }
    // The paths to follow. The links of the last term of each path have not been followed yet.
    let mut open: Vec<Vec<&Arc<Term>>> = vec![vec![to]];
    let mut visited: HashSet<&str> = HashSet::new();
    while let Some(path) = open.pop() {
        let Some(last) = path.last().copied().filter(|last| visited.insert(&last.id)) else { continue };
        for link in last.links.iter().filter(|link| link.relationship == Relationship::Defines) {
            let LinkTarget::Term(id) = &link.target else { continue };
            if *id == from.id {
                let names = [&from.name].into_iter().chain(path.iter().map(|term| &term.name)).chain([&from.name]);
                return Err(GovernanceError::Cycle { names: names.map(ToString::to_string).collect() });
            }
            if let Some(next) = state.terms.get(id).filter(|term| term.status != TermStatus::Archived) {
                open.push(path.iter().copied().chain([next]).collect());
            }
        }
    }
    Ok(())
}
