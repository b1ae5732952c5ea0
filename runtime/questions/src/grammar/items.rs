//! Splits a question into items: phrases of the language, members, times, numbers, values and quoted strings.

use jiff::civil::Date;

use crate::draft::{DraftRange, Unit};
use crate::language::{Language, Meaning};
use crate::members::{KnownValue, KnownValues, MemberKind, MemberMatch, Vocabulary};
use crate::times::{self, Calendar, FoundTime};
use crate::token::{Token, TokenKind};

use super::values::{self, Quality, ValueMatch, Words};

/// A part of a question with one meaning.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// The text as the user wrote it.
    pub(super) text: String,
    pub(super) kind: ItemKind,
    /// True if its last word has an ending, as plurals have.
    pub(super) is_plural: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ItemKind {
    Word(Meaning),
    /// An adjective that ranks; the flag is true if it only orders the rows, as in `fastest first`. If the word is also
    /// the name of members, these are the candidates.
    Superlative(u16, bool, Option<Candidates>),
    Member(Candidates),
    Time(TimeItem),
    /// A granularity. The flag is true if its words contain a word for groups, as in `by month`.
    Step(&'static str, bool),
    Number(f64, Option<Unit>),
    /// Words that are a value of some dimensions, or a part of such values.
    Value(Vec<KnownValue>),
    /// A string in quotation marks.
    Quoted,
    /// A word without a meaning.
    Unknown,
}

/// A range of time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TimeItem {
    pub(super) range: DraftRange,
    /// The first and the last day, if they are known.
    pub(super) days: Option<(Date, Date)>,
    /// True if the date of the newest data decided on the year.
    pub(super) is_dated: bool,
}

/// The members that an item may mean.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Candidates {
    pub(super) members: Vec<usize>,
    /// The members of which only a synonym matches, and not the name or title.
    pub(super) by_synonym: Vec<usize>,
    /// The members whose name in queries matches.
    pub(super) by_name: Vec<usize>,
    /// The certainty: 1 if all words of a phrase match, and less if only some match or a typing mistake was corrected.
    pub(super) certainty: f64,
}

const CERTAINTY_OF_PART: f64 = 0.8;
const CERTAINTY_OF_CORRECTION: f64 = 0.85;

/// The context in which a question is split.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'c> {
    pub(super) vocabulary: &'c Vocabulary,
    pub(super) values: &'c KnownValues,
    pub(super) language: &'c Language,
    /// The date of the newest data, or today.
    pub(super) newest: Date,
}

/// Splits the tokens into items.
pub(super) fn items(tokens: &[Token], context: Context<'_>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let (tokens, corrected) = corrected(tokens, context);
    let (mut at, mut year) = (0, None);
    while at < tokens.len() {
        let before = items.last();
        let before_fillers = items.iter().rev().find(|item| item.kind != ItemKind::Word(Meaning::Ignore));
        let place = Place { tokens: &tokens[at..], corrected: &corrected[at..], context, before, before_fillers, year };
        let (length, kind) = match place.time() {
            Some(FoundTime { length, range, days, year: own, is_dated }) => {
                year = own.or(year);
                (length, ItemKind::Time(TimeItem { range, days, is_dated }))
            }
            None => place.value_or_item(),
        };
        let words = &tokens[at..at + length];
        let text = words.iter().map(|token| &*token.text).collect::<Vec<_>>().join(" ");
        let is_plural = words.last().is_some_and(|token| context.language.has_ending(&token.lower));
        items.push(Item { text, kind, is_plural });
        at += length;
    }
    items
}

/// Corrects typing mistakes in the stems of tokens. Also returns for each token whether it was corrected.
fn corrected(tokens: &[Token], context: Context<'_>) -> (Vec<Token>, Vec<bool>) {
    let Context { vocabulary, language, .. } = context;
    let of = |(at, token): (usize, &Token)| {
        let own = (token.clone(), false);
        // A word in capitals is a code, which is not corrected.
        let is_code = token.text.chars().all(|c| c.is_uppercase() || c.is_numeric());
        if token.kind != TokenKind::Word || is_code || vocabulary.has_stem(&token.stem) {
            return own;
        }
        let stems: Vec<&str> = tokens[at..].iter().map(|token| &*token.stem).collect();
        let is_known = language.phrase(&stems).is_some() || language.has_word(&token.stem);
        if is_known || times::is_word(&token.lower) || language.ordinal(&token.lower).is_some() {
            return own;
        }
        let known = vocabulary.corrected(&token.stem).or_else(|| language.corrected(&token.stem));
        known.map_or(own, |known| (Token { stem: known.to_owned(), ..token.clone() }, true))
    };
    tokens.iter().enumerate().map(of).unzip()
}

