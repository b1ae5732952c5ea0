//! The warehouse tables that a cube reads, so that a policy on a table reaches every cube over it.
//!
//! In: relations, the project's models, and the statements that its connections begin with. Out: canonical names of
//! tables and files (`table_names`), and for a query a name of its own, so that a policy on it reaches every cube
//! with the same text. A text that no parser here can read may read anything. What decides is what is defined: a
//! model that was built reads what its definition reads, whether it is inlined, read where it was built, or named
//! by hand as a table. What was built of a definition that is no more may hold anything. A view that the
//! connection's statements create reads what its query reads. One file: the names that a text reads and the policy
//! decisions on them are one rule, and a gap between the two would open a table.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use sqlparser::ast::{
    Cte, Expr, FunctionArg, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, SetExpr, SetOperator,
    Statement, TableFactor, Visit, Visitor, With, visit_relations,
};
use sqlparser::dialect::Dialect;
use sqlparser::parser::Parser;

use super::grammar::tokenize;
use super::table_functions::{Reads, is_reading_scalar, literals, main_texts, texts};
use super::table_names::{
    index_key, is_file, is_pattern, is_same, last_component, of_directory, of_file, of_parts, of_table,
};
use super::{ColumnName, CubeId, Relation};
use crate::project::{Definitions, ModelDefinition};

/// The parser recurses on longer texts.
const MAX_TOKENS: usize = 4_000;

/// What a relation reads.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The one relation whose rows these are, as they are: a table, or a query by its text ([`written`]).
    exactly: String,
    /// Not a table of the warehouse's own, but what a query or models made.
    is_made: bool,
    /// A view that the connection's statements create.
    is_view: bool,
    /// `None`: it may read anything.
    read: Option<BTreeSet<String>>,
    /// What the models behind it are built as.
    built: BTreeSet<String>,
    /// The one model whose rows it takes, as it is built.
    only_model: Option<String>,
}

impl Tables {
    /// Whether the table is, or may be, read.
    pub(super) fn may_read(&self, table: &str) -> bool {
        if is_written(table) {
            return self.exactly == table;
        }
        self.names().is_none_or(|mut names| names.any(|own| is_same(own, table)))
    }

    /// All that it reads; `None`: it may be anything.
    fn names(&self) -> Option<impl Iterator<Item = &str>> {
        let read = self.read.as_ref()?;
        Some(read.iter().chain(&self.built).chain(std::iter::once(&self.exactly)).map(String::as_str))
    }

    /// The tables that a policy on this relation protects.
    pub(super) fn protected(&self) -> impl Iterator<Item = &str> {
        let names = || self.read.iter().flatten();
        // One table may have several names, which all end alike.
        let is_single = |first: &String| names().all(|name| last_component(name) == last_component(first));
        let is_of_one_table = (self.is_made || self.is_view) && names().next().is_some_and(is_single);
        let read = names().filter(move |_| is_of_one_table);
        std::iter::once(&self.exactly).chain(read).chain(&self.only_model).map(String::as_str)
    }

    /// A table of the warehouse's own, as it is.
    pub(super) fn is_one_table(&self) -> bool {
        !self.is_made
    }

    /// Whether a condition on rows of `origin` can be asked of these: they are one table's own.
    pub(super) fn are_rows_of(&self, origin: &Tables) -> bool {
        let are_unchanged = !self.is_made && !self.is_view && !origin.is_view;
        are_unchanged || (!is_written(&self.exactly) && self.is_named_as(origin))
    }

    /// Returns whether columns that are masked in `origin` are found here by their names. A query makes columns of its
    /// own, so those of its table are not known by its names; those of a query over a file are found only where the
    /// same name is read as a table.
    pub(super) fn are_columns_of(&self, origin: &Tables) -> bool {
        if is_written(&origin.exactly) {
            return self.exactly == origin.exactly;
        }
        let are_named = !is_written(&self.exactly) && self.is_named_as(origin);
        are_named || !origin.protected().any(is_file)
    }

