//! The interface `terrane:dialect/dialect`: calls a component for its profile once, and checks it.
//!
//! In: a loaded component. Out: a [`DialectProfile`]. The answer is untrusted until `DialectProfile::check` has passed.
//! Not here: `render`, `parse-explain`, `classify-error` and `map-types`, which nothing calls yet.

mod to_raw;

use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::sql::dialect_profile::DialectProfile;

use crate::bindings::dialect::DialectPlugin;
use crate::limits::CallLimits;
use crate::role::{LinkedComponent, error_text};
use crate::wire::context::Moment;

/// Calls a component for its profile and checks the profile, which depends only on the component and its configuration.
///
/// # Errors
/// Returns the component's fault.
pub(crate) fn profile(
    guest: &LinkedComponent<DialectPlugin>,
    asked: &str,
    config_json: &str,
    limits: CallLimits,
) -> Result<DialectProfile, PluginFault> {
    const CALL: &str = "describe-dialect";
    let context = Moment::none().context(limits, config_json);
    let profile = guest
        .call(CALL, limits, |plugin, store| plugin.terrane_dialect_dialect().call_describe_dialect(store, &context))?
        .map_err(|error| PluginFault::Declined { call: CALL, message: error_text(&error) })?;
    let profile = DialectProfile::check(to_raw::raw_profile(profile)).map_err(PluginFault::Profile)?;
    if profile.name != asked {
        return Err(PluginFault::WrongDialect { asked: asked.to_owned(), found: profile.name });
    }
    Ok(profile)
}
