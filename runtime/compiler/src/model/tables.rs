//! The warehouse tables that a cube reads, so that a policy on a table reaches every cube over it.
//!
//! In: relations, the project's models, and the statements that each connection begins with. Out: canonical names of
//! tables and files (`table_names`). A query gets a name of its own, so that a policy on a cube over it applies to
//! every cube with the same SQL. SQL that cannot be parsed may read any table. A model reads the tables of its current
//! definition, whether it is inlined, read from its built table, or named as a table. A table that was built from a
//! deleted definition may contain any rows. A view that the connection's statements create reads the tables of its
//! query. Not here: the names in a query (`snippet::tables`).

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use sqlparser::dialect::Dialect;

use super::Relation;
use crate::ids::CubeId;
use crate::project::{Definitions, ModelDefinition};
use crate::snippet::table_names::{index_key, is_file, is_pattern, is_same, last_component, of_parts};
use crate::snippet::{ColumnName, CreatedView, created_views, names_in};

/// The tables that a relation reads.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The name of the relation itself: a table's name, or a name derived from a query's text ([`name_of_query`]).
    exactly: String,
    /// True if the relation is not a table of the warehouse itself, but was made by a query or a model.
    is_made: bool,
    /// True for a view that the connection's statements create.
    is_view: bool,
    /// The names of the tables that it reads; `None` if it may read any table.
    read: Option<BTreeSet<String>>,
    /// The names of the tables that store the models of the relation.
    built: BTreeSet<String>,
    /// The name of the table that stores the model, if the relation reads exactly one model.
    only_model: Option<String>,
}

impl Tables {
    /// Returns whether the relation reads, or may read, a table.
    pub(super) fn may_read(&self, table: &str) -> bool {
        if is_written(table) {
            return self.exactly == table;
        }
        self.names().is_none_or(|mut names| names.any(|own| is_same(own, table)))
    }

    /// Returns the names of all tables that the relation reads; `None` if it may read any table.
    fn names(&self) -> Option<impl Iterator<Item = &str>> {
        let read = self.read.as_ref()?;
        Some(read.iter().chain(&self.built).chain(std::iter::once(&self.exactly)).map(String::as_str))
    }

    /// Returns the tables that a policy on this relation protects.
    pub(super) fn protected(&self) -> impl Iterator<Item = &str> {
        let names = || self.read.iter().flatten();
        // One table may have several names, but all of them have the same last part.
        let is_single = |first: &String| names().all(|name| last_component(name) == last_component(first));
        let is_of_one_table = (self.is_made || self.is_view) && names().next().is_some_and(is_single);
        let read = names().filter(move |_| is_of_one_table);
        std::iter::once(&self.exactly).chain(read).chain(&self.only_model).map(String::as_str)
    }

    /// Returns whether the relation is a single table of the warehouse, without a query.
    pub(super) fn is_one_table(&self) -> bool {
        !self.is_made
    }

    /// Returns whether a condition on rows of `origin` can be applied to this relation, because both have the rows of
    /// the same table.
    pub(super) fn are_rows_of(&self, origin: &Tables) -> bool {
        let are_unchanged = !self.is_made && !self.is_view && !origin.is_view;
        are_unchanged || (!is_written(&self.exactly) && self.is_named_as(origin))
    }

    /// Returns whether columns that are masked in `origin` have the same names here. A query defines its own columns,
    /// so columns of its table cannot be found by name. Columns of a query over a file are found only in relations that
    /// read the file under the same name.
    pub(super) fn are_columns_of(&self, origin: &Tables) -> bool {
        if is_written(&origin.exactly) {
            return self.exactly == origin.exactly;
        }
        let are_named = !is_written(&self.exactly) && self.is_named_as(origin);
        are_named || !origin.protected().any(is_file)
    }

