//! Finds the members that the rest of a question names: the longest name, a part of a name, a related word, and a verb
//! that is a part of a name. Names of one member that overlap are joined.

use std::sync::Arc;

use crate::language::{Meaning, WordList};
use crate::members::{MemberKind, MemberMatch};
use crate::spelling::MIN_FUZZY_CHARS;
use crate::token::{Token, TokenKind};

use super::items::{Candidates, ItemKind};
use super::place::{CERTAINTY_OF_PART, Place, compares};

const CERTAINTY_OF_CORRECTION: f64 = 0.85;
/// The certainty of a correction of a short word, which resembles many others.
const CERTAINTY_OF_SHORT_CORRECTION: f64 = 0.6;

impl Place<'_> {
    /// Returns a longer match if another name of the same members begins inside the first one and ends after it. In
    /// `total claimed amount`, the names `total claimed` and `claimed amount` are one.
    pub(super) fn overlapping(&self, length: usize, found: MemberMatch) -> (usize, MemberMatch) {
        let stems = self.stems();
        let longer = |start: usize| {
            let other = self.context.vocabulary.exact(&stems[start..])?;
            let is_same = |index: &usize| other.members.contains(index);
            let reaches = start + other.length > length && found.members.iter().any(is_same);
            reaches.then(|| (start + other.length, other))
        };
        let Some((length, other)) = (1..length).find_map(longer) else { return (length, found) };
        let keep = |members: Vec<usize>| members.into_iter().filter(|index| other.members.contains(index)).collect();
        let MemberMatch { members, by_synonym, by_name, is_exact, .. } = found;
        let (members, by_synonym, by_name) = (keep(members), keep(by_synonym), keep(by_name));
        (length, MemberMatch { length, members, by_synonym, by_name, is_exact })
    }

    /// Returns the members that the rest begins with, and the number of tokens.
    pub(super) fn member(&self) -> Option<(usize, Candidates)> {
        let (stems, vocabulary) = (self.stems(), self.context.vocabulary);
        let plain = vocabulary.exact(&stems).map(|found| (found.length, found));
        let exact = self.linked().filter(|(_, linked)| {
            let words = plain.as_ref().map_or(1, |(_, plain)| plain.length);
            linked.length > words
        });
        let exact = exact.or(plain).map(|(length, found)| self.overlapping(length, found));
        let exact = exact.map(|(length, found)| self.without_verb(length, found));
        // A word that is a phrase of the language does not name a member by itself.
        let is_word = self.context.language.phrase(&stems).is_some();
        // A code is a value: `BOEING` does not name the member `boeing_share`.
        let text = &self.tokens[0].text;
        let is_code = text.chars().count() > 1 && text.chars().all(|c| c.is_uppercase() || c.is_numeric());
        // A name that is given only in part ends before the next phrase of the language.
        let is_phrase = |at: &usize| self.context.language.phrase(&stems[*at..]).is_some();
        let end = (0..stems.len()).find(is_phrase).unwrap_or(stems.len());
        // `more flights` is not part of a name that contains `more than 15 minutes`.
        let is_opener = self.context.language.has(WordList::Openers, &self.tokens[0].lower);
        let partial = vocabulary.partial(&stems[..end]).filter(|found| match &exact {
            None if is_code || is_opener => false,
            Some((length, _)) => {
                found.length > *length && found.members.len() == 1 && !self.cuts_name(*length, found.length)
            }
            None => !is_word || found.length > 1,
        });
        let partial = partial.map(|found| self.without_verb(found.length, found));
        let (length, mut found) = partial.or(exact).or_else(|| self.related(is_word || is_code))?;
        // `cancellations` means the member `cancelled` rather than a part of `cancellation_rate`.
        if !found.is_exact && found.length == 1 {
            let related = vocabulary.related(stems[0], self.context.language);
            if !related.is_empty() {
                found.members = related.to_vec();
            }
        }
        let of_corrected = (0..length).filter(|at| self.corrected[*at]).map(|at| {
            let is_short = self.context.language.stem(&self.tokens[at].lower).chars().count() < MIN_FUZZY_CHARS;
            if is_short { CERTAINTY_OF_SHORT_CORRECTION } else { CERTAINTY_OF_CORRECTION }
        });
        let certainty = if found.is_exact { 1.0 } else { CERTAINTY_OF_PART } * of_corrected.fold(1.0, f64::min);
        let MemberMatch { members, by_synonym, by_name, .. } = found;
        Some((length, Candidates { members, by_synonym, by_name, certainty }))
    }

    /// Returns the measures whose whole name is a related word, if the first word is a part of too many names:
    /// `departures` means the measure `departed`.
    fn related(&self, has_meaning: bool) -> Option<(usize, MemberMatch)> {
        let (vocabulary, stem) = (self.context.vocabulary, &*self.tokens[0].stem);
        let members = vocabulary.related(stem, self.context.language).to_vec();
        let is_measure = members.iter().all(|index| vocabulary.entry(*index).kind == MemberKind::Measure);
        // `cancel` is the verb of `cancelled`.
        let is_verb_of = |phrase: &Arc<str>| !phrase.contains(' ') && phrase.to_lowercase().starts_with(stem);
        let is_verb = |index: &usize| vocabulary.entry(*index).phrases.iter().any(is_verb_of);
        let is_known = vocabulary.has_stem(stem) || (members.len() == 1 && members.iter().all(is_verb));
        let is_found = !has_meaning && is_known && is_measure && !members.is_empty();
        is_found.then(|| (1, MemberMatch { length: 1, members, ..MemberMatch::default() }))
    }

    /// Returns the cube that the name of a time dimension begins with, if a verb follows it: `customers registered`
    /// means the customers, unless it is a group.
    fn without_verb(&self, length: usize, found: MemberMatch) -> (usize, MemberMatch) {
        let (vocabulary, language) = (self.context.vocabulary, self.context.language);
        let stems = self.stems();
        let is_kind = |index: &usize, kind| vocabulary.entry(*index).kind == kind;
        let is_time = length > 1 && found.members.iter().all(|index| is_kind(index, MemberKind::Time));
        let is_group = matches!(self.before_fillers.map(|item| &item.kind), Some(ItemKind::Word(Meaning::Group)));
        let is_verb = matches!(language.phrase(&stems[length - 1..]), Some((1, Meaning::Verb)))
            || language.is_participle(&self.tokens[length - 1].lower);
        // `members joined` has the name `joined` of the time, but `booking date` is one name.
        let rest = vocabulary.exact(&stems[length - 1..length]);
        let is_named = rest.is_some_and(|rest| found.members.iter().all(|index| rest.members.contains(index)));
        if !is_time || is_group || !(is_verb || is_named) {
            return (length, found);
        }
        match vocabulary.exact(&stems[..length - 1]) {
            Some(cube)
                if cube.length == length - 1 && cube.members.iter().any(|index| is_kind(index, MemberKind::Cube)) =>
            {
                (cube.length, cube)
            }
            _ => (length, found),
        }
    }

    /// Returns the members whose names are the next words without links, as in `hour of departure`.
    pub(super) fn linked(&self) -> Option<(usize, MemberMatch)> {
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

    /// Returns whether a part of a name ends inside another name, as `members signed` does in `members signed up`.
    fn cuts_name(&self, start: usize, end: usize) -> bool {
        let stems = self.stems();
        let exact = |at: usize| self.context.vocabulary.exact(&stems[at..]).map_or(0, |found| at + found.length);
        (start..end).any(|at| exact(at) > end)
    }

    /// Returns whether the name that begins at the second word ends after the name that begins at the first word. In
    /// `strongest wind gust`, the name is `wind gust`, although another member is the `strongest wind`.
    pub(super) fn is_longer_behind(&self, stems: &[&str], end: usize) -> bool {
        let behind = self.context.vocabulary.exact(&stems[1..]);
        behind.is_some_and(|found| found.length > 1 && 1 + found.length > end)
    }

    /// Returns whether the words after an adjective only name the cube of the members, as in `coldest weather`. The
    /// title `longest stay` is one name, although `stays` are a cube.
    pub(super) fn adds_cube(&self, whole: &[&str], length: usize, candidates: &Candidates) -> bool {
        let (vocabulary, stems) = (self.context.vocabulary, &whole[length..]);
        if candidates.members.iter().any(|index| vocabulary.is_own_name(*index, whole, self.context.language)) {
            return false;
        }
        let Some(found) = vocabulary.exact(stems).filter(|found| found.length == stems.len()) else { return false };
        let is_cube = |cube: &usize| {
            let cube = vocabulary.entry(*cube);
            let is_of_cube = |index: &usize| vocabulary.entry(*index).cube.as_ref() == Some(&cube.name);
            cube.kind == MemberKind::Cube && candidates.members.iter().all(is_of_cube)
        };
        found.members.iter().any(is_cube)
    }

    /// Returns the numeric dimension whose name contains the verb before a comparison, as in `planes built before 2000`
    /// for `year built`.
    pub(super) fn compared_verb(&self) -> Option<Candidates> {
        let (stems, vocabulary) = (self.stems(), self.context.vocabulary);
        let Some((1, Meaning::Verb)) = self.context.language.phrase(&stems) else { return None };
        let (length, meaning) = self.context.language.phrase(&stems[1..])?;
        let TokenKind::Number(number) = self.tokens.get(1 + length)?.kind else { return None };
        let place = Place { tokens: &self.tokens[1 + length..], corrected: &self.corrected[1 + length..], ..*self };
        // `built more than 100 planes` counts planes.
        let behind = stems.get(2 + length..).filter(|behind| !behind.is_empty());
        if behind.is_some_and(|behind| vocabulary.exact(behind).is_some()) {
            return None;
        }
        // A number with a unit finds its dimension by the unit.
        let is_plain = matches!(place.number(number), (_, ItemKind::Number(_, None)));
        if !is_plain || !(compares(meaning) || matches!(meaning, Meaning::Since | Meaning::Until)) {
            return None;
        }
        let mut members = vocabulary.partial(&stems[..1])?.members;
        members.retain(|index| vocabulary.entry(*index).kind == MemberKind::Number);
        let certainty = CERTAINTY_OF_PART;
        (members.len() == 1).then(|| Candidates { members, certainty, ..Candidates::default() })
    }
}
