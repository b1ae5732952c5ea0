//! The Parquet files that a query of DuckDB reads, also through views.
//!
//! In: a query, and the definitions of views as DuckDB's catalog lists them. Out: the paths of each place where files
//! are read, as the author wrote them; patterns stay patterns. Only literal paths are found. Not here: the resolution
//! of paths, and files of other formats.

use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, TableFactor, Visit, Visitor};
use sqlparser::dialect::DuckDbDialect;
use sqlparser::parser::Parser;

use super::table_functions::main_texts;
use super::table_names::is_same;
use super::tables::{CreatedView, created_views, names_in};

/// The functions of DuckDB that read Parquet files.
const FUNCTIONS: &[&str] = &["read_parquet", "parquet_scan"];
const SUFFIX: &str = ".parquet";

/// Returns the paths of each read of Parquet files, without repetitions. `None` if the query or a view that it reads
/// cannot be parsed, or if a path is computed.
pub fn parquet_reads(query: &str, views: &[String]) -> Option<Vec<Vec<String>>> {
    let dialect = DuckDbDialect {};
    let mut reads = paths_in(query)?;
    let mut names: Vec<String> = names_in(query, &dialect)?.into_iter().collect();
    let mut unread: Vec<(&str, CreatedView)> = Vec::new();
    for text in views {
        unread.extend(created_views(text, &dialect).into_iter().map(|view| (text.as_str(), view)));
    }
    while let Some(name) = names.pop() {
        let (read, rest): (Vec<_>, Vec<_>) = unread.into_iter().partition(|(_, view)| is_same(&view.name, &name));
        unread = rest;
        for (text, view) in read {
            reads.extend(paths_in(text)?);
            names.extend(view.named?);
        }
    }
    reads.sort();
    reads.dedup();
    Some(reads)
}

fn paths_in(text: &str) -> Option<Vec<Vec<String>>> {
    let parser = Parser::new(&DuckDbDialect {}).with_recursion_limit(60).try_with_sql(text);
    let statements = parser.ok()?.parse_statements().ok()?;
    let mut paths = Paths::default();
    let _ = statements.visit(&mut paths);
    (!paths.is_unknown).then_some(paths.found)
}

#[derive(Default)]
struct Paths {
    found: Vec<Vec<String>>,
    /// True if a path is computed.
    is_unknown: bool,
}

impl Visitor for Paths {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Table { name, args: None, .. } => {
                let path = last_part(name);
                self.found.extend(path.filter(|path| path.to_lowercase().ends_with(SUFFIX)).map(|path| vec![path]));
            }
            TableFactor::Table { name, args: Some(args), .. } if reads_parquet(name) => match main_texts(&args.args) {
                Some(paths) => self.found.push(paths),
                None => self.is_unknown = true,
            },
            TableFactor::Function { name, args, .. } if reads_parquet(name) => match main_texts(args) {
                Some(paths) => self.found.push(paths),
                None => self.is_unknown = true,
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn reads_parquet(name: &ObjectName) -> bool {
    last_part(name).is_some_and(|name| FUNCTIONS.iter().any(|function| function.eq_ignore_ascii_case(&name)))
}

fn last_part(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(|ident| ident.value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(query: &str, views: &[&str]) -> Option<Vec<String>> {
        let views: Vec<String> = views.iter().map(ToString::to_string).collect();
        parquet_reads(query, &views).map(|reads| reads.iter().map(|paths| paths.join("+")).collect())
    }

    #[test]
    fn paths_are_found_through_views() {
        let views = [
            "CREATE VIEW raw.flights AS SELECT * FROM read_parquet('Data/Flights.parquet');",
            "CREATE VIEW raw.weather AS SELECT * FROM 'data/weather.parquet';",
            "CREATE VIEW late AS SELECT f.* FROM raw.flights AS f, raw.weather AS w;",
        ];
        let found = |query| reads(query, &views).unwrap_or_default();
        assert_eq!(found("SELECT a FROM raw.flights AS scanned"), ["Data/Flights.parquet"]);
        assert_eq!(found("SELECT a FROM late"), ["Data/Flights.parquet", "data/weather.parquet"]);
        assert_eq!(
            found("SELECT a FROM (SELECT * FROM read_parquet(['a.parquet', 'b/*.parquet']))"),
            ["a.parquet+b/*.parquet"]
        );
        assert!(found("SELECT a FROM orders").is_empty());
    }

    #[test]
    fn computed_paths_are_unknown() {
        for query in
            ["SELECT 1 FROM read_parquet('a' || '.parquet')", "SELECT 1 FROM read_parquet($1)", "SELECT FROM ("]
        {
            assert_eq!(reads(query, &[]), None, "{query}");
        }
    }
}
