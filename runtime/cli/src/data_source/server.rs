//! A PostgreSQL database.
//!
//! In: a URL. Out: an open warehouse, and the URL for the project file, without its password.

use std::sync::Arc;
use std::time::Duration;

use terrane_authoring::draft::ViewSelection;
use terrane_authoring::draft::project_file::WarehouseSettings;
use terrane_warehouse::{ServerSettings, postgres};

use super::{CONNECTIONS, OpenSource};
use crate::failure::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The environment variable for the password of the URL.
const PASSWORD: &str = "WAREHOUSE_PASSWORD";

pub(super) async fn open(url: &str) -> Result<OpenSource, Failure> {
    let settings = ServerSettings {
        url: url.to_owned(),
        init: Vec::new(),
        connections: CONNECTIONS,
        connect_timeout: CONNECT_TIMEOUT,
    };
    let warehouse = postgres::connect(&settings).await.map_err(|error| {
        Failure::new(error.to_string()).hint("Check host, port, user, password and database of --from.")
    })?;
    let (shown, has_password) = without_password(url);
    let mut variables = Vec::new();
    if has_password {
        variables.push((PASSWORD, "the password, percent-encoded as in --from".to_owned()));
    }
    let settings = WarehouseSettings { kind: "postgres".to_owned(), url: Some(shown), ..WarehouseSettings::default() };
    Ok(OpenSource {
        warehouse: Arc::new(warehouse),
        settings,
        views: ViewSelection::Named,
        variables,
        notes: Vec::new(),
        copies: Vec::new(),
        state: None,
    })
}

/// Replaces the password of a URL with a variable. Returns the URL and whether it had a password.
fn without_password(url: &str) -> (String, bool) {
    let variable = format!("${{{PASSWORD}}}");
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let mut has_password = false;
    let authority = match authority.rsplit_once('@') {
        Some((person, host)) => match person.split_once(':') {
            Some((user, _)) => {
                has_password = true;
                format!("{}:{variable}@{}", escaped(user), escaped(host))
            }
            None => escaped(authority),
        },
        None => escaped(authority),
    };
    let (path, query) = tail.split_once('?').map_or((tail, None), |(path, query)| (path, Some(query)));
    let mut text = format!("{scheme}://{authority}{}", escaped(path));
    for (index, pair) in query.into_iter().flat_map(|query| query.split('&')).enumerate() {
        text.push(if index == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((key, _)) if key.to_lowercase().contains("password") => {
                has_password = true;
                text.push_str(&format!("{key}={variable}"));
            }
            _ => text.push_str(&escaped(pair)),
        }
    }
    (text, has_password)
}

/// Escapes `${`, which begins a variable in a project file.
fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_replaced_by_a_variable() {
        let cases = [
            ("postgres://me:hid%2Fden@db:5432/shop", "postgres://me:${WAREHOUSE_PASSWORD}@db:5432/shop", true),
            ("postgres://me:h:i@d@db/shop", "postgres://me:${WAREHOUSE_PASSWORD}@db/shop", true),
            (
                "postgresql://db/shop?user=me&password=hidden&sslmode=require",
                "postgresql://db/shop?user=me&password=${WAREHOUSE_PASSWORD}&sslmode=require",
                true,
            ),
            ("postgres://me@db/shop", "postgres://me@db/shop", false),
            ("postgres://me@db/sh${op", "postgres://me@db/sh$${op", false),
        ];
        for (url, shown, has_password) in cases {
            assert_eq!(without_password(url), (shown.to_owned(), has_password), "{url}");
        }
    }
}
