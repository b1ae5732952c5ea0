//! Resolution of column names.
//!
//! In: names of a query and the relations in scope. Out: origins. Ambiguous names stay unresolved. If no known column
//! matches a name, and exactly one relation in scope has unknown columns, the name belongs to that relation.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};
use sqlparser::tokenizer::Location;

use super::arena::{Arena, Reason};
use super::relation::{ColumnOrigin, ColumnOrigins, Name, Relation, Rest, Slot, Star, Use};
use super::relation_catalog::RelationCatalog;
use crate::spelling::Spelling;
use terrane_compiler::snippet::column_name;

/// The largest amount of work for one text, in columns inspected and origins copied.
const FUEL: usize = 20_000_000;
/// The largest number of columns of one relation.
pub(super) const MAX_SLOTS: usize = 5_000;

/// The location of an unresolved origin that concerns the whole query.
pub(crate) const NOWHERE: Location = Location { line: 0, column: 0 };

/// An error: the analysis of the query exceeds its limits.
#[derive(Debug)]
pub(crate) struct Exhausted;

pub(crate) type AnalysisResult<T> = Result<T, Exhausted>;

/// A relation under its name in a FROM.
#[derive(Debug, Clone)]
pub(super) struct Named {
    /// The alias, or else the parts of the table's name.
    pub(super) parts: Vec<Arc<str>>,
    pub(super) slots: Vec<Slot>,
}

/// The relations of one FROM.
#[derive(Debug, Clone, Default)]
pub(super) struct Frame {
    pub(super) named: Vec<Named>,
    /// The columns that a star selects. A column of `USING` occurs once.
    pub(super) slots: Vec<Slot>,
    /// The aliases of the SELECT list, with the origins of their values.
    pub(super) aliases: HashMap<Arc<str>, ColumnOrigins>,
}

#[derive(Debug)]
pub(super) struct NamedQuery {
    pub(super) name: Arc<str>,
    pub(super) relation: Relation,
    /// True while the query itself is analyzed. A reference to it during that time is recursive.
    pub(super) is_open: bool,
}

/// The clause of an expression. It decides whether aliases of the SELECT list are visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Select,
    Where,
    Group,
    Order,
    /// A part of an expression in `ORDER BY` that is more than a single name. Names in it prefer columns to aliases.
    OrderWithin,
}

pub(crate) struct Analysis<'a, 'k> {
    pub(super) catalog: &'a RelationCatalog<'k>,
    pub(super) arena: &'a mut Arena,
    pub(super) warehouse: &'a str,
    pub(super) spelling: Spelling,
    /// The enclosing FROMs, the innermost last.
    pub(super) frames: Vec<Frame>,
    /// The visible queries of `WITH`, the innermost last.
    pub(super) ctes: Vec<NamedQuery>,
    /// The parameters of the enclosing lambdas.
    pub(super) parameters: Vec<Arc<str>>,
    /// The names of the queries that follow the current one in the same `WITH RECURSIVE`.
    pub(super) later: Vec<Arc<str>>,
    /// The columns that decide which rows the current relation has.
    pub(super) uses: BTreeSet<(Use, ColumnOrigin)>,
    pub(super) is_recursive: bool,
    fuel: usize,
}

impl<'a, 'k> Analysis<'a, 'k> {
    pub(crate) fn new(catalog: &'a RelationCatalog<'k>, arena: &'a mut Arena, warehouse: &'a str) -> Self {
        Analysis {
            catalog,
            arena,
            warehouse,
            spelling: catalog.spelling,
            frames: Vec::new(),
            ctes: Vec::new(),
            parameters: Vec::new(),
            later: Vec::new(),
            uses: BTreeSet::new(),
            is_recursive: false,
            fuel: FUEL,
        }
    }

    pub(super) fn spend(&mut self, work: usize) -> AnalysisResult<()> {
        self.fuel = self.fuel.checked_sub(work + 1).ok_or(Exhausted)?;
        Ok(())
    }

    /// Charges the work of copying slots.
    pub(super) fn spend_slots(&mut self, slots: &[Slot]) -> AnalysisResult<()> {
        if slots.len() > MAX_SLOTS {
            return Err(Exhausted);
        }
        let origins: usize =
            slots.iter().map(|slot| if let Slot::Column(c) = slot { c.origins.len() } else { 1 }).sum();
        self.spend(slots.len() + origins)
    }

    pub(super) fn add_uses(&mut self, usage: Use, origins: &ColumnOrigins) -> AnalysisResult<()> {
        self.spend(origins.len())?;
        self.uses.extend(origins.iter().map(|origin| (usage, *origin)));
        Ok(())
    }

    pub(super) fn key(&self, ident: &Ident) -> Arc<str> {
        self.spelling.key(&column_name(ident))
    }

    pub(super) fn output_name(&self, ident: &Ident) -> Name {
        let name = column_name(ident);
        Name { key: self.spelling.key(&name), shown: self.spelling.shown(&name) }
    }

