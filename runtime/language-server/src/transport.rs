//! Reads and writes messages with their headers.
//!
//! In: bytes. Out: JSON values. If content is not JSON, only its message fails, and the next one is read. Headers that
//! cannot be read end the connection, because it is unknown where the next message begins.

use std::io::{self, BufRead, Read as _, Write};

use serde_json::Value;

/// The largest size of a message in bytes. A file has at most 4 MiB, and JSON writes up to six bytes for each byte of
/// the file.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// The largest size of a header line in bytes.
const MAX_HEADER_BYTES: u64 = 8 * 1024;

/// The next message of a client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(Value),
    /// A message that is not JSON or is too large. The string is the reason.
    Malformed(String),
}

/// Reads one message; `None` at the end of the input. Also returns the length of the content in bytes.
///
/// # Errors
/// The input cannot be read, has no valid headers, or ends within a message.
pub(crate) fn read(input: &mut impl BufRead) -> io::Result<Option<(Incoming, usize)>> {
    let Some(length) = read_length(input)? else { return Ok(None) };
    let incoming = read_content(input, length)?;
    Ok(Some((incoming, length.min(MAX_BYTES))))
}

fn read_content(input: &mut impl BufRead, length: usize) -> io::Result<Incoming> {
    let too_short = |count: usize| {
        let reason = format!("the input ends after {count} of {length} bytes of a message");
        io::Error::new(io::ErrorKind::UnexpectedEof, reason)
    };
    if length > MAX_BYTES {
        let count = io::copy(&mut input.by_ref().take(length as u64), &mut io::sink())?;
        if count < length as u64 {
            return Err(too_short(count as usize));
        }
        return Ok(Incoming::Malformed(format!("the message has {length} bytes; {MAX_BYTES} are allowed")));
    }
    let mut content = Vec::new();
    let count = input.by_ref().take(length as u64).read_to_end(&mut content)?;
    if count < length {
        return Err(too_short(count));
    }
    Ok(match serde_json::from_slice(&content) {
        Ok(value) => Incoming::Message(value),
        Err(error) => Incoming::Malformed(error.to_string()),
    })
}

/// Reads the headers. Returns the length of the content.
fn read_length(input: &mut impl BufRead) -> io::Result<Option<usize>> {
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        let count = input.by_ref().take(MAX_HEADER_BYTES).read_until(b'\n', &mut line)?;
        if count == 0 {
            return if is_first { Ok(None) } else { Err(invalid("the input ends within headers")) };
        }
        is_first = false;
        let line = String::from_utf8(line).map_err(|_| invalid("a header is not UTF-8"))?;
        let line = line.trim_end();
        if line.is_empty() {
            return length.map(Some).ok_or_else(|| invalid("the headers lack Content-Length"));
        }
        let Some((name, value)) = line.split_once(':') else { return Err(invalid("a header has no colon")) };
        if name.eq_ignore_ascii_case("Content-Length") {
            length = Some(value.trim().parse().map_err(|_| invalid("Content-Length is not a number"))?);
        }
    }
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Writes one message.
///
/// # Errors
/// The output cannot be written.
pub(crate) fn write(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let content = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{content}", content.len())?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_content_does_not_end_the_input() {
        let mut input = &b"Content-Length: 3\r\n\r\n{a}content-length: 2\r\nContent-Type: x\r\n\r\n{}"[..];
        assert!(matches!(read(&mut input), Ok(Some((Incoming::Malformed(_), 3)))));
        assert!(matches!(read(&mut input), Ok(Some((Incoming::Message(_), 2)))));
        assert!(matches!(read(&mut input), Ok(None)));
    }

    #[test]
    fn headers_without_a_length_are_an_error() {
        for text in ["Content-Type: x\r\n\r\n{}", "Content-Length: x\r\n\r\n", "nothing\r\n\r\n", "Content-Length: 2"] {
            assert!(read(&mut text.as_bytes()).is_err(), "{text:?}");
        }
        assert!(read(&mut "Content-Length: 9\r\n\r\n{}".as_bytes()).is_err());
    }

    #[test]
    fn end_within_a_message_is_an_error() {
        for length in [9, 900_000_000] {
            let error = read(&mut format!("Content-Length: {length}\r\n\r\n{{}}").as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), format!("the input ends after 2 of {length} bytes of a message"));
        }
    }

    #[test]
    fn nested_content_is_malformed() {
        let content = "[".repeat(100_000);
        let text = format!("Content-Length: {}\r\n\r\n{content}", content.len());
        assert!(matches!(read(&mut text.as_bytes()), Ok(Some((Incoming::Malformed(_), _)))));
    }
}
