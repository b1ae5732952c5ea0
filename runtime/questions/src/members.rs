//! The members that a question can name.
//!
//! In: members with their names, titles and synonyms. Out: the members that the words at a place can mean. A full
//! phrase takes precedence over a part of a phrase, and a part over a word with a typing mistake. The matches depend
//! only on the given members, so members that the caller may not see have no influence.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

mod units;

use crate::draft::{Aggregation, Desired, Unit};
use crate::language::{Direction, Language, Meaning};
use crate::spelling::{nearest, nearest_form};

/// The largest number of members that a part of a phrase may match. A part that matches more members is ignored.
const MAX_PARTIAL: usize = 6;
/// The shortest word whose nearest names are choices.
const MIN_NEAR_CHARS: usize = 3;
/// The shortest word whose nearest names differ by two letters.
const MIN_TWICE_NEAR_CHARS: usize = 8;
/// The number of phrases of a member that do not contain the name of its cube: its name and its title.
const OWN_PHRASES: usize = 2;
/// The largest number of words of a phrase.
const MAX_WORDS: usize = 12;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MemberKind {
    /// A cube. If a question names a cube and no measure, the rows of the cube are counted.
    #[default]
    Cube,
    Measure,
    Metric,
    Text,
    Number,
    Time,
    Boolean,
    Segment,
}

impl MemberEntry {
    /// Returns whether the two members have a name or title in common.
    pub(crate) fn shares_name(&self, other: &MemberEntry) -> bool {
        self.phrases.iter().any(|one| other.phrases.iter().any(|other| one.eq_ignore_ascii_case(other)))
    }
}

impl MemberKind {
    pub fn is_value(self) -> bool {
        matches!(self, MemberKind::Measure | MemberKind::Metric | MemberKind::Cube)
    }

    pub fn is_dimension(self) -> bool {
        matches!(self, MemberKind::Text | MemberKind::Number | MemberKind::Time | MemberKind::Boolean)
    }
}

/// A member that a question can name.
#[derive(Debug, Clone, Default)]
pub struct MemberEntry {
    /// The name in queries, such as `orders.revenue`.
    pub name: Arc<str>,
    pub kind: MemberKind,
    /// The cube of the member. A metric has the first cube that it is computed from.
    pub cube: Option<Arc<str>>,
    /// Names and titles, the most important first.
    pub phrases: Vec<Arc<str>>,
    /// The synonyms. Names of other members take precedence over them.
    pub synonyms: Vec<Arc<str>>,
    pub unit: Option<Unit>,
    /// The measure that counts the rows of a cube.
    pub count: Option<Arc<str>>,
    /// The function of a measure; `None` for measures that are computed from others, and for other members.
    pub aggregation: Option<Aggregation>,
    /// The dimension whose values a measure combines.
    pub combines: Option<Arc<str>>,
    /// The cube whose rows a measure of different values counts: its values are the keys by which its cube joins the
    /// other one.
    pub counts: Option<Arc<str>>,
    /// The boolean dimension that is true for the rows that a measure counts, if it is the measure's only condition.
    pub counted_if: Option<Arc<str>>,
    /// The dimensions that the conditions of a measure are on.
    pub filtered_by: Vec<Arc<str>>,
    pub description: Option<Arc<str>>,
    /// True if the values of a measure or metric are shares, as rates are.
    pub is_share: bool,
    /// The numerator and the denominator of a measure or metric that divides two measures.
    pub ratio: Option<(Arc<str>, Arc<str>)>,
    /// The dimension that names the rows of a cube.
    pub label: Option<Arc<str>>,
    /// The cubes, with the cube itself, whose dimensions can group the measures of a cube. If the list is empty, the
    /// joins are unknown.
    pub joined: Vec<Arc<str>>,
}

/// A value of a dimension that a question can name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownValue {
    /// The name of the dimension in queries.
    pub member: Arc<str>,
    pub value: Arc<str>,
    /// The number of rows with this value in the cube that the question is about; `None` if they were not counted.
    pub rows: Option<u64>,
}

/// The values that were looked up for the words of a question.
#[derive(Debug, Clone, Default)]
pub struct KnownValues {
    /// The values that contain one of the words.
    pub values: Vec<KnownValue>,
    /// The words for which all matching values of a dimension are in `values`.
    pub searched: Vec<SearchedWord>,
}

