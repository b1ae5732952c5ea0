//! Compares the spellings of words and values.
//!
//! In: words of a question, and known words. Out: a common spelling, and the known words that a word with a typing
//! mistake means.
//!
//! A word is near to a known word by the rule of searches ([`typing_mistakes`]). A search shows all near words, but a
//! question takes one of them, so it corrects fewer words:
//!
//! - Exactly one known word has the fewest mistakes.
//! - A word of four letters resembles many others, so only swapped letters are corrected. If its stem is shorter than five
//!   letters, a missing or an additional letter is corrected too, but no replaced one.
//! - Only a word for a time may have three letters, as in `lst week`. The words around it confirm the correction.
//!
//! Other near words are offered as choices.

use terrane_search::typing_mistakes;

use crate::language::Language;

/// The shortest word in which any mistake is corrected.
pub(crate) const MIN_FUZZY_CHARS: usize = 5;
/// The shortest word whose swapped letters are corrected.
const MIN_SWAPPED_CHARS: usize = 4;
/// The shortest word that is corrected if the words around it confirm the correction.
const MIN_SHORT_CHARS: usize = 3;
/// The shortest part of a word that is looked up.
const MIN_FRAGMENT_CHARS: usize = 3;

/// Returns the words of a string in lower case, joined with single spaces. Apostrophes do not separate words.
pub(crate) fn spelled(text: &str) -> String {
    let text: String = text.chars().filter(|c| !is_apostrophe(*c)).collect();
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

pub(crate) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}')
}

/// Returns whether `word` is a misspelling of a word in `value`.
pub(crate) fn is_misspelled(word: &str, value: &str) -> bool {
    let word = spelled(word);
    let is_word = word.chars().count() >= MIN_FUZZY_CHARS && word.chars().all(char::is_alphabetic);
    let is_near = |other: &str| typing_mistakes(&word, other).is_some_and(|mistakes| mistakes > 0);
    is_word && spelled(value).split(' ').any(is_near)
}

/// Returns the known word that is nearest to a word with a typing mistake, if there is exactly one.
pub(crate) fn nearest<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    if word.chars().count() < MIN_FUZZY_CHARS {
        return None;
    }
    let mut near: Vec<(usize, &str)> = known
        .filter_map(|other| Some((typing_mistakes(word, other)?, other)))
        .filter(|(mistakes, _)| *mistakes > 0)
        .collect();
    near.sort_unstable();
    match near[..] {
        [(_, only)] => Some(only),
        [(first, nearest), (second, _), ..] if first < second => Some(nearest),
        _ => None,
    }
}

/// Returns the known stem of a word in lower case that has a typing mistake, if there is exactly one: `fine` for
/// `fnies`. Letters are swapped, or in longer words one letter is missing or additional.
pub(crate) fn nearest_form<'w>(
    word: &str,
    language: &Language,
    known: impl Iterator<Item = &'w str>,
) -> Option<&'w str> {
    let length = word.chars().count();
    if length < MIN_SWAPPED_CHARS || !word.chars().all(char::is_alphabetic) {
        return None;
    }
    let has_length = |form: &str| form.chars().count() == length;
    let is_near = |form: &String| {
        let is_corrected = if has_length(form) { is_swapped(word, form) } else { length >= MIN_FUZZY_CHARS };
        is_corrected && typing_mistakes(word, form) == Some(1)
    };
    let is_comparable = |stem: &&str| stem.chars().count().abs_diff(length) <= MAX_ENDING_CHARS;
    let (mut swapped, mut others) = (Vec::new(), Vec::new());
    for stem in known.filter(is_comparable) {
        let near: Vec<String> = language.forms(stem, word).filter(is_near).collect();
        match near.iter().any(|form| has_length(form)) {
            true => swapped.push(stem),
            false if !near.is_empty() => others.push(stem),
            false => {}
        }
    }
    let found = if swapped.is_empty() { others } else { swapped };
    let [only] = found[..] else { return None };
    Some(only)
}

/// Returns the only known word from which a short word differs by one typing mistake. The caller checks the words
/// around it.
pub(crate) fn nearest_short<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let is_near = |other: &&str| other.chars().next() == word.chars().next() && strsim::osa_distance(other, word) == 1;
    let mut near = known.filter(is_near);
    let (only, None) = (near.next().filter(|_| word.chars().count() >= MIN_SHORT_CHARS)?, near.next()) else {
        return None;
    };
    Some(only)
}

/// Returns whether two words have the same letters.
fn is_swapped(word: &str, other: &str) -> bool {
    let sorted = |word: &str| {
        let mut chars: Vec<char> = word.chars().collect();
        chars.sort_unstable();
        chars
    };
    sorted(word) == sorted(other)
}

/// The largest number of characters by which a word and a stem differ.
const MAX_ENDING_CHARS: usize = 4;

/// Returns the beginning and the end of a word. A typing mistake leaves one of them unchanged, unless it is in the
/// middle.
pub(crate) fn fragments(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    if chars.len() < MIN_FUZZY_CHARS || !chars.iter().all(|c| c.is_alphabetic()) {
        return Vec::new();
    }
    let half = (chars.len() / 2).max(MIN_FRAGMENT_CHARS);
    vec![chars[..half].iter().collect(), chars[chars.len() - half..].iter().collect()]
}
