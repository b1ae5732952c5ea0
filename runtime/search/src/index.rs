//! The index: a sorted list of words, each with the entries and fields that contain it.
//!
//! In: the strings of entries. Out: entries with scores, best first. A word of a question is looked up in the sorted
//! list: the equal word, longer words that it begins, and words that an automaton for typing mistakes accepts. For each
//! word of the question, the best field of an entry counts. Two thirds of the words must match.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use fst::automaton::Str;
use fst::{Automaton as _, IntoStreamer, Map, Streamer as _};
use levenshtein_automata::Distance;
use rustc_hash::FxHashMap;

use crate::likeness::{Likeness, TypedWord};
use crate::question::Question;
use crate::words::words;

/// The score for each word that an entry matches. It exceeds the sum of the field scores of all words.
const WORD: u32 = 20_000;
/// The score for an entry with a name, title or synonym that equals the whole question.
const WHOLE: u32 = 1_000;
/// The largest number of first letters whose matches are stored.
const MAX_LETTERS: usize = 64;

/// The part of an entry that a string belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    Name,
    Title,
    Synonym,
    /// The name of the group that the entry belongs to.
    Group,
    Tag,
    /// A user or team that owns the entry.
    Owner,
    /// The unit of a member.
    Unit,
    /// A value of a dimension.
    Value,
    Description,
}

/// An entry that matches a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Match {
    /// The number of entries that were added before this one.
    pub entry: u32,
    pub score: u32,
}

/// The entries that match, best first. Entries with equal scores are in the order in which they were added.
#[derive(Debug)]
pub struct Matches<F>(Source<F>);

#[derive(Debug)]
enum Source<F> {
    /// The matches of this question, already selected.
    Heap(BinaryHeap<(u32, Reverse<u32>)>),
    /// The stored matches of a letter in descending order, the number of those that were read, and the selection.
    Letter(Arc<[Match]>, usize, F),
}

/// An index over the strings of entries.
#[derive(Debug)]
pub struct Index {
    entries: u32,
    /// The words, each with its position in the sorted list.
    words: Map<Vec<u8>>,
    /// For each word, the index of its first place in `places`; then the length of `places`.
    starts: Vec<u32>,
    places: Vec<Place>,
    /// The entries by the words of their names, titles and synonyms.
    wholes: FxHashMap<Box<str>, Vec<u32>>,
    /// The matches of unfinished words of one letter, best first, made at their first use. Such a word matches a large
    /// part of all entries.
    letters: RwLock<HashMap<Box<str>, Arc<[Match]>>>,
}

/// A field of an entry in which a word occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    entry: u32,
    field: Field,
}

/// Collects the strings of entries for an index.
#[derive(Debug, Default)]
pub struct IndexBuilder {
    entries: u32,
    words: BTreeMap<String, Vec<Place>>,
    wholes: FxHashMap<Box<str>, Vec<u32>>,
}

impl Field {
    /// Returns the weight of a field. The score of a word is this weight times the factor of its likeness.
    fn weight(self) -> u32 {
        match self {
            Field::Name => 80,
            Field::Title => 70,
            Field::Synonym => 60,
            Field::Value => 50,
            Field::Group | Field::Tag | Field::Owner | Field::Unit => 30,
            Field::Description => 20,
        }
    }

    fn is_naming(self) -> bool {
        matches!(self, Field::Name | Field::Title | Field::Synonym | Field::Value)
    }
}

impl IndexBuilder {
    /// Adds an entry with its strings. Its position is the number of entries added before.
    pub fn add<'t>(&mut self, texts: impl IntoIterator<Item = (Field, &'t str)>) {
        let entry = self.entries;
        self.entries += 1;
        for (field, text) in texts {
            let mut whole = String::new();
            for word in words(text) {
                if field.is_naming() {
                    whole.push_str(&word.text);
                    whole.push(' ');
                }
                let places = self.words.entry(word.text).or_default();
                let place = Place { entry, field };
                // The strings of an entry are added together, so a repeated place would follow its first occurrence
                // directly.
                if places.last() != Some(&place) {
                    places.push(place);
                }
            }
            if !whole.is_empty() {
                let entries = self.wholes.entry(whole.into()).or_default();
                if entries.last() != Some(&entry) {
                    entries.push(entry);
                }
            }
        }
    }

    pub fn build(self) -> Index {
        let mut starts = Vec::with_capacity(self.words.len() + 1);
        let mut places = Vec::new();
        let mut words = fst::MapBuilder::memory();
        for (position, (word, at)) in self.words.into_iter().enumerate() {
            // Inserting cannot fail: the keys are sorted and unique, and the map is in memory.
            let inserted = words.insert(&word, position as u64);
            debug_assert!(inserted.is_ok(), "words are ordered");
            starts.push(places.len() as u32);
            places.extend(at);
        }
        starts.push(places.len() as u32);
        let letters = RwLock::default();
        Index { entries: self.entries, words: words.into_map(), starts, places, wholes: self.wholes, letters }
    }
}

