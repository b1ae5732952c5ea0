//! Asks the caller about lengths of time that are no ranges, as in `two weeks ago` and `in the last 12 hours`. Also
//! asks about changes if the question does not name the compared periods.
//!
//! A range of a query has dates, or counts days and longer units. The grammar knows the newest data, but not today.

use std::sync::Arc;

use super::{Item, ItemKind, Reader, TimeItem};
use crate::draft::{Comparison, DraftRange};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::times;

impl Reader<'_> {
    /// Reads a length of time that a range cannot express. Returns the number of items read, or `None` for other items.
    pub(super) fn counted_back(&mut self, at: usize) -> Option<usize> {
        use Meaning::{After, Before, From, Last, Previous, Since, This, Until};
        let start = match self.items.get(at)?.kind {
            ItemKind::Word(meaning) => Some(meaning),
            ItemKind::Number(..) => None,
            _ => return None,
        };
        let has_start = matches!(start, Some(After | Before | From | Last | Previous | Since | This | Until));
        // `since a month ago`
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let fillers = self.items[at + 1..].iter().take_while(is_filler).count();
        let length = if has_start { at + 1 + fillers } else { at };
        let end = self.length_at(length)?;
        let is_ago = matches!(self.items.get(end).map(|item| &item.kind), Some(ItemKind::Word(Meaning::Ago)));
        let is_counted = matches!(self.items[length].kind, ItemKind::Number(..));
        let end = match start {
            _ if is_ago => end + 1,
            // The German `vor 2 Wochen`.
            Some(Before) if is_counted => end,
            Some(Last | Previous | This) if self.is_short(end - 1) => end,
            _ => return None,
        };
        let whole = self.text(at, end);
        let message = match is_ago || start == Some(Before) {
            true => format!("`{whole}` is counted back from today; write a date, or a range such as a month"),
            false => format!("`{whole}` is shorter than a day; a range that is counted back has whole days"),
        };
        let choices = self.newest_periods();
        self.unclear(&whole, message, choices);
        Some(end - at)
    }

    /// Returns the end of the length of time at a place: `2 weeks`, `12 hours`, or a unit alone.
    fn length_at(&self, at: usize) -> Option<usize> {
        let is_unit = |at: usize| {
            let of = self.items.get(at).and_then(|_| self.unit_word(at));
            of.is_some_and(|of| times::unit(of).is_some() || is_short(of))
        };
        match &self.items.get(at)?.kind {
            ItemKind::Number(_, Some(unit)) => unit.seconds().map(|_| at + 1),
            ItemKind::Number(_, None) => is_unit(at + 1).then_some(at + 2),
            _ => is_unit(at).then_some(at + 1),
        }
    }

    /// Returns the meaning of a single word at a place. The word may also be the name of a member, such as `hour`.
    fn unit_word(&self, at: usize) -> Option<Meaning> {
        let item = &self.items[at];
        let stem = self.language.stem(&item.text.to_lowercase());
        match item.kind {
            ItemKind::Word(meaning) => Some(meaning),
            ItemKind::Member(_) => self.language.phrase(&[&stem]).map(|(_, meaning)| meaning),
            _ => None,
        }
    }

    /// Returns whether the item at a place is the word for an hour, which may also be the name of a member.
    pub(super) fn is_hour(&self, at: usize) -> bool {
        self.unit_word(at) == Some(Meaning::Hour)
    }

    /// Returns whether the unit at a place is shorter than a day.
    fn is_short(&self, at: usize) -> bool {
        match &self.items[at].kind {
            ItemKind::Number(_, Some(unit)) => unit.seconds().is_some_and(|seconds| seconds < DAY),
            _ => self.unit_word(at).is_some_and(is_short),
        }
    }

    /// Compares the two ends of a range if the question asks how values change, as in `change from May to June`. Asks
    /// the caller for a step of time or a comparison if the question has none.
    pub(super) fn check_change(&mut self) {
        let Some(text) = self.state.change.take() else { return };
        self.complete_series();
        self.compare_change();
        let orders_value = self.draft.order.as_ref().is_some_and(|order| self.draft.values.contains(&order.member));
        if orders_value && self.draft.compare.is_some() {
            let message = format!("rows are ordered by values, and not by the `{text}` of values");
            self.unclear(&text, message, Vec::new());
            return;
        }
        if self.draft.compare.is_some() {
            return;
        }
        let step = self.draft.granularity;
        if step.is_none() && !self.has_time_group() {
            use Meaning::{Daily, Monthly, Weekly};
            let steps = [Monthly, Weekly, Daily].into_iter().filter_map(|step| self.language.word_for(step));
            let choices = steps.map(Arc::from).collect();
            self.unclear(&text, format!("`{text}` needs a step of time, such as `by month`"), choices);
        } else if !self.has_verb() {
            let over = step.and_then(|step| self.language.phrase_for(Meaning::Over(step)));
            let choices = over.into_iter().map(Arc::from).collect();
            self.unclear(&text, format!("`{text}` needs a comparison of periods"), choices);
        }
    }

    /// Groups by the unit of `month over month` if the question asks how values change and has no time. The answer is
    /// the change of each month.
    fn complete_series(&mut self) {
        let Some(unit) = self.state.over.map(|over| over.unit).filter(|unit| *unit != "year") else { return };
        let is_open = self.draft.granularity.is_none() && self.state.ranges.is_empty() && !self.has_time_group();
        if is_open {
            self.draft.granularity = Some(unit);
            let words = self.state.over.and_then(|over| Some(self.pieces.get(over.piece)?.text.clone()));
            self.piece(&words.unwrap_or_default(), format!("grouped by {unit}"), 0.9);
        }
    }

    /// Compares the two ends of the only range after `compare`, as in `compare May to June`.
    pub(super) fn compare_sides(&mut self) {
        if self.state.compares_times && self.draft.compare.is_none() {
            self.compare_ends(|(start, end)| (start, end));
        }
    }

    /// Compares the last period of the only range with its first one, as in `change from May to June`.
    fn compare_change(&mut self) {
        if self.draft.granularity.is_none() && self.draft.compare.is_none() && !self.has_time_group() {
            self.compare_ends(|(start, end)| (end, start));
        }
    }

    /// Compares the two ends of the only range. `order` returns the period of the values first.
    fn compare_ends(&mut self, order: fn((DraftRange, DraftRange)) -> (DraftRange, DraftRange)) {
        let [time] = &self.state.ranges[..] else { return };
        let Some((range, other)) = time.ends.clone().map(order) else { return };
        let before = self.meaning_of_time(time);
        let range = TimeItem { range, days: None, ends: None, ..time.clone() };
        let other = TimeItem { range: other, ..range.clone() };
        let meaning = format!("{}, compared with {}", self.meaning_of_time(&range), self.meaning_of_time(&other));
        if let Some(piece) = self.pieces.iter_mut().find(|piece| piece.meaning == before) {
            piece.meaning = meaning;
        }
        self.draft.compare = Some(Comparison::Range(other.range));
        self.state.ranges = vec![range];
    }

    fn has_time_group(&self) -> bool {
        let index = |name| self.vocabulary.index_of(name);
        let mut kinds = self.draft.groups.iter().filter_map(|group| index(&group.member));
        kinds.any(|index| self.vocabulary.entry(index).kind == MemberKind::Time)
    }

    /// Returns whether the question has a word such as `did`, so that a word such as `change` is its verb.
    fn has_verb(&self) -> bool {
        let is_auxiliary = |item: &Item| {
            matches!(item.kind, ItemKind::Word(Meaning::How))
                || self.language.has(WordList::Auxiliaries, &item.text.to_lowercase())
        };
        self.items.iter().any(is_auxiliary)
    }
}

