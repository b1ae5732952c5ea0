//! Converts errors of wasmtime to faults, which name the cause and the side that is responsible: guest or host.

use terrane_app::ports::plugins::{Limit, PluginFault};
use wasmtime::{PoolConcurrencyLimitError, Trap};

use crate::limits::LimitReached;
use crate::log::plain;

/// The largest length of a message that a fault repeats from a guest or an engine.
const MAX_MESSAGE_CHARS: usize = 300;

/// Returns the fault of a call without an answer.
pub(crate) fn call_fault(call: &'static str, error: &wasmtime::Error) -> PluginFault {
    if let Some(LimitReached(limit)) = error.downcast_ref::<LimitReached>() {
        return PluginFault::Limit { call, limit: *limit };
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return PluginFault::Host { message: "too many guests are running at once".to_owned() };
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => PluginFault::Limit { call, limit: Limit::Fuel },
        Some(Trap::Interrupt) => PluginFault::Limit { call, limit: Limit::Time },
        Some(Trap::StackOverflow) => PluginFault::Limit { call, limit: Limit::Stack },
        Some(trap) => PluginFault::Trapped { call, message: trap.to_string() },
        None => {
            let message = shortened(&error.root_cause().to_string());
            // wasmtime has no error types for these limits. The tests of hostile guests fail if its messages change.
            if message.contains("fuel allocated for hostcalls") {
                PluginFault::Limit { call, limit: Limit::Transfer }
            } else if message.contains("resource limit exceeded") {
                PluginFault::Limit { call, limit: Limit::Instances }
            } else {
                PluginFault::Answer { call, message }
            }
        }
    }
}

/// Returns a message from outside this program as one printable line of bounded length.
pub(crate) fn shortened(message: &str) -> String {
    let message = plain(&message.replace('\n', " "));
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}
