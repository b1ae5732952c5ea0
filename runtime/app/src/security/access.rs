//! Records admitted and refused callers in the log, the metrics and the audit log.
//!
//! In: a request and the decision about it. Out: one log line, one metric and one audit record. Every
//! denial of the program passes through [`AccessRecorder`]: those of the HTTP edge, of sign-ins, of
//! policies and of governance hooks. A decision that cannot be recorded is an error, and its caller
//! answers nothing else. Absent: the decisions themselves, and status codes.

use std::sync::Arc;

use super::AuditBuffer;
use crate::domain::{AuthMethod, RequestContext, Scope, Scopes, Surface};
use crate::ports::audit::AuditEntry;
use crate::ports::clock::Clock;
use crate::ports::observer::Observer;
use crate::ports::store::StoreError;

/// Denial of a request by a policy, a hook or a rule of the project.
pub const POLICY: &str = "policy";
/// Denial of a request whose caller lacks the scope that it requires.
pub const MISSING_SCOPE: &str = "missing scope";

/// The point in time at which a record has to be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Written before the caller gets the answer. Records of anonymous callers are written with the next batch instead,
    /// so that anonymous requests cannot cause one write each.
    BeforeAnswer,
    /// Written with the next batch.
    NextBatch,
}

/// An operation that the caller may not do.
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

    /// Returns a recorder for a command that opens no audit log. It serves requests of this process only,
    /// which the operator of this machine makes: a decision about any other request fails, since it cannot
    /// be recorded.
    pub fn for_operator(observer: Arc<dyn Observer>, clock: Arc<dyn Clock>) -> Self {
        AccessRecorder { audit_buffer: None, observer, clock }
    }

    /// Records that a request was denied. The record of an identified caller is on disk when this returns.
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

    /// Checks that the caller of a request holds the scope that its operation requires. A denial is recorded first.
    ///
    /// # Errors
    /// The scope is missing, or its denial cannot be recorded.
    pub async fn require(&self, request: &RequestContext, scope: Scope) -> Result<(), ScopeError> {
        if request.scopes.hold(scope) {
            return Ok(());
        }
        self.denied(request, MISSING_SCOPE).await?;
        Err(ScopeError::Missing { scope })
    }

    /// Records that a credential was accepted; `credential` is the id of the key or session.
    ///
    /// # Errors
    /// The audit log does not take the record.
    pub async fn authenticated(&self, request: &RequestContext, credential: &str) -> Result<(), StoreError> {
        let method = request.caller.auth_method.as_str();
        self.report_authentication(request, &request.caller.user_id, method, request.scopes);
        let entry = self.entry("authentication_success", request, credential.to_owned());
        self.record(request, entry, Durability::NextBatch).await
    }

    /// Reports a denial to the log and the metrics, for a caller that writes its own audit record.
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

    /// Reports an authentication to the log and the metrics, for a caller that writes its own audit record.
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

    /// Returns an audit record of something that happens now, without reason and details.
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
    /// The audit log does not take the record, or there is none and the request came from outside of this process.
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
