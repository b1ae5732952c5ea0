//! Reads ranges of time: those that limit the rows, those of comparisons, and excluded ones.

use std::sync::Arc;

use jiff::civil::Date;

use super::finish::length;
use super::{Comparison, DraftRange, Item, ItemKind, Over, Reader, TimeItem};
use crate::language::{Meaning, WordList};

impl Reader<'_> {
    /// Reads a time, followed by words such as `or later`. Returns the number of items read.
    pub(super) fn time_at(&mut self, at: usize, text: &str, time: TimeItem) -> usize {
        let end = self.items.get(at + 1).map(|item| &item.kind);
        let open = |date: Date| Some(Arc::from(date.to_string()));
        // `in June at least 500 flights` compares a number.
        let end = end.filter(|_| !self.is_number(at + 2));
        let range = match (end, time.days) {
            (Some(ItemKind::Word(Meaning::AtLeast)), Some((first, _))) => DraftRange::Between(open(first), None),
            (Some(ItemKind::Word(Meaning::AtMost)), Some((_, last))) => DraftRange::Between(None, open(last)),
            _ => return self.time(at, text, time),
        };
        let text = self.text(at, at + 2);
        1 + self.time(at, &text, TimeItem { range, days: None, ..time })
    }

    fn time(&mut self, at: usize, text: &str, time: TimeItem) -> usize {
        if let Some(length) = self.unclear_end(at, text).or_else(|| self.unclear_or(at)) {
            self.state.groups = false;
            return length;
        }
        self.state.groups = false;
        let meaning = self.meaning_of_time(&time);
        if let DraftRange::Between(Some(start), Some(end)) = &time.range
            && start > end
        {
            let choices = vec![Arc::clone(end), Arc::clone(start)];
            self.unclear(text, format!("`{text}` ends before it starts: {start} to {end}"), choices);
            return 1;
        }
        if self.state.is_negated || self.continues_excluded(at) {
            return self.excluded_time(text, &time);
        }
        let is_second = self.state.compares_times && !self.state.ranges.is_empty() && self.draft.compare.is_none();
        if std::mem::take(&mut self.state.compares) || is_second {
            // `The previous month` is the month before the time of the question, and not before today.
            let interval = match &time.range {
                DraftRange::Words(words) if time.is_previous => length(words),
                _ => None,
            };
            if let Some(interval) = interval {
                self.note_series(&interval);
                self.draft.compare = Some(Comparison::Shift(interval.as_str().into()));
                return self.piece(text, format!("compared with the time {interval} before"), 1.0);
            }
            self.draft.compare = Some(Comparison::Range(time.range));
            return self.piece(text, format!("compared with {meaning}"), 1.0);
        }
        self.state.ranges.push(time);
        self.piece(text, meaning, 1.0)
    }

    /// Records that each period of a series is compared with the one before, as in `by month compared to the previous
    /// month`.
    fn note_series(&mut self, interval: &str) {
        let units = ["day", "week", "month", "quarter", "year"];
        let Some(unit) = units.into_iter().find(|unit| interval.strip_prefix("1 ") == Some(unit)) else { return };
        let is_step = |item: &Item| matches!(item.kind, ItemKind::Step(step, _) if step == unit);
        if self.draft.granularity == Some(unit) || self.items.iter().any(is_step) {
            self.state.over = Some(Over { unit, piece: self.pieces.len() });
        }
    }

    /// Returns the meaning of a time in words.
    pub(super) fn meaning_of_time(&self, time: &TimeItem) -> String {
        match &time.range {
            DraftRange::Words(words) if time.is_dated => {
                format!("the time {words}, the last one until {}", self.newest)
            }
            DraftRange::Words(words) => format!("the time {words}"),
            DraftRange::Between(start, end) => {
                let day = |day: &Option<Arc<str>>| day.as_deref().unwrap_or("open").to_owned();
                format!("the time from {} to {}", day(start), day(end))
            }
        }
    }

    /// Asks the caller about a period after a word for groups, as in `by June`: it may be the end of a range. Returns
    /// the number of items read.
    fn unclear_end(&mut self, at: usize, text: &str) -> Option<usize> {
        let is_filler = |place: &usize| matches!(self.items[*place].kind, ItemKind::Word(Meaning::Ignore));
        let place = (0..at).rev().find(|place| !is_filler(place))?;
        let word = self.items[place].text.to_lowercase();
        let is_end = match self.items[place].kind {
            // `did United and Delta each have in May`
            ItemKind::Word(Meaning::Group) if self.follows_each(place) => false,
            ItemKind::Word(Meaning::Group) => !self.language.has(WordList::Span, &word),
            ItemKind::Word(Meaning::To) => self.language.has(WordList::End, &word),
            _ => false,
        };
        if !is_end {
            return None;
        }
        let whole = self.text(place, at + 1);
        let words = [Meaning::Until, Meaning::Before].into_iter().filter_map(|of| self.language.word_for(of));
        let is_start = self.language.has(WordList::End, &word);
        let choices = words.filter(|_| is_start).map(|word| format!("{word} {text}").into()).collect();
        self.unclear(&whole, format!("`{whole}` may be the end of a range, or a range of its own"), choices);
        Some(1)
    }

    /// Asks the caller about `or` between a time and another part of the question, because `or` joins only times with
    /// times. Returns the number of items read.
    fn unclear_or(&mut self, at: usize) -> Option<usize> {
        let or = self.or_before(at)?;
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..or].iter().rev().find(|item| !is_filler(item));
        if before.is_some_and(|item| matches!(item.kind, ItemKind::Time(_))) {
            self.state.has_alternative_times = true;
            return None;
        }
        let whole = self.text(or, at + 1);
        self.unclear(&whole, format!("`{whole}` joins a time with another condition, but both must hold"), Vec::new());
        Some(1)
    }

    /// Returns the place of `or` directly before a place. Words such as `in` may be between them.
    pub(super) fn or_before(&self, at: usize) -> Option<usize> {
        let is_filler = |place: &usize| matches!(self.items[*place].kind, ItemKind::Word(Meaning::Ignore));
        let place = (0..at).rev().find(|place| !is_filler(place))?;
        self.language.has(WordList::Or, &self.items[place].text.to_lowercase()).then_some(place)
    }

    /// Returns whether a time continues a list of times that are left out, as in `except in February and March`.
    fn continues_excluded(&self, at: usize) -> bool {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let mut before = self.items[..at].iter().rev().skip_while(is_filler).map(|item| &item.kind);
        let is_listed = matches!(before.next(), Some(ItemKind::Word(Meaning::And)));
        self.state.excluded_days.is_some() && is_listed && matches!(before.next(), Some(ItemKind::Time(_)))
    }

    /// Leaves out a range of time, as in `excluding February`. Returns the number of items read.
    fn excluded_time(&mut self, text: &str, time: &TimeItem) -> usize {
        self.state.is_negated = false;
        let before = self.state.excluded_days.take();
        let days = match (before, time.days) {
            (None, Some(days)) => Some(days),
            (Some((first, end)), Some((start, last))) if end.tomorrow().is_ok_and(|day| day == start) => {
                Some((first, last))
            }
            _ => None,
        };
        self.state.excluded_days = days;
        let Some((first, last)) = days else {
            let message =
                format!("`{text}` is left out, but a question leaves out one range with a first and a last day");
            self.unclear(text, message, Vec::new());
            return 1;
        };
        self.draft.excluded = Some((first.to_string().into(), last.to_string().into()));
        self.piece(text, format!("without the time from {first} to {last}"), 0.9)
    }
}
