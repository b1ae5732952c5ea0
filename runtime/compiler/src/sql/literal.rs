//! Prints values as SQL literals, by the dialect's templates.
//!
//! In: a value. Out: text appended to a buffer. Values are printed only if they cannot be bound: in SQL for people to
//! read, and for engines without parameters.

use std::fmt::Write;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use super::dialect_profile::{DialectProfile, Op};
use super::template::{Segment, Template};
use crate::types::{LogicalType, Value};

/// Appends a value as a literal.
pub(super) fn value(profile: &DialectProfile, value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("NULL"),
        Value::Boolean(true) => fill(&profile.true_literal, &[], out),
        Value::Boolean(false) => fill(&profile.false_literal, &[], out),
        Value::Integer(integer) => {
            let _ = write!(out, "{integer}");
        }
        Value::Float(float) => {
            let _ = write!(out, "{float:e}");
        }
        Value::Decimal(digits) => match profile.op(Op::Literal, 1, Some(LogicalType::Decimal)) {
            // The engine would read bare digits as a double.
            Some(template) => fill(template, &[quoted(profile, digits)], out),
            None => out.push_str(digits),
        },
        Value::Text(text) => profile.quoting.write_text(out, text),
        Value::Date(days) => {
            let day = civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(*days));
            fill(&profile.date_literal, &[quoted(profile, &day.to_string())], out);
        }
        Value::Timestamp(micros) => {
            fill(&profile.timestamp_literal, &[quoted(profile, &local_text(*micros))], out);
        }
        Value::TimestampTz(micros) => {
            let text = quoted(profile, &format!("{}+00:00", local_text(*micros)));
            fill(&profile.timestamp_tz_literal, &[text], out);
        }
    }
}

fn quoted(profile: &DialectProfile, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    profile.quoting.write_text(&mut out, text);
    out
}

fn local_text(micros: i64) -> String {
    let at = Timestamp::from_microsecond(micros).unwrap_or(if micros < 0 { Timestamp::MIN } else { Timestamp::MAX });
    TimeZone::UTC.to_datetime(at).strftime("%Y-%m-%d %H:%M:%S%.6f").to_string()
}

fn fill(template: &Template, args: &[String], out: &mut String) {
    for segment in &template.segments {
        match segment {
            Segment::Text(text) => out.push_str(text),
            Segment::Hole(hole) => out.push_str(args.get(*hole as usize).map_or("", String::as_str)),
            Segment::AllArguments => out.push_str(&args.join(", ")),
        }
    }
}
