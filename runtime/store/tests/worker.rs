//! Tests workers on one SQLite database: two in this process, and one in a process that is killed.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::leases::{Lease, Leases};
use terrane_app::ports::observer::Unobserved;
use terrane_app::ports::retention::{Horizon, Retention as _};
use terrane_app::worker::{HeldLease, LeaseSettings, Progress, Schedule, Task, TaskError, Worker};
use terrane_store::StateStore;

/// The environment variable with the folder of the state database, for a process that holds the lease until it is
/// killed.
const HOLDER_FOLDER: &str = "TERRANE_TEST_HOLDER_FOLDER";
const TASK: &str = "prune";
const SETTINGS: LeaseSettings = LeaseSettings { ttl: Duration::from_secs(2), renewal: Duration::from_millis(200) };

struct RealClock(std::time::Instant);

#[allow(clippy::disallowed_methods, reason = "the leases of this test expire by the clock of the database")]
fn clock() -> Arc<RealClock> {
    Arc::new(RealClock(std::time::Instant::now()))
}

impl Clock for RealClock {
    #[allow(clippy::disallowed_methods, reason = "as above")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Records the fence of each of its runs, and fails if two runs overlap.
#[derive(Default)]
struct Counting {
    fences: Mutex<Vec<u64>>,
    running: AtomicU64,
}

#[async_trait]
impl Task for Counting {
    fn name(&self) -> &'static str {
        TASK
    }
    fn schedule(&self) -> Schedule {
        Schedule::Interval(Duration::from_millis(100))
    }
    async fn run(&self, lease: &Lease) -> Result<Progress, TaskError> {
        assert_eq!(self.running.fetch_add(1, Ordering::SeqCst), 0, "two workers run the task");
        self.fences.lock().unwrap().push(lease.fence);
        tokio::time::sleep(Duration::from_millis(20)).await;
        self.running.fetch_sub(1, Ordering::SeqCst);
        Ok(Progress::Complete)
    }
}

impl Counting {
    fn last_fence(&self) -> Option<u64> {
        self.fences.lock().unwrap().last().copied()
    }
}

async fn open(folder: &Path) -> Arc<StateStore> {
    Arc::new(StateStore::open("sqlite://state.db", folder).await.unwrap())
}

fn worker(store: &Arc<StateStore>, id: &str, task: &Arc<Counting>) -> Worker {
    Worker::new(store.clone(), clock(), Arc::new(Unobserved), id.into(), SETTINGS).with_task(task.clone())
}

/// Waits until a condition is true, for at most 20 seconds.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..400 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("not within 20 seconds: {what}");
}

#[tokio::test]
async fn second_worker_takes_over_when_the_first_stops() {
    let folder = tempfile::tempdir().unwrap();
    let task = Arc::new(Counting::default());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let first = worker(&open(folder.path()).await, "a", &task).run(async { drop(stopped.await) });
    let first = tokio::spawn(first);
    eventually("the first worker runs", || task.last_fence().is_some()).await;
    let second = worker(&open(folder.path()).await, "b", &task).run(std::future::pending());
    let second = tokio::spawn(second);
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(task.last_fence(), Some(1), "one worker has the lease");
    drop(stop);
    first.await.unwrap();
    eventually("the second worker runs", || task.last_fence() > Some(1)).await;
    second.abort();
}

/// Acquires a lease, and checks that no other holder can acquire it. The test below starts this test in the process
/// that it kills. In that process, the folder is set, and this test holds the lease until it is killed.
#[tokio::test]
async fn holder_keeps_its_lease() {
    #[allow(clippy::disallowed_methods, reason = "the parent process passes the folder")]
    let folder = std::env::var_os(HOLDER_FOLDER);
    let own = tempfile::tempdir().unwrap();
    let store = open(folder.as_ref().map_or(own.path(), Path::new)).await;
    let leases: Arc<dyn Leases> = store.clone();
    let held = HeldLease::acquire(&leases, TASK, "holder", SETTINGS).await.unwrap().unwrap();
    assert!(HeldLease::acquire(&leases, TASK, "other", SETTINGS).await.unwrap().is_none());
    if folder.is_some() {
        println!("\nheld {}", held.lease().fence);
        held.until_lost(&*clock(), SETTINGS).await;
    }
}

#[tokio::test]
async fn killed_process_is_replaced_and_its_fence_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder_keeps_its_lease", "--nocapture"])
        .env(HOLDER_FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    let fence = lines.find_map(|line| line.unwrap().strip_prefix("held ")?.parse::<u64>().ok()).unwrap();
    let store = open(folder.path()).await;
    let task = Arc::new(Counting::default());
    let running = tokio::spawn(worker(&store, "b", &task).run(std::future::pending()));
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(task.last_fence(), None, "the holder renews its lease beyond the first expiry");
    // After SIGKILL, the holder cannot release its lease.
    holder.kill().unwrap();
    holder.wait().unwrap();
    eventually("the other worker runs", || task.last_fence() > Some(fence)).await;
    let stale = Lease { name: TASK.into(), holder: "holder".into(), fence };
    let horizon = Horizon { ended: Timestamp::UNIX_EPOCH, abandoned: Timestamp::UNIX_EPOCH };
    assert_eq!(store.prune(&horizon, &stale).await.unwrap(), None, "a stale fence changes nothing");
    assert!(!store.renew(&stale, SETTINGS.ttl).await.unwrap());
    running.abort();
}
