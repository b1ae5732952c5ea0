//! The aggregations of other tools, and the measure types of a project.
//!
//! In: the name of an aggregation, as a module of a format has normalized it. Out: the type of a measure, or an action
//! for an aggregation without one. A new type of measure is one line here.

/// Aggregations with their types.
const TYPES: &[(&str, &str)] = &[
    ("count", "count"),
    ("count_distinct", "count_distinct"),
    ("count_distinct_approx", "count_distinct_approx"),
    ("sum", "sum"),
    ("average", "avg"),
    ("avg", "avg"),
    ("min", "min"),
    ("max", "max"),
    ("median", "median"),
    ("percentile", "percentile"),
];

/// Aggregations without a type: `stddev` and `variance` are those of a population, other tools mean those of a sample.
const MISSING: &[&str] = &["stddev", "variance"];

/// Returns the measure type for an aggregation.
///
/// # Errors
/// The action for an aggregation that no measure type computes.
pub(crate) fn measure_type(aggregation: &str) -> Result<&'static str, &'static str> {
    match TYPES.iter().find(|(name, _)| *name == aggregation) {
        Some((_, ty)) => Ok(ty),
        None if MISSING.contains(&aggregation) => {
            Err("Compute it in a model (models/*.sql), or write `stddev` or `variance` of the whole population.")
        }
        None => Err("Write sum, average, min, max, count or count_distinct."),
    }
}
