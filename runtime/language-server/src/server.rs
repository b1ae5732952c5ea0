//! Serves one editor: reads messages, answers requests, and publishes diagnostics once the author pauses.
//!
//! In: the input and output of a program, and [`Projects`]. Out: the reason for the end of the session. Three threads
//! share the work: one reads messages and cancels requests that wait, one analyzes and answers, and the caller's thread
//! writes. An analysis cannot be interrupted, so the caller's thread does not wait for it after the end of the session.
//! A message that cannot be handled is answered by an error and changes nothing. Not here: features.

mod diagnostics;
mod protocol;
mod queue;
mod session;

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::ports::Projects;
use crate::transport::{self, Incoming};
use queue::{Next, Queue};
use session::Session;

/// The pause in typing after which diagnostics are computed.
const PAUSE: Duration = Duration::from_millis(150);
/// The number of messages after which diagnostics are computed even if the author does not pause.
const MAX_UNPUBLISHED: usize = 64;
/// The time for answers that are outstanding when the client sends `exit`.
const GRACE_AFTER_EXIT: Duration = Duration::from_millis(500);
/// The time for answers that are outstanding when the input ends. It is longer, because the input may be a file.
const GRACE_AFTER_INPUT: Duration = Duration::from_secs(5);
/// The time between two checks of the client's process.
const CLIENT_CHECK: Duration = Duration::from_secs(2);
/// The size of the stack that a project's SQL needs.
const STACK_BYTES: usize = 16 * 1024 * 1024;

/// The reason for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client sent `shutdown` before `exit` or the end of the input.
    ShutDown,
    /// The client sent `exit` without `shutdown`.
    Exit,
    /// The input ended without `shutdown`.
    EndOfInput,
    /// The client's process ended.
    ClientEnded,
}

/// An event for the thread that writes.
enum Event {
    Messages(Vec<Value>),
    ClientProcess(u32),
    /// The client sent its last message.
    InputEnded(io::Result<End>),
    /// All messages are handled, or the time limit has passed.
    Finished,
}

/// Serves a client until it sends `exit`, the input ends, or the client's process ends. `folder` is a project to open
/// besides the folders that the client names. An analysis that still runs at the end is abandoned.
///
/// # Errors
/// The input cannot be read or has no valid headers, or the output cannot be written.
pub fn serve(
    projects: impl Projects + 'static,
    folder: Option<&Path>,
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
) -> io::Result<End> {
    let projects: Arc<dyn Projects> = Arc::new(projects);
    let (sender, events) = mpsc::channel();
    start(&projects, folder, input, sender)?;
    let (mut end, mut client) = (None, None);
    loop {
        match events.recv_timeout(CLIENT_CHECK) {
            Ok(Event::Messages(messages)) => {
                for message in &messages {
                    transport::write(&mut output, message)?;
                }
            }
            // A process that this machine does not know may run outside the container of this program.
            Ok(Event::ClientProcess(process)) => client = Some(process).filter(|it| projects.is_process_alive(*it)),
            Ok(Event::InputEnded(reason)) => end = Some(reason),
            Ok(Event::Finished) if end.is_some() => return end.unwrap_or(Ok(End::EndOfInput)),
            Ok(Event::Finished) | Err(RecvTimeoutError::Disconnected) => {
                return end.unwrap_or_else(|| Err(io::Error::other("the session stopped")));
            }
            Err(RecvTimeoutError::Timeout) if client.is_some_and(|process| !projects.is_process_alive(process)) => {
                return Ok(End::ClientEnded);
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Starts the threads that read and analyze.
fn start(
    projects: &Arc<dyn Projects>,
    folder: Option<&Path>,
    input: impl BufRead + Send + 'static,
    events: Sender<Event>,
) -> io::Result<()> {
    let queue = Arc::new(Queue::default());
    let (of_reader, of_session) = (Arc::clone(&queue), queue);
    let (from_reader, from_session) = (events.clone(), events);
    let (projects, folder) = (Arc::clone(projects), folder.map(PathBuf::from));
    thread::Builder::new().name("lsp-input".to_owned()).spawn(move || receive(input, &of_reader, &from_reader))?;
    let session = thread::Builder::new().name("lsp-session".to_owned()).stack_size(STACK_BYTES);
    session.spawn(move || run(&*projects, folder.as_deref(), &of_session, &from_session))?;
    Ok(())
}

/// Reads messages until the last one. Errors of sending are ignored, because the session has ended by then.
fn receive(mut input: impl BufRead, queue: &Queue, events: &Sender<Event>) {
    let mut was_shut_down = false;
    let (end, grace) = loop {
        let (message, bytes) = match transport::read(&mut input) {
            Ok(Some((Incoming::Message(message), bytes))) => (message, bytes),
            Ok(Some((malformed, bytes))) => {
                queue.push(malformed, bytes);
                continue;
            }
            Ok(None) if was_shut_down => break (Ok(End::ShutDown), GRACE_AFTER_INPUT),
            Ok(None) => break (Ok(End::EndOfInput), GRACE_AFTER_INPUT),
            Err(error) => break (Err(error), GRACE_AFTER_INPUT),
        };
        match message.get("method").and_then(Value::as_str) {
            Some("exit") if was_shut_down => break (Ok(End::ShutDown), GRACE_AFTER_EXIT),
            Some("exit") => break (Ok(End::Exit), GRACE_AFTER_EXIT),
            Some("$/cancelRequest") => {
                if let Some(id) = message.pointer("/params/id").filter(|id| queue.cancel(id)) {
                    _ = events.send(Event::Messages(vec![protocol::cancelled(id.clone())]));
                }
                continue;
            }
            Some("shutdown") if message.get("id").is_some() => was_shut_down = true,
            _ => {}
        }
        queue.push(Incoming::Message(message), bytes);
    };
    _ = events.send(Event::InputEnded(end));
    queue.close();
    thread::sleep(grace);
    _ = events.send(Event::Finished);
}

/// Reports the end of the session, also after a panic.
struct Finish<'e>(&'e Sender<Event>);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        _ = self.0.send(Event::Finished);
    }
}

/// Handles messages until the queue ends.
fn run(projects: &dyn Projects, folder: Option<&Path>, queue: &Queue, events: &Sender<Event>) {
    let _finish = Finish(events);
    let mut session = Session::new(projects, folder);
    let (mut unpublished, mut has_process) = (0, false);
    loop {
        let next = match session.is_outdated() {
            true if unpublished >= MAX_UNPUBLISHED => Next::Pause,
            true => queue.next(Some(PAUSE)),
            false => queue.next(None),
        };
        let messages = match next {
            Next::Message(Incoming::Message(message)) => session.handle(message),
            Next::Message(Incoming::Malformed(reason)) => vec![protocol::parse_error(&reason)],
            Next::Pause => {
                unpublished = 0;
                session.publish()
            }
            Next::End => break,
        };
        unpublished = if session.is_outdated() { unpublished + 1 } else { 0 };
        if let Some(process) = session.client_process().filter(|_| !std::mem::replace(&mut has_process, true)) {
            _ = events.send(Event::ClientProcess(process));
        }
        if events.send(Event::Messages(messages)).is_err() {
            return;
        }
    }
}
