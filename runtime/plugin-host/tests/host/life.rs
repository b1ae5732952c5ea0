//! Tests the life of a component: the checks before it runs, its activation, and the changes that an operator makes.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::guests::role::RoleGuest;
use crate::guests::wit_with;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use terrane_app::ports::calls::CallFacts;
use terrane_app::ports::detectors::{DetectorParams, Detectors as _, SeriesBatch};
use terrane_app::ports::plugins::{
    ChangeError, FileKind, PluginError, PluginFault, PluginRole, PluginState, PluginStatus, Plugins as _,
};
use terrane_plugin_host::manifest::{self, RequestedLimits};
use terrane_plugin_host::signature::SecretKey;
use terrane_plugin_host::{
    ComponentDetectors, Grants, MonotonicClock, PluginHost, PluginSettings, SearchPath, Settings, components_in,
};

const ID: &str = "detector-test";

/// A folder that contains a component.
struct House {
    folder: TempDir,
}

impl House {
    fn new(bytes: &[u8]) -> House {
        let house = House { folder: tempfile::tempdir().unwrap() };
        house.put(bytes);
        house
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("component.wasm")
    }

    fn put(&self, bytes: &[u8]) {
        fs::write(self.path(), bytes).unwrap();
    }

    fn settings(&self) -> PluginSettings {
        PluginSettings::new(ID, PluginRole::Detector, self.path())
    }

    fn host(&self, settings: PluginSettings) -> PluginHost {
        let plugins = vec![settings];
        // The time does not change, so that an open breaker stays open.
        let clock = MonotonicClock::new(|| Duration::ZERO);
        PluginHost::new(Settings { plugins, clock, ..Settings::new(SearchPath::default()) }).unwrap()
    }
}

fn detector() -> RoleGuest {
    RoleGuest::new(PluginRole::Detector, ID)
}

fn version(version: &str) -> Vec<u8> {
    RoleGuest { version: version.to_owned(), ..detector() }.component()
}

fn only(host: &PluginHost) -> PluginStatus {
    let [status] = &host.loaded()[..] else { panic!("one plugin") };
    status.clone()
}

fn fault(status: &PluginStatus) -> PluginFault {
    match &status.state {
        PluginState::Refused(PluginError::Faulted { fault, .. }) => fault.clone(),
        other => panic!("{other:?}"),
    }
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[test]
fn only_the_pinned_file_is_run() {
    let bytes = version("1.0.0");
    let house = House::new(&bytes);
    let pinned = |sha256: String| PluginSettings { sha256: Some(sha256), ..house.settings() };
    let status = only(&house.host(pinned(digest(&bytes))));
    assert_eq!((&status.state, status.version.as_deref()), (&PluginState::Active, Some("1.0.0")));

    let host = house.host(pinned("ab".repeat(32)));
    assert_eq!(fault(&only(&host)), PluginFault::Pin { pinned: "ab".repeat(32), found: digest(&bytes) });
    assert_eq!(host.guest_calls(), 0);
}

/// A query compares only the types of the function that it calls. So loading must compare the types of all functions,
/// and must refuse a component that was built for another contract.
#[test]
fn hook_with_other_types_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    for (was, is) in [
        ("display-name: string,", "display-name: string, maker: string,"),
        ("used-as: usage,", "used-as: usage, used-twice: bool,"),
        ("notes: string)", "notes: string, more: string)"),
    ] {
        let contract = wit_with(folder.path(), was, is);
        let house = House::new(&RoleGuest::new(PluginRole::Governance, ID).component_of(&contract));
        let settings = PluginSettings::new(ID, PluginRole::Governance, house.path());
        let found = fault(&only(&house.host(settings)));
        assert!(matches!(found, PluginFault::WrongTypes { .. }), "{was}: {found}");
    }
}

