//! Compares random queries of DAX on PostgreSQL with the evaluator of their definitions and with REST.
//!
//! This is a limited part of the run of `terrane-fuzz --dax --postgres URL`.

use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::run::{Run, on_postgres, run};
use terrane_system_tests::engines::Kind;

use super::start;

#[test]
fn random_dax_on_postgres_agrees_with_the_evaluator() {
    let Some(engine) = start(Kind::Postgres) else { return };
    let mut open = on_postgres(settings(), engine.url().expect("a server has a URL"));
    let report = run(Run { seed: 15, worlds: 8, queries: 40 }, &mut open).expect("worlds that load");
    assert!(report.differences.is_empty(), "{}", report.differences.join("\n"));
    assert!(report.answered * 3 > report.queries * 2, "{report:?}");
}
