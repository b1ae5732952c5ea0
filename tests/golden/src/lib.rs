//! Shared parts of the golden tests, in particular the first-party profiles without WebAssembly.
//!
//! In: the profiles that the components under `plugins/` return natively. Out: the profiles after the host's checks. A
//! system test checks that the components return the same profiles.

use terrane_compiler::sql::dialect_profile::{DialectProfile, RawProfile};
use terrane_sdk::dialect::Profile;

pub mod case;
mod from_sdk;
pub mod large;
pub mod large_project;

/// Returns the profiles of the first-party dialects, as their authors wrote them.
pub fn first_party_profiles() -> Vec<Profile> {
    vec![
        dialect_bigquery::profile(),
        dialect_clickhouse::profile(),
        dialect_duckdb::profile(),
        dialect_mysql::profile(),
        dialect_postgres::profile(),
        dialect_redshift::profile(),
        dialect_snowflake::profile(),
        dialect_spark::profile(),
        dialect_sqlite::profile(),
        dialect_trino::profile(),
    ]
}

/// Returns the profile of the first-party DuckDB dialect.
///
/// # Panics
/// The profile does not pass the host's checks, so the dialect or the checks are broken.
pub fn duckdb_profile() -> DialectProfile {
    checked(dialect_duckdb::profile())
}

/// Returns the profile of the first-party PostgreSQL dialect.
///
/// # Panics
/// The profile does not pass the host's checks, so the dialect or the checks are broken.
pub fn postgres_profile() -> DialectProfile {
    checked(dialect_postgres::profile())
}

/// Returns the profile of the first-party MySQL dialect.
///
/// # Panics
/// The profile does not pass the host's checks, so the dialect or the checks are broken.
pub fn mysql_profile() -> DialectProfile {
    checked(dialect_mysql::profile())
}

/// Returns the profile of the first-party SQLite dialect.
///
/// # Panics
/// The profile does not pass the host's checks, so the dialect or the checks are broken.
pub fn sqlite_profile() -> DialectProfile {
    checked(dialect_sqlite::profile())
}

/// Returns the profile of the first-party Spark dialect.
///
/// # Panics
/// The profile does not pass the host's checks, so the dialect or the checks are broken.
pub fn spark_profile() -> DialectProfile {
    checked(dialect_spark::profile())
}

/// Returns a dialect's profile before the checks.
pub fn raw(profile: Profile) -> RawProfile {
    from_sdk::raw_profile(profile)
}

/// Returns a dialect's profile after the host's checks.
///
/// # Panics
/// The profile does not pass the host's checks, so the dialect or the checks are broken.
pub fn checked(profile: Profile) -> DialectProfile {
    let raw = from_sdk::raw_profile(profile);
    let name = raw.name.clone();
    DialectProfile::check(raw).unwrap_or_else(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("the profile {name} was refused: {}", faults.join("; "))
    })
}

/// Returns the unchecked profile of DuckDB, which a test can change.
pub fn duckdb_raw_profile() -> RawProfile {
    from_sdk::raw_profile(dialect_duckdb::profile())
}

/// Returns the unchecked profile of SQLite, whose templates a test can use.
pub fn sqlite_raw_profile() -> RawProfile {
    from_sdk::raw_profile(dialect_sqlite::profile())
}
