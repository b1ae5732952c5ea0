//! Where long guest calls run: on threads that may block, and only so many at once.
//!
//! In: a call that may take seconds. Out: its answer, later. The line has an end, and nobody waits in it for
//! ever: who comes too much is told to come again. Not here: calls of milliseconds (`budget`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use terrane_app::ports::plugins::PluginFault;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::budget::{HostLimits, MAX_LONG_CALLS};

pub(crate) struct Blocking {
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
    wait: Duration,
}

/// A place in the line, given up when it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Blocking {
    pub(crate) fn new(limits: HostLimits) -> Blocking {
        Blocking {
            turns: Arc::new(Semaphore::new(limits.long_calls.clamp(1, MAX_LONG_CALLS))),
            waiting: AtomicUsize::new(0),
            most_waiting: limits.waiting,
            wait: limits.long_wait,
        }
    }

    /// Runs `work`, which makes the call, when it has a turn. A caller that goes away while it waits gives its
    /// place up; a call that has begun ends by its own limits.
    ///
    /// # Errors
    /// What `work` returns, [`PluginFault::Busy`] where its turn did not come, and [`PluginFault::Host`] where it
    /// panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        call: &'static str,
        work: impl FnOnce() -> Result<T, PluginFault> + Send + 'static,
    ) -> Result<T, PluginFault> {
        let turn = self.turn().await.ok_or(PluginFault::Busy { call })?;
        let running = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        running.await.unwrap_or_else(|_| Err(PluginFault::Host { message: "the call broke off".to_owned() }))
    }

    async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = Arc::clone(&self.turns).try_acquire_owned() {
            return Some(turn);
        }
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _place = Place(&self.waiting);
        if before >= self.most_waiting {
            return None;
        }
        tokio::time::timeout(self.wait, Arc::clone(&self.turns).acquire_owned()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    fn blocking(waiting: usize, long_wait: Duration) -> Arc<Blocking> {
        let limits = HostLimits { long_calls: 1, waiting, long_wait, ..HostLimits::default() };
        Arc::new(Blocking::new(limits))
    }

    /// One call that runs until it is released.
    async fn held(blocking: &Arc<Blocking>) -> (Sender<()>, tokio::task::JoinHandle<Result<(), PluginFault>>) {
        let (release, released) = channel::<()>();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let blocking = Arc::clone(blocking);
        let work = move |released: Receiver<()>| {
            let _ = begin.send(());
            let _ = released.recv();
            Ok(())
        };
        let running = tokio::spawn(async move { blocking.run("held", move || work(released)).await });
        begun.await.unwrap();
        (release, running)
    }

    #[tokio::test]
    async fn the_line_has_an_end() {
        let blocking = blocking(1, Duration::from_secs(600));
        let (release, running) = held(&blocking).await;
        let waiting = {
            let blocking = Arc::clone(&blocking);
            tokio::spawn(async move { blocking.run("waits", || Ok(7)).await })
        };
        while blocking.waiting.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        let refused = blocking.run("too much", || Ok(())).await;
        assert_eq!(refused, Err(PluginFault::Busy { call: "too much" }));
        drop(release);
        assert_eq!((running.await.unwrap(), waiting.await.unwrap()), (Ok(()), Ok(7)));
        assert_eq!(blocking.waiting.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn nobody_waits_for_ever_and_who_goes_away_gives_up_its_place() {
        let blocking = blocking(1, Duration::from_millis(5));
        let (release, running) = held(&blocking).await;
        assert_eq!(blocking.run("late", || Ok(())).await, Err(PluginFault::Busy { call: "late" }));
        assert_eq!(blocking.waiting.load(Ordering::Relaxed), 0);
        drop(release);
        assert_eq!(running.await.unwrap(), Ok(()));
        let panicked: Result<(), _> = blocking.run("panics", || panic!("on purpose")).await;
        assert!(matches!(panicked, Err(PluginFault::Host { .. })));
        assert_eq!(blocking.run("again", || Ok(1)).await, Ok(1));
    }
}
