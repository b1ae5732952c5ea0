//! Tests two workers on one state database, with a clock that the tests advance. The tests check which worker runs a
//! task, when the task runs, and how a run ends.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::*;

/// A clock that follows the runtime's time, which tests pause.
struct RuntimeClock(tokio::time::Instant);

impl Default for RuntimeClock {
    fn default() -> Self {
        RuntimeClock(start())
    }
}

#[allow(clippy::disallowed_methods, reason = "the test's clock is the paused one of the runtime")]
fn start() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + self.elapsed()
    }
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Leases of one state database.
#[derive(Default)]
struct FakeLeases {
    clock: RuntimeClock,
    held: Mutex<HashMap<String, (Lease, Duration)>>,
    fences: AtomicU64,
    is_down: AtomicBool,
}

impl FakeLeases {
    fn answer(&self) -> Result<(), StoreError> {
        let is_down = self.is_down.load(Ordering::Relaxed);
        if is_down { Err(StoreError { message: "down".to_owned() }) } else { Ok(()) }
    }

    /// Returns the holder and the fence of a lease that has not expired.
    fn holder(&self, name: &str) -> Option<(String, u64)> {
        let held = self.held.lock().expect("a lock");
        let found = held.get(name).filter(|(_, end)| *end > self.clock.elapsed());
        found.map(|(lease, _)| (lease.holder.to_string(), lease.fence))
    }
}

#[async_trait]
impl Leases for FakeLeases {
    async fn acquire(&self, name: &str, holder: &str, ttl: Duration) -> Result<Option<Lease>, StoreError> {
        self.answer()?;
        if self.holder(name).is_some() {
            return Ok(None);
        }
        let fence = self.fences.fetch_add(1, Ordering::Relaxed) + 1;
        let lease = Lease { name: name.into(), holder: holder.into(), fence };
        let end = self.clock.elapsed() + ttl;
        self.held.lock().expect("a lock").insert(name.to_owned(), (lease.clone(), end));
        Ok(Some(lease))
    }

    async fn renew(&self, lease: &Lease, ttl: Duration) -> Result<bool, StoreError> {
        self.answer()?;
        let now = self.clock.elapsed();
        let mut held = self.held.lock().expect("a lock");
        match held.get_mut(&*lease.name).filter(|(own, end)| own == lease && *end > now) {
            Some((_, end)) => {
                *end = now + ttl;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    async fn release(&self, lease: &Lease) -> Result<(), StoreError> {
        let mut held = self.held.lock().expect("a lock");
        if held.get(&*lease.name).is_some_and(|(own, _)| own == lease) {
            held.remove(&*lease.name);
        }
        Ok(())
    }
}

/// A task that records the times and fences of its runs.
struct FakeTask {
    name: &'static str,
    schedule: Schedule,
    clock: RuntimeClock,
    runs: Mutex<Vec<(u64, u64)>>,
    due: Mutex<Option<Timestamp>>,
    takes: Duration,
    failures: AtomicU32,
    panics: AtomicU32,
    incomplete: AtomicU32,
}

fn task(name: &'static str, schedule: Schedule) -> FakeTask {
    FakeTask {
        name,
        schedule,
        clock: RuntimeClock::default(),
        runs: Mutex::default(),
        due: Mutex::default(),
        takes: Duration::ZERO,
        failures: AtomicU32::new(0),
        panics: AtomicU32::new(0),
        incomplete: AtomicU32::new(0),
    }
}

impl FakeTask {
    fn seconds(&self) -> Vec<u64> {
        self.runs.lock().expect("a lock").iter().map(|(second, _)| *second).collect()
    }

    fn fences(&self) -> Vec<u64> {
        self.runs.lock().expect("a lock").iter().map(|(_, fence)| *fence).collect()
    }
}

fn take_one(counter: &AtomicU32) -> bool {
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
}

#[async_trait]
impl Task for FakeTask {
    fn name(&self) -> &'static str {
        self.name
    }
    fn schedule(&self) -> Schedule {
        self.schedule
    }
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(*self.due.lock().expect("a lock"))
    }
    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        self.runs.lock().expect("a lock").push((self.clock.elapsed().as_secs(), lease.fence));
        tokio::time::sleep(self.takes).await;
        assert!(!take_one(&self.panics), "the task's own fault");
        if take_one(&self.failures) {
            return Err(StoreError { message: "down".to_owned() }.into());
        }
        *self.due.lock().expect("a lock") = None;
        Ok(if take_one(&self.incomplete) { Progress::Incomplete } else { Progress::Complete })
    }
}

