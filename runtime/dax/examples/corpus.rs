//! Measures how much of a corpus of DAX the parser reads.
//!
//! In: files of JSON lines with `text`, `kind` and `functions`. Out: counts, and the queries that the parser refuses
//! although their functions are supported.

#![allow(clippy::print_stdout, reason = "the counts are the output of the example")]

use std::collections::BTreeMap;

use terrane_dax::functions;
use terrane_dax::parser::{parse_expression, parse_query};

fn main() {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in std::env::args().skip(1) {
        let lines = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        for line in lines.lines() {
            let row: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{path}: {error}"));
            let text = row["text"].as_str().unwrap_or_default();
            let problems = match row["kind"].as_str() {
                Some("query") => parse_query(text).problems,
                _ => parse_expression(text).problems,
            };
            let used = row["functions"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
            let is_supported = used.into_iter().all(|name| functions::find(name).is_some());
            let outcome = match (is_supported, problems.first()) {
                (true, None) => "supported functions, parsed",
                (true, Some(problem)) => {
                    println!("{}\n    {}\n", text, problem.in_text(text));
                    "supported functions, refused"
                }
                (false, None) => "other functions, parsed",
                (false, Some(problem)) => {
                    println!("(other functions) {}\n    {}\n", text, problem.in_text(text));
                    "other functions, refused"
                }
            };
            *counts.entry(outcome).or_default() += 1;
        }
    }
    counts.iter().for_each(|(outcome, count)| println!("{count:5} {outcome}"));
}
