//! A cell without JSON's quotes, for formats with other quotes or none.
//!
//! In: a column and a row. Out: the bytes between the quotes, so that a time or a number is the same in every format;
//! lists and objects stay JSON.

use std::fmt::Write as _;

use super::column::{Column, Scratch, Values};

impl Column<'_> {
    /// Appends the cell, and returns whether it has a value. Null, and a number that JSON cannot express, count as
    /// cells without a value.
    pub(crate) fn write_unquoted(&self, row: usize, out: &mut Vec<u8>, scratch: &mut Scratch) -> bool {
        if self.has_nulls && self.array.is_null(row) {
            return false;
        }
        match &self.values {
            Values::Utf8(array) => out.extend_from_slice(array.value(row).as_bytes()),
            Values::LargeUtf8(array) => out.extend_from_slice(array.value(row).as_bytes()),
            Values::Utf8View(array) => out.extend_from_slice(array.value(row).as_bytes()),
            Values::Dictionary(values, keys) => {
                return keys[row].is_some_and(|key| values.write_unquoted(key, out, scratch));
            }
            Values::Other(Some(formatter)) => {
                scratch.text.clear();
                // Writing to a String fails only if the formatter has no text for the value.
                if write!(scratch.text, "{}", formatter.value(row)).is_err() {
                    return false;
                }
                out.extend_from_slice(scratch.text.as_bytes());
            }
            _ => return self.write_json_unquoted(row, out, scratch),
        }
        true
    }

    /// Returns the word of XML Schema for a number that is not finite.
    pub(crate) fn not_finite(&self, row: usize) -> Option<&'static str> {
        let value = match &self.values {
            _ if self.has_nulls && self.array.is_null(row) => return None,
            Values::Float32(array) => f64::from(array.value(row)),
            Values::Float64(array) => array.value(row),
            _ => return None,
        };
        match value {
            f64::INFINITY => Some("INF"),
            f64::NEG_INFINITY => Some("-INF"),
            _ => value.is_nan().then_some("NaN"),
        }
    }

    /// Appends a cell that is not a string. JSON escapes nothing in such a cell, so its quotes can be removed.
    fn write_json_unquoted(&self, row: usize, out: &mut Vec<u8>, scratch: &mut Scratch) -> bool {
        let start = out.len();
        self.write(row, out, scratch);
        match &out[start..] {
            b"null" => {
                out.truncate(start);
                false
            }
            [b'"', ..] => {
                out.pop();
                out.remove(start);
                true
            }
            _ => true,
        }
    }
}
