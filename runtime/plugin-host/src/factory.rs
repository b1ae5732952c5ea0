//! Creates callable plugins from an operator's settings: verified, parsed, compiled, linked and probed.
//!
//! In: settings and a file. Out: a [`Plugin`], or its first problem. Nothing of the file runs before its pin and its
//! signature are verified. Not here: the version that serves in the meantime (`plugin_slot`).

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use terrane_app::ports::plugins::{PluginFault, PluginRole};

use crate::budget::Budget;
use crate::cache::Cache;
use crate::engine::Engine;
use crate::error::shortened;
use crate::health::Health;
use crate::limits::{CallLimits, GuestLimits};
use crate::loader;
use crate::log::Throttle;
use crate::manifest::{Capability, Manifest};
use crate::memo::Memo;
use crate::monotonic_clock::MonotonicClock;
use crate::plugin::{Plugin, PluginSettings};
use crate::regular_file;
use crate::role::{Info, LinkedComponent, Role};
use crate::sandbox_limits::{MemoGrant, SandboxLimits};
use crate::signature::{self, PublicKey, Signature};

/// The largest size of a signature file in bytes. It is more than the line of a signature needs.
const MAX_SIGNATURE_BYTES: u64 = 1_024;

/// Creates the plugins of a host, with the resources that they share.
pub(crate) struct PluginFactory {
    pub(crate) engine: Arc<Engine>,
    pub(crate) cache: Option<Cache>,
    pub(crate) guest: GuestLimits,
    pub(crate) describe: CallLimits,
    pub(crate) guest_calls: Arc<AtomicU64>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) memo: Arc<Memo>,
    pub(crate) clock: MonotonicClock,
}

/// A component that is linked and has described itself.
pub(crate) struct LoadedComponent<R: Role> {
    pub(crate) linked: LinkedComponent<R>,
    pub(crate) info: Info,
    pub(crate) digest: Arc<str>,
    pub(crate) manifest: Option<Manifest>,
    pub(crate) limits: CallLimits,
    pub(crate) memory_bytes: usize,
}

impl PluginFactory {
    /// Creates a callable plugin.
    ///
    /// # Errors
    /// Returns the first problem, with the file's digest if it could be read.
    pub(crate) fn create<R: Role>(
        &self,
        settings: &PluginSettings,
    ) -> Result<Plugin<R>, (Option<String>, PluginFault)> {
        let loaded = self.load::<R>(settings)?;
        let probed = R::probe(&loaded.linked, self.describe);
        probed.map_err(|fault| (Some(loaded.digest.to_string()), fault))?;
        let PluginSettings { is_required, is_monitored, grants, .. } = *settings;
        let asked = loaded.manifest.map(|manifest| manifest.capabilities).unwrap_or_default();
        let ungranted: Vec<Capability> = asked.into_iter().filter(|capability| !grants.has(*capability)).collect();
        let id: Arc<str> = settings.id.as_str().into();
        Ok(Plugin {
            version: loaded.info.version.into(),
            digest: loaded.digest,
            config_json: settings.config_json.clone(),
            is_required,
            is_monitored,
            grants,
            limits: loaded.limits,
            memory_bytes: loaded.memory_bytes,
            ungranted,
            describe_fuel: loaded.linked.fuel(),
            linked: loaded.linked,
            health: Health::new(Arc::clone(&id), self.clock.clone()),
            id,
        })
    }

    /// Loads a component, calls it for its description, and lets it check its configuration.
    ///
    /// # Errors
    /// Returns the errors of [`PluginFactory::create`].
    pub(crate) fn load<R: Role>(
        &self,
        settings: &PluginSettings,
    ) -> Result<LoadedComponent<R>, (Option<String>, PluginFault)> {
        let bytes = loader::read(&settings.source).map_err(|fault| (None, fault))?;
        let digest = loader::digest(&bytes);
        self.load_from(settings, &bytes, &digest).map_err(|fault| (Some(digest), fault))
    }

    fn load_from<R: Role>(
        &self,
        settings: &PluginSettings,
        bytes: &[u8],
        digest: &str,
    ) -> Result<LoadedComponent<R>, PluginFault> {
        verify(settings, bytes, digest)?;
        let component = loader::component(&self.engine, self.cache.as_ref(), bytes, digest, settings.grants)?;
        let manifest = Manifest::of_component(bytes)
            .map_err(|error| PluginFault::Manifest { message: shortened(&error.to_string()) })?;
        let (limits, guest) = self.limits(R::ROLE, settings, manifest.as_ref());
        let digest: Arc<str> = digest.into();
        let sandbox = self.sandbox(settings, &digest, guest);
        let linked = LinkedComponent::<R>::on(sandbox, &self.engine, &component, &self.guest_calls)?;
        let info = linked.describe(self.describe)?;
        check_identity(settings, &info, manifest.as_ref())?;
        linked.check_config(&settings.config_json, self.describe)?;
        Ok(LoadedComponent { linked, info, digest, manifest, limits, memory_bytes: guest.memory_bytes })
    }

