//! Random queries of DAX through the product, compared with the evaluator and with REST.
//!
//! In: a seed, the number of worlds and of queries, and a warehouse. Out: counts, and every difference with its seed.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use anyhow::Result;
use serde_json::Value as Json;
use terrane_wire::Code;

use super::evaluator::{Evaluator, order};
use super::general::General;
use super::generate;
use super::star::{Policies, number, random_data, source_tree, statements};
use super::summarize::Summary;
use crate::hooks::WorldHooks;
use crate::oracle::Settings;
use crate::product::{Answered, Asker, DaxRefusal, Product, Served};
use crate::random::Random;
use terrane_app::query::CacheControl;

/// The extent of a run.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The seed of the first world. Each further world has the next number as its seed.
    pub seed: u64,
    pub worlds: u64,
    /// The number of queries of each world.
    pub queries: usize,
}

/// The counts of a run.
#[derive(Debug, Default)]
pub struct Report {
    pub queries: usize,
    pub answered: usize,
    /// The number of queries that were compared with REST.
    pub by_rest: usize,
    /// The number of refusals by code.
    pub refused: BTreeMap<String, usize>,
    /// The number of queries with each unsupported construct.
    pub unsupported: BTreeMap<String, usize>,
    pub differences: Vec<String>,
}

impl Report {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: Report) {
        self.queries += other.queries;
        self.answered += other.answered;
        self.by_rest += other.by_rest;
        self.differences.extend(other.differences);
        for (counts, added) in [(&mut self.refused, other.refused), (&mut self.unsupported, other.unsupported)] {
            added.into_iter().for_each(|(what, count)| *counts.entry(what).or_default() += count);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "queries     {} ({} answered, {} compared with REST)", self.queries, self.answered, self.by_rest)?;
        for (what, count) in self.refused.iter().chain(&self.unsupported) {
            writeln!(f, "refused     {count} {what}")?;
        }
        write!(f, "differences {}", self.differences.len())
    }
}

/// Creates tables by statements and returns a product over the warehouse with these tables.
pub type Open<'f> = dyn FnMut(&[String]) -> Result<Rc<Product>> + 'f;

/// Returns a function that replaces the tables of one DuckDB for each world.
pub fn on_duckdb(product: Product) -> impl FnMut(&[String]) -> Result<Rc<Product>> {
    let product = Rc::new(product);
    move |statements| {
        statements.iter().try_for_each(|statement| product.execute(statement).map(|_| ()))?;
        Ok(Rc::clone(&product))
    }
}

/// Returns a function that opens a connection to PostgreSQL for each world.
pub fn on_postgres(settings: Settings, url: String) -> impl FnMut(&[String]) -> Result<Rc<Product>> {
    move |statements| Ok(Rc::new(Product::on_postgres(settings.clone(), &url, statements.to_vec())?))
}

/// Returns a function that opens a connection to MySQL or MariaDB for each world.
pub fn on_mysql(settings: Settings, url: String) -> impl FnMut(&[String]) -> Result<Rc<Product>> {
    move |statements| Ok(Rc::new(Product::on_mysql(settings.clone(), &url, statements.to_vec())?))
}

/// Returns a function that creates an SQLite file for each world.
pub fn on_sqlite(settings: Settings) -> impl FnMut(&[String]) -> Result<Rc<Product>> {
    move |statements| Ok(Rc::new(Product::on_sqlite(settings.clone(), statements.to_vec())?))
}

/// Compares the product's answers with those of the evaluator, for random queries over worlds with policies.
///
/// # Errors
/// The warehouse refuses the tables, or a project has problems.
pub fn run(run: Run, open: &mut Open<'_>) -> Result<Report> {
    let mut report = Report::default();
    for seed in run.seed..run.seed + run.worlds {
        let mut random = Random::new(seed);
        let (data, policies) = (random_data(&mut random), Policies::random(&mut random));
        let product = open(&statements(&data))?;
        let served = product.serve_tree(&source_tree(&policies), WorldHooks::default())?;
        let seen = policies.seen(&data);
        let evaluator = Evaluator::new(&seen, &policies.denied);
        let others = OTHER_VALUES.map(|values| Evaluator::new(&policies.with_others(&seen, values), &policies.denied));
        let mut world =
            World { served: &served, policies: &policies, evaluator: &evaluator, others: &others, report: &mut report };
        for at in 0..run.queries {
            let differences = world.report.differences.len();
            match at % 4 {
                0 => world.summary(&Summary::random(&mut random)),
                1 => world.general(&General::random(&mut random)),
                _ => world.random(&generate::query(&mut random)),
            }
            for difference in &mut world.report.differences[differences..] {
                *difference = format!("seed {seed}, query {at}: {difference}\n{policies:?}\n{data:?}\n");
            }
        }
    }
    Ok(report)
}

