//! Search of cubes, members, metrics and values of dimensions by words, and suggestions while a user types.
//!
//! In: words, and the caller. Out: the artifacts that match the text and that the caller may see, best first, with the
//! matching parts of their texts; and values of searchable dimensions ([`values`]). All callers share one index of
//! artifacts ([`entries`]). If metadata does not list an artifact for
//! the caller, the artifact is left out of answers and counts. The terms of the glossary that link to an artifact count
//! as its synonyms. Among similar matches, certified artifacts come first, and deprecated ones last; then those that
//! more queries name. Not here: the index itself (`terrane_search`), and formats.

mod entries;
mod values;

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::Access;
use terrane_compiler::model::CubeId;
use terrane_compiler::text::nearest::nearest;
use terrane_search::{Question, QuestionError};

pub use entries::ArtifactText;
use entries::{Entry, SearchEntries};

use crate::catalog::{Catalog, Snapshot};
use crate::cost::{ExecutionLog, MemberUse};
use crate::dimension_values::lists::ValueLists;
use crate::domain::RequestContext;
use crate::governance::{ArtifactView, Badge, GovernanceService, GovernanceState, Sight};
use crate::metadata;
use crate::ports::governance_records::{ArtifactType, CertificationStatus};

/// The largest number of hits if the request names none.
pub const DEFAULT_LIMIT: usize = 20;
/// The largest number of suggestions if the request names none.
pub const DEFAULT_SUGGESTIONS: usize = 10;
/// The largest number of hits that a request may name.
pub const MAX_LIMIT: usize = 100;
/// The number of matches that are ranked for each hit. Among these, certified artifacts can move to the front.
const RANKED_PER_HIT: usize = 4;
/// The number that is added to the score of a certified artifact.
const CERTIFIED: i64 = 300;
/// The number that is added to the score of a deprecated or archived artifact.
const DEPRECATED: i64 = -600;
/// The number that is added to the score of a suggestion from the cube of the request.
const OF_CONTEXT: i64 = 500;
/// The number that each doubling of an artifact's uses adds to its score.
const DOUBLED_USE: i64 = 25;
/// The largest number that uses add to a score. It is smaller than that of a certification.
const MAX_USE: i64 = 200;
const MAX_NEAREST: usize = 5;
/// The longest time for which a search waits for the values of dimensions.
const SEARCH_WAIT: Duration = Duration::from_secs(2);
/// The longest time for which suggestions wait for the values of dimensions.
const SUGGESTION_WAIT: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    pub text: String,
    /// The types of the hits; empty for all types.
    pub types: Vec<HitType>,
    /// The cube to search: the cube itself, its members, and metrics over its measures.
    pub cube: Option<String>,
    /// The tags that an artifact must have, ignoring case.
    pub tags: Vec<String>,
    /// The required status of certification.
    pub status: Option<CertificationStatus>,
    pub limit: usize,
}

#[derive(Debug, Clone, Default)]
pub struct SuggestionRequest {
    /// The text that the user has typed. Its last word may be unfinished. An empty text suggests everything.
    pub text: String,
    /// The cube whose queries must be able to use the suggested members.
    pub cube: Option<String>,
    /// The types of the suggestions; empty for all types.
    pub types: Vec<HitType>,
    /// The tags that an artifact must have, ignoring case.
    pub tags: Vec<String>,
    /// The required status of certification.
    pub status: Option<CertificationStatus>,
    pub limit: usize,
}

/// The type of a hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HitType {
    Cube,
    Measure,
    Dimension,
    Metric,
    /// A value of a dimension with `meta.searchable`.
    Value,
}

impl HitType {
    pub const ALL: [HitType; 5] =
        [HitType::Cube, HitType::Measure, HitType::Dimension, HitType::Metric, HitType::Value];

    pub fn as_str(self) -> &'static str {
        match self {
            HitType::Cube => "cube",
            HitType::Measure => "measure",
            HitType::Dimension => "dimension",
            HitType::Metric => "metric",
            HitType::Value => "value",
        }
    }

    fn of(kind: ArtifactType) -> Self {
        match kind {
            ArtifactType::Measure => HitType::Measure,
            ArtifactType::Dimension => HitType::Dimension,
            ArtifactType::Metric => HitType::Metric,
            // SQL models are not searched.
            ArtifactType::Cube | ArtifactType::Model => HitType::Cube,
        }
    }
}

