//! Messages that were received and wait to be handled.
//!
//! In: messages of the reading thread. Out: messages for the session, in order. Cancelled requests and replaced contents
//! of documents leave the queue, so that they cost no analysis. Not here: the handling of messages.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::transport::Incoming;

/// The largest total size of the waiting messages in bytes. The reading thread waits while there are more.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// The next message of a queue.
#[derive(Debug)]
pub(super) enum Next {
    Message(Incoming),
    /// No message arrived during the wait.
    Pause,
    /// All messages were taken, and no others will follow.
    End,
}

#[derive(Default)]
pub(super) struct Queue {
    content: Mutex<Content>,
    changed: Condvar,
}

#[derive(Default)]
struct Content {
    /// The messages with their sizes in bytes.
    waiting: VecDeque<(Incoming, usize)>,
    bytes: usize,
    is_closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message. Waits while the queue is full.
    pub(super) fn push(&self, message: Incoming, bytes: usize) {
        let mut content = self.lock();
        if let (Some((last, _)), Incoming::Message(new)) = (content.waiting.back(), &message)
            && document_of_change(new).is_some_and(|document| replaces(document, last))
        {
            let last = content.waiting.len() - 1;
            content.remove(last);
        }
        while content.bytes >= MAX_BYTES {
            content = self.changed.wait(content).unwrap_or_else(PoisonError::into_inner);
        }
        content.bytes += bytes;
        content.waiting.push_back((message, bytes));
        self.changed.notify_all();
    }

    /// Removes a waiting request. Returns false if no request with this identifier waits.
    pub(super) fn cancel(&self, id: &Value) -> bool {
        let is_cancelled = |(message, _): &(Incoming, usize)| match message {
            Incoming::Message(message) => message.get("id") == Some(id) && is_cancellable(message),
            Incoming::Malformed(_) => false,
        };
        let mut content = self.lock();
        let at = content.waiting.iter().position(is_cancelled);
        at.into_iter().for_each(|at| content.remove(at));
        at.is_some()
    }

    /// Takes the next message. Without a `pause`, waits until one arrives.
    pub(super) fn next(&self, pause: Option<Duration>) -> Next {
        let mut content = self.lock();
        loop {
            if let Some((message, bytes)) = content.waiting.pop_front() {
                content.bytes -= bytes;
                self.changed.notify_all();
                return Next::Message(message);
            }
            if content.is_closed {
                return Next::End;
            }
            let Some(pause) = pause else {
                content = self.changed.wait(content).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (woken, wait) = self.changed.wait_timeout(content, pause).unwrap_or_else(PoisonError::into_inner);
            if wait.timed_out() && woken.waiting.is_empty() {
                return Next::Pause;
            }
            content = woken;
        }
    }

    /// Declares that no messages will follow.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }
}

impl Content {
    fn remove(&mut self, at: usize) {
        if let Some((_, bytes)) = self.waiting.remove(at) {
            self.bytes -= bytes;
        }
    }
}

/// Returns whether a request may be left without a result. Requests that change the state of the session may not.
fn is_cancellable(message: &Value) -> bool {
    message.get("method").and_then(Value::as_str).is_some_and(|method| method != "initialize" && method != "shutdown")
}

/// Returns the document of a `didChange` that sends the full content.
fn document_of_change(message: &Value) -> Option<&str> {
    let is_change = message.get("method").is_some_and(|method| method == "textDocument/didChange");
    let last = message.pointer("/params/contentChanges")?.as_array()?.last()?;
    let is_full = is_change && last.get("text").is_some_and(Value::is_string) && last.get("range").is_none();
    is_full.then(|| message.pointer("/params/textDocument/uri")?.as_str()).flatten()
}

/// Returns whether a waiting message is superseded by a new one that contains the full text of the same document.
fn replaces(document: &str, waiting: &Incoming) -> bool {
    matches!(waiting, Incoming::Message(message) if document_of_change(message) == Some(document))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn queue(messages: &[Value]) -> Queue {
        let queue = Queue::default();
        messages.iter().for_each(|message| queue.push(Incoming::Message(message.clone()), 1));
        queue.close();
        queue
    }

    fn rest(queue: &Queue) -> Vec<Value> {
        let next = || match queue.next(None) {
            Next::Message(Incoming::Message(message)) => Some(message),
            _ => None,
        };
        std::iter::from_fn(next).collect()
    }

    fn change(uri: &str, text: &str) -> Value {
        let params = json!({"textDocument": {"uri": uri, "version": 1}, "contentChanges": [{"text": text}]});
        json!({"method": "textDocument/didChange", "params": params})
    }

    #[test]
    fn newer_content_replaces_content_that_waits() {
        let request = json!({"id": 1, "method": "textDocument/hover"});
        let queue = queue(&[change("a", "1"), change("a", "2"), request.clone(), change("a", "3"), change("b", "4")]);
        assert_eq!(rest(&queue), [change("a", "2"), request, change("a", "3"), change("b", "4")]);
        assert_eq!(queue.lock().bytes, 0);
    }

    #[test]
    fn cancelled_requests_leave_the_queue() {
        let request = |id: u64, method: &str| json!({"id": id, "method": method});
        let queue = queue(&[request(1, "textDocument/hover"), request(2, "shutdown")]);
        assert!(queue.cancel(&json!(1)) && !queue.cancel(&json!(1)), "the request is removed once");
        assert!(!queue.cancel(&json!(2)) && !queue.cancel(&Value::Null), "others stay");
        assert_eq!(rest(&queue), [request(2, "shutdown")]);
    }

    #[test]
    fn pause_ends_the_wait() {
        assert!(matches!(Queue::default().next(Some(Duration::from_millis(1))), Next::Pause));
    }
}
