//! The import `terrane:host/log`: lines for the operator.
//!
//! In: a level, a message and fields, as a guest wrote them. Out: tracing events under the target `terrane::plugin`.
//! All have one event type, so that a guest's message is never mistaken for a message of the host. On the test bench
//! the lines become [`LogLine`]s beside the answer instead. A call may write 20 lines and 8 KiB, and one more line for
//! an error; a plugin may write 100 lines per second. Lines beyond the limits are counted, and one further line reports
//! the count; that line counts like any other. Control characters are removed, so that no guest can forge a line.
//! Secrets are masked when events are written, as in all events; authors see the lines unmasked.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use terrane_terminal::TerminalText;

use crate::bindings::log::{Host, Level};
use crate::engine::Guest;
use crate::monotonic_clock::MonotonicClock;

const EVENT: &str = "plugin_log";
const DROPPED: &str = "plugin_log_dropped";
const MAX_LINES: usize = 20;
const MAX_BYTES: usize = 8 * 1024;
/// The size in bytes that is reserved for one error line, so that a call that wrote much can still report its failure.
const LAST_WORDS_BYTES: usize = 1024;
const MAX_LINES_A_SECOND: u32 = 100;

/// One line of a guest, without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The level: `error`, `warning`, `info`, `debug` or `trace`.
    pub level: &'static str,
    pub message: String,
    pub fields: Vec<(String, String)>,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogLine { level, message, fields } = self;
        write!(f, "{level}: {message}")?;
        fields.iter().try_for_each(|(key, value)| write!(f, " {}", pair(key, value)))
    }
}

/// The log lines of one call, up to the limit of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogLines {
    pub lines: Vec<LogLine>,
    /// The number of lines beyond the limit.
    pub dropped: u64,
}

impl LogLines {
    /// Returns one sentence for each line, and one for the number of dropped lines.
    pub fn texts(&self) -> Vec<String> {
        let lines = self.lines.iter().map(|line| format!("it logged {line}"));
        let dropped = (self.dropped > 0).then(|| format!("and {} more, beyond the limit of a call", self.dropped));
        lines.chain(dropped).collect()
    }
}

/// The limit of the lines that one plugin writes in a second, over all its calls.
#[derive(Debug)]
pub(crate) struct Throttle {
    component: Arc<str>,
    clock: MonotonicClock,
    second: Mutex<Second>,
}

#[derive(Debug, Default)]
struct Second {
    since: Duration,
    lines: u32,
    dropped: u64,
}

impl Throttle {
    pub(crate) fn new(component: Arc<str>, clock: MonotonicClock) -> Arc<Throttle> {
        Arc::new(Throttle { component, clock, second: Mutex::default() })
    }

    /// Returns whether one more line may be written now, and the number of lines that were dropped since the last
    /// report. If the line is rejected, it counts as `lines` dropped lines.
    fn admits(&self, lines: u64) -> (bool, u64) {
        let now = self.clock.now();
        // A panic leaves the numbers consistent.
        let mut second = self.second.lock().unwrap_or_else(PoisonError::into_inner);
        let mut dropped = 0;
        if now.saturating_sub(second.since) >= Duration::from_secs(1) {
            dropped = second.dropped;
            *second = Second { since: now, ..Second::default() };
        }
        let fits = second.lines < MAX_LINES_A_SECOND;
        second.lines += u32::from(fits);
        second.dropped += if fits { 0 } else { lines };
        (fits, dropped)
    }
}

/// Reports the lines that were dropped since the last report.
impl Drop for Throttle {
    fn drop(&mut self) {
        let second = self.second.get_mut().unwrap_or_else(PoisonError::into_inner);
        report_dropped_in_a_second(&self.component, second.dropped);
    }
}

fn report_dropped_in_a_second(component: &Arc<str>, dropped: u64) {
    if dropped > 0 {
        tracing::warn!(target: "terrane::plugin", event = DROPPED, %component, dropped, "the component exceeded the log limit per second");
    }
}

/// The lines and bytes that one call may still write.
#[derive(Debug)]
pub(crate) struct LogBudget {
    component: Arc<str>,
    throttle: Option<Arc<Throttle>>,
    lines: usize,
    bytes: usize,
    dropped: u64,
    /// The lines on the test bench, where they are captured instead of written as events.
    captured: Option<Vec<LogLine>>,
}

impl LogBudget {
    pub(crate) fn new(component: Arc<str>, throttle: Option<Arc<Throttle>>) -> LogBudget {
        let (lines, bytes) = (MAX_LINES + 1, MAX_BYTES + LAST_WORDS_BYTES);
        LogBudget { component, throttle, lines, bytes, dropped: 0, captured: None }
    }

    /// Captures lines for [`LogBudget::take`] instead of writing events.
    pub(crate) fn capture(&mut self) {
        self.captured = Some(Vec::new());
    }

    /// Returns the captured lines.
    pub(crate) fn take(&mut self) -> LogLines {
        LogLines { lines: self.captured.take().unwrap_or_default(), dropped: std::mem::take(&mut self.dropped) }
    }

    /// Reserves a line of this size, and returns whether it may be written. A rejected line counts as dropped.
    fn admits(&mut self, level: Level, bytes: usize) -> bool {
        let (lines, room) = if matches!(level, Level::Error) { (0, 0) } else { (1, LAST_WORDS_BYTES) };
        let fits = self.lines > lines && bytes.saturating_add(room) <= self.bytes;
        if fits {
            self.lines -= 1;
            self.bytes -= bytes;
        } else {
            self.dropped += 1;
        }
        fits && self.admits_this_second(1)
    }

