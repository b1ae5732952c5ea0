//! Queries of one shape: for each value of a column, an expression of each kind. The kinds are CALCULATE with a filter,
//! a total, a sum, an iterator, a rank, a filter with KEEPFILTERS, and rows of a fact as filters of its customers.

use serde_json::{Value as Json, json};

use super::evaluator::{Evaluator, compare};
use super::expression::{Condition, Filter, Measure, Query, Scalar, Table, column_text};
use super::generate::condition;
use super::star::{Column, GROUPS};
use crate::random::Random;

/// The expressions that are evaluated for each value of a column.
#[derive(Debug)]
pub struct General {
    group: Column,
    measures: [Measure; 2],
    filter: Condition,
    rows: Condition,
    /// The index of the expression over rows of orders.
    of_rows: usize,
}

impl General {
    pub fn random(random: &mut Random) -> General {
        let all = [Measure::Orders, Measure::Revenue, Measure::Smallest];
        let own: Vec<Column> = GROUPS.iter().filter(|(table, _)| *table == "orders").copied().collect();
        let (filtered, iterated) = (*random.of(GROUPS), *random.of(&own));
        General {
            group: *random.of(GROUPS),
            measures: [*random.of(&all), *random.of(&all)],
            filter: condition(random, filtered, 2),
            rows: condition(random, iterated, 2),
            of_rows: random.below(4),
        }
    }

    fn values(&self) -> Vec<Scalar> {
        let [one, two] = self.measures.map(Scalar::Measure);
        let boxed = |scalar: &Scalar| Box::new(scalar.clone());
        let iterated = Table::Filter(Box::new(Table::Model("orders")), self.rows.clone());
        let sum = Scalar::Iterate("SUMX", Box::new(iterated), Box::new(Scalar::Column(("orders", "amount"))));
        let rows = Scalar::CountRows(Box::new(Table::Model("orders")));
        vec![
            Scalar::Calculate(boxed(&one), vec![Filter::Condition(self.filter.clone())]),
            Scalar::Calculate(boxed(&one), vec![Filter::All(self.group)]),
            Scalar::Add(boxed(&one), boxed(&two)),
            Scalar::Calculate(Box::new(sum), Vec::new()),
            Scalar::Calculate(Box::new(rows), vec![Filter::Keep(self.filter.clone())]),
            self.of_rows(),
            two,
        ]
    }

    /// Returns an expression whose filters are rows of orders, or rows of customers nested in them.
    fn of_rows(&self) -> Scalar {
        let orders = || Table::Filter(Box::new(Table::Model("orders")), self.rows.clone());
        let one = Scalar::Measure(self.measures[0]);
        let credit = Scalar::Measure(Measure::TotalCredit);
        match self.of_rows {
            0 => Scalar::Iterate("SUMX", Box::new(orders()), Box::new(one)),
            1 => Scalar::Iterate("SUMX", Box::new(Table::AllTable("customers")), Box::new(one)),
            2 => Scalar::Iterate("SUMX", Box::new(orders()), Box::new(credit)),
            _ => Scalar::Calculate(Box::new(credit), vec![Filter::Table(orders())]),
        }
    }

    pub fn dax(&self) -> String {
        let query = Query::AddColumns(Table::Values(self.group), self.values()).dax();
        let rank = format!("RANKX(ALL({}), {})", column_text(self.group), self.measures[1].dax());
        format!("{}, \"rank\", {rank})", query.strip_suffix(')').unwrap_or(&query))
    }

    pub fn evaluate(&self, evaluator: &Evaluator) -> Vec<Vec<Json>> {
        let mut rows = evaluator.evaluate(&Query::AddColumns(Table::Values(self.group), self.values()));
        let last = rows.first().map_or(0, Vec::len).saturating_sub(1);
        let ranked: Vec<Json> = rows.iter().map(|row| row[last].clone()).collect();
        for row in &mut rows {
            let before = ranked.iter().filter(|other| compare(other, &row[last]).is_gt()).count();
            row.push(json!((before + 1) as f64));
        }
        rows
    }

    /// Returns whether a condition of the query compares a column for which `is_it` is true.
    pub fn filters_one(&self, is_it: impl Fn(Column) -> bool) -> bool {
        is_it(self.filter.column()) || is_it(self.rows.column())
    }
}
