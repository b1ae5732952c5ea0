//! A few threads for hooks, with a bounded queue in front.
//!
//! In: a piece of work. Out: its result, or why it was not done: the queue was full, or no thread came to it in time.
//! Work whose caller went away is not begun. The threads end with the pool.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

/// A queued query waits so long for its turn; once it has come, hooks have their own limits.
const PATIENCE: Duration = Duration::from_secs(2);
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

    pub(super) async fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, NotDone> {
        self.run_within(PATIENCE, work).await
    }

    async fn run_within<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotDone> {
        let (begin, begun) = oneshot::channel();
        let (answer, answered) = oneshot::channel();
        let work = move || {
            if begin.send(()).is_ok() {
                // Nobody waits any more: the answer is dropped.
                let _ = answer.send(work());
            }
        };
        self.0.try_send(Box::new(work)).map_err(|_| NotDone::Full)?;
        match tokio::time::timeout(patience, begun).await {
            Ok(Ok(())) => answered.await.map_err(|_| NotDone::BrokeOff),
            Ok(Err(_)) => Err(NotDone::BrokeOff),
            Err(_) => Err(NotDone::Late),
        }
    }
}

/// Why hooks were not asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotDone {
    #[error("too many queries wait for their hooks")]
    Full,
    #[error("the hooks' turn did not come in time")]
    Late,
    #[error("the host broke off")]
    BrokeOff,
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
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn work_that_panics_costs_no_thread() {
        let pool = Pool::start().unwrap();
        for _ in 0..2 * MAX_THREADS {
            assert_eq!(pool.run(|| -> u8 { panic!("on purpose") }).await, Err(NotDone::BrokeOff));
        }
        assert_eq!(pool.run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn a_turn_has_to_come_in_time_and_work_may_then_last() {
        let pool = Pool::start().unwrap();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let lasting = async |_| {
            let held = Arc::clone(&held);
            pool.run_within(Duration::from_secs(600), move || held.lock().unwrap().recv().is_err()).await
        };
        let late = async {
            let late = pool.run_within(Duration::from_millis(5), || 7).await;
            drop(release);
            late
        };
        // As many as there may be threads are in the queue before it.
        let (lasted, late) = tokio::join!(join_all((0..MAX_THREADS).map(lasting)), late);
        assert_eq!((lasted, late), (vec![Ok(true); MAX_THREADS], Err(NotDone::Late)));
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
        assert_eq!(pool.run(|| 7).await, Err(NotDone::Full));
        drop(release);
        for receiver in waiting {
            receiver.await.unwrap();
        }
        assert_eq!(pool.run(|| 7).await, Ok(7));
    }
}
