//! Checks that the measures of a question can be combined with its groups.

use std::sync::Arc;

use super::Reader;
use crate::draft::Aggregation;
use crate::members::{MemberEntry, MemberKind};

/// The certainty of a measure that replaces an equally named measure, because that cannot be combined with the groups.
const CERTAINTY_OF_REPLACEMENT: f64 = 0.8;

impl Reader<'_> {
    /// Replaces a count that cannot be combined with the groups by the only other count whose name has the same word.
    /// In `which doctor saw the most patients`, that is the count of the patients of the appointments. If several
    /// remain, asks the caller.
    pub(super) fn complete_joins(&mut self) {
        let Some(group) = self.draft.groups.first().map(|group| Arc::clone(&group.member)) else { return };
        let [name] = &self.draft.values[..] else { return };
        let name = Arc::clone(name);
        let Some(index) = self.vocabulary.index_of(&name) else { return };
        let entry = self.vocabulary.entry(index);
        if self.combines_groups(entry) || entry.aggregation != Some(Aggregation::Count) {
            return;
        }
        let Some(cube) = entry.cube.as_deref().and_then(|cube| self.vocabulary.cube(cube)) else { return };
        let roots: Vec<String> = self.roots_of(cube);
        let is_count =
            |entry: &MemberEntry| matches!(entry.aggregation, Some(Aggregation::Count | Aggregation::CountDistinct));
        let found = self.vocabulary.entries().filter(|(index, entry)| {
            let is_named = roots.iter().all(|root| self.vocabulary.roots(*index).contains(root));
            entry.kind == MemberKind::Measure && is_count(entry) && is_named && self.combines_groups(entry)
        });
        let found: Vec<Arc<str>> = found.map(|(_, entry)| Arc::clone(&entry.name)).collect();
        let [only] = &found[..] else {
            let message = format!("`{name}` cannot be grouped by `{group}`; name another measure");
            let text = self.text_of_value(&name).unwrap_or_default();
            self.unclear(&text, message, found);
            return;
        };
        self.replace_value(&name, only);
    }

    /// Returns whether a measure can be combined with all groups and conditions. Unknown joins can.
    fn combines_groups(&self, entry: &MemberEntry) -> bool {
        let Some(own) = &entry.cube else { return true };
        let groups = self.draft.groups.iter().map(|group| &group.member);
        let members = groups.chain(self.draft.filters.iter().map(|filter| &filter.member));
        let cube = |name: &Arc<str>| self.vocabulary.entry(self.vocabulary.index_of(name)?).cube.clone();
        members.filter_map(cube).all(|cube| self.vocabulary.is_joined(own, &cube))
    }

    /// Returns the roots of the words in the title of a cube.
    fn roots_of(&self, cube: &MemberEntry) -> Vec<String> {
        let title = cube.phrases.last().map(|phrase| crate::spelling::spelled(phrase)).unwrap_or_default();
        title.split(' ').map(|word| self.language.root(&self.language.stem(word))).collect()
    }

    fn text_of_value(&self, name: &Arc<str>) -> Option<String> {
        let meaning = format!("measure {name}");
        self.pieces.iter().find(|piece| piece.meaning == meaning).map(|piece| piece.text.clone())
    }

    fn replace_value(&mut self, name: &Arc<str>, other: &Arc<str>) {
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
