//! Finds numbers of some rows behind a measure and `and`: `flights and long flights`, `revenue and paid orders`.
//!
//! A condition applies to all measures of a query. Such a number therefore needs a measure of its own; without one, the
//! caller is asked.

use std::sync::Arc;

use super::{Candidates, ItemKind, MAX_CHOICES, Reader};
use crate::language::Meaning;
use crate::members::MemberKind;

impl Reader<'_> {
    /// Returns whether a condition between two places, behind a measure and `and`, is about a number of its own: the
    /// name of rows follows it, or `and` directly precedes it. In `flights, from JFK`, a comma only separates the
    /// parts, and in `flights and from JFK`, the word `from` introduces a condition.
    pub(super) fn is_further_number(&self, start: usize, end: usize) -> bool {
        let is_filler = |item: &&super::Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let next = self.items[end..].iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        let names_rows = matches!(next, Some(ItemKind::Member(candidates)) if self.names_rows(candidates));
        let is_and = |item: &super::Item| {
            item.kind == ItemKind::Word(Meaning::And) && item.text.chars().any(char::is_alphanumeric)
        };
        names_rows || self.items[..start].last().is_some_and(is_and)
    }

    /// Returns whether a name stands for the rows of a cube.
    pub(super) fn names_rows(&self, candidates: &Candidates) -> bool {
        candidates.members.iter().any(|index| {
            let entry = self.vocabulary.entry(*index);
            entry.kind == MemberKind::Cube || self.counts_all(&entry.name)
        })
    }

    /// Asks the caller for the measure that a further number is. Returns the number of items read.
    pub(super) fn unclear_number(&mut self, at: usize, text: &str, member: Arc<str>) -> usize {
        let message = format!(
            "`{text}` after `and` is a number of its own, but no measure counts these rows; a condition applies to all measures"
        );
        let choices = self.choices_of(MemberKind::Measure);
        let choices = if choices.is_empty() { vec![member] } else { choices };
        self.unclear(text, message, choices.into_iter().take(MAX_CHOICES).collect());
        let is_rows = |item: &super::Item| matches!(&item.kind, ItemKind::Member(found) if self.names_rows(found));
        1 + usize::from(self.items.get(at + 1).is_some_and(is_rows))
    }
}
