//! Which SQL grammar a warehouse's snippets are read with, and places in a text that is read.
//!
//! In: the warehouse's type, tokens. Out: sqlparser's dialect, byte offsets, [`Problem`]s. The profile
//! of the dialect component decides how SQL is printed; this only decides how it is read.

use sqlparser::ast::Ident;
use sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::ColumnName;
use crate::diagnostic::Diagnostic;
use crate::project::SqlText;

/// The grammar of a warehouse's type; a generic one for a type that the parser doesn't know.
pub(crate) fn grammar(warehouse: &str) -> Box<dyn Dialect> {
    dialect_from_str(warehouse).unwrap_or_else(|| Box::new(GenericDialect {}))
}

/// What is wrong with a text, at a byte offset of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) hint: String,
    pub(super) offset: usize,
    pub(super) length: usize,
}

impl Problem {
    pub(super) fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), hint: hint.into(), offset: 0, length: 1 }
    }

    pub(super) fn at(mut self, offset: usize, length: usize) -> Problem {
        (self.offset, self.length) = (offset, length);
        self
    }

    pub(super) fn in_text(self, sql: &SqlText) -> Diagnostic {
        Diagnostic::error(self.code, self.message).hint(self.hint).at(sql.locate(self.offset, self.length))
    }
}

/// The byte offset of a parser's line and column (characters, from 1); the text's end for "nowhere".
pub(super) fn offset_of(text: &str, location: Location) -> usize {
    if location.line == 0 {
        return text.trim_end().len();
    }
    let line_start: usize = text.split_inclusive('\n').take(location.line as usize - 1).map(str::len).sum();
    let line = &text[line_start.min(text.len())..];
    let in_line = line.char_indices().nth((location.column as usize).saturating_sub(1));
    (line_start + in_line.map_or(line.len(), |(at, _)| at)).min(text.len())
}

/// Byte offsets of places that only go forward, each found from the one before.
pub(super) struct Offsets<'t> {
    text: &'t str,
    at: usize,
    line: u64,
    column: u64,
}

impl<'t> Offsets<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Offsets { text, at: 0, line: 1, column: 1 }
    }

    pub(super) fn advance(&mut self, to: Location) -> usize {
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

/// The tokens of a text, comments and spaces among them, strings as written.
pub(super) fn tokenize(text: &str, dialect: &dyn Dialect) -> Result<Vec<TokenWithSpan>, Problem> {
    let mut tokenizer = Tokenizer::new(dialect, text).with_unescape(false);
    tokenizer.tokenize_with_location().map_err(|error| {
        let hint = if error.message.contains("nterminated") {
            "close the quote or the comment"
        } else {
            "remove or quote this character"
        };
        let message = format!("the SQL can't be read from here: {}", lower_first(&error.message));
        Problem::new("sql-syntax", message, hint).at(offset_of(text, error.location), 1)
    })
}

/// A name of the warehouse. Tokens are as written, so the quotes inside a quoted name are still doubled.
pub(super) fn column_name(ident: &Ident) -> ColumnName {
    let text = match ident.quote_style {
        Some('[') => ident.value.replace("]]", "]"),
        Some(quote) => ident.value.replace(&format!("{quote}{quote}"), &quote.to_string()),
        None => ident.value.clone(),
    };
    ColumnName { text: text.into(), quoted: ident.quote_style.is_some() }
}

/// The parser's complaint with its place; `readable` turns stand-ins back into what was written.
pub(super) fn explain(error: &ParserError, text: &str, readable: impl Fn(&str) -> String) -> Problem {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            return Problem::new("sql-too-deep", "the SQL nests too deeply", "write it with fewer levels");
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    let (message, place) = message.rsplit_once(" at Line: ").unwrap_or((message, ""));
    let place = place
        .split_once(", Column: ")
        .and_then(|(line, column)| Some(Location { line: line.parse().ok()?, column: column.parse().ok()? }));
    let offset = offset_of(text, place.unwrap_or(Location { line: 0, column: 0 }));
    let message = readable(message).replace("Expected: ", "expected ").replace(", found: EOF", ", found the end");
    let message = lower_first(&message.replace(", found: ", ", found "));
    let hint = "check the brackets, quotes and commas here, and whether the warehouse knows this syntax";
    Problem::new("sql-syntax", format!("the SQL can't be read from here: {message}"), hint).at(offset, 1)
}

pub(super) fn is_space(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Whitespace(_) | Token::EOF)
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