impl Index {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries as usize
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// Returns the entries that match at least two thirds of the words of a question.
    pub fn find(&self, question: &Question) -> Matches<impl Fn(u32) -> bool> {
        self.find_among(question, |_| true)
    }

    /// Returns the entries that match at least two thirds of the words of a question and that `selects` accepts.
    pub fn find_among<F: Fn(u32) -> bool>(&self, question: &Question, selects: F) -> Matches<F> {
        match &question.words[..] {
            [word] if word.is_open && word.text.chars().count() == 1 => {
                Matches(Source::Letter(self.letter(question, &word.text), 0, selects))
            }
            _ => Matches(Source::Heap(self.matches(question, selects).into())),
        }
    }

    /// Returns the matches of a question that is one unfinished word of one letter, best first.
    fn letter(&self, question: &Question, letter: &str) -> Arc<[Match]> {
        if let Some(known) = self.letters.read().unwrap_or_else(PoisonError::into_inner).get(letter) {
            return Arc::clone(known);
        }
        let mut found = self.matches(question, |_| true);
        found.sort_unstable_by(|one, other| other.cmp(one));
        let found: Arc<[Match]> = found.into_iter().map(|(score, Reverse(entry))| Match { entry, score }).collect();
        let mut letters = self.letters.write().unwrap_or_else(PoisonError::into_inner);
        if letters.len() < MAX_LETTERS && !found.is_empty() {
            letters.insert(letter.into(), Arc::clone(&found));
        }
        found
    }

    /// Returns the selected matches, unsorted.
    fn matches(&self, question: &Question, selects: impl Fn(u32) -> bool) -> Vec<(u32, Reverse<u32>)> {
        let required = (2 * question.words.len()).div_ceil(3);
        let whole: String = question.words.iter().flat_map(|word| [word.text.as_str(), " "]).collect();
        let wholes = self.wholes.get(whole.as_str()).map_or(&[][..], Vec::as_slice);
        with_scores(self.entries, |scores| {
            for word in &question.words {
                self.look_up(word, |position, likeness| scores.add(self.places_of(position), likeness));
                scores.end_word();
            }
            wholes.iter().for_each(|entry| scores.scores[*entry as usize] += WHOLE);
            let found = scores.matched.iter().filter_map(|entry| {
                let score = scores.scores[*entry as usize];
                ((score / WORD) as usize >= required && selects(*entry)).then_some((score, Reverse(*entry)))
            });
            found.collect()
        })
    }

    fn places_of(&self, position: u64) -> &[Place] {
        let position = position as usize;
        &self.places[self.starts[position] as usize..self.starts[position + 1] as usize]
    }

    /// Calls `found` with each word of the index that a typed word may mean.
    fn look_up(&self, typed: &TypedWord, mut found: impl FnMut(u64, Likeness)) {
        if let Some(position) = self.words.get(&typed.text) {
            found(position, Likeness::Equal);
        }
        if typed.may_be_beginning() {
            let mut stream = self.words.search(Str::new(&typed.text).starts_with()).into_stream();
            while let Some((word, position)) = stream.next() {
                if word.len() > typed.text.len() {
                    found(position, Likeness::Beginning);
                }
            }
        }
        let Some(automaton) = typed.automaton() else { return };
        let first = typed.text.chars().next().map(String::from).unwrap_or_default();
        let same_first = Str::new(&first).starts_with();
        let mut stream = self.words.search(MistypedWords(&automaton).intersection(same_first)).into_stream();
        while let Some((word, position)) = stream.next() {
            let Ok(word) = std::str::from_utf8(word) else { continue };
            let likeness = Likeness::of(typed, word);
            if let Some(likeness @ (Likeness::Mistyped | Likeness::MistypedBeginning)) = likeness {
                found(position, likeness);
            }
        }
    }
}

/// The scores of entries during a search. Between searches, all scores are zero and the lists are empty.
#[derive(Default)]
struct EntryScores {
    scores: Vec<u32>,
    /// The best score of each entry for the current word of the question.
    best: Vec<u16>,
    /// The entries that match the current word.
    touched: Vec<u32>,
    /// The entries that match any word.
    matched: Vec<u32>,
}

