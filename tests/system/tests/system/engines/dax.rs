//! Compares DAX on real engines: with answers that were computed by hand, and random queries with the evaluator of
//! their definitions and with REST.
//!
//! The random queries are a limited part of the runs of `cargo xtask dialects --engine`.

use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::answers::differences_of_all;
use terrane_oracle_tests::dax::run::{Open, Run, on_mysql, on_postgres, on_sqlite, run};
use terrane_system_tests::engines::{Engine, Kind};

use super::start;

/// Returns a function that opens a product on an engine, with tables.
fn open_on(engine: &Engine) -> Box<Open<'static>> {
    let url = || engine.url().expect("a server has a URL");
    match engine.kind {
        Kind::Postgres => Box::new(on_postgres(settings(), url())),
        Kind::MariaDb => Box::new(on_mysql(settings(), url())),
        _ => Box::new(on_sqlite(settings())),
    }
}

/// Compares the answers of all suites. No engine has exceptions.
fn check_answers(kind: Kind) {
    let Some(engine) = start(kind) else { return };
    let time = if kind == Kind::Postgres { "TIMESTAMP" } else { "DATETIME" };
    let differences = differences_of_all(time, &mut *open_on(&engine)).expect("suites that load");
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

fn check_random(kind: Kind, seed: u64) {
    let Some(engine) = start(kind) else { return };
    let report = run(Run { seed, worlds: 8, queries: 40 }, &mut *open_on(&engine)).expect("worlds that load");
    assert!(report.differences.is_empty(), "{}", report.differences.join("\n"));
    assert!(report.answered * 3 > report.queries * 2, "{report:?}");
}

#[test]
fn random_dax_on_postgres_agrees_with_the_evaluator() {
    check_random(Kind::Postgres, 15);
}

#[test]
fn random_dax_on_mariadb_agrees_with_the_evaluator() {
    check_random(Kind::MariaDb, 16);
}

#[test]
fn random_dax_on_sqlite_agrees_with_the_evaluator() {
    check_random(Kind::Sqlite, 17);
}
