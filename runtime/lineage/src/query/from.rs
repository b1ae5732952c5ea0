//! Finds the relations that a FROM makes visible.
//!
//! In: tables, subqueries, joins. Out: a [`Frame`]: the relations by name, and the columns that a star selects.
//! Columns in join conditions are recorded as uses. If only the warehouse knows a relation's columns, a `Star` stands
//! for them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, LateralView, ObjectName, TableAlias,
    TableFactor, TableWithJoins,
};

use super::arena::Reason;
use super::relation::{Column, ColumnOrigin, ColumnOrigins, Name, Rest, Slot, Use};
use super::scope::{Analysis, AnalysisResult, Clause, Frame, Named, idents};
use terrane_compiler::snippet::{ColumnName, column_name};

/// Table functions that read files instead of tables.
const FILE_READERS: &[&str] = &[
    "delta_scan",
    "glob",
    "iceberg_scan",
    "parquet_metadata",
    "parquet_scan",
    "parquet_schema",
    "read_blob",
    "read_csv",
    "read_csv_auto",
    "read_json",
    "read_json_auto",
    "read_json_objects",
    "read_ndjson",
    "read_ndjson_auto",
    "read_ndjson_objects",
    "read_parquet",
    "read_text",
    "read_xlsx",
    "sniff_csv",
];

/// Table functions whose columns are computed from their arguments alone. The names of the columns do not matter.
const GENERATORS: &[&str] = &[
    "explode",
    "explode_outer",
    "flatten",
    "generate_series",
    "generate_subscripts",
    "inline",
    "json_array_elements",
    "json_array_elements_text",
    "json_each",
    "jsonb_array_elements",
    "jsonb_array_elements_text",
    "jsonb_each",
    "posexplode",
    "range",
    "regexp_split_to_table",
    "split_to_table",
    "string_to_table",
    "unnest",
];

impl Analysis<'_, '_> {
    /// Analyzes all items of a FROM.
    pub(super) fn from(&mut self, from: &[TableWithJoins]) -> AnalysisResult<Frame> {
        let mut frame = Frame::default();
        for item in from {
            let next = self.joined(item, &mut frame)?;
            frame.slots.extend(next.slots);
            frame.named.extend(next.named);
            self.spend_slots(&frame.slots)?;
        }
        Ok(frame)
    }

    /// Analyzes one item of a FROM with its joins. Lateral relations can refer to the earlier items, which are in
    /// `around`.
    fn joined(&mut self, item: &TableWithJoins, around: &mut Frame) -> AnalysisResult<Frame> {
        let mut frame = self.factor(&item.relation, around, &mut Frame::default())?;
        for join in &item.joins {
            frame = self.join(frame, join, around)?;
        }
        Ok(frame)
    }

