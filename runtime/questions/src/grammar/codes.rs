//! Finds values that are written like words of the language: the carrier `AS`, the country `IT`, the grade `A`.
//!
//! In: the rest of a question, and the values that were looked up. Out: the value that the first word is, unless the
//! words around it show that it is a word of the language. A word in capital letters is a value if it equals one, in a
//! question that also has lower case letters. A short word in lower case is a value only directly behind its dimension,
//! if the words behind it do not continue the sentence: `flights of carrier as by month`.

use crate::language::{Meaning, WordList};
use crate::members::{KnownValue, MemberKind};
use crate::times::{self, Calendar};
use crate::token::{Token, TokenKind};

use super::items::{Item, ItemKind};
use super::place::{Place, compares};

/// The largest number of characters of a code in lower case.
const MAX_CODE: usize = 3;

impl Place<'_> {
    /// Returns the values that the first word is instead of a word of the language, or an unknown value of the
    /// dimension before it. `None` if it is a word of the language.
    pub(super) fn code(&self, kind: &ItemKind) -> Option<ItemKind> {
        let meaning = match kind {
            ItemKind::Word(meaning) => *meaning,
            ItemKind::Superlative(..) => Meaning::Top,
            ItemKind::Step(..) => Meaning::Day,
            _ => return None,
        };
        let token = &self.tokens[0];
        let is_capital = self.is_mixed && is_code(&token.text);
        if token.kind != TokenKind::Word || !(is_capital || is_short(&token.text)) {
            return None;
        }
        let equals = |known: &&KnownValue| match is_capital {
            true => *known.value == *token.text,
            false => known.value.to_lowercase() == token.lower && self.follows_dimension(Some(known)),
        };
        let mut values: Vec<KnownValue> = self.context.values.values.iter().filter(equals).cloned().collect();
        values.sort_by(|one, other| (&one.member, &one.value).cmp(&(&other.member, &other.value)));
        values.dedup();
        let is_end = self.ends_phrase();
        let is_announced = self.is_announced(&values);
        let is_single = token.text.chars().count() == 1;
        let is_value = match (is_capital, has_function(meaning)) {
            (false, _) => is_end && meaning != Meaning::And,
            (true, true) => is_announced && is_end,
            // `cost IN ME`
            (true, false) if self.introduces_code() => is_announced,
            (true, false) if is_single => is_announced || self.names_rows_behind(),
            (true, false) => true,
        };
        if !values.is_empty() {
            return is_value.then_some(ItemKind::Value(values));
        }
        // A value that cannot be looked up: `carrier AS`.
        let is_unknown = is_capital && is_end && meaning != Meaning::And && self.follows_dimension(None);
        is_unknown.then_some(ItemKind::Unknown)
    }

    /// Returns whether the word directly follows a dimension, or `is` behind a dimension. With a value, it must be the
    /// value's dimension; otherwise, it may be any dimension of text.
    fn follows_dimension(&self, known: Option<&KnownValue>) -> bool {
        let Some(ItemKind::Member(candidates)) = self.named.map(|item| &item.kind) else { return false };
        let entries = || candidates.members.iter().map(|index| self.context.vocabulary.entry(*index));
        match known {
            Some(known) => entries().any(|entry| entry.name == known.member),
            None => candidates.certainty >= 1.0 && entries().all(|entry| entry.kind == MemberKind::Text),
        }
    }

    /// Returns whether the item before the word needs a value after it.
    fn is_announced(&self, values: &[KnownValue]) -> bool {
        use Meaning::{And, Contains, EndsWith, Equals, From, Ignore, Nor, Not, StartsWith, To, Versus};
        let Some(before) = self.before else { return false };
        let lower = before.text.to_lowercase();
        let has = |list: WordList| self.context.language.has(list, &lower);
        match &before.kind {
            ItemKind::Word(And | Contains | EndsWith | Equals | From | Nor | Not | StartsWith | To | Versus) => true,
            ItemKind::Word(Ignore) => has(WordList::Links) || has(WordList::Possession) || has(WordList::Prepositions),
            ItemKind::Member(_) => values.iter().any(|known| self.follows_dimension(Some(known))),
            _ => false,
        }
    }

    /// Returns whether the words behind the first one do not continue its phrase: the question ends, or a comma, a
    /// joining word, a word for groups or a time follows.
    fn ends_phrase(&self) -> bool {
        let Some(next) = self.tokens.get(1) else { return true };
        if next.kind == TokenKind::Comma {
            return true;
        }
        let (stems, language) = (self.stems(), self.context.language);
        let Some((length, meaning)) = language.phrase(&stems[1..]) else { return false };
        let calendar = Calendar { language, newest: self.context.newest };
        // `as in June`, but `by carrier in June` has a time behind `in`.
        let is_time =
            |at: usize| self.tokens.get(at..).is_some_and(|rest| times::range(rest, calendar, None).is_some());
        let is_preposition = language.has(WordList::Prepositions, &next.lower) && (is_time(1) || is_time(2));
        let joins = matches!(meaning, Meaning::Group | Meaning::And) && self.tokens.len() > 1 + length;
        joins || times::step(meaning).is_some() || is_preposition
    }

    /// Returns whether a preposition is before another word in capital letters.
    fn introduces_code(&self) -> bool {
        let has = |list: WordList| self.context.language.has(list, &self.tokens[0].lower);
        let is_preposition = has(WordList::Links) || has(WordList::Possession) || has(WordList::Prepositions);
        is_preposition && self.tokens.get(1).is_some_and(|next| is_code(&next.text))
    }

    /// Returns whether the plural name of rows follows the first word of a question, as in `A students`.
    fn names_rows_behind(&self) -> bool {
        let (stems, vocabulary) = (self.stems(), self.context.vocabulary);
        let Some(found) = vocabulary.exact(&stems[1..]) else { return false };
        let is_cube = |index: &usize| vocabulary.entry(*index).kind == MemberKind::Cube;
        let is_plural = self.tokens.get(found.length).is_some_and(|last| self.context.language.has_ending(&last.lower));
        is_plural && found.members.iter().any(is_cube)
    }
}

