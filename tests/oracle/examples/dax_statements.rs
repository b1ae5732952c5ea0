//! Prints the statements of DAX in each dialect, for `cargo xtask dialects`.
//!
//! In: a folder. Out: a file `DIALECT.json` for each dialect, with the statements of the queries whose answers the
//! engines' tests compare. Not here: parsers.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use terrane_golden_tests::{checked, first_party_profiles};
use terrane_oracle_tests::case::settings;
use terrane_oracle_tests::dax::answers::Suite;
use terrane_oracle_tests::product::translated::translated;

fn main() -> Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).context("usage: dax_statements FOLDER")?);
    for profile in first_party_profiles() {
        let (name, profile) = (profile.name.clone(), checked(profile));
        let mut statements: BTreeSet<String> = BTreeSet::new();
        for suite in [Suite::star(), Suite::snowflake("TIMESTAMP")] {
            let queries = translated(&settings(), &suite, profile.clone()).with_context(|| name.clone())?;
            statements.extend(queries.into_iter().flat_map(|query| query.statements));
        }
        ensure!(statements.len() > 100, "only {} statements of {name}", statements.len());
        let cases: Vec<Value> = statements.iter().map(|sql| json!({"sql": sql})).collect();
        std::fs::write(folder.join(format!("{name}.json")), Value::Array(cases).to_string())?;
    }
    Ok(())
}