    /// Returns whether one more line may be written in this second. If it is rejected, it counts as `lines`
    /// dropped lines.
    fn admits_this_second(&self, lines: u64) -> bool {
        let (fits, dropped) = self.throttle.as_ref().map_or((true, 0), |throttle| throttle.admits(lines));
        report_dropped_in_a_second(&self.component, dropped);
        fits
    }
}

impl Drop for LogBudget {
    fn drop(&mut self) {
        if self.dropped > 0 && self.admits_this_second(self.dropped) {
            let (component, dropped) = (&self.component, self.dropped);
            tracing::warn!(target: "terrane::plugin", event = DROPPED, %component, dropped, "the component exceeded the log limit per call");
        }
    }
}

impl Host for Guest {
    fn log(&mut self, level: Level, message: String, fields: Vec<(String, String)>) {
        let bytes = message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if !self.log.admits(level, bytes) {
            return;
        }
        let message = one_line(&message);
        if let Some(captured) = &mut self.log.captured {
            let fields = fields.iter().map(|(key, value)| (one_line(key), one_line(value))).collect();
            captured.push(LogLine { level: word(level), message, fields });
            return;
        }
        let component = &self.log.component;
        let fields =
            fields.iter().map(|(key, value)| pair(&one_line(key), &one_line(value))).collect::<Vec<_>>().join(" ");
        match level {
            Level::Trace => tracing::trace!(target: "terrane::plugin", event = EVENT, %component, %fields, "{message}"),
            Level::Debug => tracing::debug!(target: "terrane::plugin", event = EVENT, %component, %fields, "{message}"),
            Level::Info => tracing::info!(target: "terrane::plugin", event = EVENT, %component, %fields, "{message}"),
            Level::Warn => tracing::warn!(target: "terrane::plugin", event = EVENT, %component, %fields, "{message}"),
            Level::Error => tracing::error!(target: "terrane::plugin", event = EVENT, %component, %fields, "{message}"),
        }
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Trace => "trace",
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warning",
        Level::Error => "error",
    }
}

/// Returns one field as `key=value`. The value is in quotes if it contains characters that would end an unquoted value,
/// so that the masking of secrets covers the whole value.
fn pair(key: &str, value: &str) -> String {
    match value.contains(|letter: char| letter.is_whitespace() || "&;,\"'<>)}]`|\\".contains(letter)) {
        true => format!("{key}=\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\"")),
        false => format!("{key}={value}"),
    }
}

/// Returns the text without line breaks, tabs and control characters.
fn one_line(text: &str) -> String {
    plain(&text.replace(['\n', '\t'], " "))
}

/// Returns the text without control characters and without characters that reverse or hide text on a terminal.
pub fn plain(text: &str) -> String {
    TerminalText::visible(text).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_line_cannot_be_forged() {
        assert_eq!(plain("ok\n2026-01-01 ERROR forged\r\u{1b}[31m\u{202e}"), "ok2026-01-01 ERROR forged[31m");
    }

    #[test]
    fn field_of_several_words_is_quoted() {
        assert_eq!(pair("password", "hun,ter2"), r#"password="hun,ter2""#);
        assert_eq!(pair("password", "correct \"horse\" battery"), r#"password="correct \"horse\" battery""#);
        assert_eq!(pair("rows", "5"), "rows=5");
    }

    #[test]
    fn lines_and_bytes_are_limited_except_for_one_error() {
        let budget = || LogBudget::new("test".into(), None);
        let mut of_lines = budget();
        assert!((0..MAX_LINES).all(|_| of_lines.admits(Level::Info, 1)));
        assert!(!of_lines.admits(Level::Warn, 1) && of_lines.admits(Level::Error, 1));
        assert!(!of_lines.admits(Level::Error, 1));
        let mut of_bytes = budget();
        assert!(!of_bytes.admits(Level::Info, MAX_BYTES + 1));
        assert!(of_bytes.admits(Level::Info, MAX_BYTES));
        assert!(!of_bytes.admits(Level::Info, 1) && of_bytes.admits(Level::Error, LAST_WORDS_BYTES));
        assert!(!of_bytes.admits(Level::Error, 1));
        assert_eq!(of_bytes.dropped, 3);
    }

    #[test]
    fn lines_per_second_are_limited_and_dropped_lines_reported() {
        let clock = crate::monotonic_clock::tests::ManualClock::default();
        let throttle = Throttle::new("test".into(), clock.elapsed());
        let lines = |number| (0..number).filter(|_| throttle.admits(1).0).count();
        assert_eq!(lines(150), 100);
        clock.advance(Duration::from_millis(999));
        assert_eq!(throttle.admits(1), (false, 0));
        clock.advance(Duration::from_millis(1));
        assert_eq!(throttle.admits(1), (true, 51));
        assert_eq!(lines(150), 99);
    }

    #[test]
    fn reports_of_dropped_lines_count_towards_the_limit() {
        let clock = crate::monotonic_clock::tests::ManualClock::default();
        let throttle = Throttle::new("test".into(), clock.elapsed());
        // Each call drops five lines, and reports them in one line.
        let mut reported = 0;
        for _ in 0..1_000 {
            let budget = LogBudget::new("test".into(), Some(Arc::clone(&throttle)));
            reported += u64::from(budget.admits_this_second(5));
        }
        assert_eq!(reported, 100);
        clock.advance(Duration::from_secs(1));
        assert_eq!(throttle.admits(1), (true, 900 * 5));
    }
}