/// An artifact that matches, or a value of a dimension.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The artifact; the dimension of a value.
    pub artifact: Arc<ArtifactText>,
    /// The value that matches; `None` if the artifact matches.
    pub value: Option<Arc<str>>,
    pub score: i64,
    /// The texts that match, in descending order of their weight; for a value, only the value.
    pub marks: Vec<Marks>,
    /// The governance records of the artifact; `None` if governance is switched off.
    pub governed: Option<ArtifactView>,
}

/// A name, tag, owner, unit or description of an artifact, with its matching parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    pub field: MarkedField,
    pub text: Arc<str>,
    /// The matching parts as ranges of characters, in order and without overlaps.
    pub parts: Vec<Range<usize>>,
}

/// The fields that a search examines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkedField {
    Name,
    Title,
    /// A synonym from the project's files, or the name or a synonym of a linked glossary term.
    Synonym,
    Tag,
    /// The id of an owner: a user or a team.
    Owner,
    Unit,
    Description,
    /// A value of a dimension.
    Value,
}

impl MarkedField {
    pub const ALL: [MarkedField; 8] = [
        MarkedField::Name,
        MarkedField::Title,
        MarkedField::Synonym,
        MarkedField::Tag,
        MarkedField::Owner,
        MarkedField::Unit,
        MarkedField::Description,
        MarkedField::Value,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            MarkedField::Name => "name",
            MarkedField::Title => "title",
            MarkedField::Synonym => "synonym",
            MarkedField::Tag => "tag",
            MarkedField::Owner => "owner",
            MarkedField::Unit => "unit",
            MarkedField::Description => "description",
            MarkedField::Value => "value",
        }
    }
}

impl Hit {
    pub fn hit_type(&self) -> HitType {
        if self.value.is_some() { HitType::Value } else { HitType::of(self.artifact.reference.kind) }
    }

    /// Returns the certification; `None` if governance is switched off.
    pub fn badge(&self) -> Option<Badge> {
        self.governed.as_ref().map(|view| Badge::of(&view.certification))
    }

    /// Returns the status of certification; `None` if governance is switched off.
    fn status(&self) -> Option<CertificationStatus> {
        self.governed.as_ref().map(|view| view.certification.status)
    }
}

/// The hits of a search, best first.
#[derive(Debug, Clone, Default)]
pub struct Hits {
    pub hits: Vec<Hit>,
    /// True if more artifacts or values match than the limit.
    pub has_more: bool,
    /// The dimensions whose values were not searched, or not all of them.
    pub warnings: Vec<String>,
}

/// The reason why a search is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Question(#[from] QuestionError),
    #[error("unknown cube `{name}`")]
    UnknownCube {
        name: String,
        /// The names of similar cubes, nearest first.
        nearest: Vec<String>,
    },
}

/// Searches the served project.
pub struct SearchService {
    catalog: Arc<Catalog>,
    /// The governance service; `None` if governance is switched off.
    governance: Option<Arc<GovernanceService>>,
    values: Arc<ValueLists>,
    /// The log that counts the uses of members; `None` if queries are not recorded.
    executions: Option<Arc<ExecutionLog>>,
    /// The newest index. The lock is held while an index is built, so that it is built once.
    latest: tokio::sync::Mutex<Option<Arc<SearchEntries>>>,
}

/// The project and the governed records of one request, limited to what the caller may see.
struct CallerView<'a> {
    entries: &'a SearchEntries,
    access: Access<'a>,
    state: &'a GovernanceState,
    /// The caller's view of the governed artifacts; `None` if governance is switched off.
    sight: Option<Sight<'a>>,
    /// The uses of members; `None` if queries are not recorded.
    uses: Option<&'a MemberUse>,
    tenant: Option<&'a Arc<str>>,
}

impl SearchService {
    pub(crate) fn new(
        catalog: Arc<Catalog>,
        governance: Option<Arc<GovernanceService>>,
        values: Arc<ValueLists>,
        executions: Option<Arc<ExecutionLog>>,
    ) -> Self {
        SearchService { catalog, governance, values, executions, latest: tokio::sync::Mutex::default() }
    }

