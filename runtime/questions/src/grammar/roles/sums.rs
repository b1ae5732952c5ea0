//! Finds the sum that a question means by a unit or a verb: `the most hours`, `how much did we sell`.

use std::sync::Arc;

use super::{Item, ItemKind, MAX_CHOICES, NeededMeasure, Reader};
use crate::draft::{Aggregation, DraftOrder, Unit};
use crate::language::{Meaning, WordList};
use crate::members::{MemberEntry, MemberKind};

/// The certainty of a measure if the question names only its unit or a verb.
const CERTAINTY_OF_SUM: f64 = 0.7;
/// The largest place of the word `did` in `what did`.
const MAX_OBJECT: usize = 2;

impl Reader<'_> {
    /// Reads a unit behind `most` or `fewest`, as in `which driver has the most hours`: the sum in this unit ranks.
    /// Returns the number of items read, or `None` if no sum has the unit.
    pub(super) fn most_of_unit(&mut self, at: usize, text: &str) -> Option<usize> {
        let is_descending = self.state.rank?;
        let is_filler = |item: &&super::Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item))?;
        let is_ranked = matches!(before.kind, ItemKind::Word(Meaning::Top | Meaning::Bottom));
        let unit = self.unit_named(text)?;
        // `the most hours with rain` counts hours, and so do days.
        let is_plain = |item: &super::Item| !matches!(item.kind, ItemKind::Member(_) | ItemKind::Unknown);
        let is_sum = unit != Unit::Days && self.items[at + 1..].iter().all(is_plain);
        if !is_sum
            || !is_ranked
            || !self.items[at].is_plural
            || !self.draft.values.is_empty()
            || self.draft.groups.is_empty()
        {
            return None;
        }
        let found = self.named_by_verb(self.sums_in(&unit));
        let [only] = &found[..] else {
            if found.is_empty() {
                return None;
            }
            self.state.rank = None;
            self.unclear(text, format!("several measures are in `{text}`"), found);
            return Some(1);
        };
        self.state.rank = None;
        self.add_value(only);
        self.draft.order = Some(DraftOrder { member: Arc::clone(only), is_descending });
        Some(self.piece(text, format!("measure {only}"), CERTAINTY_OF_SUM))
    }

    /// Returns the measures whose names have the verb of the question, as in `flew the most miles`; or all if none has
    /// it.
    fn named_by_verb(&self, measures: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let verbs = self.items.iter().filter(|item| item.kind == ItemKind::Word(Meaning::Verb));
        let roots: Vec<String> =
            verbs.map(|verb| self.language.root(&self.language.stem(&verb.text.to_lowercase()))).collect();
        let is_named = |name: &&Arc<str>| {
            let index = self.vocabulary.index_of(name);
            index.is_some_and(|index| self.vocabulary.shared_roots(index, roots.iter().map(String::as_str)) > 0)
        };
        let named: Vec<Arc<str>> = measures.iter().filter(is_named).map(Arc::clone).collect();
        if named.is_empty() { measures } else { named }
    }

    /// Returns the sums that have a unit: those of the main cube, or else of the cubes that join it.
    fn sums_in(&self, unit: &Unit) -> Vec<Arc<str>> {
        let of = |is_near: &dyn Fn(&MemberEntry) -> bool| -> Vec<Arc<str>> {
            let entries = self.vocabulary.entries().map(|(_, entry)| entry);
            let sums = entries.filter(|entry| {
                entry.aggregation == Some(Aggregation::Sum) && entry.unit.as_ref() == Some(unit) && is_near(entry)
            });
            sums.map(|entry| Arc::clone(&entry.name)).take(MAX_CHOICES).collect()
        };
        let own = of(&|entry| self.is_of_main_cube(entry));
        if own.is_empty() { of(&|entry| self.joins_main(entry)) } else { own }
    }

    /// Requires a measure if the question asks for what a verb yields, as in `what did customers spend`: the number of
    /// customers is not an answer.
    pub(super) fn need_object(&mut self) {
        let has = |item: &Item, list: WordList| self.language.has(list, &item.text.to_lowercase());
        let asks = self.items.first().is_some_and(|first| has(first, WordList::Objects));
        let auxiliary = self.items.iter().take(MAX_OBJECT).position(|item| has(item, WordList::Auxiliaries));
        let is_open = self.draft.values.iter().all(|name| self.counts_all(name))
            && self.state.needs_measure.is_none()
            && self.state.change.is_none();
        let Some(start) = auxiliary.filter(|_| asks && is_open && self.state.superlative.is_none()) else { return };
        let verb = self.items[start..].iter().rev().find(|item| item.kind == ItemKind::Word(Meaning::Verb));
        if let Some(verb) = verb {
            self.state.needs_measure = Some(NeededMeasure { text: verb.text.clone(), accepts_count: false });
        }
    }

    /// Adds the only sum that the verb of `how much` names, as in `how much did we sell`.
    pub(super) fn complete_sum(&mut self) {
        let Some(needed) = self.state.needs_measure.clone() else { return };
        if needed.accepts_count || !self.draft.values.is_empty() || !self.state.units.is_empty() {
            return;
        }
        let verbs = self.items.iter().filter(|item| item.kind == ItemKind::Word(Meaning::Verb));
        let mut named =
            verbs.filter_map(|item| Some((item.text.clone(), self.language.sum_verb(&item.text.to_lowercase())?)));
        let (Some((verb, names)), None) = (named.next(), named.next()) else { return };
        let roots: Vec<String> = names.iter().map(|name| self.language.root(name)).collect();
        let is_sum = |index: usize, entry: &MemberEntry| {
            let is_measure = matches!(entry.kind, MemberKind::Measure | MemberKind::Metric) && !entry.is_share;
            let is_own = self.main_cube.is_none() || self.is_of_main_cube(entry) || self.joins_main(entry);
            let is_named = roots.iter().any(|root| self.vocabulary.roots(index).contains(root));
            is_measure && is_own && is_named && entry.aggregation == Some(Aggregation::Sum)
        };
        let mut found = self.vocabulary.entries().filter(|(index, entry)| is_sum(*index, entry));
        let (Some((_, only)), None) = (found.next(), found.next()) else { return };
        let name = Arc::clone(&only.name);
        self.add_value(&name);
        self.piece(&verb, format!("measure {name}"), CERTAINTY_OF_SUM);
    }
}
