//! Starts a server to attack: the example project with a reader, an administrator and a user. Anonymous callers may
//! read, as in the example.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};

use super::hostile::Credentials;
use crate::{FLIGHTS, Program, Server, path, request_as};

const SECRET: &str = "0123456789abcdef0123456789abcdef";
const PASSWORD: &str = "correct horse battery staple";

/// Starts the server. Its state database is in `folder`.
///
/// # Errors
/// A file cannot be created, or the server cannot be started.
pub fn start(binary: &str, folder: &Path, variables: &[(&str, &str)]) -> Result<(Server, Credentials)> {
    let state = format!("sqlite://{}", folder.join("state.db").display());
    let program = |call: &[&str]| Program::new(binary, call, &path(FLIGHTS)).variable("SERVICE_STATE__URL", &state);
    let key = |name: &str, scopes: &str| -> Result<String> {
        let made = program(&["auth", "create-key"]).arguments(&["--name", name, "--scopes", scopes, "--json"]).run()?;
        let made: Json = serde_json::from_str(&made.stdout).with_context(|| made.stderr.clone())?;
        Ok(made["key"].as_str().context("no key")?.to_owned())
    };
    let (reader, admin) = (key("reader", "read")?, key("admin", "read,write,admin")?);
    program(&["auth", "create-user", "ada"]).arguments(&["--password-stdin"]).input(PASSWORD).run()?;
    // The sign-in of the user below needs a secret for tokens.
    let mut serve = program(&["serve"]).arguments(&["--port", "0"]).variable("SERVICE_SECURITY__JWT_SECRET", SECRET);
    for (name, value) in variables {
        serve = serve.variable(name, value);
    }
    let server = serve.variable("SERVICE_LOG_REQUESTS", "false").variable("SERVICE_LOG_QUERIES", "false").serve()?;
    let body = json!({"username": "ada", "password": PASSWORD}).to_string();
    let pair = request_as(server.address, None, "POST", "/api/v1/auth/token", Some(&body))?.json()?;
    let token = pair["access_token"].as_str().context("no token")?.to_owned();
    Ok((server, Credentials { reader, admin, token }))
}
