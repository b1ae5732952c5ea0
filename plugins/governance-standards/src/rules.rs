//! The rules that the operator configures.
//!
//! In: the configuration. Out: findings about one artifact. An unknown key and a value of a different type are issues
//! with their path, because a rule that the plugin cannot read must not pass.

use terrane_sdk::Issue;
use terrane_sdk::governance::{Artifact, GateFinding, Severity};
use terrane_sdk::json::Json;

const KINDS: &[&str] = &["cube", "measure", "dimension", "metric", "model"];

pub(crate) struct Rules {
    is_snake_case: bool,
    max_length: usize,
    forbidden_prefixes: Vec<String>,
    owner_required: bool,
    domains: Vec<String>,
    descriptions_required: bool,
    /// The kinds of artifacts that the rules apply to; empty for all kinds.
    kinds: Vec<String>,
}

impl Rules {
    /// Reads the rules.
    ///
    /// # Errors
    /// Returns every problem of the configuration.
    pub(crate) fn read(config_json: &str) -> Result<Rules, Vec<Issue>> {
        let config = Json::config(config_json).map_err(|message| vec![Issue { path: String::new(), message }])?;
        let mut reader = Reader { config: &config, issues: Vec::new() };
        reader.known("", &["naming", "ownership", "descriptions", "kinds"]);
        reader.known("naming", &["case", "max_length", "forbidden_prefixes"]);
        reader.known("ownership", &["required", "domains"]);
        let case = reader.word(&["naming", "case"], &["snake_case", "any"]);
        let rules = Rules {
            is_snake_case: case.is_none_or(|case| case == "snake_case"),
            max_length: reader.length(&["naming", "max_length"]).unwrap_or(64),
            forbidden_prefixes: reader.texts(&["naming", "forbidden_prefixes"], None),
            owner_required: reader.flag(&["ownership", "required"]).unwrap_or(true),
            domains: reader.texts(&["ownership", "domains"], None),
            descriptions_required: reader.flag(&["descriptions"]).unwrap_or(false),
            kinds: reader.texts(&["kinds"], Some(KINDS)),
        };
        if reader.issues.is_empty() { Ok(rules) } else { Err(reader.issues) }
    }

    /// Returns the findings against the certification of an artifact.
    pub(crate) fn certification(&self, item: &Artifact) -> Vec<GateFinding> {
        if !self.looks_at(item) {
            return Vec::new();
        }
        let mut findings = self.naming(item);
        findings.extend(self.owner(item));
        findings.extend(self.description(item));
        if item.pii && is_blank(item.classification.as_deref()) {
            let message = format!("`{}` is personal data without a classification: set one", item.id);
            findings.push(GateFinding::blocking("classification_missing", Severity::High, &message));
        }
        findings
    }

    /// Returns the findings that a change adds.
    pub(crate) fn change(&self, before: Option<&Artifact>, after: &Artifact) -> Vec<GateFinding> {
        if !self.looks_at(after) {
            return Vec::new();
        }
        let mut findings = Vec::new();
        if before.is_none_or(|before| before.id != after.id) {
            findings.extend(self.naming(after));
        }
        let had_owner = before.is_some_and(|before| !is_blank(before.owner.as_deref()));
        if is_blank(after.owner.as_deref()) {
            if self.owner_required && had_owner {
                let message = format!("`{}` would lose its owner: name a new owner", after.id);
                findings.push(GateFinding::blocking("owner_removed", Severity::High, &message));
            }
        } else if before.is_none_or(|before| before.owner != after.owner) {
            findings.extend(self.owner(after));
        }
        findings
    }