/// A word that was looked up among the values of a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedWord {
    pub member: Arc<str>,
    pub word: Arc<str>,
}

/// The members of a project that one caller may see.
#[derive(Debug)]
pub struct Vocabulary {
    entries: Vec<MemberEntry>,
    /// The index of the first entry with each name.
    indexes: HashMap<Arc<str>, usize>,
    /// The phrases of all members, by their first stem.
    phrases: HashMap<String, Vec<Phrase>>,
    /// The members that have a phrase with this stem.
    by_stem: HashMap<String, Vec<usize>>,
    /// The members that have a phrase of one word with this root.
    by_root: HashMap<String, Vec<usize>>,
    /// The roots of the words in the phrases of each member.
    roots: Vec<HashSet<String>>,
    /// The cubes that each cube can join.
    joined: HashMap<Arc<str>, Vec<Arc<str>>>,
    /// The units of members, by the stems of their names.
    units: HashMap<String, Unit>,
    /// The members whose names express an origin or a destination.
    directions: HashMap<Arc<str>, Direction>,
    /// The stems in names that are filler words of the language.
    fillers: HashSet<String>,
}

/// A name of a member.
#[derive(Debug, PartialEq)]
struct Phrase {
    stems: Vec<String>,
    member: usize,
    is_synonym: bool,
    /// True for the member's name in queries.
    is_name: bool,
}

/// The members that words of a question may mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MemberMatch {
    /// The number of matched words.
    pub(crate) length: usize,
    pub(crate) members: Vec<usize>,
    /// The members that match only by a synonym, not by name or title.
    pub(crate) by_synonym: Vec<usize>,
    /// The members whose name in queries matches.
    pub(crate) by_name: Vec<usize>,
    /// True if a whole phrase matches without typing mistakes.
    pub(crate) is_exact: bool,
}

