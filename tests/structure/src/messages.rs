//! Finds code that decides by the text of a message.
//!
//! In: a source file. Out: each place that searches a message, an error's text or a hint, or compares one with a
//! literal. Not here: types. A message is recognized by the receiver's name, so a message with a different name is not
//! found.

use crate::tokens::{Located, Token, scan, without_tests};

/// The names of variables and methods whose values are messages.
const RECEIVERS: &[&str] = &["message", "detail", "hint", "warehouse_error", "to_string"];

/// The methods that search a string.
const METHODS: &[&str] = &[
    "contains",
    "starts_with",
    "ends_with",
    "find",
    "rfind",
    "split_once",
    "rsplit_once",
    "strip_prefix",
    "strip_suffix",
    "matches",
    "split",
    "rsplit",
    "splitn",
    "rsplitn",
    "split_terminator",
    "split_whitespace",
];

/// Methods without arguments whose result is the same message in another form.
const ADAPTERS: &[&str] = &[
    "as_bytes",
    "as_deref",
    "as_ref",
    "as_str",
    "clone",
    "into_owned",
    "lines",
    "to_ascii_lowercase",
    "to_ascii_uppercase",
    "to_lowercase",
    "to_owned",
    "to_string",
    "to_uppercase",
    "trim",
    "trim_end",
    "trim_start",
    "unwrap",
    "unwrap_or_default",
];

/// One place that reads a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageRead {
    pub line: usize,
    /// The receiver's name and the method, for example `message.contains`.
    pub pattern: String,
    /// True if an assertion compares the message.
    pub is_asserted: bool,
}

/// Returns all places of a source outside its tests that read a message, in order.
pub fn reads(source: &str) -> Vec<MessageRead> {
    let scanned = scan(source);
    let tokens: Vec<_> = without_tests(&scanned)
        .into_iter()
        .filter(|located| !matches!(located.token, Token::Doc(_) | Token::Comment(_)))
        .collect();
    // An assertion compares in a macro, which product code does not use.
    let reads = reads_of(&tokens, RECEIVERS).into_iter().map(|(read, _)| read);
    reads.filter(|read| !read.is_asserted).collect()
}

/// Returns the places that read a message of one of the receivers, each with the literal that is searched for.
pub(crate) fn reads_of<'s>(tokens: &[Located<'s>], receivers: &[&str]) -> Vec<(MessageRead, Option<&'s str>)> {
    let token = |at: usize| tokens.get(at).map(|located| located.token);
    let literal = |at: usize| match token(at) {
        Some(Token::Text(text)) => Some(text),
        _ => None,
    };
    let mut reads = Vec::new();
    for (at, located) in tokens.iter().enumerate() {
        let Some(receiver) = receiver(located.token, receivers) else { continue };
        let behind = behind_adapters(tokens, at);
        let (pattern, literal, is_asserted) = match (token(behind), token(behind + 1), token(behind + 2)) {
            (Some(Token::Symbol('.')), Some(Token::Word(method)), Some(Token::Symbol('(')))
                if METHODS.contains(&method) =>
            {
                (format!("{receiver}.{method}"), literal(behind + 3), false)
            }
            (Some(Token::Symbol('=' | '!')), Some(Token::Symbol('=')), Some(Token::Text(text))) => {
                (format!("{receiver} =="), Some(text), false)
            }
            (Some(Token::Symbol(',')), Some(Token::Text(text)), _) if is_in_comparison(tokens, at) => {
                (format!("{receiver} =="), Some(text), true)
            }
            _ => continue,
        };
        reads.push((MessageRead { line: located.line, pattern, is_asserted }, literal));
    }
    reads
}

/// Returns the name of a receiver: a word, or the key of a JSON object.
fn receiver<'s>(token: Token<'s>, receivers: &[&str]) -> Option<&'s str> {
    match token {
        Token::Word(name) | Token::Text(name) if receivers.contains(&name) => Some(name),
        _ => None,
    }
}

/// Returns the place behind a receiver, the brackets around its key, and calls that return the same message.
fn behind_adapters(tokens: &[Located<'_>], at: usize) -> usize {
    let token = |at: usize| tokens.get(at).map(|located| located.token);
    let is_call = |at: usize| (token(at), token(at + 1)) == (Some(Token::Symbol('(')), Some(Token::Symbol(')')));
    let mut behind = match tokens[at].token {
        Token::Text(_) if token(at + 1) == Some(Token::Symbol(']')) => at + 2,
        _ if is_call(at + 1) => at + 3,
        _ => at + 1,
    };
    while let (Some(Token::Symbol('.')), Some(Token::Word(method))) = (token(behind), token(behind + 1))
        && is_call(behind + 2)
        && ADAPTERS.contains(&method)
    {
        behind += 4;
    }
    behind
}

/// Returns whether a token is in the first argument of `assert_eq!`.
fn is_in_comparison(tokens: &[Located<'_>], at: usize) -> bool {
    let mut depth = 0_usize;
    for index in (0..at).rev() {
        match tokens[index].token {
            Token::Symbol(')' | ']' | '}') => depth += 1,
            Token::Symbol('(') if depth == 0 => {
                let before = index.checked_sub(2).map(|name| tokens[name].token);
                return matches!(before, Some(Token::Word("assert_eq")));
            }
            Token::Symbol(',' | ';' | '{') if depth == 0 => return false,
            Token::Symbol('(' | '[' | '{') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(source: &str) -> Vec<String> {
        reads(source).into_iter().map(|read| format!("{}: {}", read.line, read.pattern)).collect()
    }

    #[test]
    fn search_in_a_message_is_found() {
        assert_eq!(patterns("if error.message.contains(\"x\") {}"), ["1: message.contains"]);
        assert_eq!(patterns("error.message().starts_with(\"x\")"), ["1: message.starts_with"]);
        assert_eq!(patterns("error\n  .to_string()\n  .find(\"x\")"), ["2: to_string.find"]);
        assert_eq!(patterns("let (a, b) = message.split_once(\": \")?;"), ["1: message.split_once"]);
    }

    #[test]
    fn search_behind_other_calls_is_found() {
        assert_eq!(patterns("error.message().to_lowercase().contains(\"x\")"), ["1: message.contains"]);
        assert_eq!(patterns("message.split(\"x\").next()"), ["1: message.split"]);
        assert_eq!(patterns("error.to_string().trim().starts_with(\"x\")"), ["1: to_string.starts_with"]);
        assert!(patterns("error.message().len().contains(\"x\")").is_empty());
    }

    #[test]
    fn comparison_with_a_literal_is_found() {
        assert_eq!(patterns("if message == \"x\" {}\nif a.hint != \"y\" {}"), ["1: message ==", "2: hint =="]);
        assert!(patterns("if message == other {}").is_empty());
    }

    #[test]
    fn tests_comments_and_other_uses_have_no_finding() {
        assert!(patterns("// message.contains(x)\nprint(error.message);\nmessage.push_str(\"x\");").is_empty());
        assert!(patterns("#[cfg(test)]\nmod tests { fn f() { e.to_string().contains(\"x\"); } }").is_empty());
        assert!(patterns("messages.contains(\"x\"); message_ids.contains(&1);").is_empty());
    }
}
