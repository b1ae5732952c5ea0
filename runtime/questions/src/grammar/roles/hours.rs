//! Reads hours of the day: `before 7 in the morning`, `between 6 and 9 am`, `in the evening`.
//!
//! They are conditions on the dimension with the hour of the day, if the main cube has one.

use std::sync::Arc;

use super::{Candidates, DraftValue, Item, ItemKind, Reader, Role};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::spelling::spelled;

/// A condition on the hour of the day.
pub(super) struct Hours {
    operator: &'static str,
    hours: Vec<u8>,
    /// The index of the next item.
    end: usize,
}

impl Reader<'_> {
    /// Reads a condition on the hour of the day. Returns the number of items read, or `None` if the items are not such
    /// a condition.
    pub(super) fn hour_condition(&mut self, at: usize) -> Option<usize> {
        let Hours { operator, hours, end } = self.hours_at(at)?;
        let values = hours.into_iter().map(|hour| DraftValue::Number(f64::from(hour))).collect();
        let text = self.text(at, end);
        self.filter_hours(&text, operator, values);
        Some(end - at)
    }

    /// Returns the condition on the hour of the day at a place.
    pub(super) fn hours_at(&self, at: usize) -> Option<Hours> {
        let (meaning, start) = match self.items.get(at)?.kind {
            // The German `nach` groups, or means `after`.
            ItemKind::Word(Meaning::Group)
                if self.language.has(WordList::After, &self.items[at].text.to_lowercase()) =>
            {
                (Meaning::After, at + 1)
            }
            ItemKind::Word(Meaning::Group) if self.language.has(WordList::End, &self.items[at].text.to_lowercase()) => {
                (Meaning::Until, at + 1)
            }
            ItemKind::Word(meaning) => (meaning, at + 1),
            ItemKind::Number(_, None) => (Meaning::Equals, at),
            _ => return None,
        };
        let (first, of_first, end) = self.clock(start)?;
        let second = self.second_clock(meaning, end);
        let (half, end) = match (of_first, second) {
            (None, None) => return None,
            (_, Some((_, half, end))) => (of_first.or(half), end),
            (Some(half), None) => (Some(half), end),
        };
        let first = hour(first, of_first.or(half)?)?;
        let last = match second {
            Some((number, of_second, _)) => Some(hour(number, of_second.or(of_first)?)?),
            None => None,
        };
        let (operator, hours) = match (meaning, last) {
            (Meaning::Before | Meaning::Less | Meaning::Until | Meaning::AtMost, None) => ("lt", vec![first]),
            (Meaning::After | Meaning::Since | Meaning::From | Meaning::More | Meaning::AtLeast, None) => {
                ("gte", vec![first])
            }
            (Meaning::Equals | Meaning::Ignore, None) => ("equals", vec![first]),
            (Meaning::Between | Meaning::From | Meaning::Ignore | Meaning::Equals, Some(last)) if last > first => {
                ("between", vec![first, last - 1])
            }
            _ => return None,
        };
        Some(Hours { operator, hours, end })
    }

    /// Reads a number with its half of the day. Returns the number, the half (true after noon), and the end.
    fn clock(&self, at: usize) -> Option<(f64, Option<bool>, usize)> {
        let ItemKind::Number(number, None) = self.items.get(at)?.kind else { return None };
        let is_filler = |kind: &ItemKind| matches!(kind, ItemKind::Word(Meaning::Ignore));
        let mut end = at + 1;
        while self.items.get(end).is_some_and(|item| is_filler(&item.kind)) {
            end += 1;
        }
        let half = match self.items.get(end).map(|item| &item.kind) {
            Some(ItemKind::Word(Meaning::Am)) => Some(false),
            Some(ItemKind::Word(Meaning::Pm)) => Some(true),
            Some(ItemKind::Word(Meaning::PartOfDay(first, _))) => Some(*first >= 12),
            // `14:00` and `7 o'clock` are hours of the whole day.
            Some(ItemKind::Word(Meaning::OClock)) => return Some(self.part_of_clock(number, end + 1)),
            _ => return Some((number, None, at + 1)),
        };
        Some((number, half, end + 1))
    }

    /// Returns a whole hour with its half of the day and the end. A part of the day may follow, as in `6 o'clock in the
    /// morning`.
    fn part_of_clock(&self, number: f64, end: usize) -> (f64, Option<bool>, usize) {
        let rest = self.items.get(end..).unwrap_or_default();
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let fillers = rest.iter().take_while(is_filler).count();
        match rest.get(fillers).map(|item| &item.kind) {
            Some(ItemKind::Word(Meaning::PartOfDay(first, _))) if number <= 12.0 => {
                (number, Some(*first >= 12), end + fillers + 1)
            }
            _ => (number, Some(number >= 12.0), end),
        }
    }

    /// Reads the second hour of a range.
    fn second_clock(&self, meaning: Meaning, at: usize) -> Option<(f64, Option<bool>, usize)> {
        let ItemKind::Word(joiner) = self.items.get(at)?.kind else { return None };
        let is_joined = match meaning {
            Meaning::Between => joiner == Meaning::And,
            _ => matches!(joiner, Meaning::To | Meaning::Until),
        };
        let found = self.clock(at + 1).filter(|(_, half, _)| half.is_some());
        if is_joined { found } else { None }
    }

    /// Reads a part of the day, such as `morning`. Returns the number of items read.
    pub(super) fn part_of_day(&mut self, text: &str, first: u8, last: u8) -> usize {
        let number = |hour: u8| DraftValue::Number(f64::from(hour));
        self.filter_hours(text, "between", vec![number(first), number(last)]);
        1
    }

    fn filter_hours(&mut self, text: &str, operator: &'static str, values: Vec<DraftValue>) {
        let Some(index) = self.hour_dimension(text) else { return };
        let name = Arc::clone(&self.vocabulary.entry(index).name);
        let shown: Vec<String> = values.iter().map(super::shown).collect();
        self.filter(&name, operator, values);
        self.piece(text, format!("only where {name} {operator} {}", shown.join(", ")), 0.9);
    }

    /// Returns whether a unit is the hour and groups.
    pub(super) fn is_hour_group(&self, meaning: Meaning) -> bool {
        meaning == Meaning::Hour && (self.state.is_which || self.state.groups || self.ranks_groups())
    }

    /// Groups by the hour of the day. Returns the number of items read.
    pub(super) fn hour_group(&mut self, at: usize) -> usize {
        self.state.is_which_group |= !self.state.groups;
        self.note_ranked(at);
        self.state.is_which = false;
        let end = self.end_of_hour(at);
        let text = self.text(at, end);
        let Some(index) = self.hour_dimension(&text) else { return end - at };
        let name = Arc::clone(&self.vocabulary.entry(index).name);
        self.group(&name);
        self.piece(&text, format!("grouped by {name}"), 0.9);
        end - at
    }

    /// Returns whether an hour at a place is one of the day, as in `by hour of the day`.
    pub(super) fn is_hour_of_day(&self, at: usize) -> bool {
        self.end_of_hour(at) > at + 1
    }

    /// Returns the end of `hour of the day`, which is one name.
    fn end_of_hour(&self, at: usize) -> usize {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let end = at + 1 + self.items[at + 1..].iter().take_while(is_filler).count();
        let is_of_day = matches!(self.items.get(end).map(|item| &item.kind), Some(ItemKind::Word(Meaning::Day)));
        if is_of_day && end > at + 1 { end + 1 } else { at + 1 }
    }

    /// Returns the dimension with the hour of the day. Asks the caller if there is none or several.
    fn hour_dimension(&mut self, text: &str) -> Option<usize> {
        let members = self.hour_dimensions();
        if members.is_empty() {
            self.unclear(text, format!("`{text}` needs a dimension with the hour of the day"), Vec::new());
            return None;
        }
        let candidates = Candidates { members, certainty: 1.0, ..Candidates::default() };
        self.pick(text, &candidates, Role::Operand)
    }

    /// Returns the dimensions with the hour of the day.
    pub(super) fn hour_dimensions(&self) -> Vec<usize> {
        let is_hour = |word: &str| {
            let stem = self.language.stem(word);
            matches!(self.language.phrase(&[&stem]), Some((1, Meaning::Hour)))
        };
        let numbers = self.vocabulary.entries().filter(|(_, entry)| {
            entry.kind == MemberKind::Number && entry.unit.is_none() && self.is_of_main_cube(entry)
        });
        let hours = numbers.filter(|(_, entry)| {
            entry.phrases.iter().chain(&entry.synonyms).any(|phrase| spelled(phrase).split(' ').any(is_hour))
        });
        hours.map(|(index, _)| index).collect()
    }
}

/// Returns the hour of the day from 0 to 23.
fn hour(number: f64, is_after_noon: bool) -> Option<u8> {
    let hour = (0.0..=24.0).contains(&number).then_some(number as u8).filter(|_| number.fract() == 0.0)?;
    match (hour, is_after_noon) {
        (12, false) => Some(0),
        (1..=11, true) => Some(hour + 12),
        (13..=24, false) => None,
        _ => Some(hour),
    }
}
