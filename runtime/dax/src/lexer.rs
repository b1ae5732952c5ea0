//! Splits the text of a query into tokens.
//!
//! In: text. Out: all tokens with their places, and the problems of single characters. Comments and white space are
//! not tokens. The last token is always [`TokenKind::End`].

use std::sync::Arc;

use jiff::civil::DateTime;

use crate::place::Place;
use crate::problem::{MAX_PROBLEMS, Problem, ProblemKind};
use crate::spelling::{is_name_part, is_name_start};
use crate::tree::Number;

/// The largest number of characters that a query may have.
pub const MAX_CHARACTERS: usize = 100_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// A name or a keyword. Names of functions may contain dots.
    Identifier(Arc<str>),
    /// A name such as `'Sales Order'`, without its quotes and escapes.
    QuotedName(Arc<str>),
    /// A name such as `[Sales Amount]`, without its brackets and escapes.
    Bracketed(Arc<str>),
    Number(Number),
    Text(Arc<str>),
    Date(DateTime),
    /// `@name`
    Parameter(Arc<str>),
    Symbol(Symbol),
    /// Characters for which a problem was reported.
    Invalid,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    OpenParenthesis,
    CloseParenthesis,
    OpenBrace,
    CloseBrace,
    Comma,
    Semicolon,
    Dot,
    Plus,
    Minus,
    Star,
    Slash,
    Caret,
    Ampersand,
    And,
    Or,
    Not,
    Equal,
    StrictEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Symbol {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Symbol::OpenParenthesis => "(",
            Symbol::CloseParenthesis => ")",
            Symbol::OpenBrace => "{",
            Symbol::CloseBrace => "}",
            Symbol::Comma => ",",
            Symbol::Semicolon => ";",
            Symbol::Dot => ".",
            Symbol::Plus => "+",
            Symbol::Minus => "-",
            Symbol::Star => "*",
            Symbol::Slash => "/",
            Symbol::Caret => "^",
            Symbol::Ampersand => "&",
            Symbol::And => "&&",
            Symbol::Or => "||",
            Symbol::Not => "!",
            Symbol::Equal => "=",
            Symbol::StrictEqual => "==",
            Symbol::NotEqual => "<>",
            Symbol::Less => "<",
            Symbol::LessOrEqual => "<=",
            Symbol::Greater => ">",
            Symbol::GreaterOrEqual => ">=",
        }
    }
}

/// Returns the tokens of a query, and its problems in the order of their places.
pub(crate) fn tokens(text: &str) -> (Vec<Token>, Vec<Problem>) {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::with_capacity(text.len() / 4 + 1), problems: Vec::new() };
    if text.len() > MAX_CHARACTERS && text.chars().nth(MAX_CHARACTERS).is_some() {
        lexer.problem(ProblemKind::TooLong { limit: MAX_CHARACTERS }, 0);
    } else {
        lexer.run();
    }
    let end = Place::new(text.len(), text.len());
    lexer.tokens.push(Token { kind: TokenKind::End, place: end });
    (lexer.tokens, lexer.problems)
}

/// Returns whether the text ends inside a comment.
pub(crate) fn ends_in_comment(text: &str) -> bool {
    let (tokens, problems) = tokens(text);
    if problems.iter().any(|problem| matches!(problem.kind, ProblemKind::Unterminated { what: "comment", .. })) {
        return true;
    }
    let last = tokens.iter().rev().nth(1).map_or(0, |token| token.place.end as usize);
    // Only white space and comments follow the last token.
    let line = text[last..].rfind('\n').map_or(last, |at| last + at + 1);
    let line = text[line..].trim_start();
    (line.starts_with("//") || line.starts_with("--")) || line.contains("*/") && ends_in_comment_after_block(line)
}

/// Returns whether a line comment begins after the last block comment that ends in this line.
fn ends_in_comment_after_block(line: &str) -> bool {
    let rest = line.rsplit("*/").next().unwrap_or_default().trim_start();
    rest.starts_with("//") || rest.starts_with("--")
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token>,
    problems: Vec<Problem>,
}

