//! Reads names that the subject of a question divides: `how many seats did Southwest fly` for the measure `seats flown`.

use std::sync::Arc;

use super::{Item, ItemKind, Reader};
use crate::language::{Meaning, WordList};
use crate::members::{MemberEntry, MemberKind};
use crate::spelling::spelled;

/// The certainty of a measure whose name is divided.
const CERTAINTY_OF_DIVIDED: f64 = 0.8;

impl Reader<'_> {
    /// Reads a name between `how many` and an auxiliary verb such as `did`, if a measure has this name with the verb
    /// behind the subject. Returns the number of items read.
    pub(super) fn divided_name(&mut self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1).map(|before| &self.items[before].kind);
        let asks = matches!(before, Some(ItemKind::Word(Meaning::HowMany | Meaning::HowMuch)));
        let next = self.items.get(at + 1).filter(|_| asks)?;
        let is_divided = self.language.has(WordList::Auxiliaries, &next.text.to_lowercase());
        let item = self.items[at].clone();
        let is_name = match &item.kind {
            ItemKind::Member(found) => found.members.iter().all(|index| {
                let kind = self.vocabulary.entry(*index).kind;
                matches!(kind, MemberKind::Number | MemberKind::Measure | MemberKind::Metric)
            }),
            ItemKind::Unknown => true,
            _ => false,
        };
        let verb = self.verb_of_clause(at + 2).filter(|_| is_divided && is_name)?;
        let root = |word: &str| self.language.root(&self.language.stem(&word.to_lowercase()));
        let words: Vec<String> = spelled(&item.text).split(' ').map(root).collect();
        let verbs = self.roots_of_verb(&verb);
        let is_named = |index: usize| {
            let own = self.vocabulary.roots(index);
            words.iter().all(|word| own.contains(word)) && verbs.iter().any(|verb| own.contains(verb))
        };
        let is_measure = |entry: &MemberEntry| matches!(entry.kind, MemberKind::Measure | MemberKind::Metric);
        let is_near = |entry: &MemberEntry| {
            self.main_cube.is_none() || self.is_of_main_cube(entry) || self.joins_main(entry) || self.is_reached(entry)
        };
        let found = self
            .vocabulary
            .entries()
            .filter(|(index, entry)| is_measure(entry) && !entry.is_share && is_near(entry) && is_named(*index));
        let found = self.without_variants(found.map(|(index, _)| index).collect());
        let [only] = found[..] else { return None };
        let entry = self.vocabulary.entry(only);
        let name = Arc::clone(&entry.name);
        self.main_cube = entry.cube.clone().or_else(|| self.main_cube.clone());
        self.add_value(&name);
        self.piece(&format!("{} … {verb}", item.text), format!("measure {name}"), CERTAINTY_OF_DIVIDED);
        Some(1)
    }

    /// Returns the first verb behind a place, before a word such as `and`.
    fn verb_of_clause(&self, start: usize) -> Option<String> {
        let is_end = |item: &&Item| !matches!(item.kind, ItemKind::Word(Meaning::And));
        let mut clause = self.items.get(start..)?.iter().take_while(is_end);
        clause.find(|item| item.kind == ItemKind::Word(Meaning::Verb)).map(|item| item.text.clone())
    }
}
