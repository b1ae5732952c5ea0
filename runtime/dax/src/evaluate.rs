//! Evaluation of tables that one semantic query cannot answer.
//!
//! In: an evaluation of a bound query, and the rows of the semantic queries that it has requested so far. Out: the rows
//! of the table, or the semantic queries whose rows are missing. The caller runs those and evaluates again, until
//! nothing is missing. Measures and rows come only from semantic queries, so that policies, caches and pre-aggregations
//! apply. Everything else is computed here, on rows in memory. Not here: SQL, running queries.

mod aggregate;
mod blank_groups;
mod budget;
mod call;
mod computed;
mod context;
mod data;
mod dates;
mod datum;
mod decimal;
mod environment;
mod expansion;
mod filter;
mod format;
mod key_filters;
mod measure;
mod operators;
mod relationships;
mod requests;
mod rows;
mod scalar;
mod source;
mod summarize;
mod table;
mod time_form;
mod timeline;
mod walk;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use jiff::civil::DateTime;
use terrane_compiler::Access;
use terrane_compiler::model::{CubeId, DimensionId, Model};
use terrane_compiler::query::{RowAggregate, RowValue, SemanticQuery};

use crate::bound::{
    BoundEvaluation, BoundQuery, ColumnName, MeasureSource, Relationship, Scalar, ScalarKind, Table, TableKind,
    VariableId,
};
use crate::place::Place;
use crate::plan::{OfRow, Parameters};
use crate::problem::{Problem, ProblemKind};
use crate::types::Type;

pub use budget::{Budget, MAX_BYTES, MAX_STEPS};
pub(crate) use call::constant_date;
pub use data::{FetchedData, FetchedRows, singles};
pub use datum::Datum;
pub use decimal::Decimal;
pub use time_form::TimeForm;

use data::Index;
use environment::{Environment, Value};
use rows::Rows;
use source::Item;

/// The largest number of semantic queries of one evaluation.
pub const MAX_QUERIES: usize = 100;
/// The largest number of rows that a table may have during an evaluation.
pub const MAX_ROWS: usize = 1_000_000;

/// The result of one round of an evaluation.
#[derive(Debug)]
pub enum Step {
    Done(FinishedTable),
    /// The queries whose rows the next round needs.
    Needs(Vec<SemanticQuery>),
}

