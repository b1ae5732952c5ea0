//! Reads lists of values: `JFK or EWR`, `neither JFK nor EWR`, `Boeing planes versus Airbus planes`.

use super::{Item, ItemKind, Reader};
use crate::language::{Meaning, WordList};
use crate::members::KnownValue;

/// A list of values.
pub(super) struct ValueList {
    /// The values that each item of the list may mean.
    pub(super) sets: Vec<Vec<KnownValue>>,
    /// The index of the item after each value.
    pub(super) ends: Vec<usize>,
    /// For each value but the first: true if it has a row of its own, as after `and` with the words before the first
    /// value.
    pub(super) repeats: Vec<bool>,
    /// True if the list compares values, as in `UA vs DL`.
    pub(super) is_compared: bool,
}

impl Reader<'_> {
    /// Returns the values of a list that begins at a place: items between `and`, `or`, commas or `vs`. The words before
    /// the first value may be repeated, as in `in rain or in fog`.
    pub(super) fn list(&self, at: usize, first: &[KnownValue]) -> ValueList {
        let mut list =
            ValueList { sets: vec![first.to_vec()], ends: vec![at + 1], repeats: Vec::new(), is_compared: false };
        let mut end = at + 1;
        while let Some(Item {
            text,
            kind: ItemKind::Word(joiner @ (Meaning::And | Meaning::Versus | Meaning::Nor)),
            ..
        }) = self.items.get(end + self.repeated_noun(end))
        {
            end += self.repeated_noun(end);
            let is_or = self.language.has(WordList::Or, &text.to_lowercase());
            let fillers = match self.repeated(at, end + 1) {
                0 if is_or => self.preposition(first, end + 1),
                fillers => fillers,
            };
            let Some(ItemKind::Value(next)) = self.items.get(end + 1 + fillers).map(|item| &item.kind) else { break };
            if *joiner == Meaning::Nor && !self.follows_neither(end) {
                break;
            }
            list.sets.push(next.clone());
            list.is_compared |= *joiner == Meaning::Versus;
            // `Are more flights late in rain or in fog?` compares the two.
            let is_choice = is_or && matches!(self.items[0].kind, ItemKind::Word(Meaning::Equals));
            list.repeats.push(*joiner == Meaning::And && (is_choice || (fillers > 0 && !is_or)));
            end += fillers + 2;
            list.ends.push(end);
        }
        list
    }

    /// Returns 1 if the item at a place is a name that follows both of two values, as in `Boeing planes versus Embraer
    /// planes`. Returns 0 otherwise.
    pub(super) fn repeated_noun(&self, at: usize) -> usize {
        let Some([noun, joiner, value, again]) = self.items.get(at..at + 4) else { return 0 };
        let is_noun = |item: &Item| matches!(item.kind, ItemKind::Member(_) | ItemKind::Unknown);
        let joins = matches!(joiner.kind, ItemKind::Word(Meaning::And | Meaning::Versus | Meaning::Nor));
        let is_same = noun.text.eq_ignore_ascii_case(&again.text) && is_noun(noun) && is_noun(again);
        usize::from(is_same && joins && matches!(value.kind, ItemKind::Value(_)))
    }

    /// Reads a word such as `nor`. Returns the number of items read.
    pub(super) fn nor(&mut self, at: usize, text: &str) -> usize {
        if !self.follows_neither(at) {
            return self.value_alone(at, text);
        }
        self.state.is_negated = true;
        self.state.negation = text.to_owned();
        1
    }

    /// Returns whether a word such as `neither` is before a place.
    pub(super) fn follows_neither(&self, at: usize) -> bool {
        self.items[..at].iter().any(|item| self.language.has(WordList::Neither, &item.text.to_lowercase()))
    }

    /// Returns the number of prepositions at a place before another value of the same dimension, as in `online or by
    /// phone`.
    pub(super) fn preposition(&self, first: &[KnownValue], at: usize) -> usize {
        let is_filler = |item: &Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::Group));
        let Some([preposition, Item { kind: ItemKind::Value(next), .. }]) = self.items.get(at..at + 2) else {
            return 0;
        };
        let is_shared = next.iter().any(|known| first.iter().any(|other| other.member == known.member));
        usize::from(is_filler(preposition) && is_shared)
    }

    /// Returns the number of words at a place that repeat the words before the first value of a list.
    pub(super) fn repeated(&self, first: usize, at: usize) -> usize {
        let is_filler =
            |item: &&Item| matches!(item.kind, ItemKind::Word(Meaning::Ignore | Meaning::From | Meaning::To));
        let count = self.items[at..].iter().take_while(is_filler).count();
        let Some(start) = first.checked_sub(count) else { return 0 };
        let is_same = |(one, other): (&Item, &Item)| one.text.eq_ignore_ascii_case(&other.text);
        if self.items[start..first].iter().zip(&self.items[at..at + count]).all(is_same) { count } else { 0 }
    }
}
