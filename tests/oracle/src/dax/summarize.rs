//! Queries that are one semantic query: SUMMARIZECOLUMNS of measures with an order. REST can express them too.
//!
//! In: a generator of numbers. Out: the DAX text, the same query for REST, and the expression for the evaluator.

use serde_json::{Value as Json, json};
use terrane_compiler::query::{Filter, SemanticQuery};
use terrane_compiler::types::{Operator, Value};

use super::expression::{Condition, Measure, Query, Scalar, Table, column_text};
use super::generate::condition;
use super::star::{Column, GROUPS};
use crate::random::Random;

/// A SUMMARIZECOLUMNS with filters and an order.
#[derive(Debug)]
pub struct Summary {
    groups: Vec<Column>,
    filters: Vec<Condition>,
    measures: Vec<Measure>,
    pub is_descending: bool,
}

impl Summary {
    pub fn random(random: &mut Random) -> Summary {
        let count = 1 + random.below(3);
        let groups = random.some(GROUPS, count);
        let all = [Measure::Orders, Measure::Revenue, Measure::Smallest, Measure::Gifts];
        let measures = (0..1 + random.below(2)).map(|_| *random.of(&all)).collect();
        let filters = (0..random.below(3)).map(|_| {
            let column = *random.of(GROUPS);
            condition(random, column, 2)
        });
        let filters = filters.collect();
        Summary { groups, filters, measures, is_descending: random.chance(50) }
    }

    /// Returns the DAX text, ordered by the first group. The order of rows with an equal first group is not defined.
    pub fn dax(&self) -> String {
        let direction = if self.is_descending { "DESC" } else { "ASC" };
        format!("{} ORDER BY {} {direction}", self.query().dax(), column_text(self.groups[0]))
    }

    pub fn query(&self) -> Query {
        let all = |condition: &Condition| Table::Filter(Box::new(Table::All(condition.column())), condition.clone());
        Query::SummarizeColumns {
            groups: self.groups.clone(),
            filters: self.filters.iter().map(all).collect(),
            values: self.measures.iter().map(|measure| Scalar::Measure(*measure)).collect(),
        }
    }

    /// Returns the number of group columns.
    pub fn width(&self) -> usize {
        self.groups.len()
    }

    /// Returns whether a filter compares a column for which `is_it` is true.
    pub fn filters_one(&self, is_it: impl Fn(Column) -> bool) -> bool {
        self.filters.iter().any(|filter| is_it(filter.column()))
    }

    /// Returns the equivalent query of REST, whose filters state explicitly whether null passes.
    pub fn semantic_query(&self) -> SemanticQuery {
        let mut values = Vec::new();
        for measure in &self.measures {
            let value = reference((measure.table(), measure.name()));
            if !values.contains(&value) {
                values.push(value);
            }
        }
        SemanticQuery {
            values,
            dimensions: self.groups.iter().map(|column| reference(*column)).collect(),
            filters: self.filters.iter().map(rest_filter).collect(),
            limit: Some(1_000),
            ..SemanticQuery::default()
        }
    }

    /// Returns the row of the DAX answer for a row of REST. A measure may occur twice, and a count of 0 becomes BLANK.
    pub fn row_of_rest(&self, row: &[Json]) -> Option<Vec<Json>> {
        let mut distinct: Vec<Measure> = Vec::new();
        for measure in &self.measures {
            if !distinct.contains(measure) {
                distinct.push(*measure);
            }
        }
        let value = |measure: &Measure| {
            let at = distinct.iter().position(|other| other == measure).unwrap_or_default();
            let value = &row[self.groups.len() + at];
            let counts = matches!(measure, Measure::Orders | Measure::Gifts);
            if counts && value.as_f64() == Some(0.0) { Json::Null } else { value.clone() }
        };
        let values: Vec<Json> = self.measures.iter().map(value).collect();
        let is_shown = !values.iter().all(Json::is_null);
        is_shown.then(|| row[..self.groups.len()].iter().cloned().chain(values).collect())
    }
}

fn reference((table, name): Column) -> terrane_compiler::query::MemberRef {
    // Names of the star have no dots.
    format!("{table}.{name}").parse().unwrap_or_else(|_| panic!("{table}.{name}"))
}

fn rest_filter(condition: &Condition) -> Filter {
    let test = |operator, values| Filter::Condition { member: reference(condition.column()), operator, values };
    match condition {
        Condition::Blank(_) => test(Operator::NotSet, Vec::new()),
        Condition::In(_, values) => test(Operator::InList, values.iter().map(constant).collect()),
        Condition::Compare(_, "==", value) => test(Operator::InList, vec![constant(value)]),
        Condition::Not(inner) => Filter::Not(Box::new(rest_filter(inner))),
        Condition::And(one, two) => Filter::And(vec![rest_filter(one), rest_filter(two)]),
        Condition::Or(one, two) => Filter::Or(vec![rest_filter(one), rest_filter(two)]),
        Condition::Compare(column, operator, value) => {
            let zero = match column.1 {
                "region" | "status" => json!(""),
                "is_gift" => json!(false),
                _ => json!(0),
            };
            let value = if value.is_null() { &zero } else { value };
            let operator = match *operator {
                "=" => Operator::Equals,
                "<>" => Operator::NotEquals,
                "<" => Operator::Lt,
                "<=" => Operator::Lte,
                ">" => Operator::Gt,
                _ => Operator::Gte,
            };
            let found = test(operator, vec![constant(value)]);
            // Null passes if BLANK meets the condition.
            if condition.holds(&Json::Null) {
                Filter::Or(vec![found, test(Operator::NotSet, Vec::new())])
            } else {
                Filter::And(vec![found, test(Operator::Set, Vec::new())])
            }
        }
    }
}

fn constant(value: &Json) -> Value {
    match value {
        Json::Bool(value) => Value::Boolean(*value),
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Number(number) => number.as_i64().map_or(Value::Null, Value::Integer),
        _ => Value::Null,
    }
}
