//! Pre-aggregations of a world: their form in a project, and the state of their tables.
//!
//! In: a [`World`]. Out: JSON. Members are names, so that shrinking may remove them. Not here: building the tables
//! (`product`).

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::{Cube, World};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rollup {
    pub cube: String,
    pub name: String,
    pub measures: Vec<String>,
    /// The dimensions: `dimension`, or `cube.dimension` of a cube that to-one joins reach.
    pub dimensions: Vec<String>,
    pub segments: Vec<String>,
    /// Segments whose conditions are the filters of the pre-aggregation.
    #[serde(default)]
    pub filters: Vec<String>,
    pub time: Option<RollupTime>,
    pub state: TableState,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RollupTime {
    pub dimension: String,
    pub granularity: String,
    pub partition: Option<String>,
    pub zone: String,
    /// The first and the last day of `build_range`.
    pub build_range: Option<[String; 2]>,
    /// A divisor: partitions whose number it divides are not built.
    pub missing: Option<usize>,
}

/// The state of a pre-aggregation's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TableState {
    Current,
    /// The table was built from other definitions, and its rows differ from the current ones.
    OtherDefinition,
    /// The table was built long ago from other rows.
    Old,
    /// The first table was published a second time.
    Twice,
}

impl Rollup {
    pub(super) fn json(&self, world: &World, cube: &Cube) -> Json {
        let has_measure = |name: &&String| cube.measure(name).is_some();
        let has_dimension = |name: &&String| match name.split_once('.') {
            Some((of, name)) => world.behind(of).is_some_and(|of| of.dimension(name).is_some()),
            None => cube.dimension(name).is_some(),
        };
        let filters = self.filters.iter().filter_map(|name| cube.segment(name));
        let mut json = json!({
            "name": self.name,
            "measures": self.measures.iter().filter(has_measure).collect::<Vec<_>>(),
            "dimensions": self.dimensions.iter().filter(has_dimension).collect::<Vec<_>>(),
            "segments": self.segments.iter().filter(|name| cube.segment(name).is_some()).collect::<Vec<_>>(),
            "filters": filters.map(|segment| json!({"sql": segment.sql.sql(world, cube)})).collect::<Vec<_>>(),
        });
        if let Some(time) = self.time.as_ref().filter(|time| cube.dimension(&time.dimension).is_some()) {
            json["time_dimension"] = json!(time.dimension);
            json["granularity"] = json!(time.granularity);
            json["timezone"] = json!(time.zone);
            if let Some(partition) = &time.partition {
                json["partition_granularity"] = json!(partition);
            }
            if let Some([start, end]) = &time.build_range {
                json["build_range"] = json!({"start": start, "end": end});
            }
        }
        json
    }
}
