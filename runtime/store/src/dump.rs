//! The state as text, for backups and for moving it to a database of either engine.
//!
//! JSON lines: a header with the versions and the number of rows of each table, the rows, and the SHA-256 of all lines
//! before the last. Rows contain the hashes of keys and passwords, so a dump must stay secret. The dump omits data of
//! one database and its processes: `server_starts`, `server_secrets`, `leases`, `data_versions`, `jobs`,
//! `executed_queries`, `budget_*`, `profiles` and `data_test_runs`. It also omits the state of tables that servers can
//! rebuild (`preagg_*`).

mod restore;
mod write;

pub use restore::{RestoreError, Restored};
pub use write::DumpError;

const FORMAT: &str = "terrane-state";
const FORMAT_VERSION: u64 = 1;
/// The number of rows that are read or written at once.
const PAGE: usize = 500;

/// A table of the dump. All columns are strings, except those in `numbers`.
struct Table {
    name: &'static str,
    /// The names of the columns. The first one is the primary key.
    columns: &'static [&'static str],
    numbers: &'static [&'static str],
}

impl Table {
    fn is_number(&self, column: &str) -> bool {
        self.numbers.contains(&column)
    }
}

/// The tables. Each table follows the tables that it references.
const TABLES: [Table; 15] = [
    Table {
        name: "users",
        columns: &["username", "password_hash", "scopes", "caller", "tenant", "created_at", "disabled_at"],
        numbers: &["created_at", "disabled_at"],
    },
    Table {
        name: "api_keys",
        columns: &["id", "name", "secret_hash", "scopes", "caller", "tenant", "created_at", "expires_at", "revoked_at"],
        numbers: &["created_at", "expires_at", "revoked_at"],
    },
    Table {
        name: "sessions",
        columns: &["id", "username", "created_at", "ended_at", "caller", "scopes", "tenant", "is_guest"],
        numbers: &["created_at", "ended_at", "is_guest"],
    },
    Table {
        name: "refresh_tokens",
        columns: &["hash", "session_id", "expires_at", "used_at"],
        numbers: &["expires_at", "used_at"],
    },
    Table {
        name: "registered_cubes",
        columns: &["name", "entry", "registered_by", "registered_at"],
        numbers: &["registered_at"],
    },
    Table { name: "revoked_tokens", columns: &["id", "revoked_at"], numbers: &["revoked_at"] },
    Table {
        name: "governance_records",
        columns: &["key", "kind", "artifact", "unique_name", "version", "sequence", "body"],
        numbers: &["version", "sequence"],
    },
    Table { name: "governance_history", columns: &crate::governance::HISTORY, numbers: &["sequence", "at", "version"] },
    Table {
        name: "guardrails",
        columns: &[
            "subject",
            "version",
            "sequence",
            "is_removed",
            "max_execution_us",
            "max_rows_returned",
            "require_time_filter",
            "require_partition_filter",
            "max_cost",
            "max_scan_bytes",
            "daily_budget",
            "monthly_budget",
            "alert_at_percent",
            "updated_by",
            "updated_at",
        ],
        numbers: &[
            "version",
            "sequence",
            "is_removed",
            "max_execution_us",
            "max_rows_returned",
            "require_time_filter",
            "require_partition_filter",
            "max_cost",
            "max_scan_bytes",
            "daily_budget",
            "monthly_budget",
            "alert_at_percent",
            "updated_at",
        ],
    },
    Table { name: "monitors", columns: &crate::monitors::MONITORS, numbers: &crate::monitors::MONITOR_NUMBERS },
    Table { name: "detections", columns: &crate::monitors::DETECTIONS, numbers: &crate::monitors::DETECTION_NUMBERS },
    Table { name: "alerts", columns: &crate::monitors::ALERTS, numbers: &crate::monitors::ALERT_NUMBERS },
    Table {
        name: "deliveries",
        columns: &crate::deliveries::DELIVERIES,
        numbers: &crate::deliveries::DELIVERY_NUMBERS,
    },
    Table { name: "channel_lanes", columns: &crate::deliveries::LANES, numbers: &crate::deliveries::LANE_NUMBERS },
    Table { name: "audit_log", columns: &crate::audit::COLUMNS, numbers: &["sequence", "at", "alike"] },
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;
    use crate::statement::Statement;
    use crate::store::StateStore;

    /// Fails if a migration adds a table or column that dumps omit.
    #[tokio::test]
    async fn every_table_and_column_is_in_a_dump() {
        let folder = tempfile::tempdir().unwrap();
        let store = StateStore::open("sqlite://state.db", folder.path()).await.unwrap();
        let columns = "SELECT m.name AS in_table, c.name AS named, c.type AS kind FROM sqlite_master AS m, \
                       pragma_table_info(m.name) AS c WHERE m.type = 'table'";
        let left_out = [
            "server_starts",
            "server_secrets",
            "leases",
            "data_versions",
            "jobs",
            "executed_queries",
            "budget_leases",
            "budget_alerts",
            "profiles",
            "data_test_runs",
            "_sqlx_migrations",
        ];
        let mut found = 0;
        for row in store.database.all(Statement::new(columns)).await.unwrap() {
            let (table, column) = (row.text("in_table").unwrap(), row.text("named").unwrap());
            if left_out.contains(&table.as_str()) || table.starts_with("preagg_") {
                continue;
            }
            let dumped = TABLES.iter().find(|dumped| dumped.name == table).unwrap_or_else(|| panic!("{table}"));
            assert!(dumped.columns.contains(&&*column), "{table}.{column}");
            assert_eq!(dumped.is_number(&column), row.text("kind").unwrap() == "BIGINT", "{table}.{column}");
            found += 1;
        }
        assert_eq!(found, TABLES.iter().map(|table| table.columns.len()).sum::<usize>());
    }
}
