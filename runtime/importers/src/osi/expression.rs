//! Prints expressions of the model as SQL.
//!
//! In: snippets. Out: SQL. If an expression may name columns of several datasets, each column is qualified with its
//! dataset. Dimensions, measures and metrics are replaced by their expressions. The length of the result is limited.

use terrane_compiler::model::{Cube, CubeId, Measure, MeasureKind, Metric, Model};
use terrane_compiler::snippet::{Aggregate, AggregateFunction, Precision, Snippet, Spread, SqlPart};

use super::name_of;

/// The largest length of an expression.
const MAX_CHARACTERS: usize = 20_000;

/// The place of an expression in the document. It decides whether columns are qualified.
#[derive(Debug, Clone, Copy)]
pub(super) enum Place {
    /// A field of a dataset, in which the columns of that dataset are not qualified.
    Field,
    /// A metric, in which every column is qualified with its dataset.
    Metric,
}

/// A printer of expressions over the rows of one cube.
#[derive(Clone, Copy)]
pub(super) struct Printer<'m> {
    pub(super) model: &'m Model,
    pub(super) cube: &'m Cube,
    pub(super) place: Place,
}

impl<'m> Printer<'m> {
    /// Prints a measure of the cube, or returns `None` if the format cannot express it.
    pub(super) fn measure(self, measure: &'m Measure) -> Option<String> {
        match &measure.kind {
            MeasureKind::Aggregate(aggregate) => self.aggregate(aggregate),
            MeasureKind::Number(sql) => self.snippet(sql),
            MeasureKind::RunningTotal { .. } | MeasureKind::Rolling { .. } => None,
        }
    }

    /// Prints a metric, or returns `None` if it has filters or if the format cannot express one of its measures.
    pub(super) fn metric(self, metric: &'m Metric) -> Option<String> {
        if metric.filters.is_empty() { self.snippet(&metric.body) } else { None }
    }

    /// Prints an expression, or returns `None` if the format cannot express it or if it is too long.
    pub(super) fn snippet(self, sql: &'m Snippet) -> Option<String> {
        let mut text = String::new();
        for part in &sql.parts {
            text.push_str(&self.part(part)?);
            if text.len() > MAX_CHARACTERS {
                return None;
            }
        }
        Some(text.trim().to_owned())
    }

    fn part(self, part: &'m SqlPart) -> Option<String> {
        match part {
            SqlPart::Text(text) => Some(text.to_string()),
            SqlPart::Column { cube, name } => Some(match self.place {
                Place::Field if self.cube.id == *cube => name_of(name),
                Place::Field | Place::Metric => format!("{}.{}", self.model.cube(*cube).name, name_of(name)),
            }),
            SqlPart::Dimension(id) => self.operand(&self.model.dimension(*id).sql),
            SqlPart::Measure(id) => {
                let of_cube = Printer { cube: self.model.cube(id.cube), ..self };
                Some(format!("({})", of_cube.measure(self.model.measure(*id))?))
            }
            SqlPart::Metric(id) => Some(format!("({})", self.metric(self.model.metric(*id))?)),
            SqlPart::Aggregate(aggregate) => self.aggregate(aggregate),
            // Divides exactly, and returns null for a divisor of 0.
            SqlPart::Divide(left, right) => {
                Some(format!("1.0 * ({}) / NULLIF({}, 0)", self.snippet(left)?, self.snippet(right)?))
            }
            // Only policies contain values of the caller.
            SqlPart::User(_) => None,
        }
    }

    fn operand(self, sql: &'m Snippet) -> Option<String> {
        let text = self.snippet(sql)?;
        Some(if sql.is_atomic { text } else { format!("({text})") })
    }

    fn aggregate(self, aggregate: &'m Aggregate) -> Option<String> {
        let mut conditions = Vec::new();
        for filter in &aggregate.filters {
            conditions.push(format!("({})", self.snippet(filter)?));
        }
        let value = match &aggregate.argument {
            Some(argument) => self.snippet(argument)?,
            // A metric over rows must name the dataset whose rows it counts.
            None => self.counted(),
        };
        let value = match conditions.is_empty() {
            true => value,
            false => format!("CASE WHEN {} THEN {value} END", conditions.join(" AND ")),
        };
        let call = match aggregate.function {
            AggregateFunction::Count => format!("COUNT({value})"),
            AggregateFunction::CountDistinct => format!("COUNT(DISTINCT {value})"),
            AggregateFunction::Sum => format!("SUM({value})"),
            AggregateFunction::Avg => format!("AVG({value})"),
            AggregateFunction::Min => format!("MIN({value})"),
            AggregateFunction::Max => format!("MAX({value})"),
            AggregateFunction::StdDev(Spread::Population) => format!("STDDEV_POP({value})"),
            AggregateFunction::StdDev(Spread::Sample) => format!("STDDEV_SAMP({value})"),
            AggregateFunction::Variance(Spread::Population) => format!("VAR_POP({value})"),
            AggregateFunction::Variance(Spread::Sample) => format!("VAR_SAMP({value})"),
            AggregateFunction::Percentile(share, Precision::Exact) => {
                format!("PERCENTILE_CONT({share}) WITHIN GROUP (ORDER BY {value})")
            }
            // Standard SQL has no functions for the other aggregates.
            _ => return None,
        };
        (call.len() <= MAX_CHARACTERS).then_some(call)
    }

    /// Returns an expression that is not null for any row: the first column of the primary key, or 1.
    fn counted(self) -> String {
        let key = self.cube.primary_key.first().and_then(|index| self.cube.dimensions.get(*index as usize));
        let column = key.and_then(|key| column(&key.sql, self.cube.id));
        column.map_or_else(|| "1".to_owned(), |column| format!("{}.{column}", self.cube.name))
    }
}

/// Returns the column, if an expression is only a column.
pub(super) fn column(sql: &Snippet, of: CubeId) -> Option<String> {
    match sql.parts.as_slice() {
        [SqlPart::Column { cube, name }] if *cube == of => Some(name_of(name)),
        _ => None,
    }
}
