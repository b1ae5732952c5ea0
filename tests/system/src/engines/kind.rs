//! The engines on which the tests run projects.
//!
//! In: nothing. Out: their names in a project. Deliberately absent: starting them.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    DuckDb,
    Postgres,
    MariaDb,
    Sqlite,
}

impl Kind {
    /// Returns the name of the engine in `warehouse.type`, which is also the name of its dialect.
    pub fn warehouse(self) -> &'static str {
        match self {
            Kind::DuckDb => "duckdb",
            Kind::Postgres => "postgres",
            Kind::MariaDb => "mysql",
            Kind::Sqlite => "sqlite",
        }
    }
}
