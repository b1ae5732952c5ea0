//! Reads the environment once, for settings and for `${VAR}` in the values of files.
//!
//! In: the variables of the process. Out: an [`Environment`]; no other part of the runtime reads variables. Not here:
//! the list of settings (`sections`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use terrane_compiler::diagnostic::{Code, Diagnostic};

/// The variables at the start of the process.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    variables: BTreeMap<String, String>,
}

/// The prefix of variables for settings.
pub(super) const PREFIX: &str = "SERVICE_";

/// The prefix of variables that project files may read through `env_var`.
const FOR_PROJECTS: &str = "TERRANE_VAR_";

impl Environment {
    /// Reads the variables of this process. Variables that are not UTF-8 count as unset.
    pub fn of_process() -> Self {
        #[allow(clippy::disallowed_methods, reason = "the one place where the environment is read")]
        let variables = std::env::vars_os();
        variables.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))).collect()
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    /// Returns the variables for Jinja's `env_var`: those that begin with `TERRANE_VAR_`, so that a project cannot read
    /// secrets of the process.
    pub fn for_projects(&self) -> BTreeMap<String, String> {
        let shown = self.variables.iter().filter(|(name, _)| name.starts_with(FOR_PROJECTS));
        shown.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the cache folder of systemd or of the XDG base directories. It is not a setting, since a project must
    /// not choose the folder.
    pub(super) fn cache_folder(&self) -> Option<PathBuf> {
        let absolute = |name: &str| self.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let of_user = || absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        absolute("CACHE_DIRECTORY").or_else(|| Some(of_user()?.join("terrane")))
    }

    /// Returns the names of variables with the prefix of settings.
    pub(super) fn settings(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().map(String::as_str).filter(|name| name.starts_with(PREFIX))
    }

    /// Replaces every `${VAR}` of a string. `$${` stands for `${`.
    ///
    /// # Errors
    /// A variable is not set, or a `${` is not closed.
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

/// The reason why a value of a file cannot be completed from the environment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ExpandError {
    Unset { name: String },
    Unclosed,
}

impl ExpandError {
    /// Returns the diagnostic for the key whose value cannot be completed.
    pub(super) fn explain(&self, key: &str) -> Diagnostic {
        match self {
            ExpandError::Unset { name } => {
                // A secret belongs in the environment, never in the file.
                let hint = match super::settings::sounds_secret(key.trim_matches('`')) {
                    true => format!("Set {name}."),
                    false => format!("Set {name}, or write the value of {key} into the file."),
                };
                Diagnostic::error(Code::MissingVariable, format!("environment variable {name} is not set")).hint(hint)
            }
            ExpandError::Unclosed => Diagnostic::error(Code::MissingVariable, format!("`${{` in {key} has no `}}`"))
                .hint("Write ${NAME} for a variable, or $${ for a literal ${."),
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
    fn projects_see_only_variables_with_their_prefix() {
        let variables = [("PGPASSWORD", "x"), ("TERRANE_VAR_YEAR", "2013")];
        let environment: Environment =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        assert_eq!(environment.for_projects().into_keys().collect::<Vec<_>>(), ["TERRANE_VAR_YEAR"]);
    }
}
