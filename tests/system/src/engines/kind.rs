//! The engines that the tests run projects on.
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
    /// Returns the name in `warehouse.type` and of the dialect.
    pub fn warehouse(self) -> &'static str {
        match self {
            Kind::DuckDb => "duckdb",
            Kind::Postgres => "postgres",
            Kind::MariaDb => "mysql",
            Kind::Sqlite => "sqlite",
        }
    }
}
