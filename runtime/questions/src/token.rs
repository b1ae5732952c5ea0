//! Splits a question into words, numbers and quoted strings.

use unicode_normalization::UnicodeNormalization as _;

use crate::digits::{self, Day};
use crate::language::{Language, Meaning};

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
    /// A number with a percent sign, as a fraction: 0.2 for `20%`.
    Percent(f64),
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
        } else if c.is_alphanumeric() || is_minus(&text, at, found.last()) {
            let sign = usize::from(!c.is_alphanumeric());
            let length = word_length(&text[at + sign..], language);
            let is_separator = |c: &char| *c == ',' && language.thousands_sign() == ',';
            let word: String = text[at + sign..at + sign + length].iter().filter(|c| !is_separator(c)).collect();
            let words = words(&word, language);
            found.extend(if sign == 1 { negated(words) } else { words });
            at += sign + length;
        } else {
            // A percent sign after a space, or the sign of a currency, belongs to a number.
            if c == '%' || is_currency(c) {
                found.push(token(c.to_string(), TokenKind::Word, language));
            }
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

/// Returns whether a character is the sign of the number after it, and not a dash between two numbers.
fn is_minus(text: &[char], at: usize, before: Option<&Token>) -> bool {
    let is_number = |token: &Token| matches!(token.kind, TokenKind::Number(_) | TokenKind::Percent(_));
    let begins = at == 0 || matches!(text[at - 1], ' ' | '(' | '<' | '>' | '=');
    matches!(text[at], '-' | '\u{2212}')
        && begins
        && text.get(at + 1).is_some_and(char::is_ascii_digit)
        && !before.is_some_and(is_number)
}

/// Returns the tokens with the opposite of the number that they begin with. Other tokens, such as those of a date, have
/// no sign.
fn negated(mut tokens: Vec<Token>) -> Vec<Token> {
    if let Some(first) = tokens.first_mut() {
        match &mut first.kind {
            TokenKind::Number(number) | TokenKind::Percent(number) => {
                *number = -*number;
                first.text.insert(0, '-');
                first.lower.insert(0, '-');
            }
            TokenKind::Word | TokenKind::Quoted | TokenKind::Comma => {}
        }
    }
    tokens
}

/// Returns the tokens of a run of characters without spaces.
fn words(word: &str, language: &Language) -> Vec<Token> {
    if let Some(day) = digits::day(word, language) {
        return day_tokens(word, day, language);
    }
    // The German `2. Quartal` has an ordinal.
    if language.has_dates_with_points()
        && let Some(digits) = word.strip_suffix('.')
        && (1..=2).contains(&digits.len())
        && let Ok(ordinal) = digits.parse::<u8>()
    {
        let number = token(digits.to_owned(), TokenKind::Number(f64::from(ordinal)), language);
        return vec![Token { lower: word.to_owned(), ..number }];
    }
    let word = word.trim_end_matches(['.', '-', '\'', '\u{2019}', ':', '/']);
    let word = without_possessive(word);
    let plain = digits::plain(word, language);
    if let Some(percent) = plain.strip_suffix('%').and_then(|digits| number(digits, language)) {
        return vec![token(word.to_owned(), TokenKind::Percent(percent / 100.0), language)];
    }
    if let Some(number) = number(&plain, language) {
        return vec![Token {
            lower: plain.to_lowercase(),
            ..token(word.to_owned(), TokenKind::Number(number), language)
        }];
    }
    // `1.5h`
    if digits::has_suffix(&plain) && plain.contains('.') {
        return vec![token(plain, TokenKind::Word, language)];
    }
    // `7am` is a number and a word.
    let digits = word.chars().take_while(char::is_ascii_digit).count();
    let (hour, rest) = word.split_at(digits);
    if let (1..=2, Ok(number), "am" | "pm" | "AM" | "PM") = (digits, hour.parse(), rest) {
        return vec![
            token(hour.to_owned(), TokenKind::Number(number), language),
            token(rest.to_owned(), TokenKind::Word, language),
        ];
    }
    // A qualified name such as `flights.average_delay` is split into the words of its parts.
    let parts = word.split(separators(word)).filter(|part| !part.is_empty());
    parts.map(|part| token(part.to_owned(), TokenKind::Word, language)).collect()
}

/// Returns the tokens of a day in digits: a date such as `2024-05-03`, or a day and its month.
fn day_tokens(word: &str, day: Day, language: &Language) -> Vec<Token> {
    let number = |digits: String, kind| Token { lower: digits.clone(), stem: digits, text: word.to_owned(), kind };
    match day {
        Day::Date(date) => vec![number(date.to_string(), TokenKind::Word)],
        Day::OfMonth(month, day) => {
            let month = language.word_for(Meaning::MonthName(month.unsigned_abs())).unwrap_or_default().to_owned();
            let month = Token { text: String::new(), lower: month.clone(), stem: month, kind: TokenKind::Word };
            vec![number(day.to_string(), TokenKind::Number(f64::from(day))), month]
        }
    }
}

/// Returns whether a character is the sign of a currency.
pub(crate) fn is_currency(c: char) -> bool {
    matches!(c, '$' | '\u{a2}'..='\u{a5}' | '\u{20a0}'..='\u{20c0}')
}

/// Returns a word without the ending of a possessive or of a shortened `is`, as in `what's`.
fn without_possessive(word: &str) -> &str {
    let endings = ["'s", "\u{2019}s", "'S", "\u{2019}S"];
    endings.iter().find_map(|ending| word.strip_suffix(ending)).unwrap_or(word)
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

/// Returns the length of a word, or of a number that may have commas.
fn word_length(text: &[char], language: &Language) -> usize {
    let mut length = 0;
    while let Some(c) = text.get(length)
        && (is_part(*c) || (*c == ',' && digits::has_comma(text, length, language)))
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
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '\'' | '\u{2019}' | '%' | ':' | '/')
}

fn token(text: String, kind: TokenKind, language: &Language) -> Token {
    let lower = text.to_lowercase();
    Token { stem: language.stem(&lower), lower, text, kind }
}

/// Parses a number such as `2,000`, `1.5k`, `3m`, and number words such as `three`.
fn number(word: &str, language: &Language) -> Option<f64> {
    let lower = word.to_lowercase();
    if let Some(number) = language.number(&lower) {
        return Some(number);
    }
    let (digits, factor) = match lower.chars().last()? {
        'k' => (&lower[..lower.len() - 1], 1_000.0),
        'm' => (&lower[..lower.len() - 1], 1_000_000.0),
        _ => (&*lower, 1.0),
    };
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && digits.matches('.').count() <= 1;
    is_number.then(|| digits.parse::<f64>().ok()).flatten().map(|number| number * factor)
}
