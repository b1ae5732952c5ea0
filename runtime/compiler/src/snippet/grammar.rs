//! The SQL grammar for snippets of a warehouse, and places in their source text.
//!
//! In: the warehouse's type, tokens. Out: sqlparser's dialect, byte offsets, [`Problem`]s. The profile
//! of the dialect component decides how SQL is printed; this grammar only decides how it is parsed.

use std::borrow::Cow;

use sqlparser::ast::Ident;
use sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError};

use super::ColumnName;
use super::parser_error::lower_first;
use crate::diagnostic::{Code, Diagnostic};
use crate::text::SqlText;

/// The largest number of references such as `{CUBE}._id` in one text.
const MAX_UNDERSCORES: usize = 100;

/// Returns the grammar of a warehouse's type, or a generic one if the parser does not know the type.
pub fn grammar(warehouse: &str) -> Box<dyn Dialect> {
    dialect_from_str(warehouse).unwrap_or_else(|| Box::new(GenericDialect {}))
}

/// An error in SQL, at a byte offset.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    pub(crate) code: Code,
    pub message: String,
    pub(crate) hint: String,
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

impl Problem {
    pub(crate) fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), hint: hint.into(), offset: 0, length: 1 }
    }

    pub(crate) fn at(mut self, offset: usize, length: usize) -> Problem {
        (self.offset, self.length) = (offset, length);
        self
    }

    /// Narrows the place to the unknown name, if the place is a reference in braces or with a dot.
    pub(crate) fn narrowed(self, text: &str) -> Problem {
        if !matches!(self.code, Code::UnknownMember | Code::UnknownCube | Code::UnknownMetric) {
            return self;
        }
        let reference: String = text.get(self.offset..).unwrap_or_default().chars().take(self.length).collect();
        let start = reference.len() - reference.trim_start_matches(|c: char| c == '{' || c.is_whitespace()).len();
        let end = reference.find('}').unwrap_or(reference.len());
        let inside = &reference[start..end.max(start)];
        let (lead, name) = match inside.split_once('.') {
            Some((cube, _)) if self.code == Code::UnknownCube => (0, cube),
            Some((cube, member)) => (cube.len() + 1, member),
            None => (0, inside),
        };
        let lead = start + lead + name.len() - name.trim_start().len();
        let (offset, length) = (self.offset + lead, name.trim().chars().count().max(1));
        self.at(offset, length)
    }

    /// Returns the problem with the whole text as its place.
    pub(crate) fn whole(self) -> Problem {
        self.at(0, usize::MAX)
    }

    pub(crate) fn in_text(self, sql: &SqlText) -> Diagnostic {
        let length = if self.length == usize::MAX { sql.text.trim().chars().count() } else { self.length };
        Diagnostic::error(self.code, self.message).hint(self.hint).at(sql.locate(self.offset, length))
    }
}

/// Returns the byte offset of a parser's line and column, which count characters from 1. A missing location is the end
/// of the text.
pub fn offset_of(text: &str, location: Location) -> usize {
    if location.line == 0 {
        return text.trim_end().len();
    }
    let line_start: usize = text.split_inclusive('\n').take(location.line as usize - 1).map(str::len).sum();
    let line = &text[line_start.min(text.len())..];
    let in_line = line.char_indices().nth((location.column as usize).saturating_sub(1));
    (line_start + in_line.map_or(line.len(), |(at, _)| at)).min(text.len())
}

/// Byte offsets of places in ascending order, each found from the previous one.
pub(crate) struct Offsets<'t> {
    text: &'t str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'t> Offsets<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Offsets { text, at: 0, line: 1, column: 1 }
    }

    pub(crate) fn advance(&mut self, to: Location) -> usize {
        for c in self.text[self.at..].chars() {
            if (self.line, self.column) >= (to.line, to.column) {
                break;
            }
            self.at += c.len_utf8();
            self.column += 1;
            if c == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            }
        }
        self.at
    }
}

