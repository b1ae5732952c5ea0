//! Finds verbs with particles, such as `took off` and `dropped off`, which do not mean the verb alone.
//!
//! If a name or a value contains the words of such a verb, it was found before. In other cases the caller is asked,
//! because neither the verb nor the particle can be ignored.

use super::{Item, ItemKind, Reader};
use crate::draft::Lookup;
use crate::language::{Language, Meaning, WordList};
use crate::members::MemberKind;

impl Reader<'_> {
    /// Asks the caller about a verb with a particle, unless the particle adds nothing. Returns the number of items
    /// read, or `None` for other items.
    pub(super) fn verb_with_particle(&mut self, at: usize) -> Option<usize> {
        if let Some(verb) = verb_of_last(&self.items, at, self.language) {
            let whole = format!("{} … {}", self.items[verb].text, self.items[at].text);
            return Some(self.unclear_verb(&whole, 1));
        }
        let particle = particle_behind(&self.items, at, self.language)?.to_owned();
        let item = self.items[at].clone();
        if !matches!(item.kind, ItemKind::Word(_))
            && let Some(length) = self.named_time(at, &item.text)
        {
            return Some(length);
        }
        let whole = format!("{} {particle}", item.text);
        if self.language.has(WordList::PlainParticles, &whole.to_lowercase()) {
            // The verb alone may name a time, as in `invoices paid out in May`.
            if let Some(length) = self.named_time(at, &item.text) {
                return Some(length);
            }
            let length = self.length_of_particle(at);
            self.piece(&whole, "ignored".to_owned(), 1.0);
            return Some(length);
        }
        Some(self.unclear_verb(&whole, self.length_of_particle(at)))
    }

    /// Returns the number of items of a verb with a particle. The particle may be the first word of a time.
    fn length_of_particle(&self, at: usize) -> usize {
        if matches!(self.items[at + 1].kind, ItemKind::Time(_)) { 1 } else { 2 }
    }

    fn unclear_verb(&mut self, whole: &str, length: usize) -> usize {
        let choices = self.choices_of(MemberKind::Measure);
        self.unclear(whole, format!("`{whole}` is not the name of a measure or of a value"), choices);
        length
    }
}

/// Returns the verbs with particles, which may be values.
pub(super) fn lookups(items: &[Item], language: &Language) -> impl Iterator<Item = Lookup> {
    let is_verb = |at: &usize| matches!(items[*at].kind, ItemKind::Word(Meaning::Verb | Meaning::Change));
    (0..items.len()).filter(is_verb).filter_map(|at| {
        let words = format!("{} {}", items[at].text, particle_behind(items, at, language)?);
        Some(Lookup { spellings: vec![words], ..Lookup::default() })
    })
}

/// Returns the particle directly behind the verb at a place.
fn particle_behind<'i>(items: &'i [Item], at: usize, language: &Language) -> Option<&'i str> {
    let (verb, next) = (items.get(at)?, items.get(at + 1)?);
    let lower = verb.text.to_lowercase();
    let is_verb = match verb.kind {
        ItemKind::Word(meaning) => matches!(meaning, Meaning::Verb | Meaning::Change),
        ItemKind::Unknown | ItemKind::Member(_) => !lower.contains(' ') && language.is_participle(&lower),
        _ => false,
    };
    if !is_verb || !matches!(next.kind, ItemKind::Word(_) | ItemKind::Time(_) | ItemKind::Unknown) {
        return None;
    }
    let word = next.text.split(' ').next().filter(|word| *word == next.text || is_time(next))?;
    let particle = word.to_lowercase();
    let is_particle = language.has(WordList::Particles, &particle);
    let is_known = language.has(WordList::PhrasalVerbs, &format!("{lower} {particle}"));
    (is_particle || (is_known && !is_time(next) && !has_object(items, at + 2, language))).then_some(word)
}

fn is_time(item: &Item) -> bool {
    matches!(item.kind, ItemKind::Time(_))
}

/// Returns whether the item at a place is the object of a preposition before it, as in `came in May`.
fn has_object(items: &[Item], at: usize, language: &Language) -> bool {
    let Some(item) = items.get(at) else { return false };
    match &item.kind {
        ItemKind::Word(Meaning::Ignore) => language.is_link(&item.text.to_lowercase()),
        ItemKind::Word(Meaning::Group | Meaning::And | Meaning::Versus | Meaning::From | Meaning::To)
        | ItemKind::Step(..) => false,
        // `came in last week` has no preposition, but `came in May` does.
        ItemKind::Time(_) => {
            let stems: Vec<String> = item.text.split(' ').map(|word| language.stem(&word.to_lowercase())).collect();
            let stems: Vec<&str> = stems.iter().map(String::as_str).collect();
            use Meaning::{After, Before, Last, Previous, Since, This, Today, Until, Yesterday};
            !matches!(
                language.phrase(&stems),
                Some((_, After | Before | Last | Previous | Since | This | Today | Until | Yesterday))
            )
        }
        _ => true,
    }
}

/// Returns the place of the verb whose particle is the last word of the question, as in the German `kamen in JFK an`.
fn verb_of_last(items: &[Item], at: usize, language: &Language) -> Option<usize> {
    let is_last = at + 1 == items.len() && language.has(WordList::LastParticles, &items[at].text.to_lowercase());
    let is_verb = |item: &Item| item.kind == ItemKind::Word(Meaning::Verb);
    items[..at].iter().rposition(is_verb).filter(|_| is_last)
}
