//! Reads what a question implies: the rows that a measure counts, the average of a number, a missing value, and the
//! time dimension that a verb names.

use std::sync::Arc;

use super::{Candidates, DraftValue, ItemKind, Reader};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::{MemberEntry, MemberKind};
use crate::spelling::spelled;

/// The certainty of a time dimension that only shares a word with the question.
const CERTAINTY_OF_TIME: f64 = 0.8;
/// The certainty of a condition whose name has another prefix in the question.
const CERTAINTY_OF_OPPOSITE: f64 = 0.9;

impl Reader<'_> {
    /// Returns whether a measure names the rows that another measure is about, as in `average age of subscribers`.
    pub(super) fn describes_measure(&self, at: usize) -> bool {
        let is_filler = |item: &&super::Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let mut fillers = self.items[..at].iter().rev().take_while(is_filler);
        let is_of = fillers.any(|item| self.language.has(WordList::Possession, &item.text.to_lowercase()));
        !self.draft.values.is_empty() && is_of && !self.is_listed(at)
    }

    /// Selects the rows that a measure counts, if one dimension decides on them. Returns the number of items read.
    pub(super) fn rows_of_measure(&mut self, text: &str, index: usize, certainty: f64) -> usize {
        let entry = self.vocabulary.entry(index);
        let (name, condition) = (Arc::clone(&entry.name), entry.counted_if.clone());
        match condition.filter(|_| self.is_of_main_cube(entry)) {
            Some(switch) => {
                self.filter(&switch, "equals", vec![DraftValue::Boolean(true)]);
                self.piece(text, format!("only rows where {switch} is true"), certainty)
            }
            None => {
                let message = format!(
                    "measure `{name}` follows another measure; write `and` between them, or a condition instead of `{name}`"
                );
                self.unclear(text, message, Vec::new());
                1
            }
        }
    }

    /// Returns the average of a number if the question has groups, and no sum of this number exists; or else its sum,
    /// if no average exists.
    pub(super) fn only_measure_of(&self, index: usize) -> Option<Arc<str>> {
        let is_group = |item: &super::Item| matches!(item.kind, ItemKind::Word(Meaning::Group) | ItemKind::Step(..));
        if !self.draft.values.is_empty() || !self.items.iter().any(is_group) {
            return None;
        }
        let name = &self.vocabulary.entry(index).name;
        let of = |wanted: Aggregation| {
            let measures = self.vocabulary.entries().map(|(_, entry)| entry);
            let is_own =
                move |entry: &&MemberEntry| entry.combines.as_ref() == Some(name) && entry.aggregation == Some(wanted);
            measures.filter(is_own)
        };
        let mut found = of(Aggregation::Average).chain(of(Aggregation::Sum));
        let only = found.next()?;
        found.next().is_none().then(|| Arc::clone(&only.name))
    }

    /// Reads a dimension after a word such as `without`, as in `orders without a voucher`. Returns the number of items
    /// read, or `None` if the member is not such a dimension.
    pub(super) fn lack(&mut self, at: usize, candidates: &Candidates) -> Option<usize> {
        if !self.is_lack() {
            return None;
        }
        let kind = |index: &usize| self.vocabulary.entry(*index).kind;
        let is_thing =
            |index: &usize| matches!(kind(index), MemberKind::Cube | MemberKind::Boolean | MemberKind::Segment);
        if candidates.members.iter().any(is_thing) {
            return None;
        }
        let is_missing = |index: &usize| matches!(kind(index), MemberKind::Text | MemberKind::Time);
        let of = |is_near: &dyn Fn(&MemberEntry) -> bool| -> Vec<usize> {
            let near = |index: &usize| is_missing(index) && is_near(self.vocabulary.entry(*index));
            candidates.members.iter().copied().filter(near).collect()
        };
        let own = of(&|entry| self.is_of_main_cube(entry));
        let found = if own.is_empty() { of(&|entry| self.is_reached(entry)) } else { own };
        let [first] = found[..] else { return None };
        // `without a manufacturer name` may be about the name of other things.
        if matches!(self.items.get(at + 1).map(|item| &item.kind), Some(ItemKind::Member(_))) {
            return None;
        }
        self.state.is_negated = false;
        let name = Arc::clone(&self.vocabulary.entry(first).name);
        let noun = usize::from(self.is_name_noun(at + 1));
        let whole = format!("{} {}", self.state.negation, self.text(at, at + 1 + noun));
        if let Some(value) = self.value_of_lack(&name, &self.items[at].text) {
            let message = format!("`{whole}` may be the value `{value}`, or a missing value");
            let missing = format!("{} {}", self.items[at].text, self.language.word_for(Meaning::Missing)?);
            self.unclear(&whole, message, vec![value, missing.into()]);
            return Some(1 + noun);
        }
        self.filter(&name, "notSet", Vec::new());
        Some(noun + self.piece(&whole, format!("only rows where {name} is missing"), candidates.certainty))
    }

    /// Returns the dimension value that means the absence of a thing: `Uninsured` means no `insurance`, and a value
    /// `None` means the absence of any thing.
    fn value_of_lack(&self, member: &Arc<str>, text: &str) -> Option<Arc<str>> {
        let root = |word: &str| self.language.root(&self.language.stem(word));
        let wanted = root(&text.to_lowercase());
        let lacks = |word: &str| self.language.has(WordList::LackOfValue, word);
        let is_prefixed = |word: &str| {
            (1..word.len())
                .filter(|at| word.is_char_boundary(*at))
                .any(|at| self.language.has(WordList::LackPrefixes, &word[..at]) && root(&word[at..]) == wanted)
        };
        let is_lack = |value: &str| {
            let words = spelled(value);
            let mut words = words.split(' ');
            let first = words.next().unwrap_or_default();
            let rest: Vec<&str> = words.collect();
            is_prefixed(first) || (lacks(first) && rest.iter().all(|word| root(word) == wanted))
        };
        let own = self.values.values.iter().filter(|known| known.member == *member && known.rows != Some(0));
        own.map(|known| &known.value).find(|value| is_lack(value)).map(Arc::clone)
    }

    /// Reads a word such as `unanswered` if a boolean dimension of the main cube is named by it without the prefix.
    /// Returns the number of items read.
    pub(super) fn opposite(&mut self, text: &str) -> Option<usize> {
        let lower = text.to_lowercase();
        let ends = (1..lower.len()).filter(|end| lower.is_char_boundary(*end));
        let prefixed = ends.filter(|end| self.language.has(WordList::LackPrefixes, &lower[..*end]));
        let rests: Vec<&str> = prefixed.map(|end| lower[end..].trim_start_matches('-')).collect();
        let is_named = |entry: &MemberEntry| {
            let mut names = entry.phrases.iter().chain(&entry.synonyms).map(|name| spelled(name));
            names.any(|name| rests.iter().any(|rest| *rest == name || name.strip_prefix("is ") == Some(rest)))
        };
        let is_switch = |entry: &MemberEntry| entry.kind == MemberKind::Boolean && self.is_of_main_cube(entry);
        let switches = self.vocabulary.entries().map(|(_, entry)| entry);
        let mut switches = switches.filter(|entry| is_switch(entry) && is_named(entry));
        let (Some(only), None) = (switches.next(), switches.next()) else { return None };
        let (name, is_negated) = (Arc::clone(&only.name), std::mem::take(&mut self.state.is_negated));
        self.filter(&name, "equals", vec![DraftValue::Boolean(is_negated)]);
        Some(self.piece(text, format!("only rows where {name} is {is_negated}"), CERTAINTY_OF_OPPOSITE))
    }

    /// Returns whether the word at a place adds nothing to the name before it, as in `without an e-mail address`.
    pub(super) fn is_name_noun(&self, at: usize) -> bool {
        self.items.get(at).is_some_and(|item| {
            item.kind == ItemKind::Unknown && self.language.has(WordList::NameNouns, &item.text.to_lowercase())
        })
    }

    /// Returns whether the word at a place is a unit of time in the plural after `in`, as in `in hours`.
    pub(super) fn is_time_unit(&self, at: usize) -> bool {
        let item = &self.items[at];
        let stem = self.language.stem(&item.text.to_lowercase());
        let before = at.checked_sub(1).map(|at| self.items[at].text.to_lowercase());
        let is_in = before.is_some_and(|word| self.language.is_unit_word(&word));
        use Meaning::{Day, Hour, Minute, Second};
        let is_unit = matches!(self.language.phrase(&[&stem]), Some((1, Second | Minute | Hour | Day)));
        is_in && is_unit && item.is_plural
    }

    /// Reads a time dimension after `how many`, as in `how many hours was it windy`. The cube must have one row for
    /// each value of the dimension, so that the description of its count begins with this word. Returns the number of
    /// items read.
    pub(super) fn counted_time(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let before = at.checked_sub(1).map(|at| &self.items[at].kind);
        let is_segment = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Segment;
        // `windy hours at LaGuardia`
        let is_described = matches!(before, Some(ItemKind::Member(found)) if found.members.iter().all(is_segment))
            && self.items[at].is_plural
            && self.draft.values.is_empty()
            && self.draft.groups.is_empty();
        if !is_described && !matches!(before, Some(ItemKind::Word(Meaning::HowMany))) {
            return None;
        }
        let stem = self.language.stem(&text.to_lowercase());
        let counts = |index: &usize| {
            let cube = self.vocabulary.cube(self.vocabulary.entry(*index).cube.as_deref()?)?;
            let count = self.vocabulary.entry(self.vocabulary.index_of(cube.count.as_deref()?)?);
            let first = count.description.as_ref()?.split(|c: char| !c.is_alphanumeric()).next()?.to_lowercase();
            (self.language.stem(&first) == stem).then(|| Arc::clone(&count.name))
        };
        let name = candidates.members.iter().find_map(counts)?;
        self.add_value(&name);
        Some(self.piece(text, format!("measure {name}"), candidates.certainty))
    }

    /// Reads a word that names the time dimension and stands before a time, as in `signed up in 2024` for `signup
    /// date`. Returns the number of items read, or `None` if no time follows or no dimension is named.
    pub(super) fn named_time(&mut self, at: usize, text: &str) -> Option<usize> {
        // `signed up in 2024`
        let is_particle = |item: &&super::Item| self.language.has(WordList::Particles, &item.text.to_lowercase());
        let particle = self.items.get(at + 1).filter(is_particle);
        let length = usize::from(particle.is_some());
        let next = self.items.get(at + 1 + length)?;
        let ItemKind::Time(_) = next.kind else { return None };
        let first = particle.unwrap_or(next).text.split(' ').next().unwrap_or_default();
        let mut wanted = self.roots_of_verb(text);
        let root = |word: &str| self.language.root(&self.language.stem(&word.to_lowercase()));
        wanted.push(root(&format!("{}{}", root(text), first.to_lowercase())));
        let name = self.only_time_with(&wanted)?;
        self.draft.time = Some(Arc::clone(&name));
        let whole = if length == 0 { text.to_owned() } else { self.text(at, at + 2) };
        Some(length + self.piece(&whole, format!("the time of {name}"), CERTAINTY_OF_TIME))
    }
}
