//! Tests of the times at which records reach the log, and of records that wait while the log accepts none.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use jiff::Timestamp;

use super::*;
use crate::ports::audit::{AuditFilter, AuditRecord, ChainState};
use crate::ports::observer::Unobserved;

/// A log that records the batches it receives, and that can refuse them.
#[derive(Default)]
struct Log {
    batches: Mutex<Vec<Vec<AuditEntry>>>,
    refuses: AtomicBool,
    tries: AtomicU64,
}

#[async_trait]
impl AuditLog for Log {
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.tries.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        if self.refuses.load(Ordering::Relaxed) {
            return Err(StoreError { message: "down".to_owned() });
        }
        self.batches.lock().expect("a lock").push(entries);
        Ok(())
    }
    async fn records(&self, _: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        Ok(Vec::new())
    }
    async fn verify(&self) -> Result<ChainState, StoreError> {
        Ok(ChainState::Whole { records: 0, last_hash: chain_start() })
    }
}

fn chain_start() -> Arc<str> {
    crate::security::chain::GENESIS.into()
}

#[derive(Default)]
struct Seconds(AtomicU64);

impl Clock for Seconds {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }
}

struct House {
    log: Arc<Log>,
    clock: Arc<Seconds>,
    audit_buffer: Arc<AuditBuffer>,
}

impl House {
    fn new() -> Self {
        let (log, clock) = (Arc::new(Log::default()), Arc::new(Seconds::default()));
        let audit_buffer = Arc::new(AuditBuffer::new(log.clone(), clock.clone()));
        House { log, clock, audit_buffer }
    }

    /// Returns the number of events of each resource, over all batches.
    fn counts(&self) -> HashMap<String, u64> {
        let mut counts = HashMap::new();
        for entry in self.log.batches.lock().expect("a lock").iter().flatten() {
            *counts.entry(entry.resource.to_string()).or_default() += entry.count;
        }
        counts
    }

    fn records(&self) -> usize {
        self.log.batches.lock().expect("a lock").iter().map(Vec::len).sum()
    }
}

fn of(actor: &str, resource: &str, correlation_id: &str) -> AuditEntry {
    AuditEntry {
        event: "access_denied".into(),
        actor: actor.into(),
        resource: resource.into(),
        correlation_id: Some(correlation_id.into()),
        count: 1,
        ..AuditEntry::default()
    }
}

#[tokio::test(start_paused = true)]
async fn equal_events_of_a_batch_become_one_record() {
    let house = House::new();
    for number in 0..5 {
        house.audit_buffer.note(of("ada", "a", &format!("id-{number}"))).await.expect("noted");
    }
    house.audit_buffer.note(of("ada", "b", "id-b")).await.expect("noted");
    assert_eq!(house.records(), 0);
    house.audit_buffer.flush().await.expect("written");
    let batches = house.log.batches.lock().expect("a lock").clone();
    assert_eq!(batches[0].len(), 2);
    let first = batches[0].iter().find(|entry| &*entry.resource == "a").expect("a");
    assert_eq!((first.count, first.correlation_id.as_deref()), (5, Some("id-0")));
}