#[test]
fn missing_malformed_and_untrusted_signatures_are_rejected() {
    let (ours, other) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
    let bytes = version("1.0.0");
    let house = House::new(&bytes);
    let sig = house.folder.path().join("component.wasm.sig");
    let loaded = || house.host(PluginSettings { keys: vec![ours.public()], ..house.settings() });
    for (written, words) in [
        (None, "cannot read a signature"),
        (Some("rubbish".to_owned()), "128 hexadecimal digits"),
        (Some("a".repeat(100_000)), "cannot read a signature"),
        (Some(other.sign(&bytes).to_string()), "an untrusted key (trusted: 1)"),
        (Some(ours.sign(b"another content").to_string()), "an untrusted key (trusted: 1)"),
    ] {
        if let Some(text) = written {
            fs::write(&sig, text).unwrap();
        }
        let host = loaded();
        let message = fault(&only(&host)).to_string();
        assert!(message.contains(words) && host.guest_calls() == 0, "{message}");
    }
    fs::write(&sig, format!("{}\n", ours.sign(&bytes))).unwrap();
    assert_eq!(only(&loaded()).state, PluginState::Active);
    // One byte is added to the component.
    house.put(&[&bytes[..], &[0]].concat());
    assert!(matches!(fault(&only(&loaded())), PluginFault::Signature { .. }));
}

#[test]
fn manifest_that_contradicts_the_component_is_rejected() {
    let text = format!(
        "id = \"{ID}\"\nversion = \"1.0.0\"\nroles = [\"detector\"]\napi = \"\"\ncapabilities = [\"memo\"]\n[limits]\ntime_ms = 7\n"
    )
    .replace("api = \"\"", "api = \"terrane:plugins@0.1.0\"");
    let put = |from: &str, to: &str| manifest::embed(&version("1.0.0"), &text.replace(from, to)).unwrap();
    let refused = |bytes: &[u8]| {
        let house = House::new(bytes);
        fault(&only(&house.host(house.settings())))
    };
    for (from, to, what) in [(ID, "detector-other", "id"), ("\"1.0.0\"", "\"1.0.1\"", "version"), ("", "", "contract")]
    {
        let found = refused(&put(from, to));
        assert!(matches!(found, PluginFault::Mismatch { what: found, .. } if found == what), "{what}: {found}");
    }
    let mut rubbish = version("1.0.0");
    // A custom section `plugin.toml` with the invalid content `id`: section id 0, its size, the size of the name, the
    // name, the content.
    rubbish.extend(b"\0\x0e\x0bplugin.tomlid");
    assert!(matches!(refused(&rubbish), PluginFault::Manifest { .. }));
}

#[test]
fn requests_beyond_the_grants_are_named_and_the_smaller_limit_applies() {
    // The component must return the contract's version in `describe`, because it must agree with the manifest.
    let fields = "(data (i32.const 1152) \"terrane:plugins@0.1.0\")";
    let describe =
        "(i32.store (i32.const 2072) (i32.const 1152)) (i32.store (i32.const 2076) (i32.const 21)) (i32.const 2048)";
    let guest = RoleGuest { fields: fields.to_owned(), describe: describe.to_owned(), ..detector() };
    let text = format!(
        "id = \"{ID}\"\nversion = \"1.0.0\"\nroles = [\"detector\"]\napi = \"terrane:plugins@0.1.0\"\ncapabilities = [\"memo\", \"sample-rows\"]\n[limits]\ntime_ms = 7\nfuel = 900\n"
    );
    let house = House::new(&manifest::embed(&guest.component(), &text).unwrap());
    let limits = RequestedLimits { fuel: Some(500), memory_mb: Some(2), time_ms: Some(9) };
    let grants = Grants { memo: true, ..Grants::default() };
    let status = only(&house.host(PluginSettings { limits, grants, ..house.settings() }));
    assert_eq!(status.state, PluginState::Active, "{status:?}");
    assert_eq!((status.grants, status.ungranted), (vec!["memo"], vec!["sample-rows"]));
    let found = (status.limits.time_ms, status.limits.fuel, status.limits.memory_bytes);
    assert_eq!(found, (7, 500, 2 * 1024 * 1024));
}

