//! Expressions of random queries, and their DAX text.
//!
//! Out: expressions, and their text in DAX. Not here: values, which `evaluator` computes.

use serde_json::Value as Json;

use super::star::{Column, DAY};

/// A measure of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    Orders,
    Revenue,
    Smallest,
    /// The number of orders that meet a condition.
    Gifts,
    TotalCredit,
    Refunded,
}

/// A condition over one column.
#[derive(Debug, Clone)]
pub enum Condition {
    Compare(Column, &'static str, Json),
    In(Column, Vec<Json>),
    Blank(Column),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

#[derive(Debug, Clone)]
pub enum Scalar {
    Number(i64),
    Measure(Measure),
    /// A column of the current row.
    Column(Column),
    Aggregate(&'static str, Column),
    CountRows(Box<Table>),
    /// SUMX or a similar iterator.
    Iterate(&'static str, Box<Table>, Box<Scalar>),
    Calculate(Box<Scalar>, Vec<Filter>),
    Add(Box<Scalar>, Box<Scalar>),
    Subtract(Box<Scalar>, Box<Scalar>),
    Multiply(Box<Scalar>, Box<Scalar>),
    Divide(Box<Scalar>, Box<Scalar>),
    If(Box<Test>, Box<Scalar>, Option<Box<Scalar>>),
    SelectedValue(Column),
    /// RANKX without a value of its own.
    Rank(Box<Rank>),
    /// A variable of this number, with its value, and the expression that can use it.
    Let(usize, Box<Scalar>, Box<Scalar>),
    Variable(usize),
    /// A variable of this number that is a table, and the expression that can use it.
    LetTable(usize, Box<Table>, Box<Scalar>),
}

#[derive(Debug, Clone)]
pub struct Rank {
    pub table: Table,
    pub expression: Scalar,
    pub is_ascending: bool,
    /// True if ranks have no gaps after ties.
    pub is_dense: bool,
}

/// A comparison of an expression with a number, or HASONEVALUE.
#[derive(Debug, Clone)]
pub enum Test {
    Compare(Scalar, &'static str, i64),
    IsBlank(Scalar),
    HasOneValue(Column),
}

#[derive(Debug, Clone)]
pub enum Table {
    Model(&'static str),
    AllTable(&'static str),
    Values(Column),
    Distinct(Column),
    All(Column),
    AllSelected(Column),
    /// UNION, INTERSECT or EXCEPT of two tables of one column.
    Combine(&'static str, Box<Table>, Box<Table>),
    /// FILTER by a condition on the columns of the row.
    Filter(Box<Table>, Condition),
    /// FILTER by an expression. When the expression is evaluated, the values of the row are filters.
    FilterBy(Box<Table>, Test),
    /// SUMMARIZE of the table `orders`.
    Summarize(Vec<Column>),
    TreatAs(Vec<Json>, Column),
    /// CALCULATETABLE
    Calculated(Box<Table>, Vec<Filter>),
    /// A variable, and the table that it stands for.
    Variable(usize, Box<Table>),
}

/// A filter of CALCULATE.
#[derive(Debug, Clone)]
pub enum Filter {
    Condition(Condition),
    Keep(Condition),
    /// One of two conditions over different columns of one table.
    Either(Condition, Condition),
    All(Column),
    AllTable(&'static str),
    AllExcept(&'static str, Vec<Column>),
    AllOfEverything,
    AllSelected(Column),
    Table(Table),
    Dates(Dates),
}

/// A table of days.
#[derive(Debug, Clone, Copy)]
pub enum Dates {
    /// DATESBETWEEN from one day of January 2024 to another.
    Between(i64, i64),
    /// DATEADD of a number of days.
    Add(i64),
    YearToDate,
}

#[derive(Debug, Clone)]
pub enum Query {
    /// ADDCOLUMNS over a table.
    AddColumns(Table, Vec<Scalar>),
    SummarizeColumns {
        groups: Vec<Column>,
        filters: Vec<Table>,
        values: Vec<Scalar>,
    },
    Row(Vec<Scalar>),
    /// SUMMARIZE of the rows of a table, with expressions.
    Summarize {
        table: Table,
        /// True if the table is the value of a variable.
        is_named: bool,
        groups: Vec<Column>,
        values: Vec<Scalar>,
    },
    /// TOPN of ADDCOLUMNS by its first value, with ties.
    TopN(usize, bool, Table, Vec<Scalar>),
}

impl Measure {
    pub const ALL: [Measure; 6] =
        [Measure::Orders, Measure::Revenue, Measure::Smallest, Measure::Gifts, Measure::TotalCredit, Measure::Refunded];

    pub fn name(self) -> &'static str {
        match self {
            Measure::Orders => "orders",
            Measure::Revenue => "revenue",
            Measure::Smallest => "smallest",
            Measure::Gifts => "gifts",
            Measure::TotalCredit => "total_credit",
            Measure::Refunded => "refunded",
        }
    }

    /// Returns the table whose rows the measure aggregates.
    pub fn table(self) -> &'static str {
        match self {
            Measure::Orders | Measure::Revenue | Measure::Smallest | Measure::Gifts => "orders",
            Measure::TotalCredit => "customers",
            Measure::Refunded => "refunds",
        }
    }

    pub fn dax(self) -> String {
        format!("[{}]", self.name())
    }
}

pub fn column_text((table, column): Column) -> String {
    format!("{table}[{column}]")
}

fn literal(value: &Json) -> String {
    match value {
        Json::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        Json::Bool(value) => value.to_string().to_uppercase(),
        Json::Null => "BLANK()".to_owned(),
        other => other.to_string(),
    }
}

fn joined<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().map(text).collect::<Vec<String>>().join(", ")
}

impl Condition {
    pub fn column(&self) -> Column {
        match self {
            Condition::Compare(column, ..) | Condition::In(column, _) | Condition::Blank(column) => *column,
            Condition::Not(inner) | Condition::And(inner, _) | Condition::Or(inner, _) => inner.column(),
        }
    }

    pub fn dax(&self) -> String {
        match self {
            Condition::Compare(column, operator, value) => {
                format!("{} {operator} {}", column_text(*column), literal(value))
            }
            Condition::In(column, values) => format!("{} IN {{{}}}", column_text(*column), joined(values, literal)),
            Condition::Blank(column) => format!("ISBLANK({})", column_text(*column)),
            Condition::Not(inner) => format!("NOT ({})", inner.dax()),
            Condition::And(one, two) => format!("({} && {})", one.dax(), two.dax()),
            Condition::Or(one, two) => format!("({} || {})", one.dax(), two.dax()),
        }
    }
}

impl Scalar {
    pub fn dax(&self) -> String {
        match self {
            Scalar::Number(number) => number.to_string(),
            Scalar::Measure(measure) => measure.dax(),
            Scalar::Column(column) => column_text(*column),
            Scalar::Aggregate(function, column) => format!("{function}({})", column_text(*column)),
            Scalar::CountRows(table) => format!("COUNTROWS({})", table.dax()),
            Scalar::Iterate(function, table, expression) => {
                format!("{function}({}, {})", table.dax(), expression.dax())
            }
            Scalar::Calculate(expression, filters) => {
                let filters: String = filters.iter().map(|filter| format!(", {}", filter.dax())).collect();
                format!("CALCULATE({}{filters})", expression.dax())
            }
            Scalar::Add(one, two) => format!("({} + {})", one.dax(), two.dax()),
            Scalar::Subtract(one, two) => format!("({} - {})", one.dax(), two.dax()),
            Scalar::Multiply(one, two) => format!("({} * {})", one.dax(), two.dax()),
            Scalar::Divide(one, two) => format!("DIVIDE({}, {})", one.dax(), two.dax()),
            Scalar::If(test, one, None) => format!("IF({}, {})", test.dax(), one.dax()),
            Scalar::If(test, one, Some(two)) => format!("IF({}, {}, {})", test.dax(), one.dax(), two.dax()),
            Scalar::SelectedValue(column) => format!("SELECTEDVALUE({})", column_text(*column)),
            Scalar::Rank(rank) => {
                let order = if rank.is_ascending { "ASC" } else { "DESC" };
                let ties = if rank.is_dense { "DENSE" } else { "SKIP" };
                format!("RANKX({}, {}, , {order}, {ties})", rank.table.dax(), rank.expression.dax())
            }
            Scalar::Let(number, value, result) => {
                format!("(VAR x{number} = {} RETURN {})", value.dax(), result.dax())
            }
            Scalar::Variable(number) => format!("x{number}"),
            Scalar::LetTable(number, table, result) => {
                format!("(VAR t{number} = {} RETURN {})", table.dax(), result.dax())
            }
        }
    }
}

impl Test {
    pub fn dax(&self) -> String {
        match self {
            Test::Compare(scalar, operator, number) => format!("{} {operator} {number}", scalar.dax()),
            Test::IsBlank(scalar) => format!("ISBLANK({})", scalar.dax()),
            Test::HasOneValue(column) => format!("HASONEVALUE({})", column_text(*column)),
        }
    }
}

impl Table {
    pub fn dax(&self) -> String {
        match self {
            Table::Model(table) => (*table).to_owned(),
            Table::AllTable(table) => format!("ALL({table})"),
            Table::Values(column) => format!("VALUES({})", column_text(*column)),
            Table::Distinct(column) => format!("DISTINCT({})", column_text(*column)),
            Table::All(column) => format!("ALL({})", column_text(*column)),
            Table::AllSelected(column) => format!("ALLSELECTED({})", column_text(*column)),
            Table::Combine(function, one, two) => format!("{function}({}, {})", one.dax(), two.dax()),
            Table::Filter(table, condition) => format!("FILTER({}, {})", table.dax(), condition.dax()),
            Table::FilterBy(table, test) => format!("FILTER({}, {})", table.dax(), test.dax()),
            Table::Summarize(columns) => format!("SUMMARIZE(orders, {})", joined(columns, |c| column_text(*c))),
            Table::TreatAs(values, column) => {
                format!("TREATAS({{{}}}, {})", joined(values, literal), column_text(*column))
            }
            Table::Calculated(table, filters) => {
                let filters: String = filters.iter().map(|filter| format!(", {}", filter.dax())).collect();
                format!("CALCULATETABLE({}{filters})", table.dax())
            }
            Table::Variable(number, _) => format!("t{number}"),
        }
    }
}

impl Filter {
    pub fn dax(&self) -> String {
        match self {
            Filter::Condition(condition) => condition.dax(),
            Filter::Keep(condition) => format!("KEEPFILTERS({})", condition.dax()),
            Filter::Either(one, two) => format!("{} || {}", one.dax(), two.dax()),
            Filter::All(column) => format!("ALL({})", column_text(*column)),
            Filter::AllTable(table) => format!("ALL({table})"),
            Filter::AllExcept(table, columns) => {
                format!("ALLEXCEPT({table}, {})", joined(columns, |column| column_text(*column)))
            }
            Filter::AllOfEverything => "ALL()".to_owned(),
            Filter::AllSelected(column) => format!("ALLSELECTED({})", column_text(*column)),
            Filter::Table(table) => table.dax(),
            Filter::Dates(dates) => dates.dax(),
        }
    }
}

impl Dates {
    fn dax(self) -> String {
        let column = column_text(DAY);
        match self {
            Dates::Between(from, to) => {
                format!("DATESBETWEEN({column}, dt\"2024-01-{from:02}\", dt\"2024-01-{to:02}\")")
            }
            Dates::Add(days) => format!("DATEADD({column}, {days}, DAY)"),
            Dates::YearToDate => format!("DATESYTD({column})"),
        }
    }
}

fn named(values: &[Scalar]) -> String {
    values.iter().enumerate().map(|(at, value)| format!(", \"v{at}\", {}", value.dax())).collect()
}

impl Query {
    pub fn dax(&self) -> String {
        match self {
            Query::AddColumns(table, values) => format!("EVALUATE ADDCOLUMNS({}{})", table.dax(), named(values)),
            Query::SummarizeColumns { groups, filters, values } => {
                let parts = groups.iter().map(|column| column_text(*column)).chain(filters.iter().map(Table::dax));
                let parts = parts.collect::<Vec<String>>().join(", ");
                format!("EVALUATE SUMMARIZECOLUMNS({parts}{})", named(values))
            }
            Query::Summarize { table, is_named, groups, values } => {
                let groups = joined(groups, |column| column_text(*column));
                let (table, values) = (table.dax(), named(values));
                match is_named {
                    true => format!("EVALUATE VAR rows = {table} RETURN SUMMARIZE(rows, {groups}{values})"),
                    false => format!("EVALUATE SUMMARIZE({table}, {groups}{values})"),
                }
            }
            Query::Row(values) => format!("EVALUATE ROW({})", named(values).trim_start_matches(", ")),
            Query::TopN(count, is_ascending, table, values) => {
                let order = if *is_ascending { "ASC" } else { "DESC" };
                format!("EVALUATE TOPN({count}, ADDCOLUMNS({}{}), [v0], {order})", table.dax(), named(values))
            }
        }
    }
}
