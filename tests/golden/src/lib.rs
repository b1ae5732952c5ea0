//! Shared pieces of these tests: the real DuckDB profile, without WebAssembly.
//!
//! In: what `plugins/dialect-duckdb` says natively. Out: the checked profile that the host would make
//! of it. A system test proves that the component says the same.

use terrane_compiler::sql::profile::{DialectProfile, RawProfile};

pub mod case;
mod from_sdk;

/// The profile of the first-party DuckDB dialect.
///
/// # Panics
/// Where the profile doesn't pass the host's checks: then the dialect or the checks are broken.
pub fn duckdb_profile() -> DialectProfile {
    DialectProfile::check(duckdb_raw_profile()).unwrap_or_else(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        panic!("the DuckDB profile was refused: {}", faults.join("; "))
    })
}

/// The same before the checks: what a test can spoil.
pub fn duckdb_raw_profile() -> RawProfile {
    from_sdk::raw_profile(dialect_duckdb::profile())
}
