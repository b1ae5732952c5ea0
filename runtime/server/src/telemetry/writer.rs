//! The thread that writes lines, so that no request waits for a disk or a pipe.
//!
//! In: lines. Out: bytes, in a file or a stream. Lines are appended to one bounded buffer and taken from it as a whole,
//! without an allocation and a wake-up for each. If the buffer is full, or its lines cannot be written, they are lost
//! and counted; the count is logged as soon as possible.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

const MAX_BUFFERED_BYTES: usize = 8 * 1_024 * 1_024;
/// The time for which lines are collected before they are written together, so that a busy server makes few system
/// calls.
const GATHER: Duration = Duration::from_millis(5);
/// The time that the end of the process waits for the remaining lines to be written. Lines that then remain are lost.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<u8>,
    is_closed: bool,
    /// True if the thread has ended.
    is_over: bool,
}

/// A function that returns the line to report a number of lost lines.
pub(super) type Note = Box<dyn Fn(u64) -> Vec<u8> + Send>;

/// The buffer of lines; clones share it.
#[derive(Debug, Clone)]
pub(super) struct Sink(Arc<Shared>);

impl Sink {
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.lock();
        if state.lines.len() + line.len() > MAX_BUFFERED_BYTES {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = state.lines.is_empty();
        state.lines.extend_from_slice(line);
        drop(state);
        if was_empty {
            self.0.changed.notify_all();
        }
    }

    pub(super) fn dropped_lines(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Bytes are appended whole or not at all, so the buffer is consistent after a panic.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that writes lines. When this value is dropped, the thread writes the remaining lines and ends.
#[derive(Debug)]
pub(super) struct Writer {
    sink: Sink,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(target: Box<dyn Write + Send>, note: Note) -> io::Result<Self> {
        let sink = Sink(Arc::new(Shared::default()));
        let source = sink.clone();
        let writing = move || write_all(&source, target, &note);
        let thread = std::thread::Builder::new().name("log".to_owned()).spawn(writing)?;
        Ok(Writer { sink, thread: Some(thread) })
    }

    pub(super) fn sink(&self) -> &Sink {
        &self.sink
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut state = self.sink.lock();
        state.is_closed = true;
        self.sink.0.changed.notify_all();
        // Without this timeout, a pipe that is not read would block the process forever.
        let waited = self.sink.0.changed.wait_timeout_while(state, LAST_WORDS, |state| !state.is_over);
        let is_over = waited.map_or(true, |(state, _)| state.is_over);
        if let Some(thread) = self.thread.take().filter(|_| is_over) {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

fn write_all(source: &Sink, mut target: Box<dyn Write + Send>, note: &Note) {
    let _over = Over(source);
    let mut lines = Vec::new();
    let mut reported = 0;
    loop {
        let is_closed = take(source, &mut lines);
        let dropped = source.dropped_lines();
        let noted = dropped > reported;
        if noted {
            lines.extend_from_slice(&note(dropped - reported));
        }
        // On a full disk or a closed pipe the lines are lost, and the server continues.
        match target.write_all(&lines).and_then(|()| target.flush()) {
            Ok(()) => reported = dropped,
            Err(_) => {
                let lost = lines.iter().filter(|byte| **byte == b'\n').count() - usize::from(noted);
                source.0.dropped.fetch_add(lost as u64, Ordering::Relaxed);
            }
        }
        lines.clear();
        lines.shrink_to(64 * 1_024);
        if is_closed {
            return;
        }
    }
}

/// Reports the end of the thread, even after a panic.
struct Over<'a>(&'a Sink);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.0.changed.notify_all();
    }
}

/// Waits for lines, lets more gather, and takes them all. Returns true if no further lines will come.
fn take(source: &Sink, lines: &mut Vec<u8>) -> bool {
    let wait = |state| source.0.changed.wait_while(state, |s: &mut State| s.lines.is_empty() && !s.is_closed);
    let state = wait(source.lock()).unwrap_or_else(PoisonError::into_inner);
    let gathered = source.0.changed.wait_timeout_while(state, GATHER, |s| !s.is_closed);
    let (mut state, _) = gathered.unwrap_or_else(PoisonError::into_inner);
    std::mem::swap(&mut state.lines, lines);
    state.is_closed
}
