//! Sessions of DAX clients, in memory.
//!
//! In: a caller, and the id of a session. Out: sessions of that caller; sessions of other callers are unknown to it. A
//! session ends after [`IDLE_TIMEOUT`] without use, or when the process ends. Not here: the headers and envelopes that
//! carry the id.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::RequestContext;
use crate::ports::clock::Clock;
use crate::ports::tokens::Randomness;

/// The time without use after which a session ends.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(3_600);
/// The largest number of sessions of one caller. One more session ends the session that was unused for the longest
/// time.
pub const MAX_PER_CALLER: usize = 100;
/// The largest number of sessions of all callers.
pub const MAX_SESSIONS: usize = 10_000;

const ID_BYTES: usize = 16;

/// A session of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaxSession {
    pub id: Arc<str>,
    pub created_at: Timestamp,
    /// The clock's `elapsed` at the last use.
    used: Duration,
}

/// The server has reached [`MAX_SESSIONS`], and the caller has no session to replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many DAX sessions; retry later")]
pub struct TooManySessions;

/// A caller: the user id and the tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Owner {
    user_id: Arc<str>,
    tenant: Option<Arc<str>>,
}

type ByOwner = HashMap<Owner, HashMap<Arc<str>, DaxSession>>;

/// The sessions of all callers of a process.
pub struct DaxSessions {
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
    sessions: Mutex<ByOwner>,
}

impl DaxSessions {
    pub fn new(clock: Arc<dyn Clock>, randomness: Arc<dyn Randomness>) -> Self {
        DaxSessions { clock, randomness, sessions: Mutex::default() }
    }

    /// Starts a session of the caller.
    ///
    /// # Errors
    /// [`TooManySessions`]
    pub fn begin(&self, caller: &RequestContext) -> Result<DaxSession, TooManySessions> {
        let now = self.clock.elapsed();
        let session = DaxSession { id: self.id(), created_at: self.clock.now(), used: now };
        let mut all = self.lock();
        let own = all.entry(owner(caller)).or_default();
        own.retain(|_, session| !session.has_ended(now));
        if own.len() >= MAX_PER_CALLER {
            let oldest = own.values().min_by_key(|session| session.used).map(|session| Arc::clone(&session.id));
            oldest.map(|id| own.remove(&id));
        }
        if all.values().map(HashMap::len).sum::<usize>() >= MAX_SESSIONS {
            remove_ended(&mut all, now);
        }
        if all.values().map(HashMap::len).sum::<usize>() >= MAX_SESSIONS {
            return Err(TooManySessions);
        }
        all.entry(owner(caller)).or_default().insert(Arc::clone(&session.id), session.clone());
        Ok(session)
    }

    /// Returns a session of the caller and restarts its idle time; `None` if it is unknown, has ended, or belongs to
    /// another caller.
    pub fn resume(&self, caller: &RequestContext, id: &str) -> Option<DaxSession> {
        let now = self.clock.elapsed();
        let mut all = self.lock();
        let session = all.get_mut(&owner(caller))?.get_mut(id).filter(|session| !session.has_ended(now))?;
        session.used = now;
        Some(session.clone())
    }

    /// Returns a session of the caller without restarting its idle time.
    pub fn find(&self, caller: &RequestContext, id: &str) -> Option<DaxSession> {
        let now = self.clock.elapsed();
        let all = self.lock();
        all.get(&owner(caller))?.get(id).filter(|session| !session.has_ended(now)).cloned()
    }

    /// Ends a session of the caller. Returns whether the session existed.
    pub fn end(&self, caller: &RequestContext, id: &str) -> bool {
        let (owner, now) = (owner(caller), self.clock.elapsed());
        let mut all = self.lock();
        let Some(own) = all.get_mut(&owner) else { return false };
        let ended = own.remove(id);
        if own.is_empty() {
            all.remove(&owner);
        }
        ended.is_some_and(|session| !session.has_ended(now))
    }

    /// Returns the sessions of the caller, the oldest first.
    pub fn list(&self, caller: &RequestContext) -> Vec<DaxSession> {
        let now = self.clock.elapsed();
        let all = self.lock();
        let own = all.get(&owner(caller)).into_iter().flat_map(HashMap::values);
        let mut sessions: Vec<DaxSession> = own.filter(|session| !session.has_ended(now)).cloned().collect();
        sessions.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        sessions
    }

    fn id(&self) -> Arc<str> {
        let mut bytes = [0; ID_BYTES];
        self.randomness.fill(&mut bytes);
        format!("{:032x}", u128::from_be_bytes(bytes)).into()
    }

