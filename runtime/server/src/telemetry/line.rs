//! Writes one record as a line. Control characters are escaped, so that no field can forge a line. Secrets are masked
//! by the name of their field, or by their form (`mask`).

use std::fmt::{self, Write as _};

use jiff::Timestamp;
use terrane_terminal::is_unsafe;
use tracing::Level;
use tracing::field::{Field, FieldSet, Visit};

use super::mask::{is_secret_name, mask};
use super::{LogFormat, level_word};
use terrane_wire::json::write_string;

/// The number of bytes after which strings are cut.
const MAX_TEXT_BYTES: usize = 4_096;
/// The number of bytes in which secrets are searched for before a string is cut. It exceeds [`MAX_TEXT_BYTES`], so that
/// a secret that the cut would divide is masked.
const MAX_LOOKED_AT_BYTES: usize = 2 * MAX_TEXT_BYTES;
const MASK: &str = "***";

/// A line being written.
pub(super) struct LogLine<'o> {
    format: LogFormat,
    out: &'o mut Vec<u8>,
    /// The set of fields that have a value, with one bit for the index of each field.
    seen: u64,
}

impl<'o> LogLine<'o> {
    pub(super) fn start(format: LogFormat, now: Option<Timestamp>, level: Level, out: &'o mut Vec<u8>) -> Self {
        match format {
            LogFormat::Json => {
                out.push(b'{');
                if let Some(now) = now {
                    out.extend_from_slice(b"\"timestamp\":\"");
                    write_timestamp(now, out);
                    out.extend_from_slice(b"\",");
                }
                out.extend_from_slice(b"\"level\":\"");
                out.extend_from_slice(level_word(level).as_bytes());
                out.push(b'"');
            }
            LogFormat::Console | LogFormat::Pretty => {
                if let Some(now) = now {
                    write_timestamp(now, out);
                    out.push(b' ');
                }
                let (colour, reset) = if format == LogFormat::Pretty { (colour(level), "\x1b[0m") } else { ("", "") };
                let word = level_word(level).to_ascii_uppercase();
                out.extend_from_slice(format!("{colour}{word:<7}{reset} ").as_bytes());
            }
        }
        LogLine { format, out, seen: 0 }
    }

    pub(super) fn event(&mut self, name: &str) {
        match self.format {
            LogFormat::Json => self.text("event", name),
            _ => self.plain(cut(&mask(cut(name, MAX_LOOKED_AT_BYTES)), MAX_TEXT_BYTES)),
        }
    }

    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        let masked = if is_secret_name(name) { MASK.into() } else { mask(cut(value, MAX_LOOKED_AT_BYTES)) };
        let value = cut(&masked, MAX_TEXT_BYTES);
        match self.format {
            LogFormat::Json => write_string(value, self.out),
            _ => self.plain(value),
        }
    }

    /// Writes a value of a different type as its text.
    pub(super) fn display(&mut self, name: &str, value: &fmt::Arguments<'_>) {
        match value.as_str() {
            Some(text) => self.text(name, text),
            None => {
                let mut text = String::new();
                // Formatting into a String fails only if the value does.
                let _ = text.write_fmt(*value);
                self.text(name, &text);
            }
        }
    }

    /// Writes the fields of an event that have no value as `null`, so that an event has the same fields each time. Does
    /// nothing unless the format is JSON.
    pub(super) fn nulls(&mut self, fields: &FieldSet) {
        if self.format != LogFormat::Json {
            return;
        }
        for field in fields.iter().filter(|field| !matches!(field.name(), "event" | "message")) {
            if self.seen & bit(&field) == 0 {
                self.unquoted(field.name(), "null");
            }
        }
    }

    /// Writes a field without a value, in JSON.
    pub(super) fn null(&mut self, name: &str) {
        if self.format == LogFormat::Json {
            self.unquoted(name, "null");
        }
    }

    pub(super) fn finish(self) {
        if self.format == LogFormat::Json {
            self.out.push(b'}');
        }
        self.out.push(b'\n');
    }

    /// Writes digits, `true` or `null`, which have the same form in all formats.
    pub(super) fn unquoted(&mut self, name: &str, text: &str) {
        if is_secret_name(name) {
            return self.text(name, MASK);
        }
        self.name(name);
        self.out.extend_from_slice(text.as_bytes());
    }

    fn name(&mut self, name: &str) {
        match self.format {
            LogFormat::Json => {
                self.out.push(b',');
                write_string(name, self.out);
                self.out.push(b':');
            }
            LogFormat::Console => {
                self.out.push(b' ');
                self.plain(name);
                self.out.push(b'=');
            }
            LogFormat::Pretty => {
                self.out.extend_from_slice(b"\n    ");
                self.plain(name);
                self.out.extend_from_slice(b": ");
            }
        }
    }

    /// Writes text with escapes for the characters that a terminal would execute.
    fn plain(&mut self, text: &str) {
        for piece in text.split_inclusive(is_unsafe) {
            let visible = piece.trim_end_matches(is_unsafe);
            self.out.extend_from_slice(visible.as_bytes());
            for control in piece[visible.len()..].chars() {
                self.out.extend(control.escape_default().map(|c| c as u8));
            }
        }
    }
}

impl Visit for LogLine<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.seen |= bit(field);
        if field.name() != "event" {
            self.text(field.name(), value);
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.seen |= bit(field);
        self.unquoted(field.name(), itoa::Buffer::new().format(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.seen |= bit(field);
        self.unquoted(field.name(), itoa::Buffer::new().format(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.seen |= bit(field);
        let rounded = (value * 1_000.0).round() / 1_000.0;
        if rounded.is_finite() {
            self.unquoted(field.name(), ryu::Buffer::new().format(rounded));
        } else {
            self.unquoted(field.name(), "null");
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.seen |= bit(field);
        self.unquoted(field.name(), if value { "true" } else { "false" });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.seen |= bit(field);
        self.display(field.name(), &format_args!("{value:?}"));
    }
}

fn cut(text: &str, bytes: usize) -> &str {
    if text.len() <= bytes {
        return text;
    }
    &text[..text.floor_char_boundary(bytes)]
}

/// Returns the bit of a field in a mask. An event has at most 32 fields in `tracing`.
fn bit(field: &Field) -> u64 {
    1_u64.checked_shl(u32::try_from(field.index()).unwrap_or(u32::MAX)).unwrap_or(0)
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        _ => "\x1b[36m",
    }
}

/// Writes a time as RFC 3339 in UTC with microseconds.
fn write_timestamp(now: Timestamp, out: &mut Vec<u8>) {
    let at = jiff::tz::Offset::UTC.to_datetime(now);
    let parts: [(u32, usize, &str); 7] = [
        (u32::try_from(at.year()).unwrap_or(0), 4, "-"),
        (at.month().unsigned_abs().into(), 2, "-"),
        (at.day().unsigned_abs().into(), 2, "T"),
        (at.hour().unsigned_abs().into(), 2, ":"),
        (at.minute().unsigned_abs().into(), 2, ":"),
        (at.second().unsigned_abs().into(), 2, "."),
        (at.subsec_nanosecond().unsigned_abs() / 1_000, 6, "Z"),
    ];
    for (number, width, behind) in parts {
        let start = out.len();
        out.resize(start + width, b'0');
        let mut rest = number;
        for digit in out[start..].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(behind.as_bytes());
    }
}