impl<'t> Lexer<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) {
        self.at += self.rest().find(|c| !test(c)).unwrap_or(self.rest().len());
    }

    fn problem(&mut self, kind: ProblemKind, start: usize) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem { kind, place: Place::new(start, self.at) });
        }
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        self.tokens.push(Token { kind, place: Place::new(start, self.at) });
    }

    fn run(&mut self) {
        while let Some(first) = self.peek() {
            let start = self.at;
            match first {
                c if c.is_whitespace() || c == '\u{feff}' => self.at += c.len_utf8(),
                '/' if self.rest().starts_with("//") => self.take_while(|c| c != '\n'),
                '-' if self.rest().starts_with("--") => self.take_while(|c| c != '\n'),
                '/' if self.rest().starts_with("/*") => self.block_comment(),
                '\'' => self.delimited('\'', "quoted name", TokenKind::QuotedName),
                '"' => self.delimited('"', "string", TokenKind::Text),
                '[' => self.delimited(']', "name in brackets", TokenKind::Bracketed),
                '@' => self.parameter(),
                'd' | 'D' if self.rest()[1..].starts_with(['t', 'T']) && self.rest()[2..].starts_with('"') => {
                    self.date();
                }
                c if c.is_ascii_digit() => self.number(),
                '.' if self.peek_second().is_some_and(|c| c.is_ascii_digit()) => self.number(),
                c if is_name_start(c) => {
                    self.identifier();
                    let name = &self.text[start..self.at];
                    self.push(TokenKind::Identifier(name.into()), start);
                }
                _ => self.symbol(first),
            }
        }
    }

    fn block_comment(&mut self) {
        let start = self.at;
        match self.rest()[2..].find("*/") {
            Some(length) => self.at += length + 4,
            None => {
                self.at = self.text.len();
                self.problems.push(Problem {
                    kind: ProblemKind::Unterminated { what: "comment", close: "*/" },
                    place: Place::new(start, start + 2),
                });
            }
        }
    }

    /// Reads a token up to its closing character. A doubled closing character is a part of the content.
    fn delimited(&mut self, close: char, what: &'static str, kind: fn(Arc<str>) -> TokenKind) {
        let start = self.at;
        self.at += 1;
        let mut content = String::new();
        loop {
            let Some(length) = self.rest().find(close) else {
                // A token that is not closed ends with its line, so that problems of the following lines are found too.
                let line = self.rest().find('\n').unwrap_or(self.rest().len());
                content.push_str(self.rest()[..line].trim_end());
                self.at += line;
                let close = match close {
                    '\'' => "'",
                    '"' => "\"",
                    _ => "]",
                };
                self.problems.push(Problem {
                    kind: ProblemKind::Unterminated { what, close },
                    place: Place::new(start, start + 1),
                });
                break;
            };
            content.push_str(&self.rest()[..length]);
            self.at += length + 1;
            if !self.rest().starts_with(close) {
                break;
            }
            content.push(close);
            self.at += 1;
        }
        self.push(kind(content.into()), start);
    }

    fn parameter(&mut self) {
        let start = self.at;
        self.at += 1;
        self.take_while(is_name_part);
        let name = &self.text[start + 1..self.at];
        if name.is_empty() {
            self.problem(ProblemKind::UnexpectedCharacter { character: '@' }, start);
            self.push(TokenKind::Invalid, start);
        } else {
            self.push(TokenKind::Parameter(name.into()), start);
        }
    }

    fn date(&mut self) {
        let start = self.at;
        self.at += 2;
        let problems = self.problems.len();
        self.delimited('"', "date", TokenKind::Text);
        let Some(Token { kind: TokenKind::Text(written), .. }) = self.tokens.pop() else { return };
        match date_time(&written) {
            Some(date) => self.push(TokenKind::Date(date), start),
            None => {
                if self.problems.len() == problems {
                    self.problem(ProblemKind::InvalidDate { text: written }, start);
                }
                self.push(TokenKind::Invalid, start);
            }
        }
    }

    fn number(&mut self) {
        let start = self.at;
        self.take_while(|c| c.is_ascii_digit());
        let mut is_integer = true;
        if self.rest().starts_with('.') {
            is_integer = false;
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        let mut has_exponent = false;
        if self.rest().starts_with(['e', 'E']) {
            let digits = self.rest()[1..].trim_start_matches(['+', '-']);
            let sign = self.rest().len() - 1 - digits.len();
            if digits.starts_with(|c: char| c.is_ascii_digit()) && sign <= 1 {
                has_exponent = true;
                self.at += 1 + sign;
                self.take_while(|c| c.is_ascii_digit());
            }
        }
        let number_end = self.at;
        self.take_while(is_name_part);
        let written = &self.text[start..number_end];
        if self.at > number_end {
            self.problem(ProblemKind::InvalidNumber { text: self.text[start..self.at].into() }, start);
            return self.push(TokenKind::Invalid, start);
        }
        let number = match (is_integer && !has_exponent, has_exponent) {
            (true, _) => written.parse().ok().map(Number::Integer),
            (_, false) => Some(Number::Decimal(decimal(written))),
            (_, true) => written.parse().ok().filter(|n: &f64| n.is_finite()).map(Number::double),
        };
        // An integer that does not fit into 64 bits is a decimal number.
        let number = number.or_else(|| is_integer.then(|| Number::Decimal(decimal(written))).filter(|_| !has_exponent));
        match number {
            Some(number) => self.push(TokenKind::Number(number), start),
            None => {
                self.problem(ProblemKind::InvalidNumber { text: written.into() }, start);
                self.push(TokenKind::Invalid, start);
            }
        }
    }

    /// Reads a name. A dot is a part of the name if another part follows directly, as in `NORM.S.INV`.
    fn identifier(&mut self) {
        self.take_while(is_name_part);
        while self.rest().starts_with('.') && self.peek_second().is_some_and(is_name_part) {
            self.at += 1;
            self.take_while(is_name_part);
        }
    }

    fn symbol(&mut self, first: char) {
        let start = self.at;
        let two = [
            ("&&", Symbol::And),
            ("||", Symbol::Or),
            ("==", Symbol::StrictEqual),
            ("<>", Symbol::NotEqual),
            ("<=", Symbol::LessOrEqual),
            (">=", Symbol::GreaterOrEqual),
        ];
        if let Some((_, symbol)) = two.iter().find(|(written, _)| self.rest().starts_with(written)) {
            self.at += 2;
            return self.push(TokenKind::Symbol(*symbol), start);
        }
        self.at += first.len_utf8();
        let symbol = match first {
            '(' => Symbol::OpenParenthesis,
            ')' => Symbol::CloseParenthesis,
            '{' => Symbol::OpenBrace,
            '}' => Symbol::CloseBrace,
            ',' => Symbol::Comma,
            ';' => Symbol::Semicolon,
            '.' => Symbol::Dot,
            '+' => Symbol::Plus,
            '-' => Symbol::Minus,
            '*' => Symbol::Star,
            '/' => Symbol::Slash,
            '^' => Symbol::Caret,
            '&' => Symbol::Ampersand,
            '!' => Symbol::Not,
            '=' => Symbol::Equal,
            '<' => Symbol::Less,
            '>' => Symbol::Greater,
            _ => {
                self.problem(ProblemKind::UnexpectedCharacter { character: first }, start);
                return self.push(TokenKind::Invalid, start);
            }
        };
        self.push(TokenKind::Symbol(symbol), start);
    }
}

