//! The facts of a request that every call of a detector or check gets, and the fault of such a call.
//!
//! In: the request. Out: plain facts, and a fault with its component. Not here: the calls (`detectors`, `checks`).

use std::sync::Arc;

use super::plugins::PluginFault;

/// Facts that a component cannot find out by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFacts {
    pub now_unix_ms: i64,
    /// The IANA name of the time zone.
    pub time_zone: Arc<str>,
    pub correlation_id: Arc<str>,
    /// The tenant whose memo a component reads. All callers without a tenant share one memo.
    pub tenant: Option<Arc<str>>,
}

/// A component that failed. If a call exceeded a limit, the fault names the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("component `{component}` {fault}")]
pub struct ComponentFault {
    pub component: Arc<str>,
    pub fault: PluginFault,
}