#[test]
fn memo_requires_a_grant() {
    let import = "(import \"terrane:host/memo@0.1.0\" \"get\" (func (param i32 i32 i32)))";
    let house = House::new(&RoleGuest { fields: import.to_owned(), ..detector() }.component());
    let import = "terrane:host/memo@0.1.0".to_owned();
    assert_eq!(fault(&only(&house.host(house.settings()))), PluginFault::ForeignImport { import });
    let grants = Grants { memo: true, ..Grants::default() };
    assert_eq!(only(&house.host(PluginSettings { grants, ..house.settings() })).state, PluginState::Active);
}

#[test]
fn component_with_another_id_or_role_is_rejected() {
    let house = House::new(&RoleGuest::new(PluginRole::Detector, "detector-other").component());
    assert!(matches!(fault(&only(&house.host(house.settings()))), PluginFault::Mismatch { what: "id", .. }));
    let house = House::new(&RoleGuest::new(PluginRole::Check, ID).component());
    assert!(matches!(fault(&only(&house.host(house.settings()))), PluginFault::WrongWorld { .. }));
    // The memory at 4096 is all zeros, so it is read as the result `ok` with an empty list of kinds, which is refused.
    let house = House::new(&detector().with("detectors", "(i32.const 4096)").component());
    assert!(matches!(fault(&only(&house.host(house.settings()))), PluginFault::Answer { call: "detectors", .. }));
    let house = House::new(&detector().with("detectors", "unreachable").component());
    assert!(matches!(fault(&only(&house.host(house.settings()))), PluginFault::Trapped { call: "detectors", .. }));
}

#[test]
fn changed_file_has_no_effect_until_a_reload() {
    let house = House::new(&version("1.0.0"));
    let host = house.host(house.settings());
    house.put(&version("1.1.0"));
    assert_eq!(only(&host).version.as_deref(), Some("1.0.0"));
    let status = host.reload(ID).unwrap();
    assert_eq!(status.version.as_deref(), Some("1.1.0"));
    let previous = status.previous.unwrap();
    assert_eq!((previous.version.as_str(), previous.is_draining), ("1.0.0", false));
}

#[test]
fn failed_reload_keeps_the_old_component() {
    let house = House::new(&version("1.2.0"));
    let host = house.host(house.settings());
    let trapping = detector().with("detectors", "unreachable").component();
    for (bytes, words) in [
        (&b"rubbish"[..], "not a WebAssembly component"),
        (&version("1.1.0")[..], "older than version 1.2.0"),
        (&trapping[..], "trapped in `detectors`"),
    ] {
        house.put(bytes);
        let error = host.reload(ID).unwrap_err();
        assert!(matches!(&error, ChangeError::Refused { .. }) && error.to_string().contains(words), "{error}");
        let status = only(&host);
        assert_eq!((&status.state, status.version.as_deref()), (&PluginState::Active, Some("1.2.0")));
        assert!(status.reload_refused.unwrap().to_string().contains(words));
    }
    fs::remove_file(house.path()).unwrap();
    assert!(host.reload(ID).is_err());
    house.put(&version("1.2.1"));
    assert_eq!(host.reload(ID).unwrap().reload_refused, None);
}

#[test]
fn reloaded_component_must_match_the_pin() {
    let (old, new) = (version("1.0.0"), version("2.0.0"));
    let house = House::new(&new);
    let host = house.host(PluginSettings { sha256: Some(digest(&new)), ..house.settings() });
    house.put(&old);
    let error = host.reload(ID).unwrap_err();
    assert!(error.to_string().contains(&digest(&old)), "{error}");
    assert_eq!(only(&host).version.as_deref(), Some("2.0.0"));
    house.put(&new);
    assert!(host.reload(ID).is_ok());
}

