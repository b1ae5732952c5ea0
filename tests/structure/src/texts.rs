//! Collects the texts that the program shows to users, so that they can be read in one sitting.
//!
//! In: a source file and the public codes. Out: each string literal of several words, with the code that users see
//! beside it. Not here: texts of tests and of broken invariants, SQL, and types. A literal that is not a sentence is not
//! found.

use std::ops::Range;

use crate::public_codes::{CodeKind, PublicCodes};
use crate::tokens::{Located, Token, scan, without_tests};

/// A message or label that users see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The public code that the source names near the text, or the class of an error of a client package.
    pub code: Option<String>,
    pub text: String,
}

/// Calls whose texts only developers see, because they state invariants.
const INVARIANTS: [&str; 6] = ["expect", "panic", "unreachable", "assert", "assert_eq", "debug_assert"];
/// Attributes whose texts are not messages. The help of the command line is listed on its own page.
const ATTRIBUTES: [&str; 4] = ["allow", "expect", "arg", "command"];
/// The number of tokens before and after a literal in which its code is searched for.
const WINDOW: usize = 60;

/// Returns all texts of a source outside its tests, in order. `kind` is the kind of `Code::…` in the source.
pub fn texts(source: &str, kind: CodeKind, codes: &PublicCodes) -> Vec<Text> {
    let scanned = scan(source);
    let tokens: Vec<Token<'_>> = without_tests(&scanned)
        .into_iter()
        .map(|Located { token, .. }| token)
        .filter(|token| !matches!(token, Token::Doc(_) | Token::Comment(_)))
        .collect();
    let mut texts = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Token::Text(literal) = token else { continue };
        let text = joined(literal);
        if is_sentence(&text) && is_for_people(&tokens, at) {
            texts.push(Text { code: code(&tokens, at, kind, codes), text });
        }
    }
    texts
}

/// Joins the lines of a literal that is continued with backslashes.
fn joined(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |text, line| text + line.trim_start())
}

/// Returns whether a literal has two words in lower case and is neither SQL nor code.
pub(crate) fn is_sentence(text: &str) -> bool {
    let is_word = |word: &&str| {
        let word = word.trim_matches(|c: char| c.is_ascii_punctuation());
        word.len() > 1 && word.chars().all(|c| c.is_ascii_lowercase() || c == '\'' || c == '-')
    };
    let is_statement = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "ALTER ", "DROP ", "WITH ", "SET "]
        .iter()
        .any(|start| text.trim_start().starts_with(start));
    text.split_whitespace().filter(is_word).count() >= 2 && !is_statement
}

fn is_for_people(tokens: &[Token<'_>], at: usize) -> bool {
    if at >= 2 && tokens[at - 1] == Token::Symbol('=') && tokens[at - 2] == Token::Word("reason") {
        return false;
    }
    if let Some(attribute) = attribute(tokens, at) {
        return !ATTRIBUTES.contains(&attribute);
    }
    !call(tokens, at).is_some_and(|name| INVARIANTS.contains(&name))
}

/// Returns the name of the attribute that contains a token.
fn attribute<'s>(tokens: &[Token<'s>], at: usize) -> Option<&'s str> {
    let start = (at.saturating_sub(WINDOW)..at)
        .rev()
        .find(|index| tokens[*index] == Token::Symbol('#') && tokens.get(index + 1) == Some(&Token::Symbol('[')))?;
    let is_closed = tokens[start..at].contains(&Token::Symbol(']'));
    match tokens.get(start + 2) {
        Some(Token::Word(name)) if !is_closed => Some(name),
        _ => None,
    }
}

