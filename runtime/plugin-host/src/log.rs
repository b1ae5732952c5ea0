//! The one import of guests: lines for the operator.
//!
//! In: a level, a message, fields, as a guest wrote them. Out: tracing events under the target
//! `terrane::plugin`. A call may write 20 lines and 8 KiB; the rest is counted and told in one line
//! at the end. Control characters are stripped, so that no guest can forge another's line.

use std::sync::Arc;

use crate::dialect::bindings::terrane::host::log::{Host, Level};
use crate::engine::Guest;

const MAX_LINES: usize = 20;
const MAX_BYTES: usize = 8 * 1024;

/// What one call may still write.
#[derive(Debug)]
pub(crate) struct LogBudget {
    component: Arc<str>,
    lines: usize,
    bytes: usize,
    dropped: u64,
}

impl LogBudget {
    pub(crate) fn new(component: Arc<str>) -> LogBudget {
        LogBudget { component, lines: MAX_LINES, bytes: MAX_BYTES, dropped: 0 }
    }

    /// Whether a line of this size may still be written; it is then taken off.
    fn admits(&mut self, bytes: usize) -> bool {
        let fits = self.lines > 0 && bytes <= self.bytes;
        if fits {
            self.lines -= 1;
            self.bytes -= bytes;
        } else {
            self.dropped += 1;
        }
        fits
    }
}

impl Drop for LogBudget {
    fn drop(&mut self) {
        if self.dropped > 0 {
            let (component, dropped) = (&self.component, self.dropped);
            tracing::warn!(target: "terrane::plugin", %component, dropped, "the component logged more than a call may");
        }
    }
}

impl Host for Guest {
    fn log(&mut self, level: Level, message: String, fields: Vec<(String, String)>) {
        let bytes = message.len() + fields.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        if !self.log.admits(bytes) {
            return;
        }
        let component = &self.log.component;
        let message = plain(&message);
        let fields = fields.iter().map(|(k, v)| format!("{}={}", plain(k), plain(v))).collect::<Vec<_>>().join(" ");
        match level {
            Level::Trace => tracing::trace!(target: "terrane::plugin", %component, %fields, "{message}"),
            Level::Debug => tracing::debug!(target: "terrane::plugin", %component, %fields, "{message}"),
            Level::Info => tracing::info!(target: "terrane::plugin", %component, %fields, "{message}"),
            Level::Warn => tracing::warn!(target: "terrane::plugin", %component, %fields, "{message}"),
            Level::Error => tracing::error!(target: "terrane::plugin", %component, %fields, "{message}"),
        }
    }
}

/// Without control characters and without the marks that reverse or hide text on a terminal.
pub(crate) fn plain(text: &str) -> String {
    let is_plain = |c: &char| {
        !c.is_control()
            && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().filter(is_plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_cannot_be_forged() {
        assert_eq!(plain("ok\n2026-01-01 ERROR forged\r\u{1b}[31m\u{202e}"), "ok2026-01-01 ERROR forged[31m");
    }

    #[test]
    fn lines_and_bytes_run_out() {
        let mut budget = LogBudget::new("test".into());
        assert!((0..MAX_LINES).all(|_| budget.admits(1)));
        assert!(!budget.admits(1));
        let mut budget = LogBudget::new("test".into());
        assert!(!budget.admits(MAX_BYTES + 1));
        assert!(budget.admits(MAX_BYTES));
        assert!(!budget.admits(1));
        assert_eq!(budget.dropped, 2);
    }
}
