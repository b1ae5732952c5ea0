//! Prints the SQL of every case in every first-party dialect: the lines that differ from DuckDB's SQL, and whether a
//! parser of the dialect accepts the SQL as one statement.
//!
//! Quotes around names and placeholders differ in every line without a difference in meaning. They are therefore
//! reported once and omitted from the comparison; `first_party_profiles` checks them with the SDK's suite. The SQL in
//! the projects is not translated, because it is written for DuckDB.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};
use sqlparser::ast::{SetExpr, Statement};
use sqlparser::dialect::{Dialect, GenericDialect, dialect_from_str};
use sqlparser::parser::Parser;
use terrane_compiler::model::Model;
use terrane_compiler::sql::dialect_profile::{DialectProfile, PlaceholderStyle, RawProfile};
use terrane_golden_tests::case::{Case, cases, models, sql};
use terrane_golden_tests::{first_party_profiles, raw};

#[test]
fn differences_from_duckdb_match_their_snapshots() {
    let (models, cases) = (models(), cases());
    let (profiles, base): (Vec<_>, Vec<_>) =
        first_party_profiles().into_iter().map(raw).partition(|profile| profile.name != "duckdb");
    let base = checked(alike(base.into_iter().next().expect("DuckDB's profile")));
    for profile in profiles {
        let name = profile.name.clone();
        let mut text = habits(&profile);
        let (alike, own) = (checked(alike(profile.clone())), checked(profile));
        for (case, model, index) in queries(&cases, &models) {
            let compiled = |profile| sql(model, profile, &case.queries[index], &case.caller);
            let Ok(base) = compiled(&base) else { continue };
            let difference = match compiled(&alike) {
                Ok(sql) => changed_lines(&base, &sql),
                Err(error) => format!("refused: {error}\n"),
            };
            if !difference.is_empty() {
                let _ = write!(text, "\n## {}\n{difference}", title(case, index));
            }
        }
        let unread: Vec<String> = queries(&cases, &models)
            .filter_map(|(case, model, index)| {
                let sql = sql(model, &own, &case.queries[index], &case.caller).ok()?;
                let why = unread(&name, &sql)?;
                Some(format!("{}: {why}\n", title(case, index)))
            })
            .collect();
        if !unread.is_empty() {
            let _ = write!(text, "\n# what its parser does not read\n{}", unread.concat());
        }
        insta::with_settings!({ omit_expression => true, snapshot_path => "../snapshots/dialects", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name.as_str(), text);
        });
    }
}

/// Checks that every statement for DuckDB is a single statement that only reads.
#[test]
fn every_statement_is_one_select() {
    let (models, cases) = (models(), cases());
    let duckdb = terrane_golden_tests::duckdb_profile();
    for (case, model, index) in queries(&cases, &models) {
        if let Ok(sql) = sql(model, &duckdb, &case.queries[index], &case.caller) {
            assert_eq!(unread("duckdb", &sql), None, "{}\n{sql}", title(case, index));
        }
    }
}

fn queries<'a>(
    cases: &'a [Case],
    models: &'a std::collections::HashMap<String, Model>,
) -> impl Iterator<Item = (&'a Case, &'a Model, usize)> {
    cases.iter().flat_map(move |case| (0..case.queries.len()).map(move |index| (case, &models[&case.project], index)))
}

fn title(case: &Case, index: usize) -> String {
    if case.queries.len() == 1 { case.name.clone() } else { format!("{} {}", case.name, index + 1) }
}

fn checked(raw: RawProfile) -> DialectProfile {
    DialectProfile::check(raw).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// Returns the profile with DuckDB's quotes and placeholders.
fn alike(mut raw: RawProfile) -> RawProfile {
    raw.quoting.ident_open = "\"".to_owned();
    raw.quoting.ident_close = "\"".to_owned();
    raw.quoting.ident_escape = "\"\"".to_owned();
    raw.placeholders = PlaceholderStyle::DollarN;
    raw.max_params = raw.max_params.max(1_000);
    raw
}

fn habits(raw: &RawProfile) -> String {
    let placeholder = match raw.placeholders {
        PlaceholderStyle::Question => "?",
        PlaceholderStyle::DollarN => "$1",
        PlaceholderStyle::ColonN => ":1",
        PlaceholderStyle::AtPn => "@p1",
        PlaceholderStyle::Pyformat => "%(p1)s",
        PlaceholderStyle::None => "literals",
    };
    format!("names in {}…{}, values as {placeholder}\n", raw.quoting.ident_open, raw.quoting.ident_close)
}

fn changed_lines(base: &str, sql: &str) -> String {
    let diff = TextDiff::from_lines(base, sql);
    let mut text = String::new();
    for change in diff.iter_all_changes() {
        let sign = match change.tag() {
            ChangeTag::Equal => continue,
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
        };
        let _ = writeln!(text, "{sign}{}", change.value().trim_end_matches('\n'));
    }
    text
}

/// Returns an error if neither a parser of the dialect nor the generic parser accepts the SQL as exactly one query.
fn unread(dialect: &str, sql: &str) -> Option<String> {
    let own = dialect_from_str(dialect).unwrap_or_else(|| Box::new(GenericDialect {}));
    let why = not_one_query(&*own, sql)?;
    not_one_query(&GenericDialect {}, sql).map(|_| why)
}

fn not_one_query(dialect: &dyn Dialect, sql: &str) -> Option<String> {
    match Parser::parse_sql(dialect, sql) {
        Ok(statements) => match &statements[..] {
            [Statement::Query(query)] => match &*query.body {
                SetExpr::Select(_) | SetExpr::SetOperation { .. } => None,
                _ => Some("no SELECT".to_owned()),
            },
            other => Some(format!("{} statements", other.len())),
        },
        Err(error) => Some(error.to_string()),
    }
}
