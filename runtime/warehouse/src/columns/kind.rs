//! The kinds of cells in a column, and the types that a query expects.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use terrane_app::ports::warehouse::Statement;
use terrane_compiler::model::DimensionType;

/// The kind of cells that a database sends in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Boolean,
    Integer,
    Unsigned,
    Single,
    Double,
    Decimal,
    Text,
    Binary,
    Date,
    Timestamp,
    Instant,
    Time,
    Interval,
    /// Each cell has its own type.
    Dynamic,
}

/// The type that a query expects of a column's values.
pub(crate) type Meaning = DimensionType;

/// Returns the expected types of a statement's columns. The list is empty if the statement does not declare them.
pub(crate) fn meanings(statement: Statement<'_>) -> Vec<Meaning> {
    statement.columns.iter().map(|column| column.ty).collect()
}

impl Kind {
    #[cfg(test)]
    pub(super) const ALL: [Kind; 14] = [
        Kind::Boolean,
        Kind::Integer,
        Kind::Unsigned,
        Kind::Single,
        Kind::Double,
        Kind::Decimal,
        Kind::Text,
        Kind::Binary,
        Kind::Date,
        Kind::Timestamp,
        Kind::Instant,
        Kind::Time,
        Kind::Interval,
        Kind::Dynamic,
    ];

    /// Returns the kind in which cells are read if the query expects a type. Engines without booleans send 0 and 1.
    /// Engines without dates send text. Text that is compared byte by byte may arrive as bytes.
    pub(super) fn meant_as(self, meaning: Option<Meaning>) -> Kind {
        match (self, meaning) {
            (Kind::Integer | Kind::Unsigned, Some(DimensionType::Boolean)) => Kind::Boolean,
            (Kind::Text, Some(DimensionType::Time)) => Kind::Dynamic,
            (Kind::Binary, Some(DimensionType::String)) => Kind::Text,
            (kind, _) => kind,
        }
    }

    /// Returns the Arrow type. For [`Kind::Decimal`] and [`Kind::Dynamic`], the type is nominal.
    pub(super) fn data_type(self) -> DataType {
        match self {
            Kind::Boolean => DataType::Boolean,
            Kind::Integer => DataType::Int64,
            Kind::Unsigned => DataType::UInt64,
            Kind::Single => DataType::Float32,
            Kind::Double => DataType::Float64,
            // The nominal scale is not 0, because the values may have a fraction.
            Kind::Decimal => DataType::Decimal128(38, 9),
            Kind::Text => DataType::Utf8,
            Kind::Binary => DataType::Binary,
            Kind::Date => DataType::Date32,
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Kind::Time => DataType::Time64(TimeUnit::Microsecond),
            Kind::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
            Kind::Dynamic => DataType::Null,
        }
    }
}
