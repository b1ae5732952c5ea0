//! Completions at a position of a query, which may be incomplete or wrong.
//!
//! In: text, a position, and the names that the caller may see. Out: items from the tables that the binder also uses.
//! Items that begin with the part of the word before the position come first. The text after the position is ignored.

use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::Cube;

use crate::functions::{FUNCTIONS, Function, ParameterKind, Returns, find};
use crate::lexer::{Symbol, Token, TokenKind, tokens};
use crate::names::{Names, TableMember, equal_names};
use crate::place::Place;
use crate::print::{Bracketed, TableName};
use crate::problem::ProblemKind;

/// The largest number of completions that [`complete`] returns.
pub const MAX_COMPLETIONS: usize = 200;

/// A completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub kind: CompletionKind,
    pub label: String,
    /// The text that replaces the text at `replaces`.
    pub insert_text: String,
    pub documentation: Option<String>,
    pub replaces: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CompletionKind {
    Keyword,
    Variable,
    Measure,
    Column,
    Table,
    Function,
}

impl CompletionKind {
    pub const ALL: [CompletionKind; 6] = [
        CompletionKind::Keyword,
        CompletionKind::Variable,
        CompletionKind::Measure,
        CompletionKind::Column,
        CompletionKind::Table,
        CompletionKind::Function,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            CompletionKind::Keyword => "keyword",
            CompletionKind::Variable => "variable",
            CompletionKind::Measure => "measure",
            CompletionKind::Column => "column",
            CompletionKind::Table => "table",
            CompletionKind::Function => "function",
        }
    }
}

/// Returns the completions at a byte offset of a query.
pub fn complete(text: &str, offset: usize, access: &Access<'_>) -> Vec<Completion> {
    let Some(before) = text.get(..offset) else { return Vec::new() };
    let (mut tokens, problems) = tokens(before);
    tokens.pop();
    let open = problems.last().and_then(|problem| match &problem.kind {
        ProblemKind::Unterminated { .. } => Some(problem.place),
        _ => None,
    });
    let is_refused = matches!(problems.first().map(|p| &p.kind), Some(ProblemKind::TooLong { .. }));
    if is_refused || crate::lexer::ends_in_comment(before) {
        return Vec::new();
    }
    let mut list = List {
        names: Names::new(access),
        items: Vec::new(),
        written: String::new(),
        replaces: Place::new(offset, offset),
    };
    match (open, tokens.last()) {
        (Some(place), Some(last)) if last.place.start == place.start && last.place.end as usize == offset => {
            let last = last.clone();
            tokens.pop();
            list.inside_of_delimiters(&last, &tokens);
        }
        (_, Some(Token { kind: TokenKind::Identifier(word), place })) if place.end as usize == offset => {
            (list.written, list.replaces) = (word.to_string(), *place);
            tokens.pop();
            list.at(&tokens);
        }
        _ => list.at(&tokens),
    }
    list.finish()
}

struct List<'a> {
    names: Names<'a>,
    items: Vec<Completion>,
    /// The part of the word that is before the position.
    written: String,
    replaces: Place,
}

/// The kind of expression that is valid at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Table,
    Column,
    Any,
}

impl<'a> List<'a> {
    fn finish(mut self) -> Vec<Completion> {
        let written = self.written.to_lowercase();
        let rank = |item: &Completion| {
            let label = item.label.to_lowercase();
            let part = label.split('[').nth(1).unwrap_or_default();
            let label = label.trim_start_matches(['\'', '[']);
            match () {
                () if label.starts_with(&written) => Some(0),
                () if part.starts_with(&written) => Some(1),
                () if label.contains(&written) => Some(2),
                () => None,
            }
        };
        let mut ranked: Vec<(u8, Completion)> =
            self.items.drain(..).filter_map(|item| Some((rank(&item)?, item))).collect();
        ranked.sort_by(|(one_rank, one), (two_rank, two)| {
            (one_rank, one.kind, &one.label).cmp(&(two_rank, two.kind, &two.label))
        });
        ranked.dedup_by(|(_, one), (_, two)| one.kind == two.kind && one.label == two.label);
        ranked.truncate(MAX_COMPLETIONS);
        ranked.into_iter().map(|(_, item)| item).collect()
    }

    fn add(&mut self, kind: CompletionKind, label: String, insert_text: String, documentation: Option<String>) {
        self.items.push(Completion { kind, label, insert_text, documentation, replaces: self.replaces });
    }

    /// Completes a quoted name, or a name in brackets, that is not closed yet.
    fn inside_of_delimiters(&mut self, last: &Token, before: &[Token]) {
        self.replaces = last.place;
        match &last.kind {
            TokenKind::QuotedName(written) => {
                self.written = written.to_string();
                let tables: Vec<&Cube> = self.names.tables().collect();
                for cube in tables {
                    let quoted = format!("'{}'", cube.name.replace('\'', "''"));
                    self.add(CompletionKind::Table, quoted.clone(), quoted, documentation(cube.description.as_ref()));
                }
            }
            TokenKind::Bracketed(written) => {
                self.written = written.to_string();
                let table = before.last().filter(|token| token.place.end == last.place.start);
                let table = table.and_then(|token| match &token.kind {
                    TokenKind::Identifier(name) | TokenKind::QuotedName(name) => Some(name),
                    _ => None,
                });
                match table {
                    Some(name) => self.members_of(name, before),
                    None => self.bare_members(before),
                }
            }
            // The position is in a string, which has no completions.
            _ => {}
        }
    }

