//! The parts of an expression, and the columns that they read.
//!
//! In: bound expressions. Out: the direct parts of a node, and [`Scan`]: the columns of a row context that an
//! expression reads, and whether its value depends on current rows.

use std::collections::BTreeSet;
use std::rc::Rc;

use terrane_compiler::model::{CubeId, DimensionId};

use super::Evaluator;
use crate::bound::{
    BoundExpression, BoundQuery, Filter, FilterKind, MeasureSource, NamedScalar, Scalar, ScalarKind, Table, TableKind,
    VariableId,
};
use crate::plan::Aggregates;

/// A part of an expression.
#[derive(Clone, Copy)]
pub(super) enum Node<'q> {
    Scalar(&'q Scalar),
    Table(&'q Table),
}

impl Node<'_> {
    pub(super) fn address(self) -> usize {
        match self {
            Node::Scalar(scalar) => std::ptr::from_ref(scalar) as usize,
            Node::Table(table) => std::ptr::from_ref(table) as usize,
        }
    }
}

/// The columns of a row context that an expression reads, and the other contexts on which its value depends.
#[derive(Debug, Clone, Default)]
pub(super) struct Scan {
    pub columns: BTreeSet<u32>,
    pub related: BTreeSet<DimensionId>,
    /// True if the expression turns current rows into filters.
    pub has_transition: bool,
    /// True if the expression refers to variables, or to columns of outer row contexts.
    pub is_open: bool,
    /// True if the value depends on filters, because the expression contains a measure or an aggregate, for example.
    pub has_aggregates: bool,
}

impl Scan {
    fn add(&mut self, other: &Scan) {
        self.columns.extend(&other.columns);
        self.related.extend(&other.related);
        self.has_transition |= other.has_transition;
        self.is_open |= other.is_open;
        self.has_aggregates |= other.has_aggregates;
    }
}

/// The columns that the reader of a table needs.
#[derive(Debug, Clone)]
pub(super) enum Need {
    All,
    /// All columns, and these columns of tables on the one side.
    AllWith(BTreeSet<DimensionId>),
    Only(Scan),
}

impl Need {
    /// Returns whether a column is needed, by its place in the table and by the columns of the table's key. Rows that
    /// become filters need the key, and all columns if the key is empty because the caller does not see it.
    pub(super) fn has_column(&self, at: usize, id: DimensionId, key: &[DimensionId]) -> bool {
        match self {
            Need::All | Need::AllWith(_) => true,
            Need::Only(scan) => {
                scan.columns.contains(&(at as u32)) || scan.has_transition && (key.is_empty() || key.contains(&id))
            }
        }
    }

    /// Returns the needed columns of tables on the one side.
    pub(super) fn related(&self) -> Option<&BTreeSet<DimensionId>> {
        match self {
            Need::All => None,
            Need::AllWith(related) => Some(related),
            Need::Only(scan) => Some(&scan.related),
        }
    }

    pub(super) fn and(&self, scan: &Scan) -> Need {
        match self {
            Need::All if scan.related.is_empty() => Need::All,
            Need::All => Need::AllWith(scan.related.clone()),
            Need::AllWith(own) => Need::AllWith(own.union(&scan.related).copied().collect()),
            Need::Only(own) => {
                let mut both = own.clone();
                both.columns.extend(&scan.columns);
                both.related.extend(&scan.related);
                both.has_transition |= scan.has_transition;
                Need::Only(both)
            }
        }
    }
}

/// Calls a function for each direct part of a node.
pub(super) fn parts<'q>(node: Node<'q>, visit: &mut dyn FnMut(Node<'q>)) {
    match node {
        Node::Scalar(scalar) => scalar_parts(scalar, visit),
        Node::Table(table) => table_parts(table, visit),
    }
}

