//! The context of each call: the moment, and the plugin's configuration.

use terrane_app::ports::calls::CallFacts;
use terrane_app::ports::governance::HookRequest;

use crate::bindings::common::CallContext;
use crate::limits::CallLimits;

/// The time, the time zone and the correlation id of a call.
#[derive(Debug, Clone)]
pub(crate) struct Moment {
    now_unix_ms: i64,
    time_zone: String,
    correlation_id: String,
}

impl Moment {
    /// Returns the moment of a call whose answer depends only on the component: it has no real time and no request.
    pub(crate) fn none() -> Moment {
        Moment { now_unix_ms: 0, time_zone: "UTC".to_owned(), correlation_id: String::new() }
    }

    pub(crate) fn of_asking(asking: &HookRequest<'_>) -> Moment {
        Moment {
            now_unix_ms: asking.now.as_millisecond(),
            time_zone: asking.time_zone.to_owned(),
            correlation_id: asking.context.correlation_id.to_string(),
        }
    }

    pub(crate) fn of_call(facts: &CallFacts) -> Moment {
        Moment {
            now_unix_ms: facts.now_unix_ms,
            time_zone: facts.time_zone.to_string(),
            correlation_id: facts.correlation_id.to_string(),
        }
    }

    /// Returns the context for a plugin with this configuration.
    pub(crate) fn context(&self, limits: CallLimits, config_json: &str) -> CallContext {
        CallContext {
            now_unix_ms: self.now_unix_ms,
            time_zone: self.time_zone.clone(),
            correlation_id: self.correlation_id.clone(),
            budget_ms: u32::try_from(limits.time_ms).unwrap_or(u32::MAX),
            config_json: config_json.to_owned(),
            extra: Vec::new(),
        }
    }
}
