//! Reads shares: `share of flights by carrier` has totals, and `percentage of cancelled flights` is a rate if the
//! project has one.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Candidates, Item, ItemKind, Reader, Role};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::spelling::spelled;

impl Reader<'_> {
    /// Reads a word such as `share`. The words of a rate may be apart, as in `share of orders from France that were
    /// returned`. Returns the number of items read.
    pub(super) fn share(&mut self, at: usize, text: &str) -> usize {
        if let Some(length) = self.share_of_other(at, text) {
            return length;
        }
        let is_occurrence = |item: &Item| self.language.has(WordList::Occurrences, &item.text.to_lowercase());
        let is_time = |item: &Item| matches!(item.kind, ItemKind::Time(_));
        // `what share of cancellations happened in February` compares February with all times.
        if self.items.iter().any(is_occurrence) && self.items.iter().any(is_time) {
            let message = format!("`{text}` may be of all times; write `by month`, or a rate");
            let choices = self.rates_of_main();
            self.unclear(text, message, choices);
            return 1;
        }
        if let Some((index, places)) = self.spelled_rate(at + 1) {
            return self.rate(at, text, index, places);
        }
        if let Some((index, places)) = self.compared_rate(at + 1) {
            return self.rate(at, text, index, places);
        }
        let predicate = self.predicate_of_groups(at);
        let words = self.predicate(predicate.unwrap_or(at + 1));
        let rates = self.rates_of(&words);
        let values = self.values_of_predicate(at);
        if rates.is_empty()
            && let Some(length) = self.share_of_values(at, text, values, predicate.is_some())
        {
            return length;
        }
        let is_within_groups =
            || self.is_share_within_groups(at, &words) || self.is_share_of_value(at) || self.is_share_of_condition(at);
        if rates.is_empty() && is_within_groups() {
            let message = format!("no rate is this share; `{text}` of the total is the share of each row");
            let choices = self.rates_of_main();
            self.unclear(text, message, choices);
            return 1;
        }
        if rates.is_empty() {
            self.draft.totals = true;
            return self.piece(text, "with totals, for the share of each row".to_owned(), 1.0);
        }
        let candidates = Candidates { members: rates, certainty: 0.9, ..Candidates::default() };
        let parts: Vec<&str> = words.iter().map(|place| &*self.items[*place].text).collect();
        let whole = format!("{text} … {}", parts.join(" "));
        if let Some(index) = self.pick(&whole, &candidates, Role::Value) {
            let name = Arc::clone(&self.vocabulary.entry(index).name);
            self.add_value(&name);
            self.piece(&whole, format!("measure {name}"), 0.9);
        }
        // The words belong to the rate, so they are not read as conditions. A comparison next to them also belongs to
        // it, as in `percentage of flights that left more than 15 minutes late`.
        let compared = self.compared_next_to(&words);
        if let (Some((comparison, number)), Some(name)) = (compared, self.draft.values.last().cloned()) {
            if !self.is_in_name(&name, comparison, number) {
                let text = self.text(comparison, number + 1);
                self.unclear(&text, format!("`{name}` is not about `{text}`"), vec![name]);
            }
            self.items[comparison].kind = ItemKind::Word(Meaning::Ignore);
            self.items[number].kind = ItemKind::Word(Meaning::Ignore);
        }
        for place in words {
            self.items[place].kind = ItemKind::Word(Meaning::Ignore);
        }
        1
    }

    /// Returns whether a share is of rows with a value, by groups, as in `share of Airbus flights by airline`: it may be
    /// the share within each airline, or of all Airbus flights.
    fn is_share_of_value(&self, at: usize) -> bool {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let mut behind = self.items[at + 1..].iter().skip_while(is_filler).map(|item| &item.kind);
        let is_value = matches!(behind.next(), Some(ItemKind::Value(_)));
        let is_rows = matches!(behind.next(), Some(ItemKind::Member(found)) if self.names_rows(found));
        is_value && is_rows && behind.any(|kind| matches!(kind, ItemKind::Word(Meaning::Group)))
    }

    /// Returns the places of a comparison and its number directly before one of the words of a rate.
    fn compared_next_to(&self, words: &[usize]) -> Option<(usize, usize)> {
        use Meaning::{AtLeast, AtMost, Less, More};
        let kind = |place: usize| self.items.get(place).map(|item| &item.kind);
        let is_pair = |comparison: usize, number: usize| {
            matches!(kind(comparison), Some(ItemKind::Word(More | Less | AtLeast | AtMost)))
                && matches!(kind(number), Some(ItemKind::Number(..)))
        };
        words.iter().find_map(|word| {
            let first = word.checked_sub(2)?;
            [(first, first + 1), (first + 1, first)].into_iter().find(|(one, other)| is_pair(*one, *other))
        })
    }

    /// Returns whether a name of a measure contains a comparison with its number, as in `over 15 minutes late`.
    pub(super) fn is_in_name(&self, name: &Arc<str>, comparison: usize, number: usize) -> bool {
        let (ItemKind::Word(meaning), Some(index)) = (&self.items[comparison].kind, self.vocabulary.index_of(name))
        else {
            return false;
        };
        let entry = self.vocabulary.entry(index);
        let stems_of = |text: &str| spelled(text).split(' ').map(|word| self.language.stem(word)).collect::<Vec<_>>();
        let wanted = stems_of(&self.items[number].text);
        entry.phrases.iter().chain(&entry.synonyms).any(|phrase| {
            let own = stems_of(phrase);
            let own: Vec<&str> = own.iter().map(String::as_str).collect();
            (0..own.len()).any(|at| {
                let found = self.language.phrase(&own[at..]).filter(|(_, found)| found == meaning);
                found.is_some_and(|(length, _)| {
                    own[at + length..].len() >= wanted.len()
                        && own[at + length..].iter().zip(&wanted).all(|(own, wanted)| own == wanted)
                })
            })
        })
    }

    /// Returns the rates whose names contain the words at some places. Verbs may be left out.
    fn rates_of(&self, words: &[usize]) -> Vec<usize> {
        let roots = |keeps: &dyn Fn(&str) -> bool| -> HashSet<String> {
            let texts = words.iter().map(|place| spelled(&self.items[*place].text));
            let stems: Vec<String> = texts
                .flat_map(|text| text.split(' ').map(|word| self.language.stem(word)).collect::<Vec<String>>())
                .collect();
            let of_cube = self.main_cube.as_ref().and_then(|name| self.vocabulary.index_of(name));
            let is_of_cube = |root: &String| of_cube.is_some_and(|cube| self.vocabulary.roots(cube).contains(root));
            // `is accepted` may be the name of one member.
            let is_word = |stem: &&String| matches!(self.language.phrase(&[stem]), Some((1, Meaning::Equals)));
            let remaining = stems.iter().filter(|stem| !is_word(stem) && keeps(stem));
            let remaining = remaining.map(|stem| self.language.root(stem));
            remaining.filter(|root| !is_of_cube(root)).collect()
        };
        let (all, without_verbs) =
            (roots(&|_| true), roots(&|stem| !matches!(self.language.phrase(&[stem]), Some((1, Meaning::Verb)))));
        let found = [&all, &without_verbs].into_iter().map(|roots| self.rates(roots));
        let named = found.into_iter().find(|rates| !rates.is_empty());
        let described = || Some(self.described_rates(&all)).filter(|rates| !rates.is_empty());
        named.or_else(described).unwrap_or_else(|| self.rates_of_verb(words, &all))
    }

    /// Returns the rates whose names contain all roots except those of participles, and whose descriptions contain the
    /// participles: `percentage of flights that arrived on time` means the `on time rate` of `flights that arrived in
    /// time`.
    fn rates_of_verb(&self, words: &[usize], all: &HashSet<String>) -> Vec<usize> {
        let texts = words.iter().map(|place| spelled(&self.items[*place].text));
        let words: Vec<String> =
            texts.flat_map(|text| text.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
        let root = |word: &String| self.language.root(&self.language.stem(word));
        let verbs: HashSet<String> = words.iter().filter(|word| self.language.is_participle(word)).map(root).collect();
        let rest: HashSet<String> = all.difference(&verbs).cloned().collect();
        if verbs.is_empty() || rest.len() == all.len() {
            return Vec::new();
        }
        let is_about = |index: &usize| {
            let description = self.vocabulary.entry(*index).description.as_deref().map(spelled).unwrap_or_default();
            let own: HashSet<String> = description.split(' ').map(|word| root(&word.to_owned())).collect();
            verbs.iter().filter(|verb| all.contains(*verb)).all(|verb| own.contains(verb))
        };
        self.rates(&rest).into_iter().filter(is_about).collect()
    }

    /// Returns the places of the words after `share of` that may name a rate: members that are neither a cube nor a
    /// dimension. They end before a word such as `by`.
    fn predicate(&self, start: usize) -> Vec<usize> {
        let mut places = Vec::new();
        for (place, item) in self.items.iter().enumerate().skip(start) {
            match &item.kind {
                ItemKind::Word(Meaning::Group | Meaning::Versus | Meaning::And) | ItemKind::Step(..) => break,
                ItemKind::Member(candidates) => {
                    let kinds = || candidates.members.iter().map(|index| self.vocabulary.entry(*index).kind);
                    let is_condition = matches!(
                        self.items.get(place + 1).map(|item| &item.kind),
                        Some(ItemKind::Word(
                            Meaning::More | Meaning::Less | Meaning::AtLeast | Meaning::AtMost | Meaning::Between
                        ))
                    );
                    if is_condition {
                        break;
                    }
                    if kinds().all(|kind| kind != MemberKind::Cube && kind != MemberKind::Text) {
                        places.push(place);
                    }
                }
                _ => {}
            }
        }
        places
    }

    /// Returns whether a share is one of rows with a condition, and the question has groups: `share of late flights by
    /// carrier` may be the share of each carrier's flights, or the share that each carrier has in the late flights.
    fn is_share_within_groups(&self, at: usize, words: &[usize]) -> bool {
        let is_group = |item: &Item| matches!(item.kind, ItemKind::Word(Meaning::Group) | ItemKind::Step(..));
        let has_groups =
            !self.draft.groups.is_empty() || self.draft.granularity.is_some() || self.items[at..].iter().any(is_group);
        let selects = |index: &usize| {
            let entry = self.vocabulary.entry(*index);
            let is_part = entry.aggregation == Some(Aggregation::Count) && !self.counts_all(&entry.name);
            is_part || matches!(entry.kind, MemberKind::Segment | MemberKind::Boolean)
        };
        let is_condition = |place: &usize| matches!(&self.items[*place].kind, ItemKind::Member(found) if found.members.iter().any(selects));
        has_groups && words.iter().any(is_condition)
    }

    /// Returns the rates of the main cube whose names contain all roots and that are shares of them.
    pub(super) fn rates(&self, roots: &HashSet<String>) -> Vec<usize> {
        if roots.is_empty() {
            return Vec::new();
        }
        let rates = self.vocabulary.entries().filter(|(_, entry)| entry.is_share && self.is_of_main_cube(entry));
        let mut found: Vec<(usize, usize)> = rates
            .map(|(index, _)| (self.vocabulary.roots(index).len(), index))
            .filter(|(_, index)| roots.is_subset(self.vocabulary.roots(*index)) && self.is_share_of(*index, roots))
            .collect();
        // The shortest name adds nothing to the question.
        found.sort_unstable();
        let shortest = found.first().map(|(length, _)| *length);
        found.into_iter().filter(|(length, _)| Some(*length) == shortest).map(|(_, index)| index).collect()
    }
}
