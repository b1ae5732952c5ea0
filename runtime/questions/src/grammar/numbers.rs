//! Finds the numbers of a question with their units.

use crate::draft::Unit;
use crate::language::Meaning;
use crate::token::{Token, TokenKind};

use super::items::ItemKind;
use super::place::{Place, compares};

/// The number of days of a week.
const DAYS_OF_WEEK: f64 = 7.0;

impl Place<'_> {
    /// Returns whether a unit of members follows the next number. `of 2000 miles` contains no year.
    pub(super) fn has_unit(&self) -> bool {
        let is_filler = |token: &&Token| {
            matches!(self.context.language.phrase(&[&token.stem]), Some((1, Meaning::Ignore | Meaning::From)))
        };
        let skipped = self.tokens.iter().take_while(is_filler).count();
        let Some(TokenKind::Number(number)) = self.tokens.get(skipped).map(|token| token.kind) else { return false };
        let rest = Place { tokens: &self.tokens[skipped..], corrected: &self.corrected[skipped..], ..*self };
        // `2013 year over year`
        if self.context.language.phrase(&rest.stems()[1..]).is_some() {
            return false;
        }
        matches!(rest.number(number), (_, ItemKind::Number(_, Some(Unit::Named(_)))))
    }

    pub(super) fn number(&self, number: f64) -> (usize, ItemKind) {
        let stems: Vec<&str> = self.tokens[1..].iter().map(|token| &*token.stem).collect();
        let phrase = self.context.language.phrase(&stems);
        if let Some((length, Meaning::Week)) = phrase
            && self.is_compared_number(&stems[length..])
        {
            return (1 + length, ItemKind::Number(number * DAYS_OF_WEEK, Some(Unit::Days)));
        }
        let unit_of_time = phrase.and_then(|(length, meaning)| Some((length, unit(meaning)?)));
        // `15 minutes late`, although `minutes late` is a phrase
        let first = || self.context.language.phrase(stems.get(..1)?).and_then(|(_, meaning)| Some((1, unit(meaning)?)));
        let unit_of_time = unit_of_time.or_else(first);
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

    /// Returns half a unit of time, as in `half an hour`.
    pub(super) fn half_of_unit(&self, stems: &[&str]) -> Option<(usize, ItemKind)> {
        let (length, Meaning::Half) = self.context.language.phrase(stems)? else { return None };
        let links =
            self.tokens[length..].iter().take_while(|token| self.context.language.is_link(&token.lower)).count();
        let at = length + links;
        let (inner, meaning) = self.context.language.phrase(stems.get(at..)?)?;
        let unit = unit(meaning).filter(|unit| links > 0 && unit.seconds().is_some())?;
        Some((at + inner, ItemKind::Number(0.5, Some(unit))))
    }

    /// Returns whether a number is compared, as in `more than 2 weeks` and `2 weeks or more`.
    fn is_compared_number(&self, behind: &[&str]) -> bool {
        use Meaning::{AtLeast, AtMost, Bottom, Top};
        let before = self.before.map(|item| &item.kind);
        let is_behind =
            matches!(before, Some(ItemKind::Word(meaning)) if compares(*meaning) && !matches!(meaning, Top | Bottom));
        let is_before = matches!(self.context.language.phrase(behind), Some((_, AtLeast | AtMost)));
        is_behind || is_before
    }
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