    pub(super) fn unresolved(&mut self, reason: Reason, ident: Option<&Ident>) -> ColumnOrigins {
        let at = ident.map_or(NOWHERE, |ident| ident.span.start);
        let length =
            ident.map_or(1, |ident| ident.value.chars().count() + 2 * usize::from(ident.quote_style.is_some()));
        [ColumnOrigin::Unresolved(self.arena.unresolved(reason, at, length))].into()
    }

    /// Returns the origins of an unqualified name.
    pub(super) fn bare(&mut self, ident: &Ident, clause: Clause) -> AnalysisResult<ColumnOrigins> {
        let key = self.key(ident);
        if self.parameters.contains(&key) {
            return Ok(ColumnOrigins::new());
        }
        let alias = self.frames.last().and_then(|frame| frame.aliases.get(&key)).cloned();
        if let Some(origins) = alias.as_ref().filter(|_| self.prefers_aliases(clause)) {
            return Ok(origins.clone());
        }
        let (mut open, mut undeclared): (Vec<Star>, Vec<Star>) = (Vec::new(), Vec::new());
        for depth in (0..self.frames.len()).rev() {
            let is_innermost = depth + 1 == self.frames.len();
            self.spend(self.frames[depth].slots.len())?;
            let frame = &self.frames[depth];
            let mut found: Vec<&ColumnOrigins> = Vec::new();
            for slot in &frame.slots {
                match slot {
                    Slot::Column(column) if column.key() == Some(&key) => found.push(&column.origins),
                    _ => {}
                }
            }
            found.dedup();
            let row = frame.named.iter().find(|named| named.parts.last() == Some(&key));
            match (found.as_slice(), row, &alias) {
                ([origins], ..) if open.is_empty() => {
                    let origins = (*origins).clone();
                    return Ok(self.named_by(&key, origins));
                }
                ([], Some(row), _) if open.is_empty() => {
                    let row = row.clone();
                    return self.whole_row(&row.slots, ident);
                }
                ([], None, Some(origins)) if is_innermost && self.sees_aliases(clause) => {
                    if !frame.slots.iter().any(Slot::is_open) {
                        return Ok(origins.clone());
                    }
                    return Ok(self.unresolved(Reason::Ambiguous(key), Some(ident)));
                }
                ([], ..) => {}
                _ => return Ok(self.unresolved(Reason::Ambiguous(key), Some(ident))),
            }
            for slot in &frame.slots {
                let Slot::Star(star) = slot else { continue };
                if star.without.contains(&key) {
                    continue;
                }
                let into = if slot.is_open() { &mut open } else { &mut undeclared };
                if !into.iter().any(|seen| same(&seen.of, &star.of)) {
                    into.push(star.clone());
                }
            }
        }
        Ok(match (open.as_slice(), undeclared.as_slice()) {
            ([star], _) | ([], [star]) => self.of_star(&star.of, ident),
            ([], []) => self.unresolved(Reason::UnknownColumn(key), Some(ident)),
            _ => self.unresolved(Reason::Ambiguous(key), Some(ident)),
        })
    }

    /// Returns whether an alias of the SELECT list wins over a column with the same name.
    fn prefers_aliases(&self, clause: Clause) -> bool {
        match clause {
            Clause::Order => true,
            Clause::Group => matches!(self.warehouse, "bigquery" | "clickhouse"),
            Clause::Select | Clause::Where => self.warehouse == "clickhouse",
            Clause::OrderWithin => false,
        }
    }

    fn sees_aliases(&self, clause: Clause) -> bool {
        match clause {
            Clause::Group | Clause::Order => true,
            Clause::OrderWithin => self.warehouse != "postgres",
            Clause::Select => {
                matches!(self.warehouse, "duckdb" | "snowflake" | "redshift" | "spark" | "databricks" | "clickhouse")
            }
            Clause::Where => matches!(self.warehouse, "duckdb" | "snowflake" | "clickhouse"),
        }
    }

    /// Records which of the origins are columns with this name, because the SQL names them.
    fn named_by(&mut self, key: &Arc<str>, origins: ColumnOrigins) -> ColumnOrigins {
        for origin in &origins {
            if let ColumnOrigin::Column(column) = origin
                && self.arena.columns[*column as usize].name.key == *key
            {
                self.arena.named.insert(*column);
            }
        }
        origins
    }

    fn of_star(&mut self, rest: &Rest, ident: &Ident) -> ColumnOrigins {
        match rest {
            Rest::Table(table) | Rest::Undeclared(table) => {
                let key = self.key(ident);
                let name = Name { key: Arc::clone(&key), shown: key };
                let column = self.arena.column(*table, name);
                self.arena.named.insert(column);
                [ColumnOrigin::Column(column)].into()
            }
            Rest::Derived(origins) => origins.clone(),
        }
    }

    /// Returns the origins of a whole row, for example if a table's name is used as a value.
    pub(super) fn whole_row(&mut self, slots: &[Slot], ident: &Ident) -> AnalysisResult<ColumnOrigins> {
        self.spend_slots(slots)?;
        let mut origins = ColumnOrigins::new();
        for slot in slots {
            origins.extend(self.all_of(slot, Some(ident)));
        }
        Ok(origins)
    }

