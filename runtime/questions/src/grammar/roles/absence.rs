//! Reads groups without rows of a kind: `genres without loans`, `airlines with no cancelled flights`.
//!
//! A result contains a group only if the cube of the measure has a row for it. If a group has rows, but a measure with
//! conditions counts none of them, a comparison of this measure with 0 finds the group. Groups without any row of the
//! cube are missing from every result, so the caller is asked.

use std::sync::Arc;

use super::{Candidates, DraftValue, ItemKind, Reader, Role};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;

impl Reader<'_> {
    /// Returns whether the last negation is a word such as `without`.
    pub(super) fn is_lack(&self) -> bool {
        self.state.is_negated && self.language.has(WordList::Lack, &self.state.negation.to_lowercase())
    }

    /// Returns whether the item at a place is followed by a word such as `without` and by countable rows, as `genres` in
    /// `genres without loans`.
    pub(super) fn lacks_rows(&self, at: usize) -> bool {
        let is_filler = |item: &&super::Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Verb));
        let mut behind = self.items[at + 1..].iter().skip_while(is_filler);
        let is_lack = behind.next().is_some_and(|item| {
            item.kind == ItemKind::Word(Meaning::Not) && self.language.has(WordList::Lack, &item.text.to_lowercase())
        });
        let next = behind.find(|item| !is_filler(item)).filter(|_| is_lack);
        matches!(next.map(|item| &item.kind), Some(ItemKind::Member(candidates)) if self.has_rows(candidates))
    }

    /// Returns whether a name stands for rows that can be counted, and not for a string or a time that may be missing.
    fn has_rows(&self, candidates: &Candidates) -> bool {
        let entries = || candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let is_value = entries().any(|entry| matches!(entry.kind, MemberKind::Text | MemberKind::Time));
        let is_counted = entries().any(|entry| {
            entry.aggregation == Some(Aggregation::Count) || (entry.kind == MemberKind::Cube && entry.count.is_some())
        });
        is_counted && !is_value
    }

    /// Reads the rows that the groups of the question lack. Returns the number of items read, or `None` if the negation
    /// excludes rows.
    pub(super) fn without_rows(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        if !self.is_lack() || !self.has_rows(candidates) {
            return None;
        }
        let first = self.draft.groups.first().filter(|_| self.draft.values.is_empty())?;
        let group = Arc::clone(&first.member);
        self.state.is_negated = false;
        let is_counted = |index: &usize| self.vocabulary.entry(*index).aggregation == Some(Aggregation::Count);
        let members: Vec<usize> = candidates.members.iter().copied().filter(is_counted).collect();
        let has_all = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            entry.kind == MemberKind::Cube || self.counts_all(&entry.name)
        };
        let whole = format!("{} {text}", self.state.negation);
        if candidates.members.iter().any(has_all) {
            let message = format!("a result has only groups with {text}, so `{whole}` cannot be answered");
            self.unclear(&whole, message, vec![group]);
            return Some(1);
        }
        let counted = Candidates { members, ..candidates.clone() };
        if let Some(index) = self.pick(text, &counted, Role::Value) {
            let start = self.items[..at].iter().rposition(|item| item.kind == ItemKind::Word(Meaning::Not));
            let zero = [(DraftValue::Number(0.0), None)];
            self.compare((start.unwrap_or(at), at + 1), index, None, false, &zero, CERTAINTY_OF_LACK);
        }
        Some(1)
    }

    /// Asks the caller if a word such as `without` refers to a cube other than that of the measures, as in `customers
    /// without orders`. Returns the number of items read.
    pub(super) fn lack_of_other_rows(&mut self, text: &str, candidates: &Candidates) -> Option<usize> {
        let of_values = self.draft.values.iter().filter_map(|name| self.vocabulary.index_of(name));
        let cubes: Vec<_> = of_values.filter_map(|index| self.vocabulary.entry(index).cube.clone()).collect();
        let is_own = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            entry.cube.as_ref().is_some_and(|cube| cubes.contains(cube))
        };
        if !self.is_lack() || cubes.is_empty() || candidates.members.iter().any(is_own) {
            return None;
        }
        self.state.is_negated = false;
        let whole = format!("{} {text}", self.state.negation);
        let message = format!("`{whole}` excludes no rows of the measure; a condition on its rows can");
        self.unclear(&whole, message, Vec::new());
        Some(1)
    }
}

/// The certainty that a group lacks rows if a measure with conditions is 0.
const CERTAINTY_OF_LACK: f64 = 0.9;
