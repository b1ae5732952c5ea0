//! Reads the largest and smallest values of numbers: `longest departure delay`, `highest wind speed`.
//!
//! A word that ranks and a number of each row mean the measure with the maximum or minimum of this number. If the
//! question also may mean the average, as in `which airline has the highest delays`, the caller is asked.

use std::sync::Arc;

use super::{Candidates, ItemKind, MAX_CHOICES, Reader, Role};
use crate::draft::{Aggregation, DraftOrder};
use crate::language::{Meaning, Superlative, WordList};
use crate::members::{MemberEntry, MemberKind};

/// The certainty if an average replaces a measure whose name contains a superlative, such as `worst delay`.
const CERTAINTY_OF_AVERAGE: f64 = 0.9;

impl Reader<'_> {
    /// Returns whether the member after an adjective is a number that the adjective ranks by, as in `longest delay`.
    pub(super) fn ranks_next(&self, at: usize, superlative: &Superlative) -> bool {
        let is_filler = |kind: &ItemKind| {
            matches!(kind, ItemKind::Word(Meaning::Ignore | Meaning::Aggregate(_) | Meaning::HowMany))
        };
        let mut behind = self.items[at + 1..].iter().map(|item| &item.kind).skip_while(|kind| is_filler(kind));
        let Some(ItemKind::Member(candidates)) = behind.next() else { return false };
        if self.has_other_quality(candidates, superlative) {
            return false;
        }
        candidates.members.iter().all(|index| {
            let entry = self.vocabulary.entry(*index);
            match entry.kind {
                MemberKind::Number | MemberKind::Metric => true,
                // A quality does not rank by a number of rows.
                MemberKind::Measure => {
                    !matches!(entry.aggregation, Some(Aggregation::Count | Aggregation::CountDistinct))
                }
                _ => false,
            }
        })
    }

    /// Returns whether all members are numbers without a unit and without the quality of an adjective, although a
    /// measure has this quality: `least punctual hour of the day` ranks the hours by their punctuality.
    fn has_other_quality(&self, candidates: &Candidates, superlative: &Superlative) -> bool {
        let qualities: Vec<String> = superlative.qualities.iter().map(|quality| self.language.root(quality)).collect();
        let has_quality = |index: usize| qualities.iter().any(|root| self.vocabulary.roots(index).contains(root));
        let is_other = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            entry.kind == MemberKind::Number && entry.unit.is_none() && !has_quality(*index)
        };
        let is_measure = |entry: &MemberEntry| matches!(entry.kind, MemberKind::Measure | MemberKind::Metric);
        let mut measures = self.vocabulary.entries().filter(|(_, entry)| is_measure(entry) && self.is_reached(entry));
        candidates.members.iter().all(is_other) && measures.any(|(index, _)| has_quality(index))
    }

    /// Returns whether a part of a measure's name follows an adjective whose quality the measure lacks, as in `youngest
    /// fleet` for a fleet size.
    pub(super) fn ranks_other_quality(&self, at: usize, superlative: &Superlative) -> bool {
        let is_filler = |kind: &ItemKind| matches!(kind, ItemKind::Word(Meaning::Ignore));
        let mut behind = self.items[at + 1..].iter().map(|item| &item.kind).skip_while(|kind| is_filler(kind));
        let Some(ItemKind::Member(candidates)) = behind.next() else { return false };
        let qualities: Vec<String> = superlative.qualities.iter().map(|quality| self.language.root(quality)).collect();
        let is_other = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            let has_quality = qualities.iter().any(|root| self.vocabulary.roots(*index).contains(root));
            // `longest delivery time`
            let is_time = entry.unit.as_ref().is_some_and(|unit| unit.seconds().is_some());
            matches!(entry.kind, MemberKind::Measure | MemberKind::Metric) && !has_quality && !is_time
        };
        candidates.certainty < 1.0 && !qualities.is_empty() && candidates.members.iter().all(is_other)
    }

    /// Reads a number of each row after a word that ranks. Returns the number of items read, or `None` if the item is
    /// not such a number.
    pub(super) fn extreme(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_largest = self.state.rank?;
        // `busiest hour of the day` ranks hours by a number of rows.
        let counts = |ranking: &super::Ranking| {
            let found = self.language.superlative(ranking.index);
            found.is_some_and(|found| found.qualities.is_empty() || self.has_other_quality(candidates, found))
        };
        if self.state.superlative.as_ref().is_some_and(counts) {
            return None;
        }
        let is_number = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Number;
        if let Some(length) = self.rated_number(at, text, candidates) {
            return Some(length);
        }
        if self.state.aggregate.is_some() || !candidates.members.iter().all(is_number) || !self.follows_ranking(at) {
            return None;
        }
        if let Some(length) = self.largest_sum(at, text, candidates) {
            return Some(length);
        }
        let aggregation = if is_largest { Aggregation::Maximum } else { Aggregation::Minimum };
        let members = self.measures_with(text, candidates, aggregation);
        let averages = self.measures_with(text, candidates, Aggregation::Average);
        let is_ranking = self.state.is_which_group || self.draft.limit.is_some();
        self.state.rank = None;
        let is_open = is_ranking && self.items[at].is_plural && !averages.is_empty();
        if members.is_empty() || is_open {
            let names = self.names(&[members, averages].concat());
            let choices = if names.is_empty() { self.number_measures(candidates) } else { names };
            let end = if is_largest { "largest" } else { "smallest" };
            let message = match is_open {
                true => format!("`{text}` may be ranked by the {end} value or by the average"),
                false => format!("no measure is the {end} value of `{text}`"),
            };
            self.unclear(text, message, choices);
            return Some(1);
        }
        let found = Candidates { members, ..candidates.clone() };
        let Some(index) = self.pick(text, &found, Role::Operand) else { return Some(1) };
        let name = Arc::clone(&self.vocabulary.entry(index).name);
        self.add_value(&name);
        if is_ranking {
            self.draft.order = Some(DraftOrder { member: Arc::clone(&name), is_descending: is_largest });
        }
        Some(self.piece(text, format!("measure {name}"), candidates.certainty))
    }

    /// Ranks groups by the only sum of a number behind `most` or `fewest`, as in `which guest booked the most nights`.
    /// Returns the number of items read.
    fn largest_sum(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_descending = self.state.rank?;
        let is_filler = |item: &&super::Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item))?.text.to_lowercase();
        let has_groups = !self.draft.groups.is_empty() || self.draft.granularity.is_some();
        if !has_groups || !self.items[at].is_plural || !self.language.has(WordList::Amounts, &before) {
            return None;
        }
        let mut members = self.measures_with(text, candidates, Aggregation::Sum);
        members.retain(|index| self.vocabulary.entry(*index).aggregation == Some(Aggregation::Sum));
        let [only] = members[..] else { return None };
        self.state.rank = None;
        let name = Arc::clone(&self.vocabulary.entry(only).name);
        self.add_value(&name);
        self.draft.order = Some(DraftOrder { member: Arc::clone(&name), is_descending });
        Some(self.piece(text, format!("measure {name}"), CERTAINTY_OF_AVERAGE))
    }

    /// Asks the caller about a number in the singular behind `best` or `worst`, as in `best rating`, if the only
    /// measure with this name counts: the best rating is not the largest number of ratings. Returns the number of items
    /// read.
    fn rated_number(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let is_rated = self.state.rated.is_some() && !self.items[at].is_plural;
        let kind = |index: &usize| self.vocabulary.entry(*index).kind;
        let numbers: Vec<usize> =
            candidates.members.iter().copied().filter(|index| kind(index) == MemberKind::Number).collect();
        let is_count =
            |index: &usize| kind(index) == MemberKind::Number || self.counts(&self.vocabulary.entry(*index).name);
        if !is_rated || numbers.is_empty() || !candidates.members.iter().all(is_count) {
            return None;
        }
        let found = Candidates { members: numbers, ..candidates.clone() };
        let averages = self.measures_with(text, &found, Aggregation::Average);
        self.state.rank = None;
        self.state.rated = None;
        let choices = if averages.is_empty() { self.number_measures(&found) } else { self.names(&averages) };
        self.unclear(text, format!("`{text}` is a number of each row; choose a measure"), choices);
        Some(1)
    }

    /// Reads a measure whose own name ranks, if the question asks for the average, as in
    /// `worst arrival delay on average`: the average of the same number ranks the groups. Returns the number of items
    /// read, or `None` for other members.
    pub(super) fn averaged_extreme(&mut self, text: &str, candidates: &Candidates) -> Option<usize> {
        let aggregation = self.state.aggregate.as_ref()?.0;
        let [only] = candidates.members[..] else { return None };
        let is_descending = match self.vocabulary.entry(only).aggregation {
            Some(Aggregation::Maximum) => true,
            Some(Aggregation::Minimum) => false,
            _ => return None,
        };
        let stems: Vec<String> = text.split(' ').map(|word| self.language.stem(&word.to_lowercase())).collect();
        let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
        use Meaning::{Best, Bottom, Superlative, Top, Worst};
        let Some((length, Best | Worst | Top | Bottom | Superlative(_))) = self.language.phrase(&stems) else {
            return None;
        };
        let found = self.vocabulary.exact(&stems[length..]).filter(|found| found.length == stems.len() - length)?;
        let number = Candidates { members: found.members, certainty: candidates.certainty, ..Candidates::default() };
        let rest = stems[length..].join(" ");
        let members = self.measures_with(&rest, &number, aggregation);
        if aggregation != Aggregation::Average || members.is_empty() {
            return None;
        }
        self.state.aggregate = None;
        let index = self.pick(text, &Candidates { members, ..number }, Role::Operand)?;
        let name = Arc::clone(&self.vocabulary.entry(index).name);
        self.add_value(&name);
        self.state.rank_text = text.to_owned();
        self.draft.order = Some(DraftOrder { member: Arc::clone(&name), is_descending });
        Some(self.piece(text, format!("measure {name}, ordered by it"), CERTAINTY_OF_AVERAGE))
    }

    /// Returns the measures of the reached cubes that combine a number by an aggregation.
    pub(super) fn measures_with(&self, text: &str, candidates: &Candidates, aggregation: Aggregation) -> Vec<usize> {
        let mut members = self.aggregated(text, candidates, aggregation);
        members.retain(|index| self.is_reached(self.vocabulary.entry(*index)));
        members
    }

    pub(super) fn number_measures(&self, candidates: &Candidates) -> Vec<Arc<str>> {
        candidates.members.iter().flat_map(|index| self.measures_of(*index)).take(MAX_CHOICES).collect()
    }

    /// Returns whether the item before a member is a word that ranks.
    fn follows_ranking(&self, at: usize) -> bool {
        let is_filler = |kind: &ItemKind| matches!(kind, ItemKind::Word(Meaning::Ignore | Meaning::HowMany));
        let mut before = self.items[..at].iter().rev().map(|item| &item.kind).skip_while(|kind| is_filler(kind));
        matches!(before.next(), Some(ItemKind::Superlative(..) | ItemKind::Word(Meaning::Top | Meaning::Bottom)))
    }

    /// Orders the groups by a measure whose own name ranks, as in `which airline has the worst departure delay`.
    /// Returns false if the caller must be asked, because the average may be meant as well.
    pub(super) fn order_by_own_name(&mut self, at: usize, text: &str, index: usize) -> bool {
        let is_ranked = self.state.rank.is_some() || self.state.superlative.is_some() || self.state.rated.is_some();
        if !self.state.is_which_group || is_ranked || self.draft.order.is_some() {
            return true;
        }
        let stems: Vec<String> = text.split(' ').map(|word| self.language.stem(&word.to_lowercase())).collect();
        let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
        use Meaning::{Aggregate, Best, Bottom, Superlative, Top, Worst};
        let Some((length, Best | Worst | Top | Bottom | Superlative(_) | Aggregate(_))) = self.language.phrase(&stems)
        else {
            return true;
        };
        let entry = self.vocabulary.entry(index);
        let is_descending = match entry.aggregation {
            Some(Aggregation::Maximum) => true,
            Some(Aggregation::Minimum) => false,
            _ => return true,
        };
        if self.items[at].is_plural
            && let Some(found) = self.vocabulary.exact(&stems[length..])
        {
            let candidates = Candidates { members: found.members, ..Candidates::default() };
            let averages = self.measures_with(text, &candidates, Aggregation::Average);
            if !averages.is_empty() {
                let message = format!("`{text}` may be the measure with this name or the average");
                let choices = self.names(&[averages, vec![index]].concat());
                self.unclear(text, message, choices);
                return false;
            }
        }
        self.draft.order = Some(DraftOrder { member: Arc::clone(&entry.name), is_descending });
        true
    }
}
