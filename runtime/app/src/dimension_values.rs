//! The values of a dimension, for clients that offer them as choices.
//!
//! In: a cube and one of its dimensions. Out: the query for its values, and the frequency of each value in the answer.
//! The query runs through the pipeline of all queries, so that policies and limits apply. Not here: the format in which
//! values are sent.
//!
//! [`lookup`] has the queries by which searches and questions find values of searchable dimensions, and [`lists`] the
//! lists of values that a search examines.

pub(crate) mod lists;
pub(crate) mod lookup;

use arrow::array::{Array as _, AsArray as _, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use terrane_compiler::Access;
use terrane_compiler::model::{AggregateFunction, Measure, MeasureKind};
use terrane_compiler::query::{Filter, MemberRef, OrderBy, QueryError, SemanticQuery};
use terrane_compiler::types::{Granularity, Operator, Value};

use crate::metadata;
use crate::query::Answer;

/// The largest number of values if the request names no limit.
pub const DEFAULT_LIMIT: u32 = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValuesOrder {
    /// The most frequent first, with the number of rows of each. If no measure counts rows, the order is `ByValue`.
    ByFrequency,
    ByValue,
}

/// A request for the values of a dimension.
#[derive(Debug, Clone, Copy)]
pub struct ValuesRequest<'r> {
    pub cube: &'r str,
    pub dimension: &'r str,
    /// If set, the periods of this granularity are returned instead of the values of a time dimension.
    pub granularity: Option<Granularity>,
    /// A string that the values contain, ignoring case.
    pub search: Option<&'r str>,
    pub order: ValuesOrder,
    /// The largest number of values that are returned.
    pub limit: u64,
}

impl ValuesRequest<'_> {
    /// Returns the query for the values. Its first column is the dimension. Its second column is the number of rows, if
    /// the caller may see a measure that counts rows.
    ///
    /// # Errors
    /// A name is invalid.
    pub fn query(&self, access: &Access<'_>) -> Result<SemanticQuery, QueryError> {
        let member = match self.granularity {
            Some(granularity) => self.member(&format!("{}.{}", self.dimension, granularity.as_str()))?,
            None => self.member(self.dimension)?,
        };
        let count = match self.order {
            ValuesOrder::ByFrequency => self.row_count(access)?,
            ValuesOrder::ByValue => None,
        };
        let search = self.search.filter(|text| !text.is_empty()).map(|text| Filter::Condition {
            member: member.clone(),
            operator: Operator::ContainsAnyCase,
            values: vec![Value::Text(text.into())],
        });
        // The default order continues with the values. An explicit order would be refused for a masked dimension.
        let frequent = count.iter().map(|count| OrderBy { member: count.clone(), descending: true });
        Ok(SemanticQuery {
            order: frequent.collect(),
            values: count.into_iter().collect(),
            dimensions: vec![member],
            filters: search.into_iter().collect(),
            limit: Some(self.limit),
            skip_total: true,
            ..SemanticQuery::default()
        })
    }

    /// Returns the measure that counts the rows of the cube, if the caller may see one.
    fn row_count(&self, access: &Access<'_>) -> Result<Option<MemberRef>, QueryError> {
        let Some(cube) = metadata::cube(access, self.cube) else { return Ok(None) };
        let count = metadata::measures(access, cube).find(|measure| counts_rows(measure));
        count.map(|measure| self.member(&measure.name)).transpose()
    }

    fn member(&self, name: &str) -> Result<MemberRef, QueryError> {
        format!("{}.{name}", self.cube).parse()
    }
}

/// Returns whether a measure counts the rows of its cube.
pub(crate) fn counts_rows(measure: &Measure) -> bool {
    matches!(&measure.kind, MeasureKind::Aggregate(aggregate)
        if aggregate.function == AggregateFunction::Count
            && aggregate.argument.is_none()
            && aggregate.filters.is_empty())
}

/// Returns the number of rows of each value of a batch; `None` if the query has no such column.
pub fn row_counts(answer: &Answer, batch: &RecordBatch) -> Option<Vec<Option<i64>>> {
    answer.columns.get(1)?;
    let counts = cast(batch.columns().get(1)?, &DataType::Int64).ok()?;
    let counts = counts.as_primitive::<Int64Type>();
    Some((0..counts.len()).map(|row| counts.is_valid(row).then(|| counts.value(row))).collect())
}