/// Returns the function or macro in whose parentheses a token is.
fn call<'s>(tokens: &[Token<'s>], at: usize) -> Option<&'s str> {
    let mut depth = 0_usize;
    for index in (at.saturating_sub(WINDOW)..at).rev() {
        match tokens[index] {
            Token::Symbol(')' | ']' | '}') => depth += 1,
            Token::Symbol('(') if depth == 0 => {
                let before = if tokens.get(index.checked_sub(1)?) == Some(&Token::Symbol('!')) { 2 } else { 1 };
                return match tokens.get(index.checked_sub(before)?) {
                    Some(Token::Word(name)) => Some(name),
                    _ => None,
                };
            }
            Token::Symbol('{' | ';') if depth == 0 => return None,
            Token::Symbol('(' | '[' | '{') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Returns the code of the variant after an `#[error]` attribute, else of the `Code::…` of the statement, else of the
/// variant of the match arm.
fn code(tokens: &[Token<'_>], at: usize, kind: CodeKind, codes: &PublicCodes) -> Option<String> {
    if attribute(tokens, at).is_some() {
        let (kind, variant) = declared_variant(tokens, at)?;
        return codes.of_error(kind, variant);
    }
    let is_end = |token: &Token<'_>| matches!(token, Token::Symbol(';' | '{' | '}'));
    let behind = tokens[at..].iter().take(WINDOW).take_while(|token| !is_end(token)).count();
    let before = tokens[..at].iter().rev().take(WINDOW).take_while(|token| !is_end(token)).count();
    let named = named(tokens, at - before..at + behind).and_then(|variant| codes.of_code(variant, kind));
    named.or_else(|| arm(tokens, at).and_then(|(kind, variant)| codes.of_error(kind, variant)))
}

/// Returns the enumeration and the variant that the attribute at `at` describes; `None` for a struct.
fn declared_variant<'s>(tokens: &[Token<'s>], at: usize) -> Option<(&'s str, &'s str)> {
    let end = at + tokens[at..].iter().position(|token| *token == Token::Symbol(']'))?;
    let (offset, variant) = tokens[end..].iter().enumerate().find_map(|(offset, token)| match token {
        Token::Word(name) if name.starts_with(char::is_uppercase) => Some((offset, *name)),
        _ => None,
    })?;
    if tokens[end..end + offset].contains(&Token::Word("struct")) {
        return None;
    }
    let kind = tokens[..at].windows(2).rev().find_map(|part| match part {
        [Token::Word("enum"), Token::Word(name)] => Some(*name),
        _ => None,
    })?;
    Some((kind, variant))
}

/// Returns the variant of the first `Code::…` in a range, unless it is an item of a list.
fn named<'s>(tokens: &[Token<'s>], range: Range<usize>) -> Option<&'s str> {
    range.clone().zip(tokens[range].windows(4)).find_map(|(at, part)| match part {
        [Token::Word("Code"), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)] if !is_in_list(tokens, at) => {
            Some(*name)
        }
        _ => None,
    })
}

/// Returns whether the innermost open bracket before a token is a square bracket.
fn is_in_list(tokens: &[Token<'_>], at: usize) -> bool {
    let mut depth = 0_usize;
    for token in tokens[..at].iter().rev().take(WINDOW) {
        match token {
            Token::Symbol(')' | ']' | '}') => depth += 1,
            Token::Symbol(open @ ('(' | '[' | '{')) if depth == 0 => return *open == '[',
            Token::Symbol('(' | '[' | '{') => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Returns the last `Kind::Variant` in the pattern of the match arm that contains a token.
fn arm<'s>(tokens: &[Token<'s>], at: usize) -> Option<(&'s str, &'s str)> {
    let window = &tokens[at.saturating_sub(WINDOW)..at];
    let arrow = window.windows(2).rposition(|part| part == [Token::Symbol('='), Token::Symbol('>')])?;
    window[..arrow].windows(4).rev().find_map(|part| match part {
        [Token::Word(kind), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)]
            if name.starts_with(char::is_uppercase) =>
        {
            Some((*kind, *name))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(String, String)> {
        let mut codes = PublicCodes::declared("NotFound \"NOT_FOUND\" 404", "NoCubes = \"no-cubes\",");
        codes.add_matches("match error { QueryError::UnknownCube { .. } => new(Code::NotFound, message) }");
        texts(source, CodeKind::Diagnostic, &codes)
            .into_iter()
            .map(|text| (text.code.unwrap_or_default(), text.text))
            .collect()
    }

    fn one(code: &str, text: &str) -> Vec<(String, String)> {
        vec![(code.to_owned(), text.to_owned())]
    }

    #[test]
    fn messages_have_the_public_code_of_their_statement_or_variant() {
        assert_eq!(
            found("Diagnostic::error(Code::NoCubes, \"the project has no cubes\")"),
            one("no-cubes", "the project has no cubes")
        );
        assert_eq!(
            found("enum QueryError { #[error(\"unknown cube `{name}` here\")]\nUnknownCube { name: String }, }"),
            one("NOT_FOUND", "unknown cube `{name}` here")
        );
        assert_eq!(
            found("match x { QueryError::UnknownCube { name } => format!(\"write the name of {name}\") }"),
            one("NOT_FOUND", "write the name of {name}")
        );
        assert_eq!(found("match x { Problem::Deep { n } => \"this is too deep\" }"), one("", "this is too deep"));
        assert_eq!(found("doc(&[Code::NoCubes], \"the cubes of it\")"), one("", "the cubes of it"));
        assert_eq!(found("let text = \"several words \\\n    on lines\";"), one("", "several words on lines"));
    }

    #[test]
    fn other_literals_are_left_out() {
        for source in [
            "x.expect(\"the map has the key\")",
            "#[allow(x, reason = \"a tool prints its progress\")]",
            "#[arg(help = \"the help of an argument\")]",
            "let sql = \"SELECT count(*) from some table\";",
            "let name = \"snake_case\"; let event = \"access denied\".len(); // a comment of words"
                .split(" let event")
                .next()
                .unwrap(),
            "#[cfg(test)] mod tests { fn f() { g(\"text of a test\") } }",
        ] {
            assert_eq!(found(source), [], "{source}");
        }
    }
}
