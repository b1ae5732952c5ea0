//! The running cluster, as the script of faults sees it.
//!
//! In: started parts. Out: restarts of replicas, waits, measurements, and the holder of a lease. Not here: the faults
//! and the load, which use this module.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::balancer::Balancer;
use super::client::{Client, Reuse};
use super::load::{Load, Outcome, Sample};
use super::replicas::{Replica, Settings};
use super::services::{Postgres, Redis};
use super::usage::Usage;
use super::warehouse::Warehouse;
use crate::process::wait_until;

pub(super) const READY_LIMIT: Duration = Duration::from_secs(30);

/// The running cluster, as the faults see it.
pub(super) struct Cluster<'a> {
    pub(super) settings: &'a Settings,
    pub(super) replicas: Vec<Replica>,
    pub(super) balancer: &'a Balancer,
    pub(super) state: Postgres,
    pub(super) redis: Redis,
    pub(super) warehouse: Warehouse,
    pub(super) load: &'a Load<'a>,
    /// The secret of a key with all scopes.
    pub(super) key: String,
    pub(super) clients: usize,
    /// The number of complete runs of the script.
    pub(super) round: usize,
}

impl Cluster<'_> {
    pub(super) fn usage(&self) -> Result<Usage> {
        let replicas: Vec<u32> = self.replicas.iter().filter_map(Replica::process_id).collect();
        Usage::read(&self.state, self.warehouse.postgres.as_ref(), &self.redis, &replicas)
    }

    /// Starts a replica again, and waits until the balancer uses it.
    pub(super) fn restart(&mut self, number: usize) -> Result<()> {
        self.replicas[number].resume(self.settings, &[])?;
        wait_until("the balancer uses the replica", READY_LIMIT, || Ok(self.balancer.is_ready(number))).map(drop)
    }

    pub(super) fn wait_until_all_are_ready(&self, limit: Duration) -> Result<Duration> {
        wait_until("all replicas are ready", limit, || {
            Ok((0..self.replicas.len()).all(|number| self.balancer.is_ready(number)))
        })
    }

    pub(super) fn right_answers(&self) -> usize {
        let is_right = |sample: &&Sample| matches!(sample.outcome, Outcome::Right);
        self.load.samples.lock().map_or(0, |samples| samples.iter().filter(is_right).count())
    }

    /// Returns a client of the balancer.
    pub(super) fn admin(&self) -> Client {
        Client::new(self.balancer.port, &self.key, Reuse::Never)
    }

    /// Returns the replica whose process has acquired the lease of a task last.
    pub(super) fn holder(&self, task: &str) -> Result<usize> {
        let fence = self.state.query(&format!("SELECT fence FROM leases WHERE name = '{task}'"))?;
        let mark = format!(r#""name":"{task}","fence":{fence}}}"#);
        let holder = self.replicas.iter().position(|replica| replica.has_logged(&mark));
        holder.with_context(|| format!("no replica has logged that it acquired `{task}` with fence {fence}"))
    }
}