    /// Files of one pattern have the columns of any of them.
    fn is_named_as(&self, origin: &Tables) -> bool {
        let is_one = !is_pattern(&self.exactly) && !is_pattern(&origin.exactly);
        self.exactly == origin.exactly || (is_one && is_same(&self.exactly, &origin.exactly))
    }

    /// Whether it is not known which tables are read.
    pub(super) fn may_read_anything(&self) -> bool {
        self.read.is_none()
    }
}

/// The cubes by the tables that they read.
pub(super) struct Readers<'t> {
    tables: &'t [Tables],
    by_name: HashMap<&'t str, Vec<CubeId>>,
    /// They may read anything, or files that a pattern or a folder names.
    of_any_name: Vec<CubeId>,
}

impl<'t> Readers<'t> {
    /// `tables`: those of each cube.
    pub(super) fn of(tables: &'t [Tables]) -> Readers<'t> {
        let mut readers = Readers { tables, by_name: HashMap::with_capacity(tables.len()), of_any_name: Vec::new() };
        for (id, read) in (0u32..).map(CubeId).zip(tables) {
            let Some(names) = read.names() else {
                readers.of_any_name.push(id);
                continue;
            };
            for name in names {
                match key_of(name) {
                    Some(key) => readers.by_name.entry(key).or_default().push(id),
                    None => readers.of_any_name.push(id),
                }
            }
        }
        readers
    }

    /// The cubes that read, or may read, the table whose rows a cube has; it may be among them, also twice.
    pub(super) fn of_rows(&self, cube: CubeId) -> impl Iterator<Item = CubeId> + '_ {
        self.tables[cube.0 as usize].protected().flat_map(move |table| {
            let key = key_of(table);
            let named = key.and_then(|key| self.by_name.get(key)).into_iter().flatten().copied();
            let all = (0..self.tables.len() as u32).map(CubeId).filter(move |_| key.is_none());
            let may_read = move |reader: &CubeId| self.tables[reader.0 as usize].may_read(table);
            named.chain(self.of_any_name.iter().copied()).chain(all).filter(may_read)
        })
    }
}

/// What stands for a table where rows are a query's: heirs of its cube, and whoever writes the same, have the same
/// rows. No table has such a name, nor a name that ends like it.
fn written(text: &str) -> String {
    format!("\0{text}\0")
}

fn is_written(table: &str) -> bool {
    table.starts_with('\0')
}

fn key_of(table: &str) -> Option<&str> {
    if is_written(table) { Some(table) } else { index_key(table) }
}

fn last_part(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// A view or a table that the connection's statements create of a query.
struct View {
    name: String,
    /// `None`: it may read anything.
    named: Option<BTreeSet<String>>,
}

/// Finds out what relations read.
pub(super) struct TableReader<'d> {
    definitions: &'d Definitions,
    dialect: &'d dyn Dialect,
    index: HashMap<&'d str, usize>,
    /// What each model is built as; `None` where it never is.
    built_as: Vec<Option<String>>,
    /// Models by the last part of what they are built as.
    by_last_part: HashMap<String, Vec<usize>>,
    /// What each model's own text names; read when it is first needed.
    named: Vec<OnceCell<Option<BTreeSet<String>>>>,
    views: Vec<View>,
}