    fn members_of(&mut self, table: &Arc<str>, before: &[Token]) {
        for (home, name) in query_measures(before) {
            if equal_names(&home, table) {
                self.bracketed(CompletionKind::Measure, &name, None);
            }
        }
        let Ok(cube) = self.names.table(table) else { return };
        for (name, member) in self.listed(cube) {
            let (kind, description) = self.described(member);
            self.bracketed(kind, &name, description);
        }
    }

    fn bare_members(&mut self, before: &[Token]) {
        for (_, name) in query_measures(before) {
            self.bracketed(CompletionKind::Measure, &name, None);
        }
        // A string that a comma follows is the name that the query gives to a column.
        let names = before.windows(2).filter_map(|pair| match (&pair[0].kind, &pair[1].kind) {
            (TokenKind::Text(name), TokenKind::Symbol(Symbol::Comma)) => Some(Arc::clone(name)),
            _ => None,
        });
        for name in names.collect::<Vec<_>>() {
            self.bracketed(CompletionKind::Column, &name, None);
        }
        self.measures(|list, name, description| list.bracketed(CompletionKind::Measure, name, description));
    }

    fn bracketed(&mut self, kind: CompletionKind, name: &str, description: Option<String>) {
        let text = Bracketed(name).to_string();
        self.add(kind, text.clone(), text, description);
    }

    /// Returns those members of a table that metadata lists.
    fn listed(&self, cube: &'a Cube) -> Vec<(Arc<str>, TableMember)> {
        let listed = self.names.members(cube).filter(|(_, member)| self.names.is_listed(*member));
        listed.map(|(name, member)| (Arc::clone(name), member)).collect()
    }

    fn described(&self, member: TableMember) -> (CompletionKind, Option<String>) {
        let model = self.names.model();
        let (kind, presentation) = match member {
            TableMember::Column(id) => (CompletionKind::Column, &model.dimension(id).presentation),
            TableMember::Measure(id) => (CompletionKind::Measure, &model.measure(id).presentation),
        };
        (kind, documentation(presentation.description.as_ref()))
    }

    /// Calls `add` for each measure and metric to which a bare name can refer.
    fn measures(&mut self, add: impl Fn(&mut Self, &str, Option<String>)) {
        let model = self.names.model();
        for metric in self.names.listed_metrics().collect::<Vec<_>>() {
            let metric = model.metric(metric);
            add(self, &metric.name, documentation(metric.presentation.description.as_ref()));
        }
        let tables: Vec<&Cube> = self.names.tables().filter(|cube| cube.alias_of.is_none()).collect();
        for cube in tables {
            for (name, member) in self.listed(cube) {
                if let (CompletionKind::Measure, description) = self.described(member)
                    && self.names.measure(&name).is_ok()
                {
                    add(self, &name, description);
                }
            }
        }
    }

    /// Completes a word, or an expression after a symbol.
    fn at(&mut self, before: &[Token]) {
        let call = enclosing_call(before);
        if let Some((function, argument)) = call {
            let parameter = function.parameter(argument, argument + 1).map(|parameter| parameter.kind);
            let words: &[&str] = match parameter {
                Some(ParameterKind::Order) => &["ASC", "DESC"],
                Some(ParameterKind::Ties) => &["SKIP", "DENSE"],
                Some(ParameterKind::ShiftInterval) => &["DAY", "MONTH", "QUARTER", "YEAR"],
                Some(ParameterKind::DiffInterval) => {
                    &["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR"]
                }
                _ => &[],
            };
            if !words.is_empty() {
                return self.keywords(words);
            }
            let wanted = match parameter {
                Some(ParameterKind::Table | ParameterKind::RowTable) => Wanted::Table,
                Some(ParameterKind::Column) if !function.has_own_order() => Wanted::Column,
                _ => Wanted::Any,
            };
            return self.expression(wanted, before);
        }
        match before.iter().rev().find_map(statement_word) {
            None => self.keywords(&["DEFINE", "EVALUATE"]),
            Some("DEFINE") if matches!(before.last(), Some(last) if statement_word(last).is_some()) => {
                self.keywords(&["MEASURE", "VAR"]);
            }
            Some("MEASURE") if matches!(before.last(), Some(last) if statement_word(last).is_some()) => self.tables(),
            Some("VAR") if matches!(before.last(), Some(last) if statement_word(last).is_some()) => {}
            Some("EVALUATE") => {
                let is_first = matches!(before.last(), Some(last) if statement_word(last).is_some());
                if is_first {
                    self.keywords(&["VAR"]);
                } else {
                    self.keywords(&["ORDER BY", "EVALUATE"]);
                }
                self.expression(Wanted::Table, before);
            }
            Some("BY") => {
                self.keywords(&["ASC", "DESC", "START AT", "EVALUATE"]);
                self.expression(Wanted::Any, before);
            }
            Some(_) => {
                self.keywords(&["VAR", "RETURN", "MEASURE", "EVALUATE"]);
                self.expression(Wanted::Any, before);
            }
        }
    }

