//! Asks governance hooks whether an artifact may take a step or be changed.
//!
//! In: the caller and the intended change. Out: the findings of all hooks, and whether the change is allowed. If a
//! required hook does not answer, the change is not allowed. Every change of a governed artifact calls this module. Not
//! here: writing the change.

use std::sync::Arc;

use jiff::tz::TimeZone;

use crate::ports::clock::Clock;
use crate::ports::governance::{
    Artifact, GateFinding, Governance, HookRequest, HookResponse, MetadataChange, Transition,
};
use crate::query::RequestContext;

/// The findings of hooks about one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The findings, in the order of the hooks' ids.
    pub findings: Vec<HookFinding>,
    /// The ids of required hooks that did not respond.
    pub unavailable: Vec<Arc<str>>,
}

/// A finding, with the hook that reported it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFinding {
    pub hook: Arc<str>,
    pub finding: GateFinding,
}

impl Approval {
    /// Returns whether the step may be taken: every hook responded, and no finding is blocking.
    pub fn is_open(&self) -> bool {
        self.unavailable.is_empty() && !self.findings.iter().any(|found| found.finding.is_blocking)
    }
}

/// Asks hooks before artifacts take steps.
pub struct ApprovalService {
    governance: Arc<dyn Governance>,
    clock: Arc<dyn Clock>,
    time_zone: String,
}

impl ApprovalService {
    pub fn new(governance: Arc<dyn Governance>, clock: Arc<dyn Clock>, zone: &TimeZone) -> Self {
        ApprovalService { governance, clock, time_zone: zone_name(zone) }
    }

    /// Returns whether any hook is asked before a change.
    pub(crate) fn has_hooks(&self) -> bool {
        !self.governance.is_silent()
    }

    /// Asks the hooks whether an artifact may take a step of certification.
    pub async fn certify(&self, context: &RequestContext, item: &Artifact, step: Transition, notes: &str) -> Approval {
        approval(self.governance.certify(&self.hook_request(context), item, step, notes).await)
    }

    /// Asks the hooks whether metadata may be written.
    pub async fn change(&self, context: &RequestContext, change: &MetadataChange) -> Approval {
        approval(self.governance.change(&self.hook_request(context), change).await)
    }

    fn hook_request<'a>(&'a self, context: &'a RequestContext) -> HookRequest<'a> {
        HookRequest { context, now: self.clock.now(), time_zone: &self.time_zone }
    }
}

/// Returns the IANA name of a time zone for hooks; `UTC` for a zone without a name.
pub(crate) fn zone_name(zone: &TimeZone) -> String {
    zone.iana_name().unwrap_or("UTC").to_owned()
}

fn approval(said: Vec<HookResponse<Vec<GateFinding>>>) -> Approval {
    let mut approval = Approval { findings: Vec::new(), unavailable: Vec::new() };
    for HookResponse { hook, answer } in said {
        match answer {
            Ok(findings) => {
                // The findings of a monitored hook are shown, but never block.
                let open = |finding: GateFinding| GateFinding {
                    is_blocking: finding.is_blocking && !hook.is_monitored,
                    ..finding
                };
                let own =
                    findings.into_iter().map(|finding| HookFinding { hook: hook.id.clone(), finding: open(finding) });
                approval.findings.extend(own);
            }
            Err(fault) => {
                let enforced = hook.is_required && !hook.is_monitored;
                tracing::error!(event = "policy_fault", hook = &*hook.id, enforced, error_message = %fault);
                approval.unavailable.extend(enforced.then_some(hook.id));
            }
        }
    }
    approval
}
