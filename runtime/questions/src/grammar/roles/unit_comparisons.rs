//! Compares a number with a unit with the numeric dimension that has this unit, as in `over 2000 miles` and
//! `took more than 3 days`.

use super::{Candidates, DraftValue, Item, ItemKind, Reader, Role};
use crate::draft::{Desired, Unit};
use crate::language::Meaning;
use crate::members::{MemberEntry, MemberKind};
use crate::spelling::spelled;

/// The number of items before a number that may choose its member.
const MAX_CONTEXT: usize = 3;
/// The certainty of a duration that only its unit names.
const CERTAINTY_OF_DURATION: f64 = 0.7;

impl Reader<'_> {
    /// Compares the numeric dimension that has a unit. The words around the number choose between
    /// several, as in `left more than 2 hours late`. Returns the number of items read, or `None` if no dimension fits.
    pub(super) fn compare_unit(
        &mut self,
        (at, end): (usize, usize),
        meaning: Meaning,
        values: &[(DraftValue, Option<Unit>)],
        unit: &Unit,
    ) -> Option<usize> {
        let members = self.with_rate_unit(self.numbers_in(at, unit), end);
        if members.is_empty() {
            return None;
        }
        if let Some(length) = self.other_measure((at, end), &members, unit) {
            return Some(length);
        }
        let is_duration = unit.seconds().is_some() && self.is_duration_verb(at);
        let is_open = is_duration && !self.is_any_named(&members, (at, end + MAX_CONTEXT));
        if is_open && let Some(length) = self.unclear_duration((at, end), &members) {
            return Some(length);
        }
        let certainty = if is_open { CERTAINTY_OF_DURATION } else { 1.0 };
        let roots_of = |item: &Item| {
            let words = spelled(&item.text);
            words.split(' ').map(|word| self.language.root(&self.language.stem(word))).collect::<Vec<String>>()
        };
        // `more than 5 days to deliver`
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::To));
        let skipped = |end: usize| end + self.items[end..].iter().take_while(is_filler).count();
        // The next two words that are no fillers, as in `late at departure`.
        let next = skipped(end);
        let after_next = skipped((next + 1).min(self.items.len()));
        let around = at.saturating_sub(MAX_CONTEXT)..(after_next + 1).min(self.items.len());
        // The unit of the number names no member.
        let is_word = |item: &&Item| !matches!(item.kind, ItemKind::Number(..));
        let roots: Vec<String> = self.items[around].iter().filter(is_word).flat_map(roots_of).collect();
        let shared = |index: &usize| self.vocabulary.shared_roots(*index, roots.iter().map(String::as_str));
        let most = members.iter().map(shared).max().unwrap_or(0);
        let members: Vec<usize> = members.iter().copied().filter(|index| shared(index) == most).collect();
        let is_used = |item: &&Item| {
            let is_own =
                |index: &usize| self.vocabulary.shared_roots(*index, roots_of(item).iter().map(String::as_str)) > 0;
            matches!(item.kind, ItemKind::Member(_) | ItemKind::Unknown) && members.iter().all(is_own)
        };
        let mut end = end;
        for place in [next, after_next] {
            if self.items.get(place).is_some_and(|item| is_used(&item)) && skipped(end) == place {
                end = place + 1;
            }
        }
        let whole = self.text(at, end);
        let candidates = Candidates { members, certainty: 1.0, ..Candidates::default() };
        if let Some(index) = self.pick(&whole, &candidates, Role::Operand) {
            self.compare((at, end), index, Some(meaning), false, values, certainty);
        }
        Some(end - at)
    }

    /// Asks the caller about a number with a unit that may belong to a measure: in `stays longer than a week`, the
    /// measure of the stays has another number, and in `average price by category above 800 euros`, the average has
    /// the same unit. Returns the number of items read.
    fn other_measure(&mut self, (at, end): (usize, usize), members: &[usize], unit: &Unit) -> Option<usize> {
        let is_filler = |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore));
        let before = self.items[..at].iter().rev().find(|item| !is_filler(item))?;
        let ItemKind::Member(candidates) = &before.kind else { return None };
        let entries = || candidates.members.iter().map(|index| self.vocabulary.entry(*index));
        let is_other = |entry: &MemberEntry| {
            let combined = entry.combines.as_ref().and_then(|name| self.vocabulary.index_of(name));
            entry.kind == MemberKind::Measure && combined.is_some_and(|number| !members.contains(&number))
        };
        let of_other = candidates.certainty < 1.0 && entries().all(is_other);
        let is_group = entries().any(|entry| self.is_group(&entry.name));
        let values = self.draft.values.iter().filter_map(|name| self.vocabulary.index_of(name));
        let of_unit: Vec<usize> = values.filter(|index| self.has_unit(*index, unit)).collect();
        if !(of_other || (is_group && !of_unit.is_empty())) {
            return None;
        }
        let whole = self.text(at, end);
        let choices = self.names(&[of_unit, members.to_vec()].concat());
        self.unclear(&whole, format!("`{whole}` may compare a measure or a number of each row"), choices);
        Some(end - at)
    }

    /// Returns the numeric dimensions with a unit: those of the main cube, or else those of the cubes that it joins.
    /// `to airports above 5000 feet` is about the destination.
    fn numbers_in(&self, at: usize, unit: &Unit) -> Vec<usize> {
        let numbers = |is_near: &dyn Fn(&MemberEntry) -> bool| -> Vec<usize> {
            let numbers = self.vocabulary.entries().filter(|(_, entry)| entry.kind == MemberKind::Number);
            let near = numbers.filter(|(_, entry)| is_near(entry)).map(|(index, _)| index);
            near.filter(|index| self.has_unit(*index, unit)).collect()
        };
        let own = numbers(&|entry| self.is_of_main_cube(entry));
        if !own.is_empty() || self.main_cube.is_none() {
            return own;
        }
        let joined = numbers(&|entry| self.is_reached(entry));
        let is_name =
            |place: &usize| matches!(self.items[*place].kind, ItemKind::Member(_) | ItemKind::Word(Meaning::Verb));
        let name = (0..at).rev().take_while(is_name).last().unwrap_or(at);
        let Some(wanted) = self.direction_before(name) else { return joined };
        let is_wanted = |index: &usize| self.vocabulary.direction(&self.vocabulary.entry(*index).name) == Some(wanted);
        let directed: Vec<usize> = joined.iter().copied().filter(is_wanted).collect();
        if directed.is_empty() { joined } else { directed }
    }

    /// Returns whether the comparison at a place follows a verb for a duration, such as `took`.
    fn is_duration_verb(&self, at: usize) -> bool {
        let verb = at.checked_sub(1).map(|at| self.items[at].text.to_lowercase());
        verb.is_some_and(|verb| self.language.compared_verb(&verb).is_some())
    }

    /// Returns whether the words around a comparison name one of the members. The name of their cube does not count.
    fn is_any_named(&self, members: &[usize], (at, end): (usize, usize)) -> bool {
        let is_cube = |item: &&Item| {
            let ItemKind::Member(found) = &item.kind else { return false };
            found.members.iter().any(|index| self.vocabulary.entry(*index).kind == MemberKind::Cube)
        };
        let around = &self.items[at.saturating_sub(MAX_CONTEXT)..end.min(self.items.len())];
        let is_number = |item: &&Item| matches!(item.kind, ItemKind::Number(..));
        let named = around.iter().filter(|item| !is_cube(item) && !is_number(item)).map(|item| spelled(&item.text));
        let words = named.flat_map(|words| words.split(' ').map(str::to_owned).collect::<Vec<String>>());
        let roots: Vec<String> = words.map(|word| self.language.root(&self.language.stem(&word))).collect();
        members.iter().any(|index| self.vocabulary.shared_roots(*index, roots.iter().map(String::as_str)) > 0)
    }

    /// Asks the caller which length of time a verb such as `took` means: if there are several, or if the only one is a
    /// delay. Returns the number of items read.
    fn unclear_duration(&mut self, (at, end): (usize, usize), members: &[usize]) -> Option<usize> {
        if let [only] = members
            && self.vocabulary.desired(*only, self.language) != Some(Desired::Low)
        {
            return None;
        }
        let whole = self.text(at - 1, end);
        let choices = self.names(members);
        self.unclear(&whole, format!("`{whole}` names no length of time"), choices);
        Some(end - at)
    }
}
