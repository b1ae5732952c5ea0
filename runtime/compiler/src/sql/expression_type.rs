//! Types of expressions that SQL defines in the same way for every warehouse.
//!
//! In: an expression and the types of its columns. Out: its type, or `Unknown`: for functions of one engine, for
//! operators that an engine defines for several types, and for expressions of an unknown type. If the warehouse can
//! report the types of expressions, its answer has priority (`probe`); SQLite reports only types of columns.

use sqlparser::ast::{
    BinaryOperator, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    TimezoneInfo, TypedString, UnaryOperator, Value,
};

use crate::types::LogicalType::{self, Boolean, Date, Decimal, Float, Integer, Text, Timestamp, TimestampTz, Unknown};

/// Returns the type of an expression. `column` returns the type of a name.
pub(super) fn expression_type(
    expr: &Expr,
    dialect: &str,
    column: &dyn Fn(&Ident) -> Option<LogicalType>,
) -> LogicalType {
    Typing { dialect, column }.of(expr)
}

struct Typing<'t> {
    /// The name of the dialect profile.
    dialect: &'t str,
    column: &'t dyn Fn(&Ident) -> Option<LogicalType>,
}

impl Typing<'_> {
    fn of(&self, expr: &Expr) -> LogicalType {
        match expr {
            Expr::Identifier(ident) => (self.column)(ident).unwrap_or(Unknown),
            Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => self.of(inner),
            Expr::Value(value) => of_literal(&value.value),
            Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => of_name(data_type),
            Expr::UnaryOp { op: UnaryOperator::Plus | UnaryOperator::Minus, expr }
            | Expr::Ceil { expr, .. }
            | Expr::Floor { expr, .. } => number(self.of(expr)),
            Expr::BinaryOp { left, op, right } => self.of_operator(self.of(left), op, self.of(right)),
            Expr::UnaryOp { op: UnaryOperator::Not, .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..)
            | Expr::InList { .. }
            | Expr::Between { .. }
            | Expr::Like { .. } => Boolean,
            Expr::Trim { expr, .. } | Expr::Substring { expr, .. } | Expr::Overlay { expr, .. } => {
                text_of(self.of(expr))
            }
            Expr::Position { .. } => Integer,
            Expr::Extract { .. } => Decimal,
            Expr::Case { conditions, else_result, .. } => {
                let results = conditions.iter().map(|when| &when.result);
                self.common(results.chain(else_result.as_deref()))
            }
            Expr::Function(function) => self.of_call(function),
            _ => Unknown,
        }
    }

    fn of_operator(&self, left: LogicalType, op: &BinaryOperator, right: LogicalType) -> LogicalType {
        use BinaryOperator as Op;
        match op {
            Op::Plus | Op::Minus | Op::Multiply | Op::Modulo => common(number(left), number(right)),
            // Some engines return an integer for two integers, others do not.
            Op::Divide => match common(number(left), number(right)) {
                Integer => Decimal,
                other => other,
            },
            // `||` is OR in MySQL, and joins lists or documents in other engines.
            Op::StringConcat if self.dialect != "mysql" && (left == Text || right == Text) => Text,
            Op::Eq | Op::NotEq | Op::Lt | Op::LtEq | Op::Gt | Op::GtEq | Op::And | Op::Or => Boolean,
            _ => Unknown,
        }
    }

    fn of_call(&self, function: &Function) -> LogicalType {
        let Some(name) = function.name.0.last().and_then(|part| part.as_ident()) else { return Unknown };
        let FunctionArguments::List(list) = &function.args else { return Unknown };
        let arguments = || {
            list.args.iter().filter_map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
                _ => None,
            })
        };
        let first = || arguments().next().map_or(Unknown, |expr| self.of(expr));
        match name.value.to_ascii_lowercase().as_str() {
            "lower" | "upper" | "concat" | "concat_ws" | "to_char" => Text,
            "trim" | "ltrim" | "rtrim" | "btrim" | "replace" | "lpad" | "rpad" | "substr" | "substring" | "left"
            | "right" => text_of(first()),
            "char_length" | "character_length" | "strpos" | "instr" => Integer,
            "abs" | "round" | "floor" | "ceil" | "ceiling" | "sign" => number(first()),
            "mod" => arguments().map(|expr| number(self.of(expr))).reduce(common).unwrap_or(Unknown),
            "coalesce" | "ifnull" | "nvl" | "greatest" | "least" => self.common(arguments()),
            "nullif" => first(),
            _ => Unknown,
        }
    }

    /// Returns the common type of values of which one becomes the result. Nulls are ignored, because null has every
    /// type.
    fn common<'e>(&self, values: impl Iterator<Item = &'e Expr>) -> LogicalType {
        let is_null = |expr: &&Expr| matches!(expr, Expr::Value(value) if value.value == Value::Null);
        values.filter(|value| !is_null(value)).map(|value| self.of(value)).reduce(common).unwrap_or(Unknown)
    }
}

/// Returns the type if it is numeric, else `Unknown`.
fn number(ty: LogicalType) -> LogicalType {
    if matches!(ty, Integer | Decimal | Float) { ty } else { Unknown }
}

/// Returns the type of a substring: bytes stay bytes, all other types become strings.
fn text_of(ty: LogicalType) -> LogicalType {
    match ty {
        Text | Integer | Decimal | Float | Boolean => Text,
        _ => Unknown,
    }
}

fn common(one: LogicalType, other: LogicalType) -> LogicalType {
    match (one, other) {
        (Unknown, _) | (_, Unknown) => Unknown,
        (Float, Integer | Decimal) | (Integer | Decimal, Float) => Float,
        (Decimal, Integer) | (Integer, Decimal) => Decimal,
        _ if one == other => one,
        _ => Unknown,
    }
}

fn of_literal(value: &Value) -> LogicalType {
    match value {
        Value::Number(digits, _) if digits.bytes().all(|b| b.is_ascii_digit()) => Integer,
        Value::Number(..) => Decimal,
        Value::SingleQuotedString(_) => Text,
        Value::Boolean(_) => Boolean,
        _ => Unknown,
    }
}

/// Returns the type that a name has in CAST and in typed literals.
fn of_name(name: &DataType) -> LogicalType {
    use DataType as Name;
    match name {
        Name::Character(_)
        | Name::Char(_)
        | Name::CharacterVarying(_)
        | Name::CharVarying(_)
        | Name::Varchar(_)
        | Name::Nvarchar(_)
        | Name::Text
        | Name::String(_) => Text,
        Name::TinyInt(_)
        | Name::SmallInt(_)
        | Name::MediumInt(_)
        | Name::Int(_)
        | Name::Integer(_)
        | Name::BigInt(_)
        | Name::HugeInt
        | Name::Int2(_)
        | Name::Int4(_)
        | Name::Int8(_)
        | Name::Int32
        | Name::Int64
        | Name::Signed
        | Name::SignedInteger
        | Name::Unsigned
        | Name::UnsignedInteger => Integer,
        Name::Numeric(scale) | Name::Decimal(scale) | Name::Dec(scale) => match scale {
            ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(_, 0) => Integer,
            _ => Decimal,
        },
        Name::Float(_)
        | Name::Float4
        | Name::Float8
        | Name::Float64
        | Name::Real
        | Name::Double(_)
        | Name::DoublePrecision => Float,
        Name::Bool | Name::Boolean => Boolean,
        Name::Date => Date,
        Name::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => TimestampTz,
        Name::Timestamp(..) | Name::Datetime(_) => Timestamp,
        _ => Unknown,
    }
}
