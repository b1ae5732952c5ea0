//! Planning: turns bound tables into semantic queries.
//!
//! In: an evaluation of a bound query, and the values of its parameters. Out: a [`SemanticPlan`] with the query, the
//! result columns, and the TOPN and the order that are applied to the finished result. If a semantic query would give a
//! table a different meaning, the table is refused with the name and the place of the construct. Not here: SQL.

mod condition;
mod measures;
mod row;
mod shape;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::model::{DimensionId, Model};
use terrane_compiler::query::{Filter, SemanticQuery};
use terrane_compiler::types::Value;

use crate::bound::{BoundEvaluation, BoundOrder, BoundQuery, MeasureSource, Scalar, ScalarKind};
use crate::place::Place;
use crate::problem::{Problem, ProblemKind};
use crate::types::Type;

pub(crate) use measures::{Aggregates, applies, calendar_of, counts, is_on_one_side, may_lack_partners};
pub(crate) use row::{ModelRow, OfRow, has_numbers, row_condition, row_value, row_value_size, row_value_where};
pub(crate) use shape::{column_ref, value_ref};

/// The query that answers an evaluation, and the steps that turn its rows into the result.
#[derive(Debug, Clone, PartialEq)]
pub struct SemanticPlan {
    /// The query. It has no limit, because TOPN and the order need all of its rows.
    pub query: SemanticQuery,
    pub columns: Vec<ResultColumn>,
    /// The rows of TOPN: the first rows, including all rows that tie with the last of them.
    pub top: Option<Top>,
    pub order: Vec<OrderKey>,
}

/// A column of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// `Table[Column]` or `[Name]`
    pub name: String,
    pub ty: Type,
    /// The measure from which the values come.
    pub measure: Option<MeasureSource>,
    /// True for a count. The query returns 0 for a count of no rows, and the result shows BLANK.
    pub is_count: bool,
    /// The index of the query's column from which the values come. The query's groups precede its values.
    pub source: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    pub rows: u64,
    pub order: Vec<OrderKey>,
}

/// A sort key. BLANK sorts before every string, and among numbers it sorts like 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderKey {
    /// An index of [`SemanticPlan::columns`].
    pub column: usize,
    pub descending: bool,
}

/// The values of parameters, by name.
pub type Parameters = HashMap<Arc<str>, Value>;

/// Plans an evaluation of a query without problems.
///
/// # Errors
/// A construct is not supported, or a parameter has no value. The first problem is returned.
pub fn plan(
    query: &BoundQuery,
    evaluation: &BoundEvaluation,
    access: &Access<'_>,
    parameters: &Parameters,
) -> Result<SemanticPlan, Problem> {
    let planner = Planner { query, model: access.model(), parameters };
    planner.evaluation(evaluation)
}

struct Planner<'q> {
    query: &'q BoundQuery,
    model: &'q Model,
    parameters: &'q Parameters,
}

impl Planner<'_> {
    fn evaluation(&self, evaluation: &BoundEvaluation) -> Result<SemanticPlan, Problem> {
        if let Some(first) = evaluation.start_at.first() {
            return Err(not_supported("START AT", first.place));
        }
        let shape = self.table(&evaluation.table, &shape::Context::default())?;
        let order = self.order(&evaluation.order, 0, "ORDER BY an expression")?;
        shape.finish(self.model, order)
    }

    /// Plans an order, whose keys must be columns of the table.
    fn order(&self, order: &[BoundOrder], context: u32, construct: &str) -> Result<Vec<OrderKey>, Problem> {
        let key = |key: &BoundOrder| match key.expression.kind {
            ScalarKind::Column { context: of, column } if of == context => {
                Ok(OrderKey { column: column as usize, descending: key.descending })
            }
            _ => Err(not_supported(construct, key.expression.place)),
        };
        order.iter().map(key).collect()
    }
}

/// Converts a condition over one row of columns to a filter of a semantic query. Fails if a semantic query cannot
/// express it.
pub(crate) fn condition_filter(
    query: &BoundQuery,
    model: &Model,
    parameters: &Parameters,
    condition: &Scalar,
    context: u32,
    columns: &[DimensionId],
) -> Result<Filter, Problem> {
    let planner = Planner { query, model, parameters };
    let sources: Vec<Option<shape::Source>> = columns.iter().map(|id| Some(shape::Source::Group(*id))).collect();
    let row = condition::Row { context, columns: &sources, has_related: false };
    planner.condition(condition, &row, &mut condition::Compared::default())
}

fn not_supported(construct: &str, place: Place) -> Problem {
    Problem::new(ProblemKind::NotSupported { construct: construct.into() }, place)
}