/// Returns the spellings under which an item is looked up as a whole value, although it is a word of the language.
pub(super) fn spellings(items: &[Item], at: usize, is_dimension: impl Fn(&Item) -> bool) -> Vec<String> {
    let Item { text, kind, .. } = &items[at];
    if !matches!(kind, ItemKind::Word(_) | ItemKind::Superlative(..) | ItemKind::Step(..)) {
        return Vec::new();
    }
    if is_code(text) && items.iter().any(|item| is_mixed(&item.text)) {
        return vec![text.clone()];
    }
    let named = items[..at].iter().rev().find(|item| item.kind != ItemKind::Word(Meaning::Equals));
    let follows_dimension = named.is_some_and(is_dimension);
    if !is_short(text) || !follows_dimension {
        return Vec::new();
    }
    let lower = text.to_lowercase();
    let mut letters = lower.chars();
    let capitalized = letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>());
    [lower.to_uppercase()].into_iter().chain(capitalized).chain([lower.clone()]).collect()
}

/// Returns whether a question has lower case letters, so that a word in capital letters stands out.
pub(super) fn is_mixed(text: &str) -> bool {
    text.chars().any(char::is_lowercase)
}

/// Returns whether all tokens together have lower case letters.
pub(super) fn is_mixed_question(tokens: &[Token]) -> bool {
    tokens.iter().any(|token| is_mixed(&token.text))
}

/// Returns whether a word is written in capital letters.
fn is_code(text: &str) -> bool {
    text.chars().any(char::is_alphabetic) && text.chars().all(|c| c.is_uppercase() || c.is_numeric())
}

fn is_short(text: &str) -> bool {
    text.chars().all(char::is_alphabetic) && text.chars().count() <= MAX_CODE
}

/// Returns whether a phrase governs the words around it, so that a word in capital letters may only be emphasized, as
/// in `flights BY carrier`.
fn has_function(meaning: Meaning) -> bool {
    use Meaning::{
        Aggregate, And, Best, Contains, EndsWith, Equals, From, Group, How, HowMany, HowMuch, Last, Missing, Nor, Not,
        Previous, Since, Sort, StartsWith, This, To, Until, Versus, Which, Worst,
    };
    compares(meaning)
        || matches!(meaning, Aggregate(_) | And | Best | Contains | EndsWith | Equals | From | Group | How | HowMany)
        || matches!(meaning, HowMuch | Last | Missing | Nor | Not | Previous | Since | Sort | StartsWith | This | To)
        || matches!(meaning, Until | Versus | Which | Worst)
}
