//! Connections to the database: opening them, and running statements on them.
//!
//! In: the driver and its options; the text of a statement. Out: events with the columns and the rows. All functions
//! block. A connection runs one statement at a time. Values are never bound.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use adbc_core::error::{Error, Status};
use adbc_core::options::{OptionDatabase, OptionStatement, OptionValue};
use adbc_core::{Connection as _, Database as _, Driver as _, Optionable as _, Statement as _};
use adbc_driver_manager::{ManagedConnection, ManagedDatabase, ManagedStatement};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_array_of_drivers::RecordBatchReader;
use arrow_array_of_drivers::ffi::FFI_ArrowSchema;
use terrane_app::ports::warehouse::{WarehouseError, WarehouseErrorKind};

use crate::columns::Columns;
use crate::crossing;
use crate::failure::{self, Failures};
use crate::library::LoadedDriver;
use crate::progress::{Control, Event, Events};
use crate::settings::{AdbcSettings, ConnectError};

/// The statement that checks a connection.
const PROBE: &str = "SELECT 1";

/// The option that makes PostgreSQL's driver read rows without `COPY`, which accepts only queries.
const USE_COPY: &str = "adbc.postgresql.use_copy";

/// Opens connections.
pub(crate) struct Opener {
    pub(crate) failures: Failures,
    driver: LoadedDriver,
    options: Vec<(String, String)>,
    session: Vec<String>,
    /// The database, which opens one connection at a time; `None` before the first connection, and after a connection
    /// that did not open in time.
    database: Mutex<Option<ManagedDatabase>>,
}

impl Opener {
    pub(crate) fn new(driver: LoadedDriver, settings: &AdbcSettings) -> Opener {
        Opener {
            failures: Failures { warehouse: settings.dialect.as_str().into() },
            driver,
            options: settings.options.clone(),
            session: settings.session.clone(),
            database: Mutex::new(None),
        }
    }

    /// Opens a connection that runs statements of queries.
    ///
    /// # Errors
    /// [`ConnectError`] names the statement that failed. No error shows the value of an option.
    pub(crate) fn open(&self) -> Result<Session, ConnectError> {
        let mut session = self.connect()?;
        for (index, statement) in self.session.iter().enumerate() {
            session.command(statement).map_err(|error| ConnectError::Session {
                index,
                statement: statement.trim().to_owned(),
                error,
            })?;
        }
        Ok(session)
    }

    /// Runs the statements of `init` on a connection of their own, which may write.
    ///
    /// # Errors
    /// Returns the same errors as [`Opener::open`].
    pub(crate) fn run_init(&self, statements: &[String]) -> Result<(), ConnectError> {
        if statements.is_empty() {
            return Ok(());
        }
        let mut session = self.connect()?;
        for (index, statement) in statements.iter().enumerate() {
            session.command(statement).map_err(|error| ConnectError::Init {
                index,
                statement: statement.trim().to_owned(),
                error,
            })?;
        }
        // A driver may read the database's types only once.
        self.forget_database();
        Ok(())
    }

    /// Creates the database again for the next connection, because a call to the current one does not return.
    pub(crate) fn forget_database(&self) {
        let database = self.database.lock().unwrap_or_else(PoisonError::into_inner).take();
        // Releasing a database waits for its calls.
        std::thread::spawn(move || drop(database));
    }

    /// Converts the error of a connection that a statement needed.
    pub(crate) fn warehouse_error(&self, error: ConnectError) -> WarehouseError {
        match error {
            ConnectError::Credentials(error) | ConnectError::Connection(error) => error,
            ConnectError::Session { ref error, .. } => WarehouseError { message: error.to_string(), ..error.clone() },
            error => self.failures.unavailable(error.to_string()),
        }
    }

    fn connect(&self) -> Result<Session, ConnectError> {
        let connection = self.database()?.new_connection().map_err(|error| self.explain(error))?;
        Ok(Session { connection, failures: self.failures.clone() })
    }

