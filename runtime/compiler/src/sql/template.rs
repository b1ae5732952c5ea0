//! Templates of a dialect profile, lexed once at load.
//!
//! Grammar: `{0}`..`{9}` are holes, `{*}` all arguments separated by commas, `{{` and `}}` escapes.
//! In: untrusted text from a component. Out: segments that the printer fills. A template can choose
//! among the syntax of one expression and nothing more: [`Template::parse`] refuses whatever could
//! end the expression (`;`, a comma outside brackets), hide text (comments, dollar quotes), open a
//! query of its own, name a parameter, or glue a hole's text to its neighbours.
//! Not here: which operators a profile needs (`profile_check`), and filling the holes (`print`).

/// The longest template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 1024;

/// A lexed template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub segments: Vec<Segment>,
    /// Printed as an argument of another operator it needs no parentheses: `f({0})`, not `{0} = {1}`.
    /// A template that is one hole alone counts as closed: it prints exactly its argument, which the
    /// printer has made closed.
    pub is_closed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    Text(Box<str>),
    Hole(u8),
    /// `{*}`
    AllArguments,
}

/// Why a template was refused. `at` is a byte offset into the template's text.
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
    /// Lexes and validates. `holes_allowed` is the number of arguments: holes `{0}` up to one below it
    /// may stand, `{*}` may not; `None` for any number of arguments.
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

    /// Whether hole `{hole}` stands somewhere; `{*}` stands for all.
    pub fn uses(&self, hole: u8) -> bool {
        self.segments.iter().any(|s| match s {
            Segment::Hole(h) => *h == hole,
            Segment::AllArguments => true,
            Segment::Text(_) => false,
        })
    }

    /// Whether the hole at `segments[index]` stands between delimiters, so that any expression may be
    /// put there without parentheses: `f({0}, 1)`, `CAST({0} AS t)`, `count(DISTINCT {0})`.
    pub fn is_enclosed(&self, index: usize) -> bool {
        let before = index.checked_sub(1).map(|i| &self.segments[i]);
        let opens = match before {
            Some(Segment::Text(t)) => {
                let t = t.trim_end();
                t.ends_with(['(', ',', '[']) || t.ends_with("(DISTINCT") || t.ends_with("CASE WHEN")
            }
            _ => false,
        };
        let closes = match self.segments.get(index + 1) {
            Some(Segment::Text(t)) => {
                let t = t.trim_start();
                t.starts_with([')', ',', ']']) || t.starts_with("AS ") || t.starts_with("THEN ")
            }
            _ => false,
        };
        opens && closes
    }
}

/// Words that start a query or a statement: none of them occurs in an expression of any dialect.
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

/// Words that some expression needs inside brackets (`FILTER (WHERE …)`, `WITHIN GROUP (ORDER BY …)`,
/// `[OFFSET(0)]`), and that outside them would continue the host's query.
const CLAUSE_WORDS: &[&str] =
    &["WHERE", "ORDER", "GROUP", "HAVING", "QUALIFY", "WINDOW", "LIMIT", "OFFSET", "USING", "AS", "ON"];

/// Words that open a query when they come first: DuckDB reads `(FROM t)` as one.
const NEVER_FIRST: &[&str] = &["FROM", "WITH"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    Number,
    /// A quoted string or name, its delimiter.
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
struct Token<'a> {
    kind: Kind<'a>,
    at: usize,
    end: usize,
}

fn lex(text: &str) -> Result<Vec<Token<'_>>, TemplateError> {
    if let Some((at, found)) = text.char_indices().find(|(_, c)| !matches!(c, ' '..='~')) {
        return Err(TemplateError::Character { at, found });
    }
    // Refused even inside quotes: engines differ in what a backslash does there, and drivers in how
    // they look for the end of a statement.
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

/// A letter right after the digits would be a word to some engines: `1UNION`.
fn number_end(bytes: &[u8], at: usize) -> Result<usize, TemplateError> {
    let end = run(bytes, at, |b| b.is_ascii_digit() || b == b'.');
    match bytes.get(end) {
        Some(b) if b.is_ascii_alphabetic() || *b == b'_' => {
            Err(TemplateError::Character { at: end, found: *b as char })
        }
        _ => Ok(end),
    }
}

/// The end of a quoted string or name; the delimiter doubled stands for itself.
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

/// Brackets balance by kind, and a comma at the top would start another column.
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
            // No `-`, `/`, `.`: with the hole's text they could become a comment or a longer name.
            None | Some(b' ' | b'(' | b'[' | b',' | b'=' | b'<' | b'>' | b'+' | b'*' | b'|' | b'%') => true,
            _ => is_cast(i.checked_sub(1).map(|b| &tokens[b])),
        };
        let right_is_free = match bytes.get(token.end) {
            None => true,
            Some(b' ' | b')' | b']' | b',' | b'=' | b'<' | b'>' | b'+' | b'-' | b'*' | b'|' | b'%' | b'[') => true,
            _ => is_cast(tokens.get(i + 1)),
        };
        // `{0} {1}` would make an alias, `{0} (…)` a call of whatever the hole holds.
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

