//! Reads routes: `between JFK and LAX` means from the first value to the second one.

use std::sync::Arc;

use super::{DraftValue, ItemKind, Reader, certainty_of};
use crate::language::{Direction, Meaning};
use crate::members::KnownValue;

impl Reader<'_> {
    /// Reads a route between two values. Returns the number of items read, or `None` if the items are not a route.
    pub(super) fn route(&mut self, at: usize) -> Option<usize> {
        let [between, first, and, second] = self.items.get(at..at + 4)? else { return None };
        let (ItemKind::Word(Meaning::Between), ItemKind::Word(Meaning::And)) = (&between.kind, &and.kind) else {
            return None;
        };
        let (ItemKind::Value(from), ItemKind::Value(to)) = (&first.kind, &second.kind) else { return None };
        let start = self.end_of_route(&first.text, from, Direction::From)?;
        let end = self.end_of_route(&second.text, to, Direction::To)?;
        let is_reversible = self.end_of_route(&second.text, to, Direction::From).is_some()
            && self.end_of_route(&first.text, from, Direction::To).is_some();
        let (first, second, text) = (first.text.clone(), second.text.clone(), self.text(at, at + 4));
        if is_reversible {
            let message = format!("`{text}` has two directions; write `from {first} to {second}`");
            self.unclear(&text, message, vec![start.member, end.member]);
            return Some(4);
        }
        for (text, known) in [(first, start), (second, end)] {
            let certainty = certainty_of(&text, &known.value);
            self.filter(&known.member, "equals", vec![DraftValue::Text(Arc::clone(&known.value))]);
            self.piece(&text, format!("only where {} equals {}", known.member, known.value), certainty);
        }
        Some(4)
    }

    /// Returns whether two values directly follow a name, of which the first can be an origin and the second a
    /// destination, as in `the route JFK-LAX`.
    pub(super) fn is_before_route(&self, at: usize) -> bool {
        let is_end = |place: usize, wanted: Direction| {
            let kind = self.items.get(place).map(|item| &item.kind);
            let is_wanted = |known: &KnownValue| self.vocabulary.direction(&known.member) == Some(wanted);
            matches!(kind, Some(ItemKind::Value(values)) if values.iter().any(is_wanted))
        };
        is_end(at + 1, Direction::From) && is_end(at + 2, Direction::To)
    }

    /// Returns the dimension value that a word names as an end of a route, if exactly one such value has rows. A value
    /// of the main cube takes precedence over the same value of another cube.
    fn end_of_route(&self, text: &str, values: &[KnownValue], direction: Direction) -> Option<KnownValue> {
        let is_end = |known: &&KnownValue| self.vocabulary.direction(&known.member) == Some(direction);
        let mut found: Vec<&KnownValue> = values.iter().filter(is_end).collect();
        let most = found.iter().filter_map(|known| known.rows).max().unwrap_or(0);
        let of_both = values.iter().filter_map(|known| known.rows).max().unwrap_or(0);
        found.retain(|known| known.rows.is_none_or(|rows| rows > 0 && self.occurs_often(rows, of_both.max(most))));
        let is_own = |known: &KnownValue| {
            let index = self.vocabulary.index_of(&known.member);
            index.is_some_and(|index| self.is_of_main_cube(self.vocabulary.entry(index)))
        };
        if found.iter().any(|known| is_own(known)) {
            found.retain(|known| is_own(known));
        }
        let is_equal = |known: &KnownValue| certainty_of(text, &known.value) >= 1.0;
        if found.iter().any(|known| is_equal(known)) {
            found.retain(|known| is_equal(known));
        }
        let [only] = found[..] else { return None };
        Some(only.clone())
    }
}
