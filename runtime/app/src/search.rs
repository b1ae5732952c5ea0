//! Search of cubes, members and metrics by their names and descriptions, and suggestions while a user types.
//!
//! In: words, and the caller. Out: the artifacts that match the text and that the caller may see, best first, with the
//! matching parts of their texts. All callers share one index ([`entries`]). If metadata does not list an artifact for
//! the caller, the artifact is left out of answers and counts. The terms of the glossary that link to an artifact count
//! as its synonyms. Among similar matches, certified artifacts come first, and deprecated ones last. Not here: the
//! index itself (`terrane_search`), and formats.

mod entries;

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::CubeId;
use terrane_compiler::text::nearest::nearest;
use terrane_search::{Question, QuestionError};

pub use entries::ArtifactText;
use entries::{Entry, SearchEntries};

use crate::catalog::{Catalog, Snapshot};
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
const MAX_NEAREST: usize = 5;

#[derive(Debug, Clone, Default)]
pub struct SearchRequest {
    pub text: String,
    /// The types of the artifacts; empty for all types.
    pub types: Vec<ArtifactType>,
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
    pub limit: usize,
}

/// An artifact that matches.
#[derive(Debug, Clone)]
pub struct Hit {
    pub artifact: Arc<ArtifactText>,
    pub score: i64,
    /// The names, tags and descriptions that match, in descending order of their weight.
    pub marks: Vec<Marks>,
    /// The governance records of the artifact; `None` if governance is switched off.
    pub governed: Option<ArtifactView>,
}

/// A name, tag or description of an artifact, with its matching parts.
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
    Description,
}

impl MarkedField {
    pub const ALL: [MarkedField; 5] =
        [MarkedField::Name, MarkedField::Title, MarkedField::Synonym, MarkedField::Tag, MarkedField::Description];

    pub fn as_str(self) -> &'static str {
        match self {
            MarkedField::Name => "name",
            MarkedField::Title => "title",
            MarkedField::Synonym => "synonym",
            MarkedField::Tag => "tag",
            MarkedField::Description => "description",
        }
    }
}

impl Hit {
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
    /// True if more artifacts match than the limit.
    pub has_more: bool,
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
}

impl SearchService {
    pub fn new(catalog: Arc<Catalog>, governance: Option<Arc<GovernanceService>>) -> Self {
        SearchService { catalog, governance, latest: tokio::sync::Mutex::default() }
    }

    /// Returns the artifacts that match, best first.
    ///
    /// # Errors
    /// The text has no words or is too long, or the cube does not exist for the caller.
    pub async fn search(&self, search: &SearchRequest, request: &RequestContext) -> Result<Hits, SearchError> {
        let question = Question::new(&search.text)?;
        let (snapshot, state) = (self.catalog.snapshot(), self.state().await);
        let entries = self.entries_of(&snapshot, &state).await;
        let view = self.view(&snapshot, &state, &entries, request);
        let cube = view.cube(search.cube.as_deref())?;
        let tags: Vec<String> = search.tags.iter().map(|tag| tag.trim().to_lowercase()).collect();
        let is_wanted = |entry: &Entry| {
            (search.types.is_empty() || search.types.contains(&entry.text.reference.kind))
                && cube.is_none_or(|cube| view.is_of(entry, cube))
                && tags.iter().all(|tag| entry.text.tags.iter().any(|of| of.to_lowercase() == *tag))
        };
        let matches = view.entries.index.find(&question);
        let scored = matches.map(|found| (found.entry, i64::from(found.score)));
        Ok(view.best(&question, scored, is_wanted, search.status, search.limit))
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
        let view = self.view(&snapshot, &state, &entries, request);
        let cube = view.cube(wanted.cube.as_deref())?;
        let is_wanted = |entry: &Entry| cube.is_none_or(|cube| view.combines_with(entry, cube));
        let bonus = |entry: u32| {
            let is_own = cube.is_some_and(|cube| view.is_of(&view.entries.entries[entry as usize], cube));
            if is_own { OF_CONTEXT } else { 0 }
        };
        match question {
            Some(question) => {
                let matches = view.entries.index.find(&question);
                let scored = matches.map(|found| (found.entry, i64::from(found.score) + bonus(found.entry)));
                Ok(view.best(&question, scored, is_wanted, None, wanted.limit))
            }
            // If the text is empty, the members of the cube come before metrics.
            None => {
                let is_own = |entry: u32| cube.is_some() && view.entries.entries[entry as usize].cube == cube;
                let place = |entry: u32| bonus(entry) + if is_own(entry) { OF_CONTEXT } else { 0 };
                Ok(view.first(is_wanted, place, wanted.limit))
            }
        }
    }

