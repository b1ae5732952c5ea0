//! Reads units of time behind numbers with a unit: `35 euros an hour`.

use super::{Item, ItemKind, Reader};
use crate::draft::Unit;
use crate::language::Meaning;
use crate::members::MemberKind;
use crate::spelling::spelled;
use crate::times;

impl Reader<'_> {
    /// Reads a unit of time behind a number with a unit. It belongs to the unit of the member that the number is compared
    /// with, and is not a step of time. If the name of the member has no such word, asks the caller. Returns the number of
    /// items read.
    pub(super) fn unit_of_rate(&mut self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1)?;
        let ItemKind::Number(_, Some(Unit::Named(_))) = self.items[before].kind else { return None };
        let (length, step) = self.rate_unit(at)?;
        let whole = self.text(before, at + length);
        let compared = self.draft.filters.last().and_then(|filter| self.vocabulary.index_of(&filter.member));
        match compared.filter(|_| self.follows_condition()) {
            Some(index) if self.has_rate_unit(index, step) => {
                self.piece(&whole, "a part of the unit".to_owned(), 0.9);
            }
            Some(_) => {
                let choices = self.choices_of(MemberKind::Number);
                self.unclear(&whole, format!("no number is known in the unit of `{whole}`"), choices);
            }
            // The number is unclear already.
            None => {}
        }
        Some(length)
    }

    /// Returns the members whose names or units have the unit of time at a place, as in `over 35 euros an hour`, or all
    /// if none has it or no such unit is there.
    pub(super) fn with_rate_unit(&self, members: Vec<usize>, at: usize) -> Vec<usize> {
        let Some((_, step)) = self.rate_unit(at) else { return members };
        let named: Vec<usize> = members.iter().copied().filter(|index| self.has_rate_unit(*index, step)).collect();
        if named.is_empty() { members } else { named }
    }

    /// Returns the number of items of a unit of time behind a word such as `a`, and its name.
    fn rate_unit(&self, at: usize) -> Option<(usize, &'static str)> {
        let first = self.items.get(at)?;
        let (link, rest) = first.text.split_once(' ').unwrap_or((&first.text, ""));
        if !self.language.is_link(&link.to_lowercase()) {
            return None;
        }
        if let ItemKind::Step(step, _) = first.kind {
            return Some((1, step));
        }
        let next: &Item = if rest.is_empty() { self.items.get(at + 1)? } else { first };
        let word = if rest.is_empty() { &next.text } else { rest };
        Some((if rest.is_empty() { 2 } else { 1 }, self.unit_of_time(word)?))
    }

    fn has_rate_unit(&self, member: usize, step: &str) -> bool {
        let entry = self.vocabulary.entry(member);
        let unit = match &entry.unit {
            Some(Unit::Named(name)) => Some(name),
            _ => None,
        };
        let mut names = entry.phrases.iter().chain(&entry.synonyms).chain(unit).map(|name| spelled(name));
        names.any(|name| name.split([' ', '/']).any(|word| self.unit_of_time(word) == Some(step)))
    }

    /// Returns the unit of time that a word such as `hour` or `hourly` names.
    fn unit_of_time(&self, word: &str) -> Option<&'static str> {
        let stem = self.language.stem(&word.to_lowercase());
        let (1, meaning) = self.language.phrase(&[&stem])? else { return None };
        let hour = (meaning == Meaning::Hour).then_some("hour");
        hour.or_else(|| times::unit(meaning)).or_else(|| times::step(meaning))
    }
}
