//! Statements of Execute: DAX, queries of rowsets, and other languages.
//!
//! In: the text of a statement. Out: its kind. A query of a rowset (`SELECT … FROM $SYSTEM.MDSCHEMA_CUBES WHERE …`) is
//! parsed to the rowset, the columns and the conditions. Not here: DAX itself, which has its own crate.

use crate::fault::{Fault, FaultCode};

/// The kind of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Empty,
    Dax,
    Rowset(RowsetQuery),
}

/// A query of a rowset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsetQuery {
    pub rowset: String,
    /// True if equal rows are returned once.
    pub is_distinct: bool,
    /// The columns in the order of the statement. `None` for all columns.
    pub columns: Option<Vec<String>>,
    /// The conditions. A row passes if it meets all of them.
    pub conditions: Vec<Condition>,
}

/// A comparison of a column with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub column: String,
    pub is_negated: bool,
    pub value: String,
}

/// The largest number of conditions of a query.
const MAX_CONDITIONS: usize = 100;
/// The first words of statements that are not in DAX.
const OTHER_LANGUAGES: [&str; 10] =
    ["SELECT", "WITH", "DRILLTHROUGH", "CREATE", "ALTER", "DROP", "UPDATE", "REFRESH", "CALL", "CLEAR"];

impl Statement {
    /// Determines the kind of a statement, and parses a query of a rowset.
    ///
    /// # Errors
    /// The statement is in a different language than DAX, or is an invalid query of a rowset.
    pub fn read(text: &str) -> Result<Statement, Fault> {
        let text = text.trim().trim_end_matches(';').trim_end();
        if text.is_empty() {
            return Ok(Statement::Empty);
        }
        let word = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_ascii_uppercase();
        if word == "SELECT" && text.to_ascii_uppercase().contains("$SYSTEM") {
            return rowset_query(text).map(Statement::Rowset);
        }
        if is_refresh(text) {
            return Ok(Statement::Empty);
        }
        if OTHER_LANGUAGES.contains(&word.as_str()) {
            let message = format!(
                "MDX is not supported, and neither are other statements than DAX: found `{word}`; send `EVALUATE …`, \
                 or a query of a rowset such as `SELECT * FROM $SYSTEM.MDSCHEMA_CUBES`"
            );
            return Err(Fault::new(FaultCode::InvalidStatement, message));
        }
        Ok(Statement::Dax)
    }
}