impl<'d> TableReader<'d> {
    pub(super) fn new(definitions: &'d Definitions, dialect: &'d dyn Dialect) -> Self {
        let models = || definitions.models.iter().enumerate();
        let built_as: Vec<Option<String>> = models().map(|(_, model)| built_as(model)).collect();
        let mut by_last_part: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, model) in models().filter(|(at, _)| built_as[*at].is_some()) {
            by_last_part.entry(model.name.value.to_lowercase()).or_default().push(at);
        }
        TableReader {
            definitions,
            dialect,
            index: models().map(|(at, model)| (&*model.name.value, at)).collect(),
            built_as,
            by_last_part,
            named: definitions.models.iter().map(|_| OnceCell::new()).collect(),
            views: definitions.init.iter().flat_map(|statement| views(statement, dialect)).collect(),
        }
    }

    pub(super) fn tables(&self, relation: &Relation) -> Tables {
        let mut following = Following::of(self);
        let exactly;
        let (mut only_model, mut full) = (None, None);
        let models = match relation {
            Relation::Table(table) => {
                let named = |parts: &[ColumnName]| {
                    of_parts(&parts.iter().map(|part| part.text.to_string()).collect::<Vec<_>>())
                };
                let (name, others) = named(table);
                std::iter::once(name.clone()).chain(others).for_each(|name| following.name(name));
                full = table.located.as_deref().map(|located| named(located).0);
                full.iter().for_each(|full| following.name(full.clone()));
                exactly = name;
                &[]
            }
            Relation::Query { models, sql } => {
                exactly = written(sql);
                match in_text(sql, self.dialect) {
                    Some(mut named) => {
                        // The models stand before it as named queries, and it sees all of them.
                        let named_model = |(model, _): &&(Arc<str>, _)| named.remove(&model.to_lowercase());
                        let direct: Vec<&str> = models.iter().filter(named_model).map(|(model, _)| &**model).collect();
                        only_model = self.only(&direct).filter(|_| named.is_empty());
                        named.into_iter().for_each(|name| following.name(name));
                    }
                    None => following.is_unknown = true,
                }
                models.as_slice()
            }
            Relation::Model { models, name } => {
                exactly = written(name);
                only_model = self.only(&[name.trim_matches(['"', '`', '[', ']'])]);
                models.as_slice()
            }
        };
        for (model, _) in models {
            match self.index.get(&**model) {
                Some(at) => following.open.push(*at),
                None => following.is_unknown = true,
            }
        }
        following.follow();
        let Following { mut read, built, followed, views, is_unknown, .. } = following;
        let is_made = is_written(&exactly) || is_unknown || !followed.is_empty() || is_pattern(&exactly);
        let is_view = !views.is_empty();
        if built.iter().any(|built| is_same(built, &exactly)) {
            // What stands for a model's definition is what the definition reads.
            read.remove(&exactly);
            read.retain(|name| Some(name) != full.as_ref());
        }
        Tables { exactly, is_made, is_view, read: (!is_unknown).then_some(read), built, only_model }
    }

    /// What a single model is built as.
    fn only(&self, models: &[&str]) -> Option<String> {
        let [model] = models else { return None };
        self.built_as[*self.index.get(model)?].clone()
    }
}

/// What one relation names, followed through models.
struct Following<'r, 'd> {
    reader: &'r TableReader<'d>,
    read: BTreeSet<String>,
    built: BTreeSet<String>,
    followed: BTreeSet<usize>,
    views: BTreeSet<usize>,
    open: Vec<usize>,
    is_unknown: bool,
}

impl<'r, 'd> Following<'r, 'd> {
    fn of(reader: &'r TableReader<'d>) -> Self {
        let (read, built) = (BTreeSet::new(), BTreeSet::new());
        let (followed, views) = (BTreeSet::new(), BTreeSet::new());
        Following { reader, read, built, followed, views, open: Vec::new(), is_unknown: false }
    }

    /// A table's name, which may be what a model is built as, or a view's.
    fn name(&mut self, name: String) {
        let reader = self.reader;
        let held = &reader.definitions.built;
        self.is_unknown |= held.is_unknown || held.outdated.iter().any(|outdated| is_same(outdated, &name));
        let is_it = |at: &usize| reader.built_as[*at].as_ref().is_some_and(|built| is_same(built, &name));
        if is_pattern(&name) {
            self.open.extend((0..reader.built_as.len()).filter(is_it));
        } else {
            let candidates = reader.by_last_part.get(last_part(&name)).into_iter().flatten().copied();
            self.open.extend(candidates.filter(is_it));
        }
        for (at, view) in reader.views.iter().enumerate().filter(|(_, view)| is_same(&view.name, &name)) {
            if !self.views.insert(at) {
                continue;
            }
            self.built.insert(view.name.clone());
            match &view.named {
                Some(named) => named.iter().for_each(|name| self.name(name.clone())),
                None => self.is_unknown = true,
            }
        }
        self.read.insert(name);
    }