    /// Returns the searchable texts of the artifacts in a snapshot that the caller may see.
    pub(crate) async fn visible(&self, snapshot: &Arc<Snapshot>, request: &RequestContext) -> Vec<Arc<ArtifactText>> {
        let state = self.state().await;
        let entries = self.entries_of(snapshot, &state).await;
        let access = Access::of(&snapshot.model, &request.caller);
        let shown = entries.entries.iter().filter(|entry| entry.is_shown(&access));
        shown.map(|entry| Arc::clone(&entry.text)).collect()
    }

    fn view<'a>(
        &'a self,
        snapshot: &'a Arc<Snapshot>,
        state: &'a GovernanceState,
        entries: &'a SearchEntries,
        request: &'a RequestContext,
    ) -> CallerView<'a> {
        let access = Access::of(&snapshot.model, &request.caller);
        let sight = self.governance.as_ref().map(|governance| governance.sight(snapshot, request));
        CallerView { entries, access, state, sight }
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
        let made = tokio::task::spawn_blocking(move || Arc::new(SearchEntries::new(&snapshot, &state))).await;
        let made = made.unwrap_or_else(|broken| std::panic::resume_unwind(broken.into_panic()));
        *latest = Some(Arc::clone(&made));
        made
    }
}

impl CallerView<'_> {
    /// Returns the best matches among those that the request selects and the caller may see. `hits` are sorted, best
    /// first.
    fn best(
        &self,
        question: &Question,
        matches: impl Iterator<Item = (u32, i64)>,
        is_wanted: impl Fn(&Entry) -> bool,
        status: Option<CertificationStatus>,
        limit: usize,
    ) -> Hits {
        let found = matches.map(|(entry, score)| (&self.entries.entries[entry as usize], score));
        let shown = found.filter(|(entry, _)| is_wanted(entry) && entry.is_shown(&self.access));
        let hits = shown.map(|(entry, score)| {
            let hit = self.hit(entry, score);
            let rank = hit.status().map_or(0, rank);
            Hit { score: score + rank, ..hit }
        });
        let mut hits = hits.filter(|hit| status.is_none_or(|wanted| hit.status() == Some(wanted)));
        let mut best: Vec<Hit> = hits.by_ref().take(RANKED_PER_HIT * limit).collect();
        // The sort is stable, so equal scores stay in their order.
        best.sort_by_key(|hit| Reverse(hit.score));
        let has_more = best.len() > limit || hits.next().is_some();
        best.truncate(limit);
        for hit in &mut best {
            hit.marks = marks(question, &hit.artifact);
        }
        Hits { hits: best, has_more }
    }

    /// Returns the first artifacts, in the order of the index, that the request selects and the caller may see.
    fn first(&self, is_wanted: impl Fn(&Entry) -> bool, bonus: impl Fn(u32) -> i64, limit: usize) -> Hits {
        let entries = (0..).zip(&self.entries.entries);
        let shown = entries.filter(|(_, entry)| is_wanted(entry) && entry.is_shown(&self.access));
        let mut shown: Vec<(i64, &Entry)> = shown.map(|(at, entry)| (bonus(at), entry)).collect();
        shown.sort_by_key(|(bonus, _)| Reverse(*bonus));
        let has_more = shown.len() > limit;
        let hits = shown.into_iter().take(limit).map(|(score, entry)| self.hit(entry, score)).collect();
        Hits { hits, has_more }
    }

    fn hit(&self, entry: &Entry, score: i64) -> Hit {
        let governed = self.sight.as_ref().and_then(|sight| sight.find(self.state, &entry.text.reference));
        Hit { artifact: Arc::clone(&entry.text), score, marks: Vec::new(), governed }
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

    /// Returns whether a query of the cube can use an artifact: a member of the cube, a dimension of a cube that it
    /// joins, or a metric over its measures.
    fn combines_with(&self, entry: &Entry, cube: CubeId) -> bool {
        let is_joined = |of: CubeId| self.access.model().join_paths(cube).reaches(of);
        let is_grouped_by = matches!(entry.text.reference.kind, ArtifactType::Dimension | ArtifactType::Cube);
        self.is_of(entry, cube) || (is_grouped_by && entry.cube.is_some_and(is_joined))
    }
}

fn rank(status: CertificationStatus) -> i64 {
    match status {
        CertificationStatus::Certified => CERTIFIED,
        CertificationStatus::Deprecated | CertificationStatus::Archived => DEPRECATED,
        CertificationStatus::Draft | CertificationStatus::PendingReview => 0,
    }
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
    let description = artifact.description.iter().map(|text| (MarkedField::Description, text));
    names.chain(synonyms).chain(tags).chain(description).filter_map(|(field, text)| one(field, text)).collect()
}
