//! Changes that an administrator makes to a plugin while the server runs, and their audit records.
//!
//! In: the id of a plugin, and the caller. Out: the state of the plugin after the change. A change is acknowledged only
//! after its audit record is on disk. A refused reload has an audit record too. Not here: the effects of a change (the
//! port's adapter).

use std::sync::Arc;

use tracing::Instrument as _;

use crate::domain::RequestContext;
use crate::ports::audit::{AuditEntry, AuditLog, Details};
use crate::ports::plugins::{ChangeError, PluginStatus, Plugins};
use crate::ports::store::StoreError;
use crate::security::AccessRecorder;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Reload,
    Disable,
    Enable,
}

/// The reason why a change is not acknowledged.
#[derive(Debug, Clone)]
pub enum Failure {
    Change(ChangeError),
    /// The audit record could not be written.
    Store(StoreError),
    /// The change was interrupted, for example by a panic.
    Broken,
}

impl Change {
    /// Makes the change on a blocking thread, and writes its audit record. Both happen even if the caller stops
    /// waiting.
    ///
    /// # Errors
    /// The change was refused, or its audit record could not be written.
    pub async fn make(
        self,
        plugins: &Arc<dyn Plugins>,
        audit: &Arc<dyn AuditLog>,
        access: &AccessRecorder,
        name: &str,
        request: &RequestContext,
    ) -> Result<PluginStatus, Failure> {
        let (plugins, audit) = (Arc::clone(plugins), Arc::clone(audit));
        let record = access.entry(self.event(), request, format!("plugin:{name}"));
        let name = name.to_owned();
        let recorded = async move { self.make_recorded(plugins, &*audit, name, record).await };
        let recorded = tokio::spawn(recorded.in_current_span());
        recorded.await.map_err(|_| Failure::Broken)?
    }

    async fn make_recorded(
        self,
        plugins: Arc<dyn Plugins>,
        audit: &dyn AuditLog,
        name: String,
        mut record: AuditEntry,
    ) -> Result<PluginStatus, Failure> {
        let span = tracing::Span::current();
        let changed = tokio::task::spawn_blocking(move || {
            span.in_scope(|| match self {
                Change::Reload => plugins.reload(&name),
                Change::Disable => plugins.disable(&name),
                Change::Enable => plugins.enable(&name),
            })
        });
        let changed = changed.await.map_err(|_| Failure::Broken)?;
        let (event, reason, after) = match (&changed, self) {
            (Ok(status), _) => (self.event(), None, Some(after(status))),
            (Err(error @ ChangeError::Refused { .. }), _) => ("plugin_reload_refused", Some(error.to_string()), None),
            (Err(error), _) => return Err(Failure::Change(error.clone())),
        };
        record.event = event.into();
        record.reason = reason.map(Into::into);
        record.after = after;
        audit.append(vec![record]).await.map_err(Failure::Store)?;
        changed.map_err(Failure::Change)
    }

    fn event(self) -> &'static str {
        match self {
            Change::Reload => "plugin_reloaded",
            Change::Disable => "plugin_disabled",
            Change::Enable => "plugin_enabled",
        }
    }
}

fn after(status: &PluginStatus) -> Details {
    Details::fields([
        ("state", status.state.as_str().into()),
        ("version", status.version.as_deref().into()),
        ("sha256", status.digest.as_deref().into()),
    ])
}
