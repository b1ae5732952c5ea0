//! Random queries over the star.
//!
//! In: a generator of numbers. Out: a [`Query`] of any shape, with a few levels of expressions.

use super::expression::{Condition, Filter, Measure, Query, Scalar, Table, Test};
use super::star::{Column, GROUPS, constant};
use crate::random::Random;

const ITERATORS: &[&str] = &["SUMX", "AVERAGEX", "MINX", "MAXX", "COUNTX"];
const NUMBERS: &[Column] = &[("orders", "amount"), ("customers", "credit")];

/// The place in a query for which an expression is generated.
#[derive(Clone, Copy)]
struct Place {
    /// The number of levels that the expression may have.
    depth: usize,
    /// A numeric column of the current row that the expression can name.
    column: Option<Column>,
}

impl Place {
    fn inner(self) -> Place {
        Place { depth: self.depth.saturating_sub(1), ..self }
    }
}

pub fn query(random: &mut Random) -> Query {
    let outside = Place { depth: 3, column: None };
    match random.below(8) {
        0 => Query::Row(scalars(random, outside)),
        1..=3 => {
            let table = rows(random, outside);
            let values = scalars(random, Place { column: number_of(&table), ..outside });
            Query::AddColumns(table, values)
        }
        4 => {
            let table = rows(random, outside);
            let values = scalars(random, Place { column: number_of(&table), ..outside });
            Query::TopN(random.below(4), random.chance(50), table, values)
        }
        _ => {
            let count = 1 + random.below(2);
            let groups = random.some(GROUPS, count);
            let filters = (0..random.below(3)).map(|_| filter_table(random)).collect();
            Query::SummarizeColumns { groups, filters, values: scalars(random, outside) }
        }
    }
}

fn scalars(random: &mut Random, place: Place) -> Vec<Scalar> {
    (0..1 + random.below(2)).map(|_| scalar(random, place)).collect()
}

/// Returns a filter of SUMMARIZECOLUMNS.
fn filter_table(random: &mut Random) -> Table {
    let column = *random.of(GROUPS);
    match random.below(4) {
        0 => Table::TreatAs((0..1 + random.below(3)).map(|_| constant(random, column)).collect(), column),
        1 => Table::Filter(Box::new(Table::Values(column)), condition(random, column, 2)),
        _ => Table::Filter(Box::new(Table::All(column)), condition(random, column, 2)),
    }
}

fn boxed(random: &mut Random, place: Place) -> Box<Scalar> {
    Box::new(scalar(random, place))
}

fn scalar(random: &mut Random, place: Place) -> Scalar {
    let inner = place.inner();
    let leaves = 6;
    match random.below(if place.depth == 0 { leaves } else { leaves + 11 }) {
        0 | 1 => Scalar::Measure(*random.of(&Measure::ALL)),
        2 => match place.column {
            Some(column) => Scalar::Column(column),
            None => Scalar::Measure(Measure::Revenue),
        },
        3 => {
            let functions = ["COUNT", "DISTINCTCOUNT", "COUNTBLANK"];
            let function = *random.of(&functions);
            Scalar::Aggregate(function, *random.of(GROUPS))
        }
        4 => {
            let function = *random.of(&["SUM", "AVERAGE", "MIN", "MAX"]);
            Scalar::Aggregate(function, *random.of(NUMBERS))
        }
        5 => Scalar::Number(random.between(-2, 3)),
        6..=9 => {
            let filters = (0..random.below(3)).map(|_| filter(random, inner)).collect();
            Scalar::Calculate(boxed(random, Place { column: None, ..inner }), filters)
        }
        10 => Scalar::CountRows(Box::new(rows(random, inner))),
        11 | 12 => {
            let table = rows(random, inner);
            let column = number_of(&table);
            let function = *random.of(ITERATORS);
            Scalar::Iterate(function, Box::new(table), boxed(random, Place { column, ..inner }))
        }
        13 => match random.below(3) {
            0 => Scalar::Add(boxed(random, inner), boxed(random, inner)),
            1 => Scalar::Subtract(boxed(random, inner), boxed(random, inner)),
            _ => Scalar::Multiply(boxed(random, inner), boxed(random, inner)),
        },
        14 => Scalar::Divide(boxed(random, inner), boxed(random, inner)),
        15 => {
            let other = random.chance(50).then(|| boxed(random, inner));
            Scalar::If(Box::new(test(random, inner)), boxed(random, inner), other)
        }
        _ => Scalar::SelectedValue(*random.of(NUMBERS)),
    }
}