#[test]
fn failed_plugin_can_be_repaired_and_reloaded() {
    let house = House::new(b"rubbish");
    let host = house.host(PluginSettings { is_required: true, ..house.settings() });
    assert_eq!(host.missing(), [ID]);
    house.put(&version("1.0.0"));
    assert_eq!(host.reload(ID).unwrap().state, PluginState::Active);
    assert!(host.missing().is_empty());
}

#[test]
fn operator_disables_and_enables_a_plugin() {
    let house = House::new(&version("1.0.0"));
    let host = house.host(PluginSettings { is_required: true, ..house.settings() });
    let already = |state| ChangeError::Already { name: ID.to_owned(), state };
    assert_eq!(host.enable(ID), Err(already("enabled")));
    assert_eq!(host.disable(ID).unwrap().state, PluginState::Disabled);
    assert_eq!(host.missing(), [ID]);
    assert_eq!(host.disable(ID), Err(already("disabled")));
    // A disabled plugin stays disabled when it is reloaded.
    assert_eq!(host.reload(ID).unwrap().state, PluginState::Disabled);
    assert_eq!(host.enable(ID).unwrap().state, PluginState::Active);
    let unknown = ChangeError::Unknown { name: "unknown".to_owned(), known: vec![ID.to_owned()] };
    assert_eq!(host.reload("unknown"), Err(unknown));
}

#[test]
fn unusable_plugin_cannot_be_enabled() {
    let house = House::new(b"rubbish");
    let host = house.host(house.settings());
    let refused = |error: ChangeError| {
        let ChangeError::NotEnabled { name, error, .. } = error else { panic!("{error}") };
        let unknown = PluginFault::NotAComponent { found: FileKind::Unknown };
        assert!(name == ID && matches!(&*error, PluginError::Faulted { fault, .. } if *fault == unknown), "{error}");
    };
    refused(host.enable(ID).unwrap_err());
    assert_eq!(host.disable(ID).unwrap().state, PluginState::Disabled);
    refused(host.enable(ID).unwrap_err());
    assert_eq!(only(&host).state, PluginState::Disabled);
    house.put(&version("1.0.0"));
    assert_eq!(host.reload(ID).unwrap().state, PluginState::Disabled);
    assert_eq!(host.enable(ID).unwrap().state, PluginState::Active);
}

/// Evaluates one series, and returns whether that succeeds.
async fn is_judged(detectors: &ComponentDetectors, now_unix_ms: i64) -> bool {
    let mut points = SeriesBatch::new(None);
    points.push([(0, 1.0)]);
    let facts = CallFacts { now_unix_ms, time_zone: "UTC".into(), correlation_id: "c".into(), tenant: None };
    let (history, points) = (Arc::new(points.clone()), Arc::new(points));
    let judged = detectors.detect(&facts, "probe", Vec::new(), history, points, &DetectorParams::default()).await;
    judged.is_ok()
}

/// The body of a `detect` that traps at millisecond 13. Otherwise it returns `ok` with the scores of one point: six
/// lists over the same zeros.
const JUDGES: &str = "(local $i i32)
    (if (i64.eq (i64.load (local.get 0)) (i64.const 13)) (then unreachable))
    (loop $again
      (i32.store (i32.add (i32.const 20004) (local.get $i)) (i32.const 30000))
      (i32.store (i32.add (i32.const 20008) (local.get $i)) (i32.const 1))
      (local.set $i (i32.add (local.get $i) (i32.const 8)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 48))))
    (i32.const 20000)";

fn judging(version: &str, body: &str) -> Vec<u8> {
    RoleGuest { version: version.to_owned(), ..detector() }.with("detect", body).component()
}

