//! Reads verbs of departure and arrival, and `each` behind a list of values: `flights left JFK`,
//! `did United and Delta each have`.

use std::sync::Arc;

use super::{Item, ItemKind, Reader};
use crate::draft::Aggregation;
use crate::language::{Direction, Meaning, WordList};
use crate::members::{MemberEntry, MemberKind};

/// The certainty of a group that only `each` behind its values expresses.
pub(super) const CERTAINTY_OF_EACH: f64 = 0.9;

impl Reader<'_> {
    /// Returns the direction that a verb such as `left` or `reached` expresses.
    pub(super) fn direction_of_word(&self, verb: &str) -> Option<Direction> {
        let verb = verb.to_lowercase();
        let direction = self.language.has(WordList::ToVerbs, &verb).then_some(Direction::To);
        if self.language.has(WordList::FromVerbs, &verb) { Some(Direction::From) } else { direction }
    }

    /// Returns the dimension of the list of values directly before `each`, if no group follows, as in `how many flights
    /// did United and Delta each operate`.
    pub(super) fn values_before_each(&self, at: usize, text: &str) -> Option<Arc<str>> {
        let is_each = self.language.has(WordList::Each, &text.to_lowercase());
        let follows_values = matches!(self.items[..at].last()?.kind, ItemKind::Value(_));
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let behind = self.items[at + 1..].iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        let names_group = matches!(behind, Some(ItemKind::Member(_) | ItemKind::Value(_) | ItemKind::Unknown));
        let list = self.draft.filters.last().filter(|filter| filter.operator == "inList")?;
        let is_open = self.draft.groups.is_empty() && !names_group;
        (is_each && follows_values && is_open).then(|| Arc::clone(&list.member))
    }

    /// Returns whether a word such as `each` at a place directly follows the values of a group.
    pub(super) fn follows_each(&self, place: usize) -> bool {
        let is_each = self.language.has(WordList::Each, &self.items[place].text.to_lowercase());
        let follows_values = matches!(self.items[..place].last().map(|item| &item.kind), Some(ItemKind::Value(_)));
        is_each && follows_values && self.draft.filters.last().is_some_and(|filter| self.is_group(&filter.member))
    }

    /// Returns the measure of the rows that a verb such as `left` is about, if all rows are counted and a place, a time
    /// or nothing follows: `flights left JFK` means the `departed` flights.
    pub(super) fn count_of_direction(&self, at: usize, verb: &str) -> Option<Arc<str>> {
        let lower = verb.to_lowercase();
        let wanted = self.direction_of_word(&lower).filter(|_| self.language.is_participle(&lower))?;
        let count = self.count_of_main()?;
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let next = self.items[at + 1..].iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        let is_place =
            matches!(next, None | Some(ItemKind::Value(_) | ItemKind::Time(_) | ItemKind::Step(..) | ItemKind::Quoted));
        if self.draft.values != [count] || !is_place {
            return None;
        }
        let is_named = |entry: &MemberEntry| {
            let names = entry.phrases.iter().chain(&entry.synonyms).map(|phrase| phrase.to_lowercase());
            let is_verb =
                |name: &String| self.language.is_participle(name) && self.direction_of_word(name) == Some(wanted);
            names.into_iter().any(|name| is_verb(&name))
        };
        let is_part = |entry: &MemberEntry| {
            let counts = entry.kind == MemberKind::Measure && entry.aggregation == Some(Aggregation::Count);
            counts && self.is_of_main_cube(entry) && is_named(entry)
        };
        let mut found = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| is_part(entry));
        let (Some(only), None) = (found.next(), found.next()) else { return None };
        Some(Arc::clone(&only.name))
    }
}
