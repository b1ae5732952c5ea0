//! Reads words that add nothing to the words around them, and words that repeat or describe them: `but had`, `of the
//! year`, `minutes lost to delays`, `airports like Miami`, `ignoring routes with fewer than 100 flights`.

use std::sync::Arc;

use super::{Candidates, DraftRange, Item, ItemKind, Reader, TimeItem};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::spelling::spelled;
use crate::times;

/// The certainty of a meaning that only the words around a word decide on.
const CERTAINTY_OF_CONTEXT: f64 = 0.8;
/// The certainty of an average that only a word such as `worst` implies.
const CERTAINTY_OF_AVERAGE: f64 = 0.7;

impl Reader<'_> {
    /// Returns whether a word such as `but` joins a further condition, as in `but had a rate below 75%`. Before a name,
    /// it may also exclude rows.
    pub(super) fn joins_condition(&self, at: usize) -> bool {
        let is_but = self.language.has(WordList::But, &self.items[at].text.to_lowercase());
        let Some(next) = self.items.get(at + 1) else { return false };
        use Meaning::{AtLeast, AtMost, Equals, Ignore, Less, More, Verb};
        let is_condition = matches!(next.kind, ItemKind::Word(Ignore | Verb | Equals | More | AtLeast | Less | AtMost));
        is_but && at > 0 && is_condition && !self.language.is_link(&next.text.to_lowercase())
    }

    /// Reads the year behind words such as `of the`: the year of the newest data. Returns the number of items read.
    pub(super) fn newest_year(&mut self, at: usize, text: &str) -> Option<usize> {
        let before = self.items[..at].last().filter(|item| item.kind == ItemKind::Word(Meaning::Ignore))?;
        let words: Vec<&str> = before.text.split(' ').collect();
        let is_link = self.language.is_link(&words.last()?.to_lowercase());
        let preposition = at.checked_sub(2).map(|place| self.items[place].text.to_lowercase());
        let is_owner = preposition.is_some_and(|word| self.language.has(WordList::Possession, &word));
        // `month of the year` may be the same month of all years.
        let start = at - if words.len() > 1 { 1 } else { 2.min(at) };
        let is_step = self.items[..start].last().is_some_and(|item| match item.kind {
            ItemKind::Step(..) => true,
            ItemKind::Word(meaning) => times::unit(meaning).is_some(),
            _ => false,
        });
        if is_step || !is_link || !(words.len() > 1 || is_owner) || !self.state.ranges.is_empty() {
            return None;
        }
        let (first, last) = (self.newest.first_of_year(), self.newest.last_of_year());
        let range = DraftRange::Words(format!("{:04}", self.newest.year()).into());
        let time = TimeItem { range, days: Some((first, last)), is_dated: true, is_previous: false, ends: None };
        self.state.is_dated = true;
        let meaning = self.meaning_of_time(&time);
        self.state.ranges.push(time);
        Some(self.piece(text, meaning, CERTAINTY_OF_CONTEXT))
    }

    /// Groups by the only dimension whose name has the words for a day and a week, if the question asks for weekdays.
    /// Returns the number of items read.
    pub(super) fn weekday_group(&mut self, text: &str) -> Option<usize> {
        let words = [self.language.word_for(Meaning::Day)?, self.language.word_for(Meaning::Week)?];
        let roots = words.map(|word| self.language.root(&self.language.stem(word)));
        let is_named = |index: usize| roots.iter().all(|root| self.vocabulary.roots(index).contains(root));
        let mut found = self.vocabulary.entries().filter(|(index, entry)| {
            matches!(entry.kind, MemberKind::Text | MemberKind::Number)
                && self.is_of_main_cube(entry)
                && is_named(*index)
        });
        let (Some((_, only)), None) = (found.next(), found.next()) else { return None };
        if !(self.state.is_which || self.state.groups) {
            return None;
        }
        let name = Arc::clone(&only.name);
        if std::mem::take(&mut self.state.is_which) {
            self.state.single = Some(text.to_owned());
            self.state.is_which_group = true;
        }
        self.group(&name);
        Some(self.piece(text, format!("grouped by {name}"), CERTAINTY_OF_CONTEXT))
    }

    /// Returns 1 if the item at a place repeats a group of the question, and a comparison with a number of rows
    /// follows: in `ignoring routes with fewer than 100 flights`, the comparison is negated. Returns 0 for other items.
    pub(super) fn repeated_group(&mut self, at: usize) -> usize {
        use Meaning::{AtLeast, AtMost, Ignore, Less, More};
        let Some(Item { text, kind: ItemKind::Member(candidates), .. }) = self.items.get(at).cloned() else { return 0 };
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Ignore));
        let next = self.items[at + 1..].iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        let is_compared = matches!(next, Some(ItemKind::Word(More | Less | AtLeast | AtMost)));
        let is_grouped = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            self.is_group(&entry.name) || entry.label.as_ref().is_some_and(|label| self.is_group(label))
        };
        // Different values are counted by a measure with the name of the group.
        let is_same = |index: &usize| {
            let combined = self.vocabulary.entry(*index).combines.as_ref();
            combined.is_some_and(|name| self.is_group(name))
        };
        let repeats = candidates.members.iter().any(|index| is_grouped(index) || is_same(index));
        if !is_compared || !self.compares_next_member(at) || !(repeats || self.repeats_piece(&text)) {
            return 0;
        }
        self.piece(&text, "named once more".to_owned(), candidates.certainty)
    }

    /// Returns whether a group of the question was named by the same word.
    fn repeats_piece(&self, text: &str) -> bool {
        let stem = |text: &str| self.language.stem(&text.to_lowercase());
        let is_group =
            |meaning: &str| self.draft.groups.iter().any(|group| meaning == format!("grouped by {}", group.member));
        self.pieces.iter().any(|piece| stem(&piece.text) == stem(text) && is_group(&piece.meaning))
    }

    /// Returns whether the name of things is directly before a name of one of their dimensions, and only states whose
    /// it is, as in `which bicycle categories`.
    pub(super) fn is_compound(&self, at: usize, candidates: &Candidates) -> bool {
        let is_group = self.state.groups || self.state.is_which;
        let Some(Item { kind: ItemKind::Member(next), .. }) = self.items.get(at + 1) else { return false };
        let cube = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            (entry.kind == MemberKind::Cube).then_some(&entry.name)
        };
        let Some(name) = candidates.members.iter().find_map(cube) else { return false };
        let is_own = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            entry.kind == MemberKind::Text && entry.cube.as_ref() == Some(name)
        };
        is_group && !self.items[at].is_plural && next.members.iter().any(is_own)
    }

    /// Treats the rows before `how long` as the rows that the question is about, and not as a number, as in `Delta
    /// flights: how long are they in the air`.
    pub(super) fn name_rows_of_quality(&mut self, at: usize) {
        let count = self.count_of_main();
        let is_open = self.state.counts.is_none() && !self.is_listed(at);
        if is_open && count.is_some_and(|count| self.draft.values == [count]) {
            self.draft.values.clear();
        }
    }

    /// Reads a number of each row behind `worst` or `best`, as in `which month was worst for arrival delays`: the rows
    /// are ranked by its only average. Returns the number of items read.
    pub(super) fn rated_average(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        let has_groups = !self.draft.groups.is_empty() || self.draft.granularity.is_some();
        let is_open = self.draft.values.is_empty() && self.state.rated.is_some() && !self.state.groups;
        // `worst rating` is unclear, but `worst for rating` ranks by it.
        let before = at.checked_sub(1).map(|before| self.items[before].text.to_lowercase());
        let is_behind = before.is_some_and(|word| self.language.has(WordList::Possession, &word));
        if !is_open || !has_groups || !is_behind || !candidates.members.iter().all(is_number) {
            return None;
        }
        let found = self.aggregated(text, candidates, Aggregation::Average);
        let [only] = found[..] else { return None };
        let name = Arc::clone(&self.vocabulary.entry(only).name);
        self.alternatives = candidates
            .members
            .iter()
            .flat_map(|index| self.measures_of(*index))
            .filter(|other| *other != name)
            .collect();
        self.add_value(&name);
        Some(self.piece(text, format!("measure {name}, the average"), CERTAINTY_OF_AVERAGE))
    }

    /// Reads a word that describes rows before a number with a unit, if it is excluded, as in `nor delayed by more than
    /// 15 minutes`: the comparison is negated. Returns the number of items read.
    pub(super) fn excluded_number(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        use Meaning::{AtLeast, AtMost, Less, More};
        let kind = |place: usize| self.items.get(place).map(|item| &item.kind);
        let is_compared = matches!(kind(at + 1), Some(ItemKind::Word(More | Less | AtLeast | AtMost)))
            && matches!(kind(at + 2), Some(ItemKind::Number(_, Some(_))));
        let describes = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            matches!(entry.kind, MemberKind::Segment | MemberKind::Boolean) || self.counts(&entry.name)
        };
        let is_described = candidates.members.iter().all(describes);
        if !self.state.is_negated || !is_compared || !is_described {
            return None;
        }
        Some(self.piece(text, "a part of the name of the compared number".to_owned(), CERTAINTY_OF_CONTEXT))
    }

    /// Reads a word behind a measure that only repeats its name or description, as in `minutes were lost to delays`.
    /// Returns the number of items read.
    pub(super) fn repeats_measure(&mut self, at: usize, text: &str) -> Option<usize> {
        use Meaning::{From, Ignore, To};
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(From | Ignore | To));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item))?;
        let index = self.vocabulary.index_of(self.draft.values.last()?)?;
        let is_own = matches!(&before.kind, ItemKind::Member(found) if found.members.contains(&index));
        let root = |word: &str| self.language.root(&self.language.stem(word));
        let wanted = root(&text.to_lowercase());
        let described = self.vocabulary.entry(index).description.as_deref().map(spelled).unwrap_or_default();
        let is_named =
            self.vocabulary.roots(index).contains(&wanted) || described.split(' ').any(|word| root(word) == wanted);
        let is_repeated = is_own && is_named;
        is_repeated.then(|| self.piece(text, "named once more".to_owned(), CERTAINTY_OF_CONTEXT))
    }

    /// Returns 1 if a word such as `like` is between a name and values, as in `airports like Miami and Orlando`.
    pub(super) fn introduces_values(&self, at: usize) -> Option<usize> {
        let is_word = self.language.has(WordList::Examples, &self.items[at].text.to_lowercase());
        let before = at.checked_sub(1).map(|before| &self.items[before].kind);
        let is_main = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            self.is_of_main_cube(entry) && (entry.kind == MemberKind::Cube || self.counts_all(&entry.name))
        };
        // `flights like JFK` has no meaning.
        let follows_name = match before {
            Some(ItemKind::Member(found)) => !found.members.iter().any(is_main),
            Some(ItemKind::Value(_)) => true,
            _ => false,
        };
        let next = self.items.get(at + 1).map(|item| &item.kind);
        (is_word && follows_name && matches!(next, Some(ItemKind::Value(_)))).then_some(1)
    }

    /// Returns whether a noun and examples follow, as in `Florida airports like Miami`.
    pub(super) fn is_before_examples(&self, at: usize) -> bool {
        let is_noun = matches!(self.items.get(at).map(|item| &item.kind), Some(ItemKind::Member(_)));
        is_noun && self.items.get(at + 1).is_some() && self.introduces_values(at + 1).is_some()
    }
}
