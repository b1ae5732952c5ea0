//! Asks the caller about verbs for events of cubes other than the counted one: `how many customers ordered in May`.
//!
//! An event of a customer, such as an order, is a row of a cube that joins the customers. A time of the cube
//! `customers` is another kind of event, as in `customers registered in May`. If the verb were ignored, the answer
//! would be the number of all customers, or of the customers registered in May.

use std::sync::Arc;

use super::{Item, ItemKind, Reader};
use crate::draft::Aggregation;
use crate::language::{Meaning, WordList};
use crate::members::{MemberEntry, MemberKind};

impl Reader<'_> {
    /// Asks the caller for a measure if the question only counts the rows of one cube and has a verb for an event of
    /// another cube.
    pub(super) fn check_events(&mut self) {
        let [name] = &self.draft.values[..] else { return };
        let Some(cube) = name.split('.').next().filter(|_| self.counts_all(name)) else { return };
        let (cube, joining) = (cube.to_owned(), self.counts_of_joining(cube));
        let has_conditions = !self.draft.filters.is_empty() || !self.draft.segments.is_empty();
        let is_timed = !self.state.ranges.is_empty();
        let is_event = self.vocabulary.cube(&cube).is_some_and(|cube| cube.joined.len() > 1);
        let of_groups = self.draft.groups.iter().map(|group| group.member.split('.').next());
        let has_other_groups = of_groups.into_iter().any(|group| group != Some(&*cube));
        if joining.is_empty()
            || is_event
            || has_other_groups
            || self.draft.time.is_some()
            || (has_conditions && !is_timed)
        {
            return;
        }
        let Some(verb) = self.event(&cube) else { return };
        if let Some(measure) = self.measure_of_event(&cube, &verb) {
            self.replace_value(&Arc::clone(&self.draft.values[0]), &measure);
            return;
        }
        let message = format!("`{verb}` is not an event of `{cube}`; name a measure of the rows that are meant");
        self.unclear(&verb, message, joining);
    }

    /// Returns the only measure of a joining cube with the name of the counted rows and the verb in its names, as in
    /// `how many bikes did Anna sell` for `bikes sold`.
    fn measure_of_event(&self, cube: &str, verb: &str) -> Option<Arc<str>> {
        let (title, verbs) = (self.roots_of(self.vocabulary.cube(cube)?), self.roots_of_verb(verb));
        let is_named = |index: usize| {
            let roots = self.vocabulary.roots(index);
            title.iter().all(|root| roots.contains(root)) && verbs.iter().any(|root| roots.contains(root))
        };
        let adds_up = |entry: &MemberEntry| {
            use Aggregation::{Count, CountDistinct, Sum};
            matches!(entry.aggregation, Some(Count | CountDistinct | Sum))
        };
        let joins = |entry: &MemberEntry| {
            let own = entry.cube.as_deref().filter(|own| *own != cube);
            own.is_some_and(|own| self.vocabulary.is_joined(own, cube))
        };
        let mut found =
            self.vocabulary.entries().filter(|(index, entry)| joins(entry) && adds_up(entry) && is_named(*index));
        let (Some((_, only)), None) = (found.next(), found.next()) else { return None };
        Some(Arc::clone(&only.name))
    }

    /// Returns the cubes with counted rows that join the main cube.
    pub(super) fn joining_cubes(&self) -> Vec<Arc<str>> {
        let Some(main) = &self.main_cube else { return Vec::new() };
        let cubes = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == MemberKind::Cube);
        let joins = |entry: &&MemberEntry| {
            entry.count.is_some() && entry.name != *main && entry.joined.iter().any(|joined| joined == main)
        };
        cubes.filter(joins).map(|entry| Arc::clone(&entry.name)).collect()
    }

    /// Returns the counts of the cubes that join a cube.
    pub(super) fn counts_of_joining(&self, cube: &str) -> Vec<Arc<str>> {
        let is_joining = |name: &str, joined: &[Arc<str>]| name != cube && joined.iter().any(|one| **one == *cube);
        let cubes = self.vocabulary.entries().map(|(_, entry)| entry).filter(|entry| entry.kind == MemberKind::Cube);
        cubes.filter(|entry| is_joining(&entry.name, &entry.joined)).filter_map(|entry| entry.count.clone()).collect()
    }

    /// Returns the verb for an event. Verbs for states and verbs with an agent, as in `built by Boeing`, are not
    /// events.
    fn event(&self, cube: &str) -> Option<String> {
        let is_event = |(at, item): &(usize, &Item)| {
            let is_agent =
                matches!(self.items.get(at + 1).map(|next| &next.kind), Some(ItemKind::Word(Meaning::Group)));
            let lower = item.text.to_lowercase();
            let is_time = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Time;
            let is_verb = match &item.kind {
                ItemKind::Word(meaning) => *meaning == Meaning::Verb,
                ItemKind::Member(found) => found.members.iter().all(is_time) && self.is_verb(&lower),
                _ => false,
            };
            is_verb
                && !is_agent
                && !self.language.has(WordList::States, &lower)
                && self.language.compared_verb(&lower).is_none()
                && !self.is_own_event(cube, &lower)
        };
        self.items.iter().enumerate().find(is_event).map(|(_, item)| item.text.clone())
    }

    /// Returns whether a name or a description in a cube has the root of a verb.
    fn is_own_event(&self, cube: &str, verb: &str) -> bool {
        let root = self.language.root(&self.language.stem(verb));
        let is_own = |(index, entry): (usize, &MemberEntry)| {
            entry.cube.as_deref() == Some(cube) && self.vocabulary.roots(index).contains(&root)
        };
        self.vocabulary.entries().any(is_own)
    }
}
