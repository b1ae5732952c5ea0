//! The schema of the state database, as a list of migrations for each engine.
//!
//! In: the files under `migrations/`, which are part of the program. Out: sqlx's [`Migrator`]. Both engines have the
//! same versions, so that a dump of one engine can be restored into the other. Not here: sqlx's macro `migrate!`, which
//! reads the folder itself, but compiles all of sqlx a second time, for the machine that builds.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// Lists the version, description and text of each migration of one engine. sqlx stores the checksum of each applied
/// migration, so a released file must never change.
macro_rules! texts {
    ($engine:literal) => {
        [
            (1, "server starts", include_str!(concat!("../migrations/", $engine, "/0001_server_starts.sql"))),
            (2, "credentials", include_str!(concat!("../migrations/", $engine, "/0002_credentials.sql"))),
            (3, "leases", include_str!(concat!("../migrations/", $engine, "/0003_leases.sql"))),
            (4, "sessions of guests", include_str!(concat!("../migrations/", $engine, "/0004_sessions_of_guests.sql"))),
            (5, "registered cubes", include_str!(concat!("../migrations/", $engine, "/0005_registered_cubes.sql"))),
            (6, "rights of sessions", include_str!(concat!("../migrations/", $engine, "/0006_rights_of_sessions.sql"))),
            (7, "revoked tokens", include_str!(concat!("../migrations/", $engine, "/0007_revoked_tokens.sql"))),
            (8, "server secrets", include_str!(concat!("../migrations/", $engine, "/0008_server_secrets.sql"))),
            (9, "data versions", include_str!(concat!("../migrations/", $engine, "/0009_data_versions.sql"))),
            (10, "jobs", include_str!(concat!("../migrations/", $engine, "/0010_jobs.sql"))),
            (11, "preaggregations", include_str!(concat!("../migrations/", $engine, "/0011_preaggregations.sql"))),
            (
                12,
                "targets of queries",
                include_str!(concat!("../migrations/", $engine, "/0012_targets_of_queries.sql")),
            ),
            (13, "executed queries", include_str!(concat!("../migrations/", $engine, "/0013_executed_queries.sql"))),
            (14, "governance", include_str!(concat!("../migrations/", $engine, "/0014_governance.sql"))),
            (15, "guardrails", include_str!(concat!("../migrations/", $engine, "/0015_guardrails.sql"))),
            (16, "budgets", include_str!(concat!("../migrations/", $engine, "/0016_budgets.sql"))),
            (17, "profiles", include_str!(concat!("../migrations/", $engine, "/0017_profiles.sql"))),
            (18, "monitors", include_str!(concat!("../migrations/", $engine, "/0018_monitors.sql"))),
            (19, "deliveries", include_str!(concat!("../migrations/", $engine, "/0019_deliveries.sql"))),
            (20, "partition filters", include_str!(concat!("../migrations/", $engine, "/0020_partition_filters.sql"))),
            (21, "newest alerts", include_str!(concat!("../migrations/", $engine, "/0021_newest_alerts.sql"))),
            (
                22,
                "monitors of metrics",
                include_str!(concat!("../migrations/", $engine, "/0022_monitors_of_metrics.sql")),
            ),
            (23, "data tests", include_str!(concat!("../migrations/", $engine, "/0023_data_tests.sql"))),
            (24, "jobs of profiles", include_str!(concat!("../migrations/", $engine, "/0024_jobs_of_profiles.sql"))),
            (
                25,
                "bytes of guardrails",
                include_str!(concat!("../migrations/", $engine, "/0025_bytes_of_guardrails.sql")),
            ),
            (26, "sizes of queries", include_str!(concat!("../migrations/", $engine, "/0026_sizes_of_queries.sql"))),
            (
                27,
                "members of queries",
                include_str!(concat!("../migrations/", $engine, "/0027_members_of_queries.sql")),
            ),
        ]
    };
}

const SQLITE: [(i64, &str, &str); 27] = texts!("sqlite");
const POSTGRES: [(i64, &str, &str); SQLITE.len()] = texts!("postgres");

/// The newest version of the schema.
pub(crate) const NEWEST: i64 = SQLITE[SQLITE.len() - 1].0;

pub(crate) fn sqlite() -> Migrator {
    migrator(&SQLITE)
}

pub(crate) fn postgres() -> Migrator {
    migrator(&POSTGRES)
}

/// Creates a migrator that takes no lock, because the surrounding transaction holds one.
fn migrator(texts: &'static [(i64, &'static str, &'static str)]) -> Migrator {
    let migration = |(version, description, text): &(i64, &'static str, &'static str)| {
        Migration::new(*version, (*description).into(), MigrationType::Simple, (*text).into_sql_str(), false)
    };
    let mut migrator = Migrator::with_migrations(texts.iter().map(migration).collect());
    migrator.set_locking(false);
    migrator
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is missing in the list would never be applied.
    #[test]
    fn every_file_is_listed() {
        for (engine, migrator) in [("sqlite", sqlite()), ("postgres", postgres())] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(engine);
            let files = std::fs::read_dir(folder).unwrap();
            let mut names: Vec<String> =
                files.map(|file| file.unwrap().file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            let listed: Vec<String> = migrator
                .iter()
                .map(|migration| format!("{:04}_{}.sql", migration.version, migration.description.replace(' ', "_")))
                .collect();
            assert_eq!(listed, names, "{engine}");
        }
        assert_eq!(sqlite().iter().map(|migration| migration.version).max(), Some(NEWEST));
    }

    /// Existing databases contain the SHA-384 of each migration, and refuse a migration with another one.
    #[test]
    fn checksums_are_those_of_existing_databases() {
        const SERVER_STARTS: &str =
            "4c10ac5d1567f93bf8effa0750fe5f0b90a52185ba86cf414d1c14081c6e7c6db3746f218b9c7368bb3f9d6cc0576e56";
        let first = sqlite();
        let checksum = &first.iter().next().unwrap().checksum;
        assert_eq!(hex::encode(checksum), SERVER_STARTS);
    }
}