impl Reader<'_> {
    /// Asks the caller about a number such as `10.000`, if the language has a point before the fraction: three
    /// zeros are no useful fraction, and other languages separate thousands by a point.
    pub(super) fn check_separators(&mut self) {
        let is_unclear = |item: &&Item| {
            let fraction = item.text.split_once(self.language.decimal_sign()).map(|(_, fraction)| fraction);
            matches!(item.kind, ItemKind::Number(..)) && fraction.is_some_and(is_thousands)
        };
        let texts: Vec<String> = self.items.iter().filter(is_unclear).map(|item| item.text.clone()).collect();
        for text in texts {
            let number = text.split(' ').next().unwrap_or_default();
            let (whole, fraction) = number.split_once(self.language.decimal_sign()).unwrap_or((number, ""));
            let choices = vec![whole.into(), format!("{whole}{fraction}").into()];
            self.unclear(&text, format!("`{number}` may be {whole} or {whole}{fraction}"), choices);
        }
    }
}

/// Returns whether a fraction consists of three zeros. A unit may follow.
fn is_thousands(fraction: &str) -> bool {
    fraction.strip_prefix("000").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// The number of seconds of a day.
const DAY: f64 = 86_400.0;

fn is_short(unit: Meaning) -> bool {
    matches!(unit, Meaning::Hour | Meaning::Minute | Meaning::Second)
}
