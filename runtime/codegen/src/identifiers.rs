//! Converts names to Python identifiers.
//!
//! In: the names of one class or module. Out: an identifier for each name. Most names are used unchanged. A keyword
//! gets a trailing underscore, as in `class_`. A name with two leading underscores gets the prefix `m`, because Python
//! mangles such attributes or gives them a meaning. Different names have different identifiers.

use std::collections::BTreeSet;

/// Python's keywords in lower case. Names of a project have no capitals.
const KEYWORDS: [&str; 32] = [
    "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del", "elif", "else", "except",
    "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise",
    "return", "try", "while", "with", "yield",
];

/// Returns the identifiers of sorted names.
pub(crate) fn identifiers<'m>(names: &[&'m str]) -> Vec<String> {
    let mut taken: BTreeSet<String> =
        names.iter().filter(|name| is_identifier(name)).map(|&name| name.into()).collect();
    let assign = |name: &&'m str| {
        if is_identifier(name) {
            return (*name).to_owned();
        }
        let mut identifier = if name.starts_with("__") { format!("m{name}") } else { format!("{name}_") };
        while !taken.insert(identifier.clone()) {
            identifier.push('_');
        }
        identifier
    };
    names.iter().map(assign).collect()
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with("__") && !KEYWORDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_are_unchanged() {
        assert_eq!(identifiers(&["_x", "match", "origin", "type"]), ["_x", "match", "origin", "type"]);
    }

    #[test]
    fn keywords_and_special_names_are_changed() {
        assert_eq!(identifiers(&["__init__", "class", "lambda"]), ["m__init__", "class_", "lambda_"]);
    }

    #[test]
    fn identifiers_are_different() {
        let names = ["__a", "class", "class_", "class__", "m__a"];
        assert_eq!(identifiers(&names), ["m__a_", "class___", "class_", "class__", "m__a"]);
    }
}
