//! Reads `by` after a verb, and the words around a verb that add nothing: `paid by patients`,
//! `new customers registered`.

use std::sync::Arc;

use super::moves::CERTAINTY_OF_EACH;
use super::{Candidates, DraftRange, DraftValue, Item, ItemKind, Reader};
use crate::language::{Direction, Meaning, WordList};
use crate::members::MemberKind;

/// The certainty of a time dimension that only shares a word with the question.
const CERTAINTY_OF_TIME: f64 = 0.8;

impl Reader<'_> {
    /// Reads `by` or another word before a group. Returns the number of items read.
    pub(super) fn group_word(&mut self, at: usize, text: &str) -> usize {
        if let Some(agent) = self.unclear_agent(at) {
            let message = format!("`{agent}` may be the ones who act, or groups; write `for each` before groups");
            let choices = self.text_dimensions();
            self.unclear(&format!("{text} {agent}"), message, choices);
            return 2;
        }
        if let Some(member) = self.values_before_each(at, text) {
            self.group(&member);
            return self.piece(text, format!("grouped by {member}"), CERTAINTY_OF_EACH);
        }
        if self.ranks_within(text) {
            let message = "rows are ranked over all groups, and not within each of them".to_owned();
            self.unclear(text, message, Vec::new());
            return 1;
        }
        // `flights by carrier, top 3 by cancellation rate`
        if self.ranks_by(at) {
            self.state.groups = false;
            return 1;
        }
        // The agent of a verb, as in `operated by United`.
        self.state.groups = !self.is_agent(at);
        self.state.group_direction = self.direction_of(text).or_else(|| self.direction_of_verb(at));
        1
    }

    /// Returns whether a word such as `each` follows rows that are ranked, as in `top destination of each airline`: the
    /// answer has the first row of each group.
    pub(super) fn ranks_within(&self, text: &str) -> bool {
        let lower = text.to_lowercase();
        let is_each = lower.split(' ').any(|word| self.language.has(WordList::Each, word));
        let is_ranked = |at: usize| {
            use Meaning::{Best, Bottom, Top, Worst};
            let kind = &self.items[at].kind;
            let ranks = matches!(kind, ItemKind::Superlative(..) | ItemKind::Word(Top | Bottom | Best | Worst));
            let Some(next) = self.items.get(at + 1) else { return false };
            let ItemKind::Member(candidates) = &next.kind else { return false };
            let is_thing =
                |index: &usize| matches!(self.vocabulary.entry(*index).kind, MemberKind::Text | MemberKind::Cube);
            ranks && !next.is_plural && candidates.members.iter().any(is_thing)
        };
        let has_rows = self.draft.limit.is_some() || (0..self.items.len()).any(is_ranked);
        is_each && has_rows
    }

    /// Returns whether `by` at a place introduces the measure of a ranking that directly precedes it, since the
    /// question has groups already.
    fn ranks_by(&self, at: usize) -> bool {
        let has_groups = !self.draft.groups.is_empty() || self.draft.granularity.is_some();
        let before = self.items[..at].iter().rev().map(|item| &item.kind);
        let mut before = before.skip_while(|kind| matches!(kind, ItemKind::Number(_, None)));
        let is_ranking = matches!(before.next(), Some(ItemKind::Word(Meaning::Top | Meaning::Bottom)));
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let next = self.items[at + 1..].iter().find(|item| !is_filler(item)).map(|item| &item.kind);
        let Some(ItemKind::Member(candidates)) = next.filter(|_| has_groups && is_ranking) else { return false };
        let kinds = || candidates.members.iter().map(|index| self.vocabulary.entry(*index).kind);
        kinds().any(MemberKind::is_value) && !kinds().any(|kind| matches!(kind, MemberKind::Text | MemberKind::Time))
    }

    /// Returns whether `by` at a place introduces the agent of a verb: a value follows, and not a member.
    pub(super) fn is_agent(&self, at: usize) -> bool {
        let is_verb = at > 0 && matches!(self.items[at - 1].kind, ItemKind::Word(Meaning::Verb));
        let next = self.items.get(at + 1).map(|item| &item.kind);
        is_verb && matches!(next, Some(ItemKind::Value(_) | ItemKind::Quoted | ItemKind::Unknown))
    }

    /// Returns the plural noun after a verb with `by`, as in `paid by patients`, which is not a group.
    fn unclear_agent(&self, at: usize) -> Option<String> {
        let before = at.checked_sub(1).map(|at| &self.items[at].kind);
        let next = self.items.get(at + 1).filter(|next| next.is_plural)?;
        let ItemKind::Member(candidates) = &next.kind else { return None };
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        let is_thing = candidates.members.iter().any(is_cube) && self.draft.groups.is_empty();
        (matches!(before, Some(ItemKind::Word(Meaning::Verb))) && is_thing).then(|| next.text.clone())
    }

    /// Returns the direction that the words before a group express, as `from each` does.
    fn direction_of(&self, text: &str) -> Option<Direction> {
        let stems: Vec<String> = text.split(' ').map(|word| self.language.stem(&word.to_lowercase())).collect();
        match self.language.phrase(&[stems.first()?]) {
            Some((1, Meaning::From)) if stems.len() > 1 => Some(Direction::From),
            Some((1, Meaning::To)) if stems.len() > 1 => Some(Direction::To),
            _ => None,
        }
    }

    /// Returns the direction that a verb directly before a group expresses, as in `leave each airport`.
    fn direction_of_verb(&self, at: usize) -> Option<Direction> {
        self.direction_of_word(&self.items[..at].last()?.text)
    }

    /// Reads a verb. Returns the number of items read.
    pub(super) fn verb(&mut self, at: usize, text: &str) -> usize {
        if let Some(length) = self.named_time(at, text) {
            return length;
        }
        if let Some(length) = self.year_of_verb(at, text) {
            return length;
        }
        if let Some(length) = self.unclear_event(at, text) {
            return length;
        }
        if let Some(name) = self.time_of_step(at, text) {
            self.draft.time = Some(Arc::clone(&name));
            return self.piece(text, format!("the time of {name}"), CERTAINTY_OF_TIME);
        }
        if let Some(name) = self.count_of_direction(at, text) {
            self.count_instead(&name);
            return self.piece(text, format!("measure {name}"), CERTAINTY_OF_TIME);
        }
        self.piece(text, "ignored".to_owned(), 1.0)
    }

    /// Compares a year with the numeric dimension that the verb before it names, as in `built in 2010` for `year
    /// built`. Returns the number of items read.
    fn year_of_verb(&mut self, at: usize, text: &str) -> Option<usize> {
        let ItemKind::Time(time) = &self.items.get(at + 1)?.kind else { return None };
        let DraftRange::Words(words) = &time.range else { return None };
        let year: i16 = words.parse().ok()?;
        let root = |word: &str| self.language.root(&self.language.stem(&word.to_lowercase()));
        let wanted = [root(text), root(self.language.word_for(Meaning::Year)?)];
        let numbers = self.vocabulary.entries().filter(|(index, entry)| {
            let roots = self.vocabulary.roots(*index);
            entry.kind == MemberKind::Number && self.is_reached(entry) && wanted.iter().all(|one| roots.contains(one))
        });
        let mut found: Vec<usize> = numbers.map(|(index, _)| index).collect();
        let is_own = |index: &usize| self.is_of_main_cube(self.vocabulary.entry(*index));
        if found.iter().any(is_own) {
            found.retain(is_own);
        }
        let [only] = found[..] else { return None };
        self.compare(
            (at, at + 2),
            only,
            None,
            false,
            &[(DraftValue::Number(f64::from(year)), None)],
            CERTAINTY_OF_TIME,
        );
        Some(2)
    }

    /// Returns the time dimension that a verb before a step of time names, as in `registered per quarter`.
    fn time_of_step(&self, at: usize, text: &str) -> Option<Arc<str>> {
        matches!(self.items.get(at + 1)?.kind, ItemKind::Step(..)).then_some(())?;
        self.time_with(text)
    }

    /// Returns the only time dimension of the main cube whose name has the root of a word.
    pub(super) fn time_with(&self, text: &str) -> Option<Arc<str>> {
        self.only_time_with(&self.roots_of_verb(text))
    }

    /// Returns whether a word such as `new` is redundant. In `new customers registered`, the verb already selects new
    /// customers.
    pub(super) fn is_redundant(&self, at: usize, text: &str) -> bool {
        if !self.language.has(WordList::New, &text.to_lowercase()) {
            return false;
        }
        let [Item { kind: ItemKind::Member(_), .. }, Item { text: verb, .. }] =
            &self.items[(at + 1).min(self.items.len())..(at + 3).min(self.items.len())]
        else {
            return false;
        };
        self.is_verb(verb) && self.time_with(verb).is_some()
    }

    pub(super) fn is_verb(&self, text: &str) -> bool {
        let stem = self.language.stem(&text.to_lowercase());
        self.language.phrase(&[&stem]) == Some((1, Meaning::Verb))
    }

    /// Returns whether a word is a verb directly after the rows that it is about, as in `customers registered`.
    pub(super) fn is_verb_of_rows(&self, at: usize, text: &str) -> bool {
        let before = at.checked_sub(1).map(|at| &self.items[at].kind);
        let lower = text.to_lowercase();
        let is_participle = !lower.contains(' ') && self.language.is_participle(&lower);
        match before {
            Some(ItemKind::Member(_)) => self.is_verb(text) || is_participle,
            // `patients are admitted` and `patients who were admitted`
            Some(ItemKind::Word(Meaning::Equals | Meaning::Which)) => is_participle,
            _ => false,
        }
    }

    /// Reads a verb that is the name of a time dimension, as in `which doctor admitted the most patients in October`.
    /// If the question has a time, it refers to this dimension. Returns the number of items read.
    pub(super) fn event_of_rows(&mut self, at: usize, text: &str) -> usize {
        let is_time = |item: &Item| matches!(item.kind, ItemKind::Time(_) | ItemKind::Step(..));
        if self.draft.time.is_none()
            && self.items[at + 1..].iter().any(is_time)
            && let Some(name) = self.time_with(text)
        {
            self.draft.time = Some(Arc::clone(&name));
            return self.piece(text, format!("the time of {name}"), CERTAINTY_OF_TIME);
        }
        self.verb(at, text)
    }

    /// Compares the age of people, as in `customers over 65`, if their cube has one age. Returns the number of items
    /// read.
    pub(super) fn age(&mut self, at: usize, text: &str, candidates: &Candidates) -> Option<usize> {
        let next = at + 1 + usize::from(self.items.get(at + 1)?.kind == ItemKind::Word(Meaning::Equals));
        let comparison = self.items.get(next)?;
        let ItemKind::Word(meaning) = comparison.kind else { return None };
        let ItemKind::Number(number, None) = self.items.get(next + 1)?.kind else { return None };
        let is_member = matches!(self.items.get(next + 2).map(|item| &item.kind), Some(ItemKind::Member(_)));
        let is_age = (1.0..=MAX_AGE).contains(&number) && !is_member;
        if !is_age || !self.language.has(WordList::AgeComparisons, &comparison.text.to_lowercase()) {
            return None;
        }
        let index = self.age_of(candidates)?;
        self.compare((next, next + 2), index, Some(meaning), false, &[(super::DraftValue::Number(number), None)], 0.9);
        let people = Candidates {
            members: candidates
                .members
                .iter()
                .copied()
                .filter(|one| self.vocabulary.entry(*one).kind.is_value())
                .collect(),
            ..candidates.clone()
        };
        if !self.is_context(at, &people)
            && let Some(index) = self.pick(text, &people, super::Role::Value)
        {
            let name = Arc::clone(&self.vocabulary.entry(index).name);
            match self.vocabulary.entry(index).kind {
                MemberKind::Cube => self.state.cube = Some(index),
                _ => self.add_value(&name),
            }
            self.piece(text, format!("measure {name}"), candidates.certainty);
        }
        Some(next + 2 - at)
    }

    /// Returns the only age among the numbers of the cube that a word names.
    fn age_of(&self, candidates: &Candidates) -> Option<usize> {
        let cubes = candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let cube = cubes.into_iter().find(|entry| entry.kind == MemberKind::Cube)?;
        let is_age = |index: usize| {
            let is_word = |phrase: &Arc<str>| self.language.has(WordList::AgeNames, &phrase.to_lowercase());
            self.vocabulary.entry(index).phrases.iter().any(is_word)
        };
        let numbers = self
            .vocabulary
            .entries()
            .filter(|(_, entry)| entry.kind == MemberKind::Number && entry.cube.as_deref() == Some(&*cube.name));
        let mut found = numbers.map(|(index, _)| index).filter(|index| is_age(*index));
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }
}

/// The largest number that is an age.
const MAX_AGE: f64 = 120.0;
