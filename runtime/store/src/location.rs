//! Where the state database is.

use std::path::{Path, PathBuf};

/// The URL of `state.url` can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateUrlError {
    #[error("`state.url` is `{url}`: write `sqlite://path/to/state.db` (a relative path is the project folder's)")]
    Scheme { url: String },
    #[error("`state.url` names no file")]
    Empty,
}

/// The file of a `sqlite://` URL; a relative one is the project's.
pub(crate) fn file_of(url: &str, project: &Path) -> Result<PathBuf, StateUrlError> {
    let Some(rest) = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:")) else {
        return Err(StateUrlError::Scheme { url: without_password(url) });
    };
    let path = rest.split('?').next().unwrap_or_default();
    if path.is_empty() {
        return Err(StateUrlError::Empty);
    }
    Ok(project.join(path))
}

/// Everything between the scheme and the host is hidden.
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

    #[test]
    fn relative_files_are_the_projects() {
        let project = Path::new("/srv/flights");
        assert_eq!(file_of("sqlite://.terrane/state.db", project).unwrap(), project.join(".terrane/state.db"));
        assert_eq!(file_of("sqlite:///var/state.db", project).unwrap(), Path::new("/var/state.db"));
    }

    #[test]
    fn other_databases_are_refused_without_their_password() {
        let error = file_of("postgres://me:secret@db/x", Path::new("/")).unwrap_err();
        assert!(error.to_string().contains("postgres://***@db/x"), "{error}");
        assert_eq!(file_of("sqlite://", Path::new("/")).unwrap_err(), StateUrlError::Empty);
    }
}
