//! The items of a question: words of the language, members, times, numbers and texts.

use jiff::civil::Date;

use crate::draft::{DraftRange, Unit};
use crate::language::{Language, Meaning};
use crate::members::{Found, KnownValue, Vocabulary};
use crate::times;
use crate::token::{Token, TokenKind};

/// A part of a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// As it was written.
    pub(super) text: String,
    pub(super) kind: ItemKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemKind {
    Word(Meaning),
    Member(Candidates),
    Time(DraftRange),
    Step(&'static str),
    Number(f64, Option<Unit>),
    /// A word that is the value of dimensions.
    Value(Vec<KnownValue>),
    /// A quoted text.
    Quoted,
    /// A word without a meaning.
    Unknown,
}

/// The members that an item may mean.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidates {
    pub(super) members: Vec<usize>,
    /// 1 for all words of a phrase; less for a part of it, and for words with typing mistakes.
    pub(super) certainty: f64,
}

const CERTAINTY_OF_PART: f64 = 0.8;
const CERTAINTY_OF_CORRECTION: f64 = 0.85;

/// Splits the tokens into items.
pub(super) fn items(
    tokens: &[Token],
    vocabulary: &Vocabulary,
    values: &[KnownValue],
    language: &Language,
    today: Date,
) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let place = Place { tokens: &tokens[at..], vocabulary, language, today, before: items.last() };
        let (length, kind) = place.item();
        let text = tokens[at..at + length].iter().map(|token| &*token.text).collect::<Vec<_>>().join(" ");
        let kind = match kind {
            ItemKind::Unknown | ItemKind::Quoted => value(&text, values).unwrap_or(kind),
            kind => kind,
        };
        items.push(Item { text, kind });
        at += length;
    }
    items
}

/// Returns the values that a text is, in upper or lower case.
fn value(text: &str, values: &[KnownValue]) -> Option<ItemKind> {
    let lower = text.to_lowercase();
    let found: Vec<KnownValue> = values.iter().filter(|known| known.value.to_lowercase() == lower).cloned().collect();
    (!found.is_empty()).then_some(ItemKind::Value(found))
}

/// The rest of a question.
struct Place<'p> {
    tokens: &'p [Token],
    vocabulary: &'p Vocabulary,
    language: &'p Language,
    today: Date,
    before: Option<&'p Item>,
}

impl Place<'_> {
    fn item(&self) -> (usize, ItemKind) {
        let first = &self.tokens[0];
        match first.kind {
            TokenKind::Quoted => return self.quoted(),
            TokenKind::Comma => return (1, ItemKind::Word(Meaning::And)),
            _ => {}
        }
        let stems: Vec<&str> = self.tokens.iter().map(|token| &*token.stem).collect();
        let phrase = self.language.phrase(&stems);
        let member = self.member(&stems);
        let longest = phrase.map_or(0, |(length, _)| length).max(member.as_ref().map_or(0, |(length, _)| *length));
        if !self.compares()
            && let Some(found) = times::range(self.tokens, self.language, self.today)
            && found.length >= longest
        {
            return (found.length, ItemKind::Time(found.range));
        }
        if let TokenKind::Number(number) = first.kind {
            return self.number(number);
        }
        match (phrase, member) {
            (Some((length, meaning)), Some((other, _)))
                if length > other || (length == other && self.is_word(meaning)) =>
            {
                (length, word(meaning))
            }
            (_, Some((length, candidates))) => (length, ItemKind::Member(candidates)),
            (Some((length, meaning)), None) => (length, word(meaning)),
            (None, None) => self.corrected(&stems).unwrap_or((1, ItemKind::Unknown)),
        }
    }

    /// Returns whether the item before compares, so that `2000` is a number and no year.
    fn compares(&self) -> bool {
        use Meaning::{AtLeast, AtMost, Between, Bottom, Less, More, Top};
        matches!(
            self.before.map(|item| &item.kind),
            Some(ItemKind::Word(More | AtLeast | Less | AtMost | Between | Top | Bottom))
        ) && matches!(self.tokens[0].kind, TokenKind::Number(_))
    }

    /// Returns whether a phrase of the language comes before a member that is called the same. Units of time are words
    /// behind numbers only.
    fn is_word(&self, meaning: Meaning) -> bool {
        use Meaning::{Day, Hour, Minute, Month, Quarter, Second, Week, Year};
        !matches!(meaning, Second | Minute | Hour | Day | Week | Month | Quarter | Year)
    }

    fn quoted(&self) -> (usize, ItemKind) {
        let words: Vec<String> = self.tokens[0]
            .lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| self.language.stem(word))
            .collect();
        let stems: Vec<&str> = words.iter().map(String::as_str).collect();
        match self.vocabulary.exact(&stems) {
            Some(Found { length, members, .. }) if length == stems.len() => {
                (1, ItemKind::Member(Candidates { members, certainty: 1.0 }))
            }
            _ => (1, ItemKind::Quoted),
        }
    }

    fn number(&self, number: f64) -> (usize, ItemKind) {
        let stems: Vec<&str> = self.tokens[1..].iter().map(|token| &*token.stem).collect();
        let unit = self.language.phrase(&stems).and_then(|(length, meaning)| Some((length, unit(meaning)?)));
        match unit {
            Some((length, unit)) => (1 + length, ItemKind::Number(number, Some(unit))),
            None => (1, ItemKind::Number(number, None)),
        }
    }

    fn member(&self, stems: &[&str]) -> Option<(usize, Candidates)> {
        let exact = self.vocabulary.exact(stems);
        // A word of the language alone is no hint of a member.
        let is_word = self.language.phrase(stems).is_some();
        let partial = self.vocabulary.partial(stems).filter(|found| match &exact {
            Some(exact) => found.length > exact.length && found.members.len() == 1,
            None => !is_word || found.length > 1,
        });
        let found = partial.or(exact)?;
        let certainty = if found.is_exact { 1.0 } else { CERTAINTY_OF_PART };
        Some((found.length, Candidates { members: found.members, certainty }))
    }

    /// Returns the members of a word with a typing mistake.
    fn corrected(&self, stems: &[&str]) -> Option<(usize, ItemKind)> {
        // A word in capitals is a code.
        if self.tokens[0].text.chars().all(|c| c.is_uppercase() || c.is_numeric()) {
            return None;
        }
        let mut corrected: Vec<&str> = stems.to_vec();
        corrected[0] = self.vocabulary.corrected(stems[0])?;
        if let Some(next) = stems.get(1)
            && self.language.phrase(&stems[1..]).is_none()
            && let Some(known) = self.vocabulary.corrected(next)
        {
            corrected[1] = known;
        }
        let (length, candidates) = self.member(&corrected)?;
        let certainty = candidates.certainty * CERTAINTY_OF_CORRECTION;
        Some((length, ItemKind::Member(Candidates { certainty, ..candidates })))
    }
}

fn word(meaning: Meaning) -> ItemKind {
    times::step(meaning).map_or(ItemKind::Word(meaning), ItemKind::Step)
}

fn unit(meaning: Meaning) -> Option<Unit> {
    Some(match meaning {
        Meaning::Second => Unit::Seconds,
        Meaning::Minute => Unit::Minutes,
        Meaning::Hour => Unit::Hours,
        Meaning::Day => Unit::Days,
        _ => return None,
    })
}
