//! Definitions of pre-aggregations as YAML.

use std::fmt::Write as _;
use std::sync::Arc;

use terrane_app::preaggregations::RecommendedTable;

/// Returns an entry of `pre_aggregations` of the cube, which ends with a line break.
pub fn definition_yaml(table: &RecommendedTable) -> String {
    let list = |names: &[Arc<str>]| names.iter().map(|name| scalar(name)).collect::<Vec<_>>().join(", ");
    let mut yaml = format!("- name: {}\n  measures: [{}]\n", scalar(&table.name), list(&table.measures));
    // Writing to a string cannot fail.
    if !table.dimensions.is_empty() {
        let _ = writeln!(yaml, "  dimensions: [{}]", list(&table.dimensions));
    }
    if !table.segments.is_empty() {
        let _ = writeln!(yaml, "  segments: [{}]", list(&table.segments));
    }
    if let Some((name, granularity)) = &table.time {
        let _ = writeln!(yaml, "  time_dimension: {}\n  granularity: {}", scalar(name), granularity.as_str());
    }
    if let Some(partition) = table.partition {
        let _ = writeln!(yaml, "  partition_granularity: {}", partition.as_str());
    }
    yaml
}

/// Returns a name as a scalar in YAML, quoted if necessary.
fn scalar(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&&*name.to_lowercase());
    if is_plain { name.to_owned() } else { format!("'{}'", name.replace('\'', "''")) }
}

#[cfg(test)]
mod tests {
    use terrane_compiler::types::Granularity;

    use super::*;

    #[test]
    fn names_that_yaml_reads_as_other_values_are_quoted() {
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        let mut table = RecommendedTable {
            name: "recommended_1".to_owned(),
            measures: names(&["revenue", "no"]),
            dimensions: names(&["customers.city", "it's"]),
            segments: names(&["paid"]),
            time: Some(("ordered_at".into(), Granularity::Day)),
            partition: Some(Granularity::Month),
        };
        let expected = "- name: recommended_1\n  measures: [revenue, 'no']\n  dimensions: [customers.city, 'it''s']\n  \
                        segments: [paid]\n  time_dimension: ordered_at\n  granularity: day\n  \
                        partition_granularity: month\n";
        assert_eq!(definition_yaml(&table), expected);
        table.dimensions.clear();
        table.segments.clear();
        (table.time, table.partition) = (None, None);
        assert_eq!(definition_yaml(&table), "- name: recommended_1\n  measures: [revenue, 'no']\n");
    }
}
