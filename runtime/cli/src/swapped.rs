//! Detects that a project's folder was passed as another argument.
//!
//! In: the words of a command, and the folder that it read. Out: a hint with the order of the arguments.

use std::path::Path;

use crate::config::PROJECT_FILE;

/// Returns a hint if the folder contains no project, and another argument names one that does.
pub(crate) fn hint(words: &[String], dir: &Path) -> Option<String> {
    let is_project = |word: &str| Path::new(word).join(PROJECT_FILE).is_file();
    let dir = dir.to_string_lossy();
    if is_project(&dir) {
        return None;
    }
    let project = words.iter().skip(1).position(|word| !word.starts_with('-') && is_project(word))? + 1;
    let command = words
        .iter()
        .skip(1)
        .take_while(|word| **word != *dir && is_command(word))
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    let folder = &words[project];
    match words.iter().skip(1).position(|word| *word == *dir).map(|at| at + 1) {
        Some(at) if at < project => Some(format!("Write the folder first: terrane {command} {folder} '{dir}'")),
        Some(_) => Some(format!("Write the folder last: terrane {command} {dir} {folder}")),
        // The command used the default folder, because an id is missing.
        None => Some(format!("Write the id first: terrane {command} ID {folder}")),
    }
}

/// Returns true for words such as `preagg` and `revoke-key`.
fn is_command(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !Path::new(word).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_of_arguments_is_named() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/flights");
        let hint = |words: &[&str], dir: &str| {
            let words: Vec<String> = ["terrane"].iter().chain(words).map(|word| (*word).to_owned()).collect();
            hint(&words, Path::new(dir))
        };
        let query = hint(&["query", "{}", folder], "{}");
        assert_eq!(query, Some(format!("Write the folder first: terrane query {folder} '{{}}'")));
        let key = hint(&["auth", "revoke-key", folder, "0f3c"], "0f3c");
        assert_eq!(key, Some(format!("Write the folder last: terrane auth revoke-key 0f3c {folder}")));
        let job = hint(&["jobs", "show", folder], "no-project");
        assert_eq!(job, Some(format!("Write the id first: terrane jobs show ID {folder}")));
        assert_eq!(hint(&["query", folder, "{}"], folder), None);
        assert_eq!(hint(&["query", "{}", "x"], "{}"), None);
    }
}