#[tokio::test]
async fn reload_that_fails_in_its_first_calls_is_reverted() {
    let house = House::new(&judging("1.0.0", JUDGES));
    let host = Arc::new(house.host(house.settings()));
    let detectors = ComponentDetectors::new(Arc::clone(&host));
    assert!(is_judged(&detectors, 0).await);
    house.put(&judging("1.1.0", "unreachable"));
    assert_eq!(host.reload(ID).unwrap().version.as_deref(), Some("1.1.0"));
    for _ in 0..5 {
        assert!(!is_judged(&detectors, 0).await);
    }
    assert!(is_judged(&detectors, 0).await, "the former one serves again");
    let status = only(&host);
    assert_eq!((&status.state, status.version.as_deref()), (&PluginState::Active, Some("1.0.0")));
    let Some(PluginError::Faulted { fault, .. }) = &status.reload_refused else { panic!("{status:?}") };
    assert!(matches!(fault, PluginFault::Trapped { call: "detect", .. }), "{fault}");
    assert_eq!(status.previous, None);
}

#[tokio::test]
async fn later_failures_and_first_loads_are_not_reverted() {
    // The failing version is the first one, so no earlier version can serve instead.
    let house = House::new(&judging("1.0.0", "unreachable"));
    let host = Arc::new(house.host(house.settings()));
    let detectors = ComponentDetectors::new(Arc::clone(&host));
    for _ in 0..6 {
        assert!(!is_judged(&detectors, 0).await);
    }
    assert_eq!(only(&host).state, PluginState::Degraded);
    house.put(&judging("1.1.0", JUDGES));
    host.reload(ID).unwrap();
    for _ in 0..21 {
        assert!(is_judged(&detectors, 0).await);
    }
    // The first calls of the new version have succeeded, so its later faults do not revert the reload.
    for _ in 0..6 {
        assert!(!is_judged(&detectors, 13).await);
    }
    let status = only(&host);
    assert_eq!((&status.state, status.version.as_deref()), (&PluginState::Degraded, Some("1.1.0")));
}

#[test]
fn equal_copy_in_another_folder_is_not_reported() {
    let folder = tempfile::tempdir().unwrap();
    let [program, project, third] = ["program", "project", "third"].map(|name| folder.path().join(name));
    for (folder, bytes) in [(&program, version("1.0.0")), (&project, version("1.0.0")), (&third, version("1.0.1"))] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join(format!("{ID}.wasm")), bytes).unwrap();
    }
    let search = SearchPath {
        folders: vec![project, third.clone()],
        program_folders: vec![program.clone()],
        ..SearchPath::default()
    };
    let found = PluginHost::new(Settings::new(search)).unwrap().inventory();
    let [first, other] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&first.state, first.path.as_ref()), (&PluginState::Active, Some(&program.join("detector-test.wasm"))));
    assert_eq!(other.path, Some(third.join("detector-test.wasm")));
    assert!(matches!(fault(other), PluginFault::IdTaken { .. }));
}