/// Returns whether a statement is `REFRESH CUBE [name]`, which clients send after they drop their cache. The server has
/// no cache to refresh, so the result is empty.
fn is_refresh(text: &str) -> bool {
    let after = |text: &str, word: &str| -> Option<String> {
        let (first, rest) = text.split_at_checked(word.len())?;
        let is_word = first.eq_ignore_ascii_case(word) && rest.starts_with(char::is_whitespace);
        is_word.then(|| rest.trim_start().to_owned())
    };
    let Some(name) = after(text.trim(), "REFRESH").and_then(|rest| after(&rest, "CUBE")) else { return false };
    let name = name.trim_end_matches(';').trim_end();
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        // A bracket in a name is written twice.
        Some(inner) => !inner.is_empty() && !inner.replace("]]", "").contains(']'),
        None => !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_'),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// An unquoted word, such as a keyword or `$SYSTEM`.
    Word(String),
    /// A name in brackets.
    Name(String),
    /// A string in single quotes.
    Text(String),
    Sign(&'static str),
}

fn rowset_query(text: &str) -> Result<RowsetQuery, Fault> {
    let mut tokens = Tokens { tokens: tokens(text)?, at: 0 };
    tokens.keyword("SELECT")?;
    let is_distinct = tokens.next_is("DISTINCT");
    let columns = tokens.columns()?;
    tokens.keyword("FROM")?;
    let rowset = tokens.rowset()?;
    let mut conditions = Vec::new();
    if tokens.next_is("WHERE") {
        loop {
            conditions.push(tokens.condition()?);
            if conditions.len() > MAX_CONDITIONS {
                return Err(invalid(format!("the query has more than {MAX_CONDITIONS} conditions")));
            }
            if !tokens.next_is("AND") {
                break;
            }
        }
    }
    match tokens.peek() {
        None => Ok(RowsetQuery { rowset, is_distinct, columns, conditions }),
        Some(token) => Err(invalid(format!("{token} is not supported in a query of a rowset"))),
    }
}

struct Tokens {
    tokens: Vec<Token>,
    at: usize,
}

impl Tokens {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    /// Skips the next token and returns true if the token is this keyword.
    fn next_is(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        self.at += usize::from(found);
        found
    }

    fn sign_is(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(found)) if *found == sign);
        self.at += usize::from(found);
        found
    }

    fn keyword(&mut self, keyword: &str) -> Result<(), Fault> {
        if self.next_is(keyword) { Ok(()) } else { Err(self.expected(&format!("`{keyword}`"))) }
    }

    fn expected(&self, expected: &str) -> Fault {
        match self.peek() {
            Some(token) => invalid(format!("expected {expected}, found {token}")),
            None => invalid(format!("expected {expected} at the end of the query")),
        }
    }

    fn columns(&mut self) -> Result<Option<Vec<String>>, Fault> {
        if self.sign_is("*") {
            return Ok(None);
        }
        let mut columns = vec![self.column()?];
        while self.sign_is(",") {
            columns.push(self.column()?);
        }
        Ok(Some(columns))
    }

    fn column(&mut self) -> Result<String, Fault> {
        match self.peek() {
            Some(Token::Word(name) | Token::Name(name)) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected("a column")),
        }
    }

    fn rowset(&mut self) -> Result<String, Fault> {
        let schema = self.column()?;
        if !schema.eq_ignore_ascii_case("$SYSTEM") || !self.sign_is(".") {
            return Err(invalid(format!("expected `$SYSTEM.` and the name of a rowset, found `{schema}`")));
        }
        self.column()
    }

    fn condition(&mut self) -> Result<Condition, Fault> {
        let parentheses = std::iter::from_fn(|| self.sign_is("(").then_some(())).count();
        let column = self.column()?;
        let is_negated = match self.peek() {
            Some(Token::Sign("=")) => false,
            Some(Token::Sign("<>")) => true,
            _ => return Err(self.expected("`=` or `<>`")),
        };
        self.at += 1;
        let value = match self.next() {
            Some(Token::Text(value) | Token::Word(value)) => value,
            _ => return Err(invalid(format!("column `{column}` must be compared with a string or a number"))),
        };
        for _ in 0..parentheses {
            if !self.sign_is(")") {
                return Err(self.expected("`)`"));
            }
        }
        Ok(Condition { column, is_negated, value })
    }
}