    fn looks_at(&self, item: &Artifact) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&item.kind)
    }

    fn naming(&self, item: &Artifact) -> Vec<GateFinding> {
        let name = item.id.rsplit('.').next().unwrap_or_default();
        let mut findings = Vec::new();
        let mut add = |rule, message: String| {
            findings.push(GateFinding::blocking(rule, Severity::Medium, &message));
        };
        if self.is_snake_case && !is_snake_case(name) {
            add("name_case", format!("`{}` is not snake_case: lower-case letters, digits and single `_`", item.id));
        }
        let length = name.chars().count();
        if length > self.max_length {
            add(
                "name_length",
                format!("the name of `{}` has {length} characters; at most {}", item.id, self.max_length),
            );
        }
        if let Some(prefix) = self.forbidden_prefixes.iter().find(|prefix| name.starts_with(prefix.as_str())) {
            add("name_prefix", format!("`{}` begins with `{prefix}`: rename it before others rely on it", item.id));
        }
        findings
    }

    fn owner(&self, item: &Artifact) -> Option<GateFinding> {
        let owner = item.owner.as_deref().map(str::trim).unwrap_or_default();
        if owner.is_empty() {
            let message = format!("`{}` has no owner: name a person or a team", item.id);
            return self.owner_required.then(|| GateFinding::blocking("owner_missing", Severity::High, &message));
        }
        let is_in = |domain: &String| {
            owner.rsplit_once('@').is_some_and(|(name, of)| !name.is_empty() && of.eq_ignore_ascii_case(domain))
        };
        if self.domains.is_empty() || self.domains.iter().any(is_in) {
            return None;
        }
        let message = format!("the owner of `{}` is not an address of {}", item.id, self.domains.join(", "));
        Some(GateFinding::blocking("owner_domain", Severity::Medium, &message))
    }

    fn description(&self, item: &Artifact) -> Option<GateFinding> {
        let body = Json::parse(&item.body_json).ok();
        let description = body.as_ref().and_then(|body| body.get("description")).and_then(Json::text);
        let message = format!("`{}` has no description: describe what it counts and what it excludes", item.id);
        is_blank(description).then(|| GateFinding {
            blocking: self.descriptions_required,
            ..GateFinding::advice("description_missing", Severity::Low, &message)
        })
    }
}

fn is_blank(text: Option<&str>) -> bool {
    text.is_none_or(|text| text.trim().is_empty())
}

/// Returns whether the name has the form `net_revenue`: it begins with a letter, and each `_` is between other
/// characters.
fn is_snake_case(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.split('_').all(is_part)
}

struct Reader<'a> {
    config: &'a Json,
    issues: Vec<Issue>,
}

impl<'a> Reader<'a> {
    fn issue(&mut self, path: &[&str], message: String) {
        let path = path.iter().map(|part| format!("/{part}")).collect();
        self.issues.push(Issue { path, message });
    }

    /// Checks that a section is an object with known keys only. An empty name means the whole configuration.
    fn known(&mut self, section: &str, keys: &[&str]) {
        let path: Vec<&str> = Some(section).filter(|name| !name.is_empty()).into_iter().collect();
        let Some(found) = self.config.at(&path) else { return };
        if !matches!(found, Json::Object(_)) {
            return self.issue(&path, "expected an object".to_owned());
        }
        for (key, _) in found.fields().iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
            let path: Vec<&str> = path.iter().copied().chain([key.as_str()]).collect();
            self.issue(&path, format!("unknown key; expected one of {}", keys.join(", ")));
        }
    }

    fn word(&mut self, path: &[&str], words: &[&str]) -> Option<&'a str> {
        let found = self.config.at(path)?;
        let word = found.text().filter(|word| words.contains(word));
        if word.is_none() {
            self.issue(path, format!("expected one of {}", words.join(", ")));
        }
        word
    }

    fn flag(&mut self, path: &[&str]) -> Option<bool> {
        let found = self.config.at(path)?;
        if found.bool().is_none() {
            self.issue(path, "expected true or false".to_owned());
        }
        found.bool()
    }

    fn length(&mut self, path: &[&str]) -> Option<usize> {
        let found = self.config.at(path)?;
        let length = found.number().filter(|number| (1.0..=1_000.0).contains(number) && number.fract() == 0.0);
        if length.is_none() {
            self.issue(path, "expected an integer from 1 to 1000".to_owned());
        }
        length.map(|number| number as usize)
    }

    /// Returns a list of strings. Unless `words` is `None`, each must be one of them.
    fn texts(&mut self, path: &[&str], words: Option<&[&str]>) -> Vec<String> {
        let Some(found) = self.config.at(path) else { return Vec::new() };
        let texts = found.texts();
        let is_list = matches!(found, Json::List(items) if items.len() == texts.len());
        if !is_list || words.is_some_and(|words| texts.iter().any(|text| !words.contains(text))) {
            let of = words.map_or_else(String::new, |words| format!(", each one of {}", words.join(", ")));
            self.issue(path, format!("expected a list of strings{of}"));
        }
        texts.into_iter().map(str::to_owned).collect()
    }
}