    fn database(&self) -> Result<ManagedDatabase, ConnectError> {
        let known = self.database.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(database) = known {
            return Ok(database);
        }
        let options = self
            .options
            .iter()
            .map(|(name, value)| (OptionDatabase::Other(name.clone()), OptionValue::String(value.clone())));
        let database = self.driver.driver.clone().new_database_with_opts(options);
        let database = database.map_err(|error| self.explain(error))?;
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = Some(database.clone());
        Ok(database)
    }

    fn explain(&self, error: Error) -> ConnectError {
        let error = failure::without_values(error, &self.options);
        if failure::is_credentials(&error) {
            return ConnectError::Credentials(self.failures.connecting(&error));
        }
        match error.status {
            Status::InvalidArguments | Status::NotImplemented | Status::InvalidState | Status::NotFound => {
                ConnectError::Options(error.message)
            }
            _ => ConnectError::Connection(self.failures.connecting(&error)),
        }
    }
}

/// An open connection.
pub(crate) struct Session {
    connection: ManagedConnection,
    failures: Failures,
}

impl Session {
    /// Runs a statement and sends its columns and rows.
    ///
    /// # Errors
    /// Returns the database's error.
    pub(crate) fn rows(
        &mut self,
        text: &str,
        control: &Control,
        events: &mut Events<'_>,
    ) -> Result<(), WarehouseError> {
        let Some(mut statement) = self.armed(text, control)? else { return Ok(()) };
        let reader = match statement.execute() {
            Err(error) if failure::is_syntax(&error) && reads_without_copy(&mut statement) => {
                // The first error has the better text if the statement is refused for the same reason again.
                statement.execute().map_err(|second| if failure::is_syntax(&second) { error } else { second })
            }
            result => result,
        };
        let reader = reader.map_err(|error| self.classified(&error))?;
        send_rows(reader, &self.failures, events).map_err(|failure| match failure {
            Interruption::Driver(error) => self.classified(&error),
            Interruption::Rows(error) => error,
        })
    }

    /// Sends the columns of a statement without running it.
    ///
    /// # Errors
    /// Returns the database's error.
    pub(crate) fn describe(
        &mut self,
        text: &str,
        control: &Control,
        events: &mut Events<'_>,
    ) -> Result<(), WarehouseError> {
        let Some(mut statement) = self.armed(text, control)? else { return Ok(()) };
        let columns = match statement.execute_schema() {
            Ok(schema) => exported(FFI_ArrowSchema::try_from(&schema)),
            Err(error) if error.status == Status::NotImplemented => {
                drop(statement);
                // The text may end with a comment, so the parenthesis is on its own line.
                let text = format!("SELECT * FROM (\n{text}\n) AS described LIMIT 0");
                let Some(mut statement) = self.armed(&text, control)? else { return Ok(()) };
                let reader = statement.execute().map_err(|error| self.classified(&error))?;
                exported(FFI_ArrowSchema::try_from(reader.schema().as_ref()))
            }
            Err(error) => return Err(self.classified(&error)),
        };
        let columns = columns.map_err(|error| self.failures.refused(error.to_string()))?;
        events.send(Event::Columns(Columns::new(&columns, &self.failures)?.schema));
        Ok(())
    }

    /// Checks that the database responds.
    ///
    /// # Errors
    /// Returns the database's error.
    pub(crate) fn probe(&mut self, control: &Control) -> Result<(), WarehouseError> {
        let Some(mut statement) = self.armed(PROBE, control)? else { return Ok(()) };
        let outcome = read_all(&mut statement);
        outcome.map_err(|error| WarehouseError { kind: WarehouseErrorKind::Unavailable, ..self.failures.of(&error) })
    }

    /// Runs a statement whose rows are not needed.
    fn command(&mut self, text: &str) -> Result<(), WarehouseError> {
        let mut statement = self.statement(text)?;
        statement.execute_update().map(drop).map_err(|error| self.failures.of(&error))
    }

    /// Returns a statement that `control` can cancel; `None` if the caller has left.
    fn armed(&mut self, text: &str, control: &Control) -> Result<Option<ManagedStatement>, WarehouseError> {
        let statement = self.statement(text)?;
        Ok(control.arm(statement.get_cancel_handle()).then_some(statement))
    }

