//! The engines on which the tests run projects.
//!
//! Out: their names in a project. Not here: starting them.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    DuckDb,
    Postgres,
    /// PostgreSQL through its ADBC driver instead of the connector of the type `postgres`.
    PostgresThroughAdbc,
    MariaDb,
    Sqlite,
    /// Sail, or the server that the environment names.
    Spark,
}

impl Kind {
    /// Returns the name of the engine in `warehouse.type`, which is also the name of its dialect.
    pub fn warehouse(self) -> &'static str {
        match self {
            Kind::DuckDb => "duckdb",
            Kind::Postgres | Kind::PostgresThroughAdbc => "postgres",
            Kind::MariaDb => "mysql",
            Kind::Sqlite => "sqlite",
            Kind::Spark => "spark",
        }
    }
    /// Returns the name of the engine in messages of tests.
    pub fn label(self) -> &'static str {
        match self {
            Kind::PostgresThroughAdbc => "postgres through adbc",
            _ => self.warehouse(),
        }
    }

    pub fn is_postgres(self) -> bool {
        matches!(self, Kind::Postgres | Kind::PostgresThroughAdbc)
    }
}
