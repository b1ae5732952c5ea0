//! Maps the aggregations of other tools to the measure types of a project.
//!
//! In: the normalized name of an aggregation, from a module of a format. Out: the type of a measure or, if no type
//! computes the aggregation, an action for the author. A new measure type needs one line here.

/// The aggregations, each with its measure type.
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

/// The aggregations without a measure type. The project's `stddev` and `variance` are those of a whole population,
/// while other tools compute those of a sample.
const MISSING: &[&str] = &["stddev", "variance"];

/// Returns the measure type for an aggregation.
///
/// # Errors
/// Returns the action for the author if no measure type computes the aggregation.
pub(crate) fn measure_type(aggregation: &str) -> Result<&'static str, &'static str> {
    match TYPES.iter().find(|(name, _)| *name == aggregation) {
        Some((_, ty)) => Ok(ty),
        None if MISSING.contains(&aggregation) => {
            Err("Compute it in a model (models/*.sql), or write `stddev` or `variance` of the whole population.")
        }
        None => Err("Write sum, average, min, max, count or count_distinct."),
    }
}