/// An atom, a call, one pair of brackets around everything, a `CASE … END`, or one of these cast
/// with `::`.
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

/// `name(…)` or `schema.name(…)`.
fn is_call(tokens: &[Token<'_>]) -> bool {
    // `NOT (…)` and `INTERVAL (…)` look like calls and are not.
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

/// The index of the bracket that closes the one at `open`.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Template, TemplateError> {
        Template::parse(text, Some(2))
    }

    #[test]
    fn good_templates_keep_their_text_and_know_whether_they_are_closed() {
        for (text, is_closed) in [
            ("{0} = {1}", false),
            ("{0}", true),
            ("TRUE", true),
            ("1", true),
            ("''", true),
            ("(1 = 1)", true),
            ("(1) = (1)", false),
            ("f({0})", true),
            ("s.f({0})", true),
            ("f({0}) + 1", false),
            ("f({0}) + g({1})", false),
            ("NOT {0}", false),
            ("NOT ({0})", false),
            ("INTERVAL ({0}) MONTH", false),
            ("- {0}", false),
            ("count(*)", true),
            ("count(DISTINCT {0})", true),
            ("{0} / NULLIF({1}, 0)", false),
            ("CAST({0} AS {1})", true),
            ("CAST({0} AS DECIMAL(38, 6))", true),
            ("{0}::{1}", true),
            ("{0}::DECIMAL(38, 6)", true),
            ("f({0})::DATE", true),
            ("{0} + {1}::DATE", false),
            ("{0} IS NOT DISTINCT FROM {1}", false),
            ("EXTRACT(week FROM {0})", true),
            ("({0} AT TIME ZONE 'UTC') AT TIME ZONE {1}", false),
            ("{0} - ({1} - date_trunc('hour', {1}))", false),
            ("{0} + INTERVAL ({1}) MONTH", false),
            ("CASE WHEN {0} THEN 1 ELSE 0 END", true),
            ("CASE WHEN {0} THEN 1 END + CASE WHEN {1} THEN 1 END", false),
            ("CASE WHEN CASE WHEN {0} THEN {1} END THEN 1 END", true),
            ("sum({0}) FILTER (WHERE {1})", false),
            ("percentile_cont({1}) WITHIN GROUP (ORDER BY {0})", false),
            ("APPROX_QUANTILES({0}, 100)[OFFSET(50)]", false),
            ("to_char({0}, 'IYYY-\"W\"IW')", true),
            ("strpos({0}, 'it''s') > 0", false),
            ("CAST({0} AS TIMESTAMP WITH TIME ZONE)", true),
            ("{0} COLLATE \"C\"", false),
            ("{0} <=> {1}", false),
            ("{0} || {1}", false),
            ("{0}[1]", false),
            ("TRUNCATE({0}, 2)", true),
            ("  f({0})  ", true),
        ] {
            let template = parse(text).unwrap_or_else(|e| panic!("`{text}` {e}"));
            assert_eq!(template.is_closed, is_closed, "{text}");
            let printed: String = template
                .segments
                .iter()
                .map(|s| match s {
                    Segment::Text(t) => t.to_string(),
                    Segment::Hole(h) => format!("{{{h}}}"),
                    Segment::AllArguments => "{*}".to_owned(),
                })
                .collect();
            assert_eq!(printed, text.trim());
        }
    }

    #[test]
    fn all_arguments_and_escapes_are_segments() {
        let template = Template::parse("f({*}, {{}})", None).unwrap();
        assert_eq!(
            template.segments,
            [Segment::Text("f(".into()), Segment::AllArguments, Segment::Text(", {})".into())]
        );
    }

    #[test]
    fn hostile_templates_are_refused_for_the_right_reason() {
        use TemplateError as E;
        let word = |at, word: &str| E::Word { at, word: word.to_owned() };
        for (text, expected) in [
            ("", E::Empty),
            ("   ", E::Empty),
            ("{0}; DROP TABLE t", E::Character { at: 3, found: ';' }),
            ("concat({0}, ';')", E::Character { at: 13, found: ';' }),
            ("{0} LIKE '\\'", E::Character { at: 10, found: '\\' }),
            ("{0}\n", E::Character { at: 3, found: '\n' }),
            ("{0}\0", E::Character { at: 3, found: '\0' }),
            ("{0} \u{202e}", E::Character { at: 4, found: '\u{202e}' }),
            ("{0} \u{2212} 1", E::Character { at: 4, found: '\u{2212}' }),
            ("{0} -- x", E::Comment { at: 4 }),
            ("{0} /* x */", E::Comment { at: 4 }),
            ("{0} */ x", E::Comment { at: 4 }),
            ("'--' || {0}", E::Comment { at: 1 }),
            ("{0} # x", E::Character { at: 4, found: '#' }),
            ("$${0}$$", E::Character { at: 0, found: '$' }),
            ("$a${0}$a$", E::Character { at: 0, found: '$' }),
            ("{0} = $1", E::Character { at: 6, found: '$' }),
            ("{0} = ?", E::Character { at: 6, found: '?' }),
            ("{0} = :name", E::Character { at: 6, found: ':' }),
            ("@x := {0}", E::Character { at: 0, found: '@' }),
            ("f('{0}')", E::HoleInQuotes { at: 3 }),
            ("\"{0}\"", E::HoleInQuotes { at: 1 }),
            ("`{0}`", E::HoleInQuotes { at: 1 }),
            ("f('{{x}}')", E::HoleInQuotes { at: 3 }),
            ("f('x)", E::UnclosedQuote { at: 2, quote: '\'' }),
            ("f(\"x)", E::UnclosedQuote { at: 2, quote: '"' }),
            ("f('it''s)", E::UnclosedQuote { at: 2, quote: '\'' }),
            ("q'[' || {0} || ']'", E::Prefix { at: 0 }),
            ("U&'d!0061' || {0}", E::Prefix { at: 0 }),
            ("E'a'", E::Prefix { at: 0 }),
            ("f({0}", E::Unbalanced { at: 1, bracket: '(' }),
            ("{0})", E::Unbalanced { at: 3, bracket: ')' }),
            ("f({0}]", E::Unbalanced { at: 5, bracket: ']' }),
            (") OR ({0}", E::Unbalanced { at: 0, bracket: ')' }),
            ("{{f({0})", E::Unbalanced { at: 0, bracket: '{' }),
            ("{2} = {0}", E::HoleOutOfRange { hole: 2, allowed: 2 }),
            ("{10}", E::NotAHole { at: 0 }),
            ("{a}", E::NotAHole { at: 0 }),
            ("{", E::NotAHole { at: 0 }),
            ("{0", E::NotAHole { at: 0 }),
            ("f({*})", E::AllArguments { at: 2 }),
            ("x{0}", E::FusedHole { at: 1 }),
            ("{0}x", E::FusedHole { at: 0 }),
            ("'a'{0}", E::FusedHole { at: 3 }),
            ("{0}'a'", E::FusedHole { at: 0 }),
            ("{0} 'a'", E::FusedHole { at: 0 }),
            ("{0}{1}", E::FusedHole { at: 0 }),
            ("{0} {1}", E::FusedHole { at: 0 }),
            ("{0}({1})", E::FusedHole { at: 0 }),
            ("{0} ({1})", E::FusedHole { at: 0 }),
            ("-{0}", E::FusedHole { at: 1 }),
            ("1/{0}", E::FusedHole { at: 2 }),
            ("t.{0}", E::FusedHole { at: 2 }),
            ("{0}.x", E::FusedHole { at: 0 }),
            ("{{{0}}}", E::FusedHole { at: 2 }),
            ("{0}, password", E::Comma { at: 3 }),
            ("(SELECT max(x) FROM t)", word(1, "SELECT")),
            ("(FROM t)", word(1, "FROM")),
            ("f(1, FROM t)", word(5, "FROM")),
            ("(table t)", word(1, "table")),
            ("(WITH x AS (FROM t) FROM x)", word(1, "WITH")),
            ("{0} UNION ALL {1}", word(4, "UNION")),
            ("{0} FROM t", word(4, "FROM")),
            ("{0} AS x", word(4, "AS")),
            ("{0} WHERE {1}", word(4, "WHERE")),
            ("{0} GROUP BY {1}", word(4, "GROUP")),
            ("{0} INTO {1}", word(4, "INTO")),
            ("{0} limit 1", word(4, "limit")),
            ("(SELECT.5)", word(1, "SELECT")),
            ("1UNION", E::Character { at: 1, found: 'U' }),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
        let long = "1".repeat(MAX_TEMPLATE_BYTES + 1);
        assert_eq!(parse(&long).unwrap_err(), E::TooLong { bytes: MAX_TEMPLATE_BYTES + 1 });
        assert_eq!(Template::parse("f({0}) || {*}", None).unwrap_err(), E::AllArguments { at: 10 });
    }

    #[test]
    fn an_enclosed_hole_needs_no_parentheses() {
        for (text, expected) in [
            ("f({0}, {1})", vec![true, true]),
            ("count(DISTINCT {0})", vec![true]),
            ("CAST({0} AS INTEGER)", vec![true]),
            ("{0} / NULLIF({1}, 0)", vec![false, true]),
            ("f({0} + 1)", vec![false]),
            ("{0}", vec![false]),
            ("x IN ({0})", vec![true]),
        ] {
            let template = parse(text).unwrap();
            let found: Vec<bool> = (0..template.segments.len())
                .filter(|i| matches!(template.segments[*i], Segment::Hole(_)))
                .map(|i| template.is_enclosed(i))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused_and_never_panics() {
        // A small fixed generator: every string over the dangerous alphabet up to length 4.
        let alphabet = ["{", "}", "0", "*", "'", "\"", "(", ")", "[", ",", "-", " ", "a", ":", "é"];
        for a in alphabet {
            for b in alphabet {
                for c in alphabet {
                    for d in alphabet {
                        let _ = Template::parse(&format!("{a}{b}{c}{d}"), None);
                    }
                }
            }
        }
    }
}
