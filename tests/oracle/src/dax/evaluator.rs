//! Evaluates DAX by definition: a filter context is a list of allowed values of columns, a row context is a row.
//!
//! In: the rows that a caller sees, and a query. Out: the rows of the query's result. The evaluator is slow and simple
//! on purpose, and shares no code with the product.

use std::cmp::Ordering;

use serde_json::{Value as Json, json};

use super::expression::{Condition, Filter, Measure, Query, Scalar, Table, Test};
use super::star::{Column, Data, MARK, REFUND, Row, columns_of, mark_of, number, value};

/// A filter: the allowed combinations of values of some columns.
#[derive(Debug, Clone)]
pub(super) struct Restriction {
    pub(super) columns: Vec<Column>,
    pub(super) allowed: Vec<Vec<Json>>,
}

/// The filters under which an expression is evaluated. A row must pass all of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    pub(super) filters: Vec<Restriction>,
    /// The filters around the outermost rows or groups; `None` outside of rows and groups.
    pub(super) selected: Option<Vec<Restriction>>,
    /// The values of variables, by their numbers.
    pub(super) variables: Vec<Json>,
    /// The rows of the variables that are tables, by their numbers.
    pub(super) tables: Vec<Rows>,
}

/// The rows of a table expression.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) columns: Vec<Column>,
    /// The columns that the rows restrict if they are used as a filter. For a fact table, these include the columns of
    /// the customer.
    expanded: Vec<Column>,
    /// The columns that become filters if a row is the current row.
    current: Vec<Column>,
    pub(super) rows: Vec<Row>,
}

/// An evaluator over the rows that a caller sees.
pub struct Evaluator {
    customers: Vec<Row>,
    orders: Vec<Row>,
    refunds: Vec<Row>,
    has_orphans: bool,
    denied: Vec<Column>,
}

impl Evaluator {
    /// Creates the evaluator of a caller for whom the denied columns do not exist.
    pub fn new(data: &Data, denied: &[Column]) -> Self {
        let [customers, orders, refunds] = ["customers", "orders", "refunds"].map(|table| data.expanded(table));
        Evaluator { customers, orders, refunds, has_orphans: data.has_orphans(), denied: denied.to_vec() }
    }

    /// Returns the rows of a query, each with the columns of its table and the values of its expressions.
    pub fn evaluate(&self, query: &Query) -> Vec<Vec<Json>> {
        let context = Context::default();
        match query {
            Query::AddColumns(table, values) => self.with_values(table, values, &context),
            Query::Row(values) => vec![values.iter().map(|value| self.scalar(value, &context, &[])).collect()],
            Query::TopN(count, is_ascending, table, values) => {
                let rows = self.with_values(table, values, &context);
                let key = rows.first().map_or(0, Vec::len).saturating_sub(values.len());
                first_rows(rows, *count, key, *is_ascending)
            }
            Query::Summarize { table, groups, values, .. } => self.summarized(table, groups, values, &context),
            Query::SummarizeColumns { groups, filters, values } => {
                let mut inner = Context::default();
                for filter in filters {
                    let rows = self.table(filter, &context, &[]);
                    inner.filters.push(Restriction::of(&rows));
                }
                let inner = inner.in_rows();
                self.grouped(groups, values, &inner)
            }
        }
    }

    fn with_values(&self, table: &Table, values: &[Scalar], context: &Context) -> Vec<Vec<Json>> {
        let rows = self.table(table, context, &[]);
        let context = &context.in_rows();
        let row = |row: &Row| {
            let own = rows.columns.iter().map(|column| value(row, *column));
            let current = [rows.current(row)];
            own.chain(values.iter().map(|value| self.scalar(value, context, &current))).collect()
        };
        rows.rows.iter().map(row).collect()
    }