    /// Returns the artifacts and values that match, best first.
    ///
    /// # Errors
    /// The text has no words or is too long, or the cube does not exist for the caller.
    pub async fn search(&self, search: &SearchRequest, request: &RequestContext) -> Result<Hits, SearchError> {
        let question = Question::new(&search.text)?;
        let (snapshot, state) = (self.catalog.snapshot(), self.state().await);
        let entries = self.entries_of(&snapshot, &state).await;
        let view = self.view(&snapshot, &state, &entries, request).await;
        let cube = view.cube(search.cube.as_deref())?;
        let filter = HitFilter::new(&search.types, &search.tags);
        let selects = |entry: &Entry| cube.is_none_or(|cube| view.is_of(entry, cube)) && filter.has_tags(entry);
        let matches = view.entries.index.find_among(&question, |entry| {
            let entry = view.entry(entry);
            filter.has_type(entry) && selects(entry)
        });
        let scored = matches.map(|found| (found.entry, i64::from(found.score)));
        let mut found = view.ranked(&question, scored, search.status, search.limit);
        if filter.wants(HitType::Value) {
            let dimensions = view.dimensions(selects, |_| 0);
            let values = self.values.values(&dimensions.searched, &snapshot, request, SEARCH_WAIT).await;
            view.add_values(&mut found, &question, &dimensions, &values, search.status, search.limit);
        }
        Ok(found.best(search.limit))
    }

    /// Returns suggestions for a string that a user is typing.
    ///
    /// # Errors
    /// The text is too long, or the cube does not exist for the caller.
    pub async fn suggest(&self, wanted: &SuggestionRequest, request: &RequestContext) -> Result<Hits, SearchError> {
        let question = match Question::unfinished(&wanted.text) {
            Ok(question) => Some(question),
            Err(QuestionError::NoWords) => None,
            Err(error) => return Err(error.into()),
        };
        let (snapshot, state) = (self.catalog.snapshot(), self.state().await);
        let entries = self.entries_of(&snapshot, &state).await;
        let view = self.view(&snapshot, &state, &entries, request).await;
        let cube = view.cube(wanted.cube.as_deref())?;
        let joined = cube.map(|cube| view.joined(cube));
        let filter = HitFilter::new(&wanted.types, &wanted.tags);
        let selects = |entry: &Entry| match (cube, &joined) {
            (Some(cube), Some(joined)) => filter.has_tags(entry) && view.combines_with(entry, cube, joined),
            _ => filter.has_tags(entry),
        };
        let is_selected = |entry: &Entry| filter.has_type(entry) && selects(entry);
        let Some(question) = question else { return Ok(view.first(cube, is_selected, wanted.status, wanted.limit)) };
        let bonus = |entry: &Entry| if cube.is_some_and(|cube| view.is_of(entry, cube)) { OF_CONTEXT } else { 0 };
        let matches = view.entries.index.find_among(&question, |entry| is_selected(view.entry(entry)));
        let scored = matches.map(|found| (found.entry, i64::from(found.score) + bonus(view.entry(found.entry))));
        let mut found = view.ranked(&question, scored, wanted.status, wanted.limit);
        if filter.wants(HitType::Value) {
            let dimensions = view.dimensions(selects, bonus);
            let values = self.values.values(&dimensions.searched, &snapshot, request, SUGGESTION_WAIT).await;
            view.add_values(&mut found, &question, &dimensions, &values, wanted.status, wanted.limit);
        }
        Ok(found.best(wanted.limit))
    }

    /// Returns the lists of values, which searches and questions share.
    pub(crate) fn lists(&self) -> &Arc<ValueLists> {
        &self.values
    }

    /// Returns the searchable texts of the artifacts in a snapshot that the caller may see.
    pub(crate) async fn visible(&self, snapshot: &Arc<Snapshot>, request: &RequestContext) -> Vec<Arc<ArtifactText>> {
        let state = self.state().await;
        let entries = self.entries_of(snapshot, &state).await;
        let access = Access::of(&snapshot.model, &request.caller);
        let shown = entries.entries.iter().filter(|entry| entry.is_shown(&access));
        shown.map(|entry| Arc::clone(&entry.text)).collect()
    }

    async fn view<'a>(
        &'a self,
        snapshot: &'a Arc<Snapshot>,
        state: &'a GovernanceState,
        entries: &'a SearchEntries,
        request: &'a RequestContext,
    ) -> CallerView<'a> {
        let access = Access::of(&snapshot.model, &request.caller);
        let sight = self.governance.as_ref().map(|governance| governance.sight(snapshot, request));
        let uses = match &self.executions {
            Some(log) => Some(log.uses().await),
            None => None,
        };
        CallerView { entries, access, state, sight, uses, tenant: request.tenant.as_ref() }
    }

    /// Returns the governed records. If the state database is unavailable, returns those that this process read last.
    async fn state(&self) -> Arc<GovernanceState> {
        match &self.governance {
            Some(governance) => governance.latest_state().await,
            None => Arc::default(),
        }
    }

    /// Returns the index for a snapshot and governed records. If one of them has changed, a new index is built on a
    /// blocking thread.
    async fn entries_of(&self, snapshot: &Arc<Snapshot>, state: &Arc<GovernanceState>) -> Arc<SearchEntries> {
        let mut latest = self.latest.lock().await;
        if let Some(known) = latest.as_ref().filter(|known| known.is_of(snapshot, state)) {
            return Arc::clone(known);
        }
        let (snapshot, state) = (Arc::clone(snapshot), Arc::clone(state));
        let is_governed = self.governance.is_some();
        let make = move || Arc::new(SearchEntries::new(&snapshot, is_governed.then_some(&state)));
        let made = tokio::task::spawn_blocking(make).await;
        let made = made.unwrap_or_else(|broken| std::panic::resume_unwind(broken.into_panic()));
        *latest = Some(Arc::clone(&made));
        made
    }
}