/// Returns the tokens of SQL, with comments and spaces. Escapes in string literals are unchanged.
pub fn tokenize(text: &str, dialect: &dyn Dialect) -> Result<Vec<TokenWithSpan>, Problem> {
    let tokens = tokens_of(text, dialect).map_err(|error| {
        let at = offset_of(text, error.location);
        let rest = text.get(at..).unwrap_or_default();
        let open = match rest.chars().next() {
            Some(quote @ ('\'' | '"' | '`')) => {
                let word: String = rest.chars().skip(1).take_while(|c| !c.is_whitespace() && *c != ')').collect();
                Some((format!("unclosed {quote}"), format!("Close it, as in {quote}{word}{quote}.")))
            }
            // The tokenizer reports the end of the text instead of the comment's start.
            None => Some(("unclosed comment".to_owned(), "Close it with `*/`.".to_owned())),
            _ if rest.starts_with("/*") => Some(("unclosed comment".to_owned(), "Close it with `*/`.".to_owned())),
            _ => None,
        };
        if let Some((message, hint)) = open {
            return Problem::new(Code::SqlSyntax, message, hint).at(at, 1);
        }
        let message = format!("cannot parse SQL: {}", lower_first(&error.message));
        Problem::new(Code::SqlSyntax, message, "Remove or quote this character.").at(at, 1)
    })?;
    match tokens.iter().find(|token| matches!(token.token, Token::Placeholder(_))) {
        Some(token) => {
            Err(placeholder(&token.token.to_string())
                .at(offset_of(text, token.span.start), token.token.to_string().len()))
        }
        None => Ok(tokens),
    }
}

/// Returns the tokens of SQL with references. In some dialects the tokenizer takes the point of `{CUBE}._id` for the
/// beginning of a number, because no word precedes it. The underscore is then read as a letter.
fn tokens_of(text: &str, dialect: &dyn Dialect) -> Result<Vec<TokenWithSpan>, TokenizerError> {
    let mut readable = Cow::Borrowed(text);
    let mut replaced = Vec::new();
    loop {
        let mut tokenizer = Tokenizer::new(dialect, &readable).with_unescape(false);
        let error = match tokenizer.tokenize_with_location() {
            Ok(mut tokens) => {
                restore_underscores(text, &replaced, &mut tokens);
                return Ok(tokens);
            }
            Err(error) => error,
        };
        let at = offset_of(&readable, error.location);
        let is_member = readable[..at].ends_with('}') && readable[at..].starts_with("._");
        if !is_member || replaced.len() == MAX_UNDERSCORES {
            return Err(error);
        }
        readable.to_mut().replace_range(at + 1..at + 2, "x");
        replaced.push(at + 1);
    }
}

/// Writes the underscores at some byte offsets back into the words that begin there.
fn restore_underscores(text: &str, replaced: &[usize], tokens: &mut [TokenWithSpan]) {
    if replaced.is_empty() {
        return;
    }
    let mut offsets = Offsets::new(text);
    for token in tokens {
        let at = offsets.advance(token.span.start);
        if let (Token::Word(word), true) = (&token.token, replaced.contains(&at)) {
            token.token = Token::make_word(&format!("_{}", &word.value[1..]), None);
        }
    }
}

/// Reports a placeholder for a bound value, which would take one of the values that the host binds.
pub(crate) fn placeholder(placeholder: &str) -> Problem {
    let message = format!("placeholder `{placeholder}` is not allowed: no values are bound here");
    Problem::new(Code::Placeholder, message, "Write the value itself.")
}

/// Rejects unclosed and unmatched brackets.
pub(crate) fn balanced(tokens: &[TokenWithSpan], text: &str) -> Result<(), Problem> {
    let mut open: Vec<&TokenWithSpan> = Vec::new();
    for token in tokens {
        match token.token {
            Token::LParen => open.push(token),
            Token::RParen if open.pop().is_none() => {
                let problem =
                    Problem::new(Code::SqlSyntax, "unmatched `)`", "Remove it, or write the opening `(` before it.");
                return Err(problem.at(offset_of(text, token.span.start), 1));
            }
            _ => {}
        }
    }
    match open.last() {
        Some(token) => Err(Problem::new(Code::SqlSyntax, "unclosed `(`", "Close it with `)`.")
            .at(offset_of(text, token.span.start), 1)),
        None => Ok(()),
    }
}

/// Returns an identifier as a name in the warehouse. Tokens keep their escapes, so quotes inside a quoted name are
/// still doubled.
pub fn column_name(ident: &Ident) -> ColumnName {
    let text = match ident.quote_style {
        Some('[') => ident.value.replace("]]", "]"),
        Some(quote) => ident.value.replace(&format!("{quote}{quote}"), &quote.to_string()),
        None => ident.value.clone(),
    };
    ColumnName { text: text.into(), quoted: ident.quote_style.is_some() }
}

pub fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

/// Returns whether a token is an invisible character that SQL does not treat as a space.
pub(crate) fn is_unseen(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Char('\u{200b}' | '\u{2060}' | '\u{feff}'))
}

pub(crate) fn unseen(token: &TokenWithSpan, text: &str) -> Problem {
    let message = "invisible character without meaning in SQL";
    Problem::new(Code::SqlSyntax, message, "Remove it.").at(offset_of(text, token.span.start), 1)
}
