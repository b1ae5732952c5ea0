//! The sandbox of a plugin's guests: the resources that they share with all guests of the host, and their own limits.
//!
//! In: the host's budgets, and the operator's grants. Out: the data of each new store. Not here: fuel and time, which
//! are set for each call.

use std::sync::Arc;

use crate::budget::Budget;
use crate::engine::Guest;
use crate::limits::{GuestLimits, Limiter};
use crate::log::{LogBudget, Throttle};
use crate::memo::{Memo, MemoHandle, PartitionKey};
use crate::panic_message::PanicMessage;
use crate::plugin::ConfigJson;

/// The sandbox of one plugin.
pub(crate) struct SandboxLimits {
    pub(crate) name: Arc<str>,
    pub(crate) limits: GuestLimits,
    /// The memory budget of the host; `None` on the test bench.
    pub(crate) budget: Option<Arc<Budget>>,
    pub(crate) throttle: Option<Arc<Throttle>>,
    pub(crate) memo: Option<MemoGrant>,
}

/// A component's access to the memo; each tenant has a partition of its own.
pub(crate) struct MemoGrant {
    pub(crate) memo: Arc<Memo>,
    pub(crate) digest: Arc<str>,
    pub(crate) config_json: ConfigJson,
}

impl SandboxLimits {
    /// Returns the sandbox of a component that shares nothing and has no grants.
    pub(crate) fn alone(name: Arc<str>, limits: GuestLimits) -> SandboxLimits {
        SandboxLimits { name, limits, budget: None, throttle: None, memo: None }
    }

    /// Returns the host's state for one guest, for one call on behalf of `tenant`.
    pub(crate) fn guest(&self, tenant: &str) -> Guest {
        let handle = |grant: &MemoGrant| MemoHandle {
            memo: Arc::clone(&grant.memo),
            partition_key: PartitionKey {
                digest: Arc::clone(&grant.digest),
                config_json: grant.config_json.clone(),
                tenant: tenant.into(),
            },
        };
        Guest {
            limiter: Limiter::new(self.limits, self.budget.clone()),
            log: LogBudget::new(Arc::clone(&self.name), self.throttle.clone()),
            memo: self.memo.as_ref().map(handle),
            panic: PanicMessage::default(),
        }
    }
}