/// The rows of a result, in the order of the query.
#[derive(Debug)]
pub struct FinishedTable {
    pub columns: Vec<FinishedColumn>,
    pub rows: Vec<Vec<Datum>>,
    pub warnings: Vec<String>,
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedColumn {
    /// `Table[Column]` or `[Name]`
    pub name: String,
    pub ty: Type,
    /// The column of the model from which the values come.
    pub lineage: Option<DimensionId>,
    /// The measure of the model from which the values come.
    pub measure: Option<MeasureSource>,
    /// The form of the values if they are times.
    pub time: TimeForm,
}

/// Evaluates a table as far as the fetched rows allow.
///
/// # Errors
/// A construct is not supported, a value cannot be converted, or a limit is exceeded.
pub fn evaluate(
    query: &BoundQuery,
    evaluation: &BoundEvaluation,
    access: &Access<'_>,
    parameters: &Parameters,
    now: DateTime,
    data: &FetchedData,
    budget: &Budget,
) -> Result<Step, Problem> {
    let evaluator = Evaluator {
        query,
        access,
        model: access.model(),
        parameters,
        now,
        data,
        budget,
        held: Rc::new(Cell::new(data.bytes())),
        missing: RefCell::default(),
        indexes: RefCell::default(),
        filter_lists: RefCell::default(),
        definitions: RefCell::default(),
        tables: RefCell::default(),
        scans: RefCell::default(),
        warnings: RefCell::default(),
        measures: RefCell::default(),
        retains: RefCell::default(),
        sets: RefCell::default(),
        ranks: RefCell::default(),
        aggregated: RefCell::default(),
        related: OnceCell::new(),
        timelines: RefCell::default(),
        row_values: RefCell::default(),
        row_aggregates: RefCell::default(),
    };
    match evaluator.evaluation(evaluation) {
        Ok(table) => Ok(Step::Done(table)),
        Err(Halt::Missing) => {
            let missing = evaluator.requested();
            if data.len() + missing.len() > MAX_QUERIES {
                let kind = ProblemKind::TooLarge { what: "semantic queries", limit: MAX_QUERIES as u64 };
                return Err(Problem::new(kind, evaluation.place));
            }
            Ok(Step::Needs(missing))
        }
        Err(Halt::Problem(problem)) => Err(problem),
        Err(Halt::Value { message, place }) => Err(Problem::new(ProblemKind::InvalidValue { message }, place)),
    }
}

/// The reason why an expression has no value.
#[derive(Debug, Clone)]
enum Halt {
    /// Rows are missing. The queries for them were recorded in the evaluator.
    Missing,
    /// An error that ISERROR and IFERROR detect.
    Value {
        message: Arc<str>,
        place: Place,
    },
    Problem(Problem),
}

impl From<Problem> for Halt {
    fn from(problem: Problem) -> Halt {
        Halt::Problem(problem)
    }
}

type Result<T, E = Halt> = std::result::Result<T, E>;

/// The key of an index: its contents, the pinned columns, and the number of its list of filters.
type IndexKey = (Item, Vec<DimensionId>, u32);

/// A table, and a value that was computed from it. The table is stored so that its address stays in use.
type OfTable<T> = (Rc<Rows>, Rc<T>);
type RowSet = HashSet<Rc<[Datum]>>;

struct Evaluator<'q> {
    query: &'q BoundQuery,
    access: &'q Access<'q>,
    model: &'q Model,
    parameters: &'q Parameters,
    now: DateTime,
    data: &'q FetchedData,
    budget: &'q Budget,
    /// The number of bytes that tables, strings and rows use.
    held: Rc<Cell<usize>>,
    missing: RefCell<Vec<requests::Request>>,
    indexes: RefCell<HashMap<IndexKey, Rc<Index>>>,
    /// The numbers of lists of filters, by their contents.
    filter_lists: RefCell<HashMap<String, u32>>,
    /// The values of the variables that the query's DEFINE part defines.
    definitions: RefCell<HashMap<VariableId, Result<Value>>>,
    /// The tables that do not depend on a current row, by the address of their node and by their filters.
    tables: RefCell<HashMap<TableKey, Rc<Rows>>>,
    scans: RefCell<HashMap<(usize, u32), Rc<walk::Scan>>>,
    warnings: RefCell<Vec<String>>,
    /// The values of the query's measures, one for each filter context.
    measures: RefCell<HashMap<TableKey, Result<Datum>>>,
    /// For each node, by its address: true if all its parts are evaluated under exactly the filters around the node.
    retains: RefCell<HashMap<usize, bool>>,
    /// The rows of cached tables as sets, for IN.
    sets: RefCell<HashMap<usize, OfTable<RowSet>>>,
    /// The values of cached tables in order, for RANKX.
    ranks: RefCell<HashMap<usize, OfTable<aggregate::Ranked>>>,
    /// For each node, by its address, and each table: true if the node aggregates only rows of the table.
    aggregated: RefCell<HashMap<(usize, CubeId), bool>>,
    /// The columns that RELATED and SUMMARIZE read in the query.
    related: OnceCell<BTreeSet<DimensionId>>,
    timelines: RefCell<HashMap<IndexKey, Rc<timeline::Timelines>>>,
    /// For nodes, by their addresses: the value that the warehouse computes for each row, or `None` if it cannot.
    row_values: RefCell<HashMap<usize, Option<Rc<OfRow<RowValue>>>>>,
    /// The aggregates that the warehouse computes.
    row_aggregates: RefCell<Vec<Rc<RowAggregate>>>,
}

/// The key of a cached table: its node and its filter context.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TableKey {
    node: usize,
    filters: u32,
    selected: Option<u32>,
    pins: Rc<[context::Pin]>,
    relationships: Rc<[Relationship]>,
}

impl TableKey {
    fn of(node: usize, environment: &Environment) -> Self {
        let context = &environment.context;
        TableKey {
            node,
            filters: context.filters.id,
            selected: environment.selected.as_ref().map(|filters| filters.id),
            pins: Rc::clone(&context.pins),
            relationships: Rc::clone(&context.relationships),
        }
    }
}

impl<'q> Evaluator<'q> {
    fn evaluation(&self, evaluation: &'q BoundEvaluation) -> Result<FinishedTable> {
        let environment = Environment::outermost(self.filter_list(Vec::new()));
        let rows = self.table(&evaluation.table, &environment, &walk::Need::All)?;
        let rows = self.ordered(evaluation, &rows, &environment)?;
        let columns: Vec<FinishedColumn> = evaluation
            .table
            .columns
            .iter()
            .map(|column| {
                let expression = self.expression_of_column(&evaluation.table, &column.name);
                FinishedColumn {
                    name: column.name.in_result(self.model),
                    ty: column.ty,
                    lineage: column.lineage,
                    measure: expression.and_then(|expression| self.measure_of(expression)),
                    time: match (column.lineage, expression) {
                        (Some(id), _) => self.time_form(id),
                        (None, Some(expression)) => self.time_form_of(expression),
                        (None, None) => TimeForm::WallClock,
                    },
                }
            })
            .collect();
        let width = columns.len();
        let rows = rows.into_iter().map(|row| row[..width].to_vec()).collect();
        Ok(FinishedTable { columns, rows, warnings: self.warnings.take() })
    }