thread_local! {
    /// The scores of this thread's searches, so that a search does not allocate and clear them for all entries.
    static SCORES: RefCell<EntryScores> = RefCell::default();
}

/// Calls `search` with scores for at least `entries` entries, and clears the scores that it set.
fn with_scores<T>(entries: u32, search: impl FnOnce(&mut EntryScores) -> T) -> T {
    let mut scores = SCORES.take();
    if scores.scores.len() < entries as usize {
        scores.scores.resize(entries as usize, 0);
        scores.best.resize(entries as usize, 0);
    }
    let found = search(&mut scores);
    scores.clear();
    SCORES.set(scores);
    found
}

impl EntryScores {
    fn clear(&mut self) {
        for entry in self.matched.drain(..) {
            self.scores[entry as usize] = 0;
        }
    }

    fn add(&mut self, places: &[Place], likeness: Likeness) {
        for place in places {
            // The score is at most 800: the largest weight, 80, times the largest factor, 10.
            let score = (place.field.weight() * likeness.factor()) as u16;
            let best = &mut self.best[place.entry as usize];
            if *best == 0 {
                self.touched.push(place.entry);
            }
            *best = (*best).max(score);
        }
    }

    fn end_word(&mut self) {
        for entry in self.touched.drain(..) {
            let (score, best) = (&mut self.scores[entry as usize], &mut self.best[entry as usize]);
            if *score == 0 {
                self.matched.push(entry);
            }
            *score += WORD + u32::from(*best);
            *best = 0;
        }
    }
}

/// Returns the score of an entry with one string, as an index would compute it; `None` if it does not match.
pub fn score_of(question: &Question, field: Field, text: &str) -> Option<u32> {
    let own = words(text);
    let best = |typed: &TypedWord| {
        let likenesses = own.iter().filter_map(|word| Likeness::of(typed, &word.text));
        likenesses.map(|likeness| field.weight() * likeness.factor()).max()
    };
    let scores: Vec<u32> = question.words.iter().filter_map(best).collect();
    if scores.len() < (2 * question.words.len()).div_ceil(3) {
        return None;
    }
    let whole = question.words.iter().map(|word| &word.text).eq(own.iter().map(|word| &word.text));
    let whole = if field.is_naming() && whole { WHOLE } else { 0 };
    Some(scores.iter().map(|score| WORD + score).sum::<u32>() + whole)
}

impl<F: Fn(u32) -> bool> Iterator for Matches<F> {
    type Item = Match;

    fn next(&mut self) -> Option<Match> {
        match &mut self.0 {
            Source::Heap(heap) => heap.pop().map(|(score, Reverse(entry))| Match { entry, score }),
            Source::Letter(found, read, selects) => {
                let skipped = found[*read..].iter().position(|next| selects(next.entry))?;
                *read += skipped + 1;
                Some(found[*read - 1])
            }
        }
    }
}

/// The set of words that an automaton for typing mistakes accepts.
struct MistypedWords<'a>(&'a levenshtein_automata::DFA);

