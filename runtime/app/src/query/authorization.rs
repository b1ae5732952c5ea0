//! The only step in which governance hooks decide about a query, before any of its statements is compiled.
//!
//! In: a query and its caller. Out: an [`Authorization`], with the [`Authorized`] for all statements of this query, or
//! a refusal. One denial refuses the query, whatever other hooks respond. A required hook that returns no usable
//! response refuses the query too. Decisions are logged and audited. Not here: running hooks (`ports::governance`), and
//! the effect of obligations on SQL (`terrane_compiler::governance`).

use std::sync::Arc;

use terrane_compiler::Authorized;
use terrane_compiler::governance::{Checked, Inspection, inspect};
use terrane_compiler::query::SemanticQuery;

use super::QueryRunError;
use super::recorder::QueryRecorder;
use super::session::QuerySession;
use crate::ports::audit::{AuditEntry, Details};
use crate::ports::governance::{Decision, Denial, Hook, HookRequest, HookResponse, Permit};
use crate::security::access::Durability;

/// The denial of a query by a governance hook.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denied {
    /// The hook's own code, for use by programs.
    pub reason: Arc<str>,
    /// The hook's message for the caller.
    pub message: Arc<str>,
}

/// The authorization of one query, which all of its statements share.
pub(super) struct Authorization<'m> {
    pub(super) authorized: Authorized<'m>,
    /// Warnings of hooks for the caller.
    pub(super) warnings: Vec<String>,
}

/// The combined decision of all hooks.
#[derive(Default)]
struct Verdict {
    obligations: Vec<(Arc<str>, Checked)>,
    warnings: Vec<String>,
    /// The first hook that requires a lower bound on time.
    time_filter: Option<Hook>,
    denial: Option<(Hook, Denial)>,
    /// The first required hook without a usable response, with its fault.
    fault: Option<(Hook, String)>,
    audit: Vec<(Hook, Vec<(String, String)>)>,
}

impl QuerySession<'_> {
    /// Asks the hooks about a query.
    ///
    /// # Errors
    /// A hook denies the query, a required hook is unavailable, or the query does not resolve.
    pub(super) async fn authorize(
        &self,
        query: &SemanticQuery,
        recorder: &QueryRecorder,
    ) -> Result<Authorization<'_>, QueryRunError> {
        let (service, caller) = (self.service, &self.context.caller);
        if service.governance.is_silent() {
            let authorized = Authorized::without_hooks(&self.snapshot.model, caller);
            return Ok(Authorization { authorized, warnings: Vec::new() });
        }
        let inspection = inspect(&self.snapshot.model, query, caller, &self.environment)?;
        let asking = HookRequest { context: self.context, now: self.environment.now, time_zone: &service.time_zone };
        let said = service.governance.authorize(&asking, &Arc::new(inspection.facts().clone())).await;
        let verdict =
            combine(&inspection, said, recorder, &|hook, fault| service.governance.blame(&asking, hook, fault));
        self.enforce(&verdict, &inspection, recorder).await?;
        Ok(Authorization { authorized: inspection.authorize(verdict.obligations), warnings: verdict.warnings })
    }

    /// Records the decision, and returns an error if the query was denied or a required hook had a fault.
    async fn enforce(
        &self,
        verdict: &Verdict,
        inspection: &Inspection<'_>,
        recorder: &QueryRecorder,
    ) -> Result<(), QueryRunError> {
        if let Some((hook, denial)) = &verdict.denial {
            let facts = [("code", &*denial.code), ("audit_reason", &*denial.audit_reason)];
            self.record_decision("policy_denied", hook, &denial.code, &facts, recorder).await?;
            return Err(Denied { reason: denial.code.clone(), message: denial.public_message.clone() }.into());
        }
        if let Some((hook, fault)) = &verdict.fault {
            let facts = [("fault", &**fault)];
            self.record_decision("policy_unavailable", hook, "policy_unavailable", &facts, recorder).await?;
            return Err(QueryRunError::PolicyUnavailable);
        }
        for (hook, entries) in &verdict.audit {
            let facts: Vec<(&str, &str)> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            self.record_decision("policy_audit", hook, "audit", &facts, recorder).await?;
        }
        let open = &inspection.facts().without_time_bound;
        if let Some(hook) = verdict.time_filter.as_ref().filter(|_| !open.is_empty()) {
            const REASON: &str = "time_filter_required";
            let message = format!(
                "a policy requires a lower bound on time: add a `time_range` or a filter that gives `{}` a start",
                open.join("`, `")
            );
            self.record_decision("policy_denied", hook, REASON, &[("code", REASON)], recorder).await?;
            return Err(Denied { reason: REASON.into(), message: message.into() }.into());
        }
        Ok(())
    }

    /// Records a hook's decision in the log and the audit log. If an identified caller is denied, the record is on disk
    /// before the caller gets the denial.
    async fn record_decision(
        &self,
        event: &'static str,
        hook: &Hook,
        reason: &str,
        facts: &[(&str, &str)],
        recorder: &QueryRecorder,
    ) -> Result<(), QueryRunError> {
        let after = Details::fields(facts.iter().map(|(name, value)| (*name, (*value).into())));
        let facts = facts.iter().map(|(name, value)| format!("{name}={value:?}")).collect::<Vec<_>>().join(" ");
        let durability = match event {
            "policy_denied" => {
                tracing::warn!(event = "policy_denied", hook = &*hook.id, cube = &*recorder.origin.cube, reason, facts);
                Durability::BeforeAnswer
            }
            "policy_unavailable" => {
                tracing::error!(
                    event = "policy_unavailable",
                    hook = &*hook.id,
                    cube = &*recorder.origin.cube,
                    reason,
                    facts
                );
                Durability::BeforeAnswer
            }
            _ => {
                tracing::info!(event = "policy_audit", hook = &*hook.id, cube = &*recorder.origin.cube, reason, facts);
                Durability::NextBatch
            }
        };
        let access = &self.service.access;
        let entry = AuditEntry {
            reason: Some(reason.into()),
            after: Some(after),
            ..access.entry(event, self.context, format!("plugin:{}", hook.id))
        };
        access.record(self.context, entry, durability).await.map_err(|error| {
            tracing::error!(event = "state_unavailable", error_message = %error);
            // A permission that cannot be recorded must not take effect, so the query is refused.
            QueryRunError::PolicyUnavailable
        })
    }
}

