//! The rows of a cube: its `sql_table` or `sql`, with the models that it refers to.
//!
//! In: [`RelationDefinition`]s and the project's models. Out: [`Relation`]s. Each model is inlined once, after the
//! models that it reads; at the end, built models are read from their tables ([`read_built`]). SQL is checked token by
//! token (one query, no comments, no `;`) so that it can be placed in parentheses. It is otherwise unchanged, because
//! the warehouse supports more SQL than any parser here.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use sqlparser::ast::{ObjectNamePart, Statement};
use sqlparser::dialect::Dialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use super::warehouse_error::word_in;
use super::{ColumnName, Cube, Refresh, RefreshQuery, Relation, TableName};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{
    Definitions, ModelDefinition, RefreshDefinition, RelationDefinition, SqlText, quote_name, quoted,
};
use crate::snippet::grammar::{Offsets, Problem, balanced, column_name, is_space, offset_of, tokenize};
use crate::snippet::parser_error::explain;
// This import goes against the order of the modules, because one file, `sql/print.rs`, writes SQL as text.
use crate::sql::{print_queries, print_rows_of};
use crate::text::nearest::likely;

const MAX_QUERY_BYTES: usize = 1024 * 1024;
/// The largest number of tokens of a query that is parsed for warnings, because the parser is recursive.
const MAX_PARSED_TOKENS: usize = 4_000;

/// The project's models, ready to be inlined.
pub(super) struct Models<'d> {
    definitions: &'d Definitions,
    index: HashMap<&'d str, usize>,
    /// The query of each model; `None` if its text is unusable, which was reported.
    texts: Vec<Option<Arc<str>>>,
}

impl<'d> Models<'d> {
    /// Parses and checks the SQL of all models. Problems are added to `diagnostics`.
    pub(super) fn new(definitions: &'d Definitions, dialect: &dyn Dialect, diagnostics: &mut Vec<Diagnostic>) -> Self {
        let index = definitions.models.iter().enumerate().map(|(at, model)| (&*model.name.value, at)).collect();
        let texts = definitions.models.iter().map(|model| query(&model.sql, false, dialect, diagnostics)).collect();
        Models { definitions, index, texts }
    }

    /// Returns the models of a relation, each after the models that it reads.
    fn needed(&self, relation: &RelationDefinition) -> Option<Vec<(Arc<str>, Arc<str>)>> {
        let mut needed = BTreeSet::new();
        let mut open: Vec<usize> = Vec::new();
        for reference in &relation.refs {
            open.push(*self.index.get(&*reference.name)?);
        }
        while let Some(at) = open.pop() {
            if needed.insert(at) {
                for reference in &self.definitions.models[at].refs {
                    open.push(*self.index.get(&*reference.name)?);
                }
            }
        }
        // `definitions.models` is in dependency order, and so are its indexes.
        let inlined = needed.into_iter().map(|at| {
            Some((Arc::clone(&self.definitions.models[at].name.value), Arc::clone(self.texts[at].as_ref()?)))
        });
        inlined.collect()
    }

    /// Returns a model's query without comments; `None` if the model has been reported.
    pub(super) fn text(&self, index: usize) -> Option<&Arc<str>> {
        self.texts.get(index)?.as_ref()
    }

