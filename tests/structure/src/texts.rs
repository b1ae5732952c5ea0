//! Collects the texts that the program shows to users, so that they can be read in one sitting.
//!
//! In: a source file. Out: each string literal of several words, with the code or the variant to which it belongs. Not
//! here: texts of tests and of broken invariants, SQL, and types. A literal that is not a sentence is not found.

use crate::tokens::{Located, Token, scan, without_tests};

/// A message or label that users see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The error code or variant that the source names near the text.
    pub code: Option<String>,
    pub text: String,
}

/// Calls whose texts only developers see, because they state invariants.
const INVARIANTS: [&str; 6] = ["expect", "panic", "unreachable", "assert", "assert_eq", "debug_assert"];
/// Attributes whose texts are not messages. The help of the command line is listed on its own page.
const ATTRIBUTES: [&str; 4] = ["allow", "expect", "arg", "command"];
/// The number of tokens before and after a literal in which its code is searched for.
const WINDOW: usize = 60;

/// Returns all texts of a source outside its tests, in order.
pub fn texts(source: &str) -> Vec<Text> {
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
            texts.push(Text { code: code(&tokens, at), text });
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
fn is_sentence(text: &str) -> bool {
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

/// Returns the variant after an `#[error]` attribute, else the `Code::…` of the statement, else the variant of the
/// match arm.
fn code(tokens: &[Token<'_>], at: usize) -> Option<String> {
    if attribute(tokens, at).is_some() {
        let end = tokens[at..].iter().position(|token| *token == Token::Symbol(']'))?;
        return tokens[at + end..].iter().find_map(|token| match token {
            Token::Word(name) if name.starts_with(char::is_uppercase) => Some((*name).to_owned()),
            _ => None,
        });
    }
    let is_end = |token: &Token<'_>| matches!(token, Token::Symbol(';' | '{' | '}'));
    let behind = tokens[at..].iter().take(WINDOW).take_while(|token| !is_end(token)).count();
    let before = tokens[..at].iter().rev().take(WINDOW).take_while(|token| !is_end(token)).count();
    let statement = &tokens[at - before..at + behind];
    named(statement, "Code").or_else(|| arm(tokens, at))
}

/// Returns the name after the first `{kind}::`.
fn named(tokens: &[Token<'_>], kind: &str) -> Option<String> {
    tokens.windows(4).find_map(|part| match part {
        [Token::Word(word), Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)] if *word == kind => {
            Some((*name).to_owned())
        }
        _ => None,
    })
}

/// Returns the last variant in the pattern of the match arm that contains a token.
fn arm(tokens: &[Token<'_>], at: usize) -> Option<String> {
    let window = &tokens[at.saturating_sub(WINDOW)..at];
    let arrow = window.windows(2).rposition(|part| part == [Token::Symbol('='), Token::Symbol('>')])?;
    window[..arrow].windows(3).rev().find_map(|part| match part {
        [Token::Symbol(':'), Token::Symbol(':'), Token::Word(name)] if name.starts_with(char::is_uppercase) => {
            Some((*name).to_owned())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<(String, String)> {
        texts(source).into_iter().map(|text| (text.code.unwrap_or_default(), text.text)).collect()
    }

    fn one(code: &str, text: &str) -> Vec<(String, String)> {
        vec![(code.to_owned(), text.to_owned())]
    }

    #[test]
    fn messages_have_the_code_of_their_statement_or_variant() {
        assert_eq!(
            found("Diagnostic::error(Code::NoCubes, \"the project has no cubes\")"),
            one("NoCubes", "the project has no cubes")
        );
        assert_eq!(
            found("#[error(\"unknown cube `{name}` here\")]\nUnknownCube { name: String },"),
            one("UnknownCube", "unknown cube `{name}` here")
        );
        assert_eq!(
            found("match x { Problem::Deep { n } => format!(\"too deep by {n}\") }"),
            one("Deep", "too deep by {n}")
        );
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
