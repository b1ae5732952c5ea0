//! Names and values as SQL text: quoting by the dialect's rules.
//!
//! In: a name or a value. Out: text appended to a buffer. Values are written only where nothing can
//! be bound: for people to read, or where an engine has no parameters.

use std::fmt::Write;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

use super::profile::{DialectProfile, Op, Quoting};
use super::template::{Segment, Template};
use crate::types::{LogicalType, Value};

pub(super) fn quote_identifier(quoting: &Quoting, name: &str, out: &mut String) {
    out.push_str(&quoting.ident_open);
    replace(name, &quoting.ident_close, &quoting.ident_escape, out);
    out.push_str(&quoting.ident_close);
}

pub(super) fn quote_string(quoting: &Quoting, text: &str, out: &mut String) {
    let quote = &quoting.string_quote;
    out.push_str(&quoting.string_prefix);
    out.push_str(quote);
    for c in text.chars() {
        if c == '\\' && quoting.string_escape_backslash {
            out.push_str("\\\\");
        } else if quote.starts_with(c) {
            out.push_str(quote);
            out.push(c);
        } else {
            out.push(c);
        }
    }
    out.push_str(quote);
}

fn replace(text: &str, what: &str, with: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(what) {
        out.push_str(&rest[..at]);
        out.push_str(with);
        rest = &rest[at + what.len()..];
    }
    out.push_str(rest);
}

/// A value as a literal. Writing to a String never fails.
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
        Value::Decimal(digits) => out.push_str(digits),
        Value::Text(text) => quote_string(&profile.quoting, text, out),
        Value::Date(days) => {
            let day = civil::date(1970, 1, 1).saturating_add(jiff::Span::new().days(*days));
            fill(&profile.date_literal, &[quoted(profile, &day.to_string())], out);
        }
        Value::Timestamp(micros) => {
            fill(&profile.timestamp_literal, &[quoted(profile, &local_text(*micros))], out);
        }
        Value::TimestampTz(micros) => {
            let text = quoted(profile, &format!("{}+00:00", local_text(*micros)));
            match profile.op(Op::Cast, 2, None) {
                Some(cast) => fill(cast, &[text, profile.type_name(LogicalType::TimestampTz).to_owned()], out),
                None => out.push_str(&text),
            }
        }
    }
}

fn quoted(profile: &DialectProfile, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    quote_string(&profile.quoting, text, &mut out);
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
