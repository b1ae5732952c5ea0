//! Joins numbers with their units: `2h`, `1h30`, `1 hour 30 minutes`, `1.5 million`, `5-star`.
//!
//! In: tokens. Out: tokens in which a number is followed by the word of its unit.

use crate::language::{Language, Meaning};
use crate::members::Vocabulary;
use crate::token::{Token, TokenKind, is_currency};

use super::place::compares;

/// The names of the members, and the language of the question.
#[derive(Clone, Copy)]
struct Names<'n> {
    vocabulary: &'n Vocabulary,
    language: &'n Language,
}

/// Returns the tokens with a word for each unit, and with one number for each sum of units.
pub(super) fn joined(tokens: Vec<Token>, vocabulary: &Vocabulary, language: &Language) -> Vec<Token> {
    let names = Names { vocabulary, language };
    let mut found: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let split = names.hyphenated(&token).or_else(|| names.compact(&token, found.last()));
        found.extend(split.unwrap_or_else(|| vec![token]));
    }
    names.summed(names.named(prefixed(names.scaled(found))))
}

impl Names<'_> {
    /// Splits words such as `5-star` and `30-minute`.
    fn hyphenated(self, token: &Token) -> Option<Vec<Token>> {
        let (digits, unit) = token.text.split_once('-').filter(|_| token.kind == TokenKind::Word)?;
        let number = digits.parse::<f64>().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))?;
        let stem = self.language.stem(&unit.to_lowercase());
        let is_of_time = seconds(self.language, &stem).is_some_and(|seconds| seconds <= DAY);
        let is_unit = is_of_time || self.vocabulary.unit(&stem).is_some();
        is_unit
            .then(|| vec![token_of(digits, digits, TokenKind::Number(number)), token_of(unit, &stem, TokenKind::Word)])
    }

    /// Splits words such as `2h`, `90min` and `1h30`. A single letter other than `h` is a unit only after a comparison
    /// or a word such as `last`.
    fn compact(self, token: &Token, before: Option<&Token>) -> Option<Vec<Token>> {
        if token.kind != TokenKind::Word || self.vocabulary.has_stem(&token.stem) {
            return None;
        }
        let parts = parts_of(&token.lower)?;
        if let [(digits, unit)] = parts[..] {
            let is_known = self.vocabulary.unit(&self.language.stem(unit)).is_some();
            let is_letter = unit.chars().count() == 1 && unit != "h" && !is_known;
            if unit.is_empty() || (is_letter && !before.is_some_and(|before| self.announces_number(before))) {
                return None;
            }
            let stem = self.unit_stem(unit)?;
            let number = TokenKind::Number(digits.parse().ok()?);
            return Some(vec![token_of(digits, digits, number), token_of(unit, &stem, TokenKind::Word)]);
        }
        let (mut total, mut smallest) = (0.0, (f64::INFINITY, String::new()));
        for (digits, unit) in parts {
            let stem = match (unit, smallest.0) {
                ("" | "m", HOUR) => self.stem_of(Meaning::Minute)?,
                ("" | "s", MINUTE) => self.stem_of(Meaning::Second)?,
                _ => self.unit_stem(unit)?,
            };
            let own = seconds(self.language, &stem).filter(|own| *own < smallest.0)?;
            total += digits.parse::<f64>().ok()? * own;
            smallest = (own, stem);
        }
        let (seconds, stem) = smallest;
        // The number has the text of the whole word.
        let unit = Token { text: String::new(), ..token_of(&stem, &stem, TokenKind::Word) };
        Some(vec![token_of(&token.text, &token.stem, TokenKind::Number(total / seconds)), unit])
    }

    fn unit_stem(self, unit: &str) -> Option<String> {
        let own = self.language.stem(unit);
        if self.vocabulary.unit(&own).is_some() {
            return Some(own);
        }
        let suffix = self.language.unit_suffix(unit).map(str::to_owned);
        let stem = suffix.unwrap_or_else(|| self.language.stem(unit));
        let is_unit = seconds(self.language, &stem).is_some()
            || matches!(self.language.phrase(&[&stem]), Some((1, Meaning::Month | Meaning::Quarter | Meaning::Year)));
        is_unit.then_some(stem)
    }

    fn stem_of(self, meaning: Meaning) -> Option<String> {
        self.language.word_for(meaning).map(str::to_owned)
    }

    /// Returns whether a number is expected behind a word, as behind `over` and `last`.
    fn announces_number(self, before: &Token) -> bool {
        use Meaning::{Bottom, Last, Previous, Top};
        matches!(self.language.phrase(&[&before.stem]), Some((_, meaning))
            if matches!(meaning, Last | Previous) || (compares(meaning) && !matches!(meaning, Top | Bottom)))
            || self.language.has(crate::language::WordList::Than, &before.lower)
    }

    /// Multiplies numbers with the words behind them, as in `1.5 million`.
    fn scaled(self, tokens: Vec<Token>) -> Vec<Token> {
        let mut found: Vec<Token> = Vec::with_capacity(tokens.len());
        for token in tokens {
            let scale = self.language.scale(&token.lower).filter(|_| !self.vocabulary.has_stem(&token.stem));
            match (found.last_mut(), scale) {
                (Some(Token { text, kind: TokenKind::Number(number), .. }), Some(scale)) => {
                    *number *= scale;
                    text.push(' ');
                    text.push_str(&token.text);
                }
                _ => found.push(token),
            }
        }
        found
    }

    /// Gives abbreviations of units behind numbers the stem of the unit, as in `90 min`.
    fn named(self, mut tokens: Vec<Token>) -> Vec<Token> {
        for at in 1..tokens.len() {
            let is_number = matches!(tokens[at - 1].kind, TokenKind::Number(_));
            // `top 5 min temperatures` names a minimum.
            let is_ranked = at > 1
                && matches!(self.language.phrase(&[&tokens[at - 2].stem]), Some((1, Meaning::Top | Meaning::Bottom)));
            let token = &mut tokens[at];
            if is_number && !is_ranked && token.kind == TokenKind::Word && self.vocabulary.unit(&token.stem).is_none() {
                let stem = self.language.unit_suffix(&token.lower).filter(|_| !token.text.is_empty());
                token.stem = stem.map_or_else(|| token.stem.clone(), str::to_owned);
            }
        }
        tokens
    }

    /// Adds up numbers with units in descending order, as in `1 hour and 30 minutes`.
    fn summed(self, tokens: Vec<Token>) -> Vec<Token> {
        let (mut found, mut at) = (Vec::with_capacity(tokens.len()), 0);
        while at < tokens.len() {
            let is_between =
                at > 0 && matches!(self.language.phrase(&[&tokens[at - 1].stem]), Some((1, Meaning::Between)));
            match self.sum(&tokens[at..], is_between) {
                Some((number, unit, length)) => {
                    found.extend([number, unit]);
                    at += length;
                }
                None => {
                    found.push(tokens[at].clone());
                    at += 1;
                }
            }
        }
        found
    }

    /// Returns the sum that the tokens begin with: its number, its unit, and the number of tokens.
    fn sum(self, tokens: &[Token], is_between: bool) -> Option<(Token, Token, usize)> {
        let [Token { kind: TokenKind::Number(large), .. }, first, rest @ ..] = tokens else { return None };
        let of_first = seconds(self.language, &first.stem).filter(|of| *of <= DAY)?;
        let is_and = |token: &Token| matches!(self.language.phrase(&[&token.stem]), Some((1, Meaning::And)));
        let and = usize::from(
            !is_between && rest.first().is_some_and(|token| token.kind == TokenKind::Word && is_and(token)),
        );
        let Token { text, kind: TokenKind::Number(small), .. } = rest.get(and)? else { return None };
        // `1h 30m` has minutes, although `30m` alone is a number of millions.
        let is_minutes = of_first == HOUR && text.ends_with('m') && and == 0;
        let (small, stem, length) = match is_minutes {
            true => (text.trim_end_matches('m').parse().ok()?, self.stem_of(Meaning::Minute)?, 3),
            false => (*small, rest.get(and + 1)?.stem.clone(), 4 + and),
        };
        let of_second = seconds(self.language, &stem).filter(|of| *of < of_first)?;
        let words: Vec<&str> =
            tokens[..length].iter().map(|token| &*token.text).filter(|text| !text.is_empty()).collect();
        let text = words.join(" ");
        let number = token_of(&text, &text, TokenKind::Number(large * of_first / of_second + small));
        Some((number, Token { text: String::new(), ..token_of(&stem, &stem, TokenKind::Word) }, length))
    }
}

