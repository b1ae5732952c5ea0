//! The files that `include` names.
//!
//! In: the parameter `include` of a file, and the paths of the folder. Out: a finding, if it names no file of the
//! folder. All files of the folder are read, whether a file includes them or not. Not here: the order of the files.

use terrane_compiler::diagnostic::Diagnostic;

use super::syntax::{Item, Value};
use crate::finding::left_out;

/// Returns a finding for an `include` of a file that is not read.
pub(super) fn missing(item: &Item, file: &str, paths: &[String]) -> Option<Diagnostic> {
    let Value::Text(pattern) = &item.value else { return None };
    let pattern = pattern.trim();
    if pattern.starts_with("//") || pattern.starts_with('@') {
        let what = format!("`include: \"{pattern}\"` is not followed: it names another project");
        return Some(left_out(item.span.clone(), what, "Copy the files of that project into this folder."));
    }
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let from_file = resolved(folder, pattern);
    // A path that begins with a slash begins at the project's folder; others at the folder of their file.
    let candidates = [pattern.trim_start_matches('/'), from_file.as_str()];
    let is_dashboard = pattern.ends_with(".dashboard") || pattern.ends_with(".lookml");
    let is_named = |path: &String| {
        let stem = path.strip_suffix(".lkml").unwrap_or(path);
        candidates.iter().any(|pattern| matches(pattern, path) || matches(pattern, stem))
    };
    if is_dashboard || paths.iter().any(is_named) {
        return None;
    }
    let what = format!("`include: \"{pattern}\"` names no file of the folder, so its views are not imported");
    Some(left_out(item.span.clone(), what, "Copy the file into the folder, or correct its path."))
}

/// Returns a path that begins at the folder of a file, without `..`.
fn resolved(folder: &str, pattern: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns true if a path matches a pattern, in which `*` is any text.
fn matches(pattern: &str, path: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = path.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_text() {
        for (pattern, path, expected) in [
            ("views/orders.view", "views/orders.view", true),
            ("*.view", "views/orders.view", true),
            ("views/**/*.view.lkml", "views/a/b/orders.view.lkml", true),
            ("views/*.view", "models/orders.view", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
