//! The interface `terrane:host/memo`: a small memory between calls, for those whom it is granted.
//!
//! In: keys and values, as guests wrote them. Out: what was kept, or that it is gone. A room belongs to one
//! component (by its digest), its configuration and one tenant, so nothing goes from one tenant to the next.
//! A room is bounded, and so are all rooms together: the one that was used longest ago makes room. Nothing
//! is on disk.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::bindings::memo::Host;
use crate::elapsed::Elapsed;
use crate::engine::Guest;
use crate::plugin::ConfigJson;

const MAX_KEY_BYTES: usize = 256;
const MAX_VALUE_BYTES: usize = 64 * 1024;
const MAX_ROOM_BYTES: usize = 1024 * 1024;
const MAX_ROOM_ENTRIES: usize = 1_024;
const MAX_BYTES: usize = 64 * 1024 * 1024;
const MAX_ROOMS: usize = 10_000;
/// What an entry takes besides its key and value.
const ENTRY_BYTES: usize = 96;

/// All rooms of a host.
pub(crate) struct Memo {
    clock: Elapsed,
    rooms: Mutex<Rooms>,
}

#[derive(Default)]
struct Rooms {
    by_owner: HashMap<Owner, Room>,
    bytes: usize,
    /// Counts uses: who has the lowest was used longest ago.
    uses: u64,
}

/// Whose a room is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) digest: Arc<str>,
    pub(crate) config_json: ConfigJson,
    pub(crate) tenant: Arc<str>,
}

#[derive(Default)]
struct Room {
    entries: HashMap<String, Entry>,
    bytes: usize,
    used: u64,
}

struct Entry {
    value: Vec<u8>,
    until: Option<Duration>,
    put: u64,
}

/// One guest's way to its room.
pub(crate) struct MemoDoor {
    pub(crate) memo: Arc<Memo>,
    pub(crate) owner: Owner,
}