    /// Evaluates the values for every combination of the groups in the rows of a table. The rows are a filter of the
    /// values.
    fn summarized(&self, table: &Table, groups: &[Column], values: &[Scalar], context: &Context) -> Vec<Vec<Json>> {
        let rows = self.table(table, context, &[]);
        let mut combinations: Vec<Vec<Json>> = Vec::new();
        for row in &rows.rows {
            let combination: Vec<Json> = groups.iter().map(|column| value(row, *column)).collect();
            if !combinations.contains(&combination) {
                combinations.push(combination);
            }
        }
        // The rows are a part of the filters around the groups, which ALLSELECTED restores.
        let mut base = context.clone();
        base.filters.push(Restriction::of(&rows));
        let base = base.in_rows();
        let row = |combination: Vec<Json>| {
            let mut inner = base.clone();
            inner
                .filters
                .extend(groups.iter().zip(&combination).map(|(column, value)| Restriction::one(*column, value)));
            let found: Vec<Json> = values.iter().map(|value| self.scalar(value, &inner, &[])).collect();
            combination.into_iter().chain(found).collect()
        };
        combinations.into_iter().map(row).collect()
    }

    /// Evaluates the values for every combination of the groups, and drops combinations for which all values are BLANK.
    fn grouped(&self, groups: &[Column], values: &[Scalar], context: &Context) -> Vec<Vec<Json>> {
        let mut combinations: Vec<Row> = vec![Vec::new()];
        for table in ["customers", "orders"] {
            let columns: Vec<Column> = groups.iter().copied().filter(|(of, _)| *of == table).collect();
            if columns.is_empty() {
                continue;
            }
            let mut wider = Vec::new();
            for row in &combinations {
                for values in self.values(&columns, context, true) {
                    wider.push(row.iter().cloned().chain(columns.iter().copied().zip(values)).collect());
                }
            }
            combinations = wider;
        }
        let rows = combinations.iter().filter_map(|row| {
            let mut inner = context.clone();
            inner.filters.extend(row.iter().map(|(column, value)| Restriction::one(*column, value)));
            let found: Vec<Json> = values.iter().map(|value| self.scalar(value, &inner, &[])).collect();
            let shown = groups.iter().map(|column| value(row, *column));
            (!found.iter().all(Json::is_null)).then(|| shown.chain(found.iter().cloned()).collect())
        });
        rows.collect()
    }

    // Tables

    fn all_rows(&self, table: &str) -> &[Row] {
        match table {
            "customers" => &self.customers,
            "orders" => &self.orders,
            _ => &self.refunds,
        }
    }

    /// Returns the rows of a table that pass the filters. Columns of a filter that the table lacks have no effect.
    fn rows_of(&self, table: &str, context: &Context) -> Vec<&Row> {
        let filters = context.reaching(table);
        self.all_rows(table).iter().filter(|row| filters.iter().all(|filter| filter.passes(row))).collect()
    }

    /// Returns the distinct combinations of columns of one table. `with_blank` adds the BLANK row of facts without a
    /// customer.
    pub(super) fn values(&self, columns: &[Column], context: &Context, with_blank: bool) -> Vec<Vec<Json>> {
        let table = columns[0].0;
        let mut found: Vec<Vec<Json>> = Vec::new();
        let rows = self.rows_of(table, context).into_iter();
        let blank = self.has_blank_row(table, context).then(Row::new);
        for row in rows.chain(blank.as_ref().filter(|_| with_blank)) {
            let combination: Vec<Json> = columns.iter().map(|column| value(row, *column)).collect();
            if !found.contains(&combination) {
                found.push(combination);
            }
        }
        found
    }

    /// Returns whether the table has a blank row that passes the filters.
    fn has_blank_row(&self, table: &str, context: &Context) -> bool {
        let is_passed = |filter: &Restriction| filter.passes(&Row::new());
        table == "customers" && self.has_orphans && context.reaching(table).iter().all(is_passed)
    }

    fn seen_columns(&self, table: &str) -> Vec<Column> {
        columns_of(table).iter().filter(|column| !self.denied.contains(column)).copied().collect()
    }

    /// Returns whether the caller sees the key of a table. A masked key has one value in several rows.
    fn has_visible_key(&self, table: &'static str) -> bool {
        let keys: Vec<Json> = self.all_rows(table).iter().map(|row| value(row, (table, "id"))).collect();
        !self.denied.contains(&(table, "id")) && keys.iter().enumerate().all(|(at, key)| !keys[..at].contains(key))
    }

