//! Reads dimensions behind words such as `with a`: `orders with a voucher` are the rows that have a value.

use std::sync::Arc;

use super::{Candidates, ItemKind, Reader};
use crate::language::{Meaning, WordList};
use crate::members::MemberKind;

impl Reader<'_> {
    /// Reads a dimension of text in the singular behind words such as `with a`. Returns the number of items read,
    /// or `None` for other names.
    pub(super) fn presence(&mut self, at: usize, candidates: &Candidates) -> Option<usize> {
        let is_busy = self.state.groups || self.state.is_which || self.state.sorts || self.state.is_negated;
        if is_busy || self.items[at].is_plural || !self.follows_presence(at) {
            return None;
        }
        let is_kind = |index: &usize| self.vocabulary.entry(*index).kind == MemberKind::Text;
        let is_own = |index: &usize| self.is_of_main_cube(self.vocabulary.entry(*index));
        let own: Vec<usize> = candidates.members.iter().copied().filter(is_own).collect();
        let [only] = own[..] else { return None };
        // A word that continues the condition, as in `with a status of paid`.
        let next = self.items.get(at + 1).map(|item| &item.kind);
        let is_end = matches!(next, None | Some(ItemKind::Word(Meaning::And | Meaning::Group) | ItemKind::Time(_)))
            || matches!(next, Some(ItemKind::Step(..)));
        if !candidates.members.iter().all(is_kind) || !is_end {
            return None;
        }
        let name = Arc::clone(&self.vocabulary.entry(only).name);
        self.filter(&name, "set", Vec::new());
        let text = self.items[at].text.clone();
        Some(self.piece(&text, format!("only rows where {name} is not missing"), candidates.certainty))
    }

    /// Returns whether the words directly before a place state that something is present.
    fn follows_presence(&self, at: usize) -> bool {
        (1..=2).any(|count| {
            let words = at.checked_sub(count).map(|start| self.text(start, at).to_lowercase());
            words.is_some_and(|words| self.language.has(WordList::Presence, &words))
        })
    }
}