/// Combines the responses of all hooks. `blame` is called for each hook whose obligations cannot be applied.
fn combine(
    inspection: &Inspection<'_>,
    said: Vec<HookResponse<Decision>>,
    recorder: &QueryRecorder,
    blame: &(dyn Fn(&Hook, &str) + Send + Sync),
) -> Verdict {
    let mut verdict = Verdict::default();
    for HookResponse { hook, answer } in said {
        let checked = answer.map_err(|fault| fault.message).and_then(|decision| match decision {
            Decision::Abstain => Ok(None),
            Decision::Deny(denial) => Ok(Some(Err(denial))),
            Decision::Permit(permit) => {
                let checked = inspection.check(&permit.obligations).map_err(|fault| fault.to_string());
                let checked = checked.inspect_err(|fault| blame(&hook, fault))?;
                Ok(Some(Ok((permit, checked))))
            }
        });
        if hook.is_monitored {
            log_monitored(&hook, &checked, recorder);
            continue;
        }
        match checked {
            Ok(None) => {}
            Ok(Some(Err(denial))) => verdict.denial = verdict.denial.or(Some((hook, denial))),
            Ok(Some(Ok((permit, checked)))) => verdict.permit(hook, permit, checked),
            Err(message) => {
                let enforced = hook.is_required;
                tracing::error!(event = "policy_fault", hook = &*hook.id, enforced, error_message = &*message);
                if enforced {
                    verdict.fault = verdict.fault.or(Some((hook, message)));
                }
            }
        }
    }
    verdict
}

impl Verdict {
    fn permit(&mut self, hook: Hook, permit: Permit, checked: Checked) {
        if permit.obligations.require_time_filter {
            self.time_filter.get_or_insert_with(|| hook.clone());
        }
        self.obligations.push((hook.id.clone(), checked));
        self.warnings.extend(permit.warnings);
        if !permit.audit.is_empty() {
            self.audit.push((hook, permit.audit));
        }
    }
}

type CheckedResponse = Result<Option<Result<(Permit, Checked), Denial>>, String>;

/// Logs the decision of a monitored hook, which has no effect.
fn log_monitored(hook: &Hook, checked: &CheckedResponse, recorder: &QueryRecorder) {
    let (decision, detail) = match checked {
        Ok(None) => ("abstain", String::new()),
        Ok(Some(Err(denial))) => ("deny", denial.code.to_string()),
        Ok(Some(Ok((permit, _)))) => {
            let Permit { obligations, .. } = permit;
            let (filters, masks) = (obligations.row_filters.len(), obligations.masks.len());
            ("permit", format!("{filters} row filters, {masks} masks"))
        }
        Err(message) => ("fault", message.clone()),
    };
    tracing::info!(event = "policy_monitored", hook = &*hook.id, cube = &*recorder.origin.cube, decision, detail);
}
