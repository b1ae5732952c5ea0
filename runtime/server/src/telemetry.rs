//! The log: structured events, one on a line (`runtime/docs/reference/operations.md`, "Log").
//!
//! In: settings, a clock, and every `tracing` event of the process. Out: lines with `timestamp`, `level`, `event`,
//! `correlation_id` and the event's own fields. A separate thread writes them from a bounded buffer. If the log cannot
//! be written, the server continues; lines are dropped and counted. Secrets are masked by the names of fields and by
//! their form. Submodules contain the metrics and the observer of requests and queries. Not here: the audit log, and
//! sending spans.

mod file;
mod layer;
mod line;
mod mask;
pub mod metrics;
mod watch;
mod writer;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use terrane_app::ports::clock::Clock;
use tracing::Level;
use tracing_subscriber::layer::SubscriberExt as _;

use layer::LogLayer;
use line::LogLine;
pub use mask::mask;
pub use watch::Watch;
use writer::{Note, Sink, Writer};

/// The settings of the log (`SERVICE_LOG_…`).
#[derive(Debug, Clone)]
pub struct LogSettings {
    pub level: LogLevel,
    pub format: LogFormat,
    pub timestamps: bool,
    /// True to add the file and line of the code to each record.
    pub caller: bool,
    pub output: LogOutput,
    /// True to log the two events of each request.
    pub requests: bool,
    /// True to log the events of successful queries.
    pub queries: bool,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings {
            level: LogLevel::Info,
            format: LogFormat::Json,
            timestamps: true,
            caller: false,
            output: LogOutput::Stdout,
            requests: true,
            queries: true,
        }
    }
}

/// The lowest level that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Debug,
    Info,
    Warning,
    Error,
    /// Nothing is logged as critical; panics are written to standard error.
    Critical,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// `time LEVEL event name=value …` on one line.
    Console,
    /// Like `Console`, with colours and a line for each field.
    Pretty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOutput {
    Stdout,
    Stderr,
    File(LogFile),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    pub path: PathBuf,
    /// The largest size of a file in bytes. A file that would grow beyond it is renamed to `path.1`, the former
    /// `path.1` to `path.2` …
    pub max_size_bytes: u64,
    /// The number of files that are set aside.
    pub backup_count: u32,
}

/// An unknown level or format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not one of {known}")]
pub struct UnknownWord {
    found: String,
    known: &'static str,
}

impl std::str::FromStr for LogLevel {
    type Err = UnknownWord;

    /// Reads the name of a level, in upper or lower case.
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Ok(match word.to_ascii_uppercase().as_str() {
            "DEBUG" => LogLevel::Debug,
            "INFO" => LogLevel::Info,
            "WARNING" | "WARN" => LogLevel::Warning,
            "ERROR" => LogLevel::Error,
            "CRITICAL" => LogLevel::Critical,
            _ => return Err(UnknownWord { found: word.to_owned(), known: "DEBUG, INFO, WARNING, ERROR, CRITICAL" }),
        })
    }
}

impl std::str::FromStr for LogFormat {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        Ok(match word {
            "json" => LogFormat::Json,
            "console" => LogFormat::Console,
            "pretty" => LogFormat::Pretty,
            _ => return Err(UnknownWord { found: word.to_owned(), known: "json, console, pretty" }),
        })
    }
}

/// The reason why the log cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("cannot open the log file {}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("cannot start the log's thread: {0}")]
    Thread(io::Error),
    #[error("another log is already installed in this process")]
    Installed,
}

/// The running log. Writes the remaining lines when it is dropped.
#[derive(Debug)]
pub struct LogGuard {
    writer: Writer,
}

impl LogGuard {
    /// Returns the count of lost lines.
    pub fn dropped_lines(&self) -> DroppedLines {
        DroppedLines(self.writer.sink().clone())
    }
}

/// Counts the log lines that were lost because the buffer was full or writing failed.
#[derive(Debug, Clone)]
pub struct DroppedLines(Sink);

impl DroppedLines {
    pub fn count(&self) -> u64 {
        self.0.dropped_lines()
    }
}

/// Installs the log of the process, panics included.
///
/// # Errors
/// [`TelemetryError`]: the file cannot be opened, or there is a log already.
pub fn init(settings: &LogSettings, clock: Arc<dyn Clock>) -> Result<LogGuard, TelemetryError> {
    let (subscriber, guard) = subscriber(settings, clock)?;
    tracing::subscriber::set_global_default(subscriber).map_err(|_| TelemetryError::Installed)?;
    // At the level `CRITICAL` the log contains no errors, so panics go to standard error instead.
    if settings.level != LogLevel::Critical {
        log_panics();
    }
    Ok(guard)
}

/// Returns the log without installing it; a test sets it for one thread.
///
/// # Errors
/// Returns the same errors as [`init`].
pub fn subscriber(
    settings: &LogSettings,
    clock: Arc<dyn Clock>,
) -> Result<(impl tracing::Subscriber + Send + Sync + use<>, LogGuard), TelemetryError> {
    let target: Box<dyn io::Write + Send> = match &settings.output {
        LogOutput::Stdout => Box::new(io::stdout()),
        LogOutput::Stderr => Box::new(io::stderr()),
        LogOutput::File(file) => {
            let opened = file::RotatingFile::open(file);
            Box::new(opened.map_err(|error| TelemetryError::File { path: file.path.clone(), error })?)
        }
    };
    let writer = Writer::start(target, note(settings, clock.clone())).map_err(TelemetryError::Thread)?;
    let layer = LogLayer::new(settings.clone(), clock, writer.sink().clone());
    Ok((tracing_subscriber::registry().with(layer), LogGuard { writer }))
}

/// Returns the function that writes the line about lost lines. The line does not pass through the buffer, which is
/// full.
fn note(settings: &LogSettings, clock: Arc<dyn Clock>) -> Note {
    let (format, timestamps) = (settings.format, settings.timestamps);
    Box::new(move |count| {
        let mut out = Vec::new();
        let mut line = LogLine::start(format, timestamps.then(|| clock.now()), Level::WARN, &mut out);
        line.event("log_lines_dropped");
        line.unquoted("count", &count.to_string());
        line.finish();
        out
    })
}

/// Logs panics as events with their location, in the span where they happen.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| format!("{}:{}", place.file(), place.line()));
        let message = panic.payload_as_str().unwrap_or("no message");
        tracing::error!(event = "panic", error_message = message, place);
    }));
}

/// Returns the name of a level in the log.
pub fn level_word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warning",
        Level::INFO => "info",
        _ => "debug",
    }
}