    fn join(&mut self, mut left: Frame, join: &Join, around: &mut Frame) -> AnalysisResult<Frame> {
        use JoinOperator as Op;
        if let Op::ArrayJoin | Op::LeftArrayJoin | Op::InnerArrayJoin = join.join_operator {
            return self.array_join(left, &join.relation);
        }
        let right = self.factor(&join.relation, around, &mut left)?;
        let (constraint, keeps) = match &join.join_operator {
            Op::Join(on) | Op::Inner(on) | Op::CrossJoin(on) | Op::StraightJoin(on) => (Some(on), Keeps::Left),
            Op::Left(on) | Op::LeftOuter(on) => (Some(on), Keeps::Left),
            Op::Right(on) | Op::RightOuter(on) => (Some(on), Keeps::Right),
            Op::FullOuter(on) => (Some(on), Keeps::Both),
            Op::Semi(on) | Op::LeftSemi(on) | Op::Anti(on) | Op::LeftAnti(on) => (Some(on), Keeps::LeftAlone),
            Op::RightSemi(on) | Op::RightAnti(on) => (Some(on), Keeps::RightAlone),
            Op::AsOf { constraint, .. } => (Some(constraint), Keeps::Left),
            Op::CrossApply | Op::OuterApply | Op::ArrayJoin | Op::LeftArrayJoin | Op::InnerArrayJoin => {
                (None, Keeps::Left)
            }
        };
        let mut conditions: Vec<&Expr> = Vec::new();
        if let Op::AsOf { match_condition, .. } = &join.join_operator {
            conditions.push(match_condition);
        }
        let mut merged = None;
        match constraint {
            Some(JoinConstraint::On(condition)) => conditions.push(condition),
            Some(JoinConstraint::Using(names)) => {
                let names: Vec<Ident> = names.iter().filter_map(|name| idents(name).last().copied().cloned()).collect();
                merged = Some(self.using(&left, &right, &names, keeps)?);
            }
            Some(JoinConstraint::Natural) => merged = self.natural(&left, &right, keeps)?,
            Some(JoinConstraint::None) | None => {}
        }
        let alone = match keeps {
            Keeps::LeftAlone => Some(left.clone()),
            Keeps::RightAlone => Some(right.clone()),
            Keeps::Left | Keeps::Right | Keeps::Both => None,
        };
        let mut both = left;
        both.named.extend(right.named);
        match merged {
            Some(merged) => both.slots = merged,
            None => both.slots.extend(right.slots),
        }
        self.spend_slots(&both.slots)?;
        if !conditions.is_empty() {
            self.frames.push(both);
            let outcome = conditions.iter().try_for_each(|condition| self.used(condition, Use::Join, Clause::Where));
            both = self.frames.pop().unwrap_or_default();
            outcome?;
        }
        Ok(alone.unwrap_or(both))
    }

    /// Returns the columns of a join with `USING`. The listed columns come first and once, then all other columns.
    fn using(&mut self, left: &Frame, right: &Frame, names: &[Ident], keeps: Keeps) -> AnalysisResult<Vec<Slot>> {
        let mut slots = Vec::with_capacity(left.slots.len() + right.slots.len());
        let mut merged = BTreeSet::new();
        for ident in names {
            let (own, other) = (self.member_of(&left.slots, ident)?, self.member_of(&right.slots, ident)?);
            self.add_uses(Use::Join, &own)?;
            self.add_uses(Use::Join, &other)?;
            let origins = match keeps {
                Keeps::Left | Keeps::LeftAlone => own,
                Keeps::Right | Keeps::RightAlone => other,
                Keeps::Both => own.union(&other).copied().collect(),
            };
            let name = self.output_name(ident);
            merged.insert(Arc::clone(&name.key));
            slots.push(Slot::column(name, origins));
        }
        for slot in left.slots.iter().chain(&right.slots) {
            match slot {
                Slot::Column(column) if column.key().is_some_and(|key| merged.contains(key)) => {}
                Slot::Column(_) => slots.push(slot.clone()),
                Slot::Star(star) => {
                    let mut star = star.clone();
                    star.without.extend(merged.iter().cloned());
                    slots.push(Slot::Star(star));
                }
            }
        }
        Ok(slots)
    }

    /// Returns the slots of a natural join, which is a `USING` of the common columns. Returns `None` and adds an
    /// unresolved use if the columns of one side are unknown.
    fn natural(&mut self, left: &Frame, right: &Frame, keeps: Keeps) -> AnalysisResult<Option<Vec<Slot>>> {
        if left.slots.iter().chain(&right.slots).any(Slot::is_open) {
            let origins = self.unresolved(Reason::Positions("a natural join"), None);
            self.add_uses(Use::Join, &origins)?;
            return Ok(None);
        }
        let names = |frame: &Frame| -> Vec<Name> {
            let names = frame.slots.iter().filter_map(|slot| match slot {
                Slot::Column(column) => column.name.clone(),
                Slot::Star(_) => None,
            });
            names.collect()
        };
        let theirs: BTreeSet<Arc<str>> = names(right).into_iter().map(|name| name.key).collect();
        let common = names(left).into_iter().filter(|name| theirs.contains(&name.key));
        // With quotes, the key of the identifier is the exact name.
        let common: Vec<Ident> = common.map(|name| Ident::with_quote('"', name.shown.replace('"', "\"\""))).collect();
        self.using(left, right, &common, keeps).map(Some)
    }

