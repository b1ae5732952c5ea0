//! `plugin.toml`: the identity and the requests of a component, known before it runs.
//!
//! In: the manifest's text, or a component that contains it in the custom section `plugin.toml`. Out: a checked
//! [`Manifest`], and components with an embedded manifest. Unknown keys are refused, so that a misspelled capability is
//! noticed. Not here: the comparison with the component's answer to `describe` (`factory`).

use serde::Deserialize;
use terrane_app::ports::plugins::PluginRole;
use wasm_encoder::{ComponentSection as _, CustomSection};
use wasmparser::{Parser, Payload};

use crate::wire::names::is_id;

/// The name of the custom section at the component's top level.
pub const SECTION: &str = "plugin.toml";
const MAX_BYTES: usize = 64 * 1024;
const MAX_VERSION_BYTES: usize = 64;

/// The identity and the requests of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    pub id: String,
    /// The version, in the form of Semantic Versioning.
    pub version: String,
    /// The display name, which may be empty.
    pub display_name: String,
    /// The roles of the plugin, at least one.
    pub roles: Vec<PluginRole>,
    /// The contract for which the component was built, such as `terrane:plugins@0.1.0`.
    pub api: String,
    /// The capabilities that the plugin requests and the operator may grant.
    pub capabilities: Vec<Capability>,
    pub limits: RequestedLimits,
}

/// A capability that an operator may grant in addition to the log, which every plugin has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    Memo,
    QueryValues,
    SampleRows,
}

impl Capability {
    pub const ALL: [Capability; 3] = [Capability::Memo, Capability::QueryValues, Capability::SampleRows];

    /// Returns the name of the capability in `grants` and in the manifest's `capabilities`.
    pub fn as_str(self) -> &'static str {
        match self {
            Capability::Memo => "memo",
            Capability::QueryValues => "query-values",
            Capability::SampleRows => "sample-rows",
        }
    }

    pub fn by_name(name: &str) -> Option<Capability> {
        Capability::ALL.into_iter().find(|capability| capability.as_str() == name)
    }
}

/// Limits of a plugin that its author or the operator sets. If both set a limit, the smaller one applies. The memory
/// limit cannot exceed that of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestedLimits {
    /// The limit of the processor time of a call, in milliseconds.
    pub time_ms: Option<u64>,
    /// The limit of the fuel of a call.
    pub fuel: Option<u64>,
    /// The limit of the memory of an instance, in MiB.
    pub memory_mb: Option<u64>,
}

