//! The cost of a governance hook for a query. One benchmark measures the call alone. Another one compares a compilation
//! with a hook and a compilation with the same filter as a policy of the project.
//!
//! Target: a call over 20 members in a fresh instance takes less than 50 µs at p50. The call runs on a thread of the
//! blocking pool, as it does for a query. `cargo xtask components` builds the hook.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use terrane_app::ports::governance::{Decision, Governance as _, HookRequest};
use terrane_app::ports::plugins::PluginRole;
use terrane_app::query::RequestContext;
use terrane_compiler::governance::{MemberUse, QueryFacts, Usage, inspect};
use terrane_compiler::query::SemanticQuery;
use terrane_compiler::types::LogicalType;
use terrane_compiler::{Authorized, SecurityContext, compile};
use terrane_golden_tests::case::{environment, model};
use terrane_golden_tests::duckdb_profile;
use terrane_plugin_host::{Hooks, PluginHost, PluginSettings, SearchPath, Settings};

/// The allocator that the server uses too.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CUBES: &str = "cubes:\n  - name: orders\n    sql_table: orders\n    dimensions:\n      \
    - {name: region, type: string, sql: region}\n      - {name: status, type: string, sql: status}\n    \
    measures:\n      - {name: count, type: count}\n      - {name: revenue, type: sum, sql: amount}\n";
const POLICY: &str = "policies:\n  - {name: own, cubes: [orders], row_filter: \"{orders}.region = 'EU'\"}\n";
const TYPES: &str = "{orders.region: text, orders.status: text, orders.revenue: decimal}";
const CONFIG: &str = r#"{"filter": {"cube": "orders", "member": "region", "value": "EU"}}"#;

fn component() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.prepared/components/examples/policy-probe.wasm");
    path.canonicalize().expect("`cargo xtask components` makes the hook")
}

fn hooks() -> Hooks {
    let probe = PluginSettings {
        config_json: CONFIG.into(),
        is_required: true,
        ..PluginSettings::new("policy-probe", PluginRole::Governance, component())
    };
    let settings = Settings { plugins: vec![probe], ..Settings::new(SearchPath::default()) };
    Hooks::new(Arc::new(PluginHost::new(settings).unwrap()))
}

/// Returns the facts of a query with 20 members.
fn facts() -> QueryFacts {
    let member = |number: usize| MemberUse {
        cube: "orders".into(),
        member: format!("member_{number}").into(),
        ty: LogicalType::Text,
        is_measure: number.is_multiple_of(4),
        usage: Usage::Selected,
        tags: vec!["finance".into()],
        pii: false,
        classification: None,
    };
    QueryFacts {
        cubes: vec!["customers".into(), "orders".into()],
        members: (0..20).map(member).collect(),
        limit: 1_000,
        ..QueryFacts::default()
    }
}

fn benchmark(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let (hooks, context) = (hooks(), RequestContext::default());
    let asking = HookRequest { context: &context, now: Timestamp::UNIX_EPOCH, time_zone: "UTC" };
    let facts = Arc::new(facts());
    c.bench_function("call/20_members", |b| {
        b.iter(|| {
            let said = hooks.judge_on_this_thread(&asking, black_box(&facts));
            assert!(matches!(said[0].answer, Ok(Decision::Permit(_))), "{:?}", said[0].answer);
        });
    });
    c.bench_function("judge/20_members", |b| {
        b.iter(|| {
            let said = runtime.block_on(hooks.authorize(&asking, black_box(&facts)));
            assert!(matches!(said[0].answer, Ok(Decision::Permit(_))), "{:?}", said[0].answer);
        });
    });

    let (profile, environment, caller) = (duckdb_profile(), environment(), SecurityContext::default());
    let (plain, guarded) = (model(CUBES, TYPES), model(&format!("{CUBES}{POLICY}"), TYPES));
    let query = SemanticQuery {
        values: vec!["orders.count".parse().unwrap(), "orders.revenue".parse().unwrap()],
        dimensions: vec!["orders.status".parse().unwrap()],
        ..SemanticQuery::default()
    };
    c.bench_function("to_sql/policy_of_the_project", |b| {
        b.iter(|| {
            let authorized = Authorized::without_hooks(&guarded, &caller);
            compile(&profile, black_box(&query), &authorized, &environment).unwrap()
        });
    });
    c.bench_function("to_sql/hook", |b| {
        b.iter(|| {
            let inspection = inspect(&plain, black_box(&query), &caller, &environment).unwrap();
            let facts = Arc::new(inspection.facts().clone());
            let said = runtime.block_on(hooks.authorize(&asking, &facts)).remove(0);
            let Ok(Decision::Permit(permit)) = said.answer else { panic!("{:?}", said.answer) };
            let checked = inspection.check(&permit.obligations).unwrap();
            let authorized = inspection.authorize(vec![(said.hook.id, checked)]);
            compile(&profile, &query, &authorized, &environment).unwrap()
        });
    });
    c.bench_function("to_sql/hook_without_the_call", |b| {
        let inspection = inspect(&plain, &query, &caller, &environment).unwrap();
        let said = runtime.block_on(hooks.authorize(&asking, &Arc::new(inspection.facts().clone()))).remove(0);
        let Ok(Decision::Permit(permit)) = said.answer else { panic!("{:?}", said.answer) };
        b.iter(|| {
            let inspection = inspect(&plain, black_box(&query), &caller, &environment).unwrap();
            let checked = inspection.check(&permit.obligations).unwrap();
            let authorized = inspection.authorize(vec![(said.hook.id.clone(), checked)]);
            compile(&profile, &query, &authorized, &environment).unwrap()
        });
    });
}

criterion_group!(benches, benchmark);
criterion_main!(benches);
