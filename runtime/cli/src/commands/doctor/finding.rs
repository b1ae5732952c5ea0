//! The findings of checks, as text and JSON.

use serde_json::{Value as Json, json};

use crate::report::{Style, plural};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckStatus {
    Ok,
    Warn,
    Fail,
}

impl CheckStatus {
    fn word(self) -> &'static str {
        match self {
            CheckStatus::Ok => "ok",
            CheckStatus::Warn => "warn",
            CheckStatus::Fail => "fail",
        }
    }
}

#[derive(Debug)]
struct Finding {
    name: &'static str,
    outcome: CheckStatus,
    found: String,
    /// The action that the operator should take; empty if none is needed.
    advice: String,
}

/// Findings in the order of the checks.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn ok(&mut self, name: &'static str, found: impl Into<String>) {
        self.add(name, CheckStatus::Ok, found, "");
    }

    pub(super) fn add(
        &mut self,
        name: &'static str,
        outcome: CheckStatus,
        found: impl Into<String>,
        advice: impl Into<String>,
    ) {
        self.0.push(Finding { name, outcome, found: found.into(), advice: advice.into() });
    }

    pub(super) fn has_failed(&self) -> bool {
        self.0.iter().any(|finding| finding.outcome == CheckStatus::Fail)
    }

    pub(super) fn to_json(&self) -> Json {
        let one = |finding: &Finding| {
            let Finding { name, outcome, found, advice } = finding;
            let advice = Some(advice).filter(|advice| !advice.is_empty());
            json!({"check": name, "outcome": outcome.word(), "found": found, "advice": advice})
        };
        self.0.iter().map(one).collect()
    }

    pub(super) fn draw(&self, style: Style) -> String {
        let mut text = String::new();
        for Finding { name, outcome, found, advice } in &self.0 {
            let colour = match outcome {
                CheckStatus::Ok => "32",
                CheckStatus::Warn => "1;33",
                CheckStatus::Fail => "1;31",
            };
            let word = style.paint(colour, &format!("{:4}", outcome.word()));
            text.push_str(&format!("{word} {name}: {found}\n"));
            if !advice.is_empty() {
                text.push_str(&format!("       {advice}\n"));
            }
        }
        let failed = self.0.iter().filter(|finding| finding.outcome == CheckStatus::Fail).count();
        let warned = self.0.iter().filter(|finding| finding.outcome == CheckStatus::Warn).count();
        let (checks, warnings) = (plural(self.0.len(), "check"), plural(warned, "warning"));
        text.push_str(&format!("{checks}: {failed} failed, {warnings}\n"));
        text
    }
}
