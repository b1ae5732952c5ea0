//! Tests builds of models: their choice, definitions and order, and failed runs.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

use std::sync::{Arc, Mutex};

use futures_util::future::{pending, poll_immediate};
use terrane_app::builds::{BuildProgress, BuildRequest, BuildRunError, ModelBuild, ModelOutcome};
use terrane_app::catalog::{self, Snapshot};
use terrane_app::introspection::SchemaIntrospection;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::builder::{CantBuild, NotReady};
use terrane_compiler::project::{Inputs, SourceTree};
use terrane_conformance_tests::builds::{MemoryAudit, MemoryBuilder, MemoryLeases, builds};
use terrane_conformance_tests::fakes::{FakeBehavior, FakeClock, FakePlugins, FakeWarehouse};
use terrane_golden_tests::duckdb_profile;

const MODELS: [(&str, &str); 5] = [
    ("clean", "{{ config(materialized='table') }} SELECT id, amount FROM raw.orders"),
    ("positive", "{{ config(materialized='ephemeral') }} SELECT * FROM {{ ref('clean') }} WHERE amount > 0"),
    ("large", "SELECT * FROM {{ ref('positive') }} WHERE amount > 100"),
    ("report", "{{ config(materialized='table', schema='marts') }} SELECT count(*) AS n FROM {{ ref('large') }}"),
    ("people", "{{ config(materialized='table') }} SELECT * FROM raw.people"),
];

/// Loads the project with the models that the warehouse contains as built relations.
async fn load(builder: &MemoryBuilder, models: &[(&str, &str)]) -> Snapshot {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    for (name, text) in models {
        tree.files.insert(format!("models/{name}.sql").into(), (*text).into());
    }
    let warehouse = FakeWarehouse {
        behavior: FakeBehavior::Answers,
        ping: FakeBehavior::Answers,
        columns: Vec::new(),
        ungrouped_columns: Arc::default(),
        answers: Arc::default(),
        scan_size: Arc::default(),
        batches: 1,
        stream_ends: FakeBehavior::Answers,
        catalog: FakeBehavior::Answers,
        statements: Arc::default(),
        running: Arc::default(),
        builder: builder.clone(),
    };
    let plugins = FakePlugins { profile: Ok(Arc::new(duckdb_profile())), missing: Vec::new() };
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let known = SchemaIntrospection::default();
    catalog::load(&tree, &inputs, &known, &plugins, &warehouse).await.unwrap()
}

async fn run(
    builder: &MemoryBuilder,
    snapshot: &Snapshot,
    named: Option<&[&str]>,
) -> Result<Vec<ModelBuild>, BuildRunError> {
    let named: Option<Vec<String>> = named.map(|names| names.iter().map(ToString::to_string).collect());
    let builds =
        builds(builder, &MemoryLeases::default(), Arc::new(MemoryAudit::default()), Arc::new(FakeClock::default()));
    builds.run(snapshot, wanted(named.as_deref()), &|_| {}, pending()).await
}

fn wanted(models: Option<&[String]>) -> BuildRequest<'_> {
    BuildRequest { models, entry: AuditEntry::default() }
}

fn outcomes(builds: &[ModelBuild]) -> Vec<String> {
    let outcome = |build: &ModelBuild| match &build.outcome {
        ModelOutcome::Built { rows } => format!("built {rows:?}"),
        ModelOutcome::Inlined => "inlined".to_owned(),
        ModelOutcome::Failed(_) => "failed".to_owned(),
        ModelOutcome::Skipped { because_of } => format!("skipped for {because_of}"),
    };
    builds.iter().map(|build| format!("{} {}", build.model, outcome(build))).collect()
}

