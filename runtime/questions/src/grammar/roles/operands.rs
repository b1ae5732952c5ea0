//! Finds the members that a comparison compares: `200 orders or more`, `an average stay above 6`,
//! `more than 1000 flights`.

use super::{Item, ItemKind, Reader};
use crate::language::Meaning;
use crate::members::MemberKind;

impl Reader<'_> {
    /// Returns whether the items at a place are a number, a member and a comparison, as in `200 orders or more` and
    /// `200 or more orders`.
    pub(super) fn counts_behind(&self, at: usize) -> bool {
        let is_end = |at: usize| {
            let kind = self.items.get(at).map(|item| &item.kind);
            matches!(kind, Some(ItemKind::Word(Meaning::AtLeast | Meaning::AtMost)))
        };
        let is_value = |at: usize| {
            use MemberKind::{Measure, Metric, Number};
            let Some(ItemKind::Member(found)) = self.items.get(at).map(|item| &item.kind) else { return false };
            found.members.iter().any(|index| matches!(self.vocabulary.entry(*index).kind, Number | Measure | Metric))
        };
        self.is_number(at) && ((is_end(at + 1) && is_value(at + 2)) || (is_value(at + 1) && is_end(at + 2)))
    }

    /// Returns whether the items at a place are a measure that does not count, a comparison and a number, as in
    /// `wards with an average stay above 6`: the rows before it are groups.
    pub(super) fn compares_measure(&self, at: usize) -> bool {
        use Meaning::{AtLeast, AtMost, Less, More};
        let Some(ItemKind::Member(found)) = self.items.get(at).map(|item| &item.kind) else { return false };
        let is_measure = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            matches!(entry.kind, MemberKind::Measure | MemberKind::Metric) && !self.counts(&entry.name)
        };
        let compares = matches!(
            self.items.get(at + 1).map(|item| &item.kind),
            Some(ItemKind::Word(More | Less | AtLeast | AtMost))
        );
        compares && self.is_number(at + 2) && found.members.iter().all(is_measure)
    }

    /// Returns whether the comparison after a member has a member of its own, as in `more than 1000 flights`.
    pub(super) fn compares_next_member(&self, at: usize) -> bool {
        let is_filler =
            |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Verb | Meaning::Equals));
        let comparison = at + 1 + self.items[at + 1..].iter().take_while(is_filler).count();
        if self.counts_behind(comparison) {
            return true;
        }
        use Meaning::{AtLeast, AtMost, Less, More};
        let compares = |item: &Item| matches!(item.kind, ItemKind::Word(More | AtLeast | Less | AtMost));
        if !self.items.get(comparison).is_some_and(compares) {
            return false;
        }
        let (values, length) = self.values(comparison + 1, false);
        let next = self.items.get(comparison + 1 + length).map(|item| &item.kind);
        let is_compared = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            matches!(entry.kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric) || entry.count.is_some()
        };
        !values.is_empty() && matches!(next, Some(ItemKind::Member(found)) if found.members.iter().any(is_compared))
    }
}
