//! The settings of a warehouse on Spark, and errors of opening it.

use std::fmt;
use std::time::Duration;

use terrane_app::ports::warehouse::{WarehouseError, WarehouseErrorKind};

use crate::failure::{Failure, unavailable};
use crate::url::UrlError;

/// The operator's settings.
#[derive(Clone)]
pub struct SparkSettings {
    /// The URL, which may contain a token. It is never logged and never part of an error.
    pub url: String,
    /// Statements that run in each new session, in order.
    pub init: Vec<String>,
    /// The largest number of statements that run at the same time.
    pub connections: usize,
    /// The time limit for opening a session, without its `init`.
    pub connect_timeout: Duration,
}

impl fmt::Debug for SparkSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SparkSettings")
            .field("url", &"***")
            .field("init", &self.init)
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

/// The reason why a warehouse could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("`warehouse.url` is not a URL of Spark Connect: {0}")]
    Url(#[from] UrlError),
    #[error("cannot read the certificate authority of `sslrootcert`: {0}")]
    RootCertificate(String),
    #[error("the server refused the credentials: {}", .0.message)]
    Credentials(WarehouseError),
    #[error("spark cannot be reached: {}", .0.message)]
    Connection(WarehouseError),
    #[error("`warehouse.init[{index}]` failed: {}\n  in: {statement}", .error.message)]
    Init { index: usize, statement: String, error: WarehouseError },
}

impl ConnectError {
    /// Classifies the failure of opening a session.
    pub(crate) fn of(failure: Failure) -> Self {
        match failure.is_credentials {
            true => ConnectError::Credentials(failure.error),
            false => ConnectError::Connection(failure.error),
        }
    }

    /// Converts the error for a statement that needed a new session.
    pub(crate) fn into_warehouse_error(self) -> WarehouseError {
        match self {
            ConnectError::Credentials(error) | ConnectError::Connection(error) => {
                WarehouseError { kind: WarehouseErrorKind::Unavailable, ..error }
            }
            ConnectError::Init { ref error, .. } => WarehouseError { message: self.to_string(), ..error.clone() },
            ConnectError::Url(_) | ConnectError::RootCertificate(_) => unavailable(self.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_never_shown() {
        let settings = SparkSettings {
            url: "sc://h/;token=hidden".to_owned(),
            init: Vec::new(),
            connections: 1,
            connect_timeout: Duration::from_secs(1),
        };
        assert!(!format!("{settings:?}").contains("hidden"));
    }
}