    /// Each model once, whatever names lead to it.
    fn follow(&mut self) {
        let reader = self.reader;
        while let Some(at) = self.open.pop() {
            if !self.followed.insert(at) {
                continue;
            }
            let model = &reader.definitions.models[at];
            self.built.extend(reader.built_as[at].clone());
            self.open.extend(model.refs.iter().filter_map(|reference| reader.index.get(&*reference.name)));
            let Some(named) = reader.named[at].get_or_init(|| in_text(&model.sql.text, reader.dialect)) else {
                self.is_unknown = true;
                continue;
            };
            // What `ref` gave is a model's name. Any other name, be it a model's too, may be a table's.
            let refs: BTreeSet<String> = model.refs.iter().map(|reference| reference.name.to_lowercase()).collect();
            named.difference(&refs).for_each(|name| self.name(name.clone()));
        }
    }
}

fn built_as(model: &ModelDefinition) -> Option<String> {
    model.built_as().map(|(schema, name)| format!("{schema}.{name}").to_lowercase())
}

/// The views and tables that a statement creates of a query. A statement that the parser can't read creates none.
fn views(statement: &str, dialect: &dyn Dialect) -> Vec<View> {
    let parsed = Parser::new(dialect).with_recursion_limit(60).try_with_sql(statement);
    let Ok(statements) = parsed.and_then(|mut parser| parser.parse_statements()) else { return Vec::new() };
    let created = statements.iter().filter_map(|created| match created {
        Statement::CreateView(view) => Some((&view.name, &view.query)),
        Statement::CreateTable(table) => table.query.as_ref().map(|query| (&table.name, query)),
        _ => None,
    });
    created
        .map(|(name, query)| View {
            name: folded(name),
            named: in_tree(&**query, has_escapes(statement, dialect), dialect),
        })
        .collect()
}

/// Canonical names of tables and files, without those that a WITH around them gives to a query of its own.
fn in_text(text: &str, dialect: &dyn Dialect) -> Option<BTreeSet<String>> {
    let statements = Parser::new(dialect).with_recursion_limit(60).try_with_sql(text).ok()?.parse_statements().ok()?;
    in_tree(&statements, has_escapes(text, dialect), dialect)
}

fn in_tree(tree: &impl Visit, has_escapes: bool, dialect: &dyn Dialect) -> Option<BTreeSet<String>> {
    let mut names = Names { has_escapes, ..Names::default() };
    let _ = tree.visit(&mut names);
    for query in std::mem::take(&mut names.written) {
        names.found.extend(in_text(&query, dialect)?);
    }
    (!names.is_unknown).then_some(names.found)
}

/// Whether the texts in it may mean other characters than they show.
fn has_escapes(text: &str, dialect: &dyn Dialect) -> bool {
    dialect.supports_string_literal_backslash_escape() && text.contains('\\')
}

/// The same of a text that no parser here can read, or that is very long: none.
pub(crate) fn tables_named_in(text: &str, dialect: &dyn Dialect) -> BTreeSet<String> {
    let is_short = tokenize(text, dialect).is_ok_and(|tokens| tokens.len() <= MAX_TOKENS);
    if is_short { in_text(text, dialect).unwrap_or_default() } else { BTreeSet::new() }
}

#[derive(Default)]
struct Names {
    found: BTreeSet<String>,
    /// What each query around gives a name to.
    bound: Vec<BTreeSet<String>>,
    /// Queries in texts of their own: `query('SELECT …')`.
    written: Vec<String>,
    /// Which table is read is computed.
    is_unknown: bool,
    has_escapes: bool,
    /// The relation that is visited next is a function's name.
    is_call: bool,
}

