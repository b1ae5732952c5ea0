//! Looks for faults in the text of a CSV file that an engine hides or reports without a place.
//!
//! In: a file. Out: its [`CsvText`]: the number of values in its first line, and the first lines that differ or are not
//! UTF-8. Not here: types and names of columns, which the engine decides.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

/// The characters that separate values.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
/// The number of bytes of a file that are read.
const MAX_BYTES: u64 = 1 << 28;

/// The properties of a CSV file that decide how it is read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CsvText {
    pub(super) is_empty: bool,
    /// The first line that is not UTF-8, from 1.
    pub(super) not_utf8: Option<u64>,
    /// The number of values in the first line.
    pub(super) header: usize,
    /// The first line (from 1) whose number of values differs from `header`, and its number of values.
    pub(super) ragged: Option<(u64, usize)>,
}

/// Reads a file. Only its first part is read if it is very large.
///
/// # Errors
/// The file cannot be read.
pub(super) fn read(path: &Path) -> io::Result<CsvText> {
    let mut reader = BufReader::new(File::open(path)?.take(MAX_BYTES));
    let mut text = CsvText { is_empty: true, ..CsvText::default() };
    let (mut line, mut number) = (Vec::new(), 0);
    let (mut record, mut first, mut delimiter) = (Record::default(), None, None);
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        text.is_empty = false;
        if text.not_utf8.is_none() && std::str::from_utf8(&line).is_err() {
            text.not_utf8 = Some(number);
        }
        record.read(line.strip_prefix("\u{FEFF}".as_bytes()).unwrap_or(&line), number);
        line.clear();
        if record.is_open {
            continue;
        }
        let complete = std::mem::take(&mut record);
        if complete.is_blank {
            continue;
        }
        delimiter = delimiter.or_else(|| complete.delimiter());
        match &first {
            None => {
                text.header = complete.values(delimiter);
                first = Some(complete);
            }
            Some(_) if text.ragged.is_none() && complete.values(delimiter) != text.header => {
                text.ragged = Some((complete.line, complete.values(delimiter)));
            }
            Some(_) => {}
        }
    }
    Ok(text)
}

/// One row of a file. A row spans several lines if a quoted value contains line breaks.
#[derive(Debug)]
struct Record {
    /// The number of the row's first line; 0 before a line is read.
    line: u64,
    /// The number of occurrences of each delimiter outside quotes.
    counts: [usize; DELIMITERS.len()],
    /// True while a quoted value is not closed.
    is_open: bool,
    is_blank: bool,
}

impl Default for Record {
    fn default() -> Self {
        Record { line: 0, counts: [0; DELIMITERS.len()], is_open: false, is_blank: true }
    }
}

impl Record {
    fn read(&mut self, line: &[u8], number: u64) {
        if self.line == 0 {
            self.line = number;
        }
        // A quote opens a quoted value only at the beginning of the value. The quote in `5" pipe` does not.
        let mut is_beginning = !self.is_open;
        for byte in line.iter().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
            self.is_blank = false;
            match DELIMITERS.iter().position(|delimiter| delimiter == byte) {
                _ if *byte == b'"' && self.is_open => self.is_open = false,
                _ if *byte == b'"' && is_beginning => self.is_open = true,
                Some(at) if !self.is_open => {
                    self.counts[at] += 1;
                    is_beginning = true;
                    continue;
                }
                _ => {}
            }
            // Two quotes inside a quoted value stand for one: the first closes the value, the second opens it again.
            is_beginning = *byte == b'"' && !self.is_open;
        }
    }

    /// Returns the index of the most frequent delimiter, if there is one.
    fn delimiter(&self) -> Option<usize> {
        let most = (0..DELIMITERS.len()).rev().max_by_key(|at| self.counts[*at])?;
        (self.counts[most] > 0).then_some(most)
    }

    fn values(&self, delimiter: Option<usize>) -> usize {
        delimiter.map_or(1, |at| self.counts[at] + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &[u8]) -> CsvText {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        read(&path).unwrap()
    }

    #[test]
    fn lines_with_another_number_of_values_are_found() {
        assert_eq!(of(b"id,name\n1,a\n2,b,c\n3\n").ragged, Some((3, 3)));
        assert_eq!(of(b"id;name\n1;a,b\n").ragged, None);
        assert_eq!(of(b"name\nx,y\n").ragged, Some((2, 2)));
        assert_eq!(of(b"\xEF\xBB\xBFid,name\r\n\r\n1,a\r\n").ragged, None);
    }

    #[test]
    fn values_in_quotes_may_contain_delimiters_and_lines() {
        assert_eq!(of(b"id,name\n1,\"a, \"\"b\"\"\nc\"\n2,5\" pipe\n").ragged, None);
        assert_eq!(of(b"id,name\n1,\"a\nb\",c\n").ragged, Some((2, 3)));
    }

    #[test]
    fn empty_files_and_other_encodings_are_found() {
        assert!(of(b"").is_empty);
        assert_eq!(of(b"id,city\n1,Z\xfcrich\n").not_utf8, Some(2));
        assert_eq!(of("id,city\n1,Zürich\n".as_bytes()).not_utf8, None);
    }
}
