//! Checks that a project's SQL does not name the schema of pre-aggregation tables.
//!
//! In: the texts of a project, and its SQL after YAML and Jinja, which can put the name together from pieces. Out: an
//! error at each file that holds the schema's name in any case, or at the text whose SQL does. A search over characters,
//! as in `files`: it finds too much rather than too little.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Inputs, SourceTree, settings};
use crate::diagnostic::{Code, Diagnostic};
use crate::text::{Span, SqlText};

/// The reserved schema, and the files that name it.
pub(super) struct Reserved {
    schema: Arc<str>,
    places: BTreeMap<Arc<str>, Span>,
}

impl Reserved {
    /// `None`: no schema is reserved.
    pub(super) fn find(tree: &SourceTree, inputs: &Inputs) -> Option<Self> {
        let schema = Arc::clone(inputs.reserved_schema.as_ref()?);
        let files = tree.files.iter().filter(|(path, _)| &***path != settings::FILE);
        let places = files.filter_map(|(path, text)| {
            let (line, column) = place_of(text, &schema)?;
            Some((path.clone(), Span { file: path.clone(), line, column, length: length(&schema) }))
        });
        Some(Reserved { places: places.collect(), schema })
    }

    /// Reports the files that name the schema.
    pub(super) fn files(&self) -> impl Iterator<Item = Diagnostic> {
        self.places.values().map(|span| report(&self.schema).at(span.clone()))
    }

    /// Reports SQL that names the schema, or is built into it, in a file whose text does not name it.
    pub(super) fn check(&self, sql: &SqlText, built_in: Option<&str>) -> Option<Diagnostic> {
        let is_named = |text: &str| text.len() >= self.schema.len() && place_of(text, &self.schema).is_some();
        let is_wrong = is_named(&sql.text) || built_in.is_some_and(is_named);
        let span = Some(sql.span()).filter(|span| is_wrong && !self.places.contains_key(&span.file))?;
        Some(report(&self.schema).at(span))
    }
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
    use crate::project::read;

    const SCHEMA: &str = "stored_tables";

    fn reports(files: &[(&str, &str)]) -> Vec<String> {
        let mut tree = SourceTree::default();
        let settings = "name: p\nwarehouse: {type: duckdb}\nvars: {hidden: stored_tables}\n";
        for (path, text) in [("service_project.yml", settings)].iter().chain(files) {
            tree.files.insert((*path).into(), (*text).into());
        }
        let inputs = Inputs { reserved_schema: Some(SCHEMA.into()), warehouse: "duckdb".into(), ..Inputs::default() };
        let (_, diagnostics) = read(&tree, &inputs);
        let named = diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::ReservedName);
        named
            .map(|diagnostic| diagnostic.span.as_ref().map_or_else(String::new, |span| span.file.to_string()))
            .collect()
    }

    fn cube(sql: &str) -> String {
        format!("cubes:\n  - name: c\n    {sql}\n    measures: [{{name: n, type: count}}]\n")
    }

    #[test]
    fn a_name_that_is_put_together_is_reported_once() {
        let cases = [
            "sql_table: stored_tables.x",
            "sql: \"SELECT * FROM {{ 'stored' ~ '_tables' }}.x\"",
            "sql: \"SELECT * FROM {{ var('hidden') }}.x\"",
            "sql: \"SELECT * FROM {{ 'stored' ~ '_tables' }}.x JOIN stored_tables.y\"",
            "sql_table: \"stored\\x5ftables.x\"",
        ];
        for case in cases {
            assert_eq!(reports(&[("cubes/a.yml", &cube(case))]), ["cubes/a.yml"], "{case}");
        }
        assert!(reports(&[("cubes/a.yml", &cube("sql_table: stored.tables"))]).is_empty());
    }

    #[test]
    fn a_model_is_not_built_into_the_schema() {
        let model = "{{ config(schema='stored' ~ '_tables') }} SELECT 1 AS a";
        assert_eq!(reports(&[("models/a.sql", model)]), ["models/a.sql"]);
    }

    #[test]
    fn the_first_place_is_found_in_any_case() {
        assert_eq!(place_of("a\n  é Stored.x, stored.y", "STORED"), Some((2, 5)));
        assert_eq!(place_of("a restore", "stored"), None);
    }
}
