//! A socket with a timeout for writes, which holds the connection's permit.
//!
//! In: a stream. Out: the same stream. A client that does not read for too long loses its connection, so that unread
//! answers do not fill the memory. The permit is released when the stream is dropped, even after an upgrade of the
//! connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};

use super::drain::DrainToken;

/// The place of a connection, and its part in a shutdown.
pub(super) struct ConnectionGuard {
    _permit: OwnedSemaphorePermit,
    _drain: DrainToken,
}

impl ConnectionGuard {
    pub(super) fn new(permit: OwnedSemaphorePermit, drain: DrainToken) -> Self {
        ConnectionGuard { _permit: permit, _drain: drain }
    }
}

pub(super) struct Progress<S> {
    stream: S,
    _guard: ConnectionGuard,
    timeout: Duration,
    /// The timer of a write that waits; `None` if no write waits.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<S> Progress<S> {
    pub(super) fn new(stream: S, timeout: Duration, guard: ConnectionGuard) -> Self {
        Progress { stream, _guard: guard, timeout, deadline: None }
    }

    /// Returns the outcome of a write. A write that waits gets a deadline.
    fn within_time<T>(&mut self, outcome: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.deadline = None;
            return outcome;
        }
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(self.timeout)));
        ready!(deadline.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Progress<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Progress<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within_time(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.within_time(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.within_time(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
