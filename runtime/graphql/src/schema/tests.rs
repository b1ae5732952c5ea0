//! Tests the text of the schema.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use super::*;

/// The schema as clients see it. To accept a change: `terrane graphql --schema > runtime/graphql/schema.graphql`.
const GOLDEN: &str = include_str!("../../schema.graphql");

fn text_of(modules: Modules) -> String {
    text(&build(async_graphql::ValidationMode::Strict, modules), modules)
}

#[test]
fn schema_lacks_fields_of_modules_that_are_off() {
    let text = text_of(Modules::NONE);
    assert!(async_graphql::parser::parse_schema(&text).is_ok(), "{text}");
    let types = crate::shape::TypeTable::new(&text);
    let introspected = |modules: Modules| {
        use futures_util::FutureExt as _;
        let schema = build(async_graphql::ValidationMode::Strict, modules);
        let executed = schema.execute("{ __schema { types { name fields { name } } } }").now_or_never().unwrap();
        serde_json::to_value(executed.data).unwrap()
    };
    let has = |schema: &serde_json::Value, root: &str, field: &str| {
        let mut found = schema["__schema"]["types"].as_array().unwrap().iter();
        let root = found.find(|ty| ty["name"] == root).unwrap();
        root["fields"].as_array().unwrap().iter().any(|found| found["name"] == field)
    };
    let (all, none) = (introspected(Modules::ALL), introspected(Modules::NONE));
    for (root, field) in Modules::fields() {
        assert!(types.field(root, field).is_none() && !has(&none, root, field), "{root}.{field}");
        assert!(has(&all, root, field), "{root}.{field}");
    }
    for gone in ["Monitor", "GlossaryTerm", "BudgetUsage", "enum AlertStatus"] {
        let name = gone.split(' ').next_back().unwrap();
        assert!(!text.contains(&format!("{name} {{")), "{gone}");
    }
    assert!(
        types.field("Query", "cubes").is_some() && text.contains("directive @include") && text.contains("schema {")
    );
    // What remains is unchanged.
    let known: Vec<&str> = GOLDEN.lines().collect();
    assert!(text.lines().all(|line| known.contains(&line)));
}

#[test]
fn text_is_the_golden_file() {
    let text = text_of(Modules::ALL);
    for (line, (found, golden)) in text.lines().zip(GOLDEN.lines()).enumerate() {
        assert_eq!(found, golden, "schema.graphql, line {}", line + 1);
    }
    assert_eq!(text.trim_end(), GOLDEN.trim_end());
}

/// Checks types, fields and arguments that the schema must have, even if the golden file is replaced.
#[test]
fn text_has_what_the_specification_writes() {
    for (object, fields) in [
        ("Cube", "name title description measures dimensions segments joins query"),
        ("Measure", "name title description type format drillMembers hasTimeIntelligence timeIntelligenceType"),
        ("Dimension", "name title description type granularities isPrimaryTimeDimension values"),
        ("QueryResult", "data meta annotation query"),
        ("QueryMeta", "totalCount executionTimeMs fromCache preAggregationUsed sql"),
        ("LineageResult", "nodes edges"),
        ("LineageNode", "id name type cube sql"),
        ("LineageEdge", "source target relationship"),
    ] {
        for field in fields.split(' ') {
            assert!(types().field(object, field).is_some(), "{object}.{field}");
        }
    }
    for line in [
        "measures: [Measure!]!",
        "dimensions: [Dimension!]!",
        "type: MeasureType!",
        "drillMembers: [String!]!",
        "hasTimeIntelligence: Boolean!",
        "type: DimensionType!",
        "granularities: [TimeGranularity!]",
        "isPrimaryTimeDimension: Boolean!",
        "data: JSON!",
        "meta: QueryMeta!",
        "annotation: JSON",
        "totalCount: Int",
        "executionTimeMs: Float!",
        "fromCache: Boolean!",
        "preAggregationUsed: String",
        "limit: Int = 100,",
        "nodes: [LineageNode!]!",
        "edges: [LineageEdge!]!",
        "relationship: String!",
        "operator: FilterOperator!",
        "granularity: TimeGranularity",
        "dateRange: [String!]",
        "direction: OrderDirection = ASC",
    ] {
        let is_written = GOLDEN.lines().any(|known| known.trim() == line);
        assert!(is_written, "{line}");
    }
}

fn types() -> crate::shape::TypeTable {
    crate::shape::TypeTable::new(GOLDEN)
}
