//! Binding: resolves names to ids, finds the types, and marks the contexts of every node.
//!
//! In: a tree, and the names that its caller may use. Out: a [`BoundQuery`], and every problem of the query in one run.
//! A node that cannot be bound is invalid and causes no further problems.

mod call;
mod expression;
mod filter;
mod groups;
mod table;

use std::collections::HashSet;
use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::{CubeId, Model};

use crate::bound::{
    BoundEvaluation, BoundExpression, BoundOrder, BoundQuery, BoundVariable, ColumnName, QueryMeasure, QueryMeasureId,
    Scalar, ScalarKind, Table, TableColumn, VariableId,
};
use crate::functions::{self, Operation};
use crate::names::{Names, equal_names};
use crate::place::Place;
use crate::problem::{ExpressionForm, MAX_PROBLEMS, Problem, ProblemKind};
use crate::tree::{Definition, Evaluation, Expression, ExpressionKind, Name, OrderKey, Query, Variable};

/// A bound query, and the problems of binding it. If there are no problems, the query has no invalid nodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bound {
    pub query: BoundQuery,
    pub problems: Vec<Problem>,
}

/// Binds the names in a query to the tables, columns and measures that a caller may name.
pub fn bind(query: &Query, access: &Access<'_>) -> Bound {
    let mut binder = Binder {
        names: Names::new(access),
        bound: BoundQuery::default(),
        problems: Vec::new(),
        definitions: query.definitions.iter().map(|tree| (tree, State::Open)).collect(),
        measures: Vec::new(),
        open: Vec::new(),
        locals: Vec::new(),
        scopes: Vec::new(),
        hidden: 0,
        logical_filters: Vec::new(),
        deferring: 0,
    };
    binder.definitions();
    for evaluation in &query.evaluations {
        let bound = binder.evaluation(evaluation);
        binder.bound.evaluations.push(bound);
    }
    binder.problems.sort_by_key(|problem| problem.place);
    let mut seen = HashSet::new();
    binder.problems.retain(|problem| seen.insert((problem.place, problem.kind.to_string())));
    let mut query = binder.bound;
    query.measures = binder.measures.into_iter().flatten().collect();
    Bound { query, problems: binder.problems }
}

/// The state of a definition.
#[derive(Debug, Clone, Copy)]
enum State {
    Open,
    /// The definition is being bound, so that a reference to it is a cycle.
    Binding,
    Variable(VariableId),
    Measure(QueryMeasureId),
    Invalid,
}

/// A row context: the columns of the table whose rows it passes through.
struct RowContext {
    columns: Arc<[TableColumn]>,
    /// True if the table is invalid. Any name may then be one of its columns.
    is_open: bool,
    /// True if the table is the argument of KEEPFILTERS.
    keeps_filters: bool,
}

/// A logical filter. Its row context contains the columns that its condition names.
struct LogicalFilter {
    /// The index of its row context.
    scope: usize,
}

struct Binder<'q> {
    names: Names<'q>,
    bound: BoundQuery,
    problems: Vec<Problem>,
    definitions: Vec<(&'q Definition, State)>,
    /// The measures by [`QueryMeasureId`]; `None` while a measure is being bound.
    measures: Vec<Option<QueryMeasure>>,
    /// The definitions that are being bound, outermost first.
    open: Vec<usize>,
    /// Variables of the enclosing blocks, innermost last.
    locals: Vec<(Arc<str>, VariableId)>,
    /// Row contexts, innermost last.
    scopes: Vec<RowContext>,
    /// The number of the first visible row context. The earlier ones were turned into filters.
    hidden: usize,
    logical_filters: Vec<LogicalFilter>,
    /// The number of enclosing expressions whose errors may be detected by IFERROR or ISERROR. Values that cannot be
    /// converted are then errors of the evaluation.
    deferring: usize,
}

