//! Runs guest calls on threads that may block, and bounds how many run at once.
//!
//! In: work that calls guests. Out: the result of the work, or [`PluginFault::Busy`]. The time that a caller waits is
//! bounded, and so is the number of waiting callers. Detectors and checks share one limiter, and hooks have another
//! one, so that calls that take seconds never delay the hooks of a query. Not here: limits of a single call
//! (`sandbox_limits`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use terrane_app::ports::plugins::PluginFault;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bounds of a limiter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallCapacity {
    /// The largest number of calls that run at once.
    pub(crate) running: usize,
    /// The largest number of callers that wait for a permit.
    pub(crate) waiting: usize,
    /// The longest time that a caller waits.
    pub(crate) wait: Duration,
}

pub(crate) struct CallLimiter {
    permits: Arc<Semaphore>,
    waiting: AtomicUsize,
    capacity: CallCapacity,
}

/// Counts one waiting caller until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl CallLimiter {
    pub(crate) fn new(capacity: CallCapacity) -> CallLimiter {
        CallLimiter {
            permits: Arc::new(Semaphore::new(capacity.running.max(1))),
            waiting: AtomicUsize::new(0),
            capacity,
        }
    }

    /// Runs `work` once a permit is free. A caller that is dropped while it waits leaves the queue. If it is dropped
    /// later, the work continues until its own limits end it.
    ///
    /// # Errors
    /// Returns the error of `work`; [`PluginFault::Busy`] if no permit becomes free in time; [`PluginFault::Host`] if
    /// `work` panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: &'static str,
        work: impl FnOnce() -> Result<T, PluginFault> + Send + 'static,
    ) -> Result<T, PluginFault> {
        let permit = self.permit().await.ok_or(PluginFault::Busy { call })?;
        let running = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        running.await.unwrap_or_else(|_| Err(PluginFault::Host { message: "the call panicked".to_owned() }))
    }

    async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            return Some(permit);
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.capacity.waiting {
            return None;
        }
        tokio::time::timeout(self.capacity.wait, Arc::clone(&self.permits).acquire_owned()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    fn limiter(waiting: usize, wait: Duration) -> Arc<CallLimiter> {
        Arc::new(CallLimiter::new(CallCapacity { running: 1, waiting, wait }))
    }

    /// Starts a call that runs until it is released.
    async fn held(limiter: &Arc<CallLimiter>) -> (Sender<()>, tokio::task::JoinHandle<Result<(), PluginFault>>) {
        let (release, released) = channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let limiter = Arc::clone(limiter);
        let work = move |released: Receiver<()>| {
            let _ = begin.send(());
            let _ = released.recv();
            Ok(())
        };
        let running = tokio::spawn(async move { limiter.run("held", move || work(released)).await });
        begun.await.unwrap();
        (release, running)
    }

    #[tokio::test]
    async fn full_queue_rejects_at_once() {
        let limiter = limiter(1, Duration::from_secs(600));
        let (release, running) = held(&limiter).await;
        let waiting = {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.run("waits", || Ok(7)).await })
        };
        while limiter.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let rejected = limiter.run("too much", || Ok(())).await;
        assert_eq!(rejected, Err(PluginFault::Busy { call: "too much" }));
        drop(release);
        assert_eq!((running.await.unwrap(), waiting.await.unwrap()), (Ok(()), Ok(7)));
        assert_eq!(limiter.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn caller_waits_a_bounded_time_and_then_leaves_the_queue() {
        let limiter = limiter(1, Duration::from_millis(5));
        let (release, running) = held(&limiter).await;
        assert_eq!(limiter.run("late", || Ok(())).await, Err(PluginFault::Busy { call: "late" }));
        assert_eq!(limiter.waiting.load(Ordering::Relaxed), 0);
        drop(release);
        assert_eq!(running.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn work_that_panics_returns_its_permit() {
        let limiter = limiter(1, Duration::from_millis(5));
        for _ in 0..3 {
            let panicked: Result<(), _> = limiter.run("panics", || panic!("on purpose")).await;
            assert!(matches!(panicked, Err(PluginFault::Host { .. })));
        }
        assert_eq!(limiter.run("again", || Ok(1)).await, Ok(1));
    }
}
