//! Completes the draft after the last item: the measure, the order, the times.

use std::sync::Arc;

use super::{ItemKind, MAX_CHOICES, NeededMeasure, Over, Reader, TimeItem};
use crate::draft::{Aggregation, Comparison, DraftFilter, DraftRange, DraftValue};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::times;

impl Reader<'_> {
    /// Completes the draft with the count of rows, the order of a ranking and the range.
    pub(super) fn finish(&mut self) {
        self.join_alternatives();
        self.list_names();
        self.complete_quality();
        self.need_object();
        self.complete_sum();
        self.check_measure();
        let mut is_counted = false;
        if self.draft.values.is_empty()
            && self.state.superlative.is_none()
            && let Some(count) = self.count()
        {
            self.draft.values.push(count);
            is_counted = true;
        }
        let is_ranked = self.state.rank.is_some();
        self.complete_ranking();
        self.check_events();
        self.complete_joins();
        self.check_aggregate(is_counted);
        self.compare_sides();
        self.check_change();
        self.check_order();
        let ranks =
            is_ranked || self.draft.limit.is_some() || self.draft.order.is_some() || self.draft.granularity.is_some();
        let is_list = !self.draft.groups.is_empty()
            && !ranks
            && self.draft.compare.is_none()
            && (self.state.ranges.is_empty() || self.draft.time.is_some());
        self.check_counted_values();
        // `how many classes` does not ask for their names.
        if let Some(text) =
            self.state.counts.take().filter(|_| self.draft.values.is_empty() && self.clarifications.is_empty())
        {
            let choices = self.choices_of(MemberKind::Measure);
            self.unclear(&text, format!("`{text}` needs a measure that counts"), choices);
        }
        if self.draft.values.is_empty() && !is_list && self.clarifications.is_empty() {
            let measures = self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Measure);
            let choices = measures.map(|(_, entry)| Arc::clone(&entry.name)).take(MAX_CHOICES).collect();
            self.unclear("", "the question names no measure".to_owned(), choices);
        }
        self.check_bare_groups();
        self.check_persons();
        self.check_asked_time();
        self.complete_alphabetical();
        self.complete_order_piece();
        self.check_contradictions();
        self.complete_range();
        self.complete_comparison();
        self.check_units();
        self.check_separators();
        if self.draft.totals && self.draft.groups.is_empty() && self.draft.granularity.is_none() {
            let choices = self.text_dimensions();
            self.unclear("", "a share needs a group, or a measure that is a rate".to_owned(), choices);
        }
        // `flights over 60` would compare the total with a number.
        if self.draft.groups.is_empty() && self.draft.granularity.is_none() {
            for (_, text) in std::mem::take(&mut self.state.conditions_of_values) {
                let choices = self.choices_of(MemberKind::Number);
                self.unclear(&text, format!("`{text}` compares a total; name a group or a dimension"), choices);
            }
        }
        self.complete_alternatives();
    }

    /// Selects the measures of conditions if the question names no other measure. Asks the caller if a word needs a
    /// measure, or if a word excludes groups rather than rows.
    fn check_measure(&mut self) {
        if self.state.is_negated {
            let word = self.state.negation.clone();
            self.unclear(&word, format!("`{word}` excludes no value"), Vec::new());
        }
        let needed = self.state.needs_measure.take();
        if let Some(NeededMeasure { text, accepts_count }) = needed
            && (self.draft.values.is_empty() || !(accepts_count || self.state.change.is_some()))
            && self.draft.values.iter().all(|name| self.counts(name))
            && self.state.units.is_empty()
        {
            let choices = self.choices_of(MemberKind::Measure);
            self.unclear(&text, format!("`{text}` needs a measure"), choices);
        }
        if !self.draft.values.is_empty() || self.state.superlative.is_some() {
            return;
        }
        let unit = self.state.units.first().cloned();
        if let Some((text, unit)) = unit {
            self.state.units.clear();
            let choices = self.measures_in(&unit);
            self.unclear(&text, format!("`{text}` is a unit; name a measure"), choices);
        }
        let is_group_excluded = self.state.is_which_group && self.state.cube.is_none();
        if let Some(word) = self.state.excluded.take().filter(|_| is_group_excluded) {
            self.unclear(&word, format!("`{word}` excludes rows; groups with other rows remain"), Vec::new());
        }
        for (name, _) in self.state.conditions_of_values.clone() {
            self.add_value(&name);
        }
    }

    /// Removes repeated conditions. Asks the caller about two conditions that no row meets, as in `is JFK` and
    /// `is LGA`.
    fn check_contradictions(&mut self) {
        let mut filters: Vec<DraftFilter> = Vec::new();
        for filter in std::mem::take(&mut self.draft.filters) {
            if !filters.contains(&filter) {
                filters.push(filter);
            }
        }
        let together: Vec<&DraftFilter> = filters.iter().filter(|filter| !self.has_alternative(filter)).collect();
        let is_selection = |filter: &&&DraftFilter| matches!(filter.operator, "equals" | "inList");
        let selections: Vec<&DraftFilter> = together.iter().filter(is_selection).copied().collect();
        let excludes = |one: &DraftFilter, other: &DraftFilter| {
            one.member == other.member && one.values.iter().all(|value| !other.values.contains(value))
        };
        let is_contradicted =
            |(at, one): &(usize, &&DraftFilter)| selections[at + 1..].iter().any(|other| excludes(one, other));
        let member = selections.iter().enumerate().find(is_contradicted).map(|(_, filter)| Arc::clone(&filter.member));
        let is_empty = |one: &DraftFilter| together.iter().any(|other| is_beyond(one, other));
        let unbounded = together.iter().find(|one| is_empty(one)).map(|filter| Arc::clone(&filter.member));
        let member = member.or(unbounded);
        self.draft.filters = filters;
        if let Some(member) = member {
            let message =
                format!("`{member}` cannot meet two conditions that exclude each other; a list of values needs `or`");
            self.unclear("", message, vec![member]);
        }
    }

    /// Asks the caller for a group if the question begins with a word such as `who`, but names no rows that are persons.
    fn check_persons(&mut self) {
        let Some(first) = self.items.first().filter(|item| item.kind == ItemKind::Word(Meaning::Which)) else { return };
        let is_person = self.language.has(WordList::Persons, &first.text.to_lowercase());
        let has_group = !self.draft.groups.is_empty() || self.draft.granularity.is_some();
        if !is_person || has_group || !self.clarifications.is_empty() {
            return;
        }
        let text = first.text.clone();
        let choices = self.text_dimensions();
        self.unclear(&text, format!("`{text}` asks for names; write the group, as in `which customer`"), choices);
    }

    /// Asks the caller for a step of time if the question begins with a word such as `when`.
    fn check_asked_time(&mut self) {
        let asks = |item: &&super::Item| self.language.has(WordList::AskedTimes, &item.text.to_lowercase());
        let Some(text) = self.items.first().filter(asks).map(|item| item.text.clone()) else { return };
        if self.draft.granularity.is_some() || !self.draft.groups.is_empty() || !self.clarifications.is_empty() {
            return;
        }
        use Meaning::{Daily, Monthly, Weekly};
        let steps = [Monthly, Weekly, Daily].into_iter().filter_map(|step| self.language.word_for(step));
        let choices = steps.map(Arc::from).collect();
        self.unclear(&text, format!("`{text}` asks for a time; write a step, as in `by month`"), choices);
    }

    pub(super) fn counts(&self, name: &Arc<str>) -> bool {
        let index = self.vocabulary.index_of(name);
        index.is_some_and(|index| self.vocabulary.entry(index).aggregation == Some(Aggregation::Count))
    }

    /// Asks the caller about a word such as `average` if it fits no measure of the question. `is_counted` is true if
    /// the question names no measure, so that its rows are counted: `total rain` is not a number of hours.
    fn check_aggregate(&mut self, is_counted: bool) {
        let Some((aggregation, word)) = self.state.aggregate.take() else { return };
        let has = |name: &Arc<str>| {
            let entry = self.vocabulary.index_of(name).map(|index| self.vocabulary.entry(index));
            entry.is_some_and(|entry| entry.aggregation.is_none_or(|own| own == aggregation))
        };
        let is_sum = aggregation == Aggregation::Sum && !self.draft.values.is_empty() && !is_counted;
        if !is_sum && !self.draft.values.iter().any(has) {
            self.unclear(&word, format!("`{word}` belongs to no measure"), Vec::new());
        }
    }

    /// Asks the caller for a group if the question ranks rows that have none. A maximum is the highest value by itself.
    fn check_order(&mut self) {
        let has_groups = !self.draft.groups.is_empty() || self.draft.granularity.is_some();
        let Some(order) = self.draft.order.as_ref().filter(|_| !has_groups && self.state.order_piece.is_none()) else {
            return;
        };
        let entry = self.vocabulary.index_of(&order.member).map(|index| self.vocabulary.entry(index));
        let is_extreme =
            matches!(entry.and_then(|entry| entry.aggregation), Some(Aggregation::Maximum | Aggregation::Minimum));
        if is_extreme && self.draft.limit.is_none() {
            self.draft.order = None;
        } else if self.clarifications.is_empty() {
            let text = self.state.rank_text.clone();
            let choices = self.text_dimensions();
            self.unclear(&text, format!("`{text}` ranks groups, but the question has no group"), choices);
        }
    }

    /// Sets the range of time. Times that follow one another, as in `in June and July`, are one range.
    fn complete_range(&mut self) {
        let mut ranges = std::mem::take(&mut self.state.ranges).into_iter();
        let Some(mut whole) = ranges.next() else { return };
        for next in ranges {
            if let Some(both) = overlap(&whole, &next).filter(|_| !self.state.has_alternative_times) {
                whole = both;
                continue;
            }
            whole = match (whole.days, next.days) {
                (Some((first, end)), Some((start, last))) if end.tomorrow().is_ok_and(|day| day == start) => {
                    let range = DraftRange::Between(Some(first.to_string().into()), Some(last.to_string().into()));
                    TimeItem {
                        range,
                        days: Some((first, last)),
                        is_dated: whole.is_dated,
                        is_previous: false,
                        ends: None,
                    }
                }
                _ => {
                    let choices = [&whole, &next].into_iter().filter_map(|time| shown_range(&time.range)).collect();
                    self.unclear("", "the question has several times".to_owned(), choices);
                    break;
                }
            };
        }
        self.draft.range = Some(whole.range);
    }

    pub(super) fn complete_comparison(&mut self) {
        if self.draft.compare.is_none() {
            return;
        }
        if self.draft.range.is_none() {
            self.draft.range = self.compared_period();
        }
        let previous = match &self.draft.range {
            Some(DraftRange::Words(words)) => length(words),
            _ => None,
        };
        match (&self.draft.compare, &self.draft.range, previous) {
            (_, None, _) => {
                let choices = self.newest_periods();
                self.unclear("", "a comparison needs a time".to_owned(), choices);
            }
            (Some(Comparison::Shift(shift)), Some(_), previous) if shift.is_empty() => match previous {
                Some(previous) => self.draft.compare = Some(Comparison::Shift(previous.into())),
                None => {
                    let choices = self.newest_periods();
                    self.unclear("", "the period before this time is unknown".to_owned(), choices);
                }
            },
            _ => {}
        }
    }

    /// Returns the period that a comparison without a time is about: the newest complete one for `year over year`, and
    /// this year for `vs last year`.
    fn compared_period(&mut self) -> Option<DraftRange> {
        if let Some(Comparison::Range(DraftRange::Words(words))) = &self.draft.compare {
            // `vs last month`
            let is_unit = |unit: &&str| ["day", "week", "month", "quarter", "year"].contains(unit);
            let unit = words.strip_prefix("last ").filter(is_unit).map(|unit| format!("this {unit}"));
            let this = unit.or_else(|| (&**words == "yesterday").then(|| "today".to_owned()))?;
            return Some(DraftRange::Words(this.into()));
        }
        if self.state.compares_last_year {
            return Some(DraftRange::Words("this year".into()));
        }
        let Over { unit, piece } = self.state.over?;
        // The months of a year are compared one by one: `monthly orders month over month`.
        let is_series = self.draft.granularity.is_some_and(|step| rank_of(step) >= rank_of(unit));
        let period = if is_series { "year" } else { unit };
        let words = times::newest_complete(self.newest, period)?;
        self.state.is_dated = true;
        if let Some(piece) = self.pieces.get_mut(piece) {
            piece.meaning.push_str(&format!(", in {words}, the last complete {period} until {}", self.newest));
        }
        Some(DraftRange::Words(words.into()))
    }

    /// Returns the newest complete month, quarter and year, as choices.
    pub(super) fn newest_periods(&mut self) -> Vec<Arc<str>> {
        self.state.is_dated = true;
        let units = ["month", "quarter", "year"].into_iter();
        units.filter_map(|unit| Some(times::newest_complete(self.newest, unit)?.into())).collect()
    }

    /// Returns the measure that counts rows, for a question that names no measure.
    pub(super) fn count(&self) -> Option<Arc<str>> {
        let is_list = self.state.cube.is_none() && self.draft.segments.is_empty() && self.draft.filters.is_empty();
        if is_list {
            return None;
        }
        let named = self.state.cube.map(|index| self.vocabulary.entry(index));
        let of_main = || {
            let cubes =
                self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == MemberKind::Cube);
            cubes.into_iter().find(|entry| self.is_of_main_cube(entry))
        };
        named.or_else(of_main)?.count.clone()
    }

    /// Returns the measure that counts the rows of the named cube or else of the main cube.
    pub(super) fn count_of_main(&self) -> Option<Arc<str>> {
        let named = self.state.cube.map(|index| self.vocabulary.entry(index));
        let main = || self.main_cube.as_ref().and_then(|name| self.vocabulary.cube(name));
        named.or_else(main)?.count.clone()
    }

    /// Adds the direction to the meaning of the part that orders the rows.
    pub(super) fn complete_order_piece(&mut self) {
        let piece = self.state.order_piece.and_then(|at| self.pieces.get_mut(at));
        if let (Some(piece), Some(order)) = (piece, &self.draft.order) {
            piece.meaning.push_str(if order.is_descending { ", descending" } else { ", ascending" });
        }
    }
}