    pub(super) fn table(&self, table: &Table, context: &Context, current: &[Row]) -> Rows {
        let model = |table: &'static str, rows: Vec<Row>| {
            let columns = self.seen_columns(table);
            let customers = self.seen_columns("customers").into_iter().chain([mark_of("customers")]);
            let mut expanded: Vec<Column> = columns.iter().copied().chain([mark_of(table)]).collect();
            expanded.extend(customers.filter(|(of, _)| *of != table));
            let visible = expanded.iter().filter(|(_, name)| *name != MARK).copied();
            // A row whose key the caller does not see consists of the values of its own columns.
            let current = if self.has_visible_key(table) { visible.collect() } else { columns.clone() };
            Rows { expanded, current, columns, rows }
        };
        let one = |column: Column, values: Vec<Vec<Json>>| Rows {
            columns: vec![column],
            expanded: vec![column],
            current: vec![column],
            rows: values.into_iter().map(|values| vec![(column, values[0].clone())]).collect(),
        };
        match table {
            Table::Model(table) => model(table, self.rows_of(table, context).into_iter().cloned().collect()),
            Table::AllTable(table) => {
                let mut rows = self.all_rows(table).to_vec();
                if self.has_blank_row(table, &Context::default()) {
                    rows.push(Row::new());
                }
                model(table, rows)
            }
            Table::Values(column) => one(*column, self.values(&[*column], context, true)),
            Table::Distinct(column) => one(*column, self.values(&[*column], context, false)),
            Table::All(column) => one(*column, self.values(&[*column], &Context::default(), true)),
            Table::AllSelected(column) => one(*column, self.values(&[*column], &context.of_selection(), true)),
            Table::Combine(function, left, right) => {
                let [left, right] = [left, right].map(|part| self.table(part, context, current));
                left.combined(function, right)
            }
            Table::Filter(of, condition) => {
                let rows = self.table(of, context, current);
                let passes = |row: &Row| condition.holds(&value(row, condition.column()));
                Rows { rows: rows.rows.into_iter().filter(passes).collect(), ..rows }
            }
            Table::FilterBy(of, test) => {
                let rows = self.table(of, context, current);
                let context = &context.in_rows();
                let passes = |row: &&Row| self.test(test, context, &[current, &[rows.current(row)]].concat());
                let passing = rows.rows.iter().filter(passes).cloned().collect();
                Rows { rows: passing, ..rows }
            }
            Table::Summarize(columns) => {
                let mut rows: Vec<Row> = Vec::new();
                for row in self.rows_of("orders", context) {
                    let row: Row = columns.iter().map(|column| (*column, value(row, *column))).collect();
                    if !rows.contains(&row) {
                        rows.push(row);
                    }
                }
                Rows { columns: columns.clone(), expanded: columns.clone(), current: columns.clone(), rows }
            }
            Table::Calculated(of, filters) => self.table(of, &self.calculated(filters, context, current), &[]),
            Table::Variable(number, _) => context.tables[*number].clone(),
            // TREATAS ignores values that the column does not have.
            Table::TreatAs(values, column) => {
                let all = self.values(&[*column], &Context::default(), true);
                let values = values.iter().map(|value| vec![number(value)]);
                one(*column, values.filter(|row| all.contains(row)).collect())
            }
        }
    }

    // Filters

    /// Returns the context inside CALCULATE: the current rows become filters, then the filters of CALCULATE replace
    /// those of the same columns.
    fn calculated(&self, filters: &[Filter], context: &Context, current: &[Row]) -> Context {
        let mut inner = transitioned(context, current);
        for filter in filters {
            match filter {
                Filter::All(column) => inner.remove(&|other| other == *column),
                Filter::AllTable(table) => inner.remove(&|column| applies(column, table)),
                Filter::AllExcept(table, except) => {
                    inner.remove(&|column| applies(column, table) && !except.contains(&column));
                }
                Filter::AllOfEverything => inner.filters.clear(),
                Filter::AllSelected(column) => inner.restore(*column),
                Filter::Condition(_) | Filter::Keep(_) | Filter::Either(..) | Filter::Table(_) | Filter::Dates(_) => {}
            }
        }
        let mut added = Vec::new();
        for filter in filters {
            match filter {
                Filter::Condition(condition) => {
                    inner.remove(&|other| other == condition.column());
                    added.push(self.meeting(condition));
                }
                Filter::Keep(condition) => added.push(self.meeting(condition)),
                Filter::Either(one, two) => {
                    let either = self.meeting_either(one, two);
                    inner.remove(&|other| either.columns.contains(&other));
                    added.push(either);
                }
                // The table is evaluated in the outer context, in which the current rows are not filters.
                Filter::Table(table) => {
                    let rows = self.table(table, context, current);
                    inner.remove(&|column| rows.expanded.contains(&column));
                    added.push(Restriction::of(&rows));
                }
                Filter::Dates(dates) => {
                    let days = self.dates(*dates, &transitioned(context, current));
                    inner.remove(&|column| days.columns.contains(&column));
                    added.push(days);
                }
                _ => {}
            }
        }
        inner.filters.extend(added);
        inner
    }

    /// Returns the values of a column that meet a condition. Filters of the context have no effect.
    fn meeting(&self, condition: &Condition) -> Restriction {
        let column = condition.column();
        let values = self.values(&[column], &Context::default(), true);
        let allowed = values.into_iter().filter(|values| condition.holds(&values[0])).collect();
        Restriction { columns: vec![column], allowed }
    }

    /// Returns the values of two columns of one table that meet one of two conditions.
    fn meeting_either(&self, one: &Condition, two: &Condition) -> Restriction {
        let columns = vec![one.column(), two.column()];
        let values = self.values(&columns, &Context::default(), true);
        let allowed = values.into_iter().filter(|row| one.holds(&row[0]) || two.holds(&row[1])).collect();
        Restriction { columns, allowed }
    }

    // Scalars

    pub(super) fn scalar(&self, scalar: &Scalar, context: &Context, current: &[Row]) -> Json {
        match scalar {
            Scalar::Number(number) => json!(*number as f64),
            Scalar::Column(column) => {
                let row = current.iter().rev().find(|row| row.iter().any(|(of, _)| of == column));
                row.map_or(Json::Null, |row| value(row, *column))
            }
            Scalar::Measure(measure) => self.measure(*measure, &transitioned(context, current)),
            Scalar::Aggregate(function, column) => {
                let values = self.rows_of(column.0, context).into_iter().map(|row| value(row, *column));
                aggregate(function, values.collect())
            }
            Scalar::CountRows(table) => count(self.table(table, context, current).rows.len()),
            Scalar::Iterate(function, table, expression) => {
                let rows = self.table(table, context, current);
                let context = &context.in_rows();
                let of_row = |row: &Row| self.scalar(expression, context, &[current, &[rows.current(row)]].concat());
                aggregate(function.strip_suffix('X').unwrap_or(function), rows.rows.iter().map(of_row).collect())
            }
            Scalar::Calculate(expression, filters) => {
                self.scalar(expression, &self.calculated(filters, context, current), &[])
            }
            Scalar::Add(one, two) => {
                let values = [one, two].map(|part| self.scalar(part, context, current).as_f64());
                match values {
                    [None, None] => Json::Null,
                    [one, two] => json!(one.unwrap_or(0.0) + two.unwrap_or(0.0)),
                }
            }
            Scalar::Subtract(one, two) => {
                let values = [one, two].map(|part| self.scalar(part, context, current).as_f64());
                match values {
                    [None, None] => Json::Null,
                    [one, two] => json!(one.unwrap_or(0.0) - two.unwrap_or(0.0)),
                }
            }
            Scalar::Multiply(one, two) => {
                let values = [one, two].map(|part| self.scalar(part, context, current).as_f64());
                match values {
                    [Some(one), Some(two)] => json!(one * two),
                    _ => Json::Null,
                }
            }
            Scalar::Divide(one, two) => {
                let values = [one, two].map(|part| self.scalar(part, context, current).as_f64());
                match values {
                    [Some(one), Some(two)] if two != 0.0 => json!(one / two),
                    _ => Json::Null,
                }
            }
            Scalar::If(test, one, two) => match (self.test(test, context, current), two) {
                (true, _) => self.scalar(one, context, current),
                (false, Some(two)) => self.scalar(two, context, current),
                (false, None) => Json::Null,
            },
            Scalar::SelectedValue(column) => match &self.values(&[*column], context, true)[..] {
                [only] => only[0].clone(),
                _ => Json::Null,
            },
            Scalar::Rank(rank) => self.rank(rank, context, current),
            Scalar::Let(number, value, result) => {
                let value = self.scalar(value, context, current);
                let mut inner = context.clone();
                inner.variables.truncate(*number);
                inner.variables.push(value);
                self.scalar(result, &inner, current)
            }
            Scalar::Variable(number) => context.variables[*number].clone(),
            Scalar::LetTable(number, table, result) => {
                let rows = self.table(table, context, current);
                let mut inner = context.clone();
                inner.tables.truncate(*number);
                inner.tables.push(rows);
                self.scalar(result, &inner, current)
            }
        }
    }

    fn test(&self, test: &Test, context: &Context, current: &[Row]) -> bool {
        match test {
            Test::Compare(scalar, operator, number) => {
                let found = self.scalar(scalar, context, current);
                holds(compare(&found, &json!(*number as f64)), operator)
            }
            Test::IsBlank(scalar) => self.scalar(scalar, context, current).is_null(),
            Test::HasOneValue(column) => self.values(&[*column], context, true).len() == 1,
        }
    }

    /// Evaluates a measure over the rows that pass the filters; BLANK without rows.
    fn measure(&self, measure: Measure, context: &Context) -> Json {
        let rows = self.rows_of(measure.table(), context);
        let all = |column: Column| rows.iter().map(|row| value(row, column)).collect();
        match measure {
            Measure::Orders => count(rows.len()),
            Measure::Gifts => count(rows.iter().filter(|row| value(row, ("orders", "is_gift")) == true).count()),
            Measure::Revenue => aggregate("SUM", all(("orders", "amount"))),
            Measure::Smallest => aggregate("MIN", all(("orders", "amount"))),
            Measure::TotalCredit => aggregate("SUM", all(("customers", "credit"))),
            Measure::Refunded => aggregate("SUM", all(REFUND)),
        }
    }
}

