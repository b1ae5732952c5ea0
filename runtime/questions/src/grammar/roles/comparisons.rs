//! Reads comparisons with numbers: `more than 1000 flights`, `over 2000 miles`, `older than 30`.

use std::sync::Arc;

use super::{Candidates, DraftValue, Item, ItemKind, Reader, Role, shown};
use crate::draft::Unit;
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;

impl Reader<'_> {
    pub(super) fn has_unit(&self, member: usize, unit: &Unit) -> bool {
        self.vocabulary.entry(member).unit.as_ref().is_some_and(|own| own.fits(unit))
    }

    /// Returns whether a number may be compared with a member: one of them has no unit, or the units fit.
    fn may_have_unit(&self, member: usize, unit: Option<&Unit>) -> bool {
        let has_none = self.vocabulary.entry(member).unit.is_none();
        unit.is_none_or(|unit| *unit == Unit::Percent || has_none || self.has_unit(member, unit))
    }

    /// Reads a comparison that no member precedes, as in `more than 1000 flights` and `over 2000 miles`.
    pub(super) fn comparison_without_member(&mut self, at: usize, text: &str, meaning: Meaning) -> usize {
        // `nor delayed by more than 15 minutes`
        let opposite = opposite(meaning).filter(|_| self.is_number(at + 1));
        let meaning = opposite.filter(|_| std::mem::take(&mut self.state.is_negated)).unwrap_or(meaning);
        // `higher than in June` compares periods, but `over Christmas` does not.
        let is_preposition = self.language.has(WordList::AgeComparisons, &text.to_lowercase());
        if matches!(meaning, Meaning::More | Meaning::Less) && !is_preposition && self.is_before_time(at) {
            self.state.compares = true;
            return 1;
        }
        let (values, length) = self.values(at + 1, meaning == Meaning::Between);
        let end = at + 1 + length;
        let next = self.items.get(end).cloned();
        let unit = values.first().and_then(|(_, unit)| unit.clone());
        if let (false, Some(Item { text: name, kind: ItemKind::Member(candidates), .. })) = (values.is_empty(), &next) {
            let candidates = self.compared(candidates, unit.as_ref());
            if !candidates.members.is_empty() {
                if let Some(index) = self.pick(name, &candidates, Role::Any) {
                    let index = self.part_before(at, index).unwrap_or(index);
                    self.compare((at, end + 1), index, Some(meaning), false, &values, 1.0);
                }
                return end + 1 - at;
            }
        }
        let quality = self.compared_quality(text).or_else(|| self.verb_quality(at, unit.as_ref()));
        if let (false, Some(index)) =
            (values.is_empty(), quality.filter(|index| self.may_have_unit(*index, unit.as_ref())))
        {
            self.compare((at, end), index, Some(meaning), false, &values, 0.9);
            return end - at;
        }
        // `flights over 2000 miles` compares the numeric dimension that has this unit.
        if let Some(unit) = &unit
            && let Some(length) = self.compare_unit((at, end), meaning, &values, unit)
        {
            return length;
        }
        // `under 5 or over 10`
        let before = self.compared_before_or(at).filter(|index| self.may_have_unit(*index, unit.as_ref()));
        if let (false, Some(index)) = (values.is_empty(), before) {
            self.compare((at, end), index, Some(meaning), false, &values, 0.9);
            return end - at;
        }
        let whole = self.text(at, end.max(at + 1));
        let message = format!("`{whole}` compares no member");
        let choices = self.choices_of(MemberKind::Number);
        self.unclear(text, message, choices);
        end - at
    }

    /// Returns the measure of some rows directly before a comparison with the number of all rows, as in `which airlines
    /// cancelled more than 500 flights`: the cancelled flights are compared.
    fn part_before(&self, at: usize, index: usize) -> Option<usize> {
        let [part] = &self.draft.values[..] else { return None };
        let part = self.vocabulary.index_of(part)?;
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item))?;
        let ItemKind::Member(found) = &before.kind else { return None };
        let (own, all) = (self.vocabulary.entry(part), self.vocabulary.entry(index));
        let is_part = self.counts(&own.name) && !self.counts_all(&own.name);
        let is_of_all = self.counts_all(&all.name) && own.cube == all.cube;
        (is_part && is_of_all && found.members.contains(&part)).then_some(part)
    }

    /// Reads a number before a comparison, as in `32 degrees or colder` and `200 orders or more`. Returns the number of
    /// items read, or `None` if no comparison follows.
    pub(super) fn comparison_behind(&mut self, at: usize, number: f64, unit: Option<&Unit>) -> Option<usize> {
        let is_end = |place: usize| match self.items.get(place).map(|item| &item.kind) {
            Some(ItemKind::Word(meaning @ (Meaning::AtLeast | Meaning::AtMost))) if !self.is_number(place + 1) => {
                Some(*meaning)
            }
            _ => None,
        };
        let values = [(DraftValue::Number(number), unit.cloned())];
        if let Some(meaning) = is_end(at + 1) {
            let text = self.items[at + 1].text.clone();
            if let Some(length) = self.compare_counted(at, at + 2, meaning, &values) {
                return Some(length);
            }
            let of_verb = || self.verb_quality(at, unit);
            let quality = self.compared_quality(&text).or_else(of_verb);
            if let Some(index) = quality.filter(|index| self.may_have_unit(*index, unit)) {
                self.compare((at, at + 2), index, Some(meaning), false, &values, 0.9);
                return Some(2);
            }
            return unit.and_then(|unit| self.compare_unit((at, at + 2), meaning, &values, unit));
        }
        let meaning = is_end(at + 2)?;
        self.compare_counted(at, at + 1, meaning, &values)
    }

    /// Returns the numeric dimension that all measures among the members aggregate, such as the wind speed in `wind
    /// stronger than 30 mph`. `None` if the question has groups or does not only count rows.
    pub(super) fn combined_number(&self, members: &[usize], unit: &Unit) -> Option<usize> {
        let is_grouped = !self.draft.groups.is_empty() || self.draft.granularity.is_some() || self.state.is_which_group;
        let entries = || members.iter().map(|index| self.vocabulary.entry(*index));
        let counts = self.draft.values.iter().all(|name| self.counts(name));
        if is_grouped || !counts || !entries().all(|entry| entry.kind.is_value()) {
            return None;
        }
        let mut numbers: Vec<usize> =
            entries().filter_map(|entry| self.vocabulary.index_of(entry.combines.as_ref()?)).collect();
        numbers.retain(|index| self.has_unit(*index, unit));
        numbers.dedup();
        let [number] = numbers[..] else { return None };
        Some(number)
    }

    /// Reads a number with a unit before a name, as in `5-star ratings`: the rows whose number in this unit is equal to
    /// it. Returns the number of items read.
    pub(super) fn number_with_unit(&mut self, at: usize, number: f64, unit: &Unit) -> Option<usize> {
        let ItemKind::Member(candidates) = &self.items.get(at + 1)?.kind else { return None };
        let is_number = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            entry.kind == MemberKind::Number && self.is_of_main_cube(entry) && self.has_unit(*index, unit)
        };
        let mut found = candidates.members.iter().copied().filter(is_number);
        let (index, None) = (found.next()?, found.next()) else { return None };
        if !self.draft.values.is_empty() {
            return None;
        }
        self.compare((at, at + 2), index, None, false, &[(DraftValue::Number(number), Some(unit.clone()))], 0.9);
        Some(2)
    }

    /// Compares the member at a place with the number at another place, as in `200 orders or more` and
    /// `200 or more orders`. Returns the number of items read.
    fn compare_counted(
        &mut self,
        at: usize,
        place: usize,
        meaning: Meaning,
        values: &[(DraftValue, Option<Unit>)],
    ) -> Option<usize> {
        let Some(Item { text, kind: ItemKind::Member(candidates), .. }) = self.items.get(place).cloned() else {
            return None;
        };
        let unit = values.first().and_then(|(_, unit)| unit.as_ref());
        let candidates = self.compared(&candidates, unit);
        if candidates.members.is_empty() {
            return None;
        }
        if let Some(index) = self.pick(&text, &candidates, Role::Any) {
            self.compare((at, at + 3), index, Some(meaning), false, values, 1.0);
        }
        Some(3)
    }

    /// Returns the numeric dimension of the main cube with the quality that a word compares, as in `older than 30`, if
    /// there is exactly one.
    fn compared_quality(&self, text: &str) -> Option<usize> {
        self.number_with(self.language.compared_quality(text))
    }

    /// Returns the numeric dimension with the quality that the verb before a comparison names, as in
    /// `cost more than 20`. A length of time must have a unit of time.
    fn verb_quality(&self, at: usize, unit: Option<&Unit>) -> Option<usize> {
        let verb = at.checked_sub(1).map(|at| self.items[at].text.to_lowercase())?;
        let of_time = unit.filter(|unit| unit.seconds().is_some());
        let index = self.number_with(self.language.compared_verb(&verb)?)?;
        of_time.is_none_or(|unit| self.has_unit(index, unit)).then_some(index)
    }

    /// Returns the numeric dimension of the main cube that is named by one of several stems, if there is exactly one.
    fn number_with(&self, stems: &[String]) -> Option<usize> {
        let roots: Vec<String> = stems.iter().map(|stem| self.language.root(stem)).collect();
        let is_compared = |index: usize| roots.iter().any(|root| self.vocabulary.roots(index).contains(root));
        let numbers = self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Number);
        let own = numbers.filter(|(_, entry)| self.is_of_main_cube(entry)).map(|(index, _)| index);
        let mut found = own.filter(|index| is_compared(*index));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// Returns whether a comparison after a cube compares a quality of its rows, as in `customers older than 30`.
    pub(super) fn compares_quality_of_rows(&self, at: usize) -> bool {
        let ItemKind::Member(candidates) = &self.items[at].kind else { return false };
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Equals));
        let Some(item) = self.items[at + 1..].iter().find(|item| !is_filler(item)) else { return false };
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        // `products that cost more than 20`
        let is_verb = matches!(item.kind, ItemKind::Word(Meaning::Verb))
            && self.language.compared_verb(&item.text.to_lowercase()).is_some();
        candidates.members.iter().any(is_cube) && (is_verb || self.compared_quality(&item.text).is_some())
    }

    /// Returns the candidates that a number with a unit can be compared with.
    fn compared(&self, candidates: &Candidates, unit: Option<&Unit>) -> Candidates {
        let is_number = |index: &usize| {
            let kind = self.vocabulary.entry(*index).kind;
            matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric)
        };
        let fits = |index: &usize| unit.is_none_or(|unit| *unit == Unit::Percent || self.has_unit(*index, unit));
        let mut members: Vec<usize> = candidates.members.iter().copied().filter(is_number).filter(fits).collect();
        if members.is_empty() && unit.is_none() && !self.draft.groups.is_empty() {
            members = self.counts_of_cubes(candidates);
        }
        let is_dimension = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        // Without groups, the number of each row is compared, as in `planes with more than 200 seats`.
        let members = match members.iter().copied().filter(is_dimension).collect::<Vec<usize>>() {
            dimensions if !dimensions.is_empty() && self.draft.groups.is_empty() => dimensions,
            _ => members,
        };
        Candidates { members, ..candidates.clone() }
    }

    /// Returns the measures that count the rows of cubes: `regions with more than 10 orders` counts orders.
    fn counts_of_cubes(&self, candidates: &Candidates) -> Vec<usize> {
        let counts = candidates.members.iter().filter_map(|index| self.vocabulary.entry(*index).count.as_ref());
        counts.filter_map(|count| self.vocabulary.index_of(count)).collect()
    }

    /// Returns whether the numbers of a member are percentages, and not fractions.
    pub(super) fn has_percent(&self, member: usize) -> bool {
        matches!(&self.vocabulary.entry(member).unit, Some(Unit::Named(name)) if matches!(&**name, "%" | "percent"))
    }

    pub(super) fn compare(
        &mut self,
        (start, end): (usize, usize),
        index: usize,
        operator: Option<Meaning>,
        is_negated: bool,
        values: &[(DraftValue, Option<Unit>)],
        certainty: f64,
    ) {
        let entry = self.vocabulary.entry(index);
        let name = Arc::clone(&entry.name);
        let whole = self.text(start, end);
        let of_member = if entry.is_share && entry.unit.is_none() { Some(&Unit::Percent) } else { entry.unit.as_ref() };
        if let Some(unit) = of_member.and_then(|unit| self.short_unit(unit))
            && let Some((digits, text)) = self.digits_before_m(start, end)
        {
            let choices = vec![format!("{digits} {unit}").into(), format!("{digits} million").into()];
            let named = if unit == "min" { "minutes" } else { &unit };
            self.unclear(&text, format!("`{text}` may be {named} or millions"), choices);
            return;
        }
        let Some(values) = values.iter().map(|value| converted(value, of_member)).collect::<Option<Vec<_>>>() else {
            self.unclear(&whole, format!("the unit of `{name}` is unknown; leave the unit out"), Vec::new());
            return;
        };
        let operator = match (operator, is_negated, values.len()) {
            (None, false, 1) => "equals",
            (None, true, 1) => "notEquals",
            (None, false, _) => "inList",
            (None, true, _) => "notInList",
            (Some(Meaning::After), false, 1) => "gt",
            (Some(Meaning::Before), false, 1) => "lt",
            (Some(Meaning::More), false, 1) | (Some(Meaning::AtMost), true, 1) => "gt",
            (Some(Meaning::AtLeast), false, 1) | (Some(Meaning::Less), true, 1) => "gte",
            (Some(Meaning::Less), false, 1) | (Some(Meaning::AtLeast), true, 1) => "lt",
            (Some(Meaning::AtMost), false, 1) | (Some(Meaning::More), true, 1) => "lte",
            (Some(Meaning::Between), false, 2) => "between",
            (Some(Meaning::Contains), false, 1) => "contains",
            (Some(Meaning::Contains), true, 1) => "notContains",
            (Some(Meaning::StartsWith), false, 1) => "startsWith",
            (Some(Meaning::EndsWith), false, 1) => "endsWith",
            _ => {
                self.unclear(&whole, format!("`{whole}` is not a condition"), Vec::new());
                return;
            }
        };
        if entry.kind.is_value() {
            self.state.conditions_of_values.push((Arc::clone(&name), whole.clone()));
        }
        let shown: Vec<String> = values.iter().map(shown).collect();
        self.filter(&name, operator, values);
        self.piece(&whole, format!("only where {name} {operator} {}", shown.join(", ")), certainty);
    }

    /// Returns the name of the unit that `m` may stand for: minutes for lengths of time, or the unit with this name.
    fn short_unit(&self, unit: &Unit) -> Option<String> {
        match unit {
            Unit::Named(name) => (self.vocabulary.unit("m") == Some(unit)).then(|| name.to_string()),
            _ => unit.seconds().map(|_| "min".to_owned()),
        }
    }

    /// Returns the digits and the text of a number such as `30m` among some items.
    fn digits_before_m(&self, start: usize, end: usize) -> Option<(String, String)> {
        let digits = |item: &Item| {
            let is_plain = matches!(item.kind, ItemKind::Number(_, None));
            let digits = item.text.strip_suffix('m').filter(|_| is_plain)?;
            digits.parse::<f64>().is_ok().then(|| (digits.to_owned(), item.text.clone()))
        };
        self.items[start..end].iter().find_map(digits)
    }

    /// Returns the values at a place, and the number of items. The values of a list are separated by `and`, `or` or
    /// commas.
    pub(super) fn values(&self, at: usize, is_between: bool) -> (Vec<(DraftValue, Option<Unit>)>, usize) {
        let value = |item: &Item| match &item.kind {
            ItemKind::Number(number, unit) => Some((DraftValue::Number(*number), unit.clone())),
            ItemKind::Quoted | ItemKind::Unknown => Some((DraftValue::Text(item.text.as_str().into()), None)),
            ItemKind::Value(values) => values.first().map(|known| (DraftValue::Text(Arc::clone(&known.value)), None)),
            _ => None,
        };
        let (mut values, mut next) = (Vec::new(), at);
        while let Some(found) = self.items.get(next).and_then(value) {
            values.push(found);
            next += 1;
            let is_list = match self.items.get(next).map(|item| &item.kind) {
                Some(ItemKind::Word(Meaning::Nor)) => self.follows_neither(next),
                joiner => matches!(joiner, Some(ItemKind::Word(Meaning::And))),
            };
            let is_full = is_between && values.len() == 2;
            if is_full || !is_list || self.items.get(next + 1).and_then(value).is_none() {
                break;
            }
            next += 1;
        }
        // The unit may follow only the second number: `between 1 and 2 hours`.
        if is_between && let [(_, first), (_, second)] = &mut values[..] {
            *first = first.take().or_else(|| second.clone());
        }
        (values, next - at)
    }
}

/// Returns the comparison that holds if and only if another one does not.
fn opposite(meaning: Meaning) -> Option<Meaning> {
    match meaning {
        Meaning::More => Some(Meaning::AtMost),
        Meaning::AtLeast => Some(Meaning::Less),
        Meaning::Less => Some(Meaning::AtLeast),
        Meaning::AtMost => Some(Meaning::More),
        _ => None,
    }
}

/// Converts a number to the unit of a member. Returns `None` if the member's unit is unknown or of a different kind.
fn converted((value, unit): &(DraftValue, Option<Unit>), of: Option<&Unit>) -> Option<DraftValue> {
    let (DraftValue::Number(number), Some(unit)) = (value, unit) else { return Some(value.clone()) };
    if *unit == Unit::Percent {
        return match of {
            Some(Unit::Percent) => Some(value.clone()),
            Some(Unit::Named(name)) if matches!(&**name, "%" | "percent") => Some(DraftValue::Number(number * 100.0)),
            _ => None,
        };
    }
    let of = of.filter(|of| of.fits(unit))?;
    Some(DraftValue::Number(match (unit.seconds(), of.seconds()) {
        (Some(from), Some(to)) => number * from / to,
        _ => *number,
    }))
}
