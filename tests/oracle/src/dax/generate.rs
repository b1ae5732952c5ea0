//! Random queries over the star.
//!
//! In: a generator of numbers. Out: a [`Query`] of any shape, with a few levels of expressions.

use super::expression::{Condition, Dates, Filter, Measure, Query, Rank, Scalar, Table, Test};
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
    /// The number of variables that the expression can use.
    variables: usize,
    /// The number of variables that are tables.
    tables: usize,
}

impl Place {
    fn inner(self) -> Place {
        Place { depth: self.depth.saturating_sub(1), ..self }
    }
}

pub fn query(random: &mut Random) -> Query {
    let outside = Place { depth: 3, column: None, variables: 0, tables: 0 };
    match random.below(9) {
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
        5 => {
            let table = *random.of(&["orders", "customers"]);
            // Rows of orders have the columns of their customers as well.
            let own = |(of, _): &Column| table == "orders" || *of == table;
            let own: Vec<Column> = GROUPS.iter().copied().filter(own).collect();
            let count = 1 + random.below(2);
            let groups = random.some(&own, count);
            let rows = if random.chance(30) { Table::Model(table) } else { model_rows(random, table, outside) };
            Query::Summarize { table: rows, is_named: random.chance(50), groups, values: scalars(random, outside) }
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
    if place.variables > 0 && random.chance(20) {
        return Scalar::Variable(random.below(place.variables));
    }
    match random.below(if place.depth == 0 { leaves } else { leaves + 15 }) {
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
            let function = *random.of(ITERATORS);
            if random.chance(50) {
                return iterated_rows(random, function, inner);
            }
            let table = rows(random, inner);
            let column = number_of(&table);
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
        16 => Scalar::SelectedValue(*random.of(NUMBERS)),
        17 => Scalar::Rank(Box::new(Rank {
            table: rows(random, inner),
            expression: scalar(random, Place { column: None, ..inner }),
            is_ascending: random.chance(50),
            is_dense: random.chance(50),
        })),
        18 => {
            let number = place.tables;
            let name = *random.of(&["orders", "customers"]);
            let table = Box::new(model_rows(random, name, inner));
            let result = boxed(random, Place { column: None, tables: number + 1, ..inner });
            let filter = Filter::Table(Table::Variable(number, table.clone()));
            Scalar::LetTable(number, table, Box::new(Scalar::Calculate(result, vec![filter])))
        }
        _ => {
            let number = place.variables;
            let value = boxed(random, inner);
            Scalar::Let(number, value, boxed(random, Place { variables: number + 1, ..inner }))
        }
    }
}

/// Returns an iterator over rows of the model, or their number, whose expressions read only columns of the row. The
/// warehouse can compute them.
fn iterated_rows(random: &mut Random, function: &'static str, place: Place) -> Scalar {
    let (table, column) = *random.of(&[("orders", ("orders", "amount")), ("customers", ("customers", "credit"))]);
    let mut rows = match random.below(3) {
        0 => model_rows(random, table, place),
        _ => Table::Model(table),
    };
    if random.chance(60) {
        rows = Table::FilterBy(Box::new(rows), row_test(random, column, 1));
    }
    match random.below(5) {
        0 => Scalar::CountRows(Box::new(rows)),
        _ => Scalar::Iterate(function, Box::new(rows), Box::new(row_scalar(random, column, 2))),
    }
}

/// Returns an expression over a numeric column of the current row.
fn row_scalar(random: &mut Random, column: Column, depth: usize) -> Scalar {
    let mut inner = || Box::new(row_scalar(random, column, depth.saturating_sub(1)));
    let (one, two) = if depth == 0 { (None, None) } else { (Some(inner()), Some(inner())) };
    let (Some(one), Some(two)) = (one, two) else {
        return if random.chance(75) { Scalar::Column(column) } else { Scalar::Number(random.between(-2, 3)) };
    };
    match random.below(6) {
        0 => Scalar::Add(one, two),
        1 => Scalar::Subtract(one, two),
        2 => Scalar::Multiply(one, two),
        3 => Scalar::Divide(one, two),
        4 => Scalar::If(Box::new(row_test(random, column, depth - 1)), one, random.chance(50).then_some(two)),
        _ => Scalar::Column(column),
    }
}

/// Returns a condition over a numeric column of the current row.
fn row_test(random: &mut Random, column: Column, depth: usize) -> Test {
    let scalar = row_scalar(random, column, depth);
    match random.below(4) {
        0 => Test::IsBlank(scalar),
        _ => {
            let comparison: &'static str = ["=", "<>", "<", "<=", ">", ">="][random.below(6)];
            Test::Compare(scalar, comparison, random.between(-2, 5))
        }
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
    match random.below(if place.depth == 0 { 7 } else { 10 }) {
        0 | 1 => Table::Values(column),
        2 => Table::All(column),
        6 => Table::AllSelected(column),
        7 => combined(random, column),
        3 => {
            let table = *random.of(&["orders", "customers"]);
            Table::Model(table)
        }
        4 => Table::Distinct(column),
        5 => {
            let count = 1 + random.below(2);
            Table::Summarize(random.some(GROUPS, count))
        }
        8 => Table::FilterBy(Box::new(Table::Values(column)), test(random, Place { column: None, ..place.inner() })),
        _ => {
            let of = if column.0 == "orders" { "orders" } else { "customers" };
            Table::Filter(Box::new(Table::Model(of)), condition(random, column, 1))
        }
    }
}

/// Returns rows of a table of the model, which are selected in one of several ways.
fn model_rows(random: &mut Random, table: &'static str, place: Place) -> Table {
    let own: Vec<Column> = GROUPS.iter().copied().filter(|(of, _)| *of == table).collect();
    let column = *random.of(&own);
    let rows = Box::new(Table::Model(table));
    match random.below(5) {
        0 => Table::Calculated(rows, vec![filter(random, Place { depth: 0, ..place.inner() })]),
        1 => Table::Calculated(
            Box::new(Table::Filter(rows, condition(random, column, 1))),
            vec![Filter::AllTable(table)],
        ),
        2 => Table::FilterBy(rows, test(random, Place { depth: place.depth.min(1), column: None, ..place.inner() })),
        _ => Table::Filter(rows, condition(random, column, 1)),
    }
}

/// Returns a combination of two tables of one column.
fn combined(random: &mut Random, column: Column) -> Table {
    let function = *random.of(&["UNION", "INTERSECT", "EXCEPT"]);
    let mut part = || match random.below(5) {
        0 => Table::All(column),
        1 => Table::Distinct(column),
        2 => Table::TreatAs((0..1 + random.below(3)).map(|_| constant(random, column)).collect(), column),
        3 => Table::Filter(Box::new(Table::Values(column)), condition(random, column, 1)),
        _ => Table::Values(column),
    };
    Table::Combine(function, Box::new(part()), Box::new(part()))
}

/// Returns a numeric column of a table.
fn number_of(table: &Table) -> Option<Column> {
    let is_number = |column: &Column| NUMBERS.contains(column).then_some(*column);
    match table {
        Table::Model("orders") => Some(("orders", "amount")),
        Table::Model(_) => Some(("customers", "credit")),
        Table::Values(column) | Table::All(column) | Table::AllSelected(column) | Table::Distinct(column) => {
            is_number(column)
        }
        Table::Combine(_, of, _) => number_of(of),
        Table::Summarize(columns) => columns.iter().find_map(is_number),
        Table::Filter(of, _) | Table::FilterBy(of, _) | Table::Calculated(of, _) | Table::Variable(_, of) => {
            number_of(of)
        }
        Table::AllTable(_) | Table::TreatAs(..) => None,
    }
}

fn filter(random: &mut Random, place: Place) -> Filter {
    let column = *random.of(GROUPS);
    match random.below(16) {
        14 => {
            let own: Vec<Column> = GROUPS.iter().copied().filter(|(of, _)| *of == column.0).collect();
            let pair = random.some(&own, 2);
            let [one, two] = [0, 1].map(|at| condition(random, pair[at % pair.len()], 1));
            Filter::Either(one, two)
        }
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
            let test = test(random, Place { depth: place.depth.min(1), column: None, ..place });
            Filter::Table(Table::FilterBy(Box::new(Table::Values(column)), test))
        }
        10 => {
            let table = *random.of(&["orders", "customers"]);
            let own: Vec<Column> = GROUPS.iter().copied().filter(|(of, _)| *of == table).collect();
            let column = *random.of(&own);
            if random.chance(30) {
                return Filter::Table(model_rows(random, table, place));
            }
            let of = if random.chance(50) { Table::AllTable(table) } else { Table::Model(table) };
            Filter::Table(Table::Filter(Box::new(of), condition(random, column, 1)))
        }
        11 => Filter::AllSelected(column),
        12 => Filter::Table(combined(random, column)),
        13 => Filter::Dates(match random.below(3) {
            0 => Dates::Between(random.between(1, 3), random.between(1, 3)),
            1 => Dates::Add(random.between(-2, 2)),
            _ => Dates::YearToDate,
        }),
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