/// Counts the current and the ended runs.
#[derive(Default)]
struct Counters {
    active: AtomicU32,
    succeeded: AtomicU32,
    failed: AtomicU32,
}

impl Observer for Counters {
    fn compiled(&self, _: &crate::ports::observer::Step<'_>) {}
    fn executed(&self, _: &crate::ports::observer::Step<'_>, _: &crate::ports::observer::Executed<'_>) {}
    fn query_ended(&self, _: &crate::ports::observer::EndedQuery<'_>) {}
    fn authenticated(&self, _: &'static str) {}
    fn access_denied(&self, _: &'static str) {}
    fn task_started(&self, _: &'static str) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }
    fn task_ended(&self, _: &'static str, outcome: TaskOutcome, _: Duration) {
        self.active.fetch_sub(1, Ordering::Relaxed);
        let counter = match outcome {
            TaskOutcome::Success => &self.succeeded,
            TaskOutcome::Error => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

struct World {
    leases: Arc<FakeLeases>,
    counters: Arc<Counters>,
}

impl World {
    fn new() -> Self {
        World { leases: Arc::new(FakeLeases::default()), counters: Arc::new(Counters::default()) }
    }

    fn worker(&self, id: &str, tasks: &[Arc<FakeTask>]) -> Worker {
        let clock = Arc::new(RuntimeClock::default());
        let settings = LeaseSettings::default();
        let worker = Worker::new(self.leases.clone(), clock, self.counters.clone(), id.into(), settings);
        tasks.iter().fold(worker, |worker, task| worker.with_task(task.clone()))
    }

    /// Starts a worker that stops when the sender is dropped.
    fn start(
        &self,
        id: &str,
        tasks: &[Arc<FakeTask>],
    ) -> (tokio::task::JoinHandle<()>, tokio::sync::oneshot::Sender<()>) {
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let worker = self.worker(id, tasks);
        (tokio::spawn(worker.run(async { drop(receiver.await) })), sender)
    }
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

fn every(period: u64) -> Schedule {
    Schedule::Interval(Duration::from_secs(period))
}

#[tokio::test(start_paused = true)]
async fn one_of_two_workers_runs_a_task_in_each_period() {
    let world = World::new();
    let task = Arc::new(task("work", every(100)));
    let (_first, _stop_first) = world.start("a", std::slice::from_ref(&task));
    seconds(1).await;
    let (_second, _stop_second) = world.start("b", std::slice::from_ref(&task));
    seconds(1_000).await;
    let runs = task.seconds();
    assert_eq!(runs[0], 0, "it runs at once");
    // A period of 100 s lasts up to 110 s, and a turn may come up to 5.5 s later.
    assert!((9..=10).contains(&runs.len()), "{runs:?}");
    assert!(runs.windows(2).all(|pair| (100..=116).contains(&(pair[1] - pair[0]))), "{runs:?}");
    assert_eq!(task.fences(), vec![1; runs.len()], "one lease");
    assert_eq!(world.leases.holder("work").expect("a holder").0, "a");
}

#[tokio::test(start_paused = true)]
async fn killed_worker_is_replaced_when_its_lease_expires() {
    let world = World::new();
    let task = Arc::new(task("work", every(100)));
    let (first, _stop_first) = world.start("a", std::slice::from_ref(&task));
    let (_second, _stop_second) = world.start("b", std::slice::from_ref(&task));
    seconds(42).await;
    assert_eq!(task.seconds(), [0]);
    // A process that ends by `kill -9` releases nothing. Aborting the worker drops its tasks, which release the lease,
    // so the test stores the lease again.
    let held = world.leases.held.lock().expect("a lock").get("work").cloned().expect("a lease");
    first.abort();
    let _ = first.await;
    tokio::task::yield_now().await;
    world.leases.held.lock().expect("a lock").insert("work".to_owned(), held);
    seconds(30).await;
    assert_eq!(task.fences(), [1, 2]);
    let taken_over = task.seconds()[1];
    assert!((42..=64).contains(&taken_over), "expiry and one attempt: {taken_over}");
    assert_eq!(world.leases.holder("work").expect("a holder").0, "b");
}

#[tokio::test(start_paused = true)]
async fn run_ends_when_its_lease_is_lost() {
    let world = World::new();
    let task = Arc::new(FakeTask { takes: Duration::from_secs(60), ..task("work", every(1_000)) });
    let (_worker, _stop) = world.start("a", std::slice::from_ref(&task));
    seconds(7).await;
    assert_eq!(world.counters.active.load(Ordering::Relaxed), 1);
    // Another replica took the lease over while this one slept.
    let stolen = Lease { name: "work".into(), holder: "b".into(), fence: 9 };
    let end = world.leases.clock.elapsed() + Duration::from_secs(20);
    world.leases.held.lock().expect("a lock").insert("work".to_owned(), (stolen, end));
    seconds(8).await;
    assert_eq!(world.counters.active.load(Ordering::Relaxed), 0);
    assert_eq!(world.counters.failed.load(Ordering::Relaxed), 1);
    seconds(30).await;
    assert_eq!(task.fences(), [1, 2], "it asks again, under a fence of its own");
}

#[tokio::test(start_paused = true)]
async fn missed_runs_collapse_to_one() {
    let world = World::new();
    let task = Arc::new(FakeTask { takes: Duration::from_secs(950), ..task("work", every(100)) });
    let (_worker, _stop) = world.start("a", std::slice::from_ref(&task));
    seconds(1_500).await;
    let runs = task.seconds();
    assert_eq!(runs.len(), 2, "nine periods passed during the first run: {runs:?}");
    assert!((950..=956).contains(&runs[1]), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn due_time_task_runs_when_it_is_due_and_not_before() {
    let world = World::new();
    let task = Arc::new(task("work", Schedule::DueTime { poll: Duration::from_secs(20) }));
    let at = |second| Some(Timestamp::from_second(second).expect("a time"));
    *task.due.lock().expect("a lock") = at(33);
    let (_worker, _stop) = world.start("a", std::slice::from_ref(&task));
    seconds(32).await;
    assert!(task.seconds().is_empty());
    seconds(10).await;
    assert_eq!(task.seconds(), [33]);
    // A due time that passed long ago leads to one run.
    *task.due.lock().expect("a lock") = at(-10_000);
    seconds(100).await;
    assert_eq!(task.seconds().len(), 2, "{:?}", task.seconds());
}

#[tokio::test(start_paused = true)]
async fn failures_and_panics_are_retried_with_growing_delays() {
    let world = World::new();
    let failing = Arc::new(task("failing", every(100_000)));
    failing.failures.store(3, Ordering::Relaxed);
    failing.panics.store(1, Ordering::Relaxed);
    let other = Arc::new(task("other", every(100)));
    let (_worker, _stop) = world.start("a", &[failing.clone(), other.clone()]);
    seconds(1_000).await;
    let runs = failing.seconds();
    let gaps: Vec<u64> = runs.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.len(), 4, "{runs:?}");
    for (gap, expected) in gaps.iter().zip([5, 10, 20, 40]) {
        assert!((expected..=expected + expected / 10 + 6).contains(gap), "{gaps:?}");
    }
    assert!(other.seconds().len() >= 9, "other tasks go on: {:?}", other.seconds());
    assert_eq!(world.counters.failed.load(Ordering::Relaxed), 4);
    assert_eq!(world.counters.active.load(Ordering::Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn incomplete_run_continues_soon() {
    let world = World::new();
    let task = Arc::new(task("work", every(1_000)));
    task.incomplete.store(2, Ordering::Relaxed);
    let (_worker, _stop) = world.start("a", std::slice::from_ref(&task));
    seconds(100).await;
    assert_eq!(task.seconds(), [0, 5, 10]);
}

#[tokio::test(start_paused = true)]
async fn unavailable_state_database_is_retried() {
    let world = World::new();
    let task = Arc::new(task("work", every(20)));
    let (_worker, _stop) = world.start("a", std::slice::from_ref(&task));
    seconds(1).await;
    world.leases.is_down.store(true, Ordering::Relaxed);
    seconds(60).await;
    assert_eq!(task.seconds(), [0], "no run without a lease");
    world.leases.is_down.store(false, Ordering::Relaxed);
    seconds(120).await;
    assert!(task.seconds().len() > 2, "{:?}", task.seconds());
    assert_eq!(task.fences()[1], 2, "the lease had expired");
}

#[tokio::test(start_paused = true)]
async fn stopped_worker_ends_its_run_and_releases_the_lease() {
    let world = World::new();
    let short = Arc::new(FakeTask { takes: Duration::from_secs(1), ..task("short", every(100)) });
    let long = Arc::new(FakeTask { takes: Duration::from_secs(500), ..task("long", every(100)) });
    let (worker, stop) = world.start("a", &[short.clone(), long.clone()]);
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(stop);
    worker.await.expect("the worker ends");
    assert_eq!(world.leases.clock.elapsed().as_millis(), 2_500, "the grace period");
    assert_eq!(world.counters.succeeded.load(Ordering::Relaxed), 1, "the short run ended by itself");
    assert_eq!(world.counters.failed.load(Ordering::Relaxed), 1);
    assert!(world.leases.holder("short").is_none() && world.leases.holder("long").is_none());
}
