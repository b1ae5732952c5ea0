//! The interface `terrane:host/memo`: a small memory between calls, for plugins with the grant `memo`.
//!
//! In: keys and values, as guests wrote them. Out: the stored value, unless it has expired or was evicted. A partition
//! belongs to one component (by its digest), its configuration and one tenant, so that no value passes between tenants.
//! The size of each partition is bounded: the entry that was written longest ago is evicted first. The size of all
//! partitions together is bounded too: the least recently used partition is evicted first. Nothing is written to disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::bindings::memo::Host;
use crate::engine::Guest;
use crate::monotonic_clock::MonotonicClock;
use crate::plugin::ConfigJson;

const MAX_KEY_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 64 * 1024;
const MAX_PARTITION_BYTES: usize = 1024 * 1024;
const MAX_PARTITION_ENTRIES: usize = 1_024;
const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_PARTITIONS: usize = 10_000;
/// The estimated size of an entry in bytes, without its key and value.
const ENTRY_BYTES: usize = 96;

/// The partitions of a host.
pub(crate) struct Memo {
    clock: MonotonicClock,
    partitions: Mutex<Partitions>,
}

#[derive(Default)]
struct Partitions {
    by_key: HashMap<PartitionKey, Partition>,
    bytes: usize,
    /// The number of uses so far. The partition with the lowest number was least recently used.
    uses: u64,
}

/// The owner of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PartitionKey {
    pub(crate) digest: Arc<str>,
    pub(crate) config_json: ConfigJson,
    pub(crate) tenant: Arc<str>,
}

#[derive(Default)]
struct Partition {
    entries: HashMap<String, Entry>,
    bytes: usize,
    used: u64,
}

struct Entry {
    value: Vec<u8>,
    expires_at: Option<Duration>,
    put: u64,
}

/// A guest's access to its partition.
pub(crate) struct MemoHandle {
    pub(crate) memo: Arc<Memo>,
    pub(crate) partition_key: PartitionKey,
}

impl Memo {
    pub(crate) fn new(clock: MonotonicClock) -> Arc<Memo> {
        Arc::new(Memo { clock, partitions: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Partitions> {
        // A panic may leave a wrong count, which is corrected as partitions are evicted.
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, partition_key: &PartitionKey, key: &str) -> Option<Vec<u8>> {
        let now = self.clock.now();
        let mut partitions = self.lock();
        partitions.uses += 1;
        let used = partitions.uses;
        let partition = partitions.by_key.get_mut(partition_key)?;
        partition.used = used;
        let entry = partition.entries.get(key)?;
        if entry.expires_at.is_some_and(|expires_at| expires_at <= now) {
            let freed = partition.remove(key);
            partitions.bytes -= freed;
            return None;
        }
        Some(entry.value.clone())
    }

    fn put(&self, partition_key: &PartitionKey, key: String, value: Vec<u8>, ttl_seconds: u32) -> Result<(), String> {
        if key.len() > MAX_KEY_BYTES {
            return Err(format!("the key is {} bytes long, the limit is {MAX_KEY_BYTES}", key.len()));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!("the value is {} bytes long, the limit is {MAX_VALUE_BYTES}", value.len()));
        }
        let expires_at = (ttl_seconds > 0).then(|| self.clock.now() + Duration::from_secs(ttl_seconds.into()));
        let mut partitions = self.lock();
        partitions.uses += 1;
        let used = partitions.uses;
        let partition = partitions.by_key.entry(partition_key.clone()).or_default();
        let before = partition.bytes;
        partition.used = used;
        partition.put(key, Entry { value, expires_at, put: used });
        let after = partition.bytes;
        partitions.bytes = partitions.bytes + after - before;
        partitions.evict();
        Ok(())
    }
}

impl Partition {
    fn put(&mut self, key: String, entry: Entry) {
        self.remove(&key);
        let bytes = size(&key, &entry);
        while self.bytes + bytes > MAX_PARTITION_BYTES || self.entries.len() >= MAX_PARTITION_ENTRIES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.put).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.remove(&oldest);
        }
        self.bytes += bytes;
        self.entries.insert(key, entry);
    }

    /// Removes an entry and returns its size.
    fn remove(&mut self, key: &str) -> usize {
        let freed = self.entries.remove_entry(key).map_or(0, |(key, entry)| size(&key, &entry));
        self.bytes -= freed;
        freed
    }
}