    /// Returns whether two relations name the same table. If one of them is a pattern of files, the names must be
    /// equal, because the columns of a pattern may come from any of its files.
    fn is_named_as(&self, origin: &Tables) -> bool {
        let is_one = !is_pattern(&self.exactly) && !is_pattern(&origin.exactly);
        self.exactly == origin.exactly || (is_one && is_same(&self.exactly, &origin.exactly))
    }

    /// Returns whether the tables that are read are unknown.
    pub(super) fn may_read_anything(&self) -> bool {
        self.read.is_none()
    }
}

/// An index of the cubes by the tables that they read.
pub(super) struct Readers<'t> {
    tables: &'t [Tables],
    by_name: HashMap<&'t str, Vec<CubeId>>,
    /// The cubes for which no single table name is known: they could read any table, files that match a pattern, or the
    /// files of a folder.
    of_any_name: Vec<CubeId>,
}

impl<'t> Readers<'t> {
    /// Indexes the cubes by the tables that they read. `tables` contains one entry for each cube.
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

    /// Returns the cubes that read, or may read, the table whose rows a cube has. The result may contain that cube
    /// itself, and may contain a cube more than once.
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

/// Returns a name for the rows of a query. Cubes with the same SQL have the same name, because they have the same rows.
/// The name never equals the name of a table, and never ends with one.
fn name_of_query(text: &str) -> String {
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

/// Determines the tables that relations read.
pub(super) struct TableReader<'d> {
    definitions: &'d Definitions,
    dialect: &'d dyn Dialect,
    index: HashMap<&'d str, usize>,
    /// The name of the table that each model is built as; `None` if it is never built.
    built_as: Vec<Option<String>>,
    /// Models by the last part of the name that they are built as.
    by_last_part: HashMap<String, Vec<usize>>,
    /// The names in each model's own SQL, read on first use.
    named: Vec<OnceCell<Option<BTreeSet<String>>>>,
    views: Vec<CreatedView>,
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
            views: definitions.init.iter().flat_map(|statement| created_views(statement, dialect)).collect(),
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
                full = table.catalog_name.as_deref().map(|catalog_name| named(catalog_name).0);
                full.iter().for_each(|full| following.name(full.clone()));
                exactly = name;
                &[]
            }
            Relation::Query { models, sql } => {
                exactly = name_of_query(sql);
                match names_in(sql, self.dialect) {
                    Some(mut named) => {
                        // The models precede the query as named queries, so it can name all of them.
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
                exactly = name_of_query(name);
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
            // The built table counts as the tables that its model's definition reads, and not as a table itself.
            read.remove(&exactly);
            read.retain(|name| Some(name) != full.as_ref());
        }
        Tables { exactly, is_made, is_view, read: (!is_unknown).then_some(read), built, only_model }
    }

    /// Returns the name that the model is built as, if `models` has exactly one.
    fn only(&self, models: &[&str]) -> Option<String> {
        let [model] = models else { return None };
        self.built_as[*self.index.get(model)?].clone()
    }
}

/// Collects the names in one relation, including those in the models that it reads.
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

    /// Adds the name of a table, which may be that of a built model or a view.
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

    /// Reads the SQL of each collected model once.
    fn follow(&mut self) {
        let reader = self.reader;
        while let Some(at) = self.open.pop() {
            if !self.followed.insert(at) {
                continue;
            }
            let model = &reader.definitions.models[at];
            self.built.extend(reader.built_as[at].clone());
            self.open.extend(model.refs.iter().filter_map(|reference| reader.index.get(&*reference.name)));
            let Some(named) = reader.named[at].get_or_init(|| names_in(&model.sql.text, reader.dialect)) else {
                self.is_unknown = true;
                continue;
            };
            // A name from `ref` refers to a model. Any other name may refer to a table, even if a model has it too.
            let refs: BTreeSet<String> = model.refs.iter().map(|reference| reference.name.to_lowercase()).collect();
            named.difference(&refs).for_each(|name| self.name(name.clone()));
        }
    }
}

fn built_as(model: &ModelDefinition) -> Option<String> {
    model.built_as().map(|(schema, name)| format!("{schema}.{name}").to_lowercase())
}