    fn keywords(&mut self, words: &[&str]) {
        for word in words {
            self.add(CompletionKind::Keyword, (*word).to_owned(), (*word).to_owned(), None);
        }
    }

    fn tables(&mut self) {
        let tables: Vec<&Cube> = self.names.tables().collect();
        for cube in tables {
            let name = TableName(&cube.name).to_string();
            self.add(CompletionKind::Table, name.clone(), name, documentation(cube.description.as_ref()));
        }
    }

    fn expression(&mut self, wanted: Wanted, before: &[Token]) {
        for name in variables(before) {
            self.add(CompletionKind::Variable, name.to_string(), name.to_string(), None);
        }
        self.tables();
        // Before a word begins, only tables are offered, because the name of a table leads to its columns.
        if wanted == Wanted::Column || wanted == Wanted::Any && !self.written.is_empty() {
            let tables: Vec<&Cube> = self.names.tables().collect();
            for cube in tables {
                for (name, member) in self.listed(cube) {
                    if let (CompletionKind::Column, description) = self.described(member) {
                        let text = format!("{}{}", TableName(&cube.name), Bracketed(&name));
                        self.add(CompletionKind::Column, text.clone(), text, description);
                    }
                }
            }
        }
        if wanted == Wanted::Any {
            self.bare_members(before);
        }
        if wanted != Wanted::Column {
            let fits = |function: &&Function| wanted == Wanted::Any || function.returns == Returns::Table;
            for function in FUNCTIONS.iter().filter(fits) {
                let documentation = format!("{}\n{}", function.signature(), function.description);
                let insert_text = if function.parameters.is_empty() { "()" } else { "(" };
                let insert_text = format!("{}{insert_text}", function.name);
                self.add(CompletionKind::Function, function.name.to_owned(), insert_text, Some(documentation));
            }
        }
    }
}

fn documentation(description: Option<&Arc<str>>) -> Option<String> {
    description.map(|text| text.to_string())
}

/// Returns the keyword that a token is, in upper case.
fn statement_word(token: &Token) -> Option<&'static str> {
    let TokenKind::Identifier(name) = &token.kind else { return None };
    let words = ["DEFINE", "EVALUATE", "MEASURE", "VAR", "RETURN", "BY", "AT"];
    words.into_iter().find(|word| word.eq_ignore_ascii_case(name))
}

/// Returns the function whose argument list is open at the end of the tokens, and the number of complete arguments in
/// that list.
fn enclosing_call(before: &[Token]) -> Option<(&'static Function, usize)> {
    let (mut closed, mut commas) = (0usize, 0usize);
    for (at, token) in before.iter().enumerate().rev() {
        match token.kind {
            TokenKind::Symbol(Symbol::CloseParenthesis | Symbol::CloseBrace) => closed += 1,
            TokenKind::Symbol(Symbol::OpenParenthesis | Symbol::OpenBrace) if closed > 0 => closed -= 1,
            TokenKind::Symbol(Symbol::OpenBrace) => return None,
            TokenKind::Symbol(Symbol::OpenParenthesis) => {
                if let Some(Token { kind: TokenKind::Identifier(name), .. }) = before[..at].last() {
                    return find(name).map(|function| (function, commas));
                }
                // These parentheses enclose an expression and are not a call.
                commas = 0;
            }
            TokenKind::Symbol(Symbol::Comma) if closed == 0 => commas += 1,
            _ => {}
        }
    }
    None
}

/// Returns the names of the variables that the tokens define.
fn variables(before: &[Token]) -> Vec<Arc<str>> {
    let named = before.windows(3).filter_map(|three| match (&three[0].kind, &three[1].kind, &three[2].kind) {
        (TokenKind::Identifier(word), TokenKind::Identifier(name), TokenKind::Symbol(Symbol::Equal))
            if word.eq_ignore_ascii_case("VAR") =>
        {
            Some(Arc::clone(name))
        }
        _ => None,
    });
    named.collect()
}

/// Returns the measures that the tokens define, each with its table.
fn query_measures(before: &[Token]) -> Vec<(Arc<str>, Arc<str>)> {
    let defined = before.windows(3).filter_map(|three| match (&three[0].kind, &three[1].kind, &three[2].kind) {
        (
            TokenKind::Identifier(word),
            TokenKind::Identifier(table) | TokenKind::QuotedName(table),
            TokenKind::Bracketed(name),
        ) if word.eq_ignore_ascii_case("MEASURE") => Some((Arc::clone(table), Arc::clone(name))),
        _ => None,
    });
    defined.collect()
}