    /// Returns all origins of a slot's values. Unknown columns of a table give an unresolved origin.
    pub(super) fn all_of(&mut self, slot: &Slot, ident: Option<&Ident>) -> ColumnOrigins {
        match slot {
            Slot::Star(Star { of: Rest::Table(table), .. }) => {
                let name = self.table_shown(*table);
                self.unresolved(Reason::Star(name), ident)
            }
            slot => slot.origins(),
        }
    }

    /// Records that the rows of the current relation depend on all of these columns.
    pub(super) fn use_all(&mut self, usage: Use, slots: &[Slot]) -> AnalysisResult<()> {
        self.spend_slots(slots)?;
        for slot in slots {
            let origins = self.all_of(slot, None);
            self.add_uses(usage, &origins)?;
        }
        Ok(())
    }

    pub(super) fn table_shown(&self, table: u32) -> Arc<str> {
        match &self.arena.tables[table as usize] {
            super::arena::TableName::Table(name) | super::arena::TableName::Model(name) => Arc::clone(name),
        }
    }

    /// Resolves a name with several parts, such as `orders.amount`, `raw.orders.amount` or `payload.id`.
    pub(super) fn compound(&mut self, idents: &[Ident], clause: Clause) -> AnalysisResult<ColumnOrigins> {
        let [first, ..] = idents else { return Ok(ColumnOrigins::new()) };
        let keys: Vec<Arc<str>> = idents.iter().map(|ident| self.key(ident)).collect();
        if self.parameters.contains(&keys[0]) {
            return Ok(ColumnOrigins::new());
        }
        let Some((named, used)) = self.named(&keys) else {
            // No relation has this name, so the first part is a column, and the others are fields of its value.
            return self.bare(first, clause);
        };
        match (named.as_slice(), idents.get(used)) {
            ([named], Some(ident)) => self.member_of(&named.slots, ident),
            ([named], None) => self.whole_row(&named.slots, first),
            // Several relations have this name. Engines use the one that has the column.
            (several, Some(ident)) => {
                let slots: Vec<Slot> = several.iter().flat_map(|named| named.slots.iter().cloned()).collect();
                self.spend_slots(&slots)?;
                self.member_of(&slots, ident)
            }
            (_, None) => Ok(self.unresolved(Reason::Ambiguous(Arc::clone(&keys[0])), Some(first))),
        }
    }

    /// Returns the relation that the first parts of a name refer to, and the number of these parts. The innermost scope
    /// with a match decides. Returns several relations if several of that scope match.
    pub(super) fn named(&self, keys: &[Arc<str>]) -> Option<(Vec<Named>, usize)> {
        for frame in self.frames.iter().rev() {
            for used in (1..=keys.len()).rev() {
                let named = frame.named.iter().filter(|named| named.parts.ends_with(&keys[..used]));
                let named: Vec<Named> = named.cloned().collect();
                if !named.is_empty() {
                    return Some((named, used));
                }
            }
        }
        None
    }

    /// Returns the origins of the column that a name refers to in one relation.
    pub(super) fn member_of(&mut self, slots: &[Slot], ident: &Ident) -> AnalysisResult<ColumnOrigins> {
        self.spend(slots.len())?;
        let key = self.key(ident);
        let mut found: Vec<&ColumnOrigins> = Vec::new();
        let (mut open, mut undeclared): (Vec<&Star>, Vec<&Star>) = (Vec::new(), Vec::new());
        for slot in slots {
            match slot {
                Slot::Column(column) if column.key() == Some(&key) => found.push(&column.origins),
                Slot::Star(star) if !star.without.contains(&key) => {
                    let into = if slot.is_open() { &mut open } else { &mut undeclared };
                    if !into.iter().any(|seen| same(&seen.of, &star.of)) {
                        into.push(star);
                    }
                }
                _ => {}
            }
        }
        found.dedup();
        Ok(match (found.as_slice(), open.as_slice(), undeclared.as_slice()) {
            ([origins], ..) => {
                let origins = (*origins).clone();
                self.named_by(&key, origins)
            }
            ([], [star], _) | ([], [], [star]) => self.of_star(&star.of, ident),
            ([], [], []) => self.unresolved(Reason::UnknownColumn(key), Some(ident)),
            _ => self.unresolved(Reason::Ambiguous(key), Some(ident)),
        })
    }
}

/// Returns whether two stars stand for the same columns.
fn same(a: &Rest, b: &Rest) -> bool {
    match (a, b) {
        (Rest::Table(a), Rest::Table(b)) | (Rest::Undeclared(a), Rest::Undeclared(b)) => a == b,
        (Rest::Derived(a), Rest::Derived(b)) => a == b,
        _ => false,
    }
}

/// Returns the identifiers of a dotted name. The parser has already split BigQuery's quoted `project.dataset.table`.
pub(super) fn idents(name: &ObjectName) -> Vec<&Ident> {
    let parts = name.0.iter().filter_map(|part| match part {
        ObjectNamePart::Identifier(ident) => Some(ident),
        ObjectNamePart::Function(_) => None,
    });
    parts.collect()
}
