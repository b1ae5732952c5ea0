//! Cases for aggregates over many values, nulls, no rows, and values whose sum exceeds the column's type.

use super::writer::{Expr, x, y};
use super::{Expected, Suite};
use crate::LogicalType::{self, Date, Decimal, Float, Integer, Text, Timestamp};
use crate::dialect::{Feature, Op};

pub(super) fn cases(suite: &mut Suite<'_>) {
    let w = suite.writer;
    suite.group = "aggregates";
    let integers = [w.integer(1), w.integer(2), w.null(Integer), w.integer(2)];
    for (op, expected) in [
        (Op::CountDistinct, Expected::number(2)),
        (Op::ApproxDistinct, Expected::number(2)),
        (Op::Sum, Expected::number(5)),
        (Op::Avg, Expected::Float(5.0 / 3.0)),
        (Op::Min, Expected::number(1)),
        (Op::Max, Expected::number(2)),
        (Op::Count, Expected::number(3)),
        (Op::Stddev, Expected::Float(0.471_404_520_791_031_7)),
    ] {
        suite.aggregate(format!("{op:?}"), op, Integer, &integers, expected);
    }
    let rows =
        w.op(Op::Count, &[]).map(|count| format!("SELECT {} AS r FROM {}", count.sql, one_column(suite, &integers)));
    if let Some(sql) = rows {
        suite.push("count of rows", sql, vec![vec![Expected::number(4)]]);
    }
    let quartile = w.op(Op::Percentile, &[x(), Expr::closed("0.25")]);
    if let Some(call) = quartile {
        let table = one_column(suite, &[w.float(1.0), w.float(2.0), w.float(3.0), w.float(4.0)]);
        suite.push("percentile", format!("SELECT {} AS r FROM {table}", call.sql), vec![vec![Expected::Float(1.75)]]);
    }
    ranked_percentiles(suite);
    let decimals = [w.decimal("0.1"), w.decimal("0.2"), w.decimal("-1.25")];
    suite.aggregate("avg of decimals", Op::Avg, Decimal, &decimals, Expected::Float(-0.95 / 3.0));
    suite.aggregate("min of decimals", Op::Min, Decimal, &decimals, Expected::number("-1.25"));
    let large = [w.integer(i64::MAX), w.integer(i64::MAX)];
    suite.aggregate("avg of large integers", Op::Avg, Integer, &large, Expected::Float(9_223_372_036_854_775_807.0));
    let days = [w.date("2024-02-29"), w.date("1999-12-31")];
    suite.aggregate("max of dates", Op::Max, Date, &days, Expected::Time("2024-02-29"));
    let times = [w.timestamp("2024-02-29 00:00:01"), w.timestamp("2024-02-29 00:00:00")];
    suite.aggregate("min of times", Op::Min, Timestamp, &times, Expected::Time("2024-02-29 00:00:00"));
    deviations(suite);
    sums(suite);
    empty(suite);
}

/// Adds cases for the dialect's deviation functions, over four values, one value and no value.
fn deviations(suite: &mut Suite<'_>) {
    suite.group = "deviations";
    let w = suite.writer;
    let one_value = [w.float(1.0), w.null(Float)];
    let values = [w.float(1.0), w.float(2.0), w.null(Float), w.float(2.0)];
    for (name, expected, of_one) in [
        ("var_pop", 2.0 / 9.0, Expected::Float(0.0)),
        ("stddev_samp", 0.577_350_269_189_625_7, Expected::Null),
        ("var_samp", 1.0 / 3.0, Expected::Null),
    ] {
        let Some(call) = w.function(name, &[x()]) else { continue };
        let of = |values: &[Expr]| format!("SELECT {} AS r FROM {}", call.sql, one_column(suite, values));
        let cases = [
            (name.to_owned(), of(&values), Expected::Float(expected)),
            (format!("{name} of one value"), of(&one_value), of_one),
            (format!("{name} of no value"), of(&[w.null(Float)]), Expected::Null),
        ];
        for (name, sql, expected) in cases {
            suite.push(name, sql, vec![vec![expected]]);
        }
    }
}

