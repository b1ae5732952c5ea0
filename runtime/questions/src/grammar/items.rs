//! Splits a question into items: phrases of the language, members, times, numbers, values and quoted strings.

use jiff::civil::Date;

use crate::draft::{DraftRange, Unit};
use crate::language::{Language, Meaning};
use crate::members::{KnownValue, KnownValues, MemberKind, MemberMatch, Vocabulary};
use crate::times::{self, FoundTime};
use crate::token::{Token, TokenKind};

/// A part of a question with one meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// The text as the user wrote it.
    pub(super) text: String,
    pub(super) kind: ItemKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemKind {
    Word(Meaning),
    Member(Candidates),
    Time(DraftRange),
    /// A granularity. The flag is true if its words contain a word for groups, as in `by month`.
    Step(&'static str, bool),
    Number(f64, Option<Unit>),
    /// Words that are a value of some dimensions, or the first words of such values.
    Value(Vec<KnownValue>),
    /// A string in quotation marks.
    Quoted,
    /// A word without a meaning.
    Unknown,
}

/// The members that an item may mean.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidates {
    pub(super) members: Vec<usize>,
    /// The members of which only a synonym matches, and not the name or title.
    pub(super) by_synonym: Vec<usize>,
    /// The certainty: 1 if all words of a phrase match, and less if only some match or a typing mistake was corrected.
    pub(super) certainty: f64,
}

const CERTAINTY_OF_PART: f64 = 0.8;
const CERTAINTY_OF_CORRECTION: f64 = 0.85;

/// Splits the tokens into items.
pub(super) fn items(
    tokens: &[Token],
    vocabulary: &Vocabulary,
    values: &KnownValues,
    language: &Language,
    today: Date,
) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let corrected = corrected(tokens, vocabulary, language);
    let (mut at, mut year) = (0, None);
    while at < tokens.len() {
        let before = items.last();
        let (tokens, corrected) = (&tokens[at..], &corrected[at..]);
        let place = Place { tokens, corrected, vocabulary, language, today, before, year };
        let (mut length, mut kind) = match place.time() {
            Some(found) => {
                year = found.year.or(year);
                (found.length, ItemKind::Time(found.range))
            }
            None => place.item(),
        };
        if matches!(kind, ItemKind::Unknown | ItemKind::Quoted)
            && let Some((words, found)) = value(tokens, values)
        {
            (length, kind) = (words, found);
        }
        let text = tokens[..length].iter().map(|token| &*token.text).collect::<Vec<_>>().join(" ");
        items.push(Item { text, kind });
        at += length;
    }
    items
}

/// The largest number of words of a value.
const MAX_VALUE_WORDS: usize = 8;

/// Returns the longest values that the tokens begin with, and their number of words; case is ignored. If none is
/// complete, returns the values that begin with the first words.
fn value(tokens: &[Token], values: &KnownValues) -> Option<(usize, ItemKind)> {
    let end = tokens.iter().take_while(|token| token.kind != TokenKind::Comma).count();
    let known: Vec<(String, &KnownValue)> = values.values.iter().map(|known| (spelled(&known.value), known)).collect();
    for is_beginning in [false, true] {
        for length in (1..=end.min(MAX_VALUE_WORDS)).rev() {
            let text = spelled(&tokens[..length].iter().map(|token| &*token.text).collect::<Vec<_>>().join(" "));
            let is_meant = |value: &str| {
                let rest = value.strip_prefix(&*text);
                rest.is_some_and(|rest| rest.is_empty() || (is_beginning && rest.starts_with(' ')))
            };
            let found = known.iter().filter(|(value, _)| is_meant(value)).map(|(_, known)| (*known).clone());
            let mut found: Vec<KnownValue> = found.collect();
            found.sort_by(|one, other| (&one.member, &one.value).cmp(&(&other.member, &other.value)));
            found.dedup();
            if !found.is_empty() && !text.is_empty() {
                return Some((length, ItemKind::Value(found)));
            }
        }
    }
    None
}

