//! Templates of a dialect profile, parsed once at load.
//!
//! Grammar: `{0}`..`{9}` are holes, `{*}` all arguments separated by commas, `{{` and `}}` escapes. In: untrusted text
//! from a component. Out: segments that the printer fills. A template can only choose the syntax of one expression:
//! [`Template::parse`] refuses text that could end the expression (`;`, a comma outside brackets), hide text (comments,
//! dollar quotes), open a subquery, name a parameter, or join a hole's text to its neighbours. Not here: the operators
//! that a profile needs (`dialect_profile_check`), and filling the holes (`print`).

mod lex;

use self::lex::{Kind, Token, lex};

/// The longest template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 1024;

/// A lexed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub segments: Vec<Segment>,
    /// True if the result needs no parentheses as an operand: `f({0})`, not `{0} = {1}`. A template of a single hole
    /// counts as closed, because the printer adds parentheses to its argument if necessary.
    pub is_closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Text(Box<str>),
    Hole(u8),
    /// `{*}`
    AllArguments,
}

/// The reason why a template was refused. `at` is a byte offset in the template's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("is empty")]
    Empty,
    #[error("is {bytes} bytes long, the limit is {MAX_TEMPLATE_BYTES}")]
    TooLong { bytes: usize },
    #[error("has `{}` at byte {at}, which no template may contain", found.escape_debug())]
    Character { at: usize, found: char },
    #[error("opens or closes a comment at byte {at}")]
    Comment { at: usize },
    #[error("has a quote {quote} at byte {at} that is never closed")]
    UnclosedQuote { at: usize, quote: char },
    #[error("has a word at byte {at} that touches a quote")]
    Prefix { at: usize },
    #[error("has an unbalanced `{bracket}` at byte {at}")]
    Unbalanced { at: usize, bracket: char },
    #[error("has `{{` or `}}` at byte {at} that is neither a hole ({{0}} to {{9}}, {{*}}) nor doubled")]
    NotAHole { at: usize },
    #[error("uses hole {{{hole}}}, but has {allowed} argument(s)")]
    HoleOutOfRange { hole: u8, allowed: u8 },
    #[error("never uses hole {{{hole}}}")]
    UnusedHole { hole: u8 },
    #[error("has a hole inside quotes at byte {at}")]
    HoleInQuotes { at: usize },
    #[error("has a hole at byte {at} that touches a word, a quote, a sign or another hole")]
    FusedHole { at: usize },
    #[error("has `{{*}}` at byte {at} where the arguments are not variable or not inside brackets")]
    AllArguments { at: usize },
    #[error("has a comma outside brackets at byte {at}")]
    Comma { at: usize },
    #[error("has the word `{word}` at byte {at}, which belongs to a query and not to an expression")]
    Word { at: usize, word: String },
}

impl Template {
    /// Parses and checks a template. `holes_allowed` is the number of arguments: only holes below it are allowed, and
    /// `{*}` is not. `None` allows any number of arguments.
    pub fn parse(text: &str, holes_allowed: Option<u8>) -> Result<Template, TemplateError> {
        if text.trim().is_empty() {
            return Err(TemplateError::Empty);
        }
        if text.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::TooLong { bytes: text.len() });
        }
        let tokens = lex(text)?;
        check_brackets(&tokens)?;
        check_words(&tokens)?;
        check_holes(text, &tokens, holes_allowed)?;
        Ok(Template { segments: segments(text, &tokens), is_closed: is_closed(&tokens) })
    }

    /// Returns whether the template contains hole `{hole}`; `{*}` counts as all.
    pub fn uses(&self, hole: u8) -> bool {
        self.segments.iter().any(|s| match s {
            Segment::Hole(h) => *h == hole,
            Segment::AllArguments => true,
            Segment::Text(_) => false,
        })
    }
}