fn invalid(message: String) -> Fault {
    Fault::new(FaultCode::InvalidStatement, message)
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let short = |text: &str| text.chars().take(100).collect::<String>();
        match self {
            Token::Word(word) => write!(f, "`{}`", short(word)),
            Token::Name(name) => write!(f, "`[{}]`", short(name)),
            Token::Text(text) => write!(f, "`'{}'`", short(text)),
            Token::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    const SIGNS: [&str; 7] = ["<>", "=", "*", ",", ".", "(", ")"];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
        let (token, length) = match (first, sign) {
            (_, Some(sign)) => (Token::Sign(sign), sign.len()),
            ('[', _) => quoted(rest, ']').map(|(name, length)| (Token::Name(name), length))?,
            ('\'', _) => quoted(rest, '\'').map(|(text, length)| (Token::Text(text), length))?,
            _ => {
                let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$' | '-')));
                let length = end.unwrap_or(rest.len());
                if length == 0 {
                    return Err(invalid(format!("unexpected `{first}` in a query of a rowset")));
                }
                (Token::Word(rest[..length].to_owned()), length)
            }
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Returns the content of a quoted token, and the token's length in bytes including its quotes. A doubled end quote in
/// the content stands for one.
fn quoted(text: &str, end: char) -> Result<(String, usize), Fault> {
    let mut content = String::new();
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character != end {
            content.push(character);
        } else if characters.next_if(|(_, next)| *next == end).is_some() {
            content.push(end);
        } else {
            return Ok((content, at + end.len_utf8()));
        }
    }
    Err(invalid(format!("`{end}` is missing in a query of a rowset")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rowset(text: &str) -> RowsetQuery {
        match Statement::read(text).unwrap() {
            Statement::Rowset(query) => query,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn queries_of_rowsets_are_read() {
        let all = RowsetQuery {
            rowset: "MDSCHEMA_CUBES".to_owned(),
            is_distinct: false,
            columns: None,
            conditions: Vec::new(),
        };
        assert_eq!(rowset("select * from $system.mdschema_cubes").rowset, "mdschema_cubes");
        assert_eq!(rowset("SELECT * FROM $SYSTEM.MDSCHEMA_CUBES;"), all);
        assert_eq!(rowset(" SELECT * FROM [$SYSTEM].[MDSCHEMA_CUBES] "), all);
        assert!(rowset("SELECT distinct CUBE_NAME FROM $SYSTEM.MDSCHEMA_CUBES").is_distinct);
        let query = rowset(
            "SELECT [CUBE_NAME], DESCRIPTION FROM $SYSTEM.MDSCHEMA_CUBES WHERE [CUBE_NAME] = 'it''s' AND \
             ([CUBE_SOURCE] <> 1)",
        );
        assert_eq!(query.columns, Some(vec!["CUBE_NAME".to_owned(), "DESCRIPTION".to_owned()]));
        let condition = |column: &str, is_negated, value: &str| Condition {
            column: column.to_owned(),
            is_negated,
            value: value.to_owned(),
        };
        assert_eq!(query.conditions, [condition("CUBE_NAME", false, "it's"), condition("CUBE_SOURCE", true, "1")]);
    }

    #[test]
    fn unreadable_queries_of_rowsets_are_faults() {
        for text in [
            "SELECT FROM $SYSTEM.X",
            "SELECT * FROM $SYSTEM",
            "SELECT * FROM other.X -- $SYSTEM",
            "SELECT * FROM $SYSTEM.X WHERE",
            "SELECT * FROM $SYSTEM.X WHERE A",
            "SELECT * FROM $SYSTEM.X WHERE A = ",
            "SELECT * FROM $SYSTEM.X WHERE A = 'b",
            "SELECT * FROM $SYSTEM.X WHERE (A = 'b'",
            "SELECT * FROM $SYSTEM.X WHERE A = 'b' OR A = 'c'",
            "SELECT * FROM $SYSTEM.X ORDER BY A",
            "SELECT [A FROM $SYSTEM.X",
            "SELECT ? FROM $SYSTEM.X",
        ] {
            assert_eq!(Statement::read(text).unwrap_err().code, FaultCode::InvalidStatement, "{text}");
        }
    }

    #[test]
    fn dax_and_other_languages_are_distinguished() {
        for text in ["", " ; ", "\n", "REFRESH CUBE [orders]", "refresh cube [a b];"] {
            assert_eq!(Statement::read(text), Ok(Statement::Empty), "{text}");
        }
        for text in ["EVALUATE orders", "define measure a[b] = 1 evaluate a", "-- c\nEVALUATE a", "nonsense"] {
            assert_eq!(Statement::read(text), Ok(Statement::Dax), "{text}");
        }
        for (text, word) in [
            ("SELECT FROM [orders]", "SELECT"),
            ("with member x as 1 select x on 0 from y", "WITH"),
            ("DRILLTHROUGH SELECT", "DRILLTHROUGH"),
            ("CREATE X", "CREATE"),
            ("REFRESH CUBE", "REFRESH"),
        ] {
            let fault = Statement::read(text).unwrap_err();
            assert_eq!(fault.code, FaultCode::InvalidStatement, "{text}: {fault:?}");
            assert_eq!(fault.message.split('`').nth(1), Some(word), "{text}: {fault:?}");
        }
    }
}