/// The part of a question that is not split yet, and its context.
struct Place<'p> {
    tokens: &'p [Token],
    /// True for each token whose stem was corrected.
    corrected: &'p [bool],
    context: Context<'p>,
    before: Option<&'p Item>,
    /// The last item that is not a filler word.
    before_fillers: Option<&'p Item>,
    /// The year of the last time with a year.
    year: Option<i16>,
}

impl Place<'_> {
    /// Returns the value that the rest begins with, or else the item. A value takes precedence over words without a
    /// meaning, over parts of names, and over shorter items if it is complete.
    fn value_or_item(&self) -> (usize, ItemKind) {
        let (length, kind) = self.item();
        let Some(ValueMatch { length: words, values, quality }) = values::matched(self.tokens, &self.words()) else {
            return (length, kind);
        };
        let is_better = match &kind {
            ItemKind::Unknown | ItemKind::Quoted => true,
            // `how much rain fell` needs a measure.
            ItemKind::Member(_) if self.follows_how_much() => false,
            ItemKind::Member(candidates) if candidates.certainty < 1.0 => {
                quality <= Quality::Beginning && words >= length
            }
            _ => quality == Quality::Equal && words > length,
        };
        if is_better { (words, ItemKind::Value(values)) } else { (length, kind) }
    }

    fn words(&self) -> Words<'_> {
        Words { values: self.context.values, language: self.context.language }
    }

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
        let calendar = Calendar { language: self.context.language, newest: self.context.newest };
        let found = times::range(self.tokens, calendar, year)?;
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
        let is_compared =
            matches!(self.before.map(|item| &item.kind), Some(ItemKind::Word(meaning)) if compares(*meaning));
        match first.kind {
            TokenKind::Number(number) => return self.number(number),
            // `more than an hour`
            TokenKind::Word if is_compared && self.context.language.is_link(&first.lower) => {
                if let (length, ItemKind::Number(number, Some(unit))) = self.number(1.0) {
                    return (length, ItemKind::Number(number, Some(unit)));
                }
            }
            TokenKind::Percent(share) => return (1, ItemKind::Number(share, Some(Unit::Percent))),
            _ => {}
        }
        if let Some(candidates) = self.compared_verb() {
            return (1, ItemKind::Member(candidates));
        }
        match (phrase, member) {
            (Some((length, meaning)), Some((other, _)))
                if length > other || (length == other && Self::is_word(meaning)) =>
            {
                self.word(&stems, length, meaning)
            }
            (Some((length, meaning @ Meaning::Superlative(_))), Some((other, candidates)))
                if self.adds_cube(&stems[length..other], &candidates) =>
            {
                self.word(&stems, length, meaning)
            }
            (_, Some((length, candidates))) => (length, ItemKind::Member(candidates)),
            (Some((length, meaning)), None) => self.word(&stems, length, meaning),
            (None, None) => (1, ItemKind::Unknown),
        }
    }

    /// Returns the phrase of the language that the stems begin with. `by hour of day` groups by a member if one has the
    /// name `hour of day`, so only `by` is returned then.
    fn phrase(&self, stems: &[&str]) -> Option<(usize, Meaning)> {
        let (length, meaning) = self.context.language.phrase(stems)?;
        // `orders by region` means the cube `orders`, although `order by region` means sorting.
        let is_plural = self.tokens[0].lower.ends_with('s');
        if meaning == Meaning::Sort && is_plural && self.context.vocabulary.exact(&stems[..1]).is_some() {
            return self.context.language.phrase(&stems[..1]);
        }
        if length > 1
            && times::step(meaning).is_some()
            && let Some((first, Meaning::Group)) = self.context.language.phrase(&stems[..1])
            && let rest = (Place { tokens: &self.tokens[1..], corrected: &self.corrected[1..], ..*self })
            && let plain = self.context.vocabulary.exact(&stems[1..]).map_or(0, |found| found.length)
            && plain.max(rest.linked().map_or(0, |(_, found)| found.length)) >= length
        {
            return Some((first, Meaning::Group));
        }
        Some((length, meaning))
    }

    /// Returns whether the item before the filler words is `how much`.
    fn follows_how_much(&self) -> bool {
        self.before_fillers.is_some_and(|item| item.kind == ItemKind::Word(Meaning::HowMuch))
    }

    /// Returns whether the previous item is a numeric dimension. `after 2000` is then a comparison and not a time.
    fn follows_number(&self) -> bool {
        let Some(ItemKind::Member(candidates)) = self.before.map(|item| &item.kind) else { return false };
        candidates.members.iter().all(|index| self.context.vocabulary.entry(*index).kind == MemberKind::Number)
    }

    /// Returns whether the previous item is a comparison. `2000` is then a number and not a year.
    fn compares(&self) -> bool {
        let is_compared =
            matches!(self.before.map(|item| &item.kind), Some(ItemKind::Word(meaning)) if compares(*meaning));
        is_compared && matches!(self.tokens[0].kind, TokenKind::Number(_) | TokenKind::Percent(_))
    }

    /// Returns whether a phrase of the language takes precedence over a member with the same name. Verbs and units of
    /// time do not; a unit has a meaning only after a number.
    fn is_word(meaning: Meaning) -> bool {
        use Meaning::{Day, Hour, Minute, Month, Quarter, Second, Verb, Week, Weekday, Year};
        !matches!(meaning, Verb | Weekday | Second | Minute | Hour | Day | Week | Month | Quarter | Year)
    }

    /// Returns whether the words behind an adjective only name the cube of the members, as in `coldest weather`.
    fn adds_cube(&self, stems: &[&str], candidates: &Candidates) -> bool {
        let vocabulary = self.context.vocabulary;
        let Some(found) = vocabulary.exact(stems).filter(|found| found.length == stems.len()) else { return false };
        let is_cube = |cube: &usize| {
            let cube = vocabulary.entry(*cube);
            let is_of_cube = |index: &usize| vocabulary.entry(*index).cube.as_ref() == Some(&cube.name);
            cube.kind == MemberKind::Cube && candidates.members.iter().all(is_of_cube)
        };
        found.members.iter().any(is_cube)
    }

    /// Returns the numeric dimension that a verb before a comparison is a part of, as in `planes built before 2000` for
    /// `year built`.
    fn compared_verb(&self) -> Option<Candidates> {
        let (stems, vocabulary) = (self.stems(), self.context.vocabulary);
        let Some((1, Meaning::Verb)) = self.context.language.phrase(&stems) else { return None };
        let (length, meaning) = self.context.language.phrase(&stems[1..])?;
        let TokenKind::Number(number) = self.tokens.get(1 + length)?.kind else { return None };
        let place = Place { tokens: &self.tokens[1 + length..], corrected: &self.corrected[1 + length..], ..*self };
        // A number with a unit finds its dimension by the unit.
        let is_plain = matches!(place.number(number), (_, ItemKind::Number(_, None)));
        if !is_plain || !(compares(meaning) || meaning == Meaning::Since) {
            return None;
        }
        let mut members = vocabulary.partial(&stems[..1])?.members;
        members.retain(|index| vocabulary.entry(*index).kind == MemberKind::Number);
        let certainty = CERTAINTY_OF_PART;
        (members.len() == 1).then(|| Candidates { members, certainty, ..Candidates::default() })
    }

    fn quoted(&self) -> (usize, ItemKind) {
        let words: Vec<String> = self.tokens[0]
            .lower
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(|word| self.context.language.stem(word))
            .collect();
        let stems: Vec<&str> = words.iter().map(String::as_str).collect();
        match self.context.vocabulary.exact(&stems) {
            Some(MemberMatch { length, members, by_synonym, by_name, .. }) if length == stems.len() => {
                (1, ItemKind::Member(Candidates { members, by_synonym, by_name, certainty: 1.0 }))
            }
            _ => (1, ItemKind::Quoted),
        }
    }

    fn number(&self, number: f64) -> (usize, ItemKind) {
        let stems: Vec<&str> = self.tokens[1..].iter().map(|token| &*token.stem).collect();
        let unit_of_time =
            self.context.language.phrase(&stems).and_then(|(length, meaning)| Some((length, unit(meaning)?)));
        // `three days to deliver` may name the member `days to deliver`.
        let name = self.context.vocabulary.exact(&stems).map_or(0, |found| found.length);
        let unit_of_time = unit_of_time.filter(|(length, _)| name <= *length);
        if let Some((length, Unit::Percent)) = unit_of_time {
            return (1 + length, ItemKind::Number(number / 100.0, Some(Unit::Percent)));
        }
        // A unit of members, as in `2000 miles`.
        let named = || stems.first().filter(|_| name == 0).and_then(|stem| self.context.vocabulary.unit(stem));
        let unit = unit_of_time.or_else(|| Some((1, named()?.clone())));
        match unit {
            Some((length, unit)) => (1 + length, ItemKind::Number(number, Some(unit))),
            None => (1, ItemKind::Number(number, None)),
        }
    }

    /// Returns the members that the rest begins with, and the number of tokens.
    fn member(&self) -> Option<(usize, Candidates)> {
        let (stems, vocabulary) = (self.stems(), self.context.vocabulary);
        let plain = vocabulary.exact(&stems).map(|found| (found.length, found));
        let exact = self.linked().filter(|(_, linked)| {
            let words = plain.as_ref().map_or(1, |(_, plain)| plain.length);
            linked.length > words
        });
        let exact = exact.or(plain);
        // A word that is a phrase of the language does not name a member by itself.
        let is_word = self.context.language.phrase(&stems).is_some();
        // A code is a value: `BOEING` does not name the member `boeing_share`.
        let text = &self.tokens[0].text;
        let is_code = text.chars().count() > 1 && text.chars().all(|c| c.is_uppercase() || c.is_numeric());
        // A name that is given only in part ends before the next phrase of the language.
        let is_phrase = |at: &usize| self.context.language.phrase(&stems[*at..]).is_some();
        let end = (0..stems.len()).find(is_phrase).unwrap_or(stems.len());
        let partial = vocabulary.partial(&stems[..end]).filter(|found| match &exact {
            None if is_code => false,
            Some((length, _)) => found.length > *length && found.members.len() == 1,
            None => !is_word || found.length > 1,
        });
        let (length, mut found) = partial.map(|found| (found.length, found)).or(exact)?;
        // `cancellations` means the member `cancelled` rather than a part of `cancellation_rate`.
        if !found.is_exact && found.length == 1 {
            let related = vocabulary.related(stems[0], self.context.language);
            if !related.is_empty() {
                found.members = related.to_vec();
            }
        }
        let is_corrected = self.corrected[..length].contains(&true);
        let certainty = if found.is_exact { 1.0 } else { CERTAINTY_OF_PART }
            * if is_corrected { CERTAINTY_OF_CORRECTION } else { 1.0 };
        let MemberMatch { members, by_synonym, by_name, .. } = found;
        Some((length, Candidates { members, by_synonym, by_name, certainty }))
    }

    /// Returns the members whose names are the next words without links, as in `hour of departure`.
    fn linked(&self) -> Option<(usize, MemberMatch)> {
        // `number of flights` counts, even if there is a flight number.
        if matches!(self.context.language.phrase(&self.stems()), Some((_, Meaning::HowMany | Meaning::HowMuch))) {
            return None;
        }
        let is_link = |token: &Token| self.context.language.is_link(&token.lower);
        let is_word = |token: &Token| matches!(token.kind, TokenKind::Word | TokenKind::Number(_));
        let words = self.tokens.iter().enumerate().take_while(|(_, token)| is_word(token));
        let named: Vec<(usize, &Token)> = words.filter(|(at, token)| *at == 0 || !is_link(token)).collect();
        let stems: Vec<&str> = named.iter().map(|(_, token)| &*token.stem).collect();
        let found = self.context.vocabulary.exact(&stems)?;
        let (last, _) = named.get(found.length.checked_sub(1)?)?;
        Some((last + 1, found))
    }

    fn word(&self, stems: &[&str], length: usize, meaning: Meaning) -> (usize, ItemKind) {
        let is_group = matches!(self.context.language.phrase(&stems[..1]), Some((_, Meaning::Group)));
        if let Some(step) = times::step(meaning) {
            return (length, ItemKind::Step(step, is_group));
        }
        let Meaning::Superlative(index) = meaning else { return (length, ItemKind::Word(meaning)) };
        // `fastest first` orders all rows.
        let is_first =
            self.tokens.get(length).is_some_and(|next| self.context.language.ordinal(&next.lower) == Some(1));
        let members =
            self.member().filter(|(of_member, candidates)| *of_member == length && candidates.certainty >= 1.0);
        let kind = ItemKind::Superlative(index, is_first, members.map(|(_, candidates)| candidates));
        (length + usize::from(is_first), kind)
    }
}

/// Returns whether a number follows a phrase.
fn compares(meaning: Meaning) -> bool {
    use Meaning::{After, AtLeast, AtMost, Before, Between, Bottom, Less, More, Top};
    matches!(meaning, More | AtLeast | Less | AtMost | Between | Before | After | Top | Bottom)
}

fn unit(meaning: Meaning) -> Option<Unit> {
    Some(match meaning {
        Meaning::Second => Unit::Seconds,
        Meaning::Minute => Unit::Minutes,
        Meaning::Hour => Unit::Hours,
        Meaning::Day => Unit::Days,
        Meaning::Percent => Unit::Percent,
        _ => return None,
    })
}
