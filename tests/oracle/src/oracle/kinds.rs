//! Determines the kind as which a member's values are compared.
//!
//! In: dimensions, measures and expressions. Out: a [`Kind`].

use super::Evaluation;
use super::names::Named;
use crate::value::Value;
use crate::world::{Cell, ColumnType, Cube, DimensionKind, Expr, Function, MeasureKind, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
    Boolean,
    Time(Axis),
}

/// The axis on which times are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Instants, which are the same in all time zones.
    Instant,
    /// The local time of a wall clock.
    Local,
}

impl Axis {
    /// Returns a time on the axis.
    pub(crate) fn value(self, micros: i64) -> Value {
        match self {
            Axis::Instant => Value::Instant(micros),
            Axis::Local => Value::Local(micros),
        }
    }
}

pub(crate) fn of_dimension(evaluation: &Evaluation<'_>, cube: &str, name: &str) -> Kind {
    let Some(dimension) = evaluation.dimension(cube, name) else { return Kind::Text };
    match dimension.kind {
        DimensionKind::String => Kind::Text,
        DimensionKind::Number => Kind::Number,
        DimensionKind::Boolean => Kind::Boolean,
        DimensionKind::Time => {
            let of = evaluation.world.behind(cube);
            of.map_or(Kind::Time(Axis::Local), |of| of_expression(evaluation.world, of, &dimension.sql))
        }
    }
}

/// Returns the kind of a value. Only minimum and maximum keep the kind of their argument.
pub(crate) fn of_value(evaluation: &Evaluation<'_>, named: &Named) -> Kind {
    let Named::Measure { cube, name } = named else { return Kind::Number };
    let Some(of) = evaluation.world.behind(cube) else { return Kind::Number };
    match of.measure(name).map(|measure| &measure.kind) {
        Some(MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling(aggregate, _))
            if matches!(aggregate.function, Function::Min | Function::Max) =>
        {
            aggregate.argument.as_ref().map_or(Kind::Number, |argument| of_expression(evaluation.world, of, argument))
        }
        _ => Kind::Number,
    }
}

pub(crate) fn of_expression(world: &World, own: &Cube, expr: &Expr) -> Kind {
    match expr {
        Expr::Column { cube, column } => {
            let of = cube.as_deref().map_or(Some(own), |cube| world.behind(cube));
            let Some((of, ty)) = of.and_then(|of| Some((of, of.columns.get(*column)?.ty))) else { return Kind::Text };
            match ty {
                ColumnType::Text => Kind::Text,
                ColumnType::Small | ColumnType::Big | ColumnType::Decimal | ColumnType::Double => Kind::Number,
                ColumnType::Boolean => Kind::Boolean,
                ColumnType::Date => Kind::Time(Axis::Local),
                ColumnType::TimestampTz => Kind::Time(Axis::Instant),
                ColumnType::Timestamp if of.is_utc(*column) => Kind::Time(Axis::Instant),
                ColumnType::Timestamp => Kind::Time(Axis::Local),
            }
        }
        Expr::Member { cube, name } => {
            let of = cube.as_deref().map_or(Some(own), |cube| world.behind(cube));
            let dimension = of.and_then(|of| Some((of, of.dimension(name)?)));
            dimension.map_or(Kind::Text, |(of, dimension)| of_expression(world, of, &dimension.sql))
        }
        Expr::Literal(cell) => of_cell(cell),
        Expr::Coalesce(inner, _) => of_expression(world, own, inner),
        Expr::Case(_, then, _) => of_expression(world, own, then),
        Expr::Arithmetic(..) => Kind::Number,
        Expr::Compare(..) | Expr::IsNull(_) | Expr::And(..) | Expr::Or(..) | Expr::Not(_) => Kind::Boolean,
    }
}

fn of_cell(cell: &Cell) -> Kind {
    match cell {
        Cell::Bool(_) => Kind::Boolean,
        Cell::Int(_) | Cell::Cents(_) | Cell::Double(_) => Kind::Number,
        Cell::Day(_) | Cell::Micros(_) => Kind::Time(Axis::Local),
        Cell::Null | Cell::Text(_) => Kind::Text,
    }
}
