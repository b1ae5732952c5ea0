//! The use case of governed metadata: whether an artifact may take a step, or be written.
//!
//! In: who asks, and what is about to happen. Out: the findings of all hooks, and whether the step is open.
//! A required hook that gives no answer closes it. Routes of certification and metadata call this. Not here:
//! writing anything.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::ports::clock::Clock;
use crate::ports::governance::{Artifact, Asking, GateFinding, Governance, MetadataChange, Said, Transition};
use crate::query::RequestContext;

/// What hooks found of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// In the order of the hooks' ids.
    pub findings: Vec<HookFinding>,
    /// Required hooks that gave no answer.
    pub unavailable: Vec<Arc<str>>,
}

/// A finding and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFinding {
    pub hook: Arc<str>,
    pub finding: GateFinding,
}

impl Gate {
    /// The step may be taken.
    pub fn is_open(&self) -> bool {
        self.unavailable.is_empty() && !self.findings.iter().any(|found| found.finding.is_blocking)
    }
}

/// Asks hooks before artifacts take steps.
pub struct Gatekeeper {
    governance: Arc<dyn Governance>,
    clock: Arc<dyn Clock>,
    time_zone: String,
}

impl Gatekeeper {
    pub fn new(governance: Arc<dyn Governance>, clock: Arc<dyn Clock>, zone: &TimeZone) -> Self {
        Gatekeeper { governance, clock, time_zone: zone_name(zone) }
    }

    /// Whether anybody is asked.
    pub(crate) fn has_hooks(&self) -> bool {
        !self.governance.is_silent()
    }

    /// Whether an artifact may take a step of certification.
    pub async fn certify(&self, context: &RequestContext, item: &Artifact, step: Transition, notes: &str) -> Gate {
        gate(self.governance.certify(&self.asking(context), item, step, notes).await)
    }

    /// Whether metadata may be written.
    pub async fn change(&self, context: &RequestContext, change: &MetadataChange) -> Gate {
        gate(self.governance.change(&self.asking(context), change).await)
    }

    fn asking<'a>(&'a self, context: &'a RequestContext) -> Asking<'a> {
        Asking { context, now: self.clock.now(), time_zone: &self.time_zone }
    }
}

/// The name that hooks are told.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().unwrap_or("UTC").to_owned()
}

fn gate(said: Vec<Said<Vec<GateFinding>>>) -> Gate {
    let mut gate = Gate { findings: Vec::new(), unavailable: Vec::new() };
    for Said { hook, answer } in said {
        match answer {
            Ok(findings) => {
                // What a monitored hook finds is shown, and closes nothing.
                let open = |finding: GateFinding| GateFinding {
                    is_blocking: finding.is_blocking && !hook.is_monitored,
                    ..finding
                };
                let own =
                    findings.into_iter().map(|finding| HookFinding { hook: hook.id.clone(), finding: open(finding) });
                gate.findings.extend(own);
            }
            Err(fault) => {
                let enforced = hook.is_required && !hook.is_monitored;
                tracing::error!(event = "policy_fault", hook = &*hook.id, enforced, error_message = %fault);
                gate.unavailable.extend(enforced.then_some(hook.id));
            }
        }
    }
    gate
}
