//! The ADBC drivers that `cargo xtask setup` fetches.

use std::path::PathBuf;

use super::Missing;

const POSTGRES: &str = "postgresql";

/// Returns the path of a driver's library, which may be missing.
pub fn driver(name: &str) -> PathBuf {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    crate::path(&format!(".prepared/adbc/{prefix}adbc_driver_{name}{suffix}"))
}

pub(super) fn missing() -> Option<Missing> {
    let driver = driver(POSTGRES);
    (!driver.is_file()).then(|| Missing(format!("{} is missing; run `cargo xtask adbc postgresql`", driver.display())))
}

/// Returns the environment variables that configure a project to use the driver for the server of a URL.
pub(super) fn variables(url: String) -> Vec<(String, String)> {
    vec![
        ("SERVICE_WAREHOUSE__ADBC__DRIVER".to_owned(), driver(POSTGRES).display().to_string()),
        ("SERVICE_WAREHOUSE__ADBC__OPTIONS".to_owned(), serde_json::json!({"uri": url}).to_string()),
    ]
}
