//! The wasmtime engine.
//!
//! In: limits. Out: an [`Engine`] that creates stores with these limits. The engine is synchronous and uses both fuel
//! and epochs. It takes instances from a pool if the address space allows one, and otherwise creates each on demand.
//! Not here: ending a call whose time has passed (`watchdog`).

use std::sync::Arc;
use std::time::Duration;

use wasmtime::{Config, Enabled, InstanceAllocationStrategy, PoolingAllocationConfig, Store};

use crate::limits::{CallLimits, GuestLimits, Limiter, MEMORIES};
use crate::log::LogBudget;
use crate::memo::MemoHandle;
use crate::panic_message::PanicMessage;
use crate::sandbox_limits::SandboxLimits;
use crate::watchdog::{RunningCall, Watchdog};

const GUEST_STACK_BYTES: usize = 512 * 1024;
/// The number of instances in the pool, one for each permit (`budget`, `call_limiter`).
const POOL_INSTANCES: u32 = 64;
/// The memory per slot that stays resident between calls; 32 MiB for all slots together. Nothing stays resident if the
/// kernel cannot report which pages were touched, because then the whole memory would have to be cleared after each
/// call. The number of points in a detector's call is chosen to fit into this memory (`detector::batches`).
const RESIDENT_BYTES: usize = 512 * 1024;

/// The error if this machine cannot run WebAssembly.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cannot run WebAssembly on this machine: {message}")]
pub struct EngineError {
    pub message: String,
}

/// The engine of the whole process.
pub(crate) struct Engine {
    pub(crate) wasmtime: wasmtime::Engine,
    pub(crate) guest: GuestLimits,
    watchdog: Arc<Watchdog>,
}

impl Engine {
    pub(crate) fn new(guest: GuestLimits) -> Result<Engine, EngineError> {
        let wasmtime = pooling(&guest).or_else(|reason| {
            tracing::info!(%reason, "no address space for a pool of instances; they are created on demand");
            wasmtime::Engine::new(&config(InstanceAllocationStrategy::OnDemand, &guest))
        });
        let wasmtime = wasmtime.map_err(|error| EngineError { message: format!("{error:#}") })?;
        let watchdog = Watchdog::start(wasmtime.weak())?;
        Ok(Engine { wasmtime, guest, watchdog })
    }

    /// Creates a store with a plugin's limits, for one tenant, and starts its time and its fuel. The caller must hold
    /// the returned guard until the guest's call returns.
    pub(crate) fn new_store(
        &self,
        sandbox: &SandboxLimits,
        tenant: &str,
        limits: CallLimits,
    ) -> (Store<Guest>, RunningCall) {
        let mut store = Store::new(&self.wasmtime, sandbox.guest(tenant));
        store.limiter(|guest| &mut guest.limiter);
        store.set_hostcall_fuel(sandbox.limits.transfer_bytes);
        // Infallible with `consume_fuel`, which `config` turns on.
        let _ = store.set_fuel(limits.fuel);
        let running = self.watchdog.begin(&mut store, Duration::from_millis(limits.time_ms));
        (store, running)
    }
}

/// A store's data: the host's state for one guest.
pub(crate) struct Guest {
    pub(crate) limiter: Limiter,
    pub(crate) log: LogBudget,
    /// The memo of the component; `None` unless the operator grants it.
    pub(crate) memo: Option<MemoHandle>,
    pub(crate) panic: PanicMessage,
}

impl Guest {
    /// Returns the total size of the guest's linear memories.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.limiter.memory_bytes()
    }
}

fn config(strategy: InstanceAllocationStrategy, guest: &GuestLimits) -> Config {
    let mut config = Config::new();
    if matches!(strategy, InstanceAllocationStrategy::OnDemand) {
        // The default of 4 GiB for each memory does not fit into a small address space.
        config.memory_reservation(guest.memory_bytes as u64);
    }
    config
        .allocation_strategy(strategy)
        .consume_fuel(true)
        .epoch_interruption(true)
        .max_wasm_stack(GUEST_STACK_BYTES)
        .wasm_component_model(true)
        // Relaxed SIMD may give different results on another machine. The memory of a guest is 32-bit.
        .wasm_relaxed_simd(false)
        .wasm_memory64(false);
    config
}

fn pooling(guest: &GuestLimits) -> wasmtime::Result<wasmtime::Engine> {
    let mut pool = PoolingAllocationConfig::new();
    let instances = u32::try_from(guest.instances).unwrap_or(u32::MAX);
    let for_all = |each: u32| POOL_INSTANCES.saturating_mul(each);
    pool.total_component_instances(POOL_INSTANCES)
        .total_core_instances(for_all(instances))
        .total_memories(for_all(MEMORIES as u32))
        .total_tables(for_all(instances))
        .max_memory_size(guest.memory_bytes)
        .table_elements(guest.table_elements)
        .pagemap_scan(Enabled::Auto);
    if PoolingAllocationConfig::is_pagemap_scan_available() {
        pool.linear_memory_keep_resident(RESIDENT_BYTES).table_keep_resident(RESIDENT_BYTES);
    }
    wasmtime::Engine::new(&config(InstanceAllocationStrategy::Pooling(pool), guest))
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.watchdog.end();
    }
}
