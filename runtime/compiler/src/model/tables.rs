//! The warehouse tables that a cube reads, so that a policy on a table reaches every cube over it.
//!
//! In: relations. Out: table names, folded to lower case. A text that no parser here can read may read
//! anything.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, Query, Visit as _, Visitor, visit_relations};
use sqlparser::dialect::Dialect;
use sqlparser::parser::Parser;

use super::Relation;
use super::grammar::tokenize;

/// The parser recurses on longer texts.
const MAX_TOKENS: usize = 4_000;

/// What a relation reads.
#[derive(Debug)]
pub(crate) enum Tables {
    /// One table's rows as they are.
    Exactly(String),
    Some(BTreeSet<String>),
    Unknown,
}

impl Tables {
    pub(super) fn of(relation: &Relation, dialect: &dyn Dialect) -> Tables {
        let (models, sql) = match relation {
            Relation::Table(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| part.text.to_lowercase()).collect();
                return Tables::Exactly(parts.join("."));
            }
            Relation::Query { models, sql } => (models, Some(sql)),
            Relation::Model { models, .. } => (models, None),
        };
        let mut found = BTreeSet::new();
        for text in models.iter().map(|(_, text)| text).chain(sql) {
            match in_text(text, dialect) {
                Some(tables) => found.extend(tables),
                None => return Tables::Unknown,
            }
        }
        models.iter().for_each(|(name, _)| {
            found.remove(&name.to_lowercase());
        });
        Tables::Some(found)
    }

    /// Whether the table is, or may be, read.
    pub(super) fn may_read(&self, table: &str) -> bool {
        match self {
            Tables::Exactly(own) => is_same(own, table),
            Tables::Some(all) => all.iter().any(|own| is_same(own, table)),
            Tables::Unknown => true,
        }
    }

    /// The table that a policy on this relation protects.
    pub(super) fn protected(&self) -> Option<&str> {
        match self {
            Tables::Exactly(table) => Some(table),
            Tables::Some(all) if all.len() == 1 => all.first().map(String::as_str),
            _ => None,
        }
    }
}

/// `orders` and `raw.orders` may be the same table.
pub(super) fn is_same(a: &str, b: &str) -> bool {
    let ends_with = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('.'));
    a == b || ends_with(a, b) || ends_with(b, a)
}

fn in_text(text: &str, dialect: &dyn Dialect) -> Option<BTreeSet<String>> {
    let statements = Parser::new(dialect).with_recursion_limit(60).try_with_sql(text).ok()?.parse_statements().ok()?;
    let mut found = BTreeSet::new();
    let _ = visit_relations(&statements, |relation| {
        let name = relation.to_string().to_lowercase();
        found.insert(name.replace(['"', '`', '[', ']'], ""));
        ControlFlow::<()>::Continue(())
    });
    Some(found)
}

/// The tables that a query names, without those that its own `WITH` makes; none of a text that no parser here
/// can read.
pub(crate) fn tables_named_in(text: &str, dialect: &dyn Dialect) -> BTreeSet<String> {
    let tokens = tokenize(text, dialect).ok().filter(|tokens| tokens.len() <= MAX_TOKENS);
    let parsed = tokens.and_then(|tokens| {
        let mut parser = Parser::new(dialect).with_recursion_limit(60).with_tokens_with_locations(tokens);
        parser.parse_statements().ok()
    });
    let Some(statements) = parsed else { return BTreeSet::new() };
    let mut names = Names::default();
    let _ = statements.visit(&mut names);
    &names.relations - &names.own
}

#[derive(Default)]
struct Names {
    relations: BTreeSet<String>,
    own: BTreeSet<String>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        self.own.extend(tables.map(|table| table.alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.relations.insert(relation.to_string().to_lowercase().replace(['"', '`', '[', ']'], ""));
        ControlFlow::Continue(())
    }
}
