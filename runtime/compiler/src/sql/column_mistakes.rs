//! Columns whose type in the warehouse does not fit their dimension or measure, or the column that a join compares
//! them with.
//!
//! In: a model with its column types, and the types that joins compare. Out: warnings, since other members can be
//! served. Unknown types are not checked. A type is also not checked if a fitting type has the same name in the
//! dialect: in such a dialect, a string may be a time, and an integer a boolean. Any type fits a string dimension. Not
//! here: asking the warehouse (app).

use super::dialect_profile::DialectProfile;
use super::join_comparison::{comparisons, dimension_of};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::ids::JoinOperandId;
use crate::model::{
    Aggregate, AggregateFunction, ColumnTypes, Cube, Dimension, DimensionType, Join, Measure, MeasureKind, Model,
    Snippet, SqlPart,
};
use crate::snippet::grammar;
use crate::types::LogicalType;

/// The code of a column whose type does not fit its member.
pub const COLUMN_MISMATCH: Code = Code::ColumnMismatch;

const NUMBERS: &[LogicalType] = &[LogicalType::Integer, LogicalType::Decimal, LogicalType::Float];
const TIMES: &[LogicalType] = &[LogicalType::Date, LogicalType::Timestamp, LogicalType::TimestampTz];
/// Integers are booleans in engines whose comparisons return 0 or 1.
const BOOLEANS: &[LogicalType] = &[LogicalType::Boolean, LogicalType::Integer];

/// Returns a warning for every column whose type does not fit. Each place is reported once, although cubes that extend
/// another cube share its members.
pub fn column_mistakes(model: &Model, types: &ColumnTypes, profile: &DialectProfile) -> Vec<Diagnostic> {
    let mut mistakes: Vec<Diagnostic> = Vec::new();
    for cube in model.cubes.iter().filter(|cube| cube.alias_of.is_none()) {
        let dimensions = cube.dimensions.iter().filter_map(|dimension| of_dimension(cube, dimension, profile));
        let measures = cube.measures.iter().filter_map(|measure| of_measure(cube, measure, profile));
        let joins = (0u32..).zip(&cube.joins).filter_map(|join| of_join(model, cube, join, types, profile));
        for diagnostic in dimensions.chain(measures).chain(joins) {
            if diagnostic.span.is_none() || mistakes.iter().all(|other| other.span != diagnostic.span) {
                mistakes.push(diagnostic);
            }
        }
    }
    mistakes
}

/// A dimension whose column has a type that does not fit, in words for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeMismatch {
    /// The declared type, such as `a number`.
    pub declared: &'static str,
    /// The type of the column, such as `a string`.
    pub found: &'static str,
    /// The type of a dimension over the column.
    natural: &'static str,
}

/// Returns the types of a dimension whose column's type does not fit; `None` if it fits or is unknown.
pub fn dimension_mismatch(dimension: &Dimension, profile: &DialectProfile) -> Option<TypeMismatch> {
    let (fitting, declared) = match dimension.ty {
        DimensionType::Number => (NUMBERS, "a number"),
        DimensionType::Time => (TIMES, "a time"),
        DimensionType::Boolean => (BOOLEANS, "true or false"),
        DimensionType::String | DimensionType::Geo => return None,
    };
    let (found, natural) = mismatch(dimension.column_type, fitting, profile)?;
    Some(TypeMismatch { declared, found, natural })
}

fn of_dimension(cube: &Cube, dimension: &Dimension, profile: &DialectProfile) -> Option<Diagnostic> {
    let TypeMismatch { declared: wanted, found, natural } = dimension_mismatch(dimension, profile)?;
    let message = format!("dimension `{}.{}` is {wanted}, but its column is not", cube.name, dimension.name);
    let hint = format!("Write `type: {natural}`, or an `sql` that converts it to {wanted}.");
    Some(warning(message, format!("it is {found}"), hint, dimension.sql_span.as_ref().or(dimension.span.as_ref())))
}

fn of_measure(cube: &Cube, measure: &Measure, profile: &DialectProfile) -> Option<Diagnostic> {
    let (MeasureKind::Aggregate(aggregate)
    | MeasureKind::RunningTotal { aggregate, .. }
    | MeasureKind::Rolling { aggregate, .. }) = &measure.kind
    else {
        return None;
    };
    let verb = verb_of(aggregate)?;
    let (found, natural) = mismatch(aggregate.argument_type, NUMBERS, profile)?;
    let message = format!("measure `{}.{}` {verb} values that are not numbers", cube.name, measure.name);
    let hint = match natural {
        "boolean" => "To count the rows in which it is true, write `type: count` and the expression in `filters`.",
        "time" => "Write `type: min` or `type: max`, or an `sql` that converts it to a number.",
        _ => "Write an `sql` that converts it to a number, or `type: count_distinct`.",
    };
    Some(warning(
        message,
        format!("it is {found}"),
        hint.to_owned(),
        measure.sql_span.as_ref().or(measure.span.as_ref()),
    ))
}