impl Memo {
    pub(crate) fn new(clock: Elapsed) -> Arc<Memo> {
        Arc::new(Memo { clock, rooms: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Rooms> {
        // A count that is off after a panic is put right as rooms make way.
        self.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, owner: &Owner, key: &str) -> Option<Vec<u8>> {
        let now = self.clock.now();
        let mut rooms = self.lock();
        rooms.uses += 1;
        let used = rooms.uses;
        let room = rooms.by_owner.get_mut(owner)?;
        room.used = used;
        let entry = room.entries.get(key)?;
        if entry.until.is_some_and(|until| until <= now) {
            let freed = room.remove(key);
            rooms.bytes -= freed;
            return None;
        }
        Some(entry.value.clone())
    }

    fn put(&self, owner: &Owner, key: String, value: Vec<u8>, ttl_seconds: u32) -> Result<(), String> {
        if key.len() > MAX_KEY_BYTES {
            return Err(format!("the key is {} bytes long, the limit is {MAX_KEY_BYTES}", key.len()));
        }
        if value.len() > MAX_VALUE_BYTES {
            return Err(format!("the value is {} bytes long, the limit is {MAX_VALUE_BYTES}", value.len()));
        }
        let until = (ttl_seconds > 0).then(|| self.clock.now() + Duration::from_secs(ttl_seconds.into()));
        let mut rooms = self.lock();
        rooms.uses += 1;
        let used = rooms.uses;
        let room = rooms.by_owner.entry(owner.clone()).or_default();
        let before = room.bytes;
        room.used = used;
        room.put(key, Entry { value, until, put: used });
        let after = room.bytes;
        rooms.bytes = rooms.bytes + after - before;
        rooms.make_way();
        Ok(())
    }
}

impl Room {
    fn put(&mut self, key: String, entry: Entry) {
        self.remove(&key);
        let bytes = size(&key, &entry);
        while self.bytes + bytes > MAX_ROOM_BYTES || self.entries.len() >= MAX_ROOM_ENTRIES {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.put).map(|(key, _)| key.clone());
            let Some(oldest) = oldest else { break };
            self.remove(&oldest);
        }
        self.bytes += bytes;
        self.entries.insert(key, entry);
    }

    /// The bytes that this freed.
    fn remove(&mut self, key: &str) -> usize {
        let freed = self.entries.remove_entry(key).map_or(0, |(key, entry)| size(&key, &entry));
        self.bytes -= freed;
        freed
    }
}

impl Rooms {
    fn make_way(&mut self) {
        while self.bytes > MAX_BYTES || self.by_owner.len() > MAX_ROOMS {
            let oldest = self.by_owner.iter().min_by_key(|(_, room)| room.used).map(|(owner, _)| owner.clone());
            let Some(room) = oldest.and_then(|owner| self.by_owner.remove(&owner)) else { break };
            self.bytes = self.bytes.saturating_sub(room.bytes);
        }
    }
}

fn size(key: &str, entry: &Entry) -> usize {
    key.len() + entry.value.len() + ENTRY_BYTES
}

/// Where there is no room, nothing is kept: it was not granted, and then it is not linked either.
impl Host for Guest {
    fn get(&mut self, key: String) -> Option<Vec<u8>> {
        let door = self.memo.as_ref()?;
        door.memo.get(&door.owner, &key)
    }

    fn put(&mut self, key: String, value: Vec<u8>, ttl_seconds: u32) -> Result<(), String> {
        let door = self.memo.as_ref().ok_or("`memo` is not granted")?;
        door.memo.put(&door.owner, key, value, ttl_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elapsed::tests::Still;

    fn owner(tenant: &str) -> Owner {
        Owner { digest: "d".into(), config_json: "{}".into(), tenant: tenant.into() }
    }

    fn memo() -> (Still, Arc<Memo>) {
        let clock = Still::default();
        let memo = Memo::new(clock.elapsed());
        (clock, memo)
    }

    #[test]
    fn a_room_is_one_components_one_configurations_and_one_tenants() {
        let (_, memo) = memo();
        memo.put(&owner("a"), "k".into(), b"secret".to_vec(), 0).unwrap();
        assert_eq!(memo.get(&owner("a"), "k").as_deref(), Some(&b"secret"[..]));
        let other =
            [owner("b"), Owner { digest: "e".into(), ..owner("a") }, Owner { config_json: "".into(), ..owner("a") }];
        for other in other {
            assert_eq!(memo.get(&other, "k"), None, "{other:?}");
        }
    }

    #[test]
    fn what_is_over_is_gone() {
        let (clock, memo) = memo();
        memo.put(&owner("a"), "k".into(), vec![1], 10).unwrap();
        clock.advance(Duration::from_secs(9));
        assert_eq!(memo.get(&owner("a"), "k"), Some(vec![1]));
        clock.advance(Duration::from_secs(1));
        assert_eq!(memo.get(&owner("a"), "k"), None);
        assert_eq!(memo.lock().bytes, 0);
    }

    #[test]
    fn a_room_and_all_rooms_are_bounded_and_the_oldest_make_way() {
        let (_, memo) = memo();
        assert!(memo.put(&owner("a"), "k".repeat(MAX_KEY_BYTES + 1), vec![], 0).unwrap_err().contains("256"));
        assert!(memo.put(&owner("a"), "k".into(), vec![0; MAX_VALUE_BYTES + 1], 0).unwrap_err().contains("65536"));
        for number in 0..MAX_ROOM_ENTRIES + 1 {
            memo.put(&owner("a"), number.to_string(), vec![1], 0).unwrap();
        }
        assert_eq!(memo.get(&owner("a"), "0"), None);
        assert!(memo.get(&owner("a"), "1").is_some());
        for tenant in 0..100 {
            for number in 0..20 {
                memo.put(&owner(&tenant.to_string()), number.to_string(), vec![0; MAX_VALUE_BYTES], 0).unwrap();
            }
            assert!(memo.lock().bytes <= MAX_BYTES);
        }
        let rooms = memo.lock();
        assert!(rooms.by_owner.values().all(|room| room.bytes <= MAX_ROOM_BYTES));
        assert_eq!(rooms.bytes, rooms.by_owner.values().map(|room| room.bytes).sum::<usize>());
        assert!(!rooms.by_owner.contains_key(&owner("a")) && rooms.by_owner.contains_key(&owner("99")));
    }

    #[test]
    fn a_value_that_is_put_again_takes_its_own_place() {
        let (_, memo) = memo();
        for _ in 0..100 {
            memo.put(&owner("a"), "k".into(), vec![0; MAX_VALUE_BYTES], 0).unwrap();
        }
        assert_eq!(memo.lock().bytes, MAX_VALUE_BYTES + 1 + ENTRY_BYTES);
    }
}