/// Returns whether a filter by a column restricts a table. A filter restricts the table of the column. Filters by
/// columns of the customers also restrict both facts, which join the customers.
fn applies((of, _): Column, table: &str) -> bool {
    of == table || of == "customers"
}

/// Returns the context in which the current rows are filters. Filters of inner rows replace those of outer rows.
fn transitioned(context: &Context, current: &[Row]) -> Context {
    let mut inner = context.clone();
    for row in current {
        inner.remove(&|column| row.iter().any(|(of, _)| *of == column));
        inner.filters.extend(row.iter().map(|(column, value)| Restriction::one(*column, value)));
    }
    inner
}

impl Rows {
    /// Returns the row context of a row. A row of a fact includes the columns of its customer.
    pub(super) fn current(&self, row: &Row) -> Row {
        self.current.iter().map(|column| (*column, value(row, *column))).collect()
    }
}

impl Context {
    /// Returns the filters that restrict a table, without the columns that do not restrict it.
    fn reaching(&self, table: &str) -> Vec<Restriction> {
        let mut context = self.clone();
        context.remove(&|column| !applies(column, table));
        context.filters
    }

    /// Removes columns from the filters. A filter over several columns keeps the combinations of its remaining columns.
    pub(super) fn remove(&mut self, is_removed: &dyn Fn(Column) -> bool) {
        for filter in &mut self.filters {
            let stays: Vec<bool> = filter.columns.iter().map(|column| !is_removed(*column)).collect();
            let retain = |row: &Vec<Json>| -> Vec<Json> {
                row.iter().zip(&stays).filter(|(_, stays)| **stays).map(|(value, _)| value.clone()).collect()
            };
            filter.allowed = filter.allowed.iter().map(retain).collect();
            let mut stays = stays.iter();
            filter.columns.retain(|_| stays.next() == Some(&true));
        }
        // A filter that only compares the mark is removed as well.
        self.filters.retain(|filter| filter.columns.iter().any(|(_, name)| *name != MARK));
    }
}

