//! Collects the messages of the client packages for Python, TypeScript and Visual Studio Code.
//!
//! In: a source file in Python, TypeScript or JavaScript. Out: each string literal that is a sentence, with the class of
//! the error that has it. Not here: a grammar. Comments and docstrings are skipped.

use crate::texts::{Text, is_sentence};

/// A language with its own comments and literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientLanguage {
    Python,
    TypeScript,
}

/// Returns the messages of a source, in order.
pub fn client_texts(source: &str, language: ClientLanguage) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut at = 0;
    while let Some(next) = source.get(at..).and_then(|rest| rest.chars().next()) {
        let rest = &source[at..];
        if let Some(length) = comment(rest, language) {
            at += length;
        } else if let Some((length, text)) = literal(rest, language) {
            if is_sentence(text) {
                texts.push(Text { code: class(&source[..at]), text: text.to_owned() });
            }
            at += length;
        } else {
            at += next.len_utf8();
        }
    }
    texts
}

/// Returns the length of the comment or the docstring at the start of `rest`.
fn comment(rest: &str, language: ClientLanguage) -> Option<usize> {
    let pairs: &[(&str, &str)] = match language {
        ClientLanguage::Python => &[("\"\"\"", "\"\"\""), ("#", "\n")],
        ClientLanguage::TypeScript => &[("/*", "*/"), ("//", "\n")],
    };
    let (start, end) = pairs.iter().find(|(start, _)| rest.starts_with(start))?;
    let inside = &rest[start.len()..];
    Some(inside.find(end).map_or(rest.len(), |length| start.len() + length + end.len()))
}

/// Returns the length and the content of the literal at the start of `rest`.
fn literal(rest: &str, language: ClientLanguage) -> Option<(usize, &str)> {
    let quote = rest.chars().next()?;
    let is_quote = match language {
        ClientLanguage::Python => matches!(quote, '"' | '\''),
        ClientLanguage::TypeScript => matches!(quote, '"' | '\'' | '`'),
    };
    if !is_quote {
        return None;
    }
    let mut is_escaped = false;
    for (offset, c) in rest.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\n' if quote != '`' => return None,
            c if c == quote => return Some((offset + 1, &rest[1..offset])),
            _ => {}
        }
    }
    None
}

/// Returns the class of the error whose first argument follows `before`.
fn class(before: &str) -> Option<String> {
    let before = before.strip_suffix('f').unwrap_or(before).trim_end().strip_suffix('(')?;
    let start = before.rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
    Some(&before[start..]).filter(|name| name.ends_with("Error")).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str, language: ClientLanguage) -> Vec<(String, String)> {
        let texts = client_texts(source, language);
        texts.into_iter().map(|text| (text.code.unwrap_or_default(), text.text)).collect()
    }

    fn one(class: &str, text: &str) -> Vec<(String, String)> {
        vec![(class.to_owned(), text.to_owned())]
    }

    #[test]
    fn messages_have_the_class_of_their_error() {
        let python = "def f():\n    \"\"\"Return a value of words.\"\"\"\n    # a comment of words\n    raise ValueError(\n        f\"base_url is not a URL: {x}\"\n    )\n";
        assert_eq!(found(python, ClientLanguage::Python), one("ValueError", "base_url is not a URL: {x}"));
        let typescript = "/** Returns a \"value\" of words. */\nthrow new RangeError(`expected a number, found ${x}`); // it's a comment";
        assert_eq!(found(typescript, ClientLanguage::TypeScript), one("RangeError", "expected a number, found ${x}"));
    }

    #[test]
    fn literals_of_one_word_are_left_out() {
        assert_eq!(found("x = \"terrane\"; y = 'GET'", ClientLanguage::Python), []);
    }
}
