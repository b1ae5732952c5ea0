//! Reads shares: `share of flights by carrier` has totals, and `percentage of cancelled flights` is a rate if the
//! project has one.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Candidates, ItemKind, Reader, Role};
use crate::language::Meaning;
use crate::members::MemberKind;

impl Reader<'_> {
    /// Reads a word such as `share`. Returns the number of items read.
    pub(super) fn share(&mut self, at: usize, text: &str) -> usize {
        let (roots, end) = self.predicate(at + 1);
        let rates = if roots.is_empty() { Vec::new() } else { self.rates(&roots) };
        if !rates.is_empty() {
            let whole = self.text(at, end);
            let candidates = Candidates { members: rates, certainty: 0.9, ..Candidates::default() };
            if let Some(index) = self.pick(&whole, &candidates, Role::Value) {
                let name = Arc::clone(&self.vocabulary.entry(index).name);
                self.add_value(&name);
                self.piece(&whole, format!("measure {name}"), 0.9);
            }
            return end - at;
        }
        self.draft.totals = true;
        self.piece(text, "with totals, for the share of each row".to_owned(), 1.0)
    }

    /// Returns the roots of the words after `share of`, without the name of the cube, and the end of these words.
    fn predicate(&self, start: usize) -> (HashSet<String>, usize) {
        let mut roots = HashSet::new();
        let (mut end, mut last) = (start, start);
        while let Some(item) = self.items.get(end) {
            let is_filler = matches!(
                item.kind,
                ItemKind::Word(Meaning::Ignore | Meaning::Equals | Meaning::Verb | Meaning::HowMany)
            );
            let ItemKind::Member(candidates) = &item.kind else {
                if !is_filler {
                    break;
                }
                end += 1;
                continue;
            };
            let is_cube = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Cube;
            if !candidates.members.iter().any(is_cube) {
                let words = item.text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
                let stems = words.map(|word| self.language.stem(&word.to_lowercase()));
                roots.extend(stems.map(|stem| self.language.root(&stem)));
            }
            end += 1;
            last = end;
        }
        let of_cube = self.main_cube.as_ref().and_then(|name| self.vocabulary.index_of(name));
        if let Some(cube) = of_cube {
            roots.retain(|root| !self.vocabulary.roots(cube).contains(root));
        }
        (roots, last)
    }

    /// Returns the rates of the main cube whose names contain all roots.
    fn rates(&self, roots: &HashSet<String>) -> Vec<usize> {
        let rates = self.vocabulary.entries().filter(|(_, entry)| entry.is_share && self.is_of_main_cube(entry));
        let mut found: Vec<(usize, usize)> = rates
            .map(|(index, _)| (self.vocabulary.roots(index).len(), index))
            .filter(|(_, index)| roots.is_subset(self.vocabulary.roots(*index)))
            .collect();
        // The shortest name says nothing more than the question.
        found.sort_unstable();
        let shortest = found.first().map(|(length, _)| *length);
        found.into_iter().filter(|(length, _)| Some(*length) == shortest).map(|(_, index)| index).collect()
    }
}
