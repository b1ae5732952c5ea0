//! Reads conditions: a member, a comparison and values, in the orders in which questions have them.

use std::sync::Arc;

use super::{CERTAINTY_OF_GUESS, Candidates, DraftValue, ItemKind, Reader, Role, certainty_of};
use crate::draft::Unit;
use crate::language::{Meaning, WordList};
use crate::members::{KnownValue, MemberKind};
use crate::spelling::spelled;

impl Reader<'_> {
    /// Reads a condition: a member, a comparison and its values. Returns the number of items, or `None` if the member
    /// has no condition.
    pub(super) fn condition(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        // In `carriers with more than 1000 flights`, the number belongs to the member after it.
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        let unit = self.combined_word(at, candidates);
        if !candidates.members.iter().any(is_number) && unit.is_none() && self.compares_next_member(at) {
            return None;
        }
        if self.compares_quality_of_rows(at) {
            return None;
        }
        let mut next = at + 1;
        let mut is_negated = self.state.is_negated;
        let mut operator = None;
        // True after a word that announces a value: `is`, `except`.
        let mut is_announced = is_negated;
        // True if only a word such as `without` announces the value.
        let mut is_excluded = is_negated;
        while let Some(ItemKind::Word(meaning)) = self.items.get(next).map(|item| &item.kind) {
            match meaning {
                Meaning::Ignore | Meaning::Verb => {}
                // The German `von` also links a member and its value.
                Meaning::From if self.language.is_link(&self.items[next].text.to_lowercase()) => {}
                Meaning::Equals => (is_announced, is_excluded) = (true, false),
                Meaning::Not => {
                    (is_negated, is_excluded) = (true, is_excluded || !is_announced);
                    is_announced = true;
                    self.state.negation = self.items[next].text.clone();
                }
                Meaning::Missing => {
                    let index = self.pick(text, candidates, Role::Operand)?;
                    let name = Arc::clone(&self.vocabulary.entry(index).name);
                    let (operator, state) = if is_negated { ("set", "not missing") } else { ("notSet", "missing") };
                    self.filter(&name, operator, Vec::new());
                    let whole = self.text(at, next + 1);
                    self.piece(&whole, format!("only rows where {name} is {state}"), candidates.certainty);
                    return Some(next + 1 - at);
                }
                meaning @ (Meaning::More
                | Meaning::AtLeast
                | Meaning::Less
                | Meaning::AtMost
                | Meaning::Between
                | Meaning::Before
                | Meaning::After
                | Meaning::Contains
                | Meaning::StartsWith
                | Meaning::EndsWith) => operator = Some(*meaning),
                // `built in or after 2000`
                Meaning::Since if candidates.members.iter().any(is_number) => operator = Some(Meaning::AtLeast),
                Meaning::Until if candidates.members.iter().any(is_number) => operator = Some(Meaning::AtMost),
                _ => break,
            }
            next += 1;
            if operator.is_some() {
                break;
            }
        }
        // `orders after 6 pm` has a condition on the hour of the day.
        let is_hour = (at + 1..=next).any(|place| self.hours_at(place).is_some());
        let (mut values, mut length) = self.values(next, operator == Some(Meaning::Between));
        // `without an e-mail address` excludes no value.
        if values.is_empty() || is_hour || (is_excluded && self.is_name_noun(next)) {
            return None;
        }
        if is_announced && operator.is_none() && self.is_value_of_rows(next, candidates) {
            return None;
        }
        // The comparison may follow the number: `90 minutes or more`.
        if operator.is_none()
            && let Some(ItemKind::Word(meaning @ (Meaning::AtLeast | Meaning::AtMost))) =
                self.items.get(next + length).map(|item| &item.kind)
            && !matches!(self.items.get(next + length + 1).map(|item| &item.kind), Some(ItemKind::Number(..)))
        {
            operator = Some(*meaning);
            length += 1;
        }
        // A value directly after a member belongs to it only if no other rule explains the value.
        let wants_text = values.iter().any(|(value, _)| matches!(value, DraftValue::Text(_)));
        if operator.is_none() && !wants_text && next == at + 1 && !candidates.members.iter().any(is_number) {
            return None;
        }
        let fits = |kind: MemberKind| match (wants_text, operator) {
            (true, _) => kind == MemberKind::Text,
            (false, Some(_)) => matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric),
            (false, None) => kind == MemberKind::Number,
        };
        let mut members: Vec<usize> =
            candidates.members.iter().copied().filter(|member| fits(self.vocabulary.entry(*member).kind)).collect();
        if wants_text && operator.is_none() {
            let is_adjacent = next == at + 1;
            // `by airport without JetBlue` excludes a value of another dimension.
            let is_known = matches!(self.items.get(next).map(|item| &item.kind), Some(ItemKind::Value(_)));
            let is_guess = self.is_guess(at, next, candidates) || (is_excluded && self.is_plain_word(next));
            let is_announced = is_announced && !is_guess && !(is_excluded && is_known);
            members.retain(|member| self.may_have_value(*member, next, is_adjacent, is_announced));
        }
        // In `on-time rate below 75%`, the measure is a value as well.
        let is_value = |member: &usize| self.vocabulary.entry(*member).kind.is_value();
        if operator.is_some()
            && members.iter().all(is_value)
            && matches!(values.first(), Some((_, Some(Unit::Percent))))
        {
            members.retain(|member| self.vocabulary.entry(*member).is_share || self.has_percent(*member));
        }
        // In `flights over 2000 miles`, the number belongs to a member with this unit.
        if let Some((_, Some(unit))) = values.first()
            && *unit != Unit::Percent
            && !members.iter().any(|member| is_number(member) || self.has_unit(*member, unit))
        {
            return None;
        }
        // In `rated 2 stars or less`, the number with this unit is compared, and not the number of ratings.
        if let Some((_, Some(unit))) = values.first()
            && members.iter().any(|member| self.has_unit(*member, unit))
        {
            members.retain(|member| self.has_unit(*member, unit));
        }
        if members.is_empty() {
            return None;
        }
        if let (Some(_), [(_, Some(unit))]) = (operator, &values[..])
            && (candidates.certainty < 1.0 || members.iter().all(|member| candidates.by_synonym.contains(member)))
            && let Some(number) = self.combined_number(&members, unit)
        {
            members = vec![number];
        }
        // `deliveries that took longer than a week`: a part of a name compares the number of each row.
        if operator.is_some()
            && candidates.certainty < 1.0
            && self.draft.groups.is_empty()
            && members.iter().any(is_number)
        {
            members.retain(is_number);
        }
        let index = self.pick(text, &Candidates { members, ..candidates.clone() }, Role::Any)?;
        let end = next + length;
        // In `by carrier except UA` and `by carrier for UA and DL`, the member is a group as well.
        let entry = self.vocabulary.entry(index);
        let is_listed = self.continues_groups(at) && next > at + 1;
        if self.state.groups && (is_negated || is_listed) && entry.kind == MemberKind::Text {
            self.group(&Arc::clone(&entry.name));
        }
        let mut certainty: f64 = 1.0;
        if wants_text {
            // One item lies between two values: `and`, `or` or a comma.
            for (number, (value, _)) in values.iter_mut().enumerate() {
                match self.value_of(index, next + 2 * number, operator.is_some()) {
                    Ok((found, of_value)) => {
                        *value = found;
                        certainty = certainty.min(of_value);
                    }
                    Err(message) => {
                        let text = self.items[next + 2 * number].text.clone();
                        let choices = self.text_dimensions();
                        self.unclear(&text, message, choices);
                        self.state.is_negated = false;
                        return Some(end - at);
                    }
                }
            }
        }
        self.compare((at, end), index, operator, is_negated, &values, certainty);
        self.state.is_negated = false;
        self.state.is_which = false;
        Some(end + usize::from(unit == Some(end)) - at)
    }

    /// Returns the place of the name of the number that a measure combines, behind a comparison with the measure, as in
    /// `average stay above 6 nights`: it is the unit of the number.
    fn combined_word(&self, at: usize, candidates: &Candidates) -> Option<usize> {
        use Meaning::{AtLeast, AtMost, Ignore, Less, More};
        let is_filler = |item: &&super::Item| matches!(item.kind, ItemKind::Word(Ignore));
        let comparison = at + 1 + self.items[at + 1..].iter().take_while(is_filler).count();
        let is_compared = matches!(self.items.get(comparison)?.kind, ItemKind::Word(More | Less | AtLeast | AtMost));
        let ItemKind::Member(found) = &self.items.get(comparison + 2)?.kind else { return None };
        let is_combined = |index: &usize| {
            let combined = self.vocabulary.entry(*index).combines.as_ref();
            let shares = |other: &usize| {
                let other = self.vocabulary.entry(*other);
                combined == Some(&other.name) || other.combines.as_ref() == combined
            };
            combined.is_some() && found.members.iter().any(shares)
        };
        let is_meant = is_compared && self.is_number(comparison + 1) && candidates.members.iter().all(is_combined);
        is_meant.then_some(comparison + 2)
    }

    /// Returns whether the item at a place is an unknown word that does not look like a name.
    fn is_plain_word(&self, at: usize) -> bool {
        self.items.get(at).is_some_and(|item| {
            item.kind == ItemKind::Unknown && !item.text.contains(|c: char| c.is_uppercase() || c.is_numeric())
        })
    }

    /// Returns whether the word at `next` would only be a guess as the value of the member at `at`. In
    /// `patients are still in hospital`, the last word does not name a patient. It is a value after `named`, and in
    /// `where city is rome`.
    fn is_guess(&self, at: usize, next: usize, candidates: &Candidates) -> bool {
        let announces = |list: WordList, item: &super::Item| self.language.has(list, &item.text.to_lowercase());
        let is_named = next > at + 1 && announces(WordList::Naming, &self.items[next - 1]);
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        let is_link = |item: &&super::Item| self.language.is_link(&item.text.to_lowercase());
        let before = self.items[..at].iter().rev().find(|item| !is_link(item));
        let is_condition = before.is_some_and(|item| announces(WordList::Conditions, item));
        let is_where = is_condition && !candidates.members.iter().any(is_cube);
        self.is_plain_word(next) && !is_named && !is_where
    }

    /// Returns whether the item at a place is a value of another dimension of the rows that a name stands for. In
    /// `customers are in the toys industry`, the industry of the customers has the value.
    fn is_value_of_rows(&self, at: usize, candidates: &Candidates) -> bool {
        let Some(ItemKind::Value(values)) = self.items.get(at).map(|item| &item.kind) else { return false };
        let entries = || candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let is_own = |known: &KnownValue| entries().any(|entry| entry.name == known.member);
        let is_of_rows = |known: &KnownValue| {
            let cube = known.member.split('.').next();
            entries().any(|entry| entry.kind == MemberKind::Cube && Some(&*entry.name) == cube)
        };
        !values.iter().any(is_own) && values.iter().any(is_of_rows)
    }

    /// Returns whether the item at a place may be a value of a member. An unknown word may be a value in two cases.
    /// Either another word announces it, as in `carrier is UA`, or it directly follows the member and looks like a
    /// name, as in `carrier UA`.
    pub(super) fn may_have_value(&self, member: usize, at: usize, is_adjacent: bool, is_announced: bool) -> bool {
        let Some(item) = self.items.get(at) else { return false };
        let is_own = |known: &KnownValue| known.member == self.vocabulary.entry(member).name;
        match &item.kind {
            ItemKind::Value(values) => is_announced || values.iter().any(is_own),
            ItemKind::Quoted => is_announced || is_adjacent,
            ItemKind::Unknown => {
                let is_name = |c: char| c.is_uppercase() || c.is_numeric();
                is_announced || (is_adjacent && item.text.contains(is_name))
            }
            _ => true,
        }
    }

    /// Returns the value of a member at a place, and its certainty.
    pub(super) fn value_of(&self, member: usize, at: usize, has_operator: bool) -> Result<(DraftValue, f64), String> {
        let (item, name) = (&self.items[at], &self.vocabulary.entry(member).name);
        let as_written = (DraftValue::Text(item.text.as_str().into()), CERTAINTY_OF_GUESS);
        if has_operator {
            return Ok((as_written.0, 1.0));
        }
        let no_value = || Err(format!("`{}` is unknown: `{name}` has no such value", item.text));
        if let ItemKind::Value(values) = &item.kind {
            let own: Vec<&KnownValue> = values.iter().filter(|known| known.member == *name).collect();
            return match own[..] {
                [known, ..] => Ok((DraftValue::Text(Arc::clone(&known.value)), certainty_of(&item.text, &known.value))),
                [] if self.is_searched(name, &item.text) => no_value(),
                [] => Ok(as_written),
            };
        }
        match self.is_searched(name, &item.text) {
            true => no_value(),
            false => Ok(as_written),
        }
    }

    /// Returns whether all values of a dimension that contain a word were looked up.
    pub(super) fn is_searched(&self, member: &Arc<str>, word: &str) -> bool {
        self.values
            .searched
            .iter()
            .any(|searched| searched.member == *member && spelled(&searched.word) == spelled(word))
    }
}