/// Returns the words of a string in lower case, joined with single spaces.
pub(super) fn spelled(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// Returns the stem of each token, and true if a typing mistake was corrected in it.
fn corrected(tokens: &[Token], vocabulary: &Vocabulary, language: &Language) -> Vec<(String, bool)> {
    let of = |(at, token): (usize, &Token)| {
        let own = (token.stem.clone(), false);
        // A word in capitals is a code, which is not corrected.
        let is_code = token.text.chars().all(|c| c.is_uppercase() || c.is_numeric());
        if token.kind != TokenKind::Word || is_code || vocabulary.has_stem(&token.stem) {
            return own;
        }
        let stems: Vec<&str> = tokens[at..].iter().map(|token| &*token.stem).collect();
        if language.phrase(&stems).is_some() || times::is_word(&token.lower) {
            return own;
        }
        vocabulary.corrected(&token.stem).map_or(own, |known| (known.to_owned(), true))
    };
    tokens.iter().enumerate().map(of).collect()
}

/// The part of a question that is not split yet, and its context.
struct Place<'p> {
    tokens: &'p [Token],
    /// The stems of the tokens, each with true if it was corrected.
    corrected: &'p [(String, bool)],
    vocabulary: &'p Vocabulary,
    language: &'p Language,
    today: Date,
    before: Option<&'p Item>,
    /// The year of the last time with a year.
    year: Option<i16>,
}