    /// Returns the expression of a table's column with this name, or `None` if no expression of the query computes it.
    fn expression_of_column<'t>(&self, table: &'t Table, name: &ColumnName) -> Option<&'t Scalar> {
        let ColumnName::Named(text) = name else { return None };
        let (of, values) = match &table.kind {
            TableKind::SummarizeColumns { values, .. } | TableKind::Row(values) => (None, values),
            TableKind::Summarize { table, values, .. } | TableKind::AddColumns { table, values, .. } => {
                (Some(table), values)
            }
            TableKind::SelectColumns { values, .. } => (None, values),
            TableKind::Filter { table, .. }
            | TableKind::TopN { table, .. }
            | TableKind::Calculate { table, .. }
            | TableKind::Block { result: table, .. } => return self.expression_of_column(table, name),
            TableKind::Rows(rows) => {
                let at = table.columns.iter().position(|column| column.name == *name)?;
                return match &rows[..] {
                    [row] => row.get(at),
                    _ => None,
                };
            }
            _ => return None,
        };
        match (values.iter().find(|value| value.name == *text), of) {
            (Some(value), _) => Some(&value.expression),
            (None, Some(of)) => self.expression_of_column(of, name),
            (None, None) => None,
        }
    }

    fn measure_of(&self, scalar: &Scalar) -> Option<MeasureSource> {
        match &scalar.kind {
            ScalarKind::Measure(call) => match call.source {
                MeasureSource::Query(_) => None,
                source => Some(source),
            },
            ScalarKind::Calculate { expression, .. } | ScalarKind::Block { result: expression, .. } => {
                self.measure_of(expression)
            }
            _ => None,
        }
    }

    /// Orders the rows of a result, and removes the rows before START AT.
    fn ordered(
        &self,
        evaluation: &'q BoundEvaluation,
        rows: &Rows,
        environment: &Environment,
    ) -> Result<Vec<Rc<[Datum]>>> {
        if evaluation.order.is_empty() {
            return Ok(rows.rows.clone());
        }
        let mut keyed = self.keyed(rows, 0, &evaluation.order, environment)?;
        keyed.sort_by(|(one, _), (two, _)| rows::compare_keys(one, two, &evaluation.order));
        let start = evaluation.start_at.iter().map(|value| self.scalar(value, environment));
        let start = start.collect::<Result<Vec<Datum>>>()?;
        for ((key, value), datum) in evaluation.order.iter().zip(&evaluation.start_at).zip(&start) {
            // The binder does not know the types of parameters.
            if !key.expression.ty.is_comparable(datum.ty()) {
                let kind = ProblemKind::WrongStart { key: key.expression.ty, found: datum.ty() };
                return Err(Halt::Problem(Problem::new(kind, value.place)));
            }
        }
        let order = &evaluation.order[..start.len()];
        let is_before = |keys: &[Datum]| rows::compare_keys(&keys[..start.len()], &start, order).is_lt();
        Ok(keyed.into_iter().filter(|(keys, _)| !is_before(keys)).map(|(_, row)| row).collect())
    }

    /// Clears the cached tables, and the sets and ranks that were computed from them.
    fn forget_tables(&self) {
        self.tables.borrow_mut().clear();
        self.sets.borrow_mut().clear();
        self.ranks.borrow_mut().clear();
    }

    fn warn(&self, warning: String) {
        let mut warnings = self.warnings.borrow_mut();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

fn not_supported(construct: &str, place: Place) -> Halt {
    Halt::Problem(Problem::new(ProblemKind::NotSupported { construct: construct.into() }, place))
}

fn replaceable(construct: &'static str, suggestion: &'static str, place: Place) -> Halt {
    Halt::Problem(Problem::new(ProblemKind::Replaceable { construct, suggestion }, place))
}

fn invalid_value(message: impl Into<Arc<str>>, place: Place) -> Halt {
    Halt::Value { message: message.into(), place }
}

/// Collects values. If rows are missing for a value, the other values are still evaluated, so that one round requests
/// the missing rows of all values.
fn collected<T>(values: impl Iterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let mut is_missing = false;
    for value in values {
        match value {
            Ok(value) => all.push(value),
            Err(Halt::Missing) => is_missing = true,
            Err(other) => return Err(other),
        }
    }
    if is_missing { Err(Halt::Missing) } else { Ok(all) }
}