impl Restriction {
    fn of(rows: &Rows) -> Self {
        let allowed = rows.rows.iter().map(|row| rows.expanded.iter().map(|column| value(row, *column)).collect());
        Restriction { columns: rows.expanded.clone(), allowed: allowed.collect() }
    }

    fn one(column: Column, value: &Json) -> Self {
        Restriction { columns: vec![column], allowed: vec![vec![value.clone()]] }
    }

    fn passes(&self, row: &Row) -> bool {
        let found: Vec<Json> = self.columns.iter().map(|column| value(row, *column)).collect();
        self.allowed.contains(&found)
    }
}

fn count(rows: usize) -> Json {
    if rows == 0 { Json::Null } else { json!(rows as f64) }
}

/// Aggregates values; BLANK without values.
fn aggregate(function: &str, values: Vec<Json>) -> Json {
    let numbers: Vec<f64> = values.iter().filter_map(Json::as_f64).collect();
    let present = values.iter().filter(|value| !value.is_null()).count();
    match function {
        "COUNT" => count(present),
        "COUNTBLANK" => count(values.len() - present),
        "DISTINCTCOUNT" => {
            let mut distinct: Vec<&Json> = Vec::new();
            values.iter().for_each(|value| {
                if !distinct.contains(&value) {
                    distinct.push(value);
                }
            });
            count(distinct.len())
        }
        _ if numbers.is_empty() => Json::Null,
        "SUM" => json!(numbers.iter().sum::<f64>()),
        "AVERAGE" => json!(numbers.iter().sum::<f64>() / numbers.len() as f64),
        "MIN" => json!(numbers.iter().copied().fold(f64::INFINITY, f64::min)),
        _ => json!(numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    }
}

impl Condition {
    /// Returns whether a value meets the condition.
    pub fn holds(&self, found: &Json) -> bool {
        match self {
            Condition::Compare(_, "==", constant) => *found == number(constant),
            Condition::Compare(_, operator, constant) => holds(compare(found, &number(constant)), operator),
            Condition::In(_, values) => values.iter().any(|value| number(value) == *found),
            Condition::Blank(_) => found.is_null(),
            Condition::Not(inner) => !inner.holds(found),
            Condition::And(one, two) => one.holds(found) && two.holds(found),
            Condition::Or(one, two) => one.holds(found) || two.holds(found),
        }
    }
}

fn holds(ordering: Ordering, operator: &str) -> bool {
    match operator {
        "=" => ordering.is_eq(),
        "<>" => ordering.is_ne(),
        "<" => ordering.is_lt(),
        "<=" => ordering.is_le(),
        ">" => ordering.is_gt(),
        _ => ordering.is_ge(),
    }
}

/// Compares two values as DAX does. BLANK equals the zero of the other value's type.
pub fn compare(left: &Json, right: &Json) -> Ordering {
    let zero = |other: &Json| match other {
        Json::String(_) => json!(""),
        Json::Bool(_) => json!(false),
        _ => json!(0.0),
    };
    let left = if left.is_null() { zero(right) } else { left.clone() };
    let right = if right.is_null() { zero(&left) } else { right.clone() };
    match (&left, &right) {
        (Json::String(one), Json::String(two)) => one.cmp(two),
        (Json::Bool(one), Json::Bool(two)) => one.cmp(two),
        _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal),
    }
}

