//! A lease that this process holds. It is renewed during the work, and released at the end.
//!
//! In: the port to leases. Out: [`HeldLease`]. Dropping it releases the lease, so that cancelled work does not block
//! other processes until the lease expires.

use std::sync::Arc;
use std::time::Duration;

use crate::ports::clock::Clock;
use crate::ports::leases::{Lease, Leases};
use crate::ports::store::StoreError;

/// The times of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The time after which a lease that is not renewed expires.
    pub ttl: Duration,
    /// The time between renewals, and between attempts to acquire a lease that another process holds.
    pub renewal: Duration,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        LeaseSettings { ttl: Duration::from_secs(15), renewal: Duration::from_secs(5) }
    }
}

/// The reason why a lease ended.
#[derive(Debug, Clone)]
pub enum LeaseLoss {
    /// The lease expired, and another process may hold it.
    Expired,
    /// The state database did not answer until the lease expired.
    Store(StoreError),
}

/// A lease that this process holds. If it is dropped, a separate task releases it.
pub struct HeldLease {
    lease: Lease,
    leases: Arc<dyn Leases>,
    /// True until the lease is released or lost.
    is_held: bool,
}

impl HeldLease {
    /// Acquires a lease; `None` while another process holds it.
    ///
    /// # Errors
    /// The state database cannot be written.
    pub async fn acquire(
        leases: &Arc<dyn Leases>,
        name: &str,
        holder: &str,
        settings: LeaseSettings,
    ) -> Result<Option<Self>, StoreError> {
        let lease = leases.acquire(name, holder, settings.ttl).await?;
        Ok(lease.map(|lease| HeldLease { lease, leases: Arc::clone(leases), is_held: true }))
    }

    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// Renews the lease. Returns false if it has expired.
    ///
    /// # Errors
    /// The state database cannot be written; the lease still holds until it expires.
    pub async fn renew(&self, settings: LeaseSettings) -> Result<bool, StoreError> {
        self.leases.renew(&self.lease, settings.ttl).await
    }

    /// Renews the lease periodically. Returns when the lease is lost.
    pub async fn until_lost(&self, clock: &dyn Clock, settings: LeaseSettings) -> LeaseLoss {
        let mut renewed = clock.elapsed();
        loop {
            tokio::time::sleep(settings.renewal).await;
            match self.renew(settings).await {
                Ok(true) => renewed = clock.elapsed(),
                Ok(false) => return LeaseLoss::Expired,
                // The lease holds until it expires, and the state database may answer again before that.
                Err(error) if clock.elapsed().saturating_sub(renewed) >= settings.ttl => {
                    return LeaseLoss::Store(error);
                }
                Err(_) => {}
            }
        }
    }

    /// Releases the lease, so that another process need not wait until it expires.
    ///
    /// # Errors
    /// The state database cannot be written; the lease expires by itself.
    pub async fn release(mut self) -> Result<(), StoreError> {
        self.is_held = false;
        self.leases.release(&self.lease).await
    }

    /// Drops a lease that was lost, without releasing it.
    pub fn forget(mut self) {
        self.is_held = false;
    }
}

impl Drop for HeldLease {
    fn drop(&mut self) {
        if !self.is_held {
            return;
        }
        // Outside an asynchronous runtime, the lease cannot be released and expires.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (leases, lease) = (Arc::clone(&self.leases), self.lease.clone());
        runtime.spawn(async move {
            if let Err(error) = leases.release(&lease).await {
                tracing::warn!(event = "lease_not_released", name = &*lease.name, error_message = %error);
            }
        });
    }
}
