//! Checks that the measures of a question can be combined with its groups.

use std::sync::Arc;

use super::Reader;
use crate::draft::Aggregation;
use crate::members::{MemberEntry, MemberKind};

/// The certainty of a measure that replaces a measure with the same name that cannot be combined with the groups.
const CERTAINTY_OF_REPLACEMENT: f64 = 0.8;

impl Reader<'_> {
    /// Replaces a count that cannot be combined with the groups by the only other count whose name has the same word.
    /// In `which doctor saw the most patients`, that is the count of the patients of the appointments. If several
    /// remain, asks the caller.
    pub(super) fn complete_joins(&mut self) {
        let [name] = &self.draft.values[..] else { return };
        let name = Arc::clone(name);
        let Some(index) = self.vocabulary.index_of(&name) else { return };
        let entry = self.vocabulary.entry(index);
        if self.combines_groups(entry) {
            return;
        }
        let first = self.draft.groups.first().map(|group| &group.member);
        let Some(group) = first.or(self.draft.time.as_ref()).map(Arc::clone) else {
            self.count_things(&name, entry);
            return;
        };
        if entry.aggregation != Some(Aggregation::Count) {
            if entry.kind == MemberKind::Measure && !self.joins_group(entry, &group) {
                self.unclear_group(&name, index, &group);
            }
            return;
        }
        let found = self.counts_like(entry);
        let [only] = &found[..] else {
            let message = match self.draft.groups.is_empty() {
                true => format!("the time `{group}` is not one of the rows that `{name}` counts; name another measure"),
                false => format!("`{name}` cannot be grouped by `{group}`; name another measure"),
            };
            let text = self.text_of_value(&name).unwrap_or_default();
            self.unclear(&text, message, found);
            return;
        };
        self.replace_value(&name, only);
    }

    /// Replaces a count of things that cannot be combined with the conditions, as in `how many airlines fly to Miami`:
    /// the things are those of the rows that meet the conditions. Without a verb, as in `airlines in Miami`, the
    /// conditions may be about something else.
    fn count_things(&mut self, name: &Arc<str>, entry: &MemberEntry) {
        let lower = |item: &super::Item| item.text.to_lowercase();
        let is_verb = |item: &super::Item| self.is_verb(&lower(item)) || self.language.is_participle(&lower(item));
        if entry.aggregation != Some(Aggregation::Count) || !self.items.iter().any(is_verb) {
            return;
        }
        if let [only] = &self.counts_like(entry)[..] {
            self.replace_value(name, only);
        }
    }

    /// Returns the measures that can replace a count of all rows of a cube: they can be combined with the groups and
    /// conditions, and count the same things. Measures that count keys of the cube come before measures with its name.
    fn counts_like(&self, count: &MemberEntry) -> Vec<Arc<str>> {
        let cube = count.cube.as_deref().filter(|_| self.counts_all(&count.name));
        let Some(cube) = cube.and_then(|cube| self.vocabulary.cube(cube)) else { return Vec::new() };
        let measures = || {
            let entries = self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Measure);
            entries.filter(|(_, entry)| self.combines_groups(entry))
        };
        let by_key = measures().filter(|(_, entry)| entry.counts.as_ref() == Some(&cube.name));
        let by_key = self.without_variants(by_key.map(|(index, _)| index).collect());
        if !by_key.is_empty() {
            return self.names(&by_key);
        }
        let roots: Vec<String> = self.roots_of(cube);
        let is_count =
            |entry: &MemberEntry| matches!(entry.aggregation, Some(Aggregation::Count | Aggregation::CountDistinct));
        let is_named = |index: usize| roots.iter().all(|root| self.vocabulary.roots(index).contains(root));
        let named = measures().filter(|(index, entry)| is_count(entry) && is_named(*index));
        named.map(|(_, entry)| Arc::clone(&entry.name)).collect()
    }

    fn joins_group(&self, measure: &MemberEntry, group: &Arc<str>) -> bool {
        let of_group = self.vocabulary.index_of(group).and_then(|index| self.vocabulary.entry(index).cube.clone());
        let (Some(own), Some(other)) = (&measure.cube, of_group) else { return true };
        self.vocabulary.is_joined(own, &other)
    }

    /// Asks the caller for another group. The first choices are dimensions of the measure's cube with the same name.
    fn unclear_group(&mut self, name: &Arc<str>, measure: usize, group: &Arc<str>) {
        let Some(index) = self.vocabulary.index_of(group) else { return };
        let (own, other) = (self.vocabulary.entry(measure), self.vocabulary.entry(index));
        let of_cube = |entry: &&MemberEntry| entry.kind == MemberKind::Text && entry.cube == own.cube;
        let mut dimensions: Vec<&MemberEntry> =
            self.vocabulary.entries().map(|(_, entry)| entry).filter(of_cube).collect();
        dimensions.sort_by_key(|entry| !entry.shares_name(other));
        let choices = dimensions.into_iter().map(|entry| Arc::clone(&entry.name)).collect();
        let meaning = format!("grouped by {group}");
        let piece = self.pieces.iter().find(|piece| piece.meaning == meaning);
        let text = piece.map(|piece| piece.text.clone()).unwrap_or_default();
        self.unclear(&text, format!("`{name}` cannot be grouped by `{group}`"), choices);
    }

    /// Returns whether a measure can be combined with all groups and conditions. True if its joins are unknown.
    fn combines_groups(&self, entry: &MemberEntry) -> bool {
        let Some(own) = &entry.cube else { return true };
        let groups = self.draft.groups.iter().map(|group| &group.member);
        let members = groups.chain(self.draft.filters.iter().map(|filter| &filter.member)).chain(&self.draft.time);
        let cube = |name: &Arc<str>| self.vocabulary.entry(self.vocabulary.index_of(name)?).cube.clone();
        members.filter_map(cube).all(|cube| self.vocabulary.is_joined(own, &cube))
    }

    /// Returns the roots of the words in the title of a cube.
    pub(super) fn roots_of(&self, cube: &MemberEntry) -> Vec<String> {
        let title = cube.phrases.last().map(|phrase| crate::spelling::spelled(phrase)).unwrap_or_default();
        title.split(' ').map(|word| self.language.root(&self.language.stem(word))).collect()
    }

    fn text_of_value(&self, name: &Arc<str>) -> Option<String> {
        let meaning = format!("measure {name}");
        self.pieces.iter().find(|piece| piece.meaning == meaning).map(|piece| piece.text.clone())
    }

    pub(super) fn replace_value(&mut self, name: &Arc<str>, other: &Arc<str>) {
        let meaning = format!("measure {name}");
        if let Some(at) = self.pieces.iter().position(|piece| piece.meaning == meaning) {
            self.pieces[at].meaning = format!("measure {other}");
            self.pieces[at].alternatives = vec![Arc::clone(name)];
        }
        self.certainties.push(CERTAINTY_OF_REPLACEMENT);
        self.draft.values = vec![Arc::clone(other)];
        if let Some(order) = self.draft.order.as_mut().filter(|order| order.member == *name) {
            order.member = Arc::clone(other);
        }
    }
}
