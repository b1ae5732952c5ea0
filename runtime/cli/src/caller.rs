//! Reads the caller of `--as`, to try policies as another caller.
//!
//! In: a JSON file with claims like those of a token. Out: the context of a request. Without a file the caller has no
//! roles, no groups and no attributes. A caller whose file has no `auth_method` is the operator.

use std::path::Path;

use serde_json::Value as Json;
use terrane_app::query::RequestContext;
use terrane_compiler::SecurityContext;
use terrane_wire::caller::request_of;

use crate::failure::Failure;

/// Reads the file.
///
/// # Errors
/// The file cannot be read, or does not describe a caller.
pub fn read(path: Option<&Path>) -> Result<RequestContext, Failure> {
    let Some(path) = path else { return Ok(RequestContext::operator(SecurityContext::default())) };
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let argument = path.to_string_lossy();
        let hint = match argument.chars().next() {
            Some('@') => "Write the name of the file after --as, without @.",
            Some('{') => "Write the JSON to a file, and name the file after --as.",
            _ => "Check the path after --as.",
        };
        Failure::new(format!("{name} cannot be read: {error}")).hint(hint)
    })?;
    let json: Json =
        serde_json::from_str(&text).map_err(|error| Failure::new(format!("{name} is not JSON: {error}")))?;
    request_of(&json).map_err(|message| {
        let hint = "Write {\"user_id\": \"u1\", \"roles\": [\"manager\"], \"attributes\": {\"regions\": [\"EU\"]}}";
        Failure::new(format!("{name}: {message}")).hint(hint)
    })
}
