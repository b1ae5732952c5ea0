//! DAX queries with answers that were computed by hand, for every engine that runs them.
//!
//! In: a warehouse with the rows of a suite. Out: the queries whose rows differ. Not here: the engines.

use anyhow::Result;
use serde_json::{Value as Json, json};
use terrane_compiler::project::SourceTree;

use super::run::{Open, rows};
use super::star::{Data, Policies, number, source_tree, statements};
use crate::hooks::WorldHooks;
use crate::product::Served;

mod snowflake;
mod star;

/// A query and its rows as JSON.
pub type QueryAnswer = (&'static str, &'static str);

/// A project, the statements that create its tables, and queries with their answers.
#[derive(Debug)]
pub struct Suite {
    pub tree: SourceTree,
    pub statements: Vec<String>,
    pub answers: &'static [QueryAnswer],
}

/// A query whose rows are not the expected ones.
#[derive(Debug)]
pub struct Difference {
    pub query: &'static str,
    /// The expected and the found rows, or the error.
    pub text: String,
}

impl Suite {
    /// Returns the star schema that the random queries use as well.
    pub fn star() -> Self {
        let tree = source_tree(&Policies::default());
        Suite { tree, statements: statements(&star_rows()), answers: star::ANSWERS }
    }

    /// Returns a project in which tables join further tables. `time` is the type of local times in the warehouse.
    pub fn snowflake(time: &str) -> Self {
        let mut tree = source_tree(&Policies::default());
        tree.files.insert("cubes/star.yml".into(), snowflake::CUBES.into());
        Suite { tree, statements: snowflake::statements(time), answers: snowflake::ANSWERS }
    }

    /// Runs the queries and returns the differences.
    pub fn differences(&self, served: &Served<'_>) -> Vec<Difference> {
        let differs = |(query, expected): &QueryAnswer| {
            let text = difference(served, query, expected)?;
            Some(Difference { query, text })
        };
        self.answers.iter().filter_map(differs).collect()
    }
}

/// Runs the queries of all suites and returns the differences. `open` returns a product over tables that it creates.
///
/// # Errors
/// The tables cannot be created, or a project has problems.
pub fn differences_of_all(time: &str, open: &mut Open<'_>) -> Result<Vec<Difference>> {
    let mut differences = Vec::new();
    for suite in [Suite::star(), Suite::snowflake(time)] {
        let product = open(&suite.statements)?;
        differences.extend(suite.differences(&product.serve_tree(&suite.tree, WorldHooks::default())?));
    }
    Ok(differences)
}

/// Runs a query and compares its rows, in their order, with the expected ones.
fn difference(served: &Served<'_>, query: &str, expected: &str) -> Option<String> {
    let expected: Vec<Vec<Json>> = match serde_json::from_str(expected) {
        Ok(expected) => expected,
        Err(error) => return Some(format!("{query}\n  the expected rows are not JSON: {error}")),
    };
    let expected: Vec<Vec<Json>> = expected.iter().map(|row| row.iter().map(number).collect()).collect();
    match served.run_dax(query) {
        Ok(answer) if rows(&answer) == expected => None,
        Ok(answer) => Some(format!("{query}\n  expected {expected:?}\n  found    {:?}", rows(&answer))),
        Err(message) => Some(format!("{query}\n  {message}")),
    }
}

/// Returns rows with nulls, orphans, ties and empty strings.
pub fn star_rows() -> Data {
    let customer = |id: i64, region: Json, credit: i64| json!({"id": id, "region": region, "credit": credit});
    let order = |id: i64, customer: Json, status: Json, amount: Json, is_gift: Json, day: &str| json!({"id": id, "customer_id": customer, "status": status, "amount": amount, "is_gift": is_gift, "day": day});
    Data {
        customers: vec![
            customer(1, json!("US"), 100),
            customer(2, json!("US"), 50),
            customer(3, json!("EU"), 70),
            customer(4, Json::Null, 30),
            customer(5, json!("APAC"), 500),
        ],
        orders: vec![
            order(1, json!(1), json!("paid"), json!(10), json!(true), "2024-01-01"),
            order(2, json!(1), json!("paid"), json!(20.5), json!(false), "2024-01-31"),
            order(3, json!(3), json!("open"), json!(5), Json::Null, "2024-02-01"),
            order(4, json!(4), Json::Null, json!(7), json!(true), "2024-02-29"),
            order(5, Json::Null, json!("open"), Json::Null, json!(false), "2024-03-01"),
            order(6, json!(99), json!(""), json!(-3), Json::Null, "2023-12-31"),
        ],
        refunds: vec![
            json!({"id": 1, "customer_id": 1, "amount": 2}),
            json!({"id": 2, "customer_id": 99, "amount": 1}),
        ],
    }
}
