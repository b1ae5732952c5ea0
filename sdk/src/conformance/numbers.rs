//! Cases for arithmetic and casts.

use super::writer::{x, y};
use super::{Expected, Suite};
use crate::LogicalType;
use crate::dialect::Op;

pub(super) fn cases(suite: &mut Suite<'_>) {
    arithmetic(suite);
    division(suite);
    casts(suite);
}

fn arithmetic(suite: &mut Suite<'_>) {
    suite.group = "arithmetic";
    let w = suite.writer;
    let (seven, minus_two) = (w.integer(7), w.integer(-2));
    for (op, result) in [(Op::Add, 5), (Op::Sub, 9), (Op::Mul, -14)] {
        let columns = [seven.clone(), minus_two.clone()];
        suite.of_columns(format!("{op:?} of integers"), &columns, w.op(op, &[x(), y()]), Expected::number(result));
    }
    let decimals = [w.decimal("0.1"), w.decimal("0.2")];
    suite.of_columns("add of decimals", &decimals, w.op(Op::Add, &[x(), y()]), Expected::number("0.3"));
    let doubles = [w.float(1.5), w.float(0.25)];
    suite.of_columns("mul of doubles", &doubles, w.op(Op::Mul, &[x(), y()]), Expected::Float(0.375));
    let negated = w.op(Op::Negate, &[x()]);
    suite.of_columns("negate", std::slice::from_ref(&minus_two), negated.clone(), Expected::number(2));
    let twice = negated.and_then(|negated| w.op(Op::Negate, &[negated]));
    suite.of_columns("negate twice is not a comment", std::slice::from_ref(&minus_two), twice, Expected::number(-2));
    let rest = w.op(Op::Modulo, &[x(), y()]);
    suite.of_columns("modulo", &[seven.clone(), w.integer(4)], rest, Expected::number(3));
    let grouped = w.op(Op::Sub, &[x(), y()]).and_then(|difference| w.op(Op::Sub, &[x(), difference]));
    suite.of_columns("a - (a - b)", &[seven.clone(), minus_two.clone()], grouped, Expected::number(-2));
    let product = w.op(Op::Add, &[x(), y()]).and_then(|sum| w.op(Op::Mul, &[sum, x()]));
    suite.of_columns("(a + b) * a", &[seven.clone(), minus_two], product, Expected::number(35));
    let with_null = [seven, w.null(LogicalType::Integer)];
    suite.of_columns("add null", &with_null, w.op(Op::Add, &[x(), y()]), Expected::Null);
}

fn division(suite: &mut Suite<'_>) {
    suite.group = "division";
    let w = suite.writer;
    let pairs = [
        ("7 / 2", w.integer(7), w.integer(2), Expected::Float(3.5)),
        ("-1 / 3", w.integer(-1), w.integer(3), Expected::Float(-1.0 / 3.0)),
        ("1 / 0", w.integer(1), w.integer(0), Expected::Null),
        ("0 / 0", w.integer(0), w.integer(0), Expected::Null),
        ("1.0 / 0.0 of doubles", w.float(1.0), w.float(0.0), Expected::Null),
        ("1 / 3 of decimals", w.decimal("1"), w.decimal("3"), Expected::Float(1.0 / 3.0)),
        (
            "a large decimal by a small",
            w.decimal("123456789012345.5"),
            w.decimal("0.001"),
            Expected::Float(123_456_789_012_345_500.0),
        ),
        ("1.5 / 0 of decimals", w.decimal("1.5"), w.decimal("0"), Expected::Null),
        ("decimal by integer", w.decimal("1"), w.integer(8), Expected::Float(0.125)),
        ("1 / null", w.integer(1), w.null(LogicalType::Integer), Expected::Null),
    ];
    for (name, a, b, expected) in pairs {
        suite.of_columns(name, &[a, b], w.op(Op::Div, &[x(), y()]), expected);
    }
    let mean = w.op_for(Op::Sum, Some(LogicalType::Integer), &[x()]).zip(w.op(Op::Count, &[]));
    let mean = mean.and_then(|(sum, count)| w.op(Op::Div, &[sum, count]));
    suite.of_columns("sum / count", &[w.integer(5)], mean, Expected::Float(5.0));
    let chain = w.op(Op::Div, &[x(), y()]).and_then(|first| w.op(Op::Div, &[first, y()]));
    suite.of_columns("a / b / b", &[w.integer(1), w.integer(4)], chain, Expected::Float(0.0625));
}

fn casts(suite: &mut Suite<'_>) {
    suite.group = "casts";
    let w = suite.writer;
    let values = [
        ("integer to text", w.integer(-42), LogicalType::Text, Expected::text("-42")),
        ("text to integer", w.text("-42"), LogicalType::Integer, Expected::number(-42)),
        ("integer to double", w.integer(3), LogicalType::Float, Expected::Float(3.0)),
        ("text to double", w.text("1.5"), LogicalType::Float, Expected::Float(1.5)),
        (
            "text to decimal",
            w.text("12345678901234567.125"),
            LogicalType::Decimal,
            Expected::number("12345678901234567.125"),
        ),
        ("integer to decimal", w.integer(7), LogicalType::Decimal, Expected::number(7)),
        ("text to date", w.text("2024-02-29"), LogicalType::Date, Expected::Time("2024-02-29")),
        ("time to date", w.timestamp("2024-02-29 23:59:59"), LogicalType::Date, Expected::Time("2024-02-29")),
        ("date to time", w.date("2024-02-29"), LogicalType::Timestamp, Expected::Time("2024-02-29 00:00:00")),
        ("text to time", w.text("2024-02-29 01:02:03"), LogicalType::Timestamp, Expected::Time("2024-02-29 01:02:03")),
        ("true", w.boolean(true), LogicalType::Boolean, Expected::Boolean(true)),
    ];
    for (name, value, ty, expected) in values {
        suite.of_columns(name, &[value], Some(w.cast(x(), ty)), expected);
    }
    use LogicalType::{Boolean, Date, Decimal, Float, Integer, Text, Timestamp, TimestampTz};
    for ty in [Text, Integer, Decimal, Float, Boolean, Date, Timestamp, TimestampTz] {
        suite.value(format!("null as {ty:?}"), Some(w.null(ty)), Expected::Null);
    }
}
