//! The location of the state database.
//!
//! In: `state.url` and the project's folder. Out: a file or a PostgreSQL URL. Not here: connecting (`open`).

use std::path::{Path, PathBuf};

use sqlx::postgres::PgConnectOptions;

/// The reason why the URL in `state.url` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateUrlError {
    #[error(
        "`state.url` is `{url}`: write `sqlite://path/to/state.db` (a relative path starts at the project folder) or \
         `postgres://user:password@host:5432/database`"
    )]
    Scheme { url: String },
    #[error("`state.url` names no file")]
    Empty,
    /// The message omits the URL, which may contain a password.
    #[error("`state.url` is not a URL of a PostgreSQL server: {message}")]
    Postgres { message: String },
}

/// The file or server that `state.url` names.
#[derive(Debug, Clone)]
pub(crate) enum Location {
    File(PathBuf),
    Server(Box<PgConnectOptions>),
}

impl Location {
    /// Parses a URL. The path of a relative file begins at the project's folder.
    pub(crate) fn of(url: &str, project: &Path) -> Result<Self, StateUrlError> {
        if ["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            let options = url.parse::<PgConnectOptions>();
            let options = options.map_err(|error| StateUrlError::Postgres { message: error.to_string() })?;
            return Ok(Location::Server(Box::new(options.application_name("terrane"))));
        }
        let Some(rest) = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) else {
            return Err(StateUrlError::Scheme { url: without_password(url) });
        };
        match rest.split('?').next().unwrap_or_default() {
            "" => Err(StateUrlError::Empty),
            path => Ok(Location::File(project.join(path))),
        }
    }

    /// Returns the location for messages: a file, or a host and its database.
    pub(crate) fn shown(&self) -> String {
        match self {
            Location::File(file) => file.display().to_string(),
            Location::Server(options) => {
                let database = options.get_database().unwrap_or_else(|| options.get_username());
                format!("postgres://{}:{}/{database}", options.get_host(), options.get_port())
            }
        }
    }
}

/// Returns a URL without the user and the password.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://***@{host}"),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn shown(url: &str) -> String {
        Location::of(url, Path::new("/srv/flights")).unwrap().shown()
    }

    #[test]
    fn relative_files_are_below_the_project() {
        assert_eq!(shown("sqlite://.terrane/state.db"), "/srv/flights/.terrane/state.db");
        assert_eq!(shown("sqlite:///var/state.db"), "/var/state.db");
    }

    #[test]
    fn server_is_shown_without_its_password() {
        assert_eq!(shown("postgres://me:secret@db:5433/x?sslmode=require"), "postgres://db:5433/x");
        assert_eq!(shown("postgresql://me@db"), "postgres://db:5432/me");
    }

    #[test]
    fn unsupported_url_is_rejected_without_its_password() {
        let refused = |url| Location::of(url, Path::new("/")).unwrap_err();
        assert!(refused("mysql://me:secret@db/x").to_string().contains("mysql://***@db/x"));
        assert_eq!(refused("sqlite://"), StateUrlError::Empty);
        for url in ["postgres://me:secret@db:port/x", "postgres://me:secret@db/x?sslmode=maybe"] {
            let message = refused(url).to_string();
            assert!(message.contains("`state.url`") && !message.contains("secret"), "{message}");
        }
    }
}
