//! The one step at which governance hooks speak of a query, before any of its statements is compiled.
//!
//! In: a query and who asks. Out: a [`Judged`]: the caller's [`Authorized`] for all statements of this query,
//! or a refusal. Deny beats everything; a required hook that gives no answer that can be used is a refusal
//! too, whatever the others say. What happened is in the log, and in the audit log where there is one. Not
//! here: how hooks are run (`ports::governance`), what obligations do to SQL (`terrane_compiler::governance`).

use std::sync::Arc;

use terrane_compiler::Authorized;
use terrane_compiler::Environment;
use terrane_compiler::governance::{Checked, Inspection, inspect};
use terrane_compiler::query::SemanticQuery;

use super::tally::Tally;
use super::{QueryService, RequestContext, RunError};
use crate::catalog::Snapshot;
use crate::ports::audit::AuditEntry;
use crate::ports::governance::{Asking, Decision, Denial, Hook, Permit, Said};
use crate::security::AuthMethod;

/// A hook said no.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Denied {
    /// The hook's own code, for programs.
    pub reason: Arc<str>,
    /// For the caller.
    pub message: Arc<str>,
}

/// One judgement, for every statement of the query.
pub(super) struct Judged<'m> {
    pub(super) authorized: Authorized<'m>,
    /// Of hooks, for the caller.
    pub(super) warnings: Vec<String>,
}

/// What the hooks' answers come to.
#[derive(Default)]
struct Verdict {
    obligations: Vec<(Arc<str>, Checked)>,
    warnings: Vec<String>,
    /// The first hook that wants queries to begin at some time.
    wants_time_filter: Option<Hook>,
    denial: Option<(Hook, Denial)>,
    /// The first required hook without an answer, and what became of it.
    fault: Option<(Hook, String)>,
    audit: Vec<(Hook, Vec<(String, String)>)>,
}