/// Returns a decimal number as text with at least one digit on each side of its point.
fn decimal(written: &str) -> Arc<str> {
    let (whole, fraction) = written.split_once('.').unwrap_or((written, ""));
    let whole = if whole.is_empty() { "0" } else { whole };
    if fraction.is_empty() { whole.into() } else { format!("{whole}.{fraction}").into() }
}

/// Parses a date with an optional time, such as `2024-01-31`, `2024-1-31T10:30:00` or `2024-1-31 10:30:00`. DAX has no
/// offsets and zones, so they are refused.
fn date_time(written: &str) -> Option<DateTime> {
    let (date, time) = match written.trim().split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time.trim())),
        None => (written.trim(), None),
    };
    let is_number = |part: &&str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == '.');
    let padded = |parts: &str, separator: char| {
        let parts: Vec<&str> = parts.split(separator).collect();
        let padded = parts.iter().map(|part| if part.len() < 2 { format!("0{part}") } else { (*part).to_owned() });
        parts.iter().all(is_number).then(|| padded.collect::<Vec<_>>().join(&separator.to_string()))
    };
    let text = match time {
        None => padded(date, '-')?,
        Some(time) => format!("{}T{}", padded(date, '-')?, padded(time, ':')?),
    };
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        let (tokens, problems) = tokens(text);
        assert_eq!(problems, [], "{text}");
        tokens.into_iter().map(|token| token.kind).collect()
    }

    fn only(text: &str) -> TokenKind {
        let mut kinds = kinds(text);
        assert_eq!(kinds.pop(), Some(TokenKind::End));
        assert_eq!(kinds.len(), 1, "{kinds:?}");
        kinds.remove(0)
    }

    #[test]
    fn doubled_delimiters_stand_for_themselves() {
        assert_eq!(only("'it''s'"), TokenKind::QuotedName("it's".into()));
        assert_eq!(only("[a]]b]"), TokenKind::Bracketed("a]b".into()));
        assert_eq!(only(r#""say ""hi""""#), TokenKind::Text("say \"hi\"".into()));
    }

    #[test]
    fn numbers_keep_their_kind() {
        assert_eq!(only("12"), TokenKind::Number(Number::Integer(12)));
        assert_eq!(only("1.50"), TokenKind::Number(Number::Decimal("1.50".into())));
        assert_eq!(only(".5"), TokenKind::Number(Number::Decimal("0.5".into())));
        assert_eq!(only("3.1E-1"), TokenKind::Number(Number::double(0.31)));
        assert_eq!(only("99999999999999999999"), TokenKind::Number(Number::Decimal("99999999999999999999".into())));
    }

    #[test]
    fn dates_have_a_day_or_a_time() {
        assert_eq!(only("dt\"2024-02-29\""), TokenKind::Date(jiff::civil::datetime(2024, 2, 29, 0, 0, 0, 0)));
        assert_eq!(
            only("DT\"2024-02-29 10:30:05\""),
            TokenKind::Date(jiff::civil::datetime(2024, 2, 29, 10, 30, 5, 0))
        );
        assert_eq!(only("dt\"2015-1-9T02:30:00\""), TokenKind::Date(jiff::civil::datetime(2015, 1, 9, 2, 30, 0, 0)));
        for text in [
            "dt\"2023-02-29\"",
            "dt\"2024-01-01T10:00+02:00\"",
            "dt\"2024\"",
            "dt\"2024-01-01T\"",
            "dt\"today\"",
            "dt\"2024-01-01Z\"",
        ] {
            let (_, problems) = tokens(text);
            assert!(matches!(problems[0].kind, ProblemKind::InvalidDate { .. }), "{text}");
        }
    }

    #[test]
    fn comments_are_not_tokens() {
        let text = "a // b\n-- c\n/* d\n */ e";
        let names = kinds(text).into_iter().filter(|kind| matches!(kind, TokenKind::Identifier(_)));
        assert_eq!(names.collect::<Vec<_>>(), [TokenKind::Identifier("a".into()), TokenKind::Identifier("e".into())]);
    }

    #[test]
    fn unterminated_strings_end_with_their_line() {
        let (found, problems) = tokens("\"abc\nEVALUATE");
        assert!(matches!(problems[0].kind, ProblemKind::Unterminated { what: "string", .. }));
        assert_eq!(found[1].kind, TokenKind::Identifier("EVALUATE".into()));
    }

    #[test]
    fn strange_characters_are_reported_each() {
        let (_, problems) = tokens("§ a $ 1x @ é");
        assert_eq!(problems.len(), 4);
    }

    #[test]
    fn long_texts_are_refused() {
        let text = "é".repeat(MAX_CHARACTERS);
        assert_eq!(tokens(&text).1, []);
        assert!(matches!(tokens(&format!("{text}é")).1[..], [Problem { kind: ProblemKind::TooLong { .. }, .. }]));
    }
}
