//! Reads verbs that name the dimension of the value after them: `picked up in Lisbon`, `returned to Porto`.
//!
//! Two dimensions often have the same values, such as the branches where rentals begin and end. A verb before a value
//! then means the dimension with its root in the name. A verb with a particle is written as one word there:
//! `pickup_branch`.

use std::sync::Arc;

use super::{Item, ItemKind, Reader};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;

/// The certainty of a dimension that a verb names.
const CERTAINTY_OF_VERB: f64 = 0.9;

/// A verb before a value.
struct VerbOfPlace {
    /// The number of its items: 2 with a particle.
    length: usize,
    /// The roots of the verb, or of the verb and its particle as one word.
    roots: Vec<String>,
}

impl Reader<'_> {
    /// Reads a verb before a value if a dimension of the value has its root in the name. Returns the number of items
    /// read, or `None` for other items.
    pub(super) fn verb_of_place(&mut self, at: usize) -> Option<usize> {
        let verb = self.verb_at(at)?;
        let preposition = at + verb.length;
        let value =
            self.items[preposition..].iter().position(|item| !is_preposition(item)).filter(|count| *count > 0)?;
        let ItemKind::Value(values) = &self.items.get(preposition + value)?.kind else { return None };
        let is_named = |member: &Arc<str>| self.has_root_of(member, &verb);
        let name = values.iter().map(|known| &known.member).find(|member| is_named(member)).map(Arc::clone)?;
        if verb.length == 1 && (self.describes_rows(at) || values.iter().all(|known| is_named(&known.member))) {
            return None;
        }
        let whole = self.text(at, preposition);
        self.piece(&whole, format!("the value after it is of {name}"), CERTAINTY_OF_VERB);
        Some(verb.length)
    }

    /// Returns whether a verb before a value names a dimension of the value.
    pub(super) fn is_named_by_verb(&self, at: usize, member: &Arc<str>) -> bool {
        let end = self.items[..at].iter().rposition(|item| !is_preposition(item)).map_or(0, |before| before + 1);
        let starts = [2, 1].into_iter().filter_map(|length| Some((end.checked_sub(length)?, length)));
        let mut verbs = starts.filter_map(|(start, length)| self.verb_at(start).filter(|verb| verb.length == length));
        end < at && verbs.next().is_some_and(|verb| self.has_root_of(member, &verb))
    }

    /// Returns the verb at a place, with its particle.
    fn verb_at(&self, at: usize) -> Option<VerbOfPlace> {
        let item = &self.items[at];
        let lower = item.text.to_lowercase();
        let is_verb = match item.kind {
            ItemKind::Word(meaning) => matches!(meaning, Meaning::Verb | Meaning::Change),
            ItemKind::Unknown | ItemKind::Member(_) => {
                !lower.contains(' ') && (self.language.is_participle(&lower) || self.is_verb(&lower))
            }
            _ => false,
        };
        if !is_verb {
            return None;
        }
        let particle = self.items.get(at + 1).map(|next| next.text.to_lowercase());
        let is_particle = |word: &String| {
            self.language.has(WordList::Particles, word)
                || (self.language.has(WordList::PhrasalVerbs, &format!("{lower} {word}"))
                    && self.items.get(at + 2).is_some_and(is_preposition))
        };
        match particle.filter(is_particle) {
            Some(particle) => {
                let joined = |root: &String| self.language.root(&self.language.stem(&format!("{root}{particle}")));
                let roots = self.roots_of_verb(&lower).iter().map(joined).collect();
                Some(VerbOfPlace { length: 2, roots })
            }
            None => Some(VerbOfPlace { length: 1, roots: self.roots_of_verb(&lower) }),
        }
    }

    /// Returns whether the names of a dimension have the root of a verb: as one word, or as several, as in `pick-up`.
    fn has_root_of(&self, member: &Arc<str>, verb: &VerbOfPlace) -> bool {
        let Some(index) = self.vocabulary.index_of(member) else { return false };
        let entry = self.vocabulary.entry(index);
        let mut phrases = entry.phrases.iter().chain(&entry.synonyms).map(|phrase| crate::spelling::spelled(phrase));
        let is_named = |phrase: &String| {
            let words: Vec<&str> = phrase.split(' ').collect();
            words.windows(verb.length).chain(words.windows(1)).any(|words| {
                let word = words.concat();
                verb.roots.contains(&self.language.root(&self.language.stem(&word)))
            })
        };
        phrases.any(|phrase| is_named(&phrase))
    }

    /// Returns whether a word is a measure, a boolean dimension or a segment of the main cube.
    fn describes_rows(&self, at: usize) -> bool {
        let ItemKind::Member(candidates) = &self.items[at].kind else { return false };
        candidates.members.iter().map(|index| self.vocabulary.entry(*index)).any(|entry| {
            use MemberKind::{Boolean, Measure, Metric, Segment};
            matches!(entry.kind, Measure | Metric | Boolean | Segment) && self.is_of_main_cube(entry)
        })
    }
}

/// Returns whether an item may be between a verb and its value, as `in` and `to the` are.
fn is_preposition(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::From | Meaning::To))
}
