//! The settings of pre-aggregations, and the place of their tables.

use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use terrane_app::ports::rollup_tables::RollupPlace;
use terrane_app::preaggregations::PreaggregationSettings;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_store::StateStore;

use super::security::server_secret;
use crate::config::Config;
use crate::failure::Failure;
use crate::project::Project;

/// The file of the tables of a DuckDB warehouse.
const DEFAULT_PATH: &str = ".terrane/preaggregations.duckdb";
/// The time that a server may take to notice a new generation, with a margin for clocks that differ.
const GRACE: Duration = Duration::from_secs(60);

/// Returns the place of the tables; `None` if pre-aggregations are turned off. Servers with one state database and one
/// warehouse share a place. Tables of other servers in the same schema have different names.
///
/// # Errors
/// The state database is unavailable.
pub async fn place(project: &Project, store: &StateStore) -> Result<Option<RollupPlace>, Failure> {
    if !project.config.pre_aggregations.enabled {
        return Ok(None);
    }
    let secret = server_secret(store, "preaggregations").await?;
    let mut hash = Sha256::new();
    hash.update(secret);
    hash.update(identity(project));
    let target = format!("r{}", hex::encode(&hash.finalize()[..6]));
    Ok(Some(RollupPlace { target, schema: project.config.pre_aggregations.schema.clone() }))
}

/// Returns a string that identifies the location of the tables; only its digest is used.
fn identity(project: &Project) -> String {
    let warehouse = &project.config.warehouse;
    let url = warehouse.url.as_ref().map(|url| without_password(url.expose())).unwrap_or_default();
    let file = match warehouse.kind.as_str() {
        "duckdb" => file_of(project).map(|file| file.display().to_string()).unwrap_or_default(),
        _ => String::new(),
    };
    format!("{:?}", (&warehouse.kind, url, file, &project.config.pre_aggregations.schema))
}

/// Returns a URL without its password or token. These may change although the database is the same.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    if scheme == "sc" {
        let parts: Vec<&str> = rest.split(';').filter(|part| !part.starts_with("token=")).collect();
        return format!("{scheme}://{}", parts.join(";"));
    }
    match rest.rsplit_once('@') {
        Some((user, place)) => format!("{scheme}://{}@{place}", user.split(':').next().unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// Returns the file of the tables of a DuckDB warehouse.
///
/// # Errors
/// The file is outside the project.
pub(super) fn file_of(project: &Project) -> Result<PathBuf, Diagnostic> {
    match &project.config.pre_aggregations.path {
        Some(path) => project.folder.inside(&path.value).map_err(|problem| path.place.mark(problem)),
        None => project.folder.inside(DEFAULT_PATH),
    }
}

pub(super) fn settings(config: &Config) -> PreaggregationSettings {
    let query = config.query.timeout_seconds.max(config.query.export_timeout_seconds);
    let longest = query.max(config.jobs.timeout_seconds as f64);
    PreaggregationSettings {
        build_timeout: Duration::from_secs(config.pre_aggregations.build_timeout_seconds),
        refresh_every: Duration::from_secs(config.pre_aggregations.refresh_seconds),
        // A response begins within the longest time limit. Reading the response may take the same time once more.
        drop_after: Duration::from_secs_f64(longest * 2.0) + GRACE,
        history: Duration::from_secs(config.pre_aggregations.history_days * 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn url_with_another_password_is_the_same_location() {
        let place = "postgres://me@db:5432/shop";
        assert_eq!(without_password("postgres://me:a@b@db:5432/shop"), place);
        assert_eq!(without_password(place), place);
        assert_eq!(without_password("postgres://db/shop"), "postgres://db/shop");
        let spark = "sc://spark:15002/;x-databricks-cluster-id=7";
        assert_eq!(without_password("sc://spark:15002/;token=a@b;x-databricks-cluster-id=7"), spark);
        assert_eq!(without_password(spark), spark);
    }
}
