//! What one server of several does for all, on and on: it removes what is over.
//!
//! In: the ports to leases and retention. Out: work until it is told to end. Whoever holds the
//! lease works; the others ask for it again and again, and take over once it has run out. A state
//! database that is down is waited for. Not here: which rows are over (store).

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::ports::clock::Clock;
use crate::ports::leases::{Lease, Leases};
use crate::ports::observer::Observer;
use crate::ports::retention::{Horizon, Pruned, Retention};
use crate::ports::store::StoreError;

/// The lease's name.
pub const PRUNING: &str = "prune";
/// A runner that died is replaced after this, and one [`TURN`] more.
pub const TTL: Duration = Duration::from_secs(15);
/// How often the lease is renewed, or asked for.
pub const TURN: Duration = Duration::from_secs(5);
/// How often it is looked for what is over.
const PERIOD: Duration = Duration::from_secs(600);
/// Transactions of one look; the rest comes with the next turn.
const MAX_STEPS: usize = 100;

/// What the operator set, and what it follows from.
#[derive(Debug, Clone, Copy)]
pub struct UpkeepSettings {
    pub retention: Duration,
    /// The longest life of an access token, which outlives its session's last refresh token.
    pub access_lifetime: Duration,
}

/// The removal of what is over.
pub struct Upkeep {
    leases: Arc<dyn Leases>,
    retention: Arc<dyn Retention>,
    clock: Arc<dyn Clock>,
    settings: UpkeepSettings,
    /// Tells this process from all others.
    holder: Arc<str>,
}

/// What a runner knows from turn to turn.
#[derive(Debug, Default)]
pub struct Turns {
    lease: Option<Lease>,
    /// When it last looked, by the clock's `elapsed`.
    looked: Option<Duration>,
}

impl Upkeep {
    pub fn new(
        leases: Arc<dyn Leases>,
        retention: Arc<dyn Retention>,
        clock: Arc<dyn Clock>,
        holder: Arc<str>,
        settings: UpkeepSettings,
    ) -> Self {
        Upkeep { leases, retention, clock, settings, holder }
    }

    /// Takes turns until `end`, then gives the lease back, so that another need not wait for its end.
    pub async fn run(&self, observer: &dyn Observer, end: impl Future<Output = ()>) {
        let mut turns = Turns::default();
        let mut interval = tokio::time::interval(TURN);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut end = std::pin::pin!(end);
        loop {
            tokio::select! {
                _ = interval.tick() => {}
                () = &mut end => break,
            }
            let started = self.clock.elapsed();
            let outcome = self.turn(&mut turns).await;
            observer.task_ended(PRUNING, outcome.is_ok(), self.clock.elapsed().saturating_sub(started));
            if let Err(error) = outcome {
                tracing::warn!(event = "upkeep_failed", error_message = %error);
            }
        }
        if let Some(lease) = turns.lease
            && let Err(error) = self.leases.release(&lease).await
        {
            tracing::warn!(event = "upkeep_failed", error_message = %error);
        }
    }

    /// Holds the lease or asks for it, and works where it is held and it is time.
    ///
    /// # Errors
    /// The store's; the next turn begins anew.
    pub async fn turn(&self, turns: &mut Turns) -> Result<Pruned, StoreError> {
        if let Some(lease) = turns.lease.take() {
            if self.leases.renew(&lease, TTL).await? {
                turns.lease = Some(lease);
            } else {
                tracing::warn!(event = "lease_lost", name = PRUNING, fence = lease.fence);
            }
        }
        if turns.lease.is_none() {
            turns.lease = self.leases.acquire(PRUNING, &self.holder, TTL).await?;
            let Some(lease) = &turns.lease else { return Ok(Pruned::default()) };
            tracing::info!(event = "lease_acquired", name = PRUNING, fence = lease.fence);
            turns.looked = None;
        }
        let now = self.clock.elapsed();
        if turns.looked.is_some_and(|looked| now.saturating_sub(looked) < PERIOD) {
            return Ok(Pruned::default());
        }
        let (pruned, is_done) = self.look(turns).await?;
        turns.looked = is_done.then_some(now);
        if pruned.total() > 0 {
            tracing::info!(
                event = "state_pruned",
                sessions = pruned.sessions,
                refresh_tokens = pruned.refresh_tokens,
                api_keys = pruned.api_keys
            );
        }
        Ok(pruned)
    }

    /// What went, and whether that was all.
    async fn look(&self, turns: &mut Turns) -> Result<(Pruned, bool), StoreError> {
        let horizon = self.horizon();
        let mut all = Pruned::default();
        for _ in 0..MAX_STEPS {
            let Some(lease) = &turns.lease else { break };
            let Some(step) = self.retention.prune(&horizon, lease).await? else {
                turns.lease = None;
                break;
            };
            all.sessions += step.sessions;
            all.refresh_tokens += step.refresh_tokens;
            all.api_keys += step.api_keys;
            if step.total() == 0 {
                return Ok((all, true));
            }
        }
        Ok((all, false))
    }

    fn horizon(&self) -> Horizon {
        let before = |length| self.clock.now().checked_sub(length).unwrap_or(Timestamp::MIN);
        let UpkeepSettings { retention, access_lifetime } = self.settings;
        Horizon { ended: before(retention), abandoned: before(retention.saturating_add(access_lifetime)) }
    }
}

#[cfg(test)]
mod tests;
