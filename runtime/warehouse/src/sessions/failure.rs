//! Converts errors of sqlx to errors of the port.

use std::future::Future;
use std::time::Duration;

use sqlx::error::DatabaseError;
use terrane_app::ports::warehouse::{RefusalCause, WarehouseError, WarehouseErrorKind};

/// Classifies the errors of one engine.
#[derive(Clone, Copy)]
pub(crate) struct Failed {
    /// The warehouse's type in a project file.
    pub(crate) warehouse: &'static str,
    /// Classifies an error of the database by the database's own code.
    pub(crate) kind_of: fn(&dyn DatabaseError) -> WarehouseErrorKind,
    /// Returns the cause of a refusal by the database.
    pub(crate) cause_of: fn(&dyn DatabaseError) -> RefusalCause,
}

impl Failed {
    pub(crate) fn because(self, error: &sqlx::Error) -> WarehouseError {
        let (kind, message) = match error {
            sqlx::Error::Database(error) => {
                let kind = (self.kind_of)(&**error);
                return WarehouseError {
                    cause: (self.cause_of)(&**error),
                    ..self.of_kind(kind, error.message().to_owned())
                };
            }
            sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => {
                (WarehouseErrorKind::Unavailable, error.to_string())
            }
            _ => (WarehouseErrorKind::Refused, error.to_string()),
        };
        self.of_kind(kind, message)
    }

    /// Returns the error of a connection that could not be opened.
    pub(crate) fn connecting(self, error: &sqlx::Error) -> WarehouseError {
        WarehouseError { kind: WarehouseErrorKind::Unavailable, ..self.because(error) }
    }

    pub(crate) fn refused(self, message: String) -> WarehouseError {
        self.of_kind(WarehouseErrorKind::Refused, message)
    }

    /// Returns the error for a column whose type has no Arrow type.
    pub(crate) fn unsupported_type(self, message: String) -> WarehouseError {
        WarehouseError { cause: RefusalCause::UnsupportedType, ..self.refused(message) }
    }

    fn of_kind(self, kind: WarehouseErrorKind, message: String) -> WarehouseError {
        WarehouseError { warehouse: self.warehouse.to_owned(), kind, cause: RefusalCause::Other, message, retries: 0 }
    }
}

pub(crate) fn timeout(warehouse: &str) -> WarehouseError {
    let message = "the statement exceeded its timeout".to_owned();
    WarehouseError {
        warehouse: warehouse.to_owned(),
        kind: WarehouseErrorKind::Timeout,
        cause: RefusalCause::Other,
        message,
        retries: 0,
    }
}

pub(super) fn unavailable(warehouse: &str, message: String) -> WarehouseError {
    WarehouseError {
        warehouse: warehouse.to_owned(),
        kind: WarehouseErrorKind::Unavailable,
        cause: RefusalCause::Other,
        message,
        retries: 0,
    }
}

/// Runs a connection attempt within the operator's time limit.
pub(crate) async fn within<T>(
    warehouse: &str,
    limit: Duration,
    connecting: impl Future<Output = Result<T, WarehouseError>>,
) -> Result<T, WarehouseError> {
    let seconds = limit.as_secs_f64();
    let too_late = |_| Err(unavailable(warehouse, format!("no connection within {seconds} seconds")));
    tokio::time::timeout(limit, connecting).await.unwrap_or_else(too_late)
}
