//! Serves one editor: reads messages, answers requests, and publishes diagnostics once the author pauses.
//!
//! In: the input and output of a program, and [`Projects`]. Out: nothing, after the client's `exit` or the end of the
//! input. A message that cannot be handled is answered by an error and changes nothing. Not here: features.

mod diagnostics;
mod session;

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use crate::ports::Projects;
use crate::transport::{self, Incoming};
use session::{Session, State};

/// The pause in typing after which diagnostics are computed.
const PAUSE: Duration = Duration::from_millis(150);
/// The largest number of messages that wait to be handled.
const MAX_QUEUED: usize = 256;
/// The number of messages after which diagnostics are computed even if the author does not pause.
const MAX_UNPUBLISHED: usize = 64;

/// Serves a client until it sends `exit`, or the input ends. Returns true if the client sent `shutdown` before.
/// `folder` is a project to open besides the folders that the client names.
///
/// # Errors
/// The input cannot be read or has no valid headers, or the output cannot be written.
pub fn serve(
    projects: &dyn Projects,
    folder: Option<&Path>,
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> io::Result<bool> {
    let (sender, receiver) = mpsc::sync_channel(MAX_QUEUED);
    // The thread ends when the input ends, or when the receiver is dropped.
    thread::Builder::new().name("lsp-input".to_owned()).spawn(move || {
        loop {
            let read = transport::read(&mut input);
            let is_last = !matches!(read, Ok(Some(_)));
            if sender.send(read).is_err() || is_last {
                return;
            }
        }
    })?;
    let mut session = Session::new(projects, folder);
    let mut unpublished = 0;
    loop {
        let is_due = unpublished >= MAX_UNPUBLISHED;
        let received = match session.is_outdated() {
            true if is_due => Err(RecvTimeoutError::Timeout),
            true => receiver.recv_timeout(PAUSE),
            false => receiver.recv().map_err(RecvTimeoutError::from),
        };
        let messages = match received {
            Ok(Ok(Some(Incoming::Message(message)))) => session.handle(message),
            Ok(Ok(Some(Incoming::Malformed(reason)))) => vec![session::parse_error(&reason)],
            Ok(Err(error)) => return Err(error),
            Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => return Ok(session.state() == State::ShutDown),
            Err(RecvTimeoutError::Timeout) => {
                unpublished = 0;
                session.publish()
            }
        };
        unpublished = if session.is_outdated() { unpublished + 1 } else { 0 };
        for message in &messages {
            transport::write(&mut output, message)?;
        }
        if let State::Exited { is_announced } = session.state() {
            return Ok(is_announced);
        }
    }
}
