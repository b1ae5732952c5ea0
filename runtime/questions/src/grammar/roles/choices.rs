//! Completes the choices of clarifications.

use std::sync::Arc;

use super::{MAX_CHOICES, Reader};
use crate::members::MemberKind;
use crate::spelling::spelled;

/// The largest number of names that are offered because they are spelled similarly.
const MAX_NEAR: usize = 3;

impl Reader<'_> {
    /// Gives each clarification different choices. If its rule has none, they are the names that are spelled like the
    /// unclear part, and the measures of the question's cube. Members that the question has already are offered only if
    /// there are no others.
    pub(super) fn complete_choices(&mut self) {
        for at in 0..self.clarifications.len() {
            let one = &self.clarifications[at];
            let choices = if one.choices.is_empty() { self.default_choices(&one.text) } else { one.choices.clone() };
            self.clarifications[at].choices = self.offered(choices);
        }
    }

    fn default_choices(&self, text: &str) -> Vec<Arc<str>> {
        let near = self.near_names(text).into_iter();
        let choices: Vec<Arc<str>> = near.chain(self.choices_of(MemberKind::Measure)).collect();
        if choices.iter().any(|name| !self.is_used(name)) {
            return choices;
        }
        let own: Vec<Arc<str>> = choices.into_iter().chain(self.draft.values.clone()).collect();
        let counts = self.vocabulary.entries().filter_map(|(_, entry)| entry.count.clone());
        if own.is_empty() { counts.collect() } else { own }
    }

    /// Returns the choices without repetitions, and without members of the draft if others remain.
    fn offered(&self, choices: Vec<Arc<str>>) -> Vec<Arc<str>> {
        let mut different: Vec<Arc<str>> = Vec::new();
        for name in choices {
            if !different.contains(&name) {
                different.push(name);
            }
        }
        if different.iter().any(|name| !self.is_used(name)) {
            different.retain(|name| !self.is_used(name));
        }
        different.truncate(MAX_CHOICES);
        different
    }

    fn is_used(&self, name: &Arc<str>) -> bool {
        let draft = &self.draft;
        draft.values.contains(name)
            || draft.segments.contains(name)
            || self.is_group(name)
            || draft.filters.iter().any(|filter| filter.member == *name)
    }

    /// Returns the members whose names are spelled like the words of an unclear part, those of the main cube first.
    pub(super) fn near_names(&self, text: &str) -> Vec<Arc<str>> {
        let words = spelled(text);
        let members = words.split(' ').flat_map(|word| self.vocabulary.near(word, self.language));
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        let mut members: Vec<usize> = members.filter(|index| !is_cube(index)).collect();
        members.sort_by_key(|index| !self.is_of_main_cube(self.vocabulary.entry(*index)));
        members.dedup();
        self.names(&members).into_iter().take(MAX_NEAR).collect()
    }
}
