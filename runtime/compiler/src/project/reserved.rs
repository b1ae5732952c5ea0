//! Checks that a project's SQL does not name the schema of pre-aggregation tables.
//!
//! In: the files of a project. Out: an error at each file that contains the schema's name in any case. The check
//! searches characters, as in `files`: it reports too much rather than too little, and does not find a name that Jinja
//! puts together from parts.

use super::{Inputs, SourceTree, settings};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::Span;

/// Reports the files that name the reserved schema.
pub(super) fn uses(tree: &SourceTree, inputs: &Inputs) -> Vec<Diagnostic> {
    let Some(schema) = inputs.reserved_schema.as_deref() else { return Vec::new() };
    let files = tree.files.iter().filter(|(path, _)| &***path != settings::FILE);
    let places = files.filter_map(|(path, text)| {
        let (line, column) = place_of(text, schema)?;
        Some(Span { file: path.clone(), line, column, length: length(schema) })
    });
    places.map(|span| report(schema).at(span)).collect()
}

impl Inputs {
    /// Returns whether SQL names the schema of pre-aggregations.
    pub fn names_reserved_schema(&self, text: &str) -> bool {
        self.reserved_schema.as_deref().is_some_and(|schema| place_of(text, schema).is_some())
    }
}

fn report(schema: &str) -> Diagnostic {
    let message = format!("schema `{schema}` contains the tables of pre-aggregations, which only Terrane reads");
    let hint = "Read the cube, and let its pre-aggregations answer; or set another `pre_aggregations.schema`.";
    Diagnostic::error(Code::ReservedName, message).hint(hint)
}

/// Returns the line and the column of the first occurrence, both counted from 1.
fn place_of(text: &str, schema: &str) -> Option<(u32, u32)> {
    let schema = schema.to_lowercase();
    let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
    text.lines().enumerate().find_map(|(line, content)| {
        let content = content.to_lowercase();
        let at = content.find(&schema)?;
        Some((number(line), number(content[..at].chars().count())))
    })
}

fn length(schema: &str) -> u32 {
    u32::try_from(schema.chars().count()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_occurrence_is_found_ignoring_case() {
        assert_eq!(place_of("a\n  é Stored.x, stored.y", "STORED"), Some((2, 5)));
        assert_eq!(place_of("a restore", "stored"), None);
    }
}
