//! The limits of one guest: memory, tables and instances of a store, fuel and time of a call.
//!
//! In: numbers. Out: a [`Limiter`] that wasmtime consults before a store grows. wasmtime's own limiter limits each
//! memory separately, while this one limits the sum over a store. If a guest exceeds a limit, its call ends with a
//! typed fault. Otherwise `memory.grow` would fail, and the guest would trap later for an unrelated reason.

use std::sync::Arc;

use terrane_app::ports::plugins::{Limit, PluginRole};
use wasmtime::ResourceLimiter;

use crate::budget::Budget;

/// The number of linear memories of one store. The engine's pool has this number of memories for each permit
/// (`budget`). A component that consists of one core module has one memory.
pub(crate) const MEMORIES: usize = 1;

/// The limits of one store, which contains one fresh instance of a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuestLimits {
    /// The largest size of all linear memories together, in bytes.
    pub memory_bytes: usize,
    /// The largest number of elements in all tables together.
    pub table_elements: usize,
    pub instances: usize,
    /// The bytes that one call may transfer to the host.
    pub transfer_bytes: usize,
}

impl Default for GuestLimits {
    fn default() -> Self {
        GuestLimits {
            memory_bytes: 64 * 1024 * 1024,
            table_elements: 20_000,
            instances: 16,
            transfer_bytes: 4 * 1024 * 1024,
        }
    }
}

/// The limits of one call, including its instantiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// The fuel of a call. One WebAssembly instruction consumes about one unit.
    pub fuel: u64,
    /// The processor time of a call. The elapsed time may be ten times as long (`watchdog`).
    pub time_ms: u64,
}

impl CallLimits {
    /// The limits of `describe`, `check-config` and `describe-dialect`, which are called once per load. The first-party
    /// dialects need less than 1 % of this fuel.
    pub const DESCRIBE: CallLimits = CallLimits { fuel: 50_000_000, time_ms: 100 };

    /// Returns the default limits of a role's calls. The only call of a dialect is `describe-dialect`.
    pub fn of(role: PluginRole) -> CallLimits {
        match role {
            PluginRole::Dialect => CallLimits::DESCRIBE,
            PluginRole::Governance => CallLimits { fuel: 20_000_000, time_ms: 10 },
            PluginRole::Detector | PluginRole::Check => CallLimits { fuel: 10_000_000_000, time_ms: 5_000 },
        }
    }
}

/// The error that wasmtime raises when a store exceeds a limit.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("{0} limit exceeded")]
pub(crate) struct LimitReached(pub(crate) Limit);

/// Counts the resources of a store, and returns its memory to the host's budget when the store is dropped.
#[derive(Debug)]
pub(crate) struct Limiter {
    limits: GuestLimits,
    budget: Option<Arc<Budget>>,
    memory_bytes: usize,
    table_elements: usize,
}

impl Limiter {
    pub(crate) fn new(limits: GuestLimits, budget: Option<Arc<Budget>>) -> Limiter {
        Limiter { limits, budget, memory_bytes: 0, table_elements: 0 }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }
}

impl Drop for Limiter {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.release(self.memory_bytes);
        }
    }
}

/// Adds the growth to the used amount. Fails if the sum exceeds the limit.
fn grow(used: &mut usize, current: usize, desired: usize, most: usize, limit: Limit) -> wasmtime::Result<bool> {
    let wanted = used.saturating_add(desired.saturating_sub(current));
    if wanted > most {
        return Err(wasmtime::Error::new(LimitReached(limit)));
    }
    *used = wanted;
    Ok(true)
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let before = self.memory_bytes;
        grow(&mut self.memory_bytes, current, desired, self.limits.memory_bytes, Limit::Memory)?;
        let more = self.memory_bytes - before;
        if self.budget.as_ref().is_some_and(|budget| !budget.reserve(more)) {
            self.memory_bytes = before;
            return Err(wasmtime::Error::new(LimitReached(Limit::HostMemory)));
        }
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        grow(&mut self.table_elements, current, desired, self.limits.table_elements, Limit::Tables)
    }

    fn instances(&self) -> usize {
        self.limits.instances
    }

    fn tables(&self) -> usize {
        self.limits.instances
    }

    fn memories(&self) -> usize {
        MEMORIES
    }
}
