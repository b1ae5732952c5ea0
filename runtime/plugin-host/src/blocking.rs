//! Where long guest calls run: on threads that may block, and only so many at once.
//!
//! In: a call that may take seconds. Out: its answer, later. Not here: calls of microseconds, which run
//! where they are asked for.

use std::sync::Arc;

use terrane_app::ports::plugins::PluginFault;
use tokio::sync::Semaphore;

/// Calls that run at once. Others wait for their turn.
const TURNS: usize = 4;

pub(crate) struct Blocking {
    turns: Arc<Semaphore>,
}

impl Default for Blocking {
    fn default() -> Self {
        Blocking { turns: Arc::new(Semaphore::new(TURNS)) }
    }
}

impl Blocking {
    /// Runs `work` when it has a turn. A caller that goes away while it waits gives its place up; a call
    /// that has begun ends by its own limits.
    ///
    /// # Errors
    /// What `work` returns, and [`PluginFault::Host`] where it panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, PluginFault> + Send + 'static,
    ) -> Result<T, PluginFault> {
        let broke_off = || PluginFault::Host { message: "the call broke off".to_owned() };
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| broke_off())?;
        let running = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work()
        });
        running.await.unwrap_or_else(|_| Err(broke_off()))
    }
}
