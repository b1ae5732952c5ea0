//! Types of DAX values, and the types of a model's members.
//!
//! In: the model's types. Out: [`Type`]. BLANK belongs to every type.

use std::fmt;

use terrane_compiler::model::{Aggregate, AggregateFunction, Dimension, DimensionType, MeasureKind};
use terrane_compiler::types::LogicalType;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    Text,
    Integer,
    /// An exact decimal number.
    Decimal,
    Double,
    Boolean,
    DateTime,
    /// The type of an expression that is always BLANK.
    Blank,
    /// A type that may differ from value to value, such as the type of a parameter.
    Variant,
}

impl Type {
    /// Returns the name of the type in the metadata of results.
    pub fn as_str(self) -> &'static str {
        match self {
            Type::Text => "String",
            Type::Integer => "Integer",
            Type::Decimal => "Decimal",
            Type::Double => "Double",
            Type::Boolean => "Boolean",
            Type::DateTime => "DateTime",
            Type::Blank | Type::Variant => "Variant",
        }
    }

    pub fn is_number(self) -> bool {
        matches!(self, Type::Integer | Type::Decimal | Type::Double)
    }

    /// Returns whether the type is known only together with the value, so that the binder cannot check it.
    pub fn is_open(self) -> bool {
        matches!(self, Type::Blank | Type::Variant)
    }

    /// Returns the type of a column that contains values of both types.
    #[must_use]
    pub fn union(self, other: Type) -> Type {
        match (self, other) {
            (one, two) if one == two => one,
            (Type::Blank, other) | (other, Type::Blank) => other,
            (one, two) if one.is_number() && two.is_number() => one.wider(two),
            _ => Type::Variant,
        }
    }

    /// Returns the wider of two numeric types. Dates and Booleans count as numeric.
    #[must_use]
    pub(crate) fn wider(self, other: Type) -> Type {
        match (self, other) {
            (Type::Integer | Type::Boolean | Type::Blank, Type::Integer | Type::Boolean | Type::Blank) => Type::Integer,
            (Type::Integer | Type::Boolean | Type::Blank | Type::Decimal, Type::Decimal)
            | (Type::Decimal, Type::Integer | Type::Boolean | Type::Blank) => Type::Decimal,
            _ => Type::Double,
        }
    }

    /// Returns whether `=` and `<` can compare values of the two types.
    pub(crate) fn is_comparable(self, other: Type) -> bool {
        let class = |ty: Type| match ty {
            Type::Text => 0,
            Type::Boolean => 1,
            // Dates are numbers of days.
            _ => 2,
        };
        self.is_open() || other.is_open() || class(self) == class(other)
    }

    pub fn of_dimension(dimension: &Dimension) -> Type {
        match dimension.ty {
            DimensionType::String | DimensionType::Geo => Type::Text,
            DimensionType::Boolean => Type::Boolean,
            DimensionType::Time => Type::DateTime,
            DimensionType::Number => Type::of_number(dimension.column_type),
        }
    }

    fn of_number(ty: LogicalType) -> Type {
        match ty {
            LogicalType::Integer => Type::Integer,
            LogicalType::Decimal => Type::Decimal,
            _ => Type::Double,
        }
    }

    pub fn of_measure(kind: &MeasureKind) -> Type {
        match kind {
            MeasureKind::Number(_) => Type::Double,
            MeasureKind::Aggregate(aggregate)
            | MeasureKind::RunningTotal { aggregate, .. }
            | MeasureKind::Rolling { aggregate, .. } => Type::of_aggregate(aggregate),
        }
    }

    fn of_aggregate(aggregate: &Aggregate) -> Type {
        match aggregate.function {
            AggregateFunction::Count | AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox => {
                Type::Integer
            }
            AggregateFunction::Avg
            | AggregateFunction::Percentile(..)
            | AggregateFunction::StdDev(_)
            | AggregateFunction::Variance(_) => Type::Double,
            AggregateFunction::Sum => Type::of_number(aggregate.argument_type),
            AggregateFunction::Min | AggregateFunction::Max => match aggregate.argument_type {
                LogicalType::Text => Type::Text,
                LogicalType::Boolean => Type::Boolean,
                LogicalType::Date | LogicalType::Timestamp | LogicalType::TimestampTz => Type::DateTime,
                LogicalType::Unknown => Type::Variant,
                ty => Type::of_number(ty),
            },
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Text => "a string",
            Type::Integer => "an integer",
            Type::Decimal | Type::Double => "a number",
            Type::Boolean => "TRUE or FALSE",
            Type::DateTime => "a date",
            Type::Blank => "BLANK",
            Type::Variant => "a value",
        })
    }
}
