//! A few threads for hooks, with a bounded queue in front.
//!
//! In: a piece of work. Out: its result, or nothing where the queue is full. Work whose caller went away is
//! not begun. The threads end with the pool.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// Queries that wait for their hooks. At 10 ms a hook that loops, two threads are through these in a second.
const QUEUED: usize = 256;
const MAX_THREADS: usize = 8;

type Work = Box<dyn FnOnce() + Send>;

pub(super) struct Pool(SyncSender<Work>);

impl Pool {
    /// # Errors
    /// The system has no thread to give.
    pub(super) fn start() -> io::Result<Pool> {
        let (sender, receiver) = sync_channel::<Work>(QUEUED);
        let receiver = Arc::new(Mutex::new(receiver));
        let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_THREADS);
        for number in 0..threads {
            let receiver = Arc::clone(&receiver);
            thread::Builder::new().name(format!("hooks-{number}")).spawn(move || work(&receiver))?;
        }
        Ok(Pool(sender))
    }

    /// `None`: there is no place in the queue, or the work broke off.
    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (answer, waiting) = oneshot::channel();
        let work = move || {
            if !answer.is_closed() {
                // Nobody waits any more: the answer is dropped.
                let _ = answer.send(work());
            }
        };
        self.0.try_send(Box::new(work)).ok()?;
        waiting.await.ok()
    }
}

fn work(receiver: &Mutex<Receiver<Work>>) {
    loop {
        // Held while waiting, so that one thread waits and the others for it.
        let next = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            // A panic is the host's own; it must not cost a thread.
            Ok(work) => drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work))),
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_costs_no_thread() {
        let pool = Pool::start().unwrap();
        for _ in 0..2 * MAX_THREADS {
            assert_eq!(pool.run(|| -> u8 { panic!("on purpose") }).await, None);
        }
        assert_eq!(pool.run(|| 7).await, Some(7));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_at_once() {
        let pool = Pool::start().unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let mut waiting = Vec::new();
        for _ in 0..QUEUED + MAX_THREADS {
            let held = Arc::clone(&held);
            let (sender, receiver) = oneshot::channel();
            let work = Box::new(move || {
                let _ = held.lock().unwrap().recv();
                let _ = sender.send(());
            });
            if pool.0.try_send(work).is_ok() {
                waiting.push(receiver);
            }
        }
        assert!(waiting.len() >= QUEUED);
        assert_eq!(pool.run(|| 7).await, None);
        drop(release);
        for receiver in waiting {
            receiver.await.unwrap();
        }
        assert_eq!(pool.run(|| 7).await, Some(7));
    }
}
