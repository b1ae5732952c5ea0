//! Tests the text of the schema.

use super::*;

/// The schema as clients see it. To accept a change: `terrane graphql --schema > runtime/graphql/schema.graphql`.
const GOLDEN: &str = include_str!("../../schema.graphql");

#[test]
fn text_is_the_golden_file() {
    let text = text(&build(async_graphql::ValidationMode::Strict));
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