impl Names {
    fn function(&mut self, name: &ObjectName, args: &[FunctionArg]) {
        let reads = Reads::of(last_part(&folded(name)));
        if reads == Reads::Nothing {
            return;
        }
        let named = match reads {
            Reads::TableInFile | Reads::RemoteTable | Reads::Query => None,
            _ => main_texts(args),
        };
        match (reads, named) {
            (Reads::Files { is_directory }, Some(paths)) if !self.has_escapes => {
                let name = if is_directory { of_directory } else { of_file };
                self.found.extend(paths.iter().map(|path| name(path)));
            }
            (Reads::Tables, Some(tables)) if !self.has_escapes => {
                self.found.extend(tables.iter().map(|table| of_table(table)));
            }
            (Reads::TableInFile | Reads::RemoteTable | Reads::Query, _) if !self.has_escapes => self.texts(reads, args),
            _ => self.is_unknown = true,
        }
    }

    /// Calls of which every argument counts.
    fn texts(&mut self, reads: Reads, args: &[FunctionArg]) {
        let texts: Option<Vec<Vec<String>>> = texts(args).into_iter().collect();
        let texts = texts.unwrap_or_default().concat();
        match (reads, texts.as_slice()) {
            (Reads::Query, [query] | [_, query]) => self.written.push(query.clone()),
            (Reads::TableInFile, [file, table]) => self.found.extend([of_file(file), of_table(table)]),
            (Reads::RemoteTable, [_, .., table]) => {
                self.found.insert(of_table(table));
            }
            _ => self.is_unknown = true,
        }
    }
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.bound.push(query.with.as_ref().map(bound_by).unwrap_or_default());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.bound.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: Some(args), .. } => {
                self.is_call = true;
                self.function(name, &args.args);
            }
            TableFactor::Function { name, args, .. } => self.function(name, args),
            TableFactor::TableFunction { expr: Expr::Function(function), .. } => match &function.args {
                FunctionArguments::List(list) => self.function(&function.name, &list.args),
                _ => self.function(&function.name, &[]),
            },
            // PostgreSQL's and DuckDB's `FROM ONLY orders`: the parser takes the table for an alias.
            TableFactor::Table { name, alias: Some(_), .. } if is_only(name) => self.is_unknown = true,
            // Snowflake's `TABLE('raw.orders')`.
            TableFactor::TableFunction { expr, .. } => match literals(expr).filter(|_| !self.has_escapes) {
                Some(names) => self.found.extend(names.iter().map(|name| of_table(name))),
                None => self.is_unknown = true,
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = expr {
            self.is_unknown |= is_reading_scalar(last_part(&folded(&function.name)));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if std::mem::take(&mut self.is_call) {
            return ControlFlow::Continue(());
        }
        let own = match relation.0.as_slice() {
            [part] => part.as_ident().map(key),
            _ => None,
        };
        if !own.is_some_and(|own| self.bound.iter().any(|names| names.contains(&own))) {
            let (name, others) = of_parts(&parts_of(relation));
            self.found.extend(others.into_iter().chain([name]));
        }
        ControlFlow::Continue(())
    }
}

/// The names of a WITH that mean its own queries wherever they stand in it. One that is named before it is defined
/// may be a table there, so it counts as one everywhere.
fn bound_by(with: &With) -> BTreeSet<String> {
    let alias = |cte: &Cte| cte.alias.name.value.to_lowercase();
    let mut before: BTreeSet<String> = BTreeSet::new();
    for (at, cte) in with.cte_tables.iter().enumerate() {
        let first_unknown = if with.recursive && is_recursive(cte) { at + 1 } else { at };
        let unknown: BTreeSet<String> = with.cte_tables[first_unknown..].iter().map(alias).collect();
        let _ = visit_relations(&cte.query, |relation| {
            before.extend(Some(folded(relation)).filter(|name| unknown.contains(name)));
            ControlFlow::<()>::Continue(())
        });
    }
    let bound = with.cte_tables.iter().filter(|cte| !before.contains(&alias(cte)));
    bound.map(|cte| key(&cte.alias.name)).collect()
}

