//! The adapter of the ports `Store`, `Credentials`, `Registrations`, `AuditLog`, `Leases`, `PreaggregationState`,
//! `ExecutedQueries`, `GovernanceRecords`, `GuardrailRecords`, `Budgets`, `ProfileRecords` and `DataTestRecords` on
//! sqlx: SQLite in a file, or PostgreSQL for several servers.
//!
//! In: the URL of `state.url`. Out: an open, migrated database. A write is on disk before its function
//! returns. A database that a newer program has migrated is refused. Each statement is written once
//! (`statement`), and runs on either engine (`database`).

mod audit;
mod budgets;
mod credentials;
mod data_tests;
mod database;
mod deliveries;
mod dump;
mod executed_queries;
mod governance;
mod guardrails;
mod inspect;
mod invalidations;
mod jobs;
mod leases;
mod location;
mod migrations;
mod monitors;
mod open;
mod preaggregations;
mod profiles;
mod registrations;
mod retention;
mod row;
mod statement;
mod store;

pub use dump::{DumpError, RestoreError, Restored};
pub use inspect::{Condition, InspectError, Whereabouts, inspect, whereabouts};
pub use location::StateUrlError;
pub use open::OpenError;
pub use store::StateStore;
