//! Reads several words that rank or aggregate before one name, as in `highest and lowest temperature`.
//!
//! Each word needs a measure of its own. The rows of a query have one order, so the caller is asked about
//! `best and worst airlines`.

use std::sync::Arc;

use super::{Candidates, ItemKind, Reader, Role};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::times;

/// Words that rank or aggregate, joined by `and`.
struct Pair {
    /// The place and the aggregation of each word.
    words: Vec<(usize, Option<Aggregation>)>,
    /// The place behind the words.
    end: usize,
    /// True if `or` joins two words, or if a number of rows follows one.
    is_ranking: bool,
}

impl Reader<'_> {
    /// Reads words that rank or aggregate, with the name behind them. Returns the number of items read, or `None` if
    /// the item is not the first of several such words.
    pub(super) fn paired(&mut self, at: usize) -> Option<usize> {
        let pair = self.pair_at(at).filter(|pair| pair.words.len() > 1)?;
        let item = self.items.get(pair.end).cloned()?;
        let whole = self.text(at, pair.end);
        let ItemKind::Member(candidates) = item.kind else {
            // `the warmest and coldest in August` are the names of two measures.
            let is_unit = matches!(item.kind, ItemKind::Word(meaning) if times::unit(meaning).is_some());
            return (is_unit || pair.is_ranking).then(|| self.unclear_pair(&whole, pair.end - at));
        };
        let ranks = pair.is_ranking || self.state.is_which || self.state.is_which_group || self.draft.limit.is_some();
        let is_number = |index: &usize| {
            matches!(self.vocabulary.entry(*index).kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric)
        };
        let is_thing = !candidates.members.iter().any(is_number) || self.names_things(&candidates);
        let aggregations: Option<Vec<Aggregation>> = pair.words.iter().map(|(_, aggregation)| *aggregation).collect();
        let Some(aggregations) = aggregations.filter(|_| !ranks && !is_thing) else {
            return Some(self.unclear_pair(&whole, pair.end + 1 - at));
        };
        let words: Vec<String> = pair.words.iter().map(|(place, _)| self.items[*place].text.clone()).collect();
        self.measures_of_pair(&item.text, &candidates, aggregations.into_iter().zip(words));
        Some(pair.end + 1 - at)
    }

    /// Adds the measure for each word before a name. If a word has no measure, asks the caller.
    fn measures_of_pair(
        &mut self,
        text: &str,
        candidates: &Candidates,
        words: impl Iterator<Item = (Aggregation, String)>,
    ) {
        for (aggregation, word) in words {
            let mut members = self.measures_with(text, candidates, aggregation);
            members.retain(|index| self.vocabulary.entry(*index).aggregation == Some(aggregation));
            let whole = format!("{word} {text}");
            if members.is_empty() {
                let choices = self.number_measures(candidates);
                self.unclear(&whole, format!("no measure is the `{word}` value of `{text}`"), choices);
                continue;
            }
            let found = Candidates { members, ..candidates.clone() };
            if let Some(index) = self.pick(&whole, &found, Role::Operand) {
                let name = Arc::clone(&self.vocabulary.entry(index).name);
                self.add_value(&name);
                self.piece(&whole, format!("measure {name}"), candidates.certainty);
            }
        }
    }

    /// Returns whether a name stands only for rows or groups, and for no number of each row.
    fn names_things(&self, candidates: &Candidates) -> bool {
        let entries = || candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let is_thing = |kind: MemberKind| matches!(kind, MemberKind::Text | MemberKind::Time | MemberKind::Boolean);
        entries().any(|entry| is_thing(entry.kind)) && !entries().any(|entry| entry.kind == MemberKind::Number)
    }

    fn unclear_pair(&mut self, whole: &str, length: usize) -> usize {
        let choices = self.choices_of(MemberKind::Measure);
        self.unclear(whole, format!("`{whole}` needs two orders, but rows have one"), choices);
        length
    }

    /// Returns the words at a place that rank or aggregate.
    fn pair_at(&self, at: usize) -> Option<Pair> {
        let kind = |place: usize| self.items.get(place).map(|item| &item.kind);
        let skipped = |mut place: usize| {
            while matches!(kind(place), Some(ItemKind::Word(Meaning::Ignore))) {
                place += 1;
            }
            place
        };
        let mut pair = Pair { words: vec![(at, self.aggregation_at(at)?)], end: skipped(at + 1), is_ranking: false };
        loop {
            let number = usize::from(matches!(kind(pair.end), Some(ItemKind::Number(_, None))));
            let joiner = skipped(pair.end + number);
            let is_joiner = matches!(kind(joiner), Some(ItemKind::Word(Meaning::And)));
            // A comma also separates the parts of a question, as in `top 5, worst first`.
            if !is_joiner || matches!(&*self.items[joiner].text, "," | ";") {
                return Some(pair);
            }
            let next = skipped(joiner + 1);
            let Some(aggregation) = self.aggregation_at(next) else { return Some(pair) };
            let is_or = self.language.has(WordList::Or, &self.items[joiner].text.to_lowercase());
            pair.is_ranking |= is_or || number > 0 || matches!(kind(next + 1), Some(ItemKind::Number(_, None)));
            pair.words.push((next, aggregation));
            pair.end = skipped(next + 1);
        }
    }

    /// Returns the aggregation that a word before a name means; the inner `None` for words such as `best`. Returns
    /// `None` for other items.
    fn aggregation_at(&self, at: usize) -> Option<Option<Aggregation>> {
        let extreme = |is_largest: bool| if is_largest { Aggregation::Maximum } else { Aggregation::Minimum };
        match self.items.get(at)?.kind {
            ItemKind::Word(Meaning::Top) => Some(Some(Aggregation::Maximum)),
            ItemKind::Word(Meaning::Bottom) => Some(Some(Aggregation::Minimum)),
            ItemKind::Word(Meaning::Aggregate(aggregation)) => Some(Some(aggregation)),
            ItemKind::Word(Meaning::Best | Meaning::Worst) => Some(None),
            ItemKind::Superlative(index, false, _) => {
                let found = self.language.superlative(index)?;
                Some((!found.qualities.is_empty()).then(|| extreme(found.is_descending)))
            }
            _ => None,
        }
    }
}