/// Other values for the denied columns `is_gift` and `credit`.
const OTHER_VALUES: [(Option<bool>, Option<i64>); 3] =
    [(None, None), (Some(true), Some(7)), (Some(false), Some(-1_000))];

/// One world with its caller's policies.
struct World<'w, 'p> {
    served: &'w Served<'p>,
    policies: &'w Policies,
    evaluator: &'w Evaluator,
    /// Evaluators over the same rows, with other values in the denied columns.
    others: &'w [Evaluator],
    report: &'w mut Report,
}

impl World<'_, '_> {
    /// Returns the rows of a query. If the query is refused, counts the refusal and returns the error.
    fn rows(&mut self, text: &str) -> Result<Vec<Vec<Json>>, Box<DaxRefusal>> {
        self.report.queries += 1;
        match self.served.dax(text) {
            Ok(answer) => {
                self.report.answered += 1;
                Ok(rows(&answer))
            }
            Err(error) => {
                *self.report.refused.entry(error.body.code.as_str().to_owned()).or_default() += 1;
                Err(error)
            }
        }
    }

    fn differs(&mut self, text: &str, found: &[Vec<Json>], expected: &[Vec<Json>]) -> bool {
        let (found, expected) = (sorted(found), sorted(expected));
        if found == expected {
            return false;
        }
        self.report.differences.push(format!("{text}\n  found    {found:?}\n  expected {expected:?}"));
        true
    }

    fn is_denied(&self, text: &str) -> bool {
        let covered = |column: &str| match column {
            "is_gift" => text.contains("[gifts]"),
            "credit" => text.contains("[total_credit]"),
            _ => false,
        };
        let mut denied = self.policies.denied.iter();
        denied.any(|(table, column)| text.contains(&format!("{table}[{column}]")) || covered(column))
    }

    /// Returns whether the rows are the query's answer for any values of the denied columns.
    fn is_answer_of_any_values(&self, evaluate: impl Fn(&Evaluator) -> Vec<Vec<Json>>, found: &[Vec<Json>]) -> bool {
        self.others.iter().all(|other| sorted(&evaluate(other)) == sorted(found))
    }

    fn summary(&mut self, summary: &Summary) {
        let text = summary.dax();
        let found = self.rows(&text);
        let rest = self.rest(summary);
        let is_filtered = summary.filters_one(|column| self.policies.is_masked(column));
        match (found, rest) {
            (Err(_), Err(_)) if is_filtered || self.is_denied(&text) => {}
            (Ok(found), Ok(rest)) if !is_filtered && !self.is_denied(&text) => {
                let expected = self.evaluator.evaluate(&summary.query());
                let differs = self.differs(&text, &found, &expected);
                self.report.by_rest += 1;
                if !differs && sorted(&rest) != sorted(&found) {
                    self.report.differences.push(format!("{text}\n  DAX  {found:?}\n  REST {rest:?}"));
                }
                let is_ordered = found.is_sorted_by(|one, two| {
                    let ordering = order(&one[0], &two[0]);
                    if summary.is_descending { ordering.is_ge() } else { ordering.is_le() }
                });
                if !is_ordered {
                    self.report.differences.push(format!("{text}\n  is not in order: {found:?}"));
                }
            }
            (found, rest) => {
                let found = found.map_err(|error| error.body.message);
                self.report.differences.push(format!("{text}\n  DAX  {found:?}\n  REST {rest:?}"));
            }
        }
    }

