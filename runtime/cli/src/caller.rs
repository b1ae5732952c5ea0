//! The caller that `--as` names, to rehearse policies as somebody else.
//!
//! In: a JSON file like a token's claims. Out: the context of a request. Without a file the caller is
//! nobody: no roles, no groups, no attributes.

use std::path::Path;

use serde_json::Value as Json;
use terrane_app::query::RequestContext;
use terrane_app::security::{AuthMethod, Scopes, caller_json};
use terrane_compiler::SecurityContext;

use crate::failure::Failure;

/// Reads the file.
///
/// # Errors
/// It can't be read, or something in it isn't what a caller is made of.
pub fn read(path: Option<&Path>) -> Result<RequestContext, Failure> {
    let Some(path) = path else { return Ok(operator()) };
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{name} can't be read: {error}")).hint("check the path after --as"))?;
    let json: Json = serde_json::from_str(&text).map_err(|error| Failure::new(format!("{name}: {error}")))?;
    let caller = caller_json::from_json(&json).map_err(|message| {
        let hint = "write {\"user_id\": \"u1\", \"roles\": [\"manager\"], \"attributes\": {\"regions\": [\"EU\"]}}";
        Failure::new(format!("{name}: {message}")).hint(hint)
    })?;
    Ok(asking(caller))
}

/// The operator without roles or attributes.
pub fn operator() -> RequestContext {
    asking(SecurityContext::default())
}

/// The operator, who sees to the server from its own machine, in the place of somebody else.
fn asking(caller: SecurityContext) -> RequestContext {
    RequestContext { caller, auth_method: AuthMethod::Operator, scopes: Scopes::READ, ..RequestContext::default() }
}