/// Returns whether the lower bound of a condition is above the upper bound of another one for the same member.
fn is_beyond(lower: &DraftFilter, upper: &DraftFilter) -> bool {
    let low = match (lower.operator, &lower.values[..]) {
        ("gt" | "gte", [DraftValue::Number(low)]) | ("between", [DraftValue::Number(low), _]) => low,
        _ => return false,
    };
    let high = match (upper.operator, &upper.values[..]) {
        ("lt" | "lte", [DraftValue::Number(high)]) | ("between", [_, DraftValue::Number(high)]) => high,
        _ => return false,
    };
    lower.member == upper.member && low > high
}

/// Returns the place of a unit in their order.
fn rank_of(unit: &str) -> Option<usize> {
    ["hour", "day", "week", "month", "quarter", "year"].iter().position(|known| *known == unit)
}

/// Returns a range in words of a question.
fn shown_range(range: &DraftRange) -> Option<Arc<str>> {
    match range {
        DraftRange::Words(words) => Some(Arc::clone(words)),
        DraftRange::Between(start, end) => start.clone().or_else(|| end.clone()),
    }
}

/// Returns the length of a range, such as `1 month` for `this month`.
pub(super) fn length(words: &str) -> Option<String> {
    if let Some(rest) = words.strip_prefix("this ").or_else(|| words.strip_prefix("last ")) {
        let counted = rest.starts_with(|c: char| c.is_ascii_digit());
        return Some(if counted { rest.to_owned() } else { format!("1 {rest}") });
    }
    match (words, words.len()) {
        ("today" | "yesterday", _) => Some("1 day".to_owned()),
        (_, 4) => Some("1 year".to_owned()),
        (_, 7) if words.contains('Q') => Some("1 quarter".to_owned()),
        (_, 7) => Some("1 month".to_owned()),
        (_, 8) => Some("1 week".to_owned()),
        (_, 10) => Some("1 day".to_owned()),
        _ => None,
    }
}

/// Returns the range between the start of one open range and the end of another, as in
/// `after 1 June and before 5 June`.
fn overlap(one: &TimeItem, other: &TimeItem) -> Option<TimeItem> {
    let (start, end) = match (&one.range, &other.range) {
        (DraftRange::Between(Some(start), None), DraftRange::Between(None, Some(end)))
        | (DraftRange::Between(None, Some(end)), DraftRange::Between(Some(start), None)) => (start, end),
        _ => return None,
    };
    let range = DraftRange::Between(Some(Arc::clone(start)), Some(Arc::clone(end)));
    (start <= end).then(|| TimeItem { range, is_dated: one.is_dated || other.is_dated, ..one.clone() })
}