#[test]
fn discovered_plugins_are_named_by_file_with_bundled_ones_first() {
    let folder = tempfile::tempdir().unwrap();
    let [program, project] = ["program", "project"].map(|name| folder.path().join(name));
    let put = |folder: &PathBuf, name: &str, bytes: &[u8]| {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(format!("{name}.wasm")), bytes).unwrap();
    };
    put(&program, ID, &version("1.0.0"));
    put(&project, ID, &version("9.0.0"));
    put(&project, "detector-mine", &RoleGuest::new(PluginRole::Detector, "detector-mine").component());
    put(&project, "detector-alias", &version("1.0.0"));
    put(&project, "policy-idle", &RoleGuest::new(PluginRole::Governance, "policy-idle").component());
    let search =
        SearchPath { folders: vec![project.clone()], program_folders: vec![program.clone()], ..SearchPath::default() };
    let host = PluginHost::new(Settings::new(search.clone())).unwrap();
    assert!(host.loaded().is_empty(), "nothing is loaded before it is asked for");
    let found = host.inventory();
    let of = |path: PathBuf| found.iter().find(|status| status.path.as_ref() == Some(&path)).unwrap();
    assert_eq!(found.len(), 4, "a hook that is not listed does nothing");
    assert_eq!(of(program.join("detector-test.wasm")).state, PluginState::Active);
    assert_eq!(of(project.join("detector-mine.wasm")).state, PluginState::Active);
    let taken = PluginFault::IdTaken { id: ID.to_owned(), path: program.join("detector-test.wasm") };
    assert_eq!(fault(of(project.join("detector-test.wasm"))), taken);
    let alias = fault(of(project.join("detector-alias.wasm")));
    let PluginFault::Mismatch { what: "id", found: id, expected, .. } = alias else { panic!("{alias}") };
    assert_eq!((&*id, &*expected), (ID, "detector-alias"));
    let files = components_in(&search).into_iter().map(|file| (file.name, file.role)).collect::<Vec<_>>();
    let detector = |name: &str| (name.to_owned(), Some(PluginRole::Detector));
    let hook = ("policy-idle".to_owned(), Some(PluginRole::Governance));
    assert_eq!(files, [detector(ID), detector("detector-alias"), detector("detector-mine"), detector(ID), hook]);

    let listed = PluginSettings::new(ID, PluginRole::Detector, project.join("detector-test.wasm"));
    let host = PluginHost::new(Settings { plugins: vec![listed], ..Settings::new(search) }).unwrap();
    let found = host.inventory();
    let status = found.iter().find(|status| status.name == ID).unwrap();
    assert_eq!((status.version.as_deref(), status.is_listed), (Some("9.0.0"), true));
}

#[test]
fn discovered_plugins_require_signatures_if_configured() {
    let key = SecretKey::generate().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bytes = version("1.0.0");
    fs::write(folder.path().join("detector-test.wasm"), &bytes).unwrap();
    let search = SearchPath { folders: vec![folder.path().to_owned()], ..SearchPath::default() };
    let host = || PluginHost::new(Settings { keys: vec![key.public()], ..Settings::new(search.clone()) }).unwrap();
    let [status] = &host().inventory()[..] else { panic!("one plugin") };
    assert!(matches!(fault(status), PluginFault::Signature { .. }));
    fs::write(folder.path().join("detector-test.wasm.sig"), key.sign(&bytes).to_string()).unwrap();
    let [status] = &host().inventory()[..] else { panic!("one plugin") };
    assert_eq!(status.state, PluginState::Active);
}

#[test]
fn discovered_dialects_require_signatures_unless_bundled() {
    let key = SecretKey::generate().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [program, project] = ["program", "project"].map(|name| folder.path().join(name));
    let bytes = crate::guests::Guest::default().component();
    for folder in [&program, &project] {
        fs::create_dir(folder).unwrap();
    }
    fs::write(program.join("dialect-test.wasm"), &bytes).unwrap();
    let asked = |folders: Vec<PathBuf>| {
        let search = SearchPath { folders, program_folders: vec![program.clone()], ..SearchPath::default() };
        let host = PluginHost::new(Settings { keys: vec![key.public()], ..Settings::new(search) }).unwrap();
        match host.dialect("test").unwrap_err() {
            PluginError::Faulted { fault, .. } => (fault, host.guest_calls() > 0),
            other => panic!("{other}"),
        }
    };
    // The component was accepted: the default guest itself traps.
    assert!(matches!(asked(vec![project.clone()]), (PluginFault::Trapped { .. }, true)));
    fs::write(project.join("dialect-test.wasm"), &bytes).unwrap();
    for folder in [project.clone(), program.join("../project")] {
        assert!(matches!(asked(vec![folder]), (PluginFault::Signature { .. }, false)));
    }
    fs::write(project.join("dialect-test.wasm.sig"), key.sign(&bytes).to_string()).unwrap();
    assert!(matches!(asked(vec![project]), (PluginFault::Trapped { .. }, true)));
}