impl fst::Automaton for MistypedWords<'_> {
    type State = u32;

    fn start(&self) -> u32 {
        self.0.initial_state()
    }

    fn is_match(&self, state: &u32) -> bool {
        matches!(self.0.distance(*state), Distance::Exact(_))
    }

    fn can_match(&self, state: &u32) -> bool {
        *state != levenshtein_automata::SINK_STATE
    }

    fn accept(&self, state: &u32, byte: u8) -> u32 {
        self.0.transition(*state, byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(entries: &[&[(Field, &str)]]) -> Index {
        let mut builder = IndexBuilder::default();
        for entry in entries {
            builder.add(entry.iter().copied());
        }
        builder.build()
    }

    fn found(index: &Index, text: &str) -> Vec<u32> {
        index.find(&Question::new(text).unwrap()).map(|found| found.entry).collect()
    }

    #[test]
    fn names_count_more_than_descriptions() {
        let index = index(&[
            &[(Field::Name, "total"), (Field::Description, "the sum of delay")],
            &[(Field::Name, "delay"), (Field::Title, "Delay")],
            &[(Field::Name, "avg_delay"), (Field::Title, "Average delay")],
            &[(Field::Name, "distance"), (Field::Synonym, "delay")],
        ]);
        assert_eq!(found(&index, "delay"), [1, 3, 2, 0]);
        assert_eq!(found(&index, "average delay"), [2]);
        assert_eq!(found(&index, "dealy"), [1, 2, 3, 0]);
        assert_eq!(found(&index, "zebra"), Vec::<u32>::new());
    }

    #[test]
    fn two_of_three_words_are_enough() {
        let index = index(&[&[(Field::Name, "avg_dep_delay")], &[(Field::Name, "delay")]]);
        assert_eq!(found(&index, "avg delay carrier"), [0]);
        assert_eq!(found(&index, "delay carrier"), Vec::<u32>::new());
    }

    #[test]
    fn empty_index_has_no_match() {
        assert!(index(&[]).is_empty());
        assert_eq!(found(&index(&[]), "delay"), Vec::<u32>::new());
    }

    /// Finds entries by the definition of a match, without the index.
    fn found_by_definition(entries: &[Vec<(Field, String)>], question: &Question) -> Vec<Match> {
        let whole: Vec<&str> = question.words.iter().map(|word| word.text.as_str()).collect();
        let required = (2 * question.words.len()).div_ceil(3);
        let mut found = Vec::new();
        for (entry, texts) in entries.iter().enumerate() {
            let texts: Vec<(Field, Vec<String>)> = texts
                .iter()
                .map(|(field, text)| (*field, words(text).into_iter().map(|word| word.text).collect()))
                .collect();
            let best = |typed: &TypedWord| {
                let scores = texts.iter().flat_map(|(field, words)| {
                    let likenesses = words.iter().filter_map(|word| Likeness::of(typed, word));
                    likenesses.map(|likeness| field.weight() * likeness.factor())
                });
                scores.max()
            };
            let scores: Vec<u32> = question.words.iter().filter_map(best).collect();
            if scores.len() < required {
                continue;
            }
            let is_whole = texts.iter().any(|(field, words)| field.is_naming() && *words == whole);
            let score = scores.iter().map(|score| WORD + score).sum::<u32>() + if is_whole { WHOLE } else { 0 };
            found.push(Match { entry: entry as u32, score });
        }
        found.sort_by_key(|found| (Reverse(found.score), found.entry));
        found
    }

    #[test]
    fn index_finds_what_the_definition_finds() {
        const PARTS: [&str; 12] = [
            "avg",
            "delay",
            "departure",
            "dep",
            "flights",
            "flight",
            "distance",
            "Größe",
            "count",
            "arr",
            "total",
            "é",
        ];
        const FIELDS: [Field; 9] = [
            Field::Name,
            Field::Title,
            Field::Synonym,
            Field::Group,
            Field::Tag,
            Field::Owner,
            Field::Unit,
            Field::Value,
            Field::Description,
        ];
        let mut seed: u32 = 7;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) as usize % below
        };
        let mut hits = 0;
        for _ in 0..150 {
            let entries: Vec<Vec<(Field, String)>> = (0..random(20))
                .map(|_| {
                    let texts = (0..1 + random(4)).map(|_| {
                        let parts: Vec<&str> = (0..1 + random(3)).map(|_| PARTS[random(PARTS.len())]).collect();
                        (FIELDS[random(FIELDS.len())], parts.join("_"))
                    });
                    let mut texts: Vec<(Field, String)> = texts.collect();
                    texts.sort();
                    texts
                })
                .collect();
            let mut builder = IndexBuilder::default();
            for entry in &entries {
                builder.add(entry.iter().map(|(field, text)| (*field, text.as_str())));
            }
            let index = builder.build();
            for _ in 0..10 {
                let typed: Vec<String> = (0..1 + random(4))
                    .map(|_| {
                        let mut word: Vec<char> = PARTS[random(PARTS.len())].chars().collect();
                        match random(4) {
                            0 if word.len() > 1 => drop(word.remove(random(word.len()))),
                            1 if word.len() > 1 => {
                                let at = random(word.len() - 1);
                                word.swap(at, at + 1);
                            }
                            2 => word.truncate(1 + random(word.len())),
                            _ => {}
                        }
                        word.into_iter().collect()
                    })
                    .collect();
                let text = typed.join(" ");
                let question = if random(2) == 0 { Question::new(&text) } else { Question::unfinished(&text) }.unwrap();
                let found: Vec<Match> = index.find(&question).collect();
                let defined = found_by_definition(&entries, &question);
                assert_eq!(found, defined, "{text} in {entries:?}");
                let odd: Vec<Match> = index.find_among(&question, |entry| entry % 2 == 1).collect();
                assert!(odd.iter().eq(defined.iter().filter(|found| found.entry % 2 == 1)), "{text} in {entries:?}");
                for (field, value) in entries.iter().filter(|texts| texts.len() == 1).flatten() {
                    let one = found_by_definition(&[vec![(*field, value.clone())]], &question);
                    assert_eq!(score_of(&question, *field, value), one.first().map(|found| found.score), "{text}");
                }
                hits += found.len();
            }
        }
        assert!(hits > 1_000, "{hits}");
    }
}