#[tokio::test]
async fn models_are_built_over_earlier_models() {
    let builder = MemoryBuilder::default();
    let snapshot = load(&builder, &MODELS).await;
    let progress = Mutex::new(Vec::new());
    let (leases, audit) = (MemoryLeases::default(), Arc::new(MemoryAudit::default()));
    let runs = builds(&builder, &leases, audit.clone(), Arc::new(FakeClock::default()));
    let built = runs
        .run(
            &snapshot,
            wanted(None),
            &|step| {
                progress.lock().unwrap().push(match step {
                    BuildProgress::Started { model } => format!("begun {model}"),
                    BuildProgress::Ended { build, place, of } => format!("{place}/{of} {}", build.model),
                });
            },
            pending(),
        )
        .await
        .unwrap();
    let mut all = outcomes(&built);
    assert_eq!(all[2..], ["large built None", "report built Some(3)"], "{all:?}");
    all.sort();
    assert_eq!(all, ["clean built Some(3)", "large built None", "people built Some(3)", "report built Some(3)"]);
    assert_eq!(builder.schemas(), ["analytics", "marts"]);
    assert_eq!(builder.query("analytics.clean").unwrap(), "SELECT id, amount FROM raw.orders");
    // The query reads built models from their relations. Models that are never built are inlined, as CTEs.
    let large = builder.query("analytics.large").unwrap();
    assert!(large.contains("clean AS (\nSELECT * FROM \"analytics\".\"clean\"\n)"), "{large}");
    assert!(large.contains("positive AS (\nSELECT * FROM clean WHERE amount > 0\n)"), "{large}");
    let report = builder.query("marts.report").unwrap();
    assert!(report.contains("\"analytics\".\"large\"") && !report.contains("raw.orders"), "{report}");
    let progress = progress.into_inner().unwrap();
    assert_eq!(progress.len(), 8, "{progress:?}");
    assert_eq!(progress[6..], ["begun report", "4/4 report"], "{progress:?}");
    assert!(!leases.is_held());
    let noted = audit.records_as_text();
    assert!(noted[0].starts_with("build_begun {\"models\":[") && noted[0].contains("report"), "{noted:?}");
    assert!(noted[1].starts_with("models_built {\"built\":[") && noted.len() == 2, "{noted:?}");
    // A project that is loaded after the builds reads all four models from their relations.
    let again = load(&builder, &MODELS).await;
    assert_eq!(again.definitions.built.current.len(), 4, "{:?}", again.definitions.built);
    assert!(again.definitions.built.outdated.is_empty());
}

#[tokio::test]
async fn dependents_of_a_failed_model_are_skipped() {
    let builder = MemoryBuilder { refuses: ["clean".to_owned()].into(), ..MemoryBuilder::default() };
    let snapshot = load(&builder, &MODELS).await;
    let mut all = outcomes(&run(&builder, &snapshot, None).await.unwrap());
    all.sort();
    assert_eq!(all, ["clean failed", "large skipped for clean", "people built Some(3)", "report skipped for clean"]);
}