fn test(random: &mut Random, place: Place) -> Test {
    match random.below(4) {
        0 => Test::IsBlank(scalar(random, place)),
        1 => Test::HasOneValue(*random.of(GROUPS)),
        _ => {
            let operator = *random.of(&["=", "<>", "<", "<=", ">", ">="]);
            Test::Compare(scalar(random, place), operator, random.between(-2, 5))
        }
    }
}

/// Returns a table of rows to iterate over.
fn rows(random: &mut Random, place: Place) -> Table {
    let column = *random.of(GROUPS);
    match random.below(if place.depth == 0 { 6 } else { 8 }) {
        0 | 1 => Table::Values(column),
        2 => Table::All(column),
        3 => {
            let table = *random.of(&["orders", "customers"]);
            Table::Model(table)
        }
        4 => Table::Distinct(column),
        5 => {
            let count = 1 + random.below(2);
            Table::Summarize(random.some(GROUPS, count))
        }
        6 => Table::FilterBy(Box::new(Table::Values(column)), test(random, Place { column: None, ..place.inner() })),
        _ => {
            let of = if column.0 == "orders" { "orders" } else { "customers" };
            Table::Filter(Box::new(Table::Model(of)), condition(random, column, 1))
        }
    }
}

/// Returns a numeric column of a table.
fn number_of(table: &Table) -> Option<Column> {
    let is_number = |column: &Column| NUMBERS.contains(column).then_some(*column);
    match table {
        Table::Model("orders") => Some(("orders", "amount")),
        Table::Model(_) => Some(("customers", "credit")),
        Table::Values(column) | Table::All(column) | Table::Distinct(column) => is_number(column),
        Table::Summarize(columns) => columns.iter().find_map(is_number),
        Table::Filter(of, _) | Table::FilterBy(of, _) => number_of(of),
        Table::AllTable(_) | Table::TreatAs(..) => None,
    }
}

fn filter(random: &mut Random, place: Place) -> Filter {
    let column = *random.of(GROUPS);
    match random.below(12) {
        0..=2 => Filter::Condition(condition(random, column, 2)),
        3 => Filter::Keep(condition(random, column, 2)),
        4 => Filter::All(column),
        5 => {
            let table = *random.of(&["orders", "customers"]);
            Filter::AllTable(table)
        }
        6 => {
            let table = *random.of(&["orders", "customers"]);
            let own: Vec<Column> = GROUPS.iter().copied().filter(|(of, _)| *of == table).collect();
            let count = 1 + random.below(2);
            Filter::AllExcept(table, random.some(&own, count))
        }
        7 => Filter::AllOfEverything,
        8 => Filter::Table(Table::Filter(Box::new(Table::Values(column)), condition(random, column, 1))),
        9 => {
            let test = test(random, Place { depth: place.depth.min(1), column: None });
            Filter::Table(Table::FilterBy(Box::new(Table::Values(column)), test))
        }
        10 => {
            let table = *random.of(&["orders", "customers"]);
            let own: Vec<Column> = GROUPS.iter().copied().filter(|(of, _)| *of == table).collect();
            let column = *random.of(&own);
            let of = if random.chance(50) { Table::AllTable(table) } else { Table::Model(table) };
            Filter::Table(Table::Filter(Box::new(of), condition(random, column, 1)))
        }
        _ => {
            Filter::Table(Table::TreatAs((0..1 + random.below(3)).map(|_| constant(random, column)).collect(), column))
        }
    }
}

/// Returns a condition over a column.
pub fn condition(random: &mut Random, column: Column, depth: usize) -> Condition {
    let constant = |random: &mut Random| constant(random, column);
    match random.below(if depth == 0 { 3 } else { 6 }) {
        0 => {
            let has_order = matches!(column.1, "amount" | "credit");
            let operators: &[&'static str] =
                if has_order { &["=", "<>", "<", "<=", ">", ">=", "=="] } else { &["=", "<>", "=="] };
            let operator = operators[random.below(operators.len())];
            Condition::Compare(column, operator, constant(random))
        }
        1 => Condition::In(column, (0..1 + random.below(3)).map(|_| constant(random)).collect()),
        2 => Condition::Blank(column),
        3 => Condition::Not(Box::new(condition(random, column, depth - 1))),
        4 => Condition::And(
            Box::new(condition(random, column, depth - 1)),
            Box::new(condition(random, column, depth - 1)),
        ),
        _ => Condition::Or(
            Box::new(condition(random, column, depth - 1)),
            Box::new(condition(random, column, depth - 1)),
        ),
    }
}
