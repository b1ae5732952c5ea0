//! A server with jobs, and the requests that the tests of this folder send.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use terrane_app::domain::{Identity, RequestContext};
use terrane_app::jobs::{JobError, Submission};
use terrane_app::ports::jobs::Job;
use terrane_conformance_tests::case::{Answered, Caller, World, ask};
use terrane_conformance_tests::fakes::Column;
use terrane_conformance_tests::jobs::JobAdapters;
use terrane_conformance_tests::security::Security;
use terrane_results::ResultFolder;
use terrane_server::Edge;
use terrane_store::StateStore;
use terrane_wire::query::from_wire;

pub(crate) const JOBS: &str = "/api/v1/query/async";

/// A server over a state database and a folder of results.
pub(crate) struct House {
    pub(crate) edge: Edge,
    pub(crate) store: Arc<StateStore>,
    pub(crate) folder: TempDir,
}

impl House {
    pub(crate) async fn new() -> Self {
        House::of(World::default(), 0).await
    }

    /// Creates a server whose writers keep at least `floor` bytes of the disk free.
    pub(crate) async fn of(world: World, floor: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(StateStore::open("sqlite://state.db", folder.path()).await.unwrap());
        let results = Arc::new(ResultFolder::open(&folder.path().join("results"), floor).unwrap());
        let adapters = JobAdapters { jobs: store.clone(), results, leases: store.clone() };
        let security = Security::of(store.clone(), None).with_jobs(adapters);
        let statuses = Column { ty: "text".to_owned(), values: vec![json!("open"), json!("paid")] };
        let counts = Column { ty: "integer".to_owned(), values: vec![json!(3), json!(4)] };
        let world = World { caller: Caller::Reader, columns: vec![statuses, counts], ..world };
        let edge = world.edge_with(security);
        House { edge, store, folder }
    }

    /// Starts a runner of jobs, which runs until its task is aborted.
    pub(crate) fn run(&self) -> tokio::task::JoinHandle<()> {
        tokio::spawn(self.edge.app().services.job_runner().run(std::future::pending()))
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, headers: Json, body: Option<Json>) -> Answered {
        let mut request = json!({"method": method, "path": path, "headers": headers});
        if let Some(body) = body {
            request["json"] = body;
        }
        ask(&self.edge, &serde_json::from_value(request).unwrap()).await
    }

    pub(crate) async fn submit(&self, headers: Json) -> Answered {
        self.ask("POST", JOBS, headers, Some(query())).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answered {
        self.ask("GET", path, json!({}), None).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answered {
        self.ask("DELETE", path, json!({}), None).await
    }

    /// Submits a query as a caller that the test chooses.
    pub(crate) async fn submit_as(&self, identity: &Identity) -> Result<Job, JobError> {
        let text = query().to_string();
        let request = from_wire(text.as_bytes()).unwrap();
        let submission = Submission { text: text.into(), query: &request.query, idempotency_key: None };
        self.edge.app().services.jobs.submit(identity, &RequestContext::default(), submission).await
    }

    /// Waits until a caller's job has ended, and returns it.
    pub(crate) async fn ended(&self, identity: &Identity, id: &str) -> Job {
        let job = self.edge.app().services.jobs.wait(identity, id, Duration::from_secs(30)).await.unwrap();
        assert!(!job.state.is_open(), "{job:?}");
        job
    }
}

pub(crate) fn query() -> Json {
    json!({"measures": ["orders.count"], "dimensions": ["orders.status"]})
}

pub(crate) fn body(answered: &Answered) -> Json {
    serde_json::from_slice(&answered.body).unwrap()
}

pub(crate) fn id(answered: &Answered) -> String {
    body(answered)["job_id"].as_str().unwrap().to_owned()
}

pub(crate) fn status_and_code(answered: &Answered) -> (u16, String) {
    (answered.status.as_u16(), body(answered)["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// Waits until another task has made a condition true.
pub(crate) async fn until(mut is_true: impl FnMut() -> bool) {
    let wait = async {
        while !is_true() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.expect("it becomes true");
}