#[tokio::test]
async fn only_named_models_are_built() {
    let builder = MemoryBuilder::default();
    let snapshot = load(&builder, &MODELS).await;
    let built = run(&builder, &snapshot, Some(&["large", "positive"])).await.unwrap();
    assert_eq!(outcomes(&built), ["positive inlined", "large built None"]);
    // `clean` has no relation, so the query inlines it.
    assert!(builder.query("analytics.large").unwrap().contains("FROM raw.orders"));
    run(&builder, &snapshot, Some(&["clean"])).await.unwrap();
    let snapshot = load(&builder, &MODELS).await;
    run(&builder, &snapshot, Some(&["large"])).await.unwrap();
    assert!(builder.query("analytics.large").unwrap().contains("\"analytics\".\"clean\""));
    match run(&builder, &snapshot, Some(&["larg"])).await {
        Err(BuildRunError::UnknownModel { name, nearest }) => {
            assert_eq!((name.as_str(), nearest[0].as_str()), ("larg", "large"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn changed_definition_makes_a_relation_outdated() {
    let builder = MemoryBuilder::default();
    run(&builder, &load(&builder, &MODELS).await, None).await.unwrap();
    // A changed model makes all models above it outdated. A changed materialization or schema makes the model outdated.
    for (at, text, current) in [
        (0, "{{ config(materialized='table') }} SELECT id, amount FROM raw.all_orders", vec!["people"]),
        (1, "{{ config(materialized='ephemeral') }} SELECT * FROM {{ ref('clean') }}", vec!["clean", "people"]),
        (4, "{{ config(materialized='view') }} SELECT * FROM raw.people", vec!["clean", "large", "report"]),
        (
            4,
            "{{ config(materialized='table', schema='hr') }} SELECT * FROM raw.people",
            vec!["clean", "large", "report"],
        ),
    ] {
        let mut models = MODELS;
        models[at].1 = text;
        let built = load(&builder, &models).await.definitions.built.clone();
        assert_eq!(built.current.iter().map(|name| &**name).collect::<Vec<_>>(), current, "{text}");
        assert_eq!(built.current.len() + built.outdated.len(), 4, "{text}");
    }
    let built = load(&builder, &MODELS[1..1]).await.definitions.built.clone();
    assert_eq!(built.outdated.len(), 4, "{built:?}");
}

#[tokio::test]
async fn concurrent_and_read_only_runs_are_rejected() {
    let builder = MemoryBuilder::default();
    let snapshot = load(&builder, &MODELS).await;
    let leases = MemoryLeases::default();
    let hanging = MemoryBuilder { hangs: ["clean".to_owned()].into(), ..builder.clone() };
    let first = builds(&hanging, &leases, Arc::new(MemoryAudit::default()), Arc::new(FakeClock::default()));
    let second = builds(&builder, &leases, Arc::new(MemoryAudit::default()), Arc::new(FakeClock::default()));
    {
        let mut running = std::pin::pin!(first.run(&snapshot, wanted(None), &|_| {}, pending()));
        assert!(poll_immediate(&mut running).await.is_none());
        assert!(matches!(second.run(&snapshot, wanted(None), &|_| {}, pending()).await, Err(BuildRunError::Busy)));
    }
    // The first run was dropped, which releases its lease.
    tokio::task::yield_now().await;
    assert!(!leases.is_held());
    second.run(&snapshot, wanted(None), &|_| {}, pending()).await.unwrap();
    let read_only = MemoryBuilder { is_read_only: true, ..MemoryBuilder::default() };
    let refused = run(&read_only, &snapshot, None).await;
    assert!(matches!(refused, Err(BuildRunError::NotReady(NotReady::Cant(CantBuild::ReadOnly)))), "{refused:?}");
}

#[tokio::test]
async fn cancelled_run_releases_its_lease() {
    let builder = MemoryBuilder { hangs: ["clean".to_owned()].into(), ..MemoryBuilder::default() };
    let snapshot = load(&builder, &MODELS).await;
    let leases = MemoryLeases::default();
    let runs = builds(&builder, &leases, Arc::new(MemoryAudit::default()), Arc::new(FakeClock::default()));
    let stop = async { tokio::task::yield_now().await };
    assert!(matches!(runs.run(&snapshot, wanted(None), &|_| {}, stop).await, Err(BuildRunError::Stopped)));
    assert!(!leases.is_held());
    let people = ["people".to_owned()];
    let again = runs.run(&snapshot, wanted(Some(&people)), &|_| {}, pending()).await;
    assert_eq!(outcomes(&again.unwrap()), ["people built Some(3)"]);
}

#[tokio::test(start_paused = true)]
async fn run_that_lost_its_lease_stops() {
    let builder = MemoryBuilder { hangs: ["clean".to_owned()].into(), ..MemoryBuilder::default() };
    let snapshot = load(&builder, &MODELS).await;
    let leases = MemoryLeases::default();
    let runs = builds(&builder, &leases, Arc::new(MemoryAudit::default()), Arc::new(FakeClock::default()));
    let mut running = std::pin::pin!(runs.run(&snapshot, wanted(None), &|_| {}, pending()));
    assert!(poll_immediate(&mut running).await.is_none());
    leases.take_over();
    assert!(matches!(running.await, Err(BuildRunError::LeaseLost)));
    assert!(builder.query("marts.report").is_none());
}
