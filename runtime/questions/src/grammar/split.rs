//! Splits a question into items, from left to right. Typing mistakes are corrected first.

use crate::language::{Language, Meaning};
use crate::times::{self, FoundTime};
use crate::token::{Token, TokenKind};

use super::codes;
use super::items::{Context, Item, ItemKind, TimeItem};
use super::place::Place;
use super::values;

/// Splits the tokens into items.
pub(super) fn items(tokens: &[Token], context: Context<'_>) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::new();
    let (tokens, corrected) = corrected(&compounds(tokens, context), context);
    let is_mixed = codes::is_mixed_question(&tokens);
    let (mut at, mut year) = (0, None);
    while at < tokens.len() {
        let before = items.last();
        let before_fillers = items.iter().rev().find(|item| item.kind != ItemKind::Word(Meaning::Ignore));
        let is_agent = matches!(&items[..], [.., verb, by]
            if verb.kind == ItemKind::Word(Meaning::Verb) && by.kind == ItemKind::Word(Meaning::Group));
        let place = Place {
            tokens: &tokens[at..],
            corrected: &corrected[at..],
            context,
            before,
            before_fillers,
            named: items.iter().rev().find(|item| item.kind != ItemKind::Word(Meaning::Equals)),
            is_mixed,
            year,
            is_agent,
        };
        let (length, kind) = match place.time() {
            Some(FoundTime { length, range, days, year: own, is_dated, is_previous, ends }) => {
                year = own.or(year);
                (length, ItemKind::Time(TimeItem { range, days, is_dated, is_previous, ends }))
            }
            None => place.value_or_item(),
        };
        let words = &tokens[at..at + length];
        let text = words.iter().map(|token| &*token.text).filter(|text| !text.is_empty());
        let text = text.collect::<Vec<_>>().join(" ");
        let is_plural = words.last().is_some_and(|token| context.language.has_ending(&token.lower));
        let is_corrected = corrected[at..at + length].contains(&true);
        items.push(Item { text, kind, is_plural, is_corrected });
        at += length;
    }
    items
}

/// Joins two words that are one word of a name, as `pick-up` is for `pickup branch`.
fn compounds(tokens: &[Token], context: Context<'_>) -> Vec<Token> {
    let Context { vocabulary, language, .. } = context;
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let both = joined.last().filter(|last| last.kind == TokenKind::Word && token.kind == TokenKind::Word);
        let both = both.filter(|last| !vocabulary.has_stem(&last.stem)).map(|last| {
            let lower = format!("{}{}", last.lower, token.lower);
            let text = format!("{}{}", last.text, token.text);
            Token { stem: language.stem(&lower), lower, text, kind: TokenKind::Word }
        });
        match both.filter(|both| vocabulary.has_stem(&both.stem)) {
            Some(both) => {
                joined.pop();
                joined.push(both);
            }
            None => joined.push(token.clone()),
        }
    }
    joined
}

/// Corrects typing mistakes in the stems of tokens. Also returns for each token whether it was corrected.
fn corrected(tokens: &[Token], context: Context<'_>) -> (Vec<Token>, Vec<bool>) {
    let Context { vocabulary, language, .. } = context;
    let of = |(at, token): (usize, &Token)| {
        let own = (token.clone(), false);
        // A word in capitals is a code, which is not corrected.
        let is_code = token.text.chars().all(|c| c.is_uppercase() || c.is_numeric());
        let is_unit = vocabulary.unit(&token.stem).is_some();
        if token.kind != TokenKind::Word || is_code || is_unit || vocabulary.has_stem(&token.stem) {
            return own;
        }
        // A word of a value has no typing mistake.
        if values::has_word(&context.values.values, &token.lower) {
            return own;
        }
        let stems: Vec<&str> = tokens[at..].iter().map(|token| &*token.stem).collect();
        let is_known = language.phrase(&stems).is_some() || language.has_word(&token.stem);
        if is_known || times::is_word(&token.lower) || language.ordinal(&token.lower).is_some() {
            return own;
        }
        // `wich airline`
        let which = || language.corrected_short(&token.stem, |own| own == Meaning::Which).filter(|_| at == 0);
        let known = time_word(tokens, at, language).or_else(which);
        let known = known.or_else(|| vocabulary.corrected(&token.stem)).or_else(|| language.corrected(&token.stem));
        let known = known.or_else(|| vocabulary.corrected_form(&token.lower, language));
        known.map_or(own, |known| (Token { stem: known.to_owned(), ..token.clone() }, true))
    };
    tokens.iter().enumerate().map(of).unzip()
}

/// Returns the correction of a word that is misspelled as a part of a time, as in `last mnth`, `lst week` and `tody`.
fn time_word<'l>(tokens: &[Token], at: usize, language: &'l Language) -> Option<&'l str> {
    use Meaning::{Group, Last, Previous, This, Today, Which, Yesterday};
    let is_unit = |meaning: Meaning| times::unit(meaning).is_some() || meaning == Meaning::Hour;
    let starts = |meaning: Meaning| matches!(meaning, Last | Previous | This);
    let stem = &*tokens[at].stem;
    let meaning_of = |token: &Token| match language.phrase(&[&token.stem]) {
        Some((1, meaning)) => Some(meaning),
        Some(_) => None,
        // The word before or behind may be misspelled too.
        None => language
            .corrected_short(&token.stem, |own| starts(own) || is_unit(own))
            .and_then(|stem| Some(language.phrase(&[stem])?.1)),
    };
    let before = at.checked_sub(1).map(|before| &tokens[before]);
    let announces_unit = before.is_some_and(|before| {
        let is_number =
            matches!(before.kind, TokenKind::Number(_)) && at > 1 && meaning_of(&tokens[at - 2]).is_some_and(starts);
        is_number || meaning_of(before).is_some_and(|own| starts(own) || matches!(own, Group | Which))
    });
    if announces_unit && let Some(unit) = language.corrected_short(stem, is_unit) {
        return Some(unit);
    }
    let behind = tokens[at + 1..].iter().find(|token| !matches!(token.kind, TokenKind::Number(_)));
    if behind.and_then(meaning_of).is_some_and(is_unit)
        && let Some(start) = language.corrected_short(stem, starts)
    {
        return Some(start);
    }
    language.corrected_short(stem, |own| matches!(own, Today | Yesterday))
}
