//! The form in which the times of a result column are written.
//!
//! In: a column of the model, or the expression of a result column. Out: [`TimeForm`]. A column of times has the form
//! that a semantic query gives it. Computed times are times without a zone.

use terrane_compiler::model::{AggregateFunction, DimensionId, MeasureId, MeasureKind, SqlPart};
use terrane_compiler::types::{DimensionType, LogicalType, TimeKind};

use super::Evaluator;
use crate::bound::{MeasureSource, Scalar, ScalarKind};
use crate::functions::{Aggregation, Operation};

/// The form of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeForm {
    /// A date without a time of day.
    Date,
    /// An instant, as the local time of the query's zone.
    Instant,
    /// A time without a zone.
    WallClock,
}

impl Evaluator<'_> {
    pub(super) fn time_form(&self, id: DimensionId) -> TimeForm {
        let dimension = self.model.dimension(id);
        match dimension.time {
            _ if dimension.column_type == LogicalType::Date => TimeForm::Date,
            TimeKind::Utc if dimension.ty == DimensionType::Time => TimeForm::Instant,
            _ => TimeForm::WallClock,
        }
    }

    /// Returns the form of an expression's values. Only a value of a column has the form of this column.
    pub(super) fn time_form_of(&self, scalar: &Scalar) -> TimeForm {
        match &scalar.kind {
            ScalarKind::Aggregate { aggregation: Aggregation::Min | Aggregation::Max, column } => {
                self.time_form(*column)
            }
            ScalarKind::Iterate(iteration)
                if matches!(iteration.function.operation, Operation::Iterate(Aggregation::Min | Aggregation::Max)) =>
            {
                match iteration.expression.kind {
                    ScalarKind::Column { context, column } if context == iteration.context => {
                        let of = iteration.table.columns.get(column as usize);
                        of.and_then(|of| of.lineage).map_or(TimeForm::WallClock, |id| self.time_form(id))
                    }
                    _ => TimeForm::WallClock,
                }
            }
            ScalarKind::OfColumn { function, column, alternate: None }
                if function.operation == Operation::SelectedValue =>
            {
                self.time_form(*column)
            }
            ScalarKind::SingleValue(table) => match &table.columns[..] {
                [column] => column.lineage.map_or(TimeForm::WallClock, |id| self.time_form(id)),
                _ => TimeForm::WallClock,
            },
            ScalarKind::Calculate { expression, .. } | ScalarKind::Block { result: expression, .. } => {
                self.time_form_of(expression)
            }
            ScalarKind::Measure(call) => match call.source {
                MeasureSource::Query(id) => stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                    self.time_form_of(&self.query.measures[id.0 as usize].expression)
                }),
                MeasureSource::Model(id) => self.time_form_of_measure(id),
                MeasureSource::Metric(_) => TimeForm::WallClock,
            },
            _ => TimeForm::WallClock,
        }
    }

    fn time_form_of_measure(&self, id: MeasureId) -> TimeForm {
        let cube = self.model.cube(id.cube);
        let MeasureKind::Aggregate(aggregate) = &self.model.measure(id).kind else { return TimeForm::WallClock };
        if !matches!(aggregate.function, AggregateFunction::Min | AggregateFunction::Max) {
            return TimeForm::WallClock;
        }
        let is_date = aggregate.argument_type == LogicalType::Date
            || aggregate.argument.as_ref().is_some_and(|argument| self.is_of_dates(&argument.parts));
        match aggregate.argument_type {
            _ if is_date => TimeForm::Date,
            LogicalType::TimestampTz | LogicalType::Timestamp if cube.time_kind_of(aggregate) == TimeKind::Utc => {
                TimeForm::Instant
            }
            _ => TimeForm::WallClock,
        }
    }

    /// Returns whether the argument of a measure is a column of dates.
    fn is_of_dates(&self, argument: &[SqlPart]) -> bool {
        match argument {
            [SqlPart::Dimension(of)] => self.time_form(*of) == TimeForm::Date,
            [SqlPart::Column { cube, .. }] => {
                let mut dimensions = self.model.cube(*cube).dimensions.iter();
                dimensions.any(|one| one.sql.parts[..] == *argument && one.column_type == LogicalType::Date)
            }
            _ => false,
        }
    }
}