fn scalar_parts<'q>(scalar: &'q Scalar, visit: &mut dyn FnMut(Node<'q>)) {
    match &scalar.kind {
        ScalarKind::Constant(_)
        | ScalarKind::Parameter(_)
        | ScalarKind::Column { .. }
        | ScalarKind::Related { .. }
        | ScalarKind::Measure(_)
        | ScalarKind::Variable(_)
        | ScalarKind::Aggregate { .. }
        | ScalarKind::Invalid => {}
        ScalarKind::Negate(inner) | ScalarKind::Not(inner) | ScalarKind::Block { result: inner, .. } => {
            visit(Node::Scalar(inner));
        }
        ScalarKind::Arithmetic { first, rest } => {
            visit(Node::Scalar(first));
            rest.iter().for_each(|(_, operand)| visit(Node::Scalar(operand)));
        }
        ScalarKind::Concatenate(all) | ScalarKind::And(all) | ScalarKind::Or(all) => {
            all.iter().for_each(|one| visit(Node::Scalar(one)));
        }
        ScalarKind::Compare { left, right, .. } => {
            visit(Node::Scalar(left));
            visit(Node::Scalar(right));
        }
        ScalarKind::In { values, table } => {
            values.iter().for_each(|one| visit(Node::Scalar(one)));
            visit(Node::Table(table));
        }
        ScalarKind::Calculate { expression, filters, .. } => {
            visit(Node::Scalar(expression));
            filter_parts(filters, visit);
        }
        ScalarKind::OfColumn { alternate, .. } => alternate.iter().for_each(|one| visit(Node::Scalar(one))),
        ScalarKind::OfTable { table, .. } | ScalarKind::SingleValue(table) => visit(Node::Table(table)),
        ScalarKind::Iterate(iteration) => {
            visit(Node::Table(&iteration.table));
            visit(Node::Scalar(&iteration.expression));
            iteration.arguments.iter().flatten().for_each(|one| visit(Node::Scalar(one)));
            iteration.order.iter().for_each(|key| visit(Node::Scalar(&key.expression)));
        }
        ScalarKind::Call { arguments, .. } => arguments.iter().flatten().for_each(|one| visit(Node::Scalar(one))),
    }
}

fn table_parts<'q>(table: &'q Table, visit: &mut dyn FnMut(Node<'q>)) {
    match &table.kind {
        TableKind::Model(_)
        | TableKind::ModelWithUnmatched(_)
        | TableKind::Variable(_)
        | TableKind::Values { .. }
        | TableKind::All { .. }
        | TableKind::Related { .. }
        | TableKind::Invalid => {}
        TableKind::DistinctRows(inner) | TableKind::TreatAs { table: inner, .. } => visit(Node::Table(inner)),
        TableKind::Block { result, .. } => visit(Node::Table(result)),
        TableKind::Filter { table, condition, .. } => {
            visit(Node::Table(table));
            visit(Node::Scalar(condition));
        }
        TableKind::Calculate { table, filters, .. } => {
            visit(Node::Table(table));
            filter_parts(filters, visit);
        }
        TableKind::SummarizeColumns { filters, values, .. } => {
            filter_parts(filters, visit);
            named_parts(values, visit);
        }
        TableKind::Summarize { table, values, .. }
        | TableKind::AddColumns { table, values, .. }
        | TableKind::SelectColumns { table, values, .. } => {
            visit(Node::Table(table));
            named_parts(values, visit);
        }
        TableKind::TopN { count, table, order, .. } => {
            visit(Node::Scalar(count));
            visit(Node::Table(table));
            order.iter().for_each(|key| visit(Node::Scalar(&key.expression)));
        }
        TableKind::Row(values) => named_parts(values, visit),
        TableKind::Rows(rows) => rows.iter().flatten().for_each(|value| visit(Node::Scalar(value))),
        TableKind::Combine { tables, .. } => tables.iter().for_each(|table| visit(Node::Table(table))),
        TableKind::Generate { table, row_table, .. } => {
            visit(Node::Table(table));
            visit(Node::Table(row_table));
        }
        TableKind::Dates { dates, arguments, .. } => {
            dates.iter().for_each(|table| visit(Node::Table(table)));
            arguments.iter().flatten().for_each(|one| visit(Node::Scalar(one)));
        }
    }
}

fn named_parts<'q>(values: &'q [NamedScalar], visit: &mut dyn FnMut(Node<'q>)) {
    values.iter().for_each(|value| visit(Node::Scalar(&value.expression)));
}

