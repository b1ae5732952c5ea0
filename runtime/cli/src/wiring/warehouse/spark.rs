//! Opens a connection to a server that supports Spark Connect.
//!
//! In: `warehouse` of the configuration. Out: an open warehouse, or the problem at its key. No problem shows the URL,
//! which may contain a token.

use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_warehouse_spark::{ConnectError, SparkSettings, SparkWarehouse};

use super::{mark, server};
use crate::config::WarehouseConfig;

/// Opens the first session and runs `init` in it.
pub(super) async fn connect(config: &WarehouseConfig) -> Result<SparkWarehouse, Diagnostic> {
    let server = server(config)?;
    let settings = SparkSettings {
        url: server.url,
        init: server.init,
        connections: server.connections,
        connect_timeout: server.connect_timeout,
    };
    terrane_warehouse_spark::connect(&settings).await.map_err(|error| explain(config, &error))
}

fn explain(config: &WarehouseConfig, error: &ConnectError) -> Diagnostic {
    let (place, hint) = match error {
        ConnectError::Init { index, .. } => (
            config.init.get(*index).map(|statement| &statement.place),
            "Correct the statement. `init` runs in each new session, so it must be repeatable.",
        ),
        ConnectError::Url(_) | ConnectError::RootCertificate(_) => {
            (config.place.as_ref(), "Check `warehouse.url` or SERVICE_WAREHOUSE__URL.")
        }
        ConnectError::Credentials(_) => (config.place.as_ref(), "Check `token` in `warehouse.url`."),
        ConnectError::Connection(_) => (
            config.place.as_ref(),
            "Check that the server of Spark Connect is running, and check host, port and `use_ssl` in `warehouse.url`.",
        ),
    };
    mark(place, Diagnostic::error(Code::NoWarehouse, error.to_string()).hint(hint))
}