/// Moves the sign of a currency behind its number: `€10` is `10 €`.
fn prefixed(mut tokens: Vec<Token>) -> Vec<Token> {
    let is_number = |token: &Token| matches!(token.kind, TokenKind::Number(_));
    for at in 1..tokens.len() {
        let is_sign = !tokens[at - 1].text.is_empty() && tokens[at - 1].text.chars().all(is_currency);
        let is_free = at < 2 || !is_number(&tokens[at - 2]);
        if is_sign && is_free && is_number(&tokens[at]) {
            tokens.swap(at - 1, at);
        }
    }
    tokens
}

const MINUTE: f64 = 60.0;
const HOUR: f64 = 3_600.0;
const DAY: f64 = 86_400.0;

/// Returns the length of the unit with a stem, up to weeks, in seconds.
fn seconds(language: &Language, stem: &str) -> Option<f64> {
    Some(match language.phrase(&[stem])? {
        (1, Meaning::Second) => 1.0,
        (1, Meaning::Minute) => MINUTE,
        (1, Meaning::Hour) => HOUR,
        (1, Meaning::Day) => DAY,
        (1, Meaning::Week) => 7.0 * DAY,
        _ => return None,
    })
}

/// Splits `1h30min` into digits with the letters behind them. Returns `None` if the word has other characters.
fn parts_of(word: &str) -> Option<Vec<(&str, &str)>> {
    let (mut rest, mut parts) = (word, Vec::new());
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let unit = rest[digits..].find(|c: char| !c.is_alphabetic()).map_or(rest.len(), |unit| digits + unit);
        let (number, letters) = (&rest[..digits], &rest[digits..unit]);
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        parts.push((number, letters));
        rest = &rest[unit..];
    }
    (!parts.is_empty()).then_some(parts)
}

fn token_of(text: &str, stem: &str, kind: TokenKind) -> Token {
    Token { text: text.to_owned(), lower: text.to_lowercase(), stem: stem.to_owned(), kind }
}