impl QueryService {
    pub(super) async fn judge<'m>(
        &self,
        snapshot: &'m Snapshot,
        context: &'m RequestContext,
        query: &SemanticQuery,
        environment: &Environment,
        tally: &Tally,
    ) -> Result<Judged<'m>, RunError> {
        if self.governance.is_silent() {
            let authorized = Authorized::without_hooks(&snapshot.model, &context.caller);
            return Ok(Judged { authorized, warnings: Vec::new() });
        }
        let inspection = inspect(&snapshot.model, query, &context.caller, environment)?;
        let asking = Asking { context, now: environment.now, time_zone: &self.time_zone };
        let said = self.governance.judge(&asking, &Arc::new(inspection.facts().clone())).await;
        let verdict = verdict(&inspection, said, tally, &|hook, fault| self.governance.blame(&asking, hook, fault));
        self.refusal(context, &verdict, &inspection, tally).await?;
        Ok(Judged { authorized: inspection.authorize(verdict.obligations), warnings: verdict.warnings })
    }

    /// Tells the audit log, then the caller.
    async fn refusal(
        &self,
        context: &RequestContext,
        verdict: &Verdict,
        inspection: &Inspection<'_>,
        tally: &Tally,
    ) -> Result<(), RunError> {
        if let Some((hook, denial)) = &verdict.denial {
            let facts = [("code", &*denial.code), ("audit_reason", &*denial.audit_reason)];
            self.note(context, "policy_denied", hook, &denial.code, &facts, tally).await?;
            return Err(Denied { reason: denial.code.clone(), message: denial.public_message.clone() }.into());
        }
        if let Some((hook, fault)) = &verdict.fault {
            self.note(context, "policy_unavailable", hook, "policy_unavailable", &[("fault", fault)], tally).await?;
            return Err(RunError::PolicyUnavailable);
        }
        for (hook, entries) in &verdict.audit {
            let facts: Vec<(&str, &str)> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
            self.note(context, "policy_audit", hook, "audit", &facts, tally).await?;
        }
        let open = &inspection.facts().without_time_bound;
        if let Some(hook) = verdict.wants_time_filter.as_ref().filter(|_| !open.is_empty()) {
            const REASON: &str = "time_filter_required";
            let message = format!(
                "a policy wants queries to begin at some time: add a `time_range` or a filter that gives a time of `{}` a start",
                open.join("`, `")
            );
            self.note(context, "policy_denied", hook, REASON, &[("code", REASON)], tally).await?;
            return Err(Denied { reason: REASON.into(), message: message.into() }.into());
        }
        Ok(())
    }

    /// Writes what a hook did to the log, and to the audit log. What was denied to somebody proven is on disk
    /// before they learn of it.
    async fn note(
        &self,
        context: &RequestContext,
        event: &'static str,
        hook: &Hook,
        reason: &str,
        facts: &[(&str, &str)],
        tally: &Tally,
    ) -> Result<(), RunError> {
        let facts: serde_json::Map<String, serde_json::Value> =
            facts.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
        let facts = serde_json::Value::Object(facts).to_string();
        match event {
            "policy_denied" => {
                tracing::warn!(event = "policy_denied", hook = &*hook.id, cube = &*tally.cube, reason, facts)
            }
            "policy_unavailable" => {
                tracing::error!(event = "policy_unavailable", hook = &*hook.id, cube = &*tally.cube, reason, facts);
            }
            _ => tracing::info!(event = "policy_audit", hook = &*hook.id, cube = &*tally.cube, reason, facts),
        }
        let Some(journal) = self.journal.get() else { return Ok(()) };
        let entry = AuditEntry {
            at: self.clock.now(),
            event: event.into(),
            actor: context.caller.user_id.clone(),
            auth_method: context.caller.auth_method.as_str().into(),
            client_ip: context.client.map(|client| client.to_string().into()),
            correlation_id: Some(context.correlation_id.clone()),
            resource: format!("plugin:{}", hook.id).into(),
            reason: Some(reason.into()),
            after: Some(facts.into()),
            count: 1,
            ..AuditEntry::default()
        };
        let is_durable = event != "policy_audit" && context.caller.auth_method != AuthMethod::Anonymous;
        let noted = if is_durable { journal.note_durably(entry).await } else { journal.note(entry).await };
        noted.map_err(|error| {
            tracing::error!(event = "state_unavailable", error_message = %error);
            // What can't be written down is not told either.
            RunError::PolicyUnavailable
        })
    }
}

/// `blame` is told of hooks whose obligations can't be met.
fn verdict(
    inspection: &Inspection<'_>,
    said: Vec<Said<Decision>>,
    tally: &Tally,
    blame: &(dyn Fn(&Hook, &str) + Send + Sync),
) -> Verdict {
    let mut verdict = Verdict::default();
    for Said { hook, answer } in said {
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
            tell_monitored(&hook, &checked, tally);
            continue;
        }
        match checked {
            Ok(None) => {}
            Ok(Some(Err(denial))) => verdict.denial = verdict.denial.or(Some((hook, denial))),
            Ok(Some(Ok((permit, checked)))) => verdict.permitted(hook, permit, checked),
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
    fn permitted(&mut self, hook: Hook, permit: Permit, checked: Checked) {
        if permit.obligations.require_time_filter {
            self.wants_time_filter.get_or_insert_with(|| hook.clone());
        }
        self.obligations.push((hook.id.clone(), checked));
        self.warnings.extend(permit.warnings);
        if !permit.audit.is_empty() {
            self.audit.push((hook, permit.audit));
        }
    }
}

type CheckedAnswer = Result<Option<Result<(Permit, Checked), Denial>>, String>;

/// What would have come of it.
fn tell_monitored(hook: &Hook, checked: &CheckedAnswer, tally: &Tally) {
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
    tracing::info!(event = "policy_monitored", hook = &*hook.id, cube = &*tally.cube, decision, detail);
}