/// Compares two values in the order of results: BLANK comes before strings and FALSE, and between negative numbers and
/// 0.
pub fn order(one: &Json, two: &Json) -> Ordering {
    let key = |value: &Json| match value {
        Json::Null => (0.0, 1, String::new()),
        Json::Bool(value) => (f64::from(u8::from(*value)), 2, String::new()),
        Json::String(text) => (0.0, 2, text.clone()),
        other => {
            // The sum is 0 for a negative zero.
            let number = other.as_f64().unwrap_or(0.0) + 0.0;
            (number, if number < 0.0 { 0 } else { 2 }, String::new())
        }
    };
    let ((one, one_class, one_text), (two, two_class, two_text)) = (key(one), key(two));
    one.total_cmp(&two).then(one_class.cmp(&two_class)).then(one_text.cmp(&two_text))
}

/// Returns the first `count` rows in the order of a column, and all rows that are equal to the last of them.
fn first_rows(mut rows: Vec<Vec<Json>>, count: usize, key: usize, is_ascending: bool) -> Vec<Vec<Json>> {
    let compare = |one: &Vec<Json>, two: &Vec<Json>| {
        let ordering = order(&one[key], &two[key]);
        if is_ascending { ordering } else { ordering.reverse() }
    };
    rows.sort_by(compare);
    let Some(last) = count.checked_sub(1).and_then(|at| rows.get(at)).cloned() else {
        return if count == 0 { Vec::new() } else { rows };
    };
    rows.retain(|row| compare(row, &last).is_le());
    rows
}
