//! The environment, read once: what settings it holds, and `${VAR}` in the values of files.
//!
//! In: the process's variables. Out: an [`Environment`] that is handed on; nothing else of the runtime
//! reads a variable. Not here: which settings there are (`sections`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use terrane_compiler::diagnostic::{Code, Diagnostic};

/// The variables as they were at the start.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

/// All variables that set something begin so.
pub(super) const PREFIX: &str = "SERVICE_";

/// What project files see through `env_var`: a name has to say that it is meant for them.
const FOR_PROJECTS: &str = "TERRANE_VAR_";

impl Environment {
    /// The variables of this process. One whose name or value is no UTF-8 is as good as unset.
    pub fn of_process() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the one place where the environment is read")]
        let variables = std::env::vars_os();
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// What Jinja's `env_var` may see: variables that begin with `TERRANE_VAR_`, so that a project
    /// can't read the secrets of the process.
    pub fn for_projects(&self) -> BTreeMap<String, String> {
        let shown = self.variables.iter().filter(|(name, _)| name.starts_with(FOR_PROJECTS));
        shown.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Where this user's programs keep what they can make again: of systemd, else of the XDG base
    /// directories. Not a setting, because a project must not choose it.
    pub(super) fn cache_folder(&self) -> Option<PathBuf> {
        let absolute = |name: &str| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let of_user = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        absolute("CACHE_DIRECTORY").or_else(|| Some(of_user()?.join("terrane")))
    }

    /// The names of variables that look like settings.
    pub(super) fn settings(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str).filter(|name| name.starts_with(PREFIX))
    }

    /// A text with every `${VAR}` replaced; `$${` stands for `${` itself.
    ///
    /// # Errors
    /// The first variable that isn't set, or a `${` that isn't closed.
    pub(super) fn expand(&self, text: &str) -> Result<String, ExpandError> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            expanded.push_str(&rest[..at]);
            let tail = &rest[at + 1..];
            if let Some(after) = tail.strip_prefix("${") {
                expanded.push_str("${");
                rest = after;
            } else if let Some(inner) = tail.strip_prefix('{') {
                let end = inner.find('}').ok_or(ExpandError::Unclosed)?;
                let name = inner[..end].trim();
                let value = self.get(name).ok_or_else(|| ExpandError::Unset { name: name.to_owned() })?;
                expanded.push_str(value);
                rest = &inner[end + 1..];
            } else {
                expanded.push('$');
                rest = tail;
            }
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}

impl FromIterator<(String, String)> for Environment {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(variables: T) -> Self {
        Environment { variables: variables.into_iter().collect() }
    }
}

/// Why a value of a file can't be completed from the environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExpandError {
    Unset { name: String },
    Unclosed,
}

impl ExpandError {
    /// What is missing in the value of a key.
    pub(super) fn explain(&self, key: &str) -> Diagnostic {
        match self {
            ExpandError::Unset { name } => {
                Diagnostic::error(Code::MissingVariable, format!("environment variable {name} is not set"))
                    .hint(format!("set {name}, or write the value of {key} into the file"))
            }
            ExpandError::Unclosed => Diagnostic::error(Code::MissingVariable, format!("`${{` in {key} has no `}}`"))
                .hint("write ${NAME}, or $${ where the characters themselves are meant"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced_and_missing_ones_named() {
        let environment: Environment = [("USER_NAME".to_owned(), "ann$e".to_owned())].into_iter().collect();
        assert_eq!(environment.expand("pg://${USER_NAME}@h"), Ok("pg://ann$e@h".to_owned()));
        assert_eq!(environment.expand("a $1 $${x} ${ USER_NAME }$"), Ok("a $1 ${x} ann$e$".to_owned()));
        assert_eq!(environment.expand("${GONE}"), Err(ExpandError::Unset { name: "GONE".to_owned() }));
        assert_eq!(environment.expand("${GONE"), Err(ExpandError::Unclosed));
    }

    #[test]
    fn projects_see_only_what_is_meant_for_them() {
        let variables = [("PGPASSWORD", "x"), ("TERRANE_VAR_YEAR", "2013")];
        let environment: Environment =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(environment.for_projects().into_keys().collect::<Vec<_>>(), ["TERRANE_VAR_YEAR"]);
    }
}
