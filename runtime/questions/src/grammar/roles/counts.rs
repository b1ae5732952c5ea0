//! Reads numbers, and measures that count some of the rows: `5 carriers`, `how many flights were diverted`.

use std::sync::Arc;

use super::{Candidates, DraftValue, Item, ItemKind, MAX_ROWS, Reader, Role, is_count};
use crate::draft::{Aggregation, Unit};
use crate::language::Meaning;
use crate::members::MemberKind;
use crate::times;

impl Reader<'_> {
    /// Returns whether a measure counts some of the rows that the only measure before it counts, as in
    /// `how many flights were diverted`.
    pub(super) fn narrows_count(&self, at: usize, index: usize) -> bool {
        let entry = self.vocabulary.entry(index);
        let count = self.count_of_main();
        let is_count = entry.aggregation == Some(Aggregation::Count) && self.is_of_main_cube(entry);
        let is_only = count.is_some_and(|count| self.draft.values == [count]);
        is_count && is_only && !self.is_listed(at)
    }

    /// Counts the rows of a measure instead of all rows. If a number with a unit follows, as in `arrived 2 hours late`,
    /// the word only describes this number. Returns the number of items read.
    pub(super) fn narrow_count(&mut self, at: usize, text: &str, index: usize, certainty: f64) -> usize {
        let rest = &self.items[at + 1..];
        let is_filler = |item: &&Item| {
            use Meaning::{AtLeast, AtMost, Ignore, Less, More};
            matches!(item.kind, ItemKind::Word(Ignore | More | AtLeast | Less | AtMost))
        };
        let next = rest.iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        if matches!(next, Some(ItemKind::Number(_, Some(_)))) {
            return self.piece(text, "ignored".to_owned(), certainty);
        }
        let name = Arc::clone(&self.vocabulary.entry(index).name);
        self.count_instead(&name);
        self.piece(text, format!("measure {name}"), certainty)
    }

    /// Replaces the only measure, which counts all rows, by one that counts some of them. The order of the rows
    /// follows, as in `on which day did the most flights get cancelled`.
    pub(super) fn count_instead(&mut self, name: &Arc<str>) {
        let all = self.count_of_main();
        if let Some(order) = self.draft.order.as_mut().filter(|order| Some(&order.member) == all.as_ref()) {
            order.member = Arc::clone(name);
        }
        self.draft.values = vec![Arc::clone(name)];
    }

    /// Reads a dimension of text behind `how many`, as in `how many brands do customers rent`: a measure must count its
    /// different values. Returns the number of items read, or `None` if no measure does.
    pub(super) fn counted_values(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item)).map(|item| &item.kind);
        let asks = matches!(before, Some(ItemKind::Word(Meaning::HowMany))) && self.items[at].is_plural;
        let is_text = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Text;
        let counted = self.state.counts.clone()?;
        if !asks || self.state.aggregate.is_some() || !candidates.members.iter().all(is_text) {
            return None;
        }
        let is_distinct = |index: &usize| self.vocabulary.entry(*index).aggregation == Some(Aggregation::CountDistinct);
        let mut found = self.aggregated(text, candidates, Aggregation::CountDistinct);
        found.retain(is_distinct);
        if let [only] = found[..] {
            let name = Arc::clone(&self.vocabulary.entry(only).name);
            self.add_value(&name);
            return Some(self.piece(text, format!("measure {name}"), candidates.certainty));
        }
        self.state.uncounted = Some((counted, text.to_owned()));
        None
    }

    /// Asks the caller for a measure if the question asks for a number of different values that no measure counts.
    pub(super) fn check_counted_values(&mut self) {
        let Some((counted, text)) = self.state.uncounted.take() else { return };
        if self.clarifications.is_empty() && !self.draft.values.is_empty() {
            let message = format!("no measure counts the different values of `{text}`");
            self.unclear(&counted, message, Vec::new());
        }
    }

    /// Reads a number as a condition on a number of each row, or as a limit of rows. Asks the caller about any other
    /// number. Returns the number of items read.
    pub(super) fn number(&mut self, at: usize, text: &str, number: f64, unit: Option<&Unit>) -> usize {
        if let Some(length) = self.comparison_behind(at, number, unit) {
            return length;
        }
        if let Some(length) = unit.and_then(|unit| self.number_with_unit(at, number, unit)) {
            return length;
        }
        // `5 star ratings`
        if let Some(length) = unit.and_then(|unit| self.rows_with_number(at, number, unit)) {
            return length;
        }
        if let Some(length) = self.ranked_periods(at, text, number, unit) {
            return length;
        }
        let is_plain = unit.is_none();
        if is_plain && is_count(number) && self.counts_ranked(at) {
            self.draft.limit = Some(number as u64);
            return self.piece(text, format!("{number} rows"), 1.0);
        }
        // `the 5 carriers with the most flights`
        if is_plain && is_count(number) && self.counts_rows(at) {
            self.draft.limit = Some(number as u64);
            self.state.is_which = true;
            return self.piece(text, format!("{number} rows"), 1.0);
        }
        let has_rows = !self.draft.values.is_empty() || self.state.cube.is_some() || self.names_rows_behind(at + 1);
        if is_plain && has_rows && self.is_before(at, MemberKind::Number) {
            return self.number_of(at, number);
        }
        if is_plain && self.is_before(at, MemberKind::Text) {
            return self.no_count(text);
        }
        let choices = self.choices_of(MemberKind::Number);
        self.unclear(text, format!("`{text}` belongs to no member"), choices);
        1
    }

    /// Reads a number of periods before words that rank, as in `the 3 months with the most flights`. Returns the number
    /// of items read.
    fn ranked_periods(&mut self, at: usize, text: &str, number: f64, unit: Option<&Unit>) -> Option<usize> {
        let word = self.items.get(at + 1).map(|item| &item.kind);
        let (step, length) = match (unit, word) {
            (Some(Unit::Days), _) => ("day", 1),
            (None, Some(ItemKind::Word(meaning))) => (times::unit(*meaning)?, 2),
            _ => return None,
        };
        use Meaning::{Best, Bottom, Ignore, Top, Worst};
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Ignore));
        let next = self.items[at + length..].iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        let is_ranked = matches!(next, Some(ItemKind::Superlative(..) | ItemKind::Word(Top | Bottom | Best | Worst)));
        let is_open = self.draft.values.is_empty() && self.draft.groups.is_empty() && self.draft.granularity.is_none();
        if !is_ranked || !is_open || !is_count(number) || length + at >= self.items.len() {
            return None;
        }
        self.draft.limit = Some(number as u64);
        self.draft.granularity = Some(step);
        self.state.is_which_group = true;
        let whole = if length == 1 { text.to_owned() } else { self.text(at, at + length) };
        self.piece(&whole, format!("{number} rows, grouped by {step}"), 1.0);
        Some(length)
    }

    /// Reads a number with a unit before the name of the rows, as in `5 star stays`: the only number of these rows in this
    /// unit is equal to it. Returns the number of items read.
    fn rows_with_number(&mut self, at: usize, number: f64, unit: &Unit) -> Option<usize> {
        let ItemKind::Member(found) = &self.items.get(at + 1)?.kind else { return None };
        let is_rows = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            (entry.kind == MemberKind::Cube || self.counts_all(&entry.name)) && self.is_of_main_cube(entry)
        };
        if !found.members.iter().any(is_rows) || unit.seconds().is_some() || !self.draft.values.is_empty() {
            return None;
        }
        let numbers = self.vocabulary.entries().filter(|(index, entry)| {
            entry.kind == MemberKind::Number && self.is_of_main_cube(entry) && self.has_unit(*index, unit)
        });
        let mut numbers = numbers.map(|(index, _)| index);
        let (index, None) = (numbers.next()?, numbers.next()) else { return None };
        self.compare((at, at + 1), index, None, false, &[(DraftValue::Number(number), Some(unit.clone()))], 0.9);
        Some(1)
    }

    /// Returns whether the name of rows directly follows a numeric dimension at a place, as in `5 star reviews`.
    fn names_rows_behind(&self, at: usize) -> bool {
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        let kind = self.items.get(at).map(|item| &item.kind);
        let number = matches!(kind, Some(ItemKind::Member(found)) if found.members.iter().all(is_number));
        let rows = self.items.get(at + 1).map(|item| &item.kind);
        number && matches!(rows, Some(ItemKind::Member(found)) if self.names_rows(found))
    }

    /// Returns whether a number limits the rows: the next item may be a string dimension. If a value was selected
    /// before and the next item may also be a numeric dimension, the number is compared with this dimension instead.
    pub(super) fn counts_rows(&self, at: usize) -> bool {
        let is_number_of_row = !self.draft.values.is_empty() && self.is_before(at, MemberKind::Number);
        self.is_before(at, MemberKind::Text) && !is_number_of_row
    }

    /// Returns whether the next item may be a member of a kind.
    pub(super) fn is_before(&self, at: usize, kind: MemberKind) -> bool {
        let Some(ItemKind::Member(candidates)) = self.items.get(at + 1).map(|item| &item.kind) else { return false };
        candidates.members.iter().any(|index| self.vocabulary.entry(*index).kind == kind)
    }

    /// Reads a number before a numeric dimension, as in `planes with 2 engines`. Returns the number of items read.
    pub(super) fn number_of(&mut self, at: usize, number: f64) -> usize {
        let Some(Item { text, kind: ItemKind::Member(candidates), .. }) = self.items.get(at + 1).cloned() else {
            return 1;
        };
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        let members = candidates.members.iter().copied().filter(is_number).collect();
        if let Some(index) = self.pick(&text, &Candidates { members, ..candidates }, Role::Operand) {
            self.compare((at, at + 2), index, None, false, &[(DraftValue::Number(number), None)], 1.0);
        }
        2
    }

    /// Asks the caller for a valid number of rows. Returns the number of items read.
    pub(super) fn no_count(&mut self, text: &str) -> usize {
        self.unclear(text, format!("`{text}` is not a number of rows from 1 to {MAX_ROWS}"), Vec::new());
        1
    }
}