    /// Reads `refresh` of a cube. A query that cannot be read is reported and left out.
    pub(super) fn refresh(
        &self,
        refresh: &RefreshDefinition,
        dialect: &dyn Dialect,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Refresh> {
        let query = refresh.sql.as_ref().and_then(|definition| {
            let sql = query(&definition.sql, false, dialect, diagnostics)?;
            Some(refresh_query(self.needed(definition)?, sql, dialect))
        });
        (refresh.every.is_some() || query.is_some()).then_some(Refresh { every: refresh.every, query })
    }

    /// Returns the relation of a cube; `None` if it, or a model that it reads, has been reported.
    pub(super) fn relation(
        &self,
        relation: &RelationDefinition,
        dialect: &dyn Dialect,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Relation> {
        if relation.is_table && relation.refs.is_empty() {
            let parts = table(&relation.sql, dialect)
                .map_err(|problem| diagnostics.push(problem.in_text(&relation.sql)))
                .ok()?;
            let full = |name: &Arc<[Arc<str>]>| {
                name.iter().map(|part| ColumnName { text: Arc::clone(part), quoted: true }).collect()
            };
            return Some(Relation::Table(TableName { parts, catalog_name: relation.catalog_name.as_ref().map(full) }));
        }
        let sql = if relation.is_table {
            if let Err(problem) = table(&relation.sql, dialect) {
                diagnostics.push(problem.in_text(&relation.sql));
                return None;
            }
            None
        } else {
            Some(query(&relation.sql, true, dialect, diagnostics)?)
        };
        let models = self.needed(relation)?;
        Some(match sql {
            Some(sql) => Relation::Query { models, sql },
            None => Relation::Model { models, name: relation.sql.text.trim().into() },
        })
    }
}

/// Returns the statement of a refresh query.
fn refresh_query(models: Named, sql: Arc<str>, dialect: &dyn Dialect) -> RefreshQuery {
    let mut own = REFRESHED.to_owned();
    while models.iter().any(|(name, _)| name.eq_ignore_ascii_case(&own)) {
        own.push('_');
    }
    let named = models.iter().map(|(name, text)| (quote_name(name, dialect), Arc::clone(text)));
    let queries: Vec<(String, Arc<str>)> = named.chain([(own, Arc::clone(&sql))]).collect();
    RefreshQuery { text: print_queries(&queries), models, sql }
}

/// The name of a refresh query among the named queries of the models that it reads.
const REFRESHED: &str = "refresh_key";

/// Models by name, each with its SQL, after the models that it reads.
type Named = Vec<(Arc<str>, Arc<str>)>;

/// Replaces models with their built relations in the SQL of cubes, if they were built with their current definitions.
pub(super) fn read_built(cubes: &mut [Cube], definitions: &Definitions, dialect: &dyn Dialect) {
    let current = |model: &&ModelDefinition| definitions.built.current.contains(&model.name.value);
    let rows: HashMap<&str, Arc<str>> = definitions
        .models
        .iter()
        .filter(current)
        .filter_map(|model| Some((&*model.name.value, print_rows_of(&built_relation(model, dialect)?))))
        .collect();
    if rows.is_empty() {
        return;
    }
    for cube in cubes {
        let rollups = cube.rollups.iter_mut().map(|rollup| &mut rollup.refresh);
        let refreshes = std::iter::once(&mut cube.refresh).chain(rollups);
        for query in refreshes.filter_map(|refresh| refresh.as_mut()?.query.as_mut()) {
            let models = over_built(&query.models, &query.sql, |name| rows.get(name).cloned());
            *query = refresh_query(models, Arc::clone(&query.sql), dialect);
        }
        let (models, reader) = match &cube.relation {
            Relation::Table(_) => continue,
            Relation::Query { models, sql } => (models, sql),
            Relation::Model { models, name } => (models, name),
        };
        if models.iter().all(|(name, _)| !rows.contains_key(&**name)) {
            continue;
        }
        let over = over_built(models, reader, |name| rows.get(name).cloned());
        cube.built_from.clone_from(models);
        match &mut cube.relation {
            Relation::Table(_) => {}
            Relation::Query { models, .. } | Relation::Model { models, .. } => *models = over,
        }
    }
}

/// Returns the name that a model is built as, quoted for SQL.
pub(super) fn built_relation(model: &ModelDefinition, dialect: &dyn Dialect) -> Option<String> {
    let (schema, name) = model.built_as()?;
    Some([quoted(schema, dialect), quoted(name, dialect)].join("."))
}

/// Returns `models` with some SQL replaced: if `rows` returns SQL for a model's name, it replaces the model's own SQL.
/// Models that `reader` then does not use are removed. A model stays if its name appears anywhere in the remaining SQL,
/// so that the name still refers to the model.
pub(super) fn over_built(models: &Named, reader: &Arc<str>, rows: impl Fn(&str) -> Option<Arc<str>>) -> Named {
    if models.iter().all(|(name, _)| rows(name).is_none()) {
        return models.clone();
    }
    let mut texts = vec![Arc::clone(reader)];
    let mut over: Named = Vec::new();
    for (name, text) in models.iter().rev() {
        if texts.iter().all(|text| word_in(text, name).is_none()) {
            continue;
        }
        let text = rows(name).unwrap_or_else(|| {
            texts.push(Arc::clone(text));
            Arc::clone(text)
        });
        over.push((Arc::clone(name), text));
    }
    over.reverse();
    over
}

/// Reads a table's name such as `raw.orders`, with as many parts as the warehouse has levels.
fn table(sql: &SqlText, dialect: &dyn Dialect) -> Result<Vec<ColumnName>, Problem> {
    let text = sql.text.trim();
    let is_word = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if text.split('.').all(is_word) {
        let part = |part: &str| ColumnName { text: part.into(), quoted: false };
        return Ok(text.split('.').map(part).collect());
    }
    let first = text.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
    let not_a_name = |()| {
        let is_query = ["SELECT", "WITH", "FROM"].iter().any(|word| first.eq_ignore_ascii_case(word));
        let (message, hint) = if text.is_empty() {
            ("`sql_table` is empty".to_owned(), "Write `schema.table`.".to_owned())
        } else if is_query {
            let query = text.lines().next().unwrap_or_default();
            ("`sql_table` must be the name of a table, found a query".to_owned(), format!("Write `sql: {query}`."))
        } else if text.contains('(') {
            let message = format!("`sql_table` must be the name of a table, found a call of `{first}`");
            (message, ["Write `sql: SELECT * FROM", text].join(" ") + "`.")
        } else {
            let message = format!("`{}` is not the name of a table", text.lines().next().unwrap_or_default());
            (message, "Write `schema.table`, or `sql: SELECT …` for anything else.".to_owned())
        };
        let lead = sql.text.len() - sql.text.trim_start().len();
        Problem::new(Code::InvalidTable, message, hint).at(lead, first.chars().count().max(1))
    };
    let mut parser =
        Parser::new(dialect).with_recursion_limit(20).with_tokens_with_locations(tokenize(&sql.text, dialect)?);
    let name = parser.parse_object_name(true).map_err(|_| not_a_name(()))?;
    if parser.peek_token_ref().token != Token::EOF {
        return Err(not_a_name(()));
    }
    let parts = name.0.into_iter().map(|part| match part {
        ObjectNamePart::Identifier(ident) => Ok(column_name(&ident)),
        ObjectNamePart::Function(_) => Err(not_a_name(())),
    });
    parts.collect()
}

/// Reads one query without comments and without a `;` at its end.
fn query(
    sql: &SqlText,
    is_relation: bool,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Arc<str>> {
    match clean(sql, is_relation, dialect) {
        Ok((text, warning)) => {
            diagnostics.extend(warning.map(|problem| {
                let error = problem.in_text(sql);
                Diagnostic { severity: crate::diagnostic::Severity::Warning, ..error }
            }));
            Some(text)
        }
        Err(problem) => {
            diagnostics.push(problem.in_text(sql));
            None
        }
    }
}

fn clean(sql: &SqlText, is_relation: bool, dialect: &dyn Dialect) -> Result<(Arc<str>, Option<Problem>), Problem> {
    let text = &*sql.text;
    if text.len() > MAX_QUERY_BYTES {
        let message = format!("the query has {} bytes", text.len());
        return Err(Problem::new(Code::SqlTooLong, message, "Split it into models. A query may have at most 1 MiB."));
    }
    let tokens = tokenize(text, dialect)?;
    let last = tokens.iter().rposition(|token| !is_space(token) && token.token != Token::SemiColon);
    let tokens = &tokens[..last.map_or(0, |last| last + 1)];
    let Some(first) = tokens.iter().find(|token| !is_space(token)) else {
        return Err(Problem::new(Code::SqlEmpty, "the query is empty", "Write `SELECT …`."));
    };
    let begins_query = match &first.token {
        Token::LParen => true,
        Token::Word(word) => {
            ["SELECT", "WITH", "FROM", "VALUES", "TABLE", "PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE", "SHOW"]
                .contains(&word.value.to_ascii_uppercase().as_str())
        }
        _ => false,
    };
    if !begins_query {
        let word = first.token.to_string();
        let message = format!("the SQL is not a query: it begins with `{word}`");
        let is_name = text.trim().bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
        let hint = match likely(&word, ["SELECT", "WITH"])
            .filter(|meant| strsim::osa_distance(&word.to_ascii_uppercase(), meant) < 3)
        {
            Some(meant) => format!("Did you mean `{meant}`?"),
            None if is_name && is_relation => format!("Write `sql_table: {}` for a table.", text.trim()),
            None => "Write one query that begins with SELECT or WITH.".to_owned(),
        };
        return Err(Problem::new(Code::SqlNotAQuery, message, hint)
            .at(offset_of(text, first.span.start), first.token.to_string().chars().count()));
    }
    if let Some(semicolon) = tokens.iter().find(|token| token.token == Token::SemiColon) {
        let problem =
            Problem::new(Code::SqlStatements, "a second statement follows this `;`", "Keep one query, without `;`.");
        return Err(problem.at(offset_of(text, semicolon.span.start), 1));
    }
    balanced(tokens, text)?;
    let mut offsets = Offsets::new(text);
    let mut printed = String::with_capacity(text.len());
    for token in tokens {
        match &token.token {
            Token::Whitespace(Whitespace::SingleLineComment { .. }) => printed.push('\n'),
            Token::Whitespace(Whitespace::MultiLineComment(_)) => printed.push(' '),
            _ => {
                // The token is copied from the text, because printing a token may change its quotes.
                let (from, to) = (offsets.advance(token.span.start), offsets.advance(token.span.end));
                printed.push_str(text.get(from..to).unwrap_or_default());
            }
        }
    }
    // Only the warehouse can check statements that the parser does not know.
    let is_own = matches!(&first.token, Token::Word(word)
        if ["PIVOT", "UNPIVOT", "DESCRIBE", "SUMMARIZE", "SHOW"].contains(&word.value.to_ascii_uppercase().as_str()));
    let warning = (tokens.len() <= MAX_PARSED_TOKENS && !is_own).then(|| warning(tokens, text, dialect)).flatten();
    Ok((printed.trim().into(), warning))
}

/// Returns a warning for SQL that the parser cannot read, although the warehouse may accept it.
fn warning(tokens: &[TokenWithSpan], text: &str, dialect: &dyn Dialect) -> Option<Problem> {
    let mut parser = Parser::new(dialect).with_recursion_limit(100).with_tokens_with_locations(tokens.to_vec());
    match parser.parse_statement() {
        Ok(Statement::Query(_)) if parser.peek_token_ref().token != Token::EOF => {
            let rest = parser.peek_token_ref();
            let place = rest.span.start;
            let message = format!("Expected: end of statement, found: {}{place}", rest.token);
            Some(explain(&ParserError::ParserError(message), text, tokens, str::to_owned))
        }
        Ok(_) => None,
        Err(error) => Some(explain(&error, text, tokens, str::to_owned)),
    }
}
