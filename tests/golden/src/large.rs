//! Models of any size and queries over them, for benchmarks and for counting allocations.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::fmt::Write as _;

use terrane_compiler::model::{self, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::query::{DateRange, Filter, MemberRef, Operator, OrderBy, SemanticQuery, TimeDimension};
use terrane_compiler::types::{Granularity, Value};

/// Returns a model of `facts` cubes with 30 members each, and metrics over the first of these cubes. Every fact cube
/// joins `regions`, and `regions` joins the first three fact cubes.
///
/// # Panics
/// The project has a problem.
pub fn large_model(facts: usize) -> Model {
    let mut yaml = String::from("cubes:\n  - name: regions\n    sql_table: raw.regions\n    joins:\n");
    for fact in 0..3 {
        let name = format!("fact_{fact}");
        let on = format!("{{regions}}.id = {{{name}}}.region_id");
        writeln!(yaml, "      - {{name: {name}, relationship: one_to_many, sql: \"{on}\"}}").unwrap();
    }
    yaml.push_str(
        "    dimensions:\n      - {name: id, type: number, sql: id, primary_key: true}\n      \
         - {name: name, type: string, sql: name}\n    measures:\n      - {name: count, type: count}\n      \
         - {name: area, type: sum, sql: area}\n",
    );
    for fact in 0..facts {
        write!(
            yaml,
            "  - name: fact_{fact}\n    sql_table: raw.fact_{fact}\n    joins:\n      - {{name: regions, relationship: \
             many_to_one, sql: \"{{fact_{fact}}}.region_id = {{regions}}.id\"}}\n    dimensions:\n      - {{name: id, \
             type: number, sql: id, primary_key: true}}\n      - {{name: at, type: time, sql: at, primary_time: true}}\n"
        )
        .unwrap();
        for dimension in 0..13 {
            writeln!(yaml, "      - {{name: dimension_{dimension}, type: string, sql: column_{dimension}}}").unwrap();
        }
        yaml.push_str("    measures:\n      - {name: count, type: count}\n");
        for measure in 0..13 {
            writeln!(yaml, "      - {{name: sum_{measure}, type: sum, sql: amount_{measure}}}").unwrap();
        }
        yaml.push_str("      - {name: average, type: number, sql: \"{sum_0} / {count}\"}\n");
    }
    yaml.push_str("metrics:\n");
    for metric in 0..40 {
        let (left, right) = (metric % 13, (metric / 13 + metric + 1) % 13);
        let expression = format!("fact_0.sum_{left} - fact_0.sum_{right} / fact_0.count");
        writeln!(yaml, "  - {{name: metric_{metric}, type: derived, expression: \"{expression}\"}}").unwrap();
    }
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: large\n".into());
    tree.files.insert("cubes/all.yml".into(), yaml.into());
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, problems) = project::read(&tree, &inputs);
    let (model, more) = model::build(&definitions);
    assert!(problems.is_empty() && more.is_empty(), "{problems:?} {more:?}");
    model
}

fn member(text: &str) -> MemberRef {
    text.parse().unwrap()
}

fn in_list(name: &str, values: impl Iterator<Item = String>) -> Filter {
    let values = values.map(|value| Value::Text(value.into())).collect();
    Filter::Condition { member: member(name), operator: Operator::InList, values }
}

/// Returns a query such as a dashboard sends: over the given fact cubes, by region, filtered, ordered and paged.
pub fn over_facts(facts: &[usize]) -> SemanticQuery {
    let values = facts.iter().flat_map(|fact| [format!("fact_{fact}.sum_1"), format!("fact_{fact}.average")]);
    SemanticQuery {
        values: values.map(|name| member(&name)).collect(),
        dimensions: vec![member("regions.name")],
        order: vec![OrderBy { member: member(&format!("fact_{}.sum_1", facts[0])), descending: true }],
        filters: vec![in_list("regions.name", ["north", "south", "west"].into_iter().map(str::to_owned))],
        limit: Some(100),
        ..SemanticQuery::default()
    }
}

/// Returns a query over one fact cube with a time axis.
pub fn over_time(fact: usize) -> SemanticQuery {
    let time = TimeDimension {
        member: member(&format!("fact_{fact}.at")),
        granularity: Some(Granularity::Month),
        range: Some(DateRange::Between(Some("2024-01-01".into()), Some("2024-12-31".into()))),
    };
    SemanticQuery { time_dimensions: vec![time], ..over_facts(&[fact]) }
}

/// Returns a query for measures of `regions` by dimensions of two fact cubes behind it, filtered by a third.
pub fn three_way_fan_out() -> SemanticQuery {
    SemanticQuery {
        values: ["regions.count", "regions.area"].map(member).to_vec(),
        dimensions: ["fact_0.dimension_1", "fact_1.dimension_2"].map(member).to_vec(),
        filters: vec![in_list("fact_2.dimension_3", ["a", "b"].into_iter().map(str::to_owned))],
        ..SemanticQuery::default()
    }
}

/// Returns a query for 40 metrics of one fact cube by 10 of its dimensions.
pub fn forty_metrics() -> SemanticQuery {
    SemanticQuery {
        values: (0..40).map(|metric| member(&format!("metric_{metric}"))).collect(),
        dimensions: (0..10).map(|dimension| member(&format!("fact_0.dimension_{dimension}"))).collect(),
        ..SemanticQuery::default()
    }
}

/// Returns a query with a filter of 1,000 values.
pub fn thousand_values() -> SemanticQuery {
    let mut query = over_time(3);
    query.filters.push(in_list("fact_3.dimension_4", (0..1_000).map(|number| format!("value {number}"))));
    query
}
