//! Splits a question into words, numbers and quoted strings.

use unicode_normalization::UnicodeNormalization as _;

use crate::language::Language;

/// The largest number of characters of a question.
pub const MAX_CHARS: usize = 500;
/// The largest number of words of a question.
pub const MAX_TOKENS: usize = 60;

/// The reason why a question cannot be interpreted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    #[error("the question has no words")]
    Empty,
    #[error("the question is longer than {MAX_CHARS} characters")]
    TooLong,
    #[error("the question has more than {MAX_TOKENS} words")]
    TooManyWords,
}

/// A part of a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    /// The word as the user wrote it.
    pub(crate) text: String,
    /// The word in lower case.
    pub(crate) lower: String,
    /// The word without its ending.
    pub(crate) stem: String,
    pub(crate) kind: TokenKind,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TokenKind {
    Word,
    Number(f64),
    /// A string in quotation marks.
    Quoted,
    Comma,
}

/// Splits a question.
///
/// # Errors
/// The question is empty or too long.
pub(crate) fn tokens(question: &str, language: &Language) -> Result<Vec<Token>, QuestionError> {
    if question.chars().count() > MAX_CHARS {
        return Err(QuestionError::TooLong);
    }
    // Marks of text direction and other invisible characters do not belong to words.
    let is_visible = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let text: Vec<char> = question.nfkc().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(is_visible).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let c = text[at];
        if let Some(close) = closing(c)
            && let Some(length) = text[at + 1..].iter().position(|other| *other == close)
        {
            let inner: String = text[at + 1..at + 1 + length].iter().collect();
            found.push(token(inner, TokenKind::Quoted, language));
            at += length + 2;
        } else if let Some(sign) = comparison(&text[at..]) {
            found.push(token(sign.to_owned(), TokenKind::Word, language));
            at += sign.len();
        } else if matches!(c, ',' | ';') {
            found.push(token(c.to_string(), TokenKind::Comma, language));
            at += 1;
        } else if c.is_alphanumeric() {
            let length = word_length(&text[at..]);
            let word: String = text[at..at + length].iter().filter(|c| **c != ',').collect();
            let word = word.trim_end_matches(['.', '-', '\'', ':', '/']);
            match number(word, language) {
                Some(number) => found.push(token(word.to_owned(), TokenKind::Number(number), language)),
                // A qualified name such as `flights.average_delay` is split into the words of its parts.
                None => {
                    let parts = word.split(separators(word)).filter(|part| !part.is_empty());
                    found.extend(parts.map(|part| token(part.to_owned(), TokenKind::Word, language)));
                }
            }
            at += length;
        } else {
            at += 1;
        }
        if found.len() > MAX_TOKENS {
            return Err(QuestionError::TooManyWords);
        }
    }
    if found.iter().all(|token| token.kind == TokenKind::Comma) {
        return Err(QuestionError::Empty);
    }
    Ok(found)
}

/// Returns the characters that separate the words of a name. A hyphen separates words, as in `on-time`, but not the
/// parts of `2013-02` or `x-ray`.
fn separators(word: &str) -> &'static [char] {
    let is_word = |part: &str| part.chars().count() > 1 && part.chars().all(char::is_alphabetic);
    if word.split('-').all(is_word) { &['.', '_', '-'] } else { &['.', '_'] }
}

/// Returns the comparison sign that the characters begin with.
fn comparison(text: &[char]) -> Option<&'static str> {
    Some(match (text.first()?, text.get(1)) {
        ('>', Some('=')) => ">=",
        ('<', Some('=')) => "<=",
        ('>', _) => ">",
        ('<', _) => "<",
        ('=', _) => "=",
        _ => return None,
    })
}

/// Returns the length of a word, or of a number that may have commas between its thousands.
fn word_length(text: &[char]) -> usize {
    let is_digit = |at: usize| text.get(at).is_some_and(char::is_ascii_digit);
    let is_thousands = |at: usize| at > 0 && is_digit(at - 1) && (at + 1..at + 4).all(is_digit) && !is_digit(at + 4);
    let mut length = 0;
    while let Some(c) = text.get(length)
        && (is_part(*c) || (*c == ',' && is_thousands(length)))
    {
        length += 1;
    }
    length
}

fn closing(c: char) -> Option<char> {
    match c {
        '"' => Some('"'),
        '\u{201c}' => Some('\u{201d}'),
        '\u{201e}' => Some('\u{201c}'),
        '\u{ab}' => Some('\u{bb}'),
        '`' => Some('`'),
        _ => None,
    }
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\'' | '%' | ':' | '/')
}

fn token(text: String, kind: TokenKind, language: &Language) -> Token {
    let lower = text.to_lowercase();
    Token { stem: language.stem(&lower), lower, text, kind }
}

/// Parses a number such as `2,000`, `1.5k`, `3m` or `20%`, and number words such as `three`.
fn number(word: &str, language: &Language) -> Option<f64> {
    let lower = word.to_lowercase();
    if let Some(number) = language.number(&lower) {
        return Some(number);
    }
    let (digits, factor) = match lower.chars().last()? {
        'k' => (&lower[..lower.len() - 1], 1_000.0),
        'm' => (&lower[..lower.len() - 1], 1_000_000.0),
        '%' => (&lower[..lower.len() - 1], 0.01),
        _ => (&*lower, 1.0),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && digits.matches('.').count() <= 1;
    is_number.then(|| digits.parse::<f64>().ok()).flatten().map(|number| number * factor)
}
