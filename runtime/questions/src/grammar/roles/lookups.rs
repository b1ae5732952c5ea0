//! Collects the words of a question that may be values.

use super::particles;
use crate::draft::Lookup;
use crate::grammar::codes;
use crate::grammar::items::{Item, ItemKind};
use crate::grammar::values::spellings;
use crate::language::{Language, Meaning, WordList};
use crate::members::{MemberKind, Vocabulary};
use crate::spelling::fragments;

/// Returns the words to look up as values: runs of words that may be a name, each with its single words.
pub(super) fn lookups(items: &[Item], vocabulary: &Vocabulary, language: &Language) -> Vec<Lookup> {
    let mut runs: Vec<Vec<&Item>> = vec![Vec::new()];
    for (at, item) in items.iter().enumerate() {
        let is_part = match &item.kind {
            ItemKind::Unknown | ItemKind::Quoted => true,
            ItemKind::Member(_) if item.text.contains(' ') => false,
            ItemKind::Member(candidates) => candidates.certainty < 1.0 || may_be_value(items, at),
            // The word may be a value rather than a word with a typing mistake.
            _ => item.is_corrected && !item.text.contains(' '),
        };
        match runs.last_mut() {
            Some(run) if is_part => run.push(item),
            Some(run) if !run.is_empty() => runs.push(Vec::new()),
            _ => {}
        }
    }
    let runs = runs.into_iter().filter(|run| !run.is_empty());
    runs.map(|run| {
        let words: Vec<&str> = run.iter().map(|item| &*item.text).collect();
        let parts = if words.len() > 1 {
            words.iter().flat_map(|word| spellings(word, language)).collect()
        } else {
            Vec::new()
        };
        let is_unknown = |item: &&&Item| match &item.kind {
            ItemKind::Word(_) | ItemKind::Superlative(..) => false,
            ItemKind::Member(candidates) => candidates.certainty < 1.0,
            _ => true,
        };
        let unknown = run.iter().filter(is_unknown);
        let fragments = unknown.flat_map(|item| fragments(&item.text)).collect();
        Lookup { spellings: spellings(&words.join(" "), language), parts, fragments, ..Lookup::default() }
    })
    .chain(particles::lookups(items, language))
    .chain(lacks(items, language))
    .chain(whole_values(items, vocabulary))
    .collect()
}

/// Returns the words of the language that may be whole values, such as `AS` and `IT`.
fn whole_values<'i>(items: &'i [Item], vocabulary: &'i Vocabulary) -> impl Iterator<Item = Lookup> + 'i {
    let is_text = move |index: &usize| vocabulary.entry(*index).kind == MemberKind::Text;
    let is_dimension =
        move |item: &Item| matches!(&item.kind, ItemKind::Member(found) if found.members.iter().any(is_text));
    let found = (0..items.len()).map(move |at| codes::spellings(items, at, is_dimension));
    found.filter(|whole| !whole.is_empty()).map(|whole| Lookup { whole, ..Lookup::default() })
}

/// Returns the names behind a word such as `without`. A value such as `Uninsured` may mean their absence.
fn lacks(items: &[Item], language: &Language) -> impl Iterator<Item = Lookup> {
    let is_filler = |item: &Item| item.kind == ItemKind::Word(Meaning::Ignore);
    let is_lack = |item: &Item| {
        item.kind == ItemKind::Word(Meaning::Not) && language.has(WordList::Lack, &item.text.to_lowercase())
    };
    let places = (0..items.len()).filter(move |at| is_lack(&items[*at]));
    let named = places.filter_map(move |at| items[at + 1..].iter().find(|item| !is_filler(item)));
    named.filter(|item| matches!(item.kind, ItemKind::Member(_)) && !item.text.contains(' ')).map(move |item| {
        let root = language.root(&language.stem(&item.text.to_lowercase()));
        let none = language.words(WordList::LackOfValue).iter().find(|word| word.chars().count() >= MIN_LACK_CHARS);
        Lookup { spellings: [root].into_iter().chain(none.cloned()).collect(), ..Lookup::default() }
    })
}

/// The minimum length of a word behind `without` that is looked up. Shorter words are parts of many values.
const MIN_LACK_CHARS: usize = 4;

/// Returns whether the name at a place may be a value: after a verb with `by`, as in `paid by patients`, and after a
/// negation, as in `not completed`.
fn may_be_value(items: &[Item], at: usize) -> bool {
    let is_filler = |item: &&Item| item.kind == ItemKind::Word(Meaning::Ignore);
    let before = items[..at].iter().rev().find(|item| !is_filler(item));
    let is_excluded = before.is_some_and(|item| item.kind == ItemKind::Word(Meaning::Not));
    let is_agent = matches!(&items[..at], [.., verb, by]
        if verb.kind == ItemKind::Word(Meaning::Verb) && by.kind == ItemKind::Word(Meaning::Group));
    is_excluded || is_agent
}
