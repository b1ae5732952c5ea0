//! Random worlds and queries from a seed.
//!
//! In: a seed and the [`Features`] to use. Out: a world, and queries as REST bodies. Most queries have an answer;
//! others contain a mistake on purpose. Not here: the answers (`oracle`).

mod cells;
mod conditions;
mod filters;
mod foreign_keys;
mod groups;
mod mask_policies;
mod members;
mod names;
mod policies;
mod queries;
mod rollups;
mod worlds;

pub use foreign_keys::enforce;
pub use mask_policies::mask_policies;
pub use names::plain_names;
pub use policies::policies;
pub use queries::query;
pub use rollups::{crossing_segments, late_cube, query_of_rollup, rollups, zone_of_query};
pub use worlds::world;

use crate::random::Random;

/// The features that are generated. A run may test only some of them.
#[derive(Debug, Clone, Copy)]
pub struct Features {
    /// Dimensions and filters behind to-many joins.
    pub to_many: bool,
    /// Running totals and `fill_gaps`.
    pub steps: bool,
    /// Dimensions that are not null on a row of nulls.
    pub total_dimensions: bool,
    /// Row filters of policies.
    pub policies: bool,
    /// Masks and denied members.
    pub mask_policies: bool,
    /// `metric_time`.
    pub metric_time: bool,
    /// `compare_range`.
    pub compare: bool,
    /// `totals`.
    pub totals: bool,
    /// `ungrouped`.
    pub ungrouped: bool,
    /// Filters on `time.granularity`, on rows and on groups.
    pub granularity_filters: bool,
    /// Pre-aggregations.
    pub rollups: bool,
    /// Foreign keys of the warehouse.
    pub foreign_keys: bool,
    /// Names with quotes, spaces, reserved words, Unicode or 200 characters.
    pub hostile_names: bool,
}

impl Default for Features {
    fn default() -> Self {
        Features {
            to_many: true,
            steps: true,
            total_dimensions: true,
            policies: true,
            mask_policies: true,
            metric_time: true,
            compare: true,
            totals: true,
            ungrouped: true,
            granularity_filters: true,
            rollups: true,
            foreign_keys: true,
            hostile_names: true,
        }
    }
}

/// The generator's state for one seed.
pub struct Generator {
    pub random: Random,
    pub features: Features,
}

impl Generator {
    pub fn new(seed: u64, features: Features) -> Self {
        Generator { random: Random::new(seed), features }
    }
}