impl Place<'_> {
    fn stems(&self) -> Vec<&str> {
        self.tokens.iter().map(|token| &*token.stem).collect()
    }

    /// Returns the range of time that the rest begins with, unless a phrase or a name at this place is longer.
    fn time(&self) -> Option<FoundTime> {
        let is_text = matches!(self.tokens[0].kind, TokenKind::Quoted | TokenKind::Comma);
        if is_text || self.compares() || self.follows_number() {
            return None;
        }
        let is_compared = matches!(self.before.map(|item| &item.kind), Some(ItemKind::Word(Meaning::Versus)));
        let year = self.year.filter(|_| is_compared);
        let found = times::range(self.tokens, self.language, self.today, year)?;
        let phrase = self.phrase(&self.stems()).map_or(0, |(length, _)| length);
        let member = self.member().map_or(0, |(length, _)| length);
        (found.length >= phrase.max(member)).then_some(found)
    }

    fn item(&self) -> (usize, ItemKind) {
        let first = &self.tokens[0];
        match first.kind {
            TokenKind::Quoted => return self.quoted(),
            TokenKind::Comma => return (1, ItemKind::Word(Meaning::And)),
            _ => {}
        }
        let stems = self.stems();
        let (phrase, member) = (self.phrase(&stems), self.member());
        if let TokenKind::Number(number) = first.kind {
            return self.number(number);
        }
        match (phrase, member) {
            (Some((length, meaning)), Some((other, _)))
                if length > other || (length == other && self.is_word(meaning)) =>
            {
                (length, self.word(&stems, meaning))
            }
            (_, Some((length, candidates))) => (length, ItemKind::Member(candidates)),
            (Some((length, meaning)), None) => (length, self.word(&stems, meaning)),
            (None, None) => (1, ItemKind::Unknown),
        }
    }

    /// Returns the phrase of the language that the stems begin with. `by hour of day` groups by a member if one has the
    /// name `hour of day`, so only `by` is returned then.
    fn phrase(&self, stems: &[&str]) -> Option<(usize, Meaning)> {
        let (length, meaning) = self.language.phrase(stems)?;
        // `orders by region` means the cube `orders`, although `order by region` means sorting.
        let is_plural = self.tokens[0].lower.ends_with('s');
        if meaning == Meaning::Sort && is_plural && self.vocabulary.exact(&stems[..1]).is_some() {
            return self.language.phrase(&stems[..1]);
        }
        if length > 1
            && times::step(meaning).is_some()
            && let Some((first, Meaning::Group)) = self.language.phrase(&stems[..1])
            && let Some(found) = self.vocabulary.exact(&stems[1..])
            && found.length >= length
        {
            return Some((first, Meaning::Group));
        }
        Some((length, meaning))
    }

    /// Returns whether the previous item is a numeric dimension. `after 2000` is then a comparison and not a time.
    fn follows_number(&self) -> bool {
        let Some(ItemKind::Member(candidates)) = self.before.map(|item| &item.kind) else { return false };
        candidates.members.iter().all(|index| self.vocabulary.entry(*index).kind == MemberKind::Number)
    }

    /// Returns whether the previous item is a comparison. `2000` is then a number and not a year.
    fn compares(&self) -> bool {
        use Meaning::{After, AtLeast, AtMost, Before, Between, Bottom, Less, More, Top};
        matches!(
            self.before.map(|item| &item.kind),
            Some(ItemKind::Word(More | AtLeast | Less | AtMost | Between | Before | After | Top | Bottom))
        ) && matches!(self.tokens[0].kind, TokenKind::Number(_))
    }

    /// Returns whether a phrase of the language takes precedence over a member with the same name. A unit of time does
    /// not, because units only have a meaning after numbers.
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
            Some(MemberMatch { length, members, by_synonym, .. }) if length == stems.len() => {
                (1, ItemKind::Member(Candidates { members, by_synonym, certainty: 1.0 }))
            }
            _ => (1, ItemKind::Quoted),
        }
    }

    fn number(&self, number: f64) -> (usize, ItemKind) {
        let stems: Vec<&str> = self.tokens[1..].iter().map(|token| &*token.stem).collect();
        let unit_of_time = self.language.phrase(&stems).and_then(|(length, meaning)| Some((length, unit(meaning)?)));
        // A unit of members, as in `2000 miles`.
        let is_name = self.vocabulary.exact(&stems).is_some();
        let named = || stems.first().filter(|_| !is_name).and_then(|stem| self.vocabulary.unit(stem));
        let unit = unit_of_time.or_else(|| Some((1, named()?.clone())));
        match unit {
            Some((length, unit)) => (1 + length, ItemKind::Number(number, Some(unit))),
            None => (1, ItemKind::Number(number, None)),
        }
    }

    fn member(&self) -> Option<(usize, Candidates)> {
        let stems: Vec<&str> = self.corrected.iter().map(|(stem, _)| &**stem).collect();
        let stems = &*stems;
        let exact = self.vocabulary.exact(stems);
        // A word that is a phrase of the language does not name a member by itself.
        let is_word = self.language.phrase(stems).is_some();
        // A code is a value: `BOEING` does not name the member `boeing_share`.
        let text = &self.tokens[0].text;
        let is_code = text.chars().count() > 1 && text.chars().all(|c| c.is_uppercase() || c.is_numeric());
        // A name that is given only in part ends before the next phrase of the language.
        let end = (0..stems.len()).find(|at| self.language.phrase(&stems[*at..]).is_some()).unwrap_or(stems.len());
        let partial = self.vocabulary.partial(&stems[..end]).filter(|found| match &exact {
            None if is_code => false,
            Some(exact) => found.length > exact.length && found.members.len() == 1,
            None => !is_word || found.length > 1,
        });
        let mut found = partial.or(exact)?;
        // `cancellations` may mean the member `cancelled` as well as a part of `cancellation_rate`.
        if !found.is_exact && found.length == 1 {
            let related = self.vocabulary.related(stems[0], self.language).iter().copied();
            let others: Vec<usize> = related.filter(|member| !found.members.contains(member)).collect();
            found.members.extend(others);
        }
        let is_corrected = self.corrected[..found.length].iter().any(|(_, is_corrected)| *is_corrected);
        let certainty = if found.is_exact { 1.0 } else { CERTAINTY_OF_PART }
            * if is_corrected { CERTAINTY_OF_CORRECTION } else { 1.0 };
        let MemberMatch { members, by_synonym, .. } = found;
        Some((found.length, Candidates { members, by_synonym, certainty }))
    }

    fn word(&self, stems: &[&str], meaning: Meaning) -> ItemKind {
        let is_group = matches!(self.language.phrase(&stems[..1]), Some((_, Meaning::Group)));
        times::step(meaning).map_or(ItemKind::Word(meaning), |step| ItemKind::Step(step, is_group))
    }
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