/// Adds cases for percentiles that are computed from values, their ranks and their number.
fn ranked_percentiles(suite: &mut Suite<'_>) {
    let w = suite.writer;
    let row = |value: Expr, rank: i64| [value, w.integer(rank), w.integer(4)];
    let rows = [row(w.float(1.0), 1), row(w.float(2.0), 2), row(w.float(3.0), 3), row(w.float(4.0), 4)];
    let rows: Vec<&[Expr]> = rows.iter().map(|row| &row[..]).collect();
    for (share, expected) in [("0", 1.0), ("0.25", 1.75), ("0.5", 2.5), ("1", 4.0)] {
        let args = [x(), y(), Expr::closed("t.z"), Expr::closed(share)];
        let Some(call) = w.function("percentile_of_ranks", &args) else { return };
        let sql = format!("SELECT {} AS r FROM {}", call.sql, w.table(&rows));
        suite.push(format!("percentile {share} of ranks"), sql, vec![vec![Expected::Float(expected)]]);
    }
    let null = [w.null(Float), w.integer(1), w.integer(1)];
    let args = [x(), y(), Expr::closed("t.z"), Expr::closed("0.5")];
    let Some(call) = w.function("percentile_of_ranks", &args) else { return };
    let sql = format!("SELECT {} AS r FROM {}", call.sql, w.table(&[&null]));
    suite.push("percentile of a null", sql, vec![vec![Expected::Null]]);
}

fn sums(suite: &mut Suite<'_>) {
    suite.group = "sums";
    let w = suite.writer;
    let max = w.integer(i64::MAX);
    suite.aggregate(
        "twice the largest integer",
        Op::Sum,
        Integer,
        &[max.clone(), max],
        Expected::number(i128::from(i64::MAX) * 2),
    );
    let min = w.integer(i64::MIN + 1);
    suite.aggregate(
        "twice the least integer",
        Op::Sum,
        Integer,
        &[min.clone(), min],
        Expected::number(i128::from(i64::MIN + 1) * 2),
    );
    let tenths = [w.decimal("0.1"), w.decimal("0.2")];
    suite.aggregate("0.1 + 0.2 of decimals", Op::Sum, Decimal, &tenths, Expected::number("0.3"));
    let large = w.decimal("9999999999999999999.999999999");
    let twice = Expected::number("19999999999999999999.999999998");
    suite.aggregate("large decimals", Op::Sum, Decimal, &[large.clone(), large], twice);
    let doubles = [w.float(1e300), w.float(0.5), w.float(-1e300)];
    suite.aggregate("doubles", Op::Sum, Float, &doubles[..2], Expected::Float(1e300));
}

fn empty(suite: &mut Suite<'_>) {
    suite.group = "aggregates of nothing";
    let w = suite.writer;
    for (op, ty, value, expected) in [
        (Op::Sum, Integer, w.integer(1), Expected::Null),
        (Op::Sum, Decimal, w.decimal("1"), Expected::Null),
        (Op::Avg, Integer, w.integer(1), Expected::Null),
        (Op::Min, Integer, w.integer(1), Expected::Null),
        (Op::Max, Text, w.text("a"), Expected::Null),
        (Op::Max, Date, w.date("2024-01-01"), Expected::Null),
        (Op::Count, Integer, w.integer(1), Expected::number(0)),
        (Op::CountDistinct, Text, w.text("a"), Expected::number(0)),
        (Op::ApproxDistinct, Integer, w.integer(1), Expected::number(0)),
    ] {
        let Some(call) = w.op_for(op, Some(ty), &[x()]) else { continue };
        let table = w.table(&[&[value]]);
        let none = format!("SELECT {} AS r FROM {table} WHERE t.x <> t.x", call.sql);
        suite.push(format!("{op:?} of no {ty:?}"), none, vec![vec![expected.clone()]]);
        let nulls = w.table(&[&[w.null(ty)]]);
        suite.push(
            format!("{op:?} of null {ty:?}"),
            format!("SELECT {} AS r FROM {nulls}", call.sql),
            vec![vec![expected]],
        );
    }
}

fn one_column(suite: &Suite<'_>, values: &[Expr]) -> String {
    let rows: Vec<&[Expr]> = values.iter().map(std::slice::from_ref).collect();
    suite.writer.table(&rows)
}

impl Suite<'_> {
    fn aggregate(&mut self, name: impl Into<String>, op: Op, ty: LogicalType, values: &[Expr], expected: Expected) {
        let Some(call) = self.writer.op_for(op, Some(ty), &[x()]) else { return };
        let (name, table) = (name.into(), one_column(self, values));
        self.push(name.clone(), format!("SELECT {} AS r FROM {table}", call.sql), vec![vec![expected.clone()]]);
        // The host writes a deviation with CASE, because its template may be more than one call.
        let filtered = if self.writer.has(Feature::FILTER_CLAUSE) && op != Op::Stddev {
            Some(format!("{} FILTER (WHERE 1 = 1)", call.sql))
        } else {
            let value = Expr::closed("CASE WHEN 1 = 1 THEN t.x END");
            self.writer.op_for(op, Some(ty), &[value]).map(|call| call.sql)
        };
        if let Some(call) = filtered {
            self.push(format!("{name}, filtered"), format!("SELECT {call} AS r FROM {table}"), vec![vec![expected]]);
        }
    }
}
