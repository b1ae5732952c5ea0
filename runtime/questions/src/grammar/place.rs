//! Finds the item that the rest of a question begins with: the longest phrase, member, time, number or value.

use crate::draft::Unit;
use crate::language::{Meaning, WordList};
use crate::members::{MemberKind, MemberMatch};
use crate::times::{self, Calendar, FoundTime};
use crate::token::{Token, TokenKind};

use super::items::{Candidates, Context, Item, ItemKind};
use super::values::{self, Quality, ValueMatch, Words};

/// The certainty of a member if the question contains only a part of its name.
pub(super) const CERTAINTY_OF_PART: f64 = 0.8;

/// The part of a question that is not split yet, and its context.
pub(super) struct Place<'p> {
    pub(super) tokens: &'p [Token],
    /// True for each token whose stem was corrected.
    pub(super) corrected: &'p [bool],
    pub(super) context: Context<'p>,
    pub(super) before: Option<&'p Item>,
    /// The last item that is not a filler word.
    pub(super) before_fillers: Option<&'p Item>,
    /// The last item that is not a word such as `is`.
    pub(super) named: Option<&'p Item>,
    /// True if the question has lower case letters.
    pub(super) is_mixed: bool,
    /// The year of the last time with a year.
    pub(super) year: Option<i16>,
    /// True after a verb with `by`, as in `paid by`.
    pub(super) is_agent: bool,
}

