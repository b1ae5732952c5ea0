//! Records admitted and refused callers in the log, the metrics and the audit log.
//!
//! In: a request and the decision about it. Out: one log line, one metric and one audit record. Every denial of the
//! program passes through [`AccessRecorder`], whether it comes from the HTTP edge, a sign-in, a policy or a governance
//! hook. If a decision cannot be recorded, an error is returned, and the caller of this module responds with this error
//! only. Not here: the decisions themselves, and status codes.

use std::sync::Arc;

use super::AuditBuffer;
use crate::domain::{AuthMethod, RequestContext, Scope, Scopes, Surface};
use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::observer::Observer;
use crate::ports::store::StoreError;

/// The reason of a denial by a policy, a hook or a rule of the project.
pub const POLICY: &str = "policy";
/// The reason of a denial because the caller lacks the required scope.
pub const MISSING_SCOPE: &str = "missing scope";

/// The latest time at which a record must be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The record is written before the caller gets the answer. A record of an anonymous caller is written with the
    /// next batch instead, so that anonymous requests cannot cause one write each.
    BeforeAnswer,
    /// The record is written with the next batch.
    NextBatch,
}

/// The reason why the caller may not perform an operation.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ScopeError {
    #[error("scope `{}` is required", scope.as_str())]
    Missing { scope: Scope },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Records denials and authentications.
pub struct AccessRecorder {
    audit_buffer: Option<Arc<AuditBuffer>>,
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
}

impl AccessRecorder {
    pub fn new(audit_buffer: Arc<AuditBuffer>, observer: Arc<dyn Observer>, clock: Arc<dyn Clock>) -> Self {
        AccessRecorder { audit_buffer: Some(audit_buffer), observer, clock }
    }

    /// Returns a recorder for a command that opens no audit log. All its requests come from this process and are made
    /// by the operator of this machine. A decision about any other request fails, because it cannot be recorded.
    pub fn for_operator(observer: Arc<dyn Observer>, clock: Arc<dyn Clock>) -> Self {
        AccessRecorder { audit_buffer: None, observer, clock }
    }

    /// Records that a request was denied. If the caller is identified, the record is on disk when this returns.
    ///
    /// # Errors
    /// The audit log does not take the record.
    pub async fn denied(&self, request: &RequestContext, reason: &'static str) -> Result<(), StoreError> {
        self.report_denial(request, reason);
        let target = &request.target;
        let entry = AuditEntry {
            reason: Some(reason.into()),
            ..self.entry("access_denied", request, format!("{} {}", target.action, target.pattern))
        };
        self.record(request, entry, Durability::BeforeAnswer).await
    }

    /// Checks that the caller of a request holds a scope. If not, the denial is recorded before the error is returned.
    ///
    /// # Errors
    /// The scope is missing, or the denial could not be recorded.
    pub async fn require(&self, request: &RequestContext, scope: Scope) -> Result<(), ScopeError> {
        if request.scopes.hold(scope) {
            return Ok(());
        }
        self.denied(request, MISSING_SCOPE).await?;
        Err(ScopeError::Missing { scope })
    }

    /// Records that a credential was accepted. `credential` is the id of the key or session.
    ///
    /// # Errors
    /// The audit log does not take the record.
    pub async fn authenticated(&self, request: &RequestContext, credential: &str) -> Result<(), StoreError> {
        let method = request.caller.auth_method.as_str();
        self.report_authentication(request, &request.caller.user_id, method, request.scopes);
        let entry = self.entry("authentication_success", request, credential.to_owned());
        self.record(request, entry, Durability::NextBatch).await
    }

    /// Writes a denial to the log and the metrics, for code that writes its own audit record.
    pub(crate) fn report_denial(&self, request: &RequestContext, reason: &'static str) {
        self.observer.access_denied(reason);
        tracing::warn!(
            event = "access_denied",
            user_id = &*request.caller.user_id,
            resource = &*request.target.resource,
            action = request.target.action,
            reason,
            required_permission = request.target.required.map_or("identified", |scope| scope.as_str()),
        );
    }

    /// Writes an authentication to the log and the metrics, for code that writes its own audit record.
    pub(crate) fn report_authentication(
        &self,
        request: &RequestContext,
        user_id: &str,
        method: &'static str,
        scopes: Scopes,
    ) {
        self.observer.authenticated(method);
        tracing::info!(
            event = "authentication_success",
            user_id,
            auth_method = method,
            client_ip = request.client.map(tracing::field::display),
            permissions = scopes.names().join(","),
        );
    }

    /// Returns an audit record of an event that happens now, without reason and details.
    pub(crate) fn entry(&self, event: &'static str, request: &RequestContext, resource: String) -> AuditEntry {
        AuditEntry {
            at: self.clock.now(),
            event: event.into(),
            actor: request.caller.user_id.clone(),
            auth_method: request.caller.auth_method.as_str().into(),
            client_ip: request.client.map(|client| client.to_string().into()),
            correlation_id: request.logged_correlation_id(),
            resource: resource.into(),
            count: 1,
            ..AuditEntry::default()
        }
    }

    /// Writes an audit record about a request.
    ///
    /// # Errors
    /// The audit log does not take the record, or no audit log is open and the request comes from outside this process.
    pub(crate) async fn record(
        &self,
        request: &RequestContext,
        entry: AuditEntry,
        durability: Durability,
    ) -> Result<(), StoreError> {
        match &self.audit_buffer {
            Some(audit_buffer)
                if durability == Durability::BeforeAnswer && request.caller.auth_method != AuthMethod::Anonymous =>
            {
                audit_buffer.note_durably(entry).await
            }
            Some(audit_buffer) => audit_buffer.note(entry).await,
            None if request.surface == Surface::Internal => Ok(()),
            None => Err(StoreError { message: "no audit log is open".to_owned() }),
        }
    }
}

#[cfg(test)]
mod tests;
