//! Finds the rate that a share means: by its whole name, its description, or the value in its name.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Candidates, ItemKind, Reader, Role};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::spelling::spelled;

/// The smallest number of words of a name that may be apart in a question.
const MIN_WORDS: usize = 3;

impl Reader<'_> {
    /// Returns the rate whose whole name is at a place, with the places of the name's words. Verbs and words such as
    /// `was` may be between them: `departures were over 15 minutes late`.
    pub(super) fn spelled_rate(&self, start: usize) -> Option<(usize, Vec<usize>)> {
        let rates = self.vocabulary.entries().filter(|(_, entry)| entry.is_share && self.is_of_main_cube(entry));
        let named = rates.flat_map(|(index, entry)| {
            entry.phrases.iter().chain(&entry.synonyms).map(move |phrase| (index, self.stems_of(phrase)))
        });
        let found = named.filter_map(|(index, stems)| {
            let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
            let share = self.language.phrase(&stems).filter(|(_, meaning)| *meaning == Meaning::Share);
            let rest = &stems[share.map_or(0, |(length, _)| length)..];
            let places = self.places_of(start, rest).filter(|_| rest.len() >= MIN_WORDS)?;
            Some((index, rest.len(), places))
        });
        found.max_by_key(|(_, words, _)| *words).map(|(index, _, places)| (index, places))
    }

    /// Returns the only rate whose name contains the comparison of a condition and the words before it, with the places
    /// of these items: `share of flights with a departure delay over 15 minutes` means `departures over 15 minutes late`.
    pub(super) fn compared_rate(&self, start: usize) -> Option<(usize, Vec<usize>)> {
        let comparison = self.comparison_of_share(start)?;
        let is_name = |place: &usize| {
            let ItemKind::Member(found) = &self.items[*place].kind else { return false };
            !self.names_rows(found)
        };
        let names: Vec<usize> = (start..comparison).filter(is_name).collect();
        let stems = names.iter().flat_map(|place| self.stems_of(&self.items[*place].text));
        let roots: HashSet<String> = stems.map(|stem| self.language.root(&stem)).collect();
        let rates = self.vocabulary.entries().filter(|(_, entry)| entry.is_share && self.is_of_main_cube(entry));
        let mut found = rates.filter(|(index, entry)| {
            let is_named = !roots.is_empty() && roots.is_subset(self.vocabulary.roots(*index));
            is_named && self.is_in_name(&entry.name, comparison, comparison + 1)
        });
        let (Some((index, _)), None) = (found.next(), found.next()) else { return None };
        Some((index, names.into_iter().chain([comparison, comparison + 1]).collect()))
    }

    /// Returns the place of the comparison with a number in the condition of a share that begins at a place. The share
    /// ends before words such as `by` and `and`.
    fn comparison_of_share(&self, start: usize) -> Option<usize> {
        use Meaning::{And, AtLeast, AtMost, Equals, Group, Less, More, Versus};
        let is_end = |place: &usize| {
            matches!(self.items[*place].kind, ItemKind::Word(And | Group | Versus | Equals) | ItemKind::Step(..))
        };
        let mut places = (start..self.items.len()).take_while(|place| !is_end(place));
        let compares =
            |place: &usize| matches!(self.items[*place].kind, ItemKind::Word(More | Less | AtLeast | AtMost));
        places.find(compares).filter(|place| *place > start && self.is_number(place + 1))
    }

    /// Returns whether a share is of rows with a number, by groups, as in `share of orders over 100 euros by channel`:
    /// it may be the share within each group.
    pub(super) fn is_share_of_condition(&self, at: usize) -> bool {
        let is_group = |item: &super::Item| matches!(item.kind, ItemKind::Word(Meaning::Group) | ItemKind::Step(..));
        let has_groups = !self.draft.groups.is_empty() || self.items[at..].iter().any(is_group);
        has_groups && self.comparison_of_share(at + 1).is_some()
    }

    /// Returns whether a rate is the share of the rows that some roots name. If these rows are the denominator of a
    /// rate, it is the share of other rows: the punctuality of long flights is not the share of long flights. If the
    /// denominator is unknown, one of the names must consist of the roots and of words that add nothing to a share.
    pub(super) fn is_share_of(&self, index: usize, roots: &HashSet<String>) -> bool {
        let entry = self.vocabulary.entry(index);
        let denominator = entry.ratio.as_ref().and_then(|(_, whole)| self.vocabulary.index_of(whole));
        if let Some(whole) = denominator {
            let whole = self.vocabulary.roots(whole);
            return !roots.iter().any(|root| whole.contains(root) && !self.is_root_of_main(root));
        }
        let adds_nothing = |stem: &String| {
            let root = self.language.root(stem);
            roots.contains(&root)
                || self.is_root_of_main(&root)
                || self.language.has(WordList::ShareNouns, stem)
                || self.language.number(stem).is_some()
                || stem.starts_with(|c: char| c.is_ascii_digit())
                || self.language.phrase(&[stem]).is_some()
                || self.vocabulary.related(stem, self.language).iter().any(|index| self.counts_part(*index))
        };
        let is_plain = |phrase: &Arc<str>| {
            let stems = self.stems_of(phrase);
            let own: HashSet<String> = stems.iter().map(|stem| self.language.root(stem)).collect();
            roots.is_subset(&own) && stems.iter().all(adds_nothing)
        };
        entry.phrases.iter().chain(&entry.synonyms).any(is_plain)
    }

    /// Returns whether a measure counts some rows of the main cube, as the departures of flights.
    fn counts_part(&self, index: usize) -> bool {
        let entry = self.vocabulary.entry(index);
        entry.aggregation == Some(Aggregation::Count) && self.is_of_main_cube(entry)
    }

    /// Returns whether a root is a word in the names of the main cube.
    fn is_root_of_main(&self, root: &str) -> bool {
        let cube = self.main_cube.as_ref().and_then(|name| self.vocabulary.index_of(name));
        cube.is_some_and(|cube| self.vocabulary.roots(cube).contains(root))
    }

    fn stems_of(&self, text: &str) -> Vec<String> {
        spelled(text).split(' ').map(|word| self.language.stem(word)).collect()
    }

    /// Returns the places of the items with these stems, in this order, from `start` on. Filler words between them are
    /// skipped; any other word ends the search with `None`.
    fn places_of(&self, start: usize, stems: &[&str]) -> Option<Vec<usize>> {
        let (mut rest, mut places) = (stems, Vec::new());
        for (place, item) in self.items.iter().enumerate().skip(start) {
            if rest.is_empty() {
                break;
            }
            let own = self.stems_of(&item.text);
            let is_filler = matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Equals | Meaning::Verb));
            if own.len() <= rest.len() && own.iter().zip(rest).all(|(own, wanted)| own == wanted) {
                rest = &rest[own.len()..];
                places.push(place);
            } else if !is_filler {
                return None;
            }
        }
        rest.is_empty().then_some(places)
    }

    /// Selects a rate, whose words are not read as conditions. Returns the number of items read.
    pub(super) fn rate(&mut self, at: usize, text: &str, index: usize, places: Vec<usize>) -> usize {
        let parts: Vec<&str> = places.iter().map(|place| &*self.items[*place].text).collect();
        let whole = format!("{text} … {}", parts.join(" "));
        let name = Arc::clone(&self.vocabulary.entry(index).name);
        self.add_value(&name);
        self.piece(&whole, format!("measure {name}"), 0.9);
        let nouns: Vec<usize> =
            places.iter().map(|place| place + 1).filter(|place| self.is_generic_noun(*place)).collect();
        for place in places.into_iter().chain(nouns).filter(|place| *place > at) {
            self.items[place].kind = ItemKind::Word(Meaning::Ignore);
        }
        1
    }

    /// Returns the rates of the main cube whose descriptions begin with some words and the name of the cube, in any
    /// order: `accepted` means the rate that is described as `Accepted claims by claims`.
    pub(super) fn described_rates(&self, roots: &HashSet<String>) -> Vec<usize> {
        let of_cube = self.main_cube.as_ref().and_then(|name| self.vocabulary.index_of(name));
        let is_of_cube = |root: &String| of_cube.is_some_and(|cube| self.vocabulary.roots(cube).contains(root));
        let is_described = |description: &str| {
            let words = self.stems_of(description).into_iter().map(|stem| self.language.root(&stem));
            let first: HashSet<String> = words.take_while(|root| roots.contains(root) || is_of_cube(root)).collect();
            !roots.is_empty() && roots.is_subset(&first)
        };
        let rates = self.vocabulary.entries().filter(|(_, entry)| entry.is_share && self.is_of_main_cube(entry));
        let found = rates.filter(|(_, entry)| entry.description.as_deref().is_some_and(is_described));
        found.map(|(index, _)| index).collect()
    }

    /// Returns the place behind `is` if groups follow the share directly, as in `share of each customer's orders is
    /// returned`: the share is that of the group's rows, not of all rows.
    pub(super) fn predicate_of_groups(&self, at: usize) -> Option<usize> {
        let is_filler = |kind: &ItemKind| matches!(kind, ItemKind::Word(Meaning::Ignore));
        let next = self.items[at + 1..].iter().find(|item| !is_filler(&item.kind))?;
        let is_group = next.kind == ItemKind::Word(Meaning::Group);
        self.verb_of_share(at).filter(|_| is_group).map(|place| place + 1)
    }

    /// Returns the place of the word `is` whose subject is the share: it directly follows a name.
    fn verb_of_share(&self, at: usize) -> Option<usize> {
        let is_name = |place: usize| matches!(self.items[place].kind, ItemKind::Member(_) | ItemKind::Value(_));
        let is_verb = |place: &usize| self.items[*place].kind == ItemKind::Word(Meaning::Equals) && is_name(place - 1);
        (at + 2..self.items.len()).find(is_verb)
    }

    /// Returns the places of the values of which a share consists, as in `share of orders is paid by card`: they follow
    /// `is`, and no name of their dimension is before it.
    pub(super) fn values_of_predicate(&self, at: usize) -> Vec<usize> {
        use Meaning::{From, Group, Ignore, To, Verb};
        let Some(verb) = self.verb_of_share(at) else { return Vec::new() };
        let is_filler = |kind: &ItemKind| matches!(kind, ItemKind::Word(Ignore | Verb | Group | From | To));
        let mut rest = (verb + 1..self.items.len()).skip_while(|place| is_filler(&self.items[*place].kind));
        let Some(first) = rest.next() else { return Vec::new() };
        let ItemKind::Value(values) = &self.items[first].kind else { return Vec::new() };
        let is_condition = matches!(&self.items[verb - 1].kind, ItemKind::Member(found)
            if found.members.iter().any(|index| values.iter().any(|known| known.member == self.vocabulary.entry(*index).name)));
        if is_condition { Vec::new() } else { vec![first] }
    }

    /// Reads a share of the rows with some values, as the rate whose name contains these values. If no rate matches,
    /// asks the caller, because a share of the total is a different number. Returns the number of items read, or `None`
    /// for a share without values that is not within groups.
    pub(super) fn share_of_values(
        &mut self,
        at: usize,
        text: &str,
        values: Vec<usize>,
        is_within_groups: bool,
    ) -> Option<usize> {
        if values.is_empty() && !is_within_groups {
            return None;
        }
        let stems = values.iter().flat_map(|place| self.stems_of(&self.items[*place].text));
        let roots: HashSet<String> = stems.map(|stem| self.language.root(&stem)).collect();
        let members = self.rates(&roots);
        if members.is_empty()
            && !is_within_groups
            && let Some(length) = self.share_of_value(text, &values)
        {
            return Some(length);
        }
        if members.is_empty() {
            let message = format!("`{text}` needs a rate here: the share within each group, not the one of the total");
            let choices = self.rates_of_main();
            self.unclear(text, message, choices);
            return Some(1);
        }
        let candidates = Candidates { members, certainty: 0.9, ..Candidates::default() };
        let Some(index) = self.pick(text, &candidates, Role::Value) else { return Some(1) };
        Some(self.rate(at, text, index, values))
    }

    /// Reads the share of the rows with one value, as in `what share of orders is paid by card`. The answer has the
    /// shares of all values of this dimension. Returns the number of items read, or `None` if the question has groups.
    fn share_of_value(&mut self, text: &str, values: &[usize]) -> Option<usize> {
        let is_group = |(place, item): (usize, &super::Item)| {
            let is_word = matches!(item.kind, ItemKind::Word(Meaning::Group)) && !self.is_agent(place);
            is_word || matches!(item.kind, ItemKind::Step(..))
        };
        let [place] = values[..] else { return None };
        let ItemKind::Value(known) = &self.items[place].kind else { return None };
        let has_groups = !self.draft.groups.is_empty() || self.items.iter().enumerate().any(is_group);
        let dimensions = self.dimensions_of((place, place + 1), known, std::slice::from_ref(known));
        let [member] = &dimensions[..] else { return None };
        let own: Vec<&Arc<str>> = known.iter().filter(|one| one.member == *member).map(|one| &one.value).collect();
        let [value] = own[..] else { return None };
        if has_groups || place + 1 < self.items.len() {
            return None;
        }
        let (member, value) = (Arc::clone(member), Arc::clone(value));
        self.draft.totals = true;
        self.group(&member);
        let whole = format!("{text} … {}", self.items[place].text);
        let meaning = format!("grouped by {member} with totals, for the share of the row {value}");
        self.items[place].kind = ItemKind::Word(Meaning::Ignore);
        Some(self.piece(&whole, meaning, 0.9))
    }

    /// Returns the rates of the main cube.
    pub(super) fn rates_of_main(&self) -> Vec<Arc<str>> {
        let rates = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.is_share);
        let own = rates.filter(|entry| self.is_of_main_cube(entry));
        own.map(|entry| Arc::clone(&entry.name)).take(super::MAX_CHOICES).collect()
    }
}
