//! Generates the group-by columns of a query: dimensions and times that the measures' cubes can reach.

use serde_json::{Map, Value as Json, json};

use super::queries::Draft;
use crate::world::{Dimension, DimensionKind};

const GRANULARITIES: &[&str] = &["second", "minute", "hour", "day", "day", "week", "month", "month", "quarter", "year"];
/// The granularities of time axes with steps.
const STEPS: &[&str] = &["day", "week", "month", "month", "quarter", "year", "year"];

impl Draft<'_, '_> {
    /// Returns the cubes, including aliases, that every fact reaches. Sometimes returns all cubes.
    pub(super) fn cubes_in_reach(&mut self) -> Vec<String> {
        let joins = self.world.cubes.iter().flat_map(|cube| &cube.joins).map(|join| join.name.clone());
        let mut all: Vec<String> = self.world.cubes.iter().map(|cube| cube.name.clone()).chain(joins).collect();
        all.sort();
        all.dedup();
        if self.chance(4) {
            return all;
        }
        let to_many = self.generator.features.to_many && self.chance(50);
        let facts = match self.facts.is_empty() {
            true => vec![self.generator.random.of(&self.world.cubes).name.clone()],
            false => self.facts.clone(),
        };
        all.retain(|cube| {
            facts.iter().all(|fact| match to_many {
                true => self.paths.is_reached(fact, cube),
                false => self.paths.is_to_one(fact, cube),
            })
        });
        all
    }

    pub(super) fn some_dimension(&mut self) -> Option<(String, Dimension)> {
        let reached = self.cubes_in_reach();
        let cube = (!reached.is_empty()).then(|| self.generator.random.of(&reached).clone())?;
        let dimensions = &self.world.behind(&cube)?.dimensions;
        let dimension = (!dimensions.is_empty()).then(|| self.generator.random.of(dimensions).clone())?;
        Some((cube, dimension))
    }

    /// Chooses the groups of a query. If `has_axis` is true, one of them is a time dimension with a granularity.
    pub(super) fn choose_groups(&mut self, query: &mut Map<String, Json>, has_axis: bool) {
        let least = usize::from(self.values.is_empty());
        let (mut dimensions, mut times) = (Vec::new(), Vec::new());
        let takes_metric_time = self.takes_metric_time(12);
        if takes_metric_time {
            self.metric_time(has_axis, &mut dimensions, &mut times);
        }
        for _ in 0..least + self.generator.random.below(4 - least) {
            let Some((cube, dimension)) = self.some_dimension() else { continue };
            if has_axis && dimension.kind == DimensionKind::Time {
                continue;
            }
            let member = format!("{cube}.{}", dimension.name);
            if dimension.kind != DimensionKind::Time || self.chance(15) {
                self.groups.push(member.clone());
                dimensions.push(json!(member));
                continue;
            }
            let granularity = *self.generator.random.of(GRANULARITIES);
            let key = format!("{member}.{granularity}");
            self.groups.push(key.clone());
            if self.chance(30) {
                dimensions.push(json!(key));
                continue;
            }
            let mut time = json!({"dimension": member, "granularity": granularity});
            if self.chance(30) {
                time["date_range"] = self.generator.date_range();
            }
            times.push(time);
        }
        let takes_axis = has_axis && !takes_metric_time;
        let axis =
            (0..20).find_map(|_| self.some_dimension().filter(|(_, d)| takes_axis && d.kind == DimensionKind::Time));
        if let Some((cube, dimension)) = axis {
            let granularity = *self.generator.random.of(STEPS);
            let member = format!("{cube}.{}", dimension.name);
            self.groups.push(format!("{member}.{granularity}"));
            let mut time = json!({"dimension": member, "granularity": granularity});
            if self.chance(50) {
                time["date_range"] = self.generator.date_range();
            }
            times.push(time);
            self.second_granularity(&member, &mut times);
        }
        if !dimensions.is_empty() {
            query.insert("dimensions".to_owned(), json!(dimensions));
        }
        if !times.is_empty() {
            query.insert("time_dimensions".to_owned(), json!(times));
        }
    }

    /// Decides at random whether `metric_time` is used. It is not used if a cube has no time.
    pub(super) fn takes_metric_time(&mut self, percent: usize) -> bool {
        let has_time = |fact: &String| {
            let Some(cube) = self.world.behind(fact) else { return false };
            let times = cube.dimensions.iter().filter(|dimension| dimension.kind == DimensionKind::Time).count();
            times == 1 || cube.dimensions.iter().any(|dimension| dimension.primary_time)
        };
        let has_all = !self.facts.is_empty() && self.facts.iter().all(has_time);
        self.generator.features.metric_time && (has_all || self.chance(3)) && self.chance(percent)
    }

    fn metric_time(&mut self, has_axis: bool, dimensions: &mut Vec<Json>, times: &mut Vec<Json>) {
        let granularity = *self.generator.random.of(if has_axis { STEPS } else { GRANULARITIES });
        let key = format!("metric_time.{granularity}");
        self.groups.push(key.clone());
        if self.chance(50) {
            dimensions.push(json!(key));
            return;
        }
        let mut time = json!({"dimension": "metric_time", "granularity": granularity});
        if self.chance(50) {
            time["date_range"] = self.generator.date_range();
        }
        times.push(time);
        if has_axis {
            self.second_granularity("metric_time", times);
        }
    }

    /// Sometimes adds the time axis with a second granularity.
    fn second_granularity(&mut self, member: &str, times: &mut Vec<Json>) {
        let granularity = *self.generator.random.of(STEPS);
        let key = format!("{member}.{granularity}");
        if self.chance(20) && !self.groups.contains(&key) {
            self.groups.push(key);
            times.push(json!({"dimension": member, "granularity": granularity}));
        }
    }
}