impl CallerView<'_> {
    fn entry(&self, place: u32) -> &Entry {
        &self.entries.entries[place as usize]
    }

    /// Returns the first matches that the caller may see, with the ranks of their certification and use. `matches` are
    /// sorted, best first.
    fn ranked(
        &self,
        question: &Question,
        matches: impl Iterator<Item = (u32, i64)>,
        status: Option<CertificationStatus>,
        limit: usize,
    ) -> RankedHits {
        let found = matches.map(|(entry, score)| (self.entry(entry), score));
        let shown = found.filter(|(entry, _)| entry.is_shown(&self.access));
        let hits = shown.map(|(entry, score)| self.ranked_hit(entry, score));
        let mut hits = hits.filter(|hit| status.is_none_or(|wanted| hit.status() == Some(wanted)));
        let mut best: Vec<Hit> = hits.by_ref().take(RANKED_PER_HIT * limit).collect();
        let has_more = hits.next().is_some();
        sort(&mut best);
        let has_more = has_more || best.len() > limit;
        best.truncate(limit);
        for hit in &mut best {
            hit.marks = marks(question, &hit.artifact);
        }
        RankedHits { hits: best, has_more, warnings: Vec::new() }
    }

    /// Returns suggestions for an empty query: the members of the cube and the cube itself, then metrics over its
    /// measures, then what the cube joins; without a cube, the first artifacts in the order of the index.
    fn first(
        &self,
        cube: Option<CubeId>,
        selects: impl Fn(&Entry) -> bool,
        status: Option<CertificationStatus>,
        limit: usize,
    ) -> Hits {
        let own = || cube.and_then(|cube| self.entries.by_cube.get(&cube)).into_iter().flatten();
        let own = || own().map(|place| self.entry(*place));
        let is_own = |entry: &Entry| cube.is_some() && entry.cube == cube;
        let is_of = |entry: &Entry| cube.is_some_and(|cube| self.is_of(entry, cube));
        let members = own().filter(|entry| is_own(entry)).map(|entry| (entry, 2 * OF_CONTEXT));
        let metrics = own().filter(|entry| !is_own(entry)).map(|entry| (entry, OF_CONTEXT));
        let others = self.entries.entries.iter().filter(|entry| !is_of(entry));
        let all = members.chain(metrics).chain(others.map(|entry| (entry, 0)));
        let shown = all.filter(|(entry, _)| selects(entry) && entry.is_shown(&self.access));
        let hits = shown.map(|(entry, score)| self.hit(entry, score));
        let mut hits = hits.filter(|hit| status.is_none_or(|wanted| hit.status() == Some(wanted)));
        let first = hits.by_ref().take(limit).collect();
        Hits { hits: first, has_more: hits.next().is_some(), warnings: Vec::new() }
    }

    fn ranked_hit(&self, entry: &Entry, score: i64) -> Hit {
        let hit = self.hit(entry, score);
        let rank = hit.status().map_or(0, rank);
        let uses = self.uses.map_or(0, |uses| uses.of(self.tenant, &entry.text.reference.id));
        Hit { score: score + rank + rank_of_uses(uses), ..hit }
    }

    fn hit(&self, entry: &Entry, score: i64) -> Hit {
        let governed = self.sight.as_ref().and_then(|sight| sight.find(self.state, &entry.text.reference));
        Hit { artifact: Arc::clone(&entry.text), value: None, score, marks: Vec::new(), governed }
    }

    /// Returns the cube with a name; `None` if no name is given.
    fn cube(&self, name: Option<&str>) -> Result<Option<CubeId>, SearchError> {
        let Some(name) = name else { return Ok(None) };
        match metadata::cube(&self.access, name) {
            Some(cube) => Ok(Some(cube.id)),
            None => {
                let known = metadata::cubes(&self.access).map(|cube| &*cube.name);
                let nearest = nearest(name, known, MAX_NEAREST).into_iter().map(str::to_owned).collect();
                Err(SearchError::UnknownCube { name: name.chars().take(200).collect(), nearest })
            }
        }
    }

    /// Returns whether an artifact is a cube, one of its members, or a metric over its measures.
    fn is_of(&self, entry: &Entry, cube: CubeId) -> bool {
        entry.cube == Some(cube) || entry.metric_cubes.contains(&cube)
    }

    /// Returns for each cube whether a cube joins it.
    fn joined(&self, cube: CubeId) -> Vec<bool> {
        let paths = self.access.model().join_paths(cube);
        self.access.model().cubes.iter().map(|of| paths.reaches(of.id)).collect()
    }

    /// Returns whether a query of the cube can use an artifact: a member of the cube, a dimension of a cube that it
    /// joins, or a metric over its measures.
    fn combines_with(&self, entry: &Entry, cube: CubeId, joined: &[bool]) -> bool {
        let is_grouped_by = matches!(entry.text.reference.kind, ArtifactType::Dimension | ArtifactType::Cube);
        let is_joined = |of: CubeId| joined.get(of.0 as usize).copied().unwrap_or_default();
        self.is_of(entry, cube) || (is_grouped_by && entry.cube.is_some_and(is_joined))
    }
}