impl<'q> Binder<'q> {
    fn model(&self) -> &'q Model {
        self.names.model()
    }

    fn problem(&mut self, kind: ProblemKind, place: Place) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(Problem::new(kind, place));
        }
    }

    // Definitions

    fn definitions(&mut self) {
        for at in 0..self.definitions.len() {
            let (definition, _) = self.definitions[at];
            let earlier = &self.definitions[..at];
            let is_same = |(other, _): &&(&Definition, State)| match (definition, other) {
                (Definition::Variable(one), Definition::Variable(two)) => equal_names(&one.name.text, &two.name.text),
                (
                    Definition::Measure { table, name, .. },
                    Definition::Measure { table: other_table, name: other, .. },
                ) => equal_names(&name.text, &other.text) && equal_names(&table.text, &other_table.text),
                _ => false,
            };
            let is_duplicate = earlier.iter().any(|other| is_same(&other));
            let (what, name) = match definition {
                Definition::Variable(variable) => ("variable", &variable.name),
                Definition::Measure { name, .. } => ("measure", name),
            };
            if is_duplicate {
                self.problem(ProblemKind::Duplicate { what, name: Arc::clone(&name.text) }, name.place);
            }
            self.bind_definition(at, name.place);
        }
    }

    /// Binds a definition if it is not bound yet, and returns its state.
    fn bind_definition(&mut self, at: usize, place: Place) -> State {
        match self.definitions[at].1 {
            State::Open => {}
            State::Binding => {
                let start = self.open.iter().position(|open| *open == at).unwrap_or(0);
                let path = self.open[start..].iter().chain([&at]).map(|at| self.name_of(*at)).collect();
                self.problem(ProblemKind::Cycle { path }, place);
                return State::Invalid;
            }
            state => return state,
        }
        self.definitions[at].1 = State::Binding;
        self.open.push(at);
        // The contexts and variables at the place of the reference are not visible in the definition.
        let (locals, scopes) = (std::mem::take(&mut self.locals), std::mem::take(&mut self.scopes));
        let hidden = std::mem::take(&mut self.hidden);
        let filters = std::mem::take(&mut self.logical_filters);
        let state = match self.definitions[at].0 {
            Definition::Variable(variable) => State::Variable(self.variable(variable)),
            Definition::Measure { table, name, expression } => self.query_measure(table, name, expression),
        };
        (self.locals, self.scopes, self.hidden, self.logical_filters) = (locals, scopes, hidden, filters);
        self.open.pop();
        self.definitions[at].1 = state;
        state
    }

    fn name_of(&self, definition: usize) -> Arc<str> {
        match self.definitions[definition].0 {
            Definition::Variable(variable) => Arc::clone(&variable.name.text),
            Definition::Measure { name, .. } => format!("[{}]", name.text).into(),
        }
    }

    fn query_measure(&mut self, table: &'q Name, name: &'q Name, expression: &'q Expression) -> State {
        let cube = self.table_named(table);
        self.deferring += 1;
        let expression = self.scalar(expression);
        self.deferring -= 1;
        let Some(table) = cube else { return State::Invalid };
        let id = QueryMeasureId(self.measures.len() as u32);
        self.measures.push(Some(QueryMeasure { table, name: Arc::clone(&name.text), expression }));
        State::Measure(id)
    }

    /// Binds the value of a variable in the current contexts.
    fn variable(&mut self, variable: &'q Variable) -> VariableId {
        self.deferring += 1;
        let value = self.bind_expression(&variable.value);
        self.deferring -= 1;
        let name = Arc::clone(&variable.name.text);
        self.bound.variables.push(BoundVariable { name, value });
        VariableId(self.bound.variables.len() as u32 - 1)
    }

    /// Returns the variable with this name; an inner variable hides outer ones. The inner value is `None` if the
    /// variable is invalid.
    fn find_variable(&mut self, name: &Name) -> Option<Option<VariableId>> {
        if name.is_quoted {
            return None;
        }
        let local = self.locals.iter().rev().find(|(local, _)| equal_names(local, &name.text));
        if let Some((_, id)) = local {
            return Some(Some(*id));
        }
        let is_it = |definition: &Definition| matches!(definition, Definition::Variable(variable) if equal_names(&variable.name.text, &name.text));
        let at = self.definitions.iter().position(|(definition, _)| is_it(definition))?;
        match self.bind_definition(at, name.place) {
            State::Variable(id) => Some(Some(id)),
            _ => Some(None),
        }
    }

    /// Returns the measure of the query with this name, in one table or, if `table` is `None`, in any table. The inner
    /// value is `None` if the measure is invalid or the name is ambiguous.
    fn find_query_measure(&mut self, table: Option<CubeId>, name: &Name) -> Option<Option<QueryMeasureId>> {
        let is_it = |binder: &Self, definition: &Definition| match definition {
            Definition::Measure { table: home, name: found, .. } if equal_names(&found.text, &name.text) => {
                table.is_none_or(|table| binder.names.table(&home.text).is_ok_and(|cube| cube.id == table))
            }
            _ => false,
        };
        let found: Vec<usize> = (0..self.definitions.len()).filter(|at| is_it(self, self.definitions[*at].0)).collect();
        if let [first, .., last] = found[..] {
            let homes = [first, last].map(|at| match self.definitions[at].0 {
                Definition::Measure { table, .. } => Arc::clone(&table.text),
                Definition::Variable(variable) => Arc::clone(&variable.name.text),
            });
            if !equal_names(&homes[0], &homes[1]) {
                let kind = ProblemKind::AmbiguousMeasure { name: Arc::clone(&name.text), tables: homes.to_vec() };
                self.problem(kind, name.place);
                return Some(None);
            }
        }
        match self.bind_definition(*found.first()?, name.place) {
            State::Measure(id) => Some(Some(id)),
            _ => Some(None),
        }
    }

    // Queries

    fn evaluation(&mut self, evaluation: &'q Evaluation) -> BoundEvaluation {
        let table = match self.bind_expression(&evaluation.table) {
            BoundExpression::Table(table) => table,
            BoundExpression::Scalar(scalar) => {
                if scalar.kind != ScalarKind::Invalid {
                    let text = evaluation.table.to_string();
                    let text = (text.chars().count() <= 60).then(|| text.into());
                    self.problem(ProblemKind::ScalarEvaluated { text }, scalar.place);
                }
                Table::invalid(scalar.place)
            }
        };
        let order: Vec<BoundOrder> =
            self.in_rows_of(&table, |binder, _| evaluation.order.iter().map(|key| binder.order_key(key)).collect());
        let start_at: Vec<Scalar> = evaluation.start_at.iter().map(|value| self.constant(value)).collect();
        for (key, value) in order.iter().zip(&start_at) {
            self.check_start(&key.expression, value);
        }
        BoundEvaluation { table, order, start_at, place: evaluation.place }
    }

    fn order_key(&mut self, key: &'q OrderKey) -> BoundOrder {
        BoundOrder { expression: self.scalar(&key.expression), descending: key.descending }
    }

    /// Reports a value of START AT that the values of its key cannot be compared with.
    fn check_start(&mut self, key: &Scalar, value: &Scalar) {
        let is_valid = key.kind != ScalarKind::Invalid && value.kind != ScalarKind::Invalid;
        if is_valid && !key.ty.is_comparable(value.ty) {
            self.problem(ProblemKind::WrongStart { key: key.ty, found: value.ty }, value.place);
        }
    }

    /// Binds an expression that must be a constant or a parameter.
    fn constant(&mut self, expression: &'q Expression) -> Scalar {
        let scalar = self.scalar(expression);
        let is_constant = |scalar: &Scalar| matches!(scalar.kind, ScalarKind::Constant(_) | ScalarKind::Parameter(_));
        let is_fixed = match &scalar.kind {
            ScalarKind::Negate(inner) => is_constant(inner),
            ScalarKind::Invalid => true,
            ScalarKind::Call { arguments, .. } => arguments.iter().flatten().all(is_constant),
            _ => is_constant(&scalar),
        };
        if !is_fixed {
            self.problem(ProblemKind::ExpectedConstant, scalar.place);
        }
        scalar
    }

    // Contexts

    /// Calls `bind` in the row context of a table, with the number of that context.
    fn in_rows_of<T>(&mut self, table: &Table, bind: impl FnOnce(&mut Self, u32) -> T) -> T {
        self.in_iterated_rows(table, false, bind)
    }

    /// Calls `bind` like [`Self::in_rows_of`], for a table that [`Self::iterated`] bound.
    fn in_iterated_rows<T>(&mut self, table: &Table, keeps_filters: bool, bind: impl FnOnce(&mut Self, u32) -> T) -> T {
        let columns = Arc::clone(&table.columns);
        self.scopes.push(RowContext { columns, is_open: table.is_invalid(), keeps_filters });
        let bound = bind(self, self.scopes.len() as u32 - 1);
        self.scopes.pop();
        bound
    }

    /// Calls `bind` in a filter context that contains the current row contexts as filters. These row contexts are not
    /// visible there.
    fn in_filter_context<T>(&mut self, bind: impl FnOnce(&mut Self) -> T) -> T {
        let hidden = std::mem::replace(&mut self.hidden, self.scopes.len());
        let bound = bind(self);
        self.hidden = hidden;
        bound
    }

    /// Checks that the current rows can become filters, and returns whether there are any. Rows of KEEPFILTERS cannot,
    /// because the filters of their columns would have to stay.
    fn check_transition(&mut self, place: Place) -> bool {
        if self.visible_scopes().any(|(_, scope)| scope.keeps_filters) {
            let construct = "a measure or CALCULATE in the rows of KEEPFILTERS".into();
            self.problem(ProblemKind::NotSupported { construct }, place);
        }
        self.scopes.len() > self.hidden
    }

    /// Binds the table whose rows a function passes through. Also returns whether it is the argument of KEEPFILTERS.
    fn iterated(&mut self, expression: &'q Expression) -> (Table, bool) {
        match &expression.kind {
            ExpressionKind::Call { function: name, arguments }
                if functions::find(&name.text).is_some_and(|found| found.operation == Operation::KeepFilters) =>
            {
                match &arguments[..] {
                    [only] => (self.iterated(only).0, true),
                    _ => (self.table(expression), false),
                }
            }
            _ => (self.table(expression), false),
        }
    }

    /// Returns the visible row contexts with their numbers, innermost first.
    fn visible_scopes(&self) -> impl Iterator<Item = (u32, &RowContext)> {
        (self.hidden..self.scopes.len()).rev().map(|at| (at as u32, &self.scopes[at]))
    }

    // Tables

    fn table_named(&mut self, name: &Name) -> Option<CubeId> {
        match self.names.table(&name.text) {
            Ok(cube) => Some(cube.id),
            Err(kind) => {
                self.problem(kind, name.place);
                None
            }
        }
    }

    fn columns_of(&self, cube: CubeId) -> Arc<[TableColumn]> {
        let model = self.model();
        self.names.open_columns(model.cube(cube)).map(|id| TableColumn::of_model(model, id)).collect()
    }

    // Shapes

    /// Binds a scalar. A table of one column is accepted as the value of its only row.
    fn scalar(&mut self, expression: &'q Expression) -> Scalar {
        if let ExpressionKind::Name(name) = &expression.kind
            && name.is_quoted
            && matches!(self.names.table(&name.text), Err(ProblemKind::UnknownTable { .. }))
        {
            self.problem(ProblemKind::QuotedString { name: Arc::clone(&name.text) }, name.place);
            return Scalar::invalid(name.place);
        }
        match self.bind_expression(expression) {
            BoundExpression::Scalar(scalar) => scalar,
            BoundExpression::Table(table) if table.columns.len() == 1 && !table.is_invalid() => {
                let (ty, place) = (table.columns[0].ty, table.place);
                Scalar { kind: ScalarKind::SingleValue(Box::new(table)), ty, place }
            }
            BoundExpression::Table(table) => {
                if !table.is_invalid() {
                    let kind =
                        ProblemKind::WrongShape { expected: ExpressionForm::Scalar, found: ExpressionForm::Table };
                    self.problem(kind, table.place);
                }
                Scalar::invalid(table.place)
            }
        }
    }

    fn table(&mut self, expression: &'q Expression) -> Table {
        if matches!(expression.kind, ExpressionKind::Member { .. }) {
            let kind = ProblemKind::WrongShape { expected: ExpressionForm::Table, found: ExpressionForm::Scalar };
            self.problem(kind, expression.place);
            return Table::invalid(expression.place);
        }
        match self.bind_expression(expression) {
            BoundExpression::Table(table) => table,
            BoundExpression::Scalar(scalar) => {
                if scalar.kind != ScalarKind::Invalid {
                    let kind =
                        ProblemKind::WrongShape { expected: ExpressionForm::Table, found: ExpressionForm::Scalar };
                    self.problem(kind, scalar.place);
                }
                Table::invalid(scalar.place)
            }
        }
    }
}

/// Returns the index of the column that a name without a table refers to in a row context.
fn named_column(model: &Model, columns: &[TableColumn], name: &str) -> Option<u32> {
    let exact = columns.iter().position(|column| match &column.name {
        ColumnName::Named(found) => equal_names(found, name),
        ColumnName::Model(_) => false,
    });
    let found = exact.or_else(|| {
        columns.iter().position(|column| match column.name {
            ColumnName::Model(id) => equal_names(&model.dimension(id).name, name),
            ColumnName::Named(_) => false,
        })
    });
    found.map(|at| at as u32)
}