impl Vocabulary {
    pub fn new(entries: Vec<MemberEntry>, language: &Language) -> Self {
        let mut vocabulary = Vocabulary {
            units: units::named(&entries, language),
            indexes: entries.iter().enumerate().rev().map(|(index, entry)| (Arc::clone(&entry.name), index)).collect(),
            entries: units::completed(entries, language),
            phrases: HashMap::new(),
            by_stem: HashMap::new(),
            by_root: HashMap::new(),
            roots: Vec::new(),
            joined: HashMap::new(),
            directions: HashMap::new(),
            fillers: HashSet::new(),
        };
        // Members are added in ascending order, so a list that contains a member ends with it.
        let add = |of: &mut Vec<usize>, member: usize| {
            if of.last() != Some(&member) {
                of.push(member);
            }
        };
        for (member, entry) in vocabulary.entries.iter().enumerate() {
            if entry.kind == MemberKind::Cube {
                vocabulary.joined.insert(Arc::clone(&entry.name), entry.joined.clone());
            }
            let mut roots = HashSet::new();
            let own = entry.phrases.iter().map(|phrase| (phrase, false));
            for (number, (phrase, is_synonym)) in
                own.chain(entry.synonyms.iter().map(|phrase| (phrase, true))).enumerate()
            {
                let stems = stems_of(phrase, language);
                if stems.is_empty() || stems.len() > MAX_WORDS {
                    continue;
                }
                if let Some(direction) = stems.iter().find_map(|stem| language.direction(stem)) {
                    vocabulary.directions.entry(Arc::clone(&entry.name)).or_insert(direction);
                }
                roots.extend(stems.iter().map(|stem| language.root(stem)));
                let is_filler = |stem: &&String| matches!(language.phrase(&[stem]), Some((1, Meaning::Ignore)));
                vocabulary.fillers.extend(stems.iter().filter(is_filler).cloned());
                for stem in &stems {
                    add(vocabulary.by_stem.entry(stem.clone()).or_default(), member);
                }
                if let [stem] = &stems[..] {
                    add(vocabulary.by_root.entry(language.root(stem)).or_default(), member);
                }
                // `Hour of day` is also the name `hour day`, to which `hour of the day` is shortened.
                let shorter = stems.iter().filter(|stem| !language.is_link(stem)).cloned().collect::<Vec<String>>();
                let is_shorter = shorter.len() > 1 && shorter.len() < stems.len();
                for stems in [Some(stems), is_shorter.then_some(shorter)].into_iter().flatten() {
                    let of_first = vocabulary.phrases.entry(stems[0].clone()).or_default();
                    let mut own = of_first.iter().rev().take_while(|known| known.member == member);
                    if !own.any(|known| known.stems == stems) {
                        of_first.push(Phrase { stems, member, is_synonym, is_name: number == 0 });
                    }
                }
            }
            vocabulary.roots.push(roots);
        }
        for phrases in vocabulary.phrases.values_mut() {
            phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.stems.len()));
        }
        vocabulary
    }

    pub(crate) fn entry(&self, index: usize) -> &MemberEntry {
        &self.entries[index]
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (usize, &MemberEntry)> {
        self.entries.iter().enumerate()
    }

    /// Returns the members with the longest phrase that the stems begin with. The order of the words does not matter:
    /// `cancelled flights` are also called `flights cancelled`.
    pub(crate) fn exact(&self, stems: &[&str]) -> Option<MemberMatch> {
        let lengths = (1..=stems.len().min(MAX_WORDS)).rev();
        lengths.map(|length| self.phrases_of(&stems[..length])).find(|found| !found.is_empty()).map(|found| {
            let mut matched = MemberMatch { length: found[0].stems.len(), is_exact: true, ..MemberMatch::default() };
            for phrase in &found {
                let own = || found.iter().filter(|other| other.member == phrase.member);
                if !matched.members.contains(&phrase.member) {
                    matched.members.push(phrase.member);
                    matched.by_synonym.extend(own().all(|other| other.is_synonym).then_some(phrase.member));
                    matched.by_name.extend(own().any(|other| other.is_name).then_some(phrase.member));
                }
            }
            matched
        })
    }

    /// Returns the phrases that consist of exactly these stems, in any order. A filler word ends a match only if it
    /// ends the phrase: `air time in` is not `time in air`.
    fn phrases_of(&self, stems: &[&str]) -> Vec<&Phrase> {
        let mut wanted = stems.to_vec();
        wanted.sort_unstable();
        let mut firsts = wanted.clone();
        firsts.dedup();
        let last = stems.last().filter(|last| self.fillers.contains(**last));
        let of_firsts = firsts.iter().filter_map(|stem| self.phrases.get(*stem)).flatten();
        let is_same = |phrase: &&Phrase| {
            let ends_alike = last.is_none_or(|last| phrase.stems.last().is_some_and(|own| own == last));
            phrase.stems.len() == wanted.len() && ends_alike && {
                let mut words: Vec<&str> = phrase.stems.iter().map(String::as_str).collect();
                words.sort_unstable();
                words == wanted
            }
        };
        of_firsts.filter(is_same).collect()
    }

    /// Returns the number of roots that occur in the names of a member.
    pub(crate) fn shared_roots<'s>(&self, member: usize, roots: impl Iterator<Item = &'s str>) -> usize {
        roots.filter(|root| self.roots[member].contains(*root)).count()
    }

    pub(crate) fn roots(&self, member: usize) -> &HashSet<String> {
        &self.roots[member]
    }

    /// Returns whether the members of a cube can be combined with those of another cube. If the joins of a cube are
    /// unknown, they can.
    pub(crate) fn is_joined(&self, from: &str, to: &str) -> bool {
        from == to
            || self.joined.get(from).is_none_or(|joined| joined.is_empty() || joined.iter().any(|one| **one == *to))
    }

    /// Returns the index of a member.
    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.indexes.get(name).copied()
    }

    pub(crate) fn cube(&self, name: &str) -> Option<&MemberEntry> {
        self.entries.iter().find(|entry| entry.kind == MemberKind::Cube && *entry.name == *name)
    }

    /// Returns whether high or low values of a member are desired, according to its unit or the words of its name.
    pub(crate) fn desired(&self, member: usize, language: &Language) -> Option<Desired> {
        language.desired(&self.roots[member])
    }

    /// Returns the members that have a phrase of one word with the same root as the stem.
    pub(crate) fn related(&self, stem: &str, language: &Language) -> &[usize] {
        self.by_root.get(&language.root(stem)).map_or(&[], Vec::as_slice)
    }

    /// Returns the direction that the name of a member expresses: origin or destination. Other members have none.
    pub(crate) fn direction(&self, member: &str) -> Option<Direction> {
        self.directions.get(member).copied()
    }

    /// Returns the unit that a word names, if a member has this unit.
    pub(crate) fn unit(&self, stem: &str) -> Option<&Unit> {
        self.units.get(stem)
    }

    /// Returns the measures and metrics of which a phrase contains a stem.
    pub(crate) fn measures_with(&self, stem: &str) -> Vec<usize> {
        let is_measure = |index: &usize| matches!(self.entries[*index].kind, MemberKind::Measure | MemberKind::Metric);
        self.by_stem.get(stem).into_iter().flatten().copied().filter(is_measure).collect()
    }

    /// Returns whether some stems are the name, the title or a synonym of a member in any order. The name of its cube
    /// before its own name does not count.
    pub(crate) fn is_own_name(&self, member: usize, stems: &[&str], language: &Language) -> bool {
        let sorted = |mut stems: Vec<String>| {
            stems.sort_unstable();
            stems
        };
        let wanted = sorted(stems.iter().map(|stem| (*stem).to_owned()).collect());
        let entry = &self.entries[member];
        let mut own = entry.phrases.iter().take(OWN_PHRASES).chain(&entry.synonyms);
        own.any(|phrase| sorted(stems_of(phrase, language)) == wanted)
    }

    /// Returns whether a phrase of any member contains a stem.
    pub(crate) fn has_stem(&self, stem: &str) -> bool {
        self.by_stem.contains_key(stem)
    }

    /// Returns the members whose phrases contain as many of the first stems as possible, in any order.
    pub(crate) fn partial(&self, stems: &[&str]) -> Option<MemberMatch> {
        let mut members = self.by_stem.get(*stems.first()?)?.clone();
        let mut length = 1;
        for stem in stems[1..].iter().take(MAX_WORDS - 1) {
            let Some(others) = self.by_stem.get(*stem) else { break };
            let both: Vec<usize> =
                members.iter().copied().filter(|member| others.binary_search(member).is_ok()).collect();
            if both.is_empty() {
                break;
            }
            (members, length) = (both, length + 1);
        }
        (members.len() <= MAX_PARTIAL).then(|| MemberMatch { length, members, ..MemberMatch::default() })
    }

    /// Returns the known stem that is nearest to a word with a typing mistake, if there is exactly one.
    pub(crate) fn corrected(&self, stem: &str) -> Option<&str> {
        nearest(stem, self.by_stem.keys().map(String::as_str))
    }

    /// Returns the members with a word in their names that differs from a word in lower case by few letters, the
    /// nearest first.
    pub(crate) fn near(&self, word: &str, language: &Language) -> Vec<usize> {
        let stem = language.stem(word);
        let length = stem.chars().count();
        // A choice may differ in its first letter too.
        let allowed = if length < MIN_TWICE_NEAR_CHARS { 1 } else { 2 };
        let is_comparable = |other: &&String| {
            let others = other.chars().count();
            others.min(length) >= MIN_NEAR_CHARS && others.abs_diff(length) <= allowed
        };
        let distances =
            self.by_stem.keys().filter(is_comparable).map(|other| (strsim::osa_distance(&stem, other), other));
        let mut near: Vec<(usize, &String)> = distances.filter(|(distance, _)| *distance <= allowed).collect();
        near.sort_unstable();
        let mut members: Vec<usize> = Vec::new();
        for (_, stem) in near {
            members.extend(self.by_stem[stem].iter().filter(|member| !members.contains(member)).collect::<Vec<_>>());
        }
        members
    }

    /// Returns the known stem of a short word in lower case that has a typing mistake.
    pub(crate) fn corrected_form(&self, word: &str, language: &Language) -> Option<&str> {
        nearest_form(word, language, self.by_stem.keys().map(String::as_str))
    }
}

/// Returns the stems of the words in a name or title. Words are runs of letters and digits.
fn stems_of(phrase: &str, language: &Language) -> Vec<String> {
    let words = phrase.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| language.stem(&word.to_lowercase())).collect()
}