fn filter_parts<'q>(filters: &'q [Filter], visit: &mut dyn FnMut(Node<'q>)) {
    for filter in filters {
        match &filter.kind {
            FilterKind::Table(table) => visit(Node::Table(table)),
            FilterKind::Condition { condition, .. } => visit(Node::Scalar(condition)),
            FilterKind::Remove { .. } | FilterKind::UseRelationship(_) => {}
        }
    }
}

/// Adds the columns that RELATED and SUMMARIZE read in a node. The values of variables are separate nodes.
fn collect_related(node: Node<'_>, found: &mut BTreeSet<DimensionId>) {
    match node {
        Node::Scalar(Scalar { kind: ScalarKind::Related { column, .. }, .. }) => _ = found.insert(*column),
        Node::Table(Table { kind: TableKind::Summarize { groups, .. }, .. }) => found.extend(groups),
        _ => {}
    }
    stacker::maybe_grow(64 * 1024, 1024 * 1024, || parts(node, &mut |part| collect_related(part, found)));
}

/// Collects the columns that nodes read.
struct Scanner<'s, 'q> {
    evaluator: &'s Evaluator<'q>,
    /// The number of the row context whose columns are collected.
    context: u32,
    scan: Scan,
}

impl<'q> Scanner<'_, 'q> {
    fn node(&mut self, node: Node<'q>) {
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            match node {
                Node::Scalar(scalar) => self.scalar(scalar),
                Node::Table(table) => self.table(table),
            }
            parts(node, &mut |part| self.node(part));
        });
    }

    fn scalar(&mut self, scalar: &'q Scalar) {
        match &scalar.kind {
            ScalarKind::Column { context, column } => {
                if *context == self.context {
                    self.scan.columns.insert(*column);
                }
                // A lower number is a row context around the node; a higher number is one inside it.
                self.scan.is_open |= *context < self.context;
            }
            ScalarKind::Related { context, column } => {
                if *context == self.context {
                    self.scan.related.insert(*column);
                }
                self.scan.is_open |= *context < self.context;
            }
            ScalarKind::Measure(call) => {
                self.scan.has_transition |= call.has_transition;
                self.scan.has_aggregates = true;
            }
            ScalarKind::Calculate { has_transition, .. } => {
                self.scan.has_transition |= has_transition;
                self.scan.has_aggregates = true;
            }
            ScalarKind::Aggregate { .. }
            | ScalarKind::OfColumn { .. }
            | ScalarKind::OfTable { .. }
            | ScalarKind::SingleValue(_) => {
                self.scan.has_aggregates = true;
            }
            ScalarKind::Variable(id) => self.variable(*id),
            _ => {}
        }
    }

    fn table(&mut self, table: &'q Table) {
        match &table.kind {
            TableKind::Calculate { has_transition, .. } => self.scan.has_transition |= has_transition,
            TableKind::Related { context, .. } => {
                self.scan.has_transition |= *context == self.context;
                self.scan.is_open |= *context < self.context;
            }
            TableKind::Variable(id) => self.variable(*id),
            TableKind::Dates { dates: None, .. } => self.scan.has_transition = true,
            _ => {}
        }
    }

    fn variable(&mut self, id: VariableId) {
        let node = match &self.evaluator.query.variables[id.0 as usize].value {
            BoundExpression::Scalar(scalar) => Node::Scalar(scalar),
            BoundExpression::Table(table) => Node::Table(table),
        };
        // The scan of a variable is cached, so that several references to it cost one scan.
        let scan = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.evaluator.scan(node, self.context));
        self.scan.add(&scan);
        self.scan.is_open = true;
    }
}

impl<'q> Evaluator<'q> {
    /// Returns the columns of a row context that a node reads. The result is cached by the node's address.
    pub(super) fn scan(&self, node: Node<'q>, context: u32) -> Rc<Scan> {
        let address = node.address();
        if let Some(found) = self.scans.borrow().get(&(address, context)) {
            return Rc::clone(found);
        }
        let mut scanner = Scanner { evaluator: self, context, scan: Scan::default() };
        scanner.node(node);
        let scan = Rc::new(scanner.scan);
        self.scans.borrow_mut().insert((address, context), Rc::clone(&scan));
        scan
    }

