//! The calls that a plugin must answer once before it is used, in addition to `describe`.
//!
//! In: a linked component. Out: nothing, or the fault that prevents its use. A dialect's probe is the call for its
//! profile (`dialect`). Checks and hooks have no probe, because their functions need a query.

use std::collections::BTreeSet;

use terrane_app::ports::plugins::PluginFault;

use crate::bindings::detector::DetectorPlugin;
use crate::error::shortened;
use crate::limits::CallLimits;
use crate::role::{LinkedComponent, Role};
use crate::wire::names::is_code;

const MAX_KINDS: usize = 32;

#[allow(clippy::unnecessary_wraps, reason = "one of several probes")]
pub(crate) fn nothing<R: Role>(_: &LinkedComponent<R>, _: CallLimits) -> Result<(), PluginFault> {
    Ok(())
}

/// Checks that a detector has 1 to 32 kinds, and none of them twice.
pub(crate) fn detectors(linked: &LinkedComponent<DetectorPlugin>, limits: CallLimits) -> Result<(), PluginFault> {
    const CALL: &str = "detectors";
    let kinds = linked.call(CALL, limits, |plugin, store| plugin.terrane_anomaly_detector().call_detectors(store))?;
    let answer = |message: String| PluginFault::Answer { call: CALL, message };
    if kinds.is_empty() || kinds.len() > MAX_KINDS {
        return Err(answer(format!("{} kinds, not 1 to {MAX_KINDS}", kinds.len())));
    }
    let mut seen = BTreeSet::new();
    for kind in &kinds {
        if !is_code(&kind.kind) || !seen.insert(&kind.kind) {
            return Err(answer(format!("the kind `{}` is not valid, or a duplicate", shortened(&kind.kind))));
        }
    }
    Ok(())
}
