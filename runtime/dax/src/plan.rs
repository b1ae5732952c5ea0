//! Planning: bound tables that have the shape of a semantic query.
//!
//! In: an evaluation of a bound query, and the values of its parameters. Out: a [`SemanticPlan`]: the query, the result
//! columns, and the order and the first rows to take of the finished result. A table whose meaning differs from that of
//! a semantic query is refused with the name and the place of its construct. Absent on purpose: SQL.

mod condition;
mod measures;
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

pub(crate) use measures::{Aggregates, applies, counts, may_lack_partners};
pub(crate) use shape::{column_ref, value_ref};

/// A query that answers an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct SemanticPlan {
    /// The query, without a limit, because all of its rows are needed.
    pub query: SemanticQuery,
    pub columns: Vec<ResultColumn>,
    /// TOPN: the first rows, with all that tie for the last place.
    pub top: Option<Top>,
    pub order: Vec<OrderKey>,
}

/// A column of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// `Table[Column]` or `[Name]`
    pub name: String,
    pub ty: Type,
    /// The measure whose values these are.
    pub measure: Option<MeasureSource>,
    /// True for a count, whose value 0 the result shows as BLANK. The query itself returns 0.
    pub is_count: bool,
    /// The index of the query's column with its values: groups first, then values.
    pub source: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    pub rows: u64,
    pub order: Vec<OrderKey>,
}

/// A key of an order in which BLANK comes before every string, and where 0 stands among numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderKey {
    /// An index of [`SemanticPlan::columns`].
    pub column: usize,
    pub descending: bool,
}

/// The values of parameters, by their names.
pub type Parameters = HashMap<Arc<str>, Value>;

/// Plans an evaluation of a query that has no problems.
///
/// # Errors
/// The first construct that is not supported, or a parameter without a value.
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

    /// Plans an order whose keys are columns of the table.
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

/// Returns a condition over one row of columns as a filter of a semantic query, if it can have it.
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
    let row = condition::Row { context, columns: &sources };
    planner.condition(condition, &row, &mut condition::Compared::default())
}

fn not_supported(construct: &str, place: Place) -> Problem {
    Problem::new(ProblemKind::NotSupported { construct: construct.into() }, place)
}