impl Partitions {
    fn evict(&mut self) {
        while self.bytes > MAX_BYTES || self.by_key.len() > MAX_PARTITIONS {
            let oldest = self
                .by_key
                .iter()
                .min_by_key(|(_, partition)| partition.used)
                .map(|(partition_key, _)| partition_key.clone());
            let Some(partition) = oldest.and_then(|partition_key| self.by_key.remove(&partition_key)) else { break };
            self.bytes = self.bytes.saturating_sub(partition.bytes);
        }
    }
}

fn size(key: &str, entry: &Entry) -> usize {
    key.len() + entry.value.len() + ENTRY_BYTES
}

/// Implements the interface, which is linked only if the plugin has the grant. A guest without a partition stores
/// nothing.
impl Host for Guest {
    fn get(&mut self, key: String) -> Option<Vec<u8>> {
        let handle = self.memo.as_ref()?;
        handle.memo.get(&handle.partition_key, &key)
    }

    fn put(&mut self, key: String, value: Vec<u8>, ttl_seconds: u32) -> Result<(), String> {
        let handle = self.memo.as_ref().ok_or("`memo` is not granted")?;
        handle.memo.put(&handle.partition_key, key, value, ttl_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monotonic_clock::tests::ManualClock;

    fn partition_key(tenant: &str) -> PartitionKey {
        PartitionKey { digest: "d".into(), config_json: "{}".into(), tenant: tenant.into() }
    }

    fn memo() -> (ManualClock, Arc<Memo>) {
        let clock = ManualClock::default();
        let memo = Memo::new(clock.elapsed());
        (clock, memo)
    }

    #[test]
    fn partition_belongs_to_one_component_configuration_and_tenant() {
        let (_, memo) = memo();
        memo.put(&partition_key("a"), "k".into(), b"secret".to_vec(), 0).unwrap();
        assert_eq!(memo.get(&partition_key("a"), "k").as_deref(), Some(&b"secret"[..]));
        let other = [
            partition_key("b"),
            PartitionKey { digest: "e".into(), ..partition_key("a") },
            PartitionKey { config_json: "".into(), ..partition_key("a") },
        ];
        for other in other {
            assert_eq!(memo.get(&other, "k"), None, "{other:?}");
        }
    }

    #[test]
    fn expired_entries_are_removed() {
        let (clock, memo) = memo();
        memo.put(&partition_key("a"), "k".into(), vec![1], 10).unwrap();
        clock.advance(Duration::from_secs(9));
        assert_eq!(memo.get(&partition_key("a"), "k"), Some(vec![1]));
        clock.advance(Duration::from_secs(1));
        assert_eq!(memo.get(&partition_key("a"), "k"), None);
        assert_eq!(memo.lock().bytes, 0);
    }

    #[test]
    fn partitions_are_bounded_and_evict_the_oldest_entries() {
        let (_, memo) = memo();
        assert!(memo.put(&partition_key("a"), "k".repeat(MAX_KEY_BYTES + 1), vec![], 0).unwrap_err().contains("256"));
        assert!(
            memo.put(&partition_key("a"), "k".into(), vec![0; MAX_VALUE_BYTES + 1], 0).unwrap_err().contains("65536")
        );
        for number in 0..MAX_PARTITION_ENTRIES + 1 {
            memo.put(&partition_key("a"), number.to_string(), vec![1], 0).unwrap();
        }
        assert_eq!(memo.get(&partition_key("a"), "0"), None);
        assert!(memo.get(&partition_key("a"), "1").is_some());
        for tenant in 0..100 {
            for number in 0..20 {
                memo.put(&partition_key(&tenant.to_string()), number.to_string(), vec![0; MAX_VALUE_BYTES], 0).unwrap();
            }
            assert!(memo.lock().bytes <= MAX_BYTES);
        }
        let partitions = memo.lock();
        assert!(partitions.by_key.values().all(|partition| partition.bytes <= MAX_PARTITION_BYTES));
        assert_eq!(partitions.bytes, partitions.by_key.values().map(|partition| partition.bytes).sum::<usize>());
        assert!(
            !partitions.by_key.contains_key(&partition_key("a"))
                && partitions.by_key.contains_key(&partition_key("99"))
        );
    }

    #[test]
    fn replaced_value_does_not_add_to_the_size() {
        let (_, memo) = memo();
        for _ in 0..100 {
            memo.put(&partition_key("a"), "k".into(), vec![0; MAX_VALUE_BYTES], 0).unwrap();
        }
        assert_eq!(memo.lock().bytes, MAX_VALUE_BYTES + 1 + ENTRY_BYTES);
    }
}