    fn lock(&self) -> MutexGuard<'_, ByOwner> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DaxSession {
    fn has_ended(&self, now: Duration) -> bool {
        now.saturating_sub(self.used) >= IDLE_TIMEOUT
    }
}

fn owner(caller: &RequestContext) -> Owner {
    Owner { user_id: Arc::clone(&caller.caller.user_id), tenant: caller.tenant.clone() }
}

fn remove_ended(all: &mut ByOwner, now: Duration) {
    for own in all.values_mut() {
        own.retain(|_, session| !session.has_ended(now));
    }
    all.retain(|_, own| !own.is_empty());
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::security::plain_caller;

    #[derive(Default)]
    struct Fake {
        seconds: AtomicU64,
        bytes: AtomicU64,
    }

    impl Clock for Fake {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
        fn elapsed(&self) -> Duration {
            Duration::from_secs(self.seconds.load(Ordering::Relaxed))
        }
    }

    impl Randomness for Fake {
        fn fill(&self, bytes: &mut [u8]) {
            let next = self.bytes.fetch_add(1, Ordering::Relaxed);
            bytes.fill(0);
            bytes[..8].copy_from_slice(&next.to_be_bytes());
        }
    }

    fn sessions() -> (Arc<Fake>, DaxSessions) {
        let fake = Arc::new(Fake::default());
        (fake.clone(), DaxSessions::new(fake.clone(), fake))
    }

    fn caller(user: &str) -> RequestContext {
        RequestContext { caller: plain_caller(user.into()), ..RequestContext::default() }
    }

    #[test]
    fn session_of_another_caller_is_unknown() {
        let (_, sessions) = sessions();
        let id = sessions.begin(&caller("ada")).unwrap().id;
        assert_eq!(id.len(), 32);
        let other_tenant = RequestContext { tenant: Some("t".into()), ..caller("ada") };
        for stranger in [caller("bob"), other_tenant] {
            assert_eq!(sessions.resume(&stranger, &id), None);
            assert_eq!(sessions.find(&stranger, &id), None);
            assert_eq!(sessions.list(&stranger), []);
            assert!(!sessions.end(&stranger, &id));
        }
        assert!(sessions.resume(&caller("ada"), &id).is_some());
        assert!(sessions.end(&caller("ada"), &id));
        assert!(!sessions.end(&caller("ada"), &id));
        assert_eq!(sessions.resume(&caller("ada"), &id), None);
    }

    #[test]
    fn session_ends_after_an_hour_without_use() {
        let (clock, sessions) = sessions();
        let ada = caller("ada");
        let id = sessions.begin(&ada).unwrap().id;
        let idle = sessions.begin(&ada).unwrap().id;
        clock.seconds.store(3_599, Ordering::Relaxed);
        assert!(sessions.resume(&ada, &id).is_some());
        clock.seconds.store(3_600, Ordering::Relaxed);
        assert_eq!(sessions.find(&ada, &idle), None);
        assert!(!sessions.end(&ada, &idle));
        clock.seconds.store(7_198, Ordering::Relaxed);
        assert_eq!(sessions.list(&ada).len(), 1);
        clock.seconds.store(7_199, Ordering::Relaxed);
        assert_eq!(sessions.list(&ada), []);
    }

    #[test]
    fn least_recently_used_session_of_a_caller_is_removed() {
        let (clock, sessions) = sessions();
        let ada = caller("ada");
        let first = sessions.begin(&ada).unwrap().id;
        clock.seconds.store(1, Ordering::Relaxed);
        let second = sessions.begin(&ada).unwrap().id;
        clock.seconds.store(2, Ordering::Relaxed);
        for _ in 2..MAX_PER_CALLER {
            sessions.begin(&ada).unwrap();
        }
        assert!(sessions.resume(&ada, &first).is_some());
        sessions.begin(&ada).unwrap();
        assert!(sessions.find(&ada, &first).is_some());
        assert_eq!(sessions.find(&ada, &second), None);
        assert_eq!(sessions.list(&ada).len(), MAX_PER_CALLER);
    }

    #[test]
    fn sessions_of_all_callers_are_bounded() {
        let (clock, sessions) = sessions();
        for user in 0..MAX_SESSIONS / MAX_PER_CALLER {
            let user = caller(&user.to_string());
            for _ in 0..MAX_PER_CALLER {
                sessions.begin(&user).unwrap();
            }
        }
        assert_eq!(sessions.begin(&caller("ada")), Err(TooManySessions));
        // A caller who has sessions can replace them.
        assert!(sessions.begin(&caller("0")).is_ok());
        clock.seconds.store(3_600, Ordering::Relaxed);
        assert!(sessions.begin(&caller("ada")).is_ok());
        assert_eq!(sessions.lock().len(), 1);
    }
}