impl Place<'_> {
    /// Returns the value that the rest begins with, or else the item. A value takes precedence over words without a
    /// meaning, over parts of names, and over shorter items if it is complete.
    pub(super) fn value_or_item(&self) -> (usize, ItemKind) {
        let (length, kind) = self.item();
        if length == 1
            && let Some(code) = self.code(&kind)
        {
            return (1, code);
        }
        let Some(ValueMatch { length: words, values, quality }) = values::matched(self.tokens, &self.words()) else {
            return (length, kind);
        };
        let is_better = match &kind {
            ItemKind::Unknown | ItemKind::Quoted => true,
            // `paid by patients` and `not completed` name a value, if there is one.
            ItemKind::Member(candidates) if self.prefers_value(candidates) => {
                let is_plural = self.is_agent && self.context.language.has_ending(&self.tokens[0].lower);
                (quality == Quality::Equal || (is_plural && quality == Quality::Root)) && words >= length
            }
            // `how much rain fell` needs a measure.
            ItemKind::Member(_) if self.follows_how_much() => false,
            ItemKind::Member(candidates) if candidates.certainty < 1.0 => {
                quality <= Quality::Beginning && words >= length
            }
            _ => quality == Quality::Equal && words > length,
        };
        if is_better { (words, ItemKind::Value(values)) } else { (length, kind) }
    }

    /// Returns whether a name is a value and not a member. It is a value if it is the agent of a verb, as in `paid by
    /// patients`. It is also a value if it names a measure after a negation, as in `not completed`, because numbers
    /// cannot be excluded.
    fn prefers_value(&self, candidates: &Candidates) -> bool {
        let kinds = || candidates.members.iter().map(|index| self.context.vocabulary.entry(*index).kind);
        let is_excluded = self.before_fillers.is_some_and(|item| item.kind == ItemKind::Word(Meaning::Not));
        self.is_agent || (is_excluded && kinds().all(|kind| kind.is_value() && kind != MemberKind::Cube))
    }

    fn words(&self) -> Words<'_> {
        Words { values: self.context.values, language: self.context.language }
    }

    pub(super) fn stems(&self) -> Vec<&str> {
        self.tokens.iter().map(|token| &*token.stem).collect()
    }

    /// Returns the range of time that the rest begins with, unless a phrase or a name at this place is longer.
    pub(super) fn time(&self) -> Option<FoundTime> {
        let is_text = matches!(self.tokens[0].kind, TokenKind::Quoted | TokenKind::Comma);
        if is_text || self.compares() || self.follows_number() || self.has_unit() {
            return None;
        }
        use Meaning::{Comparative, Less, More, Versus};
        let before = self.before.map(|item| &item.kind);
        let is_compared = matches!(before, Some(ItemKind::Word(Versus | Comparative | More | Less)));
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
        if let Some(half) = self.half_of_unit(&stems) {
            return half;
        }
        let (phrase, member) = (self.phrase(&stems), self.member());
        let is_compared =
            matches!(self.before.map(|item| &item.kind), Some(ItemKind::Word(meaning)) if compares(*meaning));
        match first.kind {
            // `one way` may be a name.
            TokenKind::Number(_) if self.names_number(member.as_ref()) => {}
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
        if member.is_none() && self.is_filler_noun(phrase) {
            return (1, ItemKind::Word(Meaning::Verb));
        }
        match (phrase, member) {
            (Some((length, meaning)), Some((other, _)))
                if length > other || (length == other && Self::is_word(meaning)) =>
            {
                self.word(&stems, length, meaning)
            }
            (Some((length, meaning @ Meaning::Superlative(_))), Some((other, candidates)))
                if self.adds_cube(&stems[..other], length, &candidates) =>
            {
                self.word(&stems, length, meaning)
            }
            (Some((1, meaning @ (Meaning::Superlative(_) | Meaning::Aggregate(_)))), Some((other, _)))
                if self.is_longer_behind(&stems, other) =>
            {
                self.word(&stems, 1, meaning)
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
        if matches!(meaning, Meaning::AtLeast | Meaning::AtMost) && self.joins_comparison(stems, length) {
            return Some((1, Meaning::And));
        }
        // `orders by region` means the cube `orders`, although `order by region` means sorting.
        // `tests ordered by each specialty` has a verb with its agent.
        let is_each = |next: &Token| self.context.language.has(WordList::Each, &next.lower);
        if meaning == Meaning::Sort && self.tokens.get(length).is_some_and(is_each) {
            return self.context.language.phrase(&stems[..1]);
        }
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

    /// Returns whether `or` at this place joins two comparisons, as in `under 5 or over 10`, although `or over` is a
    /// phrase.
    fn joins_comparison(&self, stems: &[&str], length: usize) -> bool {
        let language = self.context.language;
        let is_joiner = matches!(language.phrase(&stems[..1]), Some((1, Meaning::And)));
        let is_number = self.tokens.get(length).is_some_and(|next| matches!(next.kind, TokenKind::Number(_)));
        let longer = stems.get(1..).and_then(|rest| language.phrase(rest));
        // `before March or after June`
        let calendar = Calendar { language, newest: self.context.newest };
        let is_time = times::range(&self.tokens[1..], calendar, None).is_some();
        is_joiner
            && (is_number
                || is_time
                || matches!(longer, Some((other, meaning)) if compares(meaning) && other >= length))
    }

    /// Returns whether the first word adds nothing: a noun after a value, as in `damaged goods`, or a verb before a
    /// comparison, as in `cost more than 20 euros`.
    fn is_filler_noun(&self, phrase: Option<(usize, Meaning)>) -> bool {
        let (language, word) = (self.context.language, &self.tokens[0].lower);
        let is_after_value = matches!(self.before.map(|item| &item.kind), Some(ItemKind::Value(_)));
        let is_thing = is_after_value && language.has(WordList::Things, word);
        phrase.is_none() && (is_thing || (language.compared_verb(word).is_some() && self.is_before_comparison()))
    }

    /// Returns whether a comparison with a number follows the first word, as in `cost more than 20` and
    /// `cost 20 or less`.
    fn is_before_comparison(&self) -> bool {
        let (stems, language) = (self.stems(), self.context.language);
        let is_number = |at: usize| self.tokens.get(at).is_some_and(|next| matches!(next.kind, TokenKind::Number(_)));
        let phrase = |at: usize| stems.get(at..).and_then(|rest| language.phrase(rest));
        if is_number(1) {
            let is_end = |at: usize| matches!(phrase(at), Some((_, Meaning::AtLeast | Meaning::AtMost)));
            return is_end(2) || is_end(3);
        }
        phrase(1).filter(|(_, meaning)| compares(*meaning)).is_some_and(|(length, _)| {
            // `more than a week`
            let is_link = self.tokens.get(1 + length).is_some_and(|next| language.is_link(&next.lower));
            is_link || is_number(1 + length)
        })
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

    /// Returns whether the previous item is a comparison. `2000` is then a number and not a year. A word such as
    /// `since` is an item of its own only if it is not part of a time.
    fn compares(&self) -> bool {
        use Meaning::{Since, Until};
        let is_compared = matches!(self.before.map(|item| &item.kind), Some(ItemKind::Word(meaning))
            if compares(*meaning) || matches!(meaning, Since | Until));
        is_compared && matches!(self.tokens[0].kind, TokenKind::Number(_) | TokenKind::Percent(_))
    }

    /// Returns whether a phrase of the language takes precedence over a member with the same name. Verbs and units of
    /// time do not; a unit has a meaning only after a number.
    fn is_word(meaning: Meaning) -> bool {
        use Meaning::{Day, Hour, Minute, Month, Quarter, RankThings, Second, Verb, Week, Weekday, Year};
        !matches!(meaning, Verb | RankThings | Weekday | Second | Minute | Hour | Day | Week | Month | Quarter | Year)
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

    /// Returns whether a number in letters is a part of a whole name.
    fn names_number(&self, member: Option<&(usize, Candidates)>) -> bool {
        let is_word = self.tokens[0].text.chars().all(char::is_alphabetic);
        is_word && member.is_some_and(|(length, found)| *length > 1 && found.certainty >= 1.0)
    }

    /// Returns whether a value or a number is the last item before words such as `is`.
    fn follows_value(&self) -> bool {
        matches!(self.named.map(|item| &item.kind), Some(ItemKind::Value(_) | ItemKind::Number(..) | ItemKind::Quoted))
    }

    /// Returns whether a word such as `plus` cannot join anything, because the word before it needs a name, as in
    /// `on the Plus plan`. It may be a value.
    fn joins_nothing(&self) -> bool {
        use Meaning::{Aggregate, Equals, From, Group, HowMany, Ignore, Not, To, Which};
        match self.before.map(|item| (&item.kind, item.text.to_lowercase())) {
            Some((ItemKind::Word(Ignore), text)) => self.context.language.is_link(&text),
            // The German `wo der Kanal Telefon ist oder …` has the verb behind the value.
            Some((ItemKind::Word(Equals), _)) if self.follows_value() => false,
            Some((ItemKind::Word(meaning), _)) => {
                // `how many and the average` joins two measures.
                let is_before_name =
                    self.tokens.get(1).is_some_and(|_| self.context.language.phrase(&self.stems()[1..]).is_none());
                is_before_name && matches!(meaning, Aggregate(_) | Equals | From | Group | HowMany | Not | To | Which)
            }
            _ => false,
        }
    }

    /// Returns whether a verb describes the rows that the next words name, as in `paid invoices`. Such a verb may be a
    /// value and is not ignored.
    fn is_attribute(&self, stems: &[&str], length: usize) -> bool {
        use Meaning::{Aggregate, And, Group, HowMany, Ignore};
        let is_start = match self.before.map(|item| &item.kind) {
            None => true,
            Some(ItemKind::Word(meaning)) => matches!(meaning, Aggregate(_) | And | Group | HowMany | Ignore),
            _ => false,
        };
        let vocabulary = self.context.vocabulary;
        let is_cube = |index: &usize| vocabulary.entry(*index).kind == MemberKind::Cube;
        let is_participle = self.context.language.is_participle(&self.tokens[0].lower);
        let behind = || vocabulary.exact(stems.get(length..)?);
        is_start && is_participle && behind().is_some_and(|found| found.members.iter().any(is_cube))
    }

    fn word(&self, stems: &[&str], length: usize, meaning: Meaning) -> (usize, ItemKind) {
        if (meaning == Meaning::Verb && self.is_attribute(stems, length))
            || (meaning == Meaning::And && self.joins_nothing())
        {
            return (length, ItemKind::Unknown);
        }
        let is_group = matches!(self.context.language.phrase(&stems[..1]), Some((_, Meaning::Group)));
        if let Some(step) = times::step(meaning) {
            return (length, ItemKind::Step(step, is_group));
        }
        // `fastest first` and `worst first` order all rows.
        let is_first = self.is_first(stems, length);
        let Meaning::Superlative(index) = meaning else {
            let is_rated = is_first && matches!(meaning, Meaning::Best | Meaning::Worst);
            return (length + usize::from(is_rated), ItemKind::Word(meaning));
        };
        let members =
            self.member().filter(|(of_member, candidates)| *of_member == length && candidates.certainty >= 1.0);
        let kind = ItemKind::Superlative(index, is_first, members.map(|(_, candidates)| candidates));
        (length + usize::from(is_first), kind)
    }

    /// Returns whether the word at a place states which end of the order comes first. In `best first quarter`, it
    /// counts periods.
    fn is_first(&self, stems: &[&str], at: usize) -> bool {
        let language = self.context.language;
        let is_first = self.tokens.get(at).is_some_and(|next| language.has(WordList::First, &next.lower));
        let behind = stems.get(at + 1..).and_then(|rest| language.phrase(rest));
        let is_period = behind.is_some_and(|(_, meaning)| meaning == Meaning::Half || times::unit(meaning).is_some());
        is_first && !is_period
    }
}

/// Returns whether a phrase of this meaning takes a number, such as `more than`.
pub(super) fn compares(meaning: Meaning) -> bool {
    use Meaning::{After, AtLeast, AtMost, Before, Between, Bottom, Less, More, Top};
    matches!(meaning, More | AtLeast | Less | AtMost | Between | Before | After | Top | Bottom)
}
