//! Reads values whose dimension was looked up, and chooses the dimension.

use std::ops::Range;
use std::sync::Arc;

use super::{DraftValue, Item, ItemKind, MAX_CHOICES, MAX_VALUES, Reader, certainty_of};
use crate::draft::Unit;
use crate::language::{Direction, Meaning, WordList};
use crate::members::{KnownValue, MemberKind};
use crate::spelling::spelled;

impl Reader<'_> {
    /// Reads values whose dimension was looked up, such as `JFK or EWR`. Returns the number of items read.
    pub(super) fn known_value(&mut self, at: usize, text: &str, values: &[KnownValue]) -> usize {
        let by_values = std::mem::take(&mut self.state.groups);
        if self.names_compared_number(at) {
            return self.piece(text, "a part of the name of the compared number".to_owned(), CERTAINTY_OF_NAME);
        }
        if std::mem::take(&mut self.state.compares) {
            let message = format!("`{text}` is compared with no other value; write both values next to each other");
            self.unclear(text, message, values.iter().map(|known| Arc::clone(&known.member)).collect());
            return 1;
        }
        let list = self.list(at, values);
        let behind = list.ends.last().copied().unwrap_or(at + 1);
        let candidates = self.dimensions_of((at, behind), values, &list.sets);
        let [member] = &candidates[..] else {
            let choices = candidates.iter().map(Arc::clone).take(MAX_CHOICES).collect();
            self.unclear(text, format!("`{text}` is a value of several dimensions"), choices);
            return 1;
        };
        // `revenue and paid orders`
        if self.is_listed(at) && self.follows_value() && self.is_further_number(at, behind) {
            return self.unclear_number(at, text, Arc::clone(member));
        }
        // `flights to JFK` must not select the flights from JFK.
        if let (Some(own), Some(wanted)) = (self.vocabulary.direction(member), self.direction_before(at))
            && own != wanted
        {
            self.unclear(text, format!("`{text}` is known as a value of `{member}` only"), vec![Arc::clone(member)]);
            return 1;
        }
        let is_own = |known: &&KnownValue| known.member == *member;
        let sets = || list.sets.iter().take_while(|set| set.iter().any(|known| is_own(&known)));
        let count = sets().count();
        let end = list.ends[count.max(1) - 1];
        let mut found: Vec<Arc<str>> = Vec::new();
        for (set, end_of_value) in sets().zip(&list.ends) {
            let text = &self.items[end_of_value - 1].text;
            let own: Vec<&KnownValue> = set.iter().filter(is_own).collect();
            // `Portland` may be either of two airports.
            let is_equal = |known: &&KnownValue| certainty_of(text, &known.value) >= 1.0;
            if end == at + 1 && self.is_generic_noun(at) {
                let text = text.clone();
                return self.piece(&text, "the rows with the value before it".to_owned(), CERTAINTY_OF_NAME);
            }
            if own.len() > 1 && end == at + 1 && self.is_before_examples(end) {
                let text = text.clone();
                return self.piece(&text, "described by the values after it".to_owned(), CERTAINTY_OF_NAME);
            }
            if own.len() > MAX_VALUES || (own.len() > 1 && !own.iter().any(is_equal)) {
                let (text, message) = (text.clone(), several_values(text, &own));
                let choices = choices_of_values(&own, member);
                self.unclear(&text, message, choices);
                return end - at;
            }
            found.extend(own.iter().map(|known| Arc::clone(&known.value)));
        }
        found.dedup();
        let others = values.iter().map(|known| &known.member).filter(|other| *other != member);
        self.alternatives = others.map(Arc::clone).collect();
        self.alternatives.dedup();
        let is_compared = list.is_compared || std::mem::take(&mut self.state.compares_times);
        // `in rain and in fog` requests a row for each value.
        let is_separate = list.repeats.iter().take(count.saturating_sub(1)).any(|repeats| *repeats);
        // `revenue by studio and suite` requests a row for each value, too, but `by phone or mail` does not.
        let is_or = |item: &Item| self.language.has(WordList::Or, &item.text.to_lowercase());
        let is_list = by_values && !self.state.is_negated && !self.items[at..end].iter().any(is_or);
        let is_compared = is_compared || is_list;
        if (is_compared || (is_separate && !self.state.is_negated)) && end > at + 1 {
            self.group(member);
        }
        self.filter_values(at..end, member, &found);
        end + usize::from(self.repeats_dimension(end, member)) - at
    }

    /// Returns whether a word belongs to the name of a number that is compared behind it. In
    /// `in transit for more than 3 days`, the transit time is compared, and the status `in transit` is not meant.
    fn names_compared_number(&self, at: usize) -> bool {
        use Meaning::{AtLeast, AtMost, Between, Less, More};
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let mut behind = self.items[at + 1..].iter().skip_while(is_filler).map(|item| &item.kind);
        let compares = matches!(behind.next(), Some(ItemKind::Word(More | Less | AtLeast | AtMost | Between)));
        let Some(ItemKind::Number(_, Some(unit))) = behind.next().filter(|_| compares) else { return false };
        let words = spelled(&self.items[at].text);
        let roots: Vec<String> = words.split(' ').map(|word| self.language.root(&self.language.stem(word))).collect();
        self.vocabulary.entries().any(|(index, entry)| {
            let shared = self.vocabulary.shared_roots(index, roots.iter().map(String::as_str));
            let is_number = entry.kind == MemberKind::Number && self.is_of_main_cube(entry);
            is_number && shared > 0 && self.has_unit(index, unit)
        })
    }

    /// Returns whether the item at a place directly follows a value, and is a word of several other values of the same
    /// dimension, as in `Boeing aircraft`: it is a noun that adds nothing.
    pub(super) fn is_generic_noun(&self, at: usize) -> bool {
        let Some([before, item]) = at.checked_sub(1).and_then(|before| self.items.get(before..=at)) else {
            return false;
        };
        let (ItemKind::Value(before), ItemKind::Value(own)) = (&before.kind, &item.kind) else { return false };
        let is_part = |known: &KnownValue| {
            before.iter().any(|other| other.member == known.member) && certainty_of(&item.text, &known.value) < 1.0
        };
        own.len() > 1 && own.iter().all(is_part)
    }

    /// Returns whether the item after a value names its dimension, as in `Newark airport`.
    fn repeats_dimension(&self, at: usize, member: &Arc<str>) -> bool {
        let Some(item) = self.items.get(at) else { return false };
        let Some(index) = self.vocabulary.index_of(member) else { return false };
        let stems_of = |text: &str| spelled(text).split(' ').map(|word| self.language.stem(word)).collect::<Vec<_>>();
        let stems = stems_of(&item.text);
        let entry = self.vocabulary.entry(index);
        let is_name = |phrase: &Arc<str>| stems_of(phrase).ends_with(&stems);
        matches!(item.kind, ItemKind::Member(_) | ItemKind::Unknown)
            && entry.phrases.iter().chain(&entry.synonyms).any(is_name)
    }

    /// Returns whether a number of rows is not negligible next to the largest number.
    pub(super) fn occurs_often(&self, rows: u64, most: u64) -> bool {
        rows.saturating_mul(DOMINANCE) > most
    }

    fn filter_values(&mut self, items: Range<usize>, member: &Arc<str>, found: &[Arc<str>]) {
        let is_negated = std::mem::take(&mut self.state.is_negated);
        if is_negated {
            self.state.excluded = Some(self.state.negation.clone());
        }
        let operator = match (is_negated, found.len()) {
            (false, 1) => "equals",
            (true, 1) => "notEquals",
            (false, _) => "inList",
            (true, _) => "notInList",
        };
        let whole = self.text(items.start, items.end);
        let certainty = found.iter().map(|value| certainty_of(&whole, value)).fold(1.0, f64::min);
        let values = found.iter().map(|value| DraftValue::Text(Arc::clone(value))).collect();
        self.filter(member, operator, values);
        self.piece(&whole, format!("only where {member} {operator} {}", found.join(", ")), certainty);
    }

    /// Returns the dimensions that a value may belong to: one, unless several fit equally well.
    pub(super) fn dimensions_of(
        &self,
        (at, behind): (usize, usize),
        values: &[KnownValue],
        list: &[Vec<KnownValue>],
    ) -> Vec<Arc<str>> {
        let mut members: Vec<Arc<str>> = values.iter().map(|known| Arc::clone(&known.member)).collect();
        members.dedup();
        let narrowed = |members: Vec<Arc<str>>, keeps: &dyn Fn(&Arc<str>) -> bool| {
            let remaining: Vec<Arc<str>> = members.iter().filter(|member| keeps(member)).map(Arc::clone).collect();
            if remaining.is_empty() { members } else { remaining }
        };
        members = narrowed(members, &|member| !self.is_given_elsewhere(at, list.len(), member));
        // `the Oncology department`
        members = narrowed(members, &|member| self.repeats_dimension(behind, member));
        let is_of = |set: &[KnownValue], member: &Arc<str>| set.iter().any(|known| known.member == *member);
        let is_reached = |member: &Arc<str>| {
            let index = self.vocabulary.index_of(member);
            index.is_none_or(|index| self.is_reached(self.vocabulary.entry(index)))
        };
        members = narrowed(members, &is_reached);
        // In `did Southwest cancel`, Southwest acts, and is not a place.
        if self.is_subject(at) {
            members = narrowed(members, &|member| self.vocabulary.direction(member).is_none());
        }
        // `rentals picked up in Lisbon`, although they may also end there.
        members = narrowed(members, &|member| self.is_named_by_verb(at, member));
        // `revenue of customers from Spain`, although orders have a country of origin too.
        members = narrowed(members, &|member| self.is_of_named_cube(at, member));
        if let Some(wanted) = self.direction_before(at) {
            members = narrowed(members, &|member| self.vocabulary.direction(member) == Some(wanted));
            members = narrowed(members, &|member| self.vocabulary.direction(member).is_none_or(|own| own == wanted));
        }
        // In `by origin except EWR`, the value belongs to the dimension that is grouped by.
        members = narrowed(members, &|member| self.is_group(member));
        members = narrowed(members, &|member| list.iter().all(|set| is_of(set, member)));
        members = narrowed(members, &|member| self.is_value_near(at, member));
        let rows = |member: &Arc<str>| {
            let own = values.iter().filter(|known| known.member == *member);
            own.map(|known| known.rows).try_fold(0, |sum, rows| Some(sum + rows?))
        };
        let most = members.iter().filter_map(rows).max().unwrap_or(0);
        // A value that hardly occurs in another dimension is not meant there.
        members = narrowed(members, &|member| rows(member).is_none_or(|rows| self.occurs_often(rows, most)));
        narrowed(members, &|member| {
            self.vocabulary.entries().any(|(_, entry)| entry.name == *member && self.is_of_main_cube(entry))
        })
    }

    /// Returns whether a word such as `did` directly precedes a value, which then is the subject of a verb.
    fn is_subject(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| self.items[before].text.to_lowercase());
        before.is_some_and(|word| self.language.has(WordList::Auxiliaries, &word))
    }

    /// Returns whether another value of the question has a dimension already: in `southwest flights to Chicago`, the
    /// destination is Chicago.
    fn is_given_elsewhere(&self, at: usize, length: usize, member: &Arc<str>) -> bool {
        let own = self.vocabulary.direction(member);
        if own.is_none() || self.direction_before(at).is_some() || length > 1 {
            return false;
        }
        let is_other = |(place, item): (usize, &Item)| {
            let ItemKind::Value(values) = &item.kind else { return false };
            place != at && self.direction_before(place) == own && values.iter().any(|known| known.member == *member)
        };
        self.items.iter().enumerate().any(is_other)
    }

    /// Returns whether the item before a value names its dimension, as in `manufacturer Boeing`.
    fn is_value_near(&self, at: usize, member: &Arc<str>) -> bool {
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Meaning::Ignore | Meaning::Equals)));
        matches!(before.next(), Some(ItemKind::Member(candidates))
            if candidates.members.iter().any(|index| self.vocabulary.entry(*index).name == *member))
    }

    /// Returns whether the cube of a dimension, and not the main cube, is named before a value, as in
    /// `revenue of customers from Spain`.
    fn is_of_named_cube(&self, at: usize, member: &Arc<str>) -> bool {
        use Meaning::{Equals, From, Ignore};
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Word(Ignore | Equals | From)));
        let Some(ItemKind::Member(candidates)) = before.next() else { return false };
        let cube = self.vocabulary.index_of(member).and_then(|index| self.vocabulary.entry(index).cube.clone());
        candidates.members.iter().any(|index| {
            let entry = self.vocabulary.entry(*index);
            entry.kind == MemberKind::Cube && Some(&entry.name) == cube.as_ref() && !self.is_of_main_cube(entry)
        })
    }

    /// Returns the direction that the word `from` or `to` before a value expresses.
    pub(super) fn direction_before(&self, at: usize) -> Option<Direction> {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Not));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item))?;
        match before.kind {
            ItemKind::Word(Meaning::From) => Some(Direction::From),
            ItemKind::Word(Meaning::To) => Some(Direction::To),
            // `left JFK`
            ItemKind::Word(Meaning::Verb) => self.direction_of_word(&before.text),
            _ => None,
        }
    }

    /// Asks the caller for the dimension of a value.
    pub(super) fn value_alone(&mut self, at: usize, text: &str) -> usize {
        if self.is_unit_of_answer(at) {
            return self.unit_of_answer(text);
        }
        if let Some(length) = self.named_time(at, text) {
            return length;
        }
        if let Some(length) = self.opposite(text) {
            return length;
        }
        if self.is_redundant(at, text) {
            return self.piece(text, "ignored".to_owned(), 0.9);
        }
        // `arriving more than 2 hours late` compares the arrival delay.
        if self.names_compared_number(at) {
            return self.piece(text, "a part of the name of the compared number".to_owned(), CERTAINTY_OF_NAME);
        }
        if let Some(length) = self.repeats_measure(at, text).or_else(|| self.introduces_values(at)) {
            return length;
        }
        // A word in the names of many members.
        let named = self.measures_named(text);
        if !named.is_empty() {
            self.unclear(text, format!("`{text}` is a part of several names"), named);
            return 1;
        }
        let dimensions = self.text_dimensions();
        let message = match dimensions.is_empty() {
            true => format!("`{text}` is unknown"),
            false => format!("`{text}` is unknown; if it is a value, write its dimension before it"),
        };
        let choices = self.near_names(text).into_iter().chain(dimensions).collect();
        self.unclear(text, message, choices);
        1
    }

    /// Returns the measures of the main cube whose names contain a word.
    fn measures_named(&self, text: &str) -> Vec<Arc<str>> {
        let root = self.language.root(&self.language.stem(&text.to_lowercase()));
        let measures = self.vocabulary.entries().filter(|(index, entry)| {
            matches!(entry.kind, MemberKind::Measure | MemberKind::Metric)
                && (self.main_cube.is_none() || self.is_of_main_cube(entry))
                && self.vocabulary.roots(*index).contains(&root)
        });
        measures.map(|(_, entry)| Arc::clone(&entry.name)).take(MAX_CHOICES).collect()
    }

    /// Returns whether the word at a place names the unit of the answer, as in `in miles` and
    /// `how many inches of rain`.
    pub(super) fn is_unit_of_answer(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|at| &self.items[at]);
        let is_announced = before.is_some_and(|item| match item.kind {
            ItemKind::Word(Meaning::Ignore) => self.language.is_unit_word(&item.text.to_lowercase()),
            ItemKind::Word(Meaning::HowMany | Meaning::HowMuch) => true,
            _ => false,
        });
        is_announced && self.unit_named(&self.items[at].text).is_some()
    }

    pub(super) fn unit_named(&self, text: &str) -> Option<Unit> {
        let stem = self.language.stem(&text.to_lowercase());
        let of_time = match self.language.phrase(&[&stem]) {
            Some((1, Meaning::Second)) => Some(Unit::Seconds),
            Some((1, Meaning::Minute)) => Some(Unit::Minutes),
            Some((1, Meaning::Hour)) => Some(Unit::Hours),
            Some((1, Meaning::Day)) => Some(Unit::Days),
            _ => None,
        };
        of_time.or_else(|| self.vocabulary.unit(&stem).cloned())
    }

    /// Records the unit of the answer, which `finish` compares with the units of the measures. Returns the number of
    /// items read.
    pub(super) fn unit_of_answer(&mut self, text: &str) -> usize {
        if let Some(unit) = self.unit_named(text) {
            self.state.units.push((text.to_owned(), unit));
        }
        1
    }
}

/// The certainty of words that are a value, but belong to the name of a number.
const CERTAINTY_OF_NAME: f64 = 0.8;
/// The ratio of a value's frequencies in two dimensions at which the dimension with the lower frequency is ignored.
const DOMINANCE: u64 = 20;

fn several_values(text: &str, values: &[&KnownValue]) -> String {
    let shown: Vec<String> = values.iter().take(MAX_VALUES).map(|known| format!("`{}`", known.value)).collect();
    format!("{} values contain `{text}`, among them {}", values.len(), shown.join(", "))
}

/// Returns the choices for a value: the values that occur in rows, the most frequent first, or the dimension if none
/// occurs.
fn choices_of_values(values: &[&KnownValue], member: &Arc<str>) -> Vec<Arc<str>> {
    let mut found: Vec<&KnownValue> = values.iter().copied().filter(|known| known.rows != Some(0)).collect();
    found.sort_by_key(|known| std::cmp::Reverse(known.rows));
    let choices: Vec<Arc<str>> = found.into_iter().map(|known| Arc::clone(&known.value)).take(MAX_CHOICES).collect();
    if choices.is_empty() { vec![Arc::clone(member)] } else { choices }
}