/// Words that start a query or a statement. They never occur in an expression of any dialect.
pub(super) const QUERY_WORDS: &[&str] = &[
    "SELECT",
    "VALUES",
    "TABLE",
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "INTO",
    "UNION",
    "INTERSECT",
    "CREATE",
    "DROP",
    "ALTER",
    "GRANT",
    "REVOKE",
    "ATTACH",
    "DETACH",
    "COPY",
    "PRAGMA",
    "CALL",
    "EXEC",
    "EXECUTE",
    "DECLARE",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "INSTALL",
    "IMPORT",
    "EXPORT",
    "PIVOT",
    "UNPIVOT",
    "DESCRIBE",
    "SUMMARIZE",
    "SHOW",
    "EXPLAIN",
    "LATERAL",
    "JOIN",
    "RETURNING",
    "FETCH",
    "PROCEDURE",
    "OUTFILE",
    "DUMPFILE",
];

/// Words that expressions may contain inside brackets (`FILTER (WHERE …)`, `WITHIN GROUP (ORDER BY …)`, `[OFFSET(0)]`).
/// Outside brackets they would continue the host's query.
const CLAUSE_WORDS: &[&str] =
    &["WHERE", "ORDER", "GROUP", "HAVING", "QUALIFY", "WINDOW", "LIMIT", "OFFSET", "USING", "AS", "ON"];

/// Words that start a query if they are the first word: DuckDB reads `(FROM t)` as a query.
const NEVER_FIRST: &[&str] = &["FROM", "WITH"];