    /// Sends a query by REST and returns its rows, or a description of the error.
    fn rest(&self, summary: &Summary) -> Result<Vec<Vec<Json>>, String> {
        let query = summary.semantic_query();
        let cache = CacheControl { bypass: true, ..CacheControl::default() };
        match self.served.run_as(&query, Asker::Usual, cache).0 {
            Answered::Rows { rows, .. } => {
                let rounded = |row: Vec<Json>| row.iter().map(number).collect::<Vec<Json>>();
                Ok(rows.into_iter().map(rounded).filter_map(|row| summary.row_of_rest(&row)).collect())
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn general(&mut self, general: &General) {
        let text = general.dax();
        let is_filtered = general.filters_one(|column| self.policies.is_masked(column));
        match self.rows(&text) {
            Ok(found) if !is_filtered && !self.is_denied(&text) => {
                let expected = general.evaluate(self.evaluator);
                self.differs(&text, &found, &expected);
            }
            Err(_) if is_filtered || self.is_denied(&text) => {}
            // The column has no values, so no statement contains the filter.
            Ok(found) if is_filtered && found.is_empty() => {}
            // If the member is evaluated for no row, no statement read it, and the denied values do not matter.
            Ok(found)
                if self.is_denied(&text) && self.is_answer_of_any_values(|other| general.evaluate(other), &found) => {}
            // Without its key, a row is a filter of its values, and masked values cannot be filtered.
            Err(error) if self.closes_a_key() && is_denial(&error) => {}
            // Without its key, a row does not determine the rows of other tables.
            Err(error) if self.closes_a_key() && WITHOUT_KEYS.iter().any(|part| error.body.message.contains(part)) => {
                *self.report.unsupported.entry("rows without keys".to_owned()).or_default() += 1;
            }
            found => {
                let found = found.map_err(|error| error.body.message);
                self.report.differences.push(format!("{text}\n  {found:?}"));
            }
        }
    }

    /// Returns whether the caller does not see the keys of a table.
    fn closes_a_key(&self) -> bool {
        let masked = self.policies.masks.iter().map(|((_, column), _)| column);
        self.policies.denied.iter().map(|(_, column)| column).chain(masked).any(|column| *column == "id")
    }

    /// Compares a query of any shape, which may need unsupported features.
    fn random(&mut self, query: &super::expression::Query) {
        let text = query.dax();
        let (is_denied, has_masks) = (self.is_denied(&text), !self.policies.masks.is_empty());
        match self.rows(&text) {
            Ok(found) if !is_denied => {
                let expected = self.evaluator.evaluate(query);
                self.differs(&text, &found, &expected);
            }
            // If the answer has no rows, no statement read the denied member.
            Ok(found) if is_denied && found.is_empty() => {}
            // If the member is evaluated for no row, no statement read it, and the denied values do not matter.
            Ok(found) if is_denied && self.is_answer_of_any_values(|other| other.evaluate(query), &found) => {}
            // If the member is in a branch of IF that is not taken, no statement read it.
            Ok(_) if is_denied && text.contains("IF(") => {}
            Err(_) if is_denied => {}
            Err(error) if has_masks && is_denial(&error) => {}
            Err(error) if error.unsupported().is_some() => {
                let construct = error.unsupported().unwrap_or_default();
                *self.report.unsupported.entry(construct.to_owned()).or_default() += 1;
            }
            found => {
                let found = found.map_err(|error| error.body.message);
                self.report.differences.push(format!("{text}\n  {found:?}"));
            }
        }
    }
}

/// The refusals of queries in which rows without their key would determine the rows of other tables.
const WITHOUT_KEYS: [&str; 2] = [
    "a filter by rows of a table on the many side of another one is not supported",
    "a row without its key under filters of other tables is not supported",
];

/// Returns whether a policy refused the query.
fn is_denial(error: &DaxRefusal) -> bool {
    error.body.code == Code::Forbidden
}

/// Returns the rows of an answer as lists of values.
pub fn rows(answer: &Json) -> Vec<Vec<Json>> {
    let objects = answer["data"].as_array().into_iter().flatten();
    objects.map(|row| row.as_object().into_iter().flatten().map(|(_, value)| number(value)).collect()).collect()
}

/// Sorts rows by their text, because their order does not count in a comparison.
pub fn sorted(rows: &[Vec<Json>]) -> Vec<Vec<Json>> {
    let mut rows: Vec<Vec<Json>> = rows.iter().map(|row| row.iter().map(number).collect()).collect();
    rows.sort_by_key(|row| format!("{row:?}"));
    rows
}