    /// Analyzes ClickHouse's ARRAY JOIN, which adds the elements of an array to the row.
    fn array_join(&mut self, mut left: Frame, relation: &TableFactor) -> AnalysisResult<Frame> {
        let TableFactor::Table { name, alias, .. } = relation else { return Ok(left) };
        let path: Vec<Ident> = idents(name).into_iter().cloned().collect();
        self.frames.push(left);
        let origins = self.compound(&path, Clause::Where);
        left = self.frames.pop().unwrap_or_default();
        let origins = origins?;
        if let Some(ident) = alias.as_ref().map(|alias| &alias.name) {
            left.slots.push(Slot::column(self.output_name(ident), origins));
        }
        Ok(left)
    }

    /// Analyzes one relation. Lateral relations can refer to relations in `around` and `left`.
    fn factor(&mut self, factor: &TableFactor, around: &mut Frame, left: &mut Frame) -> AnalysisResult<Frame> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let path = idents(name);
                if let Some(made) = self.path_into_a_row(&path, around, left)? {
                    return self.one(made, alias.as_ref(), path.last().copied());
                }
                let slots = self.table(&path)?;
                self.named_table(slots, alias.as_ref(), &path)
            }
            TableFactor::Table { name, alias, args: Some(args), .. } => {
                let slots = self.with_siblings(around, left, |own| own.table_function(name, &args.args))?;
                self.one(slots, alias.as_ref(), idents(name).last().copied())
            }
            TableFactor::Function { name, args, alias, .. } => {
                let slots = self.with_siblings(around, left, |own| own.table_function(name, args))?;
                self.one(slots, alias.as_ref(), idents(name).last().copied())
            }
            TableFactor::TableFunction { expr, alias } => {
                let slots = self.with_siblings(around, left, |own| match expr {
                    Expr::Function(function) => {
                        let origins = own.expr(expr, Clause::Where)?;
                        own.made_by(&function.name, origins)
                    }
                    _ => {
                        let origins = own.expr(expr, Clause::Where)?;
                        Ok(vec![Slot::star(Rest::Derived(origins))])
                    }
                })?;
                self.one(slots, alias.as_ref(), None)
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                // DuckDB decides by itself which subqueries are lateral.
                let slots = if *lateral || self.warehouse == "duckdb" {
                    self.with_siblings(around, left, |own| own.query(subquery))?
                } else {
                    self.query(subquery)?
                };
                let slots = as_relation(slots, self.warehouse);
                self.one(slots, alias.as_ref(), None)
            }
            TableFactor::UNNEST { alias, array_exprs, with_offset_alias, with_offset, .. } => {
                let origins = self.with_siblings(around, left, |own| {
                    let mut origins = ColumnOrigins::new();
                    for expr in array_exprs {
                        origins.extend(own.expr(expr, Clause::Where)?);
                    }
                    Ok(origins)
                })?;
                self.add_uses(Use::Filter, &origins)?;
                let mut frame = self.one(vec![Slot::star(Rest::Derived(origins.clone()))], alias.as_ref(), None)?;
                if *with_offset {
                    let offset = with_offset_alias.clone().unwrap_or_else(|| Ident::new("offset"));
                    frame.slots.push(Slot::column(self.output_name(&offset), origins));
                }
                Ok(frame)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let mut frame = self.joined(table_with_joins, around)?;
                if let Some(alias) = alias {
                    frame = self.one(frame.slots, Some(alias), None)?;
                }
                Ok(frame)
            }
            TableFactor::Pivot { table, alias, .. } => self.opaque(table, alias.as_ref(), "PIVOT", around, left),
            TableFactor::Unpivot { table, alias, .. } => self.opaque(table, alias.as_ref(), "UNPIVOT", around, left),
            TableFactor::MatchRecognize { table, alias, .. } => {
                self.opaque(table, alias.as_ref(), "MATCH_RECOGNIZE", around, left)
            }
            TableFactor::JsonTable { json_expr, alias, .. } | TableFactor::OpenJsonTable { json_expr, alias, .. } => {
                let origins = self.with_siblings(around, left, |own| own.expr(json_expr, Clause::Where))?;
                self.one(vec![Slot::star(Rest::Derived(origins))], alias.as_ref(), None)
            }
            _ => {
                let origins = self.unresolved(Reason::NotFollowed("this relation"), None);
                self.one(vec![Slot::star(Rest::Derived(origins))], None, None)
            }
        }
    }

    /// Analyzes `table`, and returns a relation whose columns depend on it in an unknown way.
    fn opaque(
        &mut self,
        table: &TableFactor,
        alias: Option<&TableAlias>,
        what: &'static str,
        around: &mut Frame,
        left: &mut Frame,
    ) -> AnalysisResult<Frame> {
        self.factor(table, around, left)?;
        let origins = self.unresolved(Reason::NotFollowed(what), None);
        self.one(vec![Slot::star(Rest::Derived(origins))], alias, None)
    }

    /// Analyzes a part of a FROM in which the relations of `around` and `left` are visible.
    fn with_siblings<T>(
        &mut self,
        around: &mut Frame,
        left: &mut Frame,
        read: impl FnOnce(&mut Self) -> AnalysisResult<T>,
    ) -> AnalysisResult<T> {
        let mut seen = around.clone();
        seen.named.extend(left.named.iter().cloned());
        seen.slots.extend(left.slots.iter().cloned());
        self.spend_slots(&seen.slots)?;
        let is_empty = seen.named.is_empty() && seen.slots.is_empty();
        if !is_empty {
            self.frames.push(seen);
        }
        let outcome = read(self);
        if !is_empty {
            self.frames.pop();
        }
        outcome
    }

    /// Analyzes an array inside the rows of a table as a relation, as in `FROM orders, orders.items` (BigQuery,
    /// Redshift).
    fn path_into_a_row(
        &mut self,
        path: &[&Ident],
        around: &mut Frame,
        left: &mut Frame,
    ) -> AnalysisResult<Option<Vec<Slot>>> {
        if path.len() < 2 || !matches!(self.warehouse, "bigquery" | "redshift") {
            return Ok(None);
        }
        let first = self.key(path[0]);
        let is_sibling = around.named.iter().chain(&left.named).any(|named| named.parts.last() == Some(&first));
        if !is_sibling {
            return Ok(None);
        }
        let path: Vec<Ident> = path.iter().map(|ident| (*ident).clone()).collect();
        let origins = self.with_siblings(around, left, |own| own.compound(&path, Clause::Where))?;
        Ok(Some(vec![Slot::star(Rest::Derived(origins))]))
    }

    /// Returns the columns of a table, a model, or a query of a `WITH`, by its name.
    pub(super) fn table(&mut self, path: &[&Ident]) -> AnalysisResult<Vec<Slot>> {
        if let [ident] = path {
            let key = self.key(ident);
            if let Some(cte) = self.ctes.iter().rev().find(|cte| cte.name == key) {
                let (slots, is_open) = (cte.relation.slots.clone(), cte.is_open);
                let uses: Vec<_> = cte.relation.uses.iter().copied().collect();
                self.is_recursive |= is_open;
                self.spend_slots(&slots)?;
                self.spend(uses.len())?;
                self.uses.extend(uses);
                return Ok(slots);
            }
        }
        if let [ident] = path
            && self.later.contains(&self.key(ident))
        {
            let reason = Reason::NotFollowed("a query of WITH before its definition");
            let origins = self.unresolved(reason, Some(ident));
            self.add_uses(Use::Filter, &origins)?;
            return Ok(vec![Slot::star(Rest::Derived(origins))]);
        }
        // A quoted file name with a dot stays one part: `FROM 'a.parquet'`.
        let written: Vec<ColumnName> = path.iter().map(|ident| column_name(ident)).collect();
        let (table, slots) = self.catalog.relation(&written, self.arena);
        self.spend_slots(&slots)?;
        self.uses.insert((Use::Rows, ColumnOrigin::Table(table)));
        Ok(slots)
    }

    fn table_function(&mut self, name: &ObjectName, args: &[FunctionArg]) -> AnalysisResult<Vec<Slot>> {
        let mut origins = ColumnOrigins::new();
        for arg in args {
            let (FunctionArg::Named { arg, .. } | FunctionArg::ExprNamed { arg, .. } | FunctionArg::Unnamed(arg)) = arg;
            if let FunctionArgExpr::Expr(expr) = arg {
                origins.extend(self.expr(expr, Clause::Where)?);
            }
        }
        // The arguments also decide how many rows the function returns.
        self.add_uses(Use::Filter, &origins)?;
        self.made_by(name, origins)
    }

    fn made_by(&mut self, name: &ObjectName, mut origins: ColumnOrigins) -> AnalysisResult<Vec<Slot>> {
        let ident = idents(name).last().copied();
        let plain = ident.map(|ident| ident.value.to_ascii_lowercase()).unwrap_or_default();
        if GENERATORS.binary_search(&plain.as_str()).is_err() {
            let reads_files = FILE_READERS.binary_search(&plain.as_str()).is_ok();
            let unresolved = self.unresolved(Reason::TableFunction(plain.into()), ident);
            if !reads_files {
                // The function may read any table, as with `query_table('orders')` or a macro.
                self.add_uses(Use::Filter, &unresolved)?;
            }
            origins.extend(unresolved);
        }
        Ok(vec![Slot::star(Rest::Derived(origins))])
    }

    /// Adds the columns of `LATERAL VIEW explode(tags) t AS tag`, as in Hive and Spark.
    pub(super) fn lateral_view(&mut self, view: &LateralView, origins: ColumnOrigins) {
        let columns = view.lateral_col_alias.iter().map(|ident| Slot::column(self.output_name(ident), origins.clone()));
        let mut slots: Vec<Slot> = columns.collect();
        if slots.is_empty() {
            slots.push(Slot::star(Rest::Derived(origins)));
        }
        let parts = idents(&view.lateral_view_name).into_iter().map(|ident| self.key(ident)).collect();
        if let Some(frame) = self.frames.last_mut() {
            frame.slots.extend(slots.iter().cloned());
            frame.named.push(Named { parts, slots });
        }
    }

    fn one(&mut self, slots: Vec<Slot>, alias: Option<&TableAlias>, name: Option<&Ident>) -> AnalysisResult<Frame> {
        let slots = match alias {
            Some(alias) => self.renamed(slots, alias)?,
            None => slots,
        };
        let name = alias.map(|alias| &alias.name).or(name);
        let parts = name.map(|ident| self.key(ident)).into_iter().collect();
        self.spend_slots(&slots)?;
        Ok(Frame { named: vec![Named { parts, slots: slots.clone() }], slots, ..Frame::default() })
    }

    fn named_table(&mut self, slots: Vec<Slot>, alias: Option<&TableAlias>, path: &[&Ident]) -> AnalysisResult<Frame> {
        if alias.is_some() {
            return self.one(slots, alias, None);
        }
        self.spend_slots(&slots)?;
        let parts = path.iter().map(|ident| self.key(ident)).collect();
        Ok(Frame { named: vec![Named { parts, slots: slots.clone() }], slots, ..Frame::default() })
    }
}

/// Returns a query's columns with the names under which other queries read them. DuckDB renames a repeated `id`.
pub(crate) fn as_relation(mut slots: Vec<Slot>, warehouse: &str) -> Vec<Slot> {
    if warehouse != "duckdb" {
        return slots;
    }
    let mut met: HashMap<Arc<str>, usize> = HashMap::new();
    for slot in &mut slots {
        let Slot::Column(Column { name: Some(name), .. }) = slot else { continue };
        let count = met.entry(Arc::clone(&name.key)).or_default();
        if *count > 0 {
            *name =
                Name { key: format!("{}_{count}", name.key).into(), shown: format!("{}_{count}", name.shown).into() };
        }
        *count += 1;
    }
    slots
}

/// The sides of a join whose columns the join returns, and the side from which a column of `USING` takes its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Left,
    Right,
    Both,
    LeftAlone,
    RightAlone,
}
