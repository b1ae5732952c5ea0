//! The length of a socket's messages before its session is open.
//!
//! In: the bytes of a connection. Out: the same bytes, or an error before the first byte of a message that is too long
//! is buffered. The WebSocket library has one limit for the whole life of a socket, and it reserves memory by the
//! length that a frame claims. Not here: all other rules of frames, which the library checks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A message is too long for a socket without a session.
#[derive(Debug, thiserror::Error)]
#[error("the message is too large")]
pub(super) struct TooLarge;

/// A connection whose messages are limited until its session is open.
#[derive(Debug)]
pub(super) struct OpeningLimit<S> {
    stream: S,
    /// The reader of frame headers; `None` if the session is open.
    frames: Option<FrameScan>,
}

impl<S> OpeningLimit<S> {
    /// Limits the messages of a stream. `limit` is the maximum length of a message in bytes.
    pub(super) fn new(stream: S, limit: usize) -> Self {
        OpeningLimit { stream, frames: Some(FrameScan::new(limit as u64)) }
    }

    /// Removes the limit, because the session is open.
    pub(super) fn open(&mut self) {
        self.frames = None;
    }
}

/// A position in a stream of frames (RFC 6455, section 5.2).
#[derive(Debug)]
struct FrameScan {
    limit: u64,
    /// The header of the current frame, as far as it is read.
    header: Vec<u8>,
    /// The number of bytes of the frame's payload that are still to come.
    remaining: u64,
    /// The number of bytes of the current message in the frames that were read so far.
    message: u64,
}

impl FrameScan {
    fn new(limit: u64) -> Self {
        FrameScan { limit, header: Vec::with_capacity(14), remaining: 0, message: 0 }
    }

    /// Reads the next bytes of the stream.
    fn read(&mut self, mut bytes: &[u8]) -> Result<(), TooLarge> {
        while let Some((first, rest)) = bytes.split_first() {
            if self.remaining > 0 {
                let count = bytes.len().min(usize::try_from(self.remaining).unwrap_or(usize::MAX));
                self.remaining -= count as u64;
                bytes = &bytes[count..];
                continue;
            }
            self.header.push(*first);
            bytes = rest;
            self.end_header()?;
        }
        Ok(())
    }

    /// Checks the length of the frame if its header is complete.
    fn end_header(&mut self) -> Result<(), TooLarge> {
        let [flags, short, extended @ ..] = self.header.as_slice() else { return Ok(()) };
        let length_bytes = match short & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mask_bytes = if short & 0x80 == 0 { 0 } else { 4 };
        if extended.len() < length_bytes + mask_bytes {
            return Ok(());
        }
        let length = match length_bytes {
            0 => u64::from(short & 0x7f),
            count => extended[..count].iter().fold(0, |length, byte| (length << 8) | u64::from(*byte)),
        };
        let (is_last, is_control) = (flags & 0x80 != 0, flags & 0x08 != 0);
        // Control frames may come between the frames of a message.
        let message = if is_control { length } else { self.message.saturating_add(length) };
        if message > self.limit {
            return Err(TooLarge);
        }
        if !is_control {
            self.message = if is_last { 0 } else { message };
        }
        self.remaining = length;
        self.header.clear();
        Ok(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for OpeningLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let start = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if let Some(frames) = &mut self.frames {
            frames
                .read(&buffer.filled()[start..])
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for OpeningLimit<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1_000;

    /// Returns the header of a masked frame.
    fn header(is_last: bool, opcode: u8, length: u64) -> Vec<u8> {
        let mut header = vec![if is_last { 0x80 | opcode } else { opcode }];
        match length {
            0..126 => header.push(0x80 | length as u8),
            126..65_536 => {
                header.push(0x80 | 126);
                header.extend_from_slice(&(length as u16).to_be_bytes());
            }
            _ => {
                header.push(0x80 | 127);
                header.extend_from_slice(&length.to_be_bytes());
            }
        }
        header.extend_from_slice(&[1, 2, 3, 4]);
        header
    }

    fn frame(is_last: bool, opcode: u8, length: usize) -> Vec<u8> {
        [header(is_last, opcode, length as u64), vec![0xff; length]].concat()
    }

    /// Returns whether the scan accepts the bytes, and checks that the result does not depend on the sizes of the
    /// pieces in which the bytes arrive.
    fn passes(bytes: &[u8]) -> bool {
        let results = [1, 2, 3, 7, 500, bytes.len()].map(|size| {
            let mut frames = FrameScan::new(LIMIT as u64);
            bytes.chunks(size).try_for_each(|part| frames.read(part)).is_ok()
        });
        assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
        results[0]
    }

    #[test]
    fn messages_up_to_the_limit_pass() {
        for length in [0, 1, 125, 126, 999, 1_000] {
            assert!(passes(&[frame(true, 1, length), frame(true, 2, length)].concat()), "{length}");
        }
        let parts = [frame(false, 1, 400), frame(true, 9, 125), frame(false, 0, 400), frame(true, 0, 200)].concat();
        assert!(passes(&[parts.clone(), parts].concat()));
        // Frames of servers are not masked; the library refuses them.
        assert!(passes(&[0x81, 2, b'{', b'}']));
    }

    #[test]
    fn longer_messages_end_with_their_header() {
        for length in [1_001, 65_535, 65_536, u64::MAX] {
            for opcode in [1, 2, 9] {
                assert!(!passes(&header(true, opcode, length)), "{opcode} {length}");
            }
        }
        let parts = [frame(false, 1, 400), frame(true, 9, 125), frame(false, 0, 400), header(true, 0, 201)].concat();
        assert!(!passes(&parts));
    }

    #[tokio::test]
    async fn opened_stream_has_no_limit() {
        use tokio::io::AsyncReadExt as _;
        let bytes = frame(true, 1, LIMIT + 1);
        let mut limited = OpeningLimit::new(bytes.as_slice(), LIMIT);
        let error = limited.read_to_end(&mut Vec::new()).await.unwrap_err();
        assert!(error.get_ref().is_some_and(|error| error.is::<TooLarge>()), "{error}");
        let mut opened = OpeningLimit::new(bytes.as_slice(), LIMIT);
        opened.open();
        assert_eq!(opened.read_to_end(&mut Vec::new()).await.unwrap(), bytes.len());
    }
}