/// The reason why a manifest cannot be parsed, read from a component or embedded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// TOML's own message, with the line.
    #[error("{0}")]
    Toml(String),
    #[error("`{key}` is `{found}`, not {wanted}")]
    Value { key: &'static str, found: String, wanted: &'static str },
    #[error("it is {bytes} bytes long, the limit is {MAX_BYTES}")]
    TooLong { bytes: usize },
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("the component contains it {0} times")]
    Repeated(usize),
    #[error("the component already has one")]
    Present,
    #[error("the file is not a component: {0}")]
    NotAComponent(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestText {
    id: String,
    version: String,
    #[serde(default)]
    display_name: String,
    roles: Vec<String>,
    api: String,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    limits: LimitsText,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct LimitsText {
    time_ms: Option<u64>,
    fuel: Option<u64>,
    memory_mb: Option<u64>,
}

impl Manifest {
    /// Parses a manifest's text.
    ///
    /// # Errors
    /// Returns the first problem.
    pub fn parse(text: &str) -> Result<Manifest, ManifestError> {
        if text.len() > MAX_BYTES {
            return Err(ManifestError::TooLong { bytes: text.len() });
        }
        let written: ManifestText = toml::from_str(text).map_err(|error| ManifestError::Toml(error.to_string()))?;
        let roles = each(&written.roles, "roles", "dialect, detector, check or governance", PluginRole::by_name)?;
        let capabilities =
            each(&written.capabilities, "capabilities", "memo, query-values or sample-rows", Capability::by_name)?;
        let ManifestText { id, version, display_name, api, limits, .. } = written;
        check("id", &id, is_id(&id), "at most 64 of a-z, 0-9, `-` and `_`, beginning with a letter")?;
        check("version", &version, Version::parse(&version).is_some(), "a semantic version like 1.0.0")?;
        let is_api = api.strip_prefix("terrane:plugins@").is_some_and(|version| Version::parse(version).is_some());
        check("api", &api, is_api, "like terrane:plugins@0.1.0")?;
        check("roles", "", !roles.is_empty(), "at least one role")?;
        for (key, limit) in
            [("limits.time_ms", limits.time_ms), ("limits.fuel", limits.fuel), ("limits.memory_mb", limits.memory_mb)]
        {
            check(key, "0", limit != Some(0), "1 or more")?;
        }
        let LimitsText { time_ms, fuel, memory_mb } = limits;
        let limits = RequestedLimits { time_ms, fuel, memory_mb };
        Ok(Manifest { id, version, display_name, roles, api, capabilities, limits })
    }

    /// Returns the manifest of a component; `None` if it has none.
    ///
    /// # Errors
    /// The file is not a component, or its section is not a manifest.
    pub fn of_component(component: &[u8]) -> Result<Option<Manifest>, ManifestError> {
        text_of_component(component)?.map(Manifest::parse).transpose()
    }
}

/// Returns the unparsed text of a component's manifest, or `None` if it has none.
///
/// # Errors
/// The file is not a component, has several manifest sections, or has one that is not text.
pub fn text_of_component(component: &[u8]) -> Result<Option<&str>, ManifestError> {
    let (mut found, mut depth) = (Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(component) {
        match payload.map_err(|error| ManifestError::NotAComponent(error.to_string()))? {
            Payload::Version { encoding, .. } if depth == 0 && encoding != wasmparser::Encoding::Component => {
                return Err(ManifestError::NotAComponent("a core module".to_owned()));
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::CustomSection(section) if depth == 0 && section.name() == SECTION => found.push(section.data()),
            _ => {}
        }
    }
    match found[..] {
        [] => Ok(None),
        [data] if data.len() > MAX_BYTES => Err(ManifestError::TooLong { bytes: data.len() }),
        [data] => str::from_utf8(data).map(Some).map_err(|_| ManifestError::NotText),
        _ => Err(ManifestError::Repeated(found.len())),
    }
}

/// Returns a component with a manifest added.
///
/// # Errors
/// The text is not a manifest, the file is not a component, or the component has a manifest already.
pub fn embed(component: &[u8], text: &str) -> Result<Vec<u8>, ManifestError> {
    Manifest::parse(text)?;
    if text_of_component(component)?.is_some() {
        return Err(ManifestError::Present);
    }
    let mut bytes = component.to_vec();
    CustomSection { name: SECTION.into(), data: text.as_bytes().into() }.append_to_component(&mut bytes);
    Ok(bytes)
}

fn check(key: &'static str, found: &str, is_right: bool, wanted: &'static str) -> Result<(), ManifestError> {
    let found = || crate::error::shortened(found);
    if is_right { Ok(()) } else { Err(ManifestError::Value { key, found: found(), wanted }) }
}

fn each<T: PartialEq>(
    names: &[String],
    key: &'static str,
    wanted: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, ManifestError> {
    let mut values = Vec::with_capacity(names.len());
    for name in names {
        match read(name) {
            Some(value) if !values.contains(&value) => values.push(value),
            _ => return check(key, name, false, wanted).map(|()| Vec::new()),
        }
    }
    Ok(values)
}

/// A semantic version that can be compared with others. Build metadata after `+` is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    numbers: [u64; 3],
    /// The identifiers of a pre-release, such as `alpha` and `1`; empty for a release.
    before: Vec<String>,
}

impl Version {
    pub(crate) fn parse(text: &str) -> Option<Version> {
        let is_word =
            |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let (text, build) = text.split_once('+').unwrap_or((text, "0"));
        let (numbers, before) = text.split_once('-').map_or((text, None), |(numbers, rest)| (numbers, Some(rest)));
        let before: Vec<String> = before.into_iter().flat_map(|rest| rest.split('.')).map(str::to_owned).collect();
        let is_plain = |number: &&str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let numbers: Option<Vec<u64>> =
            numbers.split('.').map(|number| Some(number).filter(is_plain)?.parse().ok()).collect();
        let fits = text.len() <= MAX_VERSION_BYTES && before.iter().all(|word| is_word(word));
        let fits = fits && build.split('.').all(is_word);
        let numbers = <[u64; 3]>::try_from(numbers?).ok()?;
        fits.then_some(Version { numbers, before })
    }

    /// Returns whether this version precedes `other` (semver.org, rule 11).
    pub(crate) fn is_below(&self, other: &Version) -> bool {
        let key = |version: &Version| {
            let words = version.before.iter().map(|word| match word.parse::<u64>() {
                Ok(number) => (0, number, String::new()),
                Err(_) => (1, 0, word.clone()),
            });
            (version.numbers, version.before.is_empty(), words.collect::<Vec<_>>())
        };
        key(self) < key(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "id = \"policy-region\"\nversion = \"1.2.0\"\nroles = [\"governance\"]\napi = \"terrane:plugins@0.1.0\"\ncapabilities = [\"memo\"]\n[limits]\ntime_ms = 5\n";
    /// An empty component: the magic bytes, version 13, layer 1.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn manifest_is_read_strictly() {
        let manifest = Manifest::parse(TEXT).unwrap();
        assert_eq!((manifest.id.as_str(), manifest.roles.as_slice()), ("policy-region", &[PluginRole::Governance][..]));
        assert_eq!(manifest.capabilities, [Capability::Memo]);
        assert_eq!(manifest.limits, RequestedLimits { time_ms: Some(5), ..RequestedLimits::default() });
        for (from, to, words) in [
            ("policy-region", "Policy", "`id` is `Policy`"),
            ("1.2.0", "1.2", "`version` is `1.2`"),
            ("governance", "hook", "`roles` is `hook`, not dialect"),
            ("[\"governance\"]", "[]", "at least one role"),
            ("[\"governance\"]", "[\"check\", \"check\"]", "`roles` is `check`"),
            ("terrane:plugins@0.1.0", "acme:plugins@1", "`api`"),
            ("\"memo\"", "\"network\"", "`capabilities` is `network`"),
            ("time_ms = 5", "time_ms = 0", "`limits.time_ms`"),
            ("time_ms = 5", "time = 5", "unknown field `time`"),
            ("capabilities", "capabilties", "unknown field `capabilties`"),
            ("id = \"policy-region\"\n", "", "missing field `id`"),
        ] {
            let error = Manifest::parse(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn manifest_round_trips_and_is_embedded_once() {
        assert_eq!(Manifest::of_component(EMPTY), Ok(None));
        let with = embed(EMPTY, TEXT).unwrap();
        assert_eq!(text_of_component(&with), Ok(Some(TEXT)));
        assert_eq!(Manifest::of_component(&with).unwrap().unwrap().version, "1.2.0");
        assert_eq!(embed(&with, TEXT), Err(ManifestError::Present));
        let mut twice = with.clone();
        CustomSection { name: SECTION.into(), data: TEXT.as_bytes().into() }.append_to_component(&mut twice);
        assert_eq!(Manifest::of_component(&twice), Err(ManifestError::Repeated(2)));
        assert!(wasmparser::Validator::new().validate_all(&with).is_ok());
    }

    #[test]
    fn custom_sections_of_inner_modules_are_ignored() {
        let mut module = wasm_encoder::Module::new();
        module.section(&CustomSection { name: SECTION.into(), data: TEXT.as_bytes().into() });
        let mut component = wasm_encoder::Component::new();
        component.section(&wasm_encoder::ModuleSection(&module));
        assert_eq!(Manifest::of_component(&component.finish()), Ok(None));
        assert!(matches!(Manifest::of_component(&module.finish()), Err(ManifestError::NotAComponent(_))));
        assert!(matches!(Manifest::of_component(b"rubbish"), Err(ManifestError::NotAComponent(_))));
    }

    #[test]
    fn versions_are_ordered_as_semver_says() {
        let order = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
            "1.0.1",
            "1.2.0",
            "1.10.0",
            "2.0.0",
        ];
        let order: Vec<Version> = order.iter().map(|text| Version::parse(text).unwrap()).collect();
        for pair in order.windows(2) {
            assert!(pair[0].is_below(&pair[1]) && !pair[1].is_below(&pair[0]), "{pair:?}");
        }
        assert!(!Version::parse("1.0.0+a").unwrap().is_below(&Version::parse("1.0.0+b").unwrap()));
        for text in ["", "1", "1.0", "1.0.0.0", "1.0.x", "1.0.-1", "1.0.0-", "1.0.0+", "v1.0.0", "+1.0.0"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }
}