    /// Returns whether an expression aggregates and reads only the rows of one table.
    pub(super) fn aggregates_only(&self, node: Node<'q>, table: CubeId) -> bool {
        let key = (node.address(), table);
        if let Some(found) = self.aggregated.borrow().get(&key) {
            return *found;
        }
        let found = stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            let mut all = self.itself_aggregates_only(node, table);
            parts(node, &mut |part| all = all && self.aggregates_only(part, table));
            all
        });
        self.aggregated.borrow_mut().insert(key, found);
        found
    }

    fn itself_aggregates_only(&self, node: Node<'q>, table: CubeId) -> bool {
        match node {
            Node::Scalar(scalar) => match &scalar.kind {
                ScalarKind::Aggregate { column, .. } | ScalarKind::OfColumn { column, .. } => column.cube == table,
                ScalarKind::Measure(call) => match call.source {
                    MeasureSource::Query(id) => {
                        self.aggregates_only(Node::Scalar(&self.query.measures[id.0 as usize].expression), table)
                    }
                    source => {
                        let mut aggregates = Aggregates::default();
                        aggregates.add(self.model, source);
                        aggregates.facts.iter().all(|fact| *fact == table)
                    }
                },
                ScalarKind::Variable(id) => self.variable_aggregates_only(*id, table),
                _ => true,
            },
            Node::Table(of) => match &of.kind {
                TableKind::Model(cube)
                | TableKind::ModelWithUnmatched(cube)
                | TableKind::Related { table: cube, .. } => *cube == table,
                TableKind::Values { column, .. } | TableKind::Dates { column, .. } => column.cube == table,
                TableKind::SummarizeColumns { .. } => false,
                TableKind::Variable(id) => self.variable_aggregates_only(*id, table),
                _ => true,
            },
        }
    }

    fn variable_aggregates_only(&self, id: VariableId, table: CubeId) -> bool {
        match &self.query.variables[id.0 as usize].value {
            BoundExpression::Scalar(scalar) => self.aggregates_only(Node::Scalar(scalar), table),
            BoundExpression::Table(of) => self.aggregates_only(Node::Table(of), table),
        }
    }

    /// Returns the columns that the value of a variable needs: all columns of the table, and the columns of tables on
    /// its one side that any part of the query reads from rows.
    pub(super) fn need_of_variable(&self, table: &Table) -> Need {
        let Some(cube) = self.table_of_rows(table) else { return Need::All };
        let is_reached = |id: &&DimensionId| id.cube != cube && self.model.join_paths(cube).is_to_one(id.cube);
        let related: BTreeSet<DimensionId> =
            self.related.get_or_init(|| self.related_columns()).iter().filter(is_reached).copied().collect();
        if related.is_empty() { Need::All } else { Need::AllWith(related) }
    }

    /// Returns the columns that RELATED and SUMMARIZE read in the query.
    fn related_columns(&self) -> BTreeSet<DimensionId> {
        let mut found = BTreeSet::new();
        let BoundQuery { evaluations, variables, measures, .. } = self.query;
        for evaluation in evaluations {
            collect_related(Node::Table(&evaluation.table), &mut found);
            evaluation.order.iter().for_each(|key| collect_related(Node::Scalar(&key.expression), &mut found));
        }
        measures.iter().for_each(|measure| collect_related(Node::Scalar(&measure.expression), &mut found));
        for variable in variables {
            match &variable.value {
                BoundExpression::Scalar(scalar) => collect_related(Node::Scalar(scalar), &mut found),
                BoundExpression::Table(table) => collect_related(Node::Table(table), &mut found),
            }
        }
        found
    }

    /// Returns the columns of a row context that several scalars read.
    pub(super) fn scan_all(&self, scalars: impl Iterator<Item = &'q Scalar>, context: u32) -> Scan {
        let mut all = Scan::default();
        for scalar in scalars {
            all.add(&self.scan(Node::Scalar(scalar), context));
        }
        all
    }
}