/// Returns whether engines take a query's own name for its own rows: only in the second part of a UNION. Anywhere else
/// the name may be a table's, also behind RECURSIVE.
fn is_recursive(cte: &Cte) -> bool {
    let own = cte.alias.name.value.to_lowercase();
    match cte.query.body.as_ref() {
        SetExpr::SetOperation { op: SetOperator::Union, left, .. } => {
            let names_itself = |relation: &ObjectName| match folded(relation) == own {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            visit_relations(left, names_itself).is_continue()
        }
        _ => false,
    }
}

/// Quoted and unquoted names are the same to some engines only.
fn key(name: &Ident) -> String {
    if name.quote_style.is_some() { format!("\"{}", name.value) } else { name.value.to_lowercase() }
}

fn is_only(name: &ObjectName) -> bool {
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(only)]
        if only.quote_style.is_none() && only.value.eq_ignore_ascii_case("only"))
}

fn parts_of(relation: &ObjectName) -> Vec<String> {
    let part = |part: &ObjectNamePart| part.as_ident().map_or_else(|| part.to_string(), |ident| ident.value.clone());
    relation.0.iter().map(part).collect()
}

fn folded(relation: &ObjectName) -> String {
    relation.to_string().to_lowercase().replace(['"', '`', '[', ']'], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_out_database_or_schema_may_be_the_same() {
        for (a, b) in [("t", "db.main.t"), ("main.t", "db.main.t"), ("db.t", "db.main.t"), ("db.main.t", "db.main.t")] {
            assert!(is_same(a, b) && is_same(b, a), "{a} {b}");
        }
        for (a, b) in [("other.t", "db.main.t"), ("db.x", "db.main.t"), ("t", "db.main.at")] {
            assert!(!is_same(a, b) && !is_same(b, a), "{a} {b}");
        }
    }

    #[test]
    fn names_of_a_with_are_no_tables_where_they_hold() {
        for (text, tables) in [
            ("SELECT * FROM a JOIN s.b ON true", "a s.b"),
            ("WITH x AS (SELECT * FROM payments) SELECT * FROM x", "payments"),
            ("WITH x AS (SELECT * FROM p), y AS (SELECT * FROM x) SELECT * FROM y WHERE k IN (SELECT k FROM x)", "p"),
            ("WITH x AS (SELECT * FROM x) SELECT * FROM x", "x"),
            ("WITH y AS (SELECT * FROM x), x AS (SELECT 1) SELECT * FROM y, x", "x"),
            ("WITH RECURSIVE x AS (SELECT 1 UNION ALL SELECT * FROM x) SELECT * FROM x", ""),
            ("SELECT * FROM (WITH x AS (SELECT * FROM p) SELECT * FROM x) AS a JOIN x ON true", "p x"),
            ("WITH x AS (SELECT * FROM p) SELECT * FROM s.x", "p s.x"),
            ("WITH \"X\" AS (SELECT * FROM p) SELECT * FROM x, \"X\"", "p x"),
            ("WITH X AS (SELECT * FROM p) SELECT * FROM x", "p"),
            ("SELECT * FROM query_table('Raw.orders')", "raw.orders"),
            ("SELECT * FROM query_table(['a', 'b']) AS t JOIN c ON true", "a b c"),
            ("SELECT * FROM query('SELECT * FROM a JOIN b ON true')", "a b"),
            ("SELECT 1 WHERE EXISTS (FROM query_table('a'))", "a"),
            ("SELECT * FROM \"data/Customers.csv\"", "/data/customers.csv"),
            ("SELECT * FROM 'data/../data/x.csv'", "/data/x.csv"),
            ("SELECT * FROM read_csv('./data/x.csv', header = true)", "/data/x.csv"),
            ("SELECT * FROM read_csv_auto(['a.csv', 'file:b.csv'])", "/a.csv /b.csv"),
            ("SELECT * FROM read_csv(list_value('a.csv'), header := true)", "/a.csv"),
            ("SELECT * FROM read_parquet('d/*/x.parquet', hive_partitioning = true)", "/d/*/x.parquet"),
            ("SELECT 1 WHERE EXISTS (SELECT 1 FROM read_text('a.txt'))", "/a.txt"),
            ("SELECT * FROM delta_scan('lake/t')", "/lake/t/"),
            ("SELECT * FROM sqlite_scan('shop.db', 'Emp')", "/shop.db emp"),
            ("SELECT * FROM postgres_query('db', 'SELECT * FROM emp')", "emp"),
            ("SELECT * FROM range(10) AS r(i), generate_series(1, 3), unnest([1, 2])", ""),
            ("SELECT * FROM a, json_each(a.j)", "a"),
        ] {
            let found = in_text(text, &sqlparser::dialect::DuckDbDialect {}).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), tables, "{text}");
        }
        for text in [
            "SELECT * FROM query_table('a' || 'b')",
            "SELECT * FROM query('SELECT')",
            "SELECT * FROM query(x)",
            "SELECT * FROM query_table(['a', b])",
            "SELECT * FROM read_csv('data/' || 'x.csv')",
            "SELECT * FROM read_csv(getvariable('f'))",
            "SELECT * FROM t, read_csv(t.path)",
            "SELECT * FROM read_csv($1)",
            "SELECT * FROM read_csv(['a.csv', concat('b', '.csv')])",
            "SELECT * FROM read_csv()",
            "SELECT * FROM a_macro(1)",
            "SELECT * FROM s3_list('x')",
            "SELECT (SELECT max(x) FROM a_macro(1))",
            "SELECT pg_read_file('/etc/passwd')",
            "SELECT query_to_xml('SELECT * FROM emp', true, true, '')",
        ] {
            assert_eq!(in_text(text, &sqlparser::dialect::DuckDbDialect {}), None, "{text}");
        }
    }

    #[test]
    fn paths_and_functions_of_other_engines_are_found() {
        use sqlparser::dialect::{
            BigQueryDialect, ClickHouseDialect, DatabricksDialect, GenericDialect, PostgreSqlDialect, SnowflakeDialect,
        };
        let cases: [(&dyn Dialect, &str, Option<&str>); 12] = [
            (&SnowflakeDialect {}, "SELECT * FROM TABLE('raw.orders')", Some("raw.orders")),
            (&SnowflakeDialect {}, "SELECT * FROM TABLE(secret_rows())", None),
            (&SnowflakeDialect {}, "SELECT * FROM @files/orders.csv", Some("/files/orders.csv/")),
            (&DatabricksDialect {}, "SELECT * FROM parquet.`/lake/orders`", Some("/lake/orders/")),
            (&DatabricksDialect {}, "SELECT * FROM delta.`s3://b/orders`", Some("/b/orders/")),
            (&BigQueryDialect {}, "SELECT * FROM `p.ds.events_*`", Some("p.ds.events_*")),
            (&ClickHouseDialect {}, "SELECT * FROM file('orders.csv')", Some("/orders.csv")),
            (&ClickHouseDialect {}, "SELECT * FROM merge('db', '.*')", None),
            (&PostgreSqlDialect {}, "SELECT * FROM ONLY orders", None),
            (&PostgreSqlDialect {}, "SELECT * FROM dblink('db', 'SELECT 1') AS t(a int)", None),
            (&GenericDialect {}, "SELECT * FROM TABLE(system.query(query => 'SELECT * FROM orders'))", Some("orders")),
            (&GenericDialect {}, "WITH RECURSIVE x AS (SELECT * FROM x) SELECT * FROM x", Some("x")),
        ];
        for (dialect, text, expected) in cases {
            let found = in_text(text, dialect);
            let found = found.map(|names| names.into_iter().collect::<Vec<_>>());
            match expected {
                // A text that the parser refuses counts as reading anything.
                None => assert_eq!(found, None, "{text}"),
                Some(name) => assert!(found.is_none_or(|names| names.iter().any(|own| own == name)), "{text}"),
            }
        }
    }
}
