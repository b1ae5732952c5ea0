//! A case: two projects and the requests whose answers differ. Its file contains everything that is needed to run it.
//!
//! In: a finding. Out: a smaller case with the same kind of fault, saved as JSON. Each file of `cases/` is a test.

use std::mem::discriminant;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::attack::{Finding, Pair};
use crate::compare::Fault;
use crate::http::Request;
use crate::scenario::Scenario;
use crate::server::{Files, Stage};

/// The largest number of requests that are sent to make a case smaller.
const MAX_TRIES: usize = 80;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// A description of the fault when it was found.
    pub about: String,
    pub seed: u64,
    pub index: usize,
    /// The requests. The answers to the last one differ.
    pub requests: Vec<Request>,
    pub fault: Fault,
    pub answers: [String; 2],
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log: Vec<String>,
    /// Files that both servers have.
    pub files: Files,
    pub left: Files,
    pub right: Files,
}

impl Case {
    pub fn new(seed: u64, index: usize, scenario: &Scenario, finding: Finding) -> Self {
        let mut case = Case {
            about: String::new(),
            seed,
            index,
            requests: Vec::new(),
            fault: Fault::Body,
            answers: <[String; 2]>::default(),
            log: Vec::new(),
            files: scenario.files.clone(),
            left: scenario.left.clone(),
            right: scenario.right.clone(),
        };
        case.take(finding);
        case
    }

    fn take(&mut self, finding: Finding) {
        let Finding { fault, requests, answers, log } = finding;
        self.about = fault.to_string();
        (self.fault, self.requests, self.answers, self.log) = (fault, requests, answers, log);
    }

    /// Serves both sides, sends the requests and returns the first fault.
    ///
    /// # Errors
    /// A side does not start.
    pub fn replay(&self, stage: &Stage) -> Result<Option<Finding>> {
        let servers = stage.serve_both([&[&self.files, &self.left], &[&self.files, &self.right]])?;
        Pair { servers }.first_fault(&self.requests)
    }

    /// Writes the case into a folder and returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, folder: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("seed_{}_case_{}.json", self.seed, self.index));
        std::fs::write(&path, serde_json::to_string_pretty(self)? + "\n")
            .with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Reads a case.
    ///
    /// # Errors
    /// The file is not a case.
    pub fn read(path: &Path) -> Result<Case> {
        let text = std::fs::read_to_string(path)?;
        serde_json::from_str(&text).with_context(|| path.display().to_string())
    }

    fn is_same_kind(&self, finding: &Finding) -> bool {
        discriminant(&self.fault) == discriminant(&finding.fault)
    }
}

/// Removes the parts of the last request's body without which the fault still occurs.
///
/// # Errors
/// A server no longer answers.
pub fn shrink_request(pair: &mut Pair, case: &mut Case) -> Result<()> {
    // The requests after a registration depend on it, so the case is not changed.
    if case.requests.len() != 1 {
        return Ok(());
    }
    for _ in 0..MAX_TRIES {
        let body = case.requests[0].body.as_deref().and_then(|body| serde_json::from_str::<Json>(body).ok());
        let Some(body) = body else { return Ok(()) };
        let mut is_smaller = false;
        for smaller in smaller_bodies(&body) {
            let request = Request { body: Some(smaller.to_string()), ..case.requests[0].clone() };
            if let Some(finding) = pair.first_fault(&[request])?
                && case.is_same_kind(&finding)
            {
                case.take(finding);
                is_smaller = true;
                break;
            }
        }
        if !is_smaller {
            return Ok(());
        }
    }
    Ok(())
}

/// Returns copies of the object, each without one field or one item of a field's list.
fn smaller_bodies(body: &Json) -> Vec<Json> {
    let Some(fields) = body.as_object() else { return Vec::new() };
    let mut all = Vec::new();
    for (name, value) in fields {
        let mut without = fields.clone();
        without.remove(name);
        all.push(Json::Object(without));
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        for index in 0..items.len() {
            let mut fewer = body.clone();
            fewer[name].as_array_mut().map(|items| items.remove(index));
            all.push(fewer);
        }
    }
    all
}

/// Removes the files that the fault does not need. A file stays if the project without it is not served, or if both
/// sides then agree. Policies stay.
pub fn shrink_project(stage: &Stage, mut case: Case) -> Case {
    for path in case.files.keys().cloned().collect::<Vec<_>>() {
        let mut smaller = case.clone();
        smaller.files.remove(&path);
        // Without the policies, both sides would differ in everything.
        if path.starts_with("policies/") || !has_same_fault(stage, &mut smaller) {
            continue;
        }
        case = smaller;
    }
    // Removes from both sides the files that no cube reads.
    let mut smaller = case.clone();
    let is_read = |path: &str| path == "service_project.yml" || path.starts_with("data/");
    smaller.left.retain(|path, _| is_read(path));
    smaller.right.retain(|path, _| is_read(path));
    if has_same_fault(stage, &mut smaller) { smaller } else { case }
}

fn has_same_fault(stage: &Stage, case: &mut Case) -> bool {
    match case.replay(stage) {
        Ok(Some(finding)) if case.is_same_kind(&finding) => {
            case.take(finding);
            true
        }
        _ => false,
    }
}
