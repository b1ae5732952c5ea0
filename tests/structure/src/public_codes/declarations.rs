//! The errors that other errors contain, from the declarations of types.

use std::collections::BTreeSet;

use crate::outline::close;
use crate::tokens::Token;

/// Returns the types in the fields of each error, each with the error and its variant. A struct has the variant ``.
pub(super) fn inner_types(tokens: &[Token<'_>]) -> Vec<(String, (String, String))> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let (Token::Word(keyword @ ("enum" | "struct")), Some(Token::Word(name))) = (tokens[at], tokens.get(at + 1))
        else {
            continue;
        };
        let open = tokens[at..].iter().position(|token| matches!(token, Token::Symbol('{' | '(' | ';')));
        let Some(open) = open.map(|offset| at + offset).filter(|open| tokens[*open] != Token::Symbol(';')) else {
            continue;
        };
        let body = &tokens[open + 1..close(tokens, open) - 1];
        let mut add = |variant: &str, fields: &[Token<'_>]| {
            let types = fields.iter().filter_map(|token| match token {
                Token::Word(word) if word.starts_with(char::is_uppercase) => Some((*word).to_owned()),
                _ => None,
            });
            found.extend(types.map(|inner| (inner, ((*name).to_owned(), variant.to_owned()))));
        };
        match keyword {
            "struct" => add("", body),
            _ => variants(body).for_each(|(variant, fields)| add(variant, fields)),
        }
    }
    found
}

/// Returns the types with an `#[error]` attribute on themselves or on a variant.
pub(super) fn types_with_messages(tokens: &[Token<'_>]) -> BTreeSet<String> {
    let is_error = |part: &[Token<'_>]| part == [Token::Symbol('#'), Token::Symbol('['), Token::Word("error")];
    let places = tokens.windows(3).enumerate().filter(|(_, part)| is_error(part)).map(|(at, _)| at);
    let declared = |part: &[Token<'_>]| match part {
        [Token::Word("enum" | "struct"), Token::Word(name)] => Some((*name).to_owned()),
        _ => None,
    };
    let mut found = BTreeSet::new();
    for at in places {
        // The next item is a struct, or a variant of the enumeration before it.
        let behind = &tokens[close(tokens, at + 1)..];
        let end = behind.iter().position(|token| matches!(token, Token::Symbol('{' | '(' | ';' | ','))).unwrap_or(0);
        let own = behind[..end].windows(2).find_map(declared);
        found.extend(own.or_else(|| tokens[..at].windows(2).rev().find_map(declared)));
    }
    found
}

/// Returns the variants of an enumeration with the tokens of their fields.
fn variants<'t, 's>(body: &'t [Token<'s>]) -> impl Iterator<Item = (&'s str, &'t [Token<'s>])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < body.len() {
            let here = at;
            match body[here] {
                Token::Word(name) if name.starts_with(char::is_uppercase) => {
                    let has_fields = matches!(body.get(here + 1), Some(Token::Symbol('{' | '(')));
                    at = if has_fields { close(body, here + 1) } else { here + 1 };
                    return Some((name, &body[here + 1..at]));
                }
                Token::Symbol('[') => at = close(body, here),
                _ => at += 1,
            }
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::scan;

    #[test]
    fn fields_name_the_errors_that_they_contain() {
        let source = "enum AError { #[error(\"x {Y}\")] B { c: CProblem }, D, } struct EError { f: FProblem }";
        let tokens: Vec<_> = scan(source).into_iter().map(|located| located.token).collect();
        let found: Vec<_> = inner_types(&tokens).into_iter().map(|(i, (e, v))| format!("{i} in {e}::{v}")).collect();
        assert_eq!(found, ["CProblem in AError::B", "FProblem in EError::"]);
    }
}
