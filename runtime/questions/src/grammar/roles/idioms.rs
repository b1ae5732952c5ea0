//! Reads members whose role depends on the words around them: the verb of a subject, a measure that is named twice, a
//! time dimension before its time, and the group that the rows are sorted by.

use std::sync::Arc;

use super::{Candidates, Item, ItemKind, Reader};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::spelling::spelled;

/// The certainty of a time dimension that a question names before a time.
const CERTAINTY_OF_TIME: f64 = 0.9;

impl Reader<'_> {
    /// Reads a member by the words around it. Returns the number of items read, or `None` if no such words are near.
    pub(super) fn idiom(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let found = self.time_of_range(at, text, candidates).or_else(|| self.ranked_again(at, text, candidates));
        let found = found.or_else(|| self.verb_of_subject(at, text, candidates));
        self.spread_aggregate(at, candidates);
        found.or_else(|| self.averaged_extreme(text, candidates))
    }

    /// Reads a time dimension directly before a time, as in `with a delivery date in April`: the time refers to it.
    fn time_of_range(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_time = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Time;
        let is_group = self.state.groups || self.state.is_which || self.state.sorts || self.state.is_negated;
        if is_group || !candidates.members.iter().all(is_time) || !self.is_before_time(at) {
            return None;
        }
        let is_own = |index: &usize| self.is_of_main_cube(self.vocabulary.entry(*index));
        let own: Vec<usize> = candidates.members.iter().copied().filter(is_own).collect();
        let [only] = own[..] else { return None };
        let name = Arc::clone(&self.vocabulary.entry(only).name);
        self.draft.time = Some(Arc::clone(&name));
        Some(self.piece(text, format!("the time of {name}"), CERTAINTY_OF_TIME))
    }

    /// Returns whether a time follows the item at a place. Words such as `in` may be between them.
    pub(super) fn is_before_time(&self, at: usize) -> bool {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Equals));
        let next = self.items[at + 1..].iter().find(|item| !is_filler(item));
        matches!(next.map(|item| &item.kind), Some(ItemKind::Time(_)))
    }

    /// Reads the rows behind a verb that is the name of a measure, as in `which driver delivered the most parcels`: the
    /// verb and the rows name one measure, which ranks. Returns the number of items read.
    fn ranked_again(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_descending = self.state.rank?;
        let [verb] = &self.draft.values[..] else { return None };
        let verb = Arc::clone(verb);
        let index = self.vocabulary.index_of(&verb)?;
        let entry = self.vocabulary.entry(index);
        let is_of_rows = |other: &usize| {
            let other = self.vocabulary.entry(*other);
            let is_rows = other.kind == MemberKind::Cube || self.counts_all(&other.name);
            is_rows && other.cube == entry.cube
        };
        let is_part = entry.aggregation == Some(Aggregation::Count) && !self.counts_all(&verb);
        let is_named = self.verb_before_rank(at).is_some_and(|named| named.members.contains(&index));
        if !is_part || !is_named || !candidates.members.iter().any(is_of_rows) {
            return None;
        }
        self.state.rank = None;
        self.draft.order = Some(crate::draft::DraftOrder { member: Arc::clone(&verb), is_descending });
        Some(self.piece(text, format!("ordered by {verb}"), candidates.certainty))
    }

    /// Returns whether a measure counts all rows of its cube.
    pub(super) fn counts_all(&self, name: &Arc<str>) -> bool {
        let cube = name.split_once('.').and_then(|(cube, _)| self.vocabulary.cube(cube));
        cube.is_some_and(|cube| cube.count.as_ref() == Some(name))
    }

    /// Returns the members that the single word before `the most` names.
    fn verb_before_rank(&self, at: usize) -> Option<&Candidates> {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let mut before = self.items[..at].iter().rev().skip_while(is_filler);
        before.next().filter(|item| matches!(item.kind, ItemKind::Word(Meaning::Top | Meaning::Bottom)))?;
        let verb = before.find(|item| !is_filler(item)).filter(|item| !item.text.contains(' '))?;
        let ItemKind::Member(candidates) = &verb.kind else { return None };
        Some(candidates)
    }

    /// Reads the verb behind the subject of a question, as in `what revenue did Acme ship`: it adds no measure. Returns
    /// the number of items read.
    fn verb_of_subject(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_busy = self.state.groups || self.state.sorts || self.state.rank.is_some();
        if self.draft.values.is_empty() || is_busy || candidates.certainty >= 1.0 {
            return None;
        }
        let is_kind = |index: &usize| {
            let kind = self.vocabulary.entry(*index).kind;
            kind.is_value() || kind == MemberKind::Time
        };
        let is_verb = candidates.members.iter().all(is_kind)
            && !candidates.members.iter().any(|index| self.narrows_count(at, *index));
        let subject = self.items[..at].last().map(|item| &item.kind);
        let is_subject = matches!(subject, Some(ItemKind::Member(_) | ItemKind::Value(_) | ItemKind::Quoted));
        let before = self.items[..at.saturating_sub(1)].iter().rev();
        let is_auxiliary = |item: &Item| self.language.has(WordList::Auxiliaries, &item.text.to_lowercase());
        let mut before = before.take_while(|item| item.kind != ItemKind::Word(Meaning::Verb));
        (is_verb && is_subject && before.any(is_auxiliary)).then(|| self.verb(at, text))
    }

    /// Applies a word such as `average` before the first of several numbers to the next one as well, as in `average
    /// temperature and humidity`.
    fn spread_aggregate(&mut self, at: usize, candidates: &Candidates) {
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        let is_free = self.state.aggregate.is_none() && !self.state.groups && !self.state.sorts;
        if !is_free || !candidates.members.iter().all(is_number) || !self.is_listed(at) {
            return;
        }
        let of_last = self.draft.values.last().and_then(|name| self.vocabulary.index_of(name));
        let aggregation = of_last.and_then(|index| self.vocabulary.entry(index).aggregation);
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::And));
        let mut before = self.items[..at].iter().rev().skip_while(is_filler);
        let Some(Item { text, kind: ItemKind::Member(_), .. }) = before.next() else { return };
        let word = before.find(|item| !is_filler(item)).filter(|item| matches!(item.kind, ItemKind::Word(_)));
        let phrases = [Some(text), word.map(|item| &item.text)].into_iter().flatten();
        let named = phrases.clone().find(|text| aggregation.is_some() && self.aggregation_of(text) == aggregation);
        if let (Some(aggregation), Some(word)) = (aggregation, named) {
            self.state.aggregate = Some((aggregation, word.clone()));
        }
    }

    /// Returns the aggregation of the word that a name begins with, as in `average delay`.
    fn aggregation_of(&self, text: &str) -> Option<Aggregation> {
        let stems: Vec<String> = text.split(' ').map(|word| self.language.stem(&word.to_lowercase())).collect();
        let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
        match self.language.phrase(&stems)? {
            (_, Meaning::Aggregate(aggregation)) => Some(aggregation),
            _ => None,
        }
    }

    /// Returns whether the question counts rows by a number with a unit, as in `how many airports lie above 5000 feet`. The
    /// comparison at a place then has no measure, and the rows before it are no groups.
    pub(super) fn counts_compared_rows(&self, at: usize, comparison: usize) -> bool {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item)).map(|item| &item.kind);
        let kind = |place: usize| self.items.get(place).map(|item| &item.kind);
        let has_unit = matches!(kind(comparison + 1), Some(ItemKind::Number(_, Some(_))));
        let has_member = matches!(kind(comparison + 2), Some(ItemKind::Member(_)));
        matches!(before, Some(ItemKind::Word(Meaning::HowMany))) && has_unit && !has_member
    }

    /// Returns whether the question selects one of the members.
    pub(super) fn is_selected(&self, candidates: &Candidates) -> bool {
        let names = candidates.members.iter().map(|index| &self.vocabulary.entry(*index).name);
        names.into_iter().any(|name| self.draft.values.contains(name) || self.is_group(name))
    }

    /// Returns the group whose names contain all given words, as `hour of day` contains `hour`. `None` if there are
    /// several.
    pub(super) fn sorted_group(&self, text: &str) -> Option<Arc<str>> {
        let words = spelled(text);
        let roots: Vec<String> = words.split(' ').map(|word| self.language.root(&self.language.stem(word))).collect();
        let is_named = |name: &&Arc<str>| {
            let own = self.vocabulary.index_of(name).map(|index| self.vocabulary.roots(index));
            own.is_some_and(|own| roots.iter().all(|root| own.contains(root)))
        };
        let mut found = self.draft.groups.iter().map(|group| &group.member).filter(is_named);
        let (first, None) = (found.next()?, found.next()) else { return None };
        Some(Arc::clone(first))
    }

    /// Sorts the rows by the group that a word names. Returns the number of items read.
    pub(super) fn sort_by_group(&mut self, text: &str) -> usize {
        self.state.sorts = false;
        match self.sorted_group(text) {
            Some(name) => self.ordered_by(text, name, 1.0),
            None => 1,
        }
    }
}
