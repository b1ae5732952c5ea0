//! Reads verbs that choose one of several time dimensions: `tickets closed in March`, `orders shipped last week`.
//!
//! The verb may also be a value, a measure or a boolean dimension, as `closed` is a value of the status. Before a time,
//! it names the dimension with the same word, because the time of the status is that of another event.

use std::sync::Arc;

use super::{Item, ItemKind, Reader};
use crate::language::{Meaning, WordList};
use crate::members::{MemberEntry, MemberKind};
use crate::spelling::spelled;

/// The number of phrases of a member that do not contain the name of its cube: its name and its title.
const OWN_PHRASES: usize = 2;
/// The certainty of a time dimension that only shares a word with the question.
const CERTAINTY_OF_TIME: f64 = 0.8;

impl Reader<'_> {
    /// Reads a participle before a time or a step of time, or behind a time at the end of the question. Returns the
    /// number of items read, or `None` if the word names no time dimension. A measure remains to be read.
    pub(super) fn dated_event(&mut self, at: usize) -> Option<usize> {
        let item = &self.items[at];
        let kinds = |item: &Item| match &item.kind {
            ItemKind::Member(found) => {
                found.members.iter().map(|index| self.vocabulary.entry(*index).kind).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        let is_switch = |kind: &MemberKind| matches!(kind, MemberKind::Boolean | MemberKind::Segment);
        let is_measure = kinds(item).iter().any(|kind| matches!(kind, MemberKind::Measure | MemberKind::Metric));
        let is_word = match &item.kind {
            ItemKind::Value(_) | ItemKind::Unknown | ItemKind::Word(Meaning::Verb) => true,
            _ => is_measure || kinds(item).iter().any(is_switch),
        };
        let text = item.text.clone();
        let verb = text.rsplit(' ').next().unwrap_or_default().to_lowercase();
        let is_participle = self.language.is_participle(&verb) || self.is_verb(&verb);
        if self.state.groups || !is_word || !is_participle || !(self.is_dated(at) || self.ends_behind_time(at)) {
            return None;
        }
        let name = self.time_with(&verb)?;
        self.draft.time = Some(Arc::clone(&name));
        (!is_measure).then(|| self.piece(&text, format!("the time of {name}"), CERTAINTY_OF_TIME))
    }

    /// Returns whether a time or a step of time directly follows a word behind the rows that it is about.
    fn is_dated(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| &self.items[before].kind);
        let is_behind_rows = matches!(
            before,
            Some(ItemKind::Member(_) | ItemKind::Value(_) | ItemKind::Word(Meaning::Equals | Meaning::Which))
                | Some(ItemKind::Word(Meaning::Verb | Meaning::Ignore))
        );
        let next = self.items.get(at + 1).map(|item| &item.kind);
        // `tickets escalated` contains the rows.
        let has_rows = self.items[at].text.contains(' ');
        (is_behind_rows || has_rows) && matches!(next, Some(ItemKind::Time(_) | ItemKind::Step(..)))
    }

    /// Returns whether a word ends the question behind a time, as in the German `im März geschlossen wurden`.
    fn ends_behind_time(&self, at: usize) -> bool {
        let is_time = at.checked_sub(1).is_some_and(|before| matches!(self.items[before].kind, ItemKind::Time(_)));
        let is_filler =
            |item: &Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Verb | Meaning::Equals));
        is_time && self.items[at + 1..].iter().all(is_filler)
    }

    /// Asks the caller to choose one of several time dimensions if none of them has the name of the event, as in
    /// `orders shipped in March` if only the dates of the order and of the delivery are known. Returns the number of
    /// items read.
    pub(super) fn unclear_event(&mut self, at: usize, text: &str) -> Option<usize> {
        let is_event = self.language.has(WordList::DatedVerbs, &text.to_lowercase());
        let next = self.items.get(at + 1).map(|item| &item.kind);
        let times = self.choices_of(MemberKind::Time);
        if !is_event || !matches!(next, Some(ItemKind::Time(_))) || times.len() < 2 || self.draft.time.is_some() {
            return None;
        }
        let message = format!("no time dimension is known for `{text}`; name the one that is meant");
        self.unclear(text, message, times);
        Some(1)
    }

    /// Returns the root of a verb, also with and without a silent `e`: `clos` and `close` for `closed`.
    pub(super) fn roots_of_verb(&self, text: &str) -> Vec<String> {
        let root = self.language.root(&self.language.stem(&text.to_lowercase()));
        let shorter = root.strip_suffix('e').map(str::to_owned);
        let longer = format!("{root}e");
        [root].into_iter().chain(shorter).chain([longer]).collect()
    }

    /// Returns the members with the root of a verb of the question in their names, or all if none has one.
    pub(super) fn with_verb(&self, members: Vec<usize>) -> Vec<usize> {
        let named = self.only_with_verb(members.clone());
        if named.is_empty() { members } else { named }
    }

    /// Returns the members with the root of a verb of the question in their names.
    pub(super) fn only_with_verb(&self, members: Vec<usize>) -> Vec<usize> {
        let verbs = self.items.iter().filter(|item| item.kind == ItemKind::Word(Meaning::Verb));
        let roots: Vec<String> = verbs.flat_map(|verb| self.roots_of_verb(&verb.text)).collect();
        let is_named = |index: &usize| roots.iter().any(|root| self.vocabulary.roots(*index).contains(root));
        members.into_iter().filter(is_named).collect()
    }

    /// Returns the only time dimension of the main cube with one of several roots in its names.
    pub(super) fn only_time_with(&self, roots: &[String]) -> Option<Arc<str>> {
        let is_time = |entry: &MemberEntry| entry.kind == MemberKind::Time && self.is_of_main_cube(entry);
        let root = |word: &str| self.language.root(&self.language.stem(&word.to_lowercase()));
        let is_named = |entry: &MemberEntry| {
            let own = entry.phrases.iter().take(OWN_PHRASES).chain(&entry.synonyms).map(|phrase| spelled(phrase));
            own.into_iter().any(|phrase| phrase.split(' ').any(|word| roots.contains(&root(word))))
        };
        let entries = self.vocabulary.entries().map(|(_, entry)| entry);
        let mut found = entries.filter(|entry| is_time(entry) && is_named(entry));
        let (first, None) = (found.next()?, found.next()) else { return None };
        Some(Arc::clone(&first.name))
    }
}
