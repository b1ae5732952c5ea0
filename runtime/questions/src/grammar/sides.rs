//! Marks the two sides of a comparison in words, as in `more orders in May than in April`, and exceptions, as in `all
//! airlines but United`.
//!
//! In: tokens. Out: tokens without the opening word, and with a word such as `vs` between the sides; and with a word
//! such as `except` before an exception.

use crate::language::{Language, Meaning, WordList};
use crate::times;
use crate::token::{Token, TokenKind};

/// Returns the tokens of a comparison with `vs` between its sides; or the tokens as they are, if they contain none.
pub(super) fn marked(mut tokens: Vec<Token>, language: &Language) -> Vec<Token> {
    let Some((opener, than)) = sides(&tokens, language) else { return tokens };
    let Some(versus) = language.word_for(Meaning::Versus) else { return tokens };
    // `than the month before` is a phrase of its own.
    let stems: Vec<&str> = tokens[than..].iter().map(|token| &*token.stem).collect();
    if language.phrase(&stems).is_none_or(|(length, _)| length == 1) {
        tokens[than].stem = versus.to_owned();
    }
    tokens.remove(opener);
    tokens
}

/// Returns the tokens with a word such as `except` for each word such as `but` that excludes what follows, as in
/// `all airlines but United`. Between a word for all things and `but`, there is at most a short name.
pub(super) fn with_exceptions(mut tokens: Vec<Token>, language: &Language) -> Vec<Token> {
    let Some(except) = language.word_for(Meaning::Not) else { return tokens };
    let has = |list: WordList, token: &Token| token.kind == TokenKind::Word && language.has(list, &token.lower);
    for at in 0..tokens.len() {
        let names = tokens[..at].iter().rev().take(MAX_NAME).take_while(|token| token.kind == TokenKind::Word);
        let is_exception = has(WordList::But, &tokens[at]) && names.skip(1).any(|token| has(WordList::All, token));
        let is_last = at + 1 == tokens.len();
        let is_phrase = || {
            let stems: Vec<&str> = tokens[at..].iter().map(|token| &*token.stem).collect();
            language.phrase(&stems).is_some()
        };
        if is_exception && !is_last && !is_phrase() {
            tokens[at].stem = except.to_owned();
        }
    }
    tokens
}

/// The largest number of words between `all` and `but`, with `all`.
const MAX_NAME: usize = 4;

/// Returns the places of the opening word and of the word between the sides.
fn sides(tokens: &[Token], language: &Language) -> Option<(usize, usize)> {
    let stems: Vec<&str> = tokens.iter().map(|token| &*token.stem).collect();
    let is_opener = |at: &usize| {
        let is_single = language.phrase(&stems[*at..]).is_none_or(|(length, _)| length == 1);
        tokens[*at].kind == TokenKind::Word && is_single && language.has(WordList::Openers, &tokens[*at].lower)
    };
    let is_between = |at: &usize| {
        // `more orders than 1000` compares a number.
        let is_side = tokens.get(at + 1).is_some_and(|next| match next.kind {
            TokenKind::Number(_) | TokenKind::Percent(_) => times::is_word(&next.lower),
            _ => true,
        });
        // `more than` is a phrase of its own.
        let covers = |start: usize| language.phrase(&stems[start..]).is_some_and(|(length, _)| start + length > *at);
        language.has(WordList::Than, &tokens[*at].lower) && is_side && !(0..*at).any(covers)
    };
    let than = (2..tokens.len()).find(is_between)?;
    let opener = (0..than - 1).rev().find(is_opener)?;
    Some((opener, than))
}