/// The types and tags of the hits that a request selects.
struct HitFilter<'r> {
    /// Empty for all types.
    types: &'r [HitType],
    /// In lower case.
    tags: Vec<String>,
}

impl<'r> HitFilter<'r> {
    fn new(types: &'r [HitType], tags: &[String]) -> Self {
        HitFilter { types, tags: tags.iter().map(|tag| tag.trim().to_lowercase()).collect() }
    }

    fn wants(&self, kind: HitType) -> bool {
        self.types.is_empty() || self.types.contains(&kind)
    }

    fn has_type(&self, entry: &Entry) -> bool {
        self.wants(HitType::of(entry.text.reference.kind))
    }

    fn has_tags(&self, entry: &Entry) -> bool {
        self.tags.iter().all(|tag| entry.text.tags.iter().any(|of| of.to_lowercase() == *tag))
    }
}

/// The best artifacts and values, sorted, at most as many as the limit.
struct RankedHits {
    hits: Vec<Hit>,
    has_more: bool,
    warnings: Vec<String>,
}

impl RankedHits {
    fn best(mut self, limit: usize) -> Hits {
        sort(&mut self.hits);
        let has_more = self.has_more || self.hits.len() > limit;
        self.hits.truncate(limit);
        Hits { hits: self.hits, has_more, warnings: self.warnings }
    }
}

/// Sorts hits, best first. Equal scores stay in their order.
fn sort(hits: &mut [Hit]) {
    hits.sort_by_key(|hit| Reverse(hit.score));
}

fn rank(status: CertificationStatus) -> i64 {
    match status {
        CertificationStatus::Certified => CERTIFIED,
        CertificationStatus::Deprecated | CertificationStatus::Archived => DEPRECATED,
        CertificationStatus::Draft | CertificationStatus::PendingReview => 0,
    }
}

/// Returns the number that uses add to a score.
fn rank_of_uses(uses: u64) -> i64 {
    (DOUBLED_USE * i64::from(uses.saturating_add(1).ilog2())).min(MAX_USE)
}

/// Returns the texts of an artifact that match a question.
fn marks(question: &Question, artifact: &ArtifactText) -> Vec<Marks> {
    let one = |field, text: &Arc<str>| {
        let parts = question.marks(text);
        (!parts.is_empty()).then(|| Marks { field, text: Arc::clone(text), parts })
    };
    let names = [(MarkedField::Name, &artifact.reference.id), (MarkedField::Title, &artifact.title)].into_iter();
    let synonyms = artifact.synonyms.iter().map(|text| (MarkedField::Synonym, text));
    let tags = artifact.tags.iter().map(|text| (MarkedField::Tag, text));
    let owners = artifact.owners.iter().map(|text| (MarkedField::Owner, text));
    let unit = artifact.unit.iter().map(|text| (MarkedField::Unit, text));
    let description = artifact.description.iter().map(|text| (MarkedField::Description, text));
    let texts = names.chain(synonyms).chain(tags).chain(owners).chain(unit).chain(description);
    texts.filter_map(|(field, text)| one(field, text)).collect()
}
