//! Reads a measure as a share of another one: `overdue loans as a share of all loans`.

use std::sync::Arc;

use super::{Candidates, ItemKind, Reader, Role};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;

impl Reader<'_> {
    /// Reads a share of another measure: the measure or metric that divides both. Without one, the caller is asked,
    /// since totals only give the share of each row. Returns the number of items read, or `None` for other shares.
    pub(super) fn share_of_other(&mut self, at: usize, text: &str) -> Option<usize> {
        let is_link = |item: &&super::Item| self.language.is_link(&item.text.to_lowercase());
        let before = self.items[..at].iter().rev().find(|item| !is_link(item))?;
        if !self.language.has(WordList::As, &before.text.to_lowercase()) {
            return None;
        }
        let has_conditions = !self.draft.filters.is_empty() || !self.draft.segments.is_empty();
        let count = || self.count_of_main().filter(|_| has_conditions);
        let part = self.draft.values.last().map(Arc::clone).or_else(count)?;
        let (place, whole) = self.whole_of_share(at)?;
        let is_plain = !has_conditions && self.draft.values.len() == 1;
        if is_plain && whole.contains(&part) {
            return None;
        }
        let phrase = self.text(at, place + 1);
        let members = if is_plain { self.ratios(&part, &whole) } else { Vec::new() };
        self.consume(at + 1, place);
        if members.is_empty() {
            let message = format!("no measure or metric divides `{part}` by `{}`; `{text}` needs one", whole[0]);
            let choices = self.rates_of_main();
            self.unclear(&phrase, message, choices);
            return Some(1);
        }
        let candidates = Candidates { members, certainty: 1.0, ..Candidates::default() };
        if let Some(index) = self.pick(&phrase, &candidates, Role::Value) {
            let name = Arc::clone(&self.vocabulary.entry(index).name);
            self.draft.values = vec![Arc::clone(&name)];
            let order = self.draft.order.as_mut().filter(|order| order.member == part);
            if let Some(order) = order {
                order.member = Arc::clone(&name);
            }
            self.piece(&phrase, format!("measure {name}, which divides {part}"), 1.0);
        }
        Some(1)
    }

    /// Returns the place of the name behind a word such as `share of all`, and the measures that it may mean.
    fn whole_of_share(&self, at: usize) -> Option<(usize, Vec<Arc<str>>)> {
        let is_filler = |item: &super::Item| {
            matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Aggregate(Aggregation::Sum)))
        };
        let place = at + 1 + self.items[at + 1..].iter().take_while(|item| is_filler(item)).count();
        let ItemKind::Member(candidates) = &self.items.get(place)?.kind else { return None };
        let entries = candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let values = entries.filter(|entry| entry.kind.is_value() && self.is_reached(entry));
        let names = values.filter_map(|entry| entry.count.clone().or_else(|| Some(Arc::clone(&entry.name))));
        let names: Vec<Arc<str>> = names.collect();
        (!names.is_empty()).then_some((place, names))
    }

    /// Returns the measures and metrics that divide a measure by one of others.
    fn ratios(&self, part: &Arc<str>, whole: &[Arc<str>]) -> Vec<usize> {
        let divides = |ratio: &(Arc<str>, Arc<str>)| ratio.0 == *part && whole.contains(&ratio.1);
        let found = self.vocabulary.entries().filter(|(_, entry)| entry.ratio.as_ref().is_some_and(divides));
        found.map(|(index, _)| index).collect()
    }

    /// Reads things behind a sum and a word such as `per`, as in `cost per patient`, if a measure counts these things
    /// in the rows of the sum: the measure that divides the two, or else a question back. Returns the number of items
    /// read.
    pub(super) fn divided(&mut self, at: usize, candidates: &Candidates) -> Option<usize> {
        let before = at.checked_sub(1).map(|before| &self.items[before])?;
        let is_per = self.language.has(WordList::Per, &before.text.to_lowercase()) && !self.items[at].is_plural;
        let [sum] = &self.draft.values[..] else { return None };
        let sum = Arc::clone(sum);
        let entry = self.vocabulary.entry(self.vocabulary.index_of(&sum)?);
        // `sales per customer` alone is a list of customers.
        let is_group = |item: &super::Item| matches!(item.kind, ItemKind::Word(Meaning::Group) | ItemKind::Step(..));
        let is_open = self.draft.groups.is_empty() && self.items[at + 1..].iter().any(is_group);
        let is_own_cube = |index: &usize| {
            let thing = self.vocabulary.entry(*index);
            thing.kind == MemberKind::Cube && entry.cube.as_ref() == Some(&thing.name)
        };
        // `average number of seats per plane by manufacturer`
        if is_per
            && is_open
            && entry.aggregation == Some(Aggregation::Average)
            && candidates.members.iter().any(is_own_cube)
        {
            let whole = self.text(at - 1, at + 1);
            return Some(self.piece(&whole, "the rows of the average".to_owned(), 0.9));
        }
        let is_sum = entry.aggregation == Some(Aggregation::Sum) && is_open;
        let cubes = candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let thing = cubes.into_iter().find(|entry| entry.kind == MemberKind::Cube).filter(|_| is_per && is_sum)?;
        let roots = self.roots_of(thing);
        let counts = self.vocabulary.entries().filter(|(index, other)| {
            let is_named = roots.iter().all(|root| self.vocabulary.roots(*index).contains(root));
            other.aggregation == Some(Aggregation::CountDistinct) && other.cube == entry.cube && is_named
        });
        let counts: Vec<Arc<str>> = counts.map(|(_, entry)| Arc::clone(&entry.name)).collect();
        let count = counts.first()?;
        let whole = self.text(at - 1, at + 1);
        if let [only] = self.ratios(&sum, &counts)[..] {
            let name = Arc::clone(&self.vocabulary.entry(only).name);
            self.draft.values = vec![Arc::clone(&name)];
            return Some(self.piece(&whole, format!("measure {name}, which divides {sum}"), 1.0));
        }
        let message = format!("`{whole}` may be a group, or `{sum}` divided by `{count}`; no measure divides them");
        let choices = thing.label.iter().chain([count]).map(Arc::clone).collect();
        self.unclear(&whole, message, choices);
        Some(1)
    }

    /// Marks the items of a range, with its end, as read.
    fn consume(&mut self, start: usize, end: usize) {
        for item in &mut self.items[start..=end] {
            item.kind = ItemKind::Word(Meaning::Ignore);
        }
    }
}