    fn sandbox(&self, settings: &PluginSettings, digest: &Arc<str>, limits: GuestLimits) -> SandboxLimits {
        let memo = settings.grants.memo.then(|| MemoGrant {
            memo: Arc::clone(&self.memo),
            digest: Arc::clone(digest),
            config_json: settings.config_json.clone(),
        });
        let name: Arc<str> = settings.id.as_str().into();
        let throttle = Some(Throttle::new(Arc::clone(&name), self.clock.clone()));
        SandboxLimits { name, limits, budget: Some(Arc::clone(&self.budget)), throttle, memo }
    }

    /// Returns the limits of a plugin. A limit that the operator does not set is the role's or the host's default. The
    /// author's limits can only reduce these limits.
    fn limits(
        &self,
        role: PluginRole,
        settings: &PluginSettings,
        manifest: Option<&Manifest>,
    ) -> (CallLimits, GuestLimits) {
        let (ours, theirs) = (settings.limits, manifest.map(|manifest| manifest.limits).unwrap_or_default());
        let default = if role == PluginRole::Dialect { self.describe } else { CallLimits::of(role) };
        let least = |ours: Option<u64>, default: u64, theirs: Option<u64>| {
            ours.unwrap_or(default).min(theirs.unwrap_or(u64::MAX))
        };
        let bytes = |megabytes: Option<u64>| megabytes.map(|megabytes| megabytes.saturating_mul(1024 * 1024));
        let host = self.guest.memory_bytes as u64;
        let memory_bytes = least(bytes(ours.memory_mb), host, bytes(theirs.memory_mb)).min(host);
        let call = CallLimits {
            fuel: least(ours.fuel, default.fuel, theirs.fuel),
            time_ms: least(ours.time_ms, default.time_ms, theirs.time_ms),
        };
        (call, GuestLimits { memory_bytes: memory_bytes as usize, ..self.guest })
    }
}

/// Verifies the pin, then the signature.
fn verify(settings: &PluginSettings, bytes: &[u8], digest: &str) -> Result<(), PluginFault> {
    if let Some(pinned) = settings.sha256.as_ref().filter(|pinned| *pinned != digest) {
        return Err(PluginFault::Pin { pinned: pinned.clone(), found: digest.to_owned() });
    }
    if settings.keys.is_empty() { Ok(()) } else { verify_signature(&settings.source, bytes, &settings.keys) }
}

fn verify_signature(source: &Path, bytes: &[u8], keys: &[PublicKey]) -> Result<(), PluginFault> {
    let mut name = source.as_os_str().to_owned();
    name.push(".");
    name.push(signature::EXTENSION);
    let path = PathBuf::from(name);
    let refused = |message: String| PluginFault::Signature { message };
    let mut text = String::new();
    let read = regular_file::open(&path).and_then(|file| file.take(MAX_SIGNATURE_BYTES + 1).read_to_string(&mut text));
    let text = read.ok().filter(|read| *read as u64 <= MAX_SIGNATURE_BYTES).map(|_| text);
    let text = text.ok_or_else(|| refused(format!("cannot read a signature from {}", path.display())))?;
    let read: Result<Signature, _> = text.parse();
    let signature = read.map_err(|error| refused(format!("{} {error}", path.display())))?;
    signature.verify(bytes, keys).map_err(|error| refused(format!("{} {error}", path.display())))?;
    Ok(())
}

/// Checks that the configuration, the manifest and the component agree on the plugin's identity.
fn check_identity(settings: &PluginSettings, info: &Info, manifest: Option<&Manifest>) -> Result<(), PluginFault> {
    let configured = if settings.is_found { "its file name states" } else { "the configuration states" };
    const MANIFEST: &str = "its plugin.toml states";
    let same = |what, found: &str, wanted, expected: &str| {
        let mismatch =
            || PluginFault::Mismatch { what, found: shortened(found), wanted, expected: expected.to_owned() };
        if found == expected { Ok(()) } else { Err(mismatch()) }
    };
    same("id", &info.id, configured, &settings.id)?;
    let Some(manifest) = manifest else { return Ok(()) };
    same("id", &info.id, MANIFEST, &manifest.id)?;
    same("version", &info.version, MANIFEST, &manifest.version)?;
    same("contract", &info.api, MANIFEST, &manifest.api)?;
    if manifest.roles.contains(&settings.role) {
        return Ok(());
    }
    let roles: Vec<&str> = manifest.roles.iter().map(|role| role.as_str()).collect();
    same("role", settings.role.as_str(), MANIFEST, &roles.join(", "))
}
