//! Tests hostile guests in every role and over many calls: each ends with a typed fault, circuit breakers open, and the
//! host neither stops nor uses more and more memory.

mod answers;
mod callers;
mod failing;
mod files;
mod limits;
mod memo;
mod panics;
mod soak;
mod state;

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::guests::role::RoleGuest;
use jiff::Timestamp;
use tempfile::TempDir;
use terrane_app::ports::calls::CallFacts;
use terrane_app::ports::checks::{CheckCall, CheckPlan, Checks as _};
use terrane_app::ports::detectors::{Detection, DetectorError, DetectorParams, Detectors as _, SeriesBatch};
use terrane_app::ports::governance::{Decision, Governance as _, Hook, HookRequest};
use terrane_app::ports::plugins::{PluginError, PluginFault, PluginRole, PluginState, Plugins as _};
use terrane_app::query::RequestContext;
use terrane_compiler::SecurityContext;
use terrane_compiler::governance::QueryFacts;
use terrane_plugin_host::manifest::RequestedLimits;
use terrane_plugin_host::{
    CallLimits, ComponentChecks, ComponentDetectors, Hooks, MonotonicClock, PluginHost, PluginSettings, SearchPath,
    Settings,
};

const ENDLESS: &str = "(loop $again (br $again)) unreachable";
const ROLES: [(PluginRole, &str); 3] = [
    (PluginRole::Detector, "detector-test"),
    (PluginRole::Check, "check-test"),
    (PluginRole::Governance, "policy-test"),
];
const LITTLE_FUEL: CallLimits = CallLimits { fuel: 2_000_000, time_ms: 600_000 };
const LITTLE_TIME: CallLimits = CallLimits { fuel: u64::MAX >> 1, time_ms: 20 };
/// The limits of calls that must end by fuel or memory, and never by time.
const NO_TIME_LIMIT: RequestedLimits =
    RequestedLimits { time_ms: Some(600_000), fuel: Some(20_000_000), memory_mb: None };

fn file(component: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("component.wasm");
    fs::write(&path, component).unwrap();
    (folder, path)
}

fn settings(guest: &RoleGuest, path: PathBuf) -> Settings {
    let plugin = PluginSettings { limits: NO_TIME_LIMIT, ..PluginSettings::new(guest.id.clone(), guest.role, path) };
    Settings { plugins: vec![plugin], ..Settings::new(SearchPath::default()) }
}

/// Returns the fault for which the only plugin of a host was refused.
fn refused(host: &PluginHost) -> PluginFault {
    match &host.loaded()[0].state {
        PluginState::Refused(PluginError::Faulted { fault, .. }) => fault.clone(),
        other => panic!("{other:?}"),
    }
}

/// Returns the fault for which a host refuses to load the guest.
fn refusal(guest: &RoleGuest, describe: CallLimits) -> PluginFault {
    let (_folder, path) = file(&guest.component());
    refused(&PluginHost::new(Settings { describe, ..settings(guest, path) }).unwrap())
}

/// A clock that moves only when a test advances it.
#[derive(Clone, Default)]
struct ManualClock(Arc<Mutex<Duration>>);

impl ManualClock {
    fn advance(&self, seconds: u64) {
        *self.0.lock().unwrap() += Duration::from_secs(seconds);
    }

    fn elapsed(&self) -> MonotonicClock {
        let time = Arc::clone(&self.0);
        MonotonicClock::new(move || *time.lock().unwrap())
    }
}

/// The caller and the time of a call, on which the answers of these tests' guests depend.
#[derive(Debug, Clone, Copy)]
struct CallInput {
    user: &'static str,
    tenant: &'static str,
    now: i64,
}

const INPUT: CallInput = CallInput { user: "ada", tenant: "acme", now: 0 };

/// A host with one guest, which is called through the port of its role.
struct Stage {
    _folder: TempDir,
    clock: ManualClock,
    host: Arc<PluginHost>,
    role: PluginRole,
    hooks: Hooks,
    checks: ComponentChecks,
    detectors: ComponentDetectors,
}

/// Returns the WebAssembly expression for the time of a call in each role: a flat parameter, or the first field behind
/// a pointer.
fn now_of(role: PluginRole) -> &'static str {
    if role == PluginRole::Check { "(local.get 0)" } else { "(i64.load (local.get 0))" }
}