#[tokio::test(start_paused = true)]
async fn durable_events_are_written_before_return_and_share_writes() {
    let house = House::new();
    let tasks: Vec<_> = (0..50)
        .map(|number| {
            let audit_buffer = house.audit_buffer.clone();
            tokio::spawn(async move { audit_buffer.note_durably(of("ada", &format!("r{number}"), "x")).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic").expect("written");
    }
    assert_eq!(house.records(), 50);
    assert!(house.log.tries.load(Ordering::Relaxed) <= 2, "they shared a write");
}

#[tokio::test(start_paused = true)]
async fn writer_flushes_one_interval_after_an_event() {
    let house = House::new();
    let audit_buffer = house.audit_buffer.clone();
    let writing = tokio::spawn(async move { audit_buffer.keep_writing(Duration::from_millis(100), &Unobserved).await });
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(house.log.tries.load(Ordering::Relaxed), 0, "nothing happened");
    house.audit_buffer.note(of("ada", "a", "x")).await.expect("noted");
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(house.records(), 1);
    writing.abort();
}

#[tokio::test(start_paused = true)]
async fn anonymous_callers_cause_a_bounded_number_of_records() {
    let house = House::new();
    for _ in 0..3 {
        for number in 0..10_000 {
            house.audit_buffer.note(of("", &format!("r{number}"), "x")).await.expect("noted");
        }
        house.audit_buffer.flush().await.expect("written");
    }
    // Each flush writes the first event of a kind, a record of its repetitions, and one record of all other kinds.
    assert!(house.records() <= 256 + 3 * 257, "{}", house.records());
    assert_eq!(house.counts().values().sum::<u64>(), 30_000, "each is counted");
    // An authenticated caller has records of its own, whatever unauthenticated callers do.
    house.audit_buffer.note_durably(of("ada", "own", "x")).await.expect("written");
    assert_eq!(house.counts()["own"], 1);
}

#[tokio::test(start_paused = true)]
async fn repeated_anonymous_failures_are_reported_once_per_window() {
    let house = House::new();
    let audit_buffer = house.audit_buffer.clone();
    let writing = tokio::spawn(async move { audit_buffer.keep_writing(Duration::from_millis(100), &Unobserved).await });
    for second in 0..10 {
        house.clock.0.store(100 + second, Ordering::Relaxed);
        for _ in 0..100 {
            house.audit_buffer.note(of("", "a", "x")).await.expect("noted");
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    house.clock.0.store(200, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(house.counts()["a"], 1_000);
    assert!(house.records() <= 5, "{}", house.records());
    writing.abort();
}

#[tokio::test(start_paused = true)]
async fn rejected_batch_is_retried_and_its_callers_fail_soon() {
    let house = House::new();
    house.log.refuses.store(true, Ordering::Relaxed);
    house.audit_buffer.note(of("ada", "kept", "x")).await.expect("noted");
    let tasks: Vec<_> = (0..100)
        .map(|number| {
            let audit_buffer = house.audit_buffer.clone();
            tokio::spawn(async move { audit_buffer.note_durably(of("ada", &format!("r{number}"), "x")).await })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic").expect_err("the store is down");
    }
    assert!(house.log.tries.load(Ordering::Relaxed) <= 3, "no caller waits for the tries of others in turns");
    house.log.refuses.store(false, Ordering::Relaxed);
    house.audit_buffer.flush().await.expect("written");
    assert_eq!(house.counts()["kept"], 1);
    assert_eq!(house.records(), 101, "also what was refused: it was denied");
}

#[tokio::test(start_paused = true)]
async fn full_buffer_rejects_events_while_the_store_fails() {
    let house = House::new();
    house.log.refuses.store(true, Ordering::Relaxed);
    let mut refused = 0;
    for number in 0..MAX_OPEN + 10 {
        refused += usize::from(house.audit_buffer.note(of("ada", &format!("r{number}"), "x")).await.is_err());
    }
    assert_eq!(refused, 10);
    house.log.refuses.store(false, Ordering::Relaxed);
    house.audit_buffer.note(of("ada", "after", "x")).await.expect("another kind is accepted again");
    house.audit_buffer.flush().await.expect("written");
    assert_eq!(house.records(), MAX_OPEN + 1);
}

#[tokio::test(start_paused = true)]
async fn dropped_request_loses_no_audit_event() {
    let house = House::new();
    let writing = house.audit_buffer.note_durably(of("ada", "a", "x"));
    assert!(tokio::time::timeout(Duration::from_millis(12), writing).await.is_err());
    house.audit_buffer.flush().await.expect("written");
    assert_eq!((house.counts()["a"], house.records()), (1, 1), "the batch of the dropped request is written once");
}
