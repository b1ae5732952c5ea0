//! Compares DAX on real engines: with answers that were computed by hand, and random queries with the evaluator of
//! their definitions and with REST.
//!
//! The random queries are a limited part of the runs of `cargo xtask dialects --engine`.

use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::answers::Suite;
use terrane_oracle_tests::dax::run::{Open, Run, on_mysql, on_postgres, on_sqlite, run};
use terrane_oracle_tests::hooks::WorldHooks;
use terrane_oracle_tests::product::Product;
use terrane_system_tests::engines::{Engine, Kind};

use super::start;

/// Queries that an engine cannot answer as defined, each with the reason.
const EXCEPTIONS: &[(Kind, &str, &str)] = &[];

/// Starts a product on an engine, with tables.
fn product(engine: &Engine, tables: &[String]) -> Product {
    let (url, init) = (engine.url().unwrap_or_default(), tables.to_vec());
    let started = match engine.kind {
        Kind::Postgres => Product::on_postgres(settings(), &url, init),
        Kind::MariaDb => Product::on_mysql(settings(), &url, init),
        _ => Product::on_sqlite(settings(), init),
    };
    started.unwrap_or_else(|error| panic!("{}: {error:#}", engine.kind.label()))
}

/// Compares the answers of both suites. A query with an exception must differ.
fn check_answers(kind: Kind) {
    let Some(engine) = start(kind) else { return };
    let time = if kind == Kind::Postgres { "TIMESTAMP" } else { "DATETIME" };
    let mut differences = Vec::new();
    for suite in [Suite::star(), Suite::snowflake(time)] {
        let product = product(&engine, &suite.statements);
        let served = product.serve_tree(&suite.tree, WorldHooks::default()).expect("the project of the suite loads");
        differences.extend(suite.differences(&served));
    }
    let excepted: Vec<&str> = EXCEPTIONS.iter().filter(|(of, ..)| *of == kind).map(|(_, query, _)| *query).collect();
    let unused: Vec<&&str> =
        excepted.iter().filter(|query| !differences.iter().any(|found| found.query == **query)).collect();
    assert!(unused.is_empty(), "queries with an exception are answered: {unused:?}");
    differences.retain(|difference| !excepted.contains(&difference.query));
    let texts: Vec<&str> = differences.iter().map(|difference| difference.text.as_str()).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

#[test]
fn listed_dax_has_its_answers_on_postgres() {
    check_answers(Kind::Postgres);
}

#[test]
fn listed_dax_has_its_answers_on_mariadb() {
    check_answers(Kind::MariaDb);
}

#[test]
fn listed_dax_has_its_answers_on_sqlite() {
    check_answers(Kind::Sqlite);
}

fn check_random(seed: u64, open: &mut Open<'_>) {
    let report = run(Run { seed, worlds: 8, queries: 40 }, open).expect("worlds that load");
    assert!(report.differences.is_empty(), "{}", report.differences.join("\n"));
    assert!(report.answered * 3 > report.queries * 2, "{report:?}");
}

#[test]
fn random_dax_on_postgres_agrees_with_the_evaluator() {
    let Some(engine) = start(Kind::Postgres) else { return };
    check_random(15, &mut on_postgres(settings(), engine.url().expect("a server has a URL")));
}

#[test]
fn random_dax_on_mariadb_agrees_with_the_evaluator() {
    let Some(engine) = start(Kind::MariaDb) else { return };
    check_random(16, &mut on_mysql(settings(), engine.url().expect("a server has a URL")));
}

#[test]
fn random_dax_on_sqlite_agrees_with_the_evaluator() {
    check_random(17, &mut on_sqlite(settings()));
}