/// Returns the name of the role's function that these tests call.
fn function_of(role: PluginRole) -> &'static str {
    match role {
        PluginRole::Check => "make-plan",
        PluginRole::Detector => "detect",
        PluginRole::Governance => "on-query",
        PluginRole::Dialect => panic!("dialects are input when they are loaded"),
    }
}

impl Stage {
    /// Returns a stage with a guest whose function has this body.
    fn of_body(role: PluginRole, fields: &str, body: &str) -> Stage {
        let (_, id) = ROLES.into_iter().find(|(known, _)| *known == role).unwrap();
        let guest = RoleGuest { fields: fields.to_owned(), ..RoleGuest::new(role, id).with(function_of(role), body) };
        Stage::of(&guest, |_| {})
    }

    fn of(guest: &RoleGuest, change: impl FnOnce(&mut Settings)) -> Stage {
        Stage::of_bytes(guest, &guest.component(), change)
    }

    fn of_bytes(guest: &RoleGuest, bytes: &[u8], change: impl FnOnce(&mut Settings)) -> Stage {
        let (folder, path) = file(bytes);
        let clock = ManualClock::default();
        let mut settings = Settings { clock: clock.elapsed(), ..settings(guest, path) };
        change(&mut settings);
        let host = Arc::new(PluginHost::new(settings).unwrap());
        assert_eq!(host.loaded()[0].state, PluginState::Active);
        let (checks, detectors) = (ComponentChecks::new(Arc::clone(&host)), ComponentDetectors::new(Arc::clone(&host)));
        let hooks = Hooks::new(Arc::clone(&host));
        Stage { _folder: folder, clock, host, role: guest.role, hooks, checks, detectors }
    }

    fn state(&self) -> PluginState {
        self.host.loaded()[0].state.clone()
    }

    /// Calls the function of the guest's role. An error is the message of the fault.
    async fn call(&self, input: CallInput) -> Result<(), String> {
        match self.role {
            PluginRole::Governance => self.authorize(input, &Arc::default()).await.map(drop),
            PluginRole::Check => self.plan(input).await.map(drop).map_err(|fault| fault.to_string()),
            PluginRole::Detector => self.detect(input).await.map(drop).map_err(|error| error.to_string()),
            PluginRole::Dialect => panic!("dialects are input when they are loaded"),
        }
    }

    async fn authorize(&self, input: CallInput, facts: &Arc<QueryFacts>) -> Result<Decision, String> {
        let context = context(input);
        let now = Timestamp::from_millisecond(input.now).unwrap();
        let asking = HookRequest { context: &context, now, time_zone: "UTC" };
        self.hooks.authorize(&asking, facts).await.remove(0).answer.map_err(|fault| fault.message)
    }

    fn blame(&self, input: CallInput, fault: &str) {
        let context = context(input);
        let asking = HookRequest { context: &context, now: Timestamp::UNIX_EPOCH, time_zone: "UTC" };
        let hook = Hook { id: "policy-test".into(), is_required: true, is_monitored: false };
        self.hooks.blame(&asking, &hook, fault);
    }

    async fn plan(&self, input: CallInput) -> Result<CheckPlan, PluginFault> {
        let call = CheckCall { facts: facts(input), profile_config_json: "{}".into() };
        let mut plans = self.checks.plans(&call, Vec::new().into()).await;
        plans.remove(0).map_err(|fault| fault.fault)
    }

    /// Trains the detector, and returns the message of the fault.
    async fn train(&self) -> String {
        let mut history = SeriesBatch::new(None);
        history.push([(0, 1.0)]);
        let params = DetectorParams::default();
        let trained = self.detectors.train(&facts(INPUT), "probe", Arc::new(history), &params).await;
        trained.unwrap_err().to_string()
    }

    async fn detect(&self, input: CallInput) -> Result<Detection, DetectorError> {
        let mut points = SeriesBatch::new(None);
        points.push((0..4).map(|at| (at, 1.0)));
        let (history, points) = (Arc::new(points.clone()), Arc::new(points));
        self.detectors.detect(&facts(input), "probe", Vec::new(), history, points, &DetectorParams::default()).await
    }
}

fn context(input: CallInput) -> RequestContext {
    RequestContext {
        caller: SecurityContext { user_id: input.user.into(), ..SecurityContext::default() },
        tenant: Some(input.tenant.into()),
        ..RequestContext::default()
    }
}

fn facts(input: CallInput) -> CallFacts {
    let tenant = Some(input.tenant.into());
    CallFacts { now_unix_ms: input.now, time_zone: "UTC".into(), correlation_id: "c".into(), tenant }
}
