//! Splits a template into the tokens that every SQL engine would read.
//!
//! In: untrusted text. Out: tokens, or the first character, comment, quote or brace that is not allowed in templates.
//! Not here: the order of tokens.

use super::TemplateError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    Word(&'a str),
    Number,
    /// A quoted string or name, with its delimiter.
    Quoted(char),
    Hole(u8),
    AllArguments,
    Open(char),
    Close(char),
    Comma,
    Cast,
    Symbol(char),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) at: usize,
    pub(super) end: usize,
}

pub(super) fn lex(text: &str) -> Result<Vec<Token<'_>>, TemplateError> {
    if let Some((at, found)) = text.char_indices().find(|(_, c)| !matches!(c, ' '..='~')) {
        return Err(TemplateError::Character { at, found });
    }
    // `;` and a backslash are refused even inside quotes: engines differ in the meaning of a backslash there, and
    // drivers in how they look for the end of a statement.
    if let Some((at, found)) = text.char_indices().find(|(_, c)| matches!(c, ';' | '\\')) {
        return Err(TemplateError::Character { at, found });
    }
    for mark in ["--", "/*", "*/"] {
        if let Some(at) = text.find(mark) {
            return Err(TemplateError::Comment { at });
        }
    }
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        if byte == b' ' {
            at += 1;
            continue;
        }
        let (kind, end) = match byte {
            b'\'' | b'"' | b'`' => (Kind::Quoted(byte as char), quoted_end(bytes, at)?),
            b'{' | b'}' => brace(bytes, at)?,
            b'(' | b'[' => (Kind::Open(byte as char), at + 1),
            b')' | b']' => (Kind::Close(byte as char), at + 1),
            b',' => (Kind::Comma, at + 1),
            b':' if bytes.get(at + 1) == Some(&b':') => (Kind::Cast, at + 2),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let end = run(bytes, at, |b| b.is_ascii_alphanumeric() || b == b'_');
                // `q'[…]'`, `U&'…'`, `E'…'`: a prefix changes where the string ends.
                if matches!(bytes.get(end), Some(b'\'' | b'"' | b'`' | b'&')) {
                    return Err(TemplateError::Prefix { at });
                }
                (Kind::Word(&text[at..end]), end)
            }
            b'0'..=b'9' => (Kind::Number, number_end(bytes, at)?),
            b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'!' | b'|' | b'&' | b'^' | b'~' | b'.' => {
                (Kind::Symbol(byte as char), at + 1)
            }
            // `#` is a comment, `$` a quote or a parameter, `?` `:` `@` parameters or variables.
            _ => return Err(TemplateError::Character { at, found: byte as char }),
        };
        tokens.push(Token { kind, at, end });
        at = end;
    }
    Ok(tokens)
}

fn run(bytes: &[u8], from: usize, belongs: impl Fn(u8) -> bool) -> usize {
    bytes[from..].iter().position(|b| !belongs(*b)).map_or(bytes.len(), |n| from + n)
}

/// Returns the end of a number. A letter right after the digits is refused, because some engines read `1UNION` as two
/// words.
fn number_end(bytes: &[u8], at: usize) -> Result<usize, TemplateError> {
    let end = run(bytes, at, |b| b.is_ascii_digit() || b == b'.');
    match bytes.get(end) {
        Some(b) if b.is_ascii_alphabetic() || *b == b'_' => {
            Err(TemplateError::Character { at: end, found: *b as char })
        }
        _ => Ok(end),
    }
}

/// Returns the end of a quoted string or name. A doubled delimiter is a part of it.
fn quoted_end(bytes: &[u8], at: usize) -> Result<usize, TemplateError> {
    let quote = bytes[at];
    let mut i = at + 1;
    while i < bytes.len() {
        match bytes[i] {
            b if b == quote && bytes.get(i + 1) == Some(&quote) => i += 2,
            b if b == quote => return Ok(i + 1),
            // A brace would be a hole, or would have to be an escape; neither has a use here.
            b'{' | b'}' => return Err(TemplateError::HoleInQuotes { at: i }),
            _ => i += 1,
        }
    }
    Err(TemplateError::UnclosedQuote { at, quote: quote as char })
}

fn brace(bytes: &[u8], at: usize) -> Result<(Kind<'static>, usize), TemplateError> {
    match (bytes[at], bytes.get(at + 1), bytes.get(at + 2)) {
        (b'{', Some(b'{'), _) => Ok((Kind::Open('{'), at + 2)),
        (b'}', Some(b'}'), _) => Ok((Kind::Close('}'), at + 2)),
        (b'{', Some(digit @ b'0'..=b'9'), Some(b'}')) => Ok((Kind::Hole(digit - b'0'), at + 3)),
        (b'{', Some(b'*'), Some(b'}')) => Ok((Kind::AllArguments, at + 3)),
        _ => Err(TemplateError::NotAHole { at }),
    }
}