    fn statement(&mut self, text: &str) -> Result<ManagedStatement, WarehouseError> {
        let prepared = self.connection.new_statement().and_then(|mut statement| {
            // Drivers append text to the statement, which may end with a comment.
            statement.set_sql_query(format!("{text}\n"))?;
            Ok(statement)
        });
        prepared.map_err(|error| self.failures.of(&error))
    }

    /// Classifies an error. If the error does not state its cause, the connection is checked.
    fn classified(&mut self, error: &Error) -> WarehouseError {
        let failure = self.failures.of(error);
        if !failure::is_unclear(error) {
            return failure;
        }
        let is_open = || {
            let mut statement = self.connection.new_statement()?;
            statement.set_sql_query(PROBE)?;
            read_all(&mut statement)
        };
        let is_open = catch_unwind(AssertUnwindSafe(is_open)).is_ok_and(|outcome| outcome.is_ok());
        let kind = if is_open { WarehouseErrorKind::Refused } else { WarehouseErrorKind::Unavailable };
        WarehouseError { kind, ..failure }
    }
}

/// Makes the result of a statement that is not a query readable, such as `EXPLAIN`. Returns false for other drivers.
fn reads_without_copy(statement: &mut ManagedStatement) -> bool {
    let option = OptionStatement::Other(USE_COPY.to_owned());
    statement.set_option(option, OptionValue::String("false".to_owned())).is_ok()
}

fn read_all(statement: &mut ManagedStatement) -> Result<(), Error> {
    statement.execute()?.try_for_each(|batch| batch.map(drop).map_err(Error::from))
}

/// The reason why the rows of a statement ended early.
enum Interruption {
    Driver(Error),
    /// The rows cannot be converted.
    Rows(WarehouseError),
}

/// Sends the columns and the rows of a statement.
fn send_rows(reader: impl RecordBatchReader, failures: &Failures, events: &mut Events<'_>) -> Result<(), Interruption> {
    let broken = |error: ArrowError| Interruption::Rows(failures.refused(error.to_string()));
    let schema = Arc::new(exported(FFI_ArrowSchema::try_from(reader.schema().as_ref())).map_err(broken)?);
    let columns = Columns::new(&schema, failures).map_err(Interruption::Rows)?;
    if columns.need_all_rows() {
        return send_all_rows(reader, &schema, &columns, events);
    }
    if !events.send(Event::Columns(columns.schema.clone())) {
        return Ok(());
    }
    for batch in reader {
        let batch = crossing::batch(batch.map_err(|error| Interruption::Driver(error.into()))?, &schema);
        let batch = columns.convert(&batch.map_err(broken)?).map_err(Interruption::Rows)?;
        if batch.num_rows() > 0 && !events.send(Event::Batch(batch)) {
            return Ok(());
        }
    }
    Ok(())
}

/// Sends the columns and the rows of a statement with columns whose types depend on all rows.
fn send_all_rows(
    reader: impl RecordBatchReader,
    schema: &SchemaRef,
    columns: &Columns,
    events: &mut Events<'_>,
) -> Result<(), Interruption> {
    let mut batches = Vec::new();
    for batch in reader {
        let batch = crossing::batch(batch.map_err(|error| Interruption::Driver(error.into()))?, schema);
        batches.push(batch.map_err(|error| Interruption::Rows(columns.broken(&error)))?);
    }
    let (schema, batches) = columns.convert_all(&batches).map_err(Interruption::Rows)?;
    let mut is_wanted = events.send(Event::Columns(schema));
    for batch in batches.into_iter().filter(|batch| batch.num_rows() > 0) {
        is_wanted = is_wanted && events.send(Event::Batch(batch));
    }
    Ok(())
}

fn exported<E: Into<Error>>(schema: Result<FFI_ArrowSchema, E>) -> Result<Schema, ArrowError> {
    let schema = schema.map_err(|error| ArrowError::SchemaError(error.into().message))?;
    crossing::schema(schema)
}