/// Checks that brackets of each kind balance, and that no comma is outside them: it would start another
/// column.
fn check_brackets(tokens: &[Token<'_>]) -> Result<(), TemplateError> {
    let mut open: Vec<(char, usize)> = Vec::new();
    for token in tokens {
        match token.kind {
            Kind::Open(c) => open.push((c, token.at)),
            Kind::Close(c) => match (open.pop(), c) {
                (Some(('(', _)), ')') | (Some(('[', _)), ']') | (Some(('{', _)), '}') => {}
                _ => return Err(TemplateError::Unbalanced { at: token.at, bracket: c }),
            },
            Kind::Comma if open.is_empty() => return Err(TemplateError::Comma { at: token.at }),
            Kind::AllArguments if open.is_empty() => return Err(TemplateError::AllArguments { at: token.at }),
            _ => {}
        }
    }
    match open.pop() {
        Some((bracket, at)) => Err(TemplateError::Unbalanced { at, bracket }),
        None => Ok(()),
    }
}

fn check_words(tokens: &[Token<'_>]) -> Result<(), TemplateError> {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth -= 1,
            Kind::Word(word) => {
                let before = i.checked_sub(1).map(|b| tokens[b].kind);
                if !word_may_stand(&word.to_ascii_uppercase(), before, depth) {
                    return Err(TemplateError::Word { at: token.at, word: word.to_owned() });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn word_may_stand(word: &str, before: Option<Kind<'_>>, depth: usize) -> bool {
    let follows = |expected: &str| matches!(before, Some(Kind::Word(w)) if w.eq_ignore_ascii_case(expected));
    let is_first = matches!(before, None | Some(Kind::Open(_) | Kind::Comma));
    if QUERY_WORDS.contains(&word) || (is_first && NEVER_FIRST.contains(&word)) {
        return false;
    }
    if depth > 0 {
        return true;
    }
    match word {
        "FROM" => follows("DISTINCT"),
        "GROUP" => follows("WITHIN"),
        _ => !CLAUSE_WORDS.contains(&word),
    }
}

fn check_holes(text: &str, tokens: &[Token<'_>], allowed: Option<u8>) -> Result<(), TemplateError> {
    let bytes = text.as_bytes();
    for (i, token) in tokens.iter().enumerate() {
        match (token.kind, allowed) {
            (Kind::Hole(hole), Some(allowed)) if hole >= allowed => {
                return Err(TemplateError::HoleOutOfRange { hole, allowed });
            }
            (Kind::AllArguments, Some(_)) => return Err(TemplateError::AllArguments { at: token.at }),
            (Kind::Hole(_) | Kind::AllArguments, _) => {}
            _ => continue,
        }
        let before = token.at.checked_sub(1).map(|b| bytes[b]);
        let is_cast = |j: Option<&Token<'_>>| j.is_some_and(|t| t.kind == Kind::Cast);
        let left_is_free = match before {
            // `-`, `/` and `.` are not allowed: with the hole's text, they could form a comment or a longer name.
            None | Some(b' ' | b'(' | b'[' | b',' | b'=' | b'<' | b'>' | b'+' | b'*' | b'|' | b'%') => true,
            _ => is_cast(i.checked_sub(1).map(|b| &tokens[b])),
        };
        let right_is_free = match bytes.get(token.end) {
            None => true,
            Some(b' ' | b')' | b']' | b',' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'|' | b'%' | b'[') => true,
            _ => is_cast(tokens.get(i + 1)),
        };
        // `{0} {1}` would make an alias, and `{0} (…)` a call of the function that the hole contains.
        let next = tokens.get(i + 1).map(|t| t.kind);
        let is_apart = !matches!(
            next,
            Some(Kind::Hole(_) | Kind::AllArguments | Kind::Quoted(_) | Kind::Number | Kind::Open('(' | '{'))
        );
        if !(left_is_free && right_is_free && is_apart) {
            return Err(TemplateError::FusedHole { at: token.at });
        }
    }
    Ok(())
}

fn segments(text: &str, tokens: &[Token<'_>]) -> Vec<Segment> {
    fn flush(segments: &mut Vec<Segment>, text: &str) {
        if !text.is_empty() {
            segments.push(Segment::Text(text.replace("{{", "{").replace("}}", "}").into()));
        }
    }
    let mut segments = Vec::new();
    let text = text.trim_end();
    let mut from = text.len() - text.trim_start().len();
    for token in tokens {
        let hole = match token.kind {
            Kind::Hole(hole) => Segment::Hole(hole),
            Kind::AllArguments => Segment::AllArguments,
            _ => continue,
        };
        flush(&mut segments, &text[from..token.at]);
        segments.push(hole);
        from = token.end;
    }
    flush(&mut segments, &text[from..]);
    segments
}

/// Returns whether the tokens are an atom, a call, an expression in one pair of brackets, a `CASE … END`, or one of
/// these with a `::` cast.
fn is_closed(tokens: &[Token<'_>]) -> bool {
    if let Some(cast) = tokens.iter().rposition(|t| t.kind == Kind::Cast) {
        let ty = &tokens[cast + 1..];
        let is_type = matches!(ty, [t] if matches!(t.kind, Kind::Word(_) | Kind::Hole(_))) || is_call(ty);
        if is_type {
            return is_closed(&tokens[..cast]);
        }
    }
    match tokens {
        [] => false,
        [one] => !matches!(one.kind, Kind::Symbol(_) | Kind::Cast | Kind::Comma),
        _ => is_call(tokens) || is_case(tokens) || closing(tokens, 0) == Some(tokens.len() - 1),
    }
}

/// Returns whether tokens are a call: `name(…)` or `schema.name(…)`.
fn is_call(tokens: &[Token<'_>]) -> bool {
    // `NOT (…)` and `INTERVAL (…)` look like calls, but they are operators.
    const OPERATORS: &[&str] = &["NOT", "INTERVAL", "DISTINCT"];
    match tokens {
        [schema, dot, rest @ ..] if matches!(schema.kind, Kind::Word(_)) && dot.kind == Kind::Symbol('.') => {
            is_call(rest)
        }
        [name, open, ..] => {
            let is_name = matches!(name.kind, Kind::Word(w) if !OPERATORS.contains(&w.to_ascii_uppercase().as_str()));
            is_name && open.kind == Kind::Open('(') && closing(tokens, 1) == Some(tokens.len() - 1)
        }
        _ => false,
    }
}

fn is_case(tokens: &[Token<'_>]) -> bool {
    let word = |t: &Token<'_>, w: &str| matches!(t.kind, Kind::Word(found) if found.eq_ignore_ascii_case(w));
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate() {
        if word(token, "CASE") {
            depth += 1;
        } else if depth == 0 {
            return false;
        } else if word(token, "END") {
            depth -= 1;
            if depth == 0 {
                return i == tokens.len() - 1;
            }
        }
    }
    false
}

/// Returns the index of the bracket that closes the one at `open`.
fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) if depth == 1 => return Some(i),
            Kind::Close(_) => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
    }
    None
}
