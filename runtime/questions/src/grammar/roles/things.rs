//! Finds names that stand for the rows of a question, and are neither groups nor further measures:
//! `rating for classes longer than 45 minutes`, `distance of flights`.

use std::sync::Arc;

use super::{Candidates, Item, ItemKind, Reader};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;
use crate::spelling::spelled;

impl Reader<'_> {
    /// Returns whether an adjective such as `oldest` or `how old` describes the objects of a cube and not their number,
    /// as in `airlines with the oldest planes`.
    pub(super) fn is_ranked_thing(&self, candidates: &Candidates) -> bool {
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        let has_quality = self.has_quality();
        let has_groups = !self.draft.groups.is_empty() || self.draft.granularity.is_some();
        (self.state.quality.is_some() || (has_quality && has_groups)) && candidates.members.iter().any(is_cube)
    }

    /// Returns whether an adjective with a quality ranks the rows, as `oldest` does.
    pub(super) fn has_quality(&self) -> bool {
        self.state.superlative.as_ref().is_some_and(|ranking| {
            self.language.superlative(ranking.index).is_some_and(|found| !found.qualities.is_empty())
        })
    }

    /// Returns whether a member may be a group of names.
    pub(super) fn may_name_groups(&self, candidates: &Candidates) -> bool {
        candidates.members.iter().any(|index| self.vocabulary.entry(*index).kind == MemberKind::Text)
    }

    /// Returns whether all members are boolean dimensions or segments.
    pub(super) fn may_only_select(&self, candidates: &Candidates) -> bool {
        let kind = |index: &usize| self.vocabulary.entry(*index).kind;
        candidates.members.iter().all(|index| matches!(kind(index), MemberKind::Boolean | MemberKind::Segment))
    }

    /// Returns whether a measure follows a measure of another cube, as in `members cancelled` if bookings can be
    /// cancelled, and members cannot.
    pub(super) fn is_foreign_measure(&self, at: usize, index: usize) -> bool {
        let cube_of = |index: usize| self.vocabulary.entry(index).cube.as_ref();
        let last = self.draft.values.last().and_then(|name| self.vocabulary.index_of(name));
        let counted = self.state.cube.filter(|_| self.draft.values.is_empty());
        let other = last.or(counted).and_then(cube_of);
        let is_other = other.is_some_and(|other| cube_of(index).is_some_and(|own| own != other));
        is_other && (!self.is_listed(at) || self.is_side(at))
    }

    /// Returns whether the name of single rows is the side of a comparison, as in `return rate of online sales versus shop
    /// sales`. It is not a number of rows.
    fn is_side(&self, at: usize) -> bool {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item)).map(|item| &item.kind);
        let ItemKind::Member(candidates) = &self.items[at].kind else { return false };
        matches!(before, Some(ItemKind::Word(Meaning::Versus)))
            && !self.items[at].is_plural
            && self.names_rows(candidates)
    }

    /// Returns whether a word such as `their` makes a name the object of a verb, as in
    /// `members cancelled their membership`. In `members and their city`, it is listed.
    pub(super) fn is_owned(&self, at: usize) -> bool {
        let Some([before, owner]) = at.checked_sub(2).map(|start| &self.items[start..at]) else { return false };
        let is_owner = self.language.has(WordList::Possessives, &owner.text.to_lowercase());
        let is_verb = matches!(before.kind, ItemKind::Member(_) | ItemKind::Unknown | ItemKind::Word(Meaning::Verb));
        is_owner && is_verb
    }

    /// Returns whether a name only stands for the rows with the number that is compared behind it, as in
    /// `average rating for classes longer than 45 minutes`: without a word such as `by`, it is not a group.
    pub(super) fn is_compared_thing(&self, at: usize, candidates: &Candidates) -> bool {
        use Meaning::{AtLeast, AtMost, Equals, Ignore, Less, More, Verb};
        let is_text = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Text;
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Ignore | Verb | Equals));
        let mut behind = self.items[at + 1..].iter().skip_while(is_filler).map(|item| &item.kind);
        let compares = matches!(behind.next(), Some(ItemKind::Word(More | Less | AtLeast | AtMost)));
        let is_compared = compares && matches!(behind.next(), Some(ItemKind::Number(..)));
        let is_plain = !self.is_listed(at) && !self.draft.values.is_empty();
        is_compared && is_plain && !self.compares_next_member(at) && candidates.members.iter().all(is_text)
    }

    /// Returns whether a dimension belongs to the name of the measure directly before it, because the measure has a
    /// condition on it: `abnormal results` are counted by the measure of the abnormal tests.
    pub(super) fn is_part_of_measure(&self, at: usize, dimension: &Arc<str>) -> bool {
        let (Some(before), Some(value)) = (at.checked_sub(1), self.draft.values.last()) else { return false };
        let Some(index) = self.vocabulary.index_of(value) else { return false };
        let words = spelled(&self.items[before].text);
        let roots: Vec<String> = words.split(' ').map(|word| self.language.root(&self.language.stem(word))).collect();
        let entry = self.vocabulary.entry(index);
        let part = entry.ratio.as_ref().and_then(|(part, _)| self.vocabulary.index_of(part));
        let of_part = part.map(|part| &self.vocabulary.entry(part).filtered_by);
        let is_filtered = entry.filtered_by.contains(dimension) || of_part.is_some_and(|own| own.contains(dimension));
        is_filtered && self.vocabulary.shared_roots(index, roots.iter().map(String::as_str)) > 0
    }

    /// Asks the caller about a measure behind another one without a word such as `and`. Returns the number of items
    /// read.
    pub(super) fn unlisted_measure(&mut self, text: &str, name: &Arc<str>) -> usize {
        let message = format!("measure `{name}` follows another measure; write `and` between them");
        self.unclear(text, message, Vec::new());
        1
    }

    /// Returns whether a member only repeats the cube of a measure that is already selected, as in
    /// `distance of flights`.
    pub(super) fn is_context(&self, at: usize, candidates: &Candidates) -> bool {
        let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
        let has_measure = !self.draft.values.is_empty() || !self.state.conditions_of_values.is_empty();
        let is_grouped = |index: &usize| self.is_group(&self.vocabulary.entry(*index).name);
        // `by manufacturer, only manufacturers with at least 20 planes`
        let repeats_group = candidates.members.iter().any(is_grouped) && self.compares_next_member(at);
        // In `customers returned products`, the first word is a verb and does not repeat the customers.
        let cubes: Vec<_> = self.draft.values.iter().map(|name| name.split('.').next()).collect();
        let is_own = |index: &usize| cubes.contains(&self.vocabulary.entry(*index).cube.as_deref());
        let is_named = candidates.certainty >= 1.0 || candidates.members.iter().any(is_own);
        repeats_group || (candidates.members.iter().any(is_cube) && has_measure && is_named && !self.is_listed(at))
    }

    /// Returns whether a measure describes another measure before it, as in `delay by carrier of late flights`.
    pub(super) fn belongs_to_measure(&self, at: usize) -> bool {
        !self.draft.values.is_empty() && !self.draft.groups.is_empty() && !self.is_listed(at)
    }

    /// Asks the caller about a name that follows no word such as `by`, if the question has other groups and a condition
    /// on a number. An example is `classes` in `classes rated 2 stars or less by trainer`: the name may stand for the
    /// rows.
    pub(super) fn check_bare_groups(&mut self) {
        let kind = |name: &Arc<str>| Some(self.vocabulary.entry(self.vocabulary.index_of(name)?).kind);
        let has_condition = |is_meant: fn(MemberKind) -> bool| {
            self.draft.filters.iter().any(|filter| kind(&filter.member).is_some_and(is_meant))
        };
        let on_rows = has_condition(|kind| kind == MemberKind::Number);
        // `hours with wind over 25 mph by month` counts hours.
        let on_values = has_condition(MemberKind::is_value);
        let groups = self.draft.groups.len() + usize::from(self.draft.granularity.is_some());
        let mut bare = std::mem::take(&mut self.state.bare_groups);
        bare.retain(|(name, _)| on_rows || (on_values && kind(name) == Some(MemberKind::Time)));
        if groups <= bare.len() {
            return;
        }
        for (name, text) in bare {
            let message = format!("`{text}` may be a group or the rows; write `by {text}` or name a measure");
            self.unclear(&text, message, vec![name]);
        }
    }
}