/// Warns of a join whose condition compares a string with a different type: some engines refuse it, others convert each
/// value.
fn of_join(
    model: &Model,
    cube: &Cube,
    (index, join): (u32, &Join),
    types: &ColumnTypes,
    profile: &DialectProfile,
) -> Option<Diagnostic> {
    let comparisons = comparisons(&join.on, &*grammar(&profile.name));
    let reported = |operand| types.joined.get(&JoinOperandId { cube: cube.id, join: index, operand }).copied();
    let shown = |part: &SqlPart| {
        let dimension = model.dimension(dimension_of(model, part)?);
        Some(dimension.converted_from.unwrap_or(dimension.column_type))
    };
    let type_of = |operand| comparisons.type_of(operand, profile, reported, shown);
    let mismatch = (0u32..).step_by(2).zip(&comparisons.pairs).find_map(|(at, [left, right])| {
        let (left_type, right_type) = (type_of(at), type_of(at + 1));
        if left_type != LogicalType::Text && right_type != LogicalType::Text {
            return None;
        }
        let (found, _) = mismatch(left_type, &[right_type], profile)?;
        let (other, _) = mismatch(right_type, &[left_type], profile)?;
        Some((source_text(model, &left.sql), found, source_text(model, &right.sql), other))
    });
    let (left, found, right, other) = mismatch?;
    let target = &model.cube(join.target).name;
    let message = format!("join of `{}` to `{target}` compares values of different types", cube.name);
    let types = format!("`{left}` is {found}, `{right}` is {other}");
    let hint = "Convert one side with CAST, or join on columns of one type.".to_owned();
    Some(warning(message, types, hint, join.span.as_ref()))
}

/// Returns an operand with its columns as `cube.column`.
fn source_text(model: &Model, sql: &Snippet) -> String {
    let text = |part: &SqlPart| match part {
        SqlPart::Dimension(id) => format!("{}.{}", model.cube(id.cube).name, model.dimension(*id).name),
        SqlPart::Column { cube, name } => format!("{}.{}", model.cube(*cube).name, name.text),
        SqlPart::Text(text) => text.to_string(),
        _ => "…".to_owned(),
    };
    sql.parts.iter().map(text).collect()
}

/// Returns the verb of an aggregation that needs numbers, for messages.
fn verb_of(aggregate: &Aggregate) -> Option<&'static str> {
    match aggregate.function {
        AggregateFunction::Sum => Some("adds up"),
        AggregateFunction::Avg => Some("averages"),
        AggregateFunction::Percentile(..) => Some("takes a percentile of"),
        AggregateFunction::StdDev(_) | AggregateFunction::Variance(_) => Some("computes the spread of"),
        _ => None,
    }
}

/// Returns the column's type in words, and the type of a dimension over the column. `None` if the column's type may be
/// one of `fitting`, or is unknown, geographic or binary.
fn mismatch(
    found: LogicalType,
    fitting: &[LogicalType],
    profile: &DialectProfile,
) -> Option<(&'static str, &'static str)> {
    let is_alike = |ty: &LogicalType| *ty == found || profile.type_name(*ty) == profile.type_name(found);
    if fitting.iter().any(is_alike) {
        return None;
    }
    match found {
        LogicalType::Text => Some(("a string", "string")),
        LogicalType::Integer | LogicalType::Decimal | LogicalType::Float => Some(("a number", "number")),
        LogicalType::Boolean => Some(("true or false", "boolean")),
        LogicalType::Date => Some(("a date", "time")),
        LogicalType::Timestamp | LogicalType::TimestampTz => Some(("a timestamp", "time")),
        LogicalType::Geo | LogicalType::Binary | LogicalType::Unknown => None,
    }
}

fn warning(message: String, types: String, hint: String, span: Option<&Span>) -> Diagnostic {
    let diagnostic = Diagnostic::warning(COLUMN_MISMATCH, message).detail(types).hint(hint);
    match span {
        Some(span) => diagnostic.at(span.clone()),
        None => diagnostic,
    }
}
