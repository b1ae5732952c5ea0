//! Generates filters and segments of a query: on rows, on groups, and on both at once.

use serde_json::{Map, Value as Json, json};

use super::queries::Draft;
use crate::world::{DimensionKind, Function, MeasureKind};

impl Draft<'_, '_> {
    pub(super) fn filters(&mut self, query: &mut Map<String, Json>) {
        let count = self.generator.random.below(4).min(self.generator.random.below(4));
        let filters: Vec<Json> = (0..count).filter_map(|_| self.filter(0)).collect();
        if !filters.is_empty() {
            query.insert("filters".to_owned(), json!(filters));
        }
    }

    fn filter(&mut self, depth: usize) -> Option<Json> {
        if depth < 3 && self.chance(25) {
            return Some(match self.generator.random.below(3) {
                0 => json!({"not": self.filter(depth + 1)?}),
                choice => {
                    let word = if choice == 1 { "or" } else { "and" };
                    let all: Vec<Json> =
                        (0..1 + self.generator.random.below(3)).filter_map(|_| self.filter(depth + 1)).collect();
                    json!({ word: all })
                }
            });
        }
        if self.chance(22) {
            return self.value_filter();
        }
        if depth > 0 && !self.groups.is_empty() && self.chance(40) {
            let member = self.generator.random.of(&self.groups).clone();
            return self.group_filter(&member);
        }
        if self.takes_metric_time(6) {
            let member = match self.generator.features.granularity_filters && self.chance(40) {
                true => {
                    format!("metric_time.{}", self.generator.random.of(&["day", "week", "month", "quarter", "year"]))
                }
                false => "metric_time".to_owned(),
            };
            return Some(self.generator.condition_of(&member, DimensionKind::Time, |_| None));
        }
        let (cube, dimension) = self.some_dimension()?;
        let mut member = format!("{cube}.{}", dimension.name);
        let takes_granularity = dimension.kind == DimensionKind::Time && self.generator.features.granularity_filters;
        if takes_granularity && self.chance(15) {
            member = format!("{member}.{}", self.generator.random.of(&["day", "week", "month", "quarter", "year"]));
        }
        Some(self.generator.dimension_condition(&member, self.world.behind(&cube)?, &dimension.name))
    }

    /// Returns a filter on a selected column, which may be combined with a filter on a measure.
    fn group_filter(&mut self, member: &str) -> Option<Json> {
        if member.starts_with("metric_time") {
            let has_feature = self.generator.features.granularity_filters;
            return has_feature.then(|| self.generator.condition_of(member, DimensionKind::Time, |_| None));
        }
        let mut parts = member.split('.');
        let (cube, name, granularity) = (parts.next()?, parts.next()?, parts.next());
        if granularity.is_some() && !self.generator.features.granularity_filters {
            return None;
        }
        Some(self.generator.dimension_condition(member, self.world.behind(cube)?, name))
    }

    fn value_filter(&mut self) -> Option<Json> {
        let member = match !self.values.is_empty() && self.chance(70) {
            true => self.generator.random.of(&self.values).clone(),
            false => {
                let index = self.generator.random.below(self.world.cubes.len());
                let name = self.some_measure(index)?.name.clone();
                format!("{}.{name}", self.world.cubes[index].name)
            }
        };
        let kind = match member.split_once('.') {
            None => DimensionKind::Number,
            Some((cube, name)) => {
                let cube = self.world.behind(cube)?;
                match &cube.measure(name)?.kind {
                    MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling(aggregate, _)
                        if matches!(aggregate.function, Function::Min | Function::Max) =>
                    {
                        aggregate.argument.as_ref().map_or(DimensionKind::Number, |argument| kind_of(cube, argument))
                    }
                    _ => DimensionKind::Number,
                }
            }
        };
        Some(self.generator.condition_of(&member, kind, |_| None))
    }

    pub(super) fn segments(&mut self, query: &mut Map<String, Json>) {
        if !self.chance(15) {
            return;
        }
        let reached = self.cubes_in_reach();
        let of = |cube: &String| {
            let segments = self.world.behind(cube).map(|of| of.segments.iter());
            segments.into_iter().flatten().map(|s| format!("{cube}.{}", s.name)).collect::<Vec<_>>()
        };
        let all: Vec<String> = reached.iter().flat_map(of).collect();
        if !all.is_empty() {
            query.insert("segments".to_owned(), json!([self.generator.random.of(&all)]));
        }
    }
}

fn kind_of(cube: &crate::world::Cube, argument: &crate::world::Expr) -> DimensionKind {
    use crate::world::{ColumnType, Expr};
    let Expr::Column { cube: None, column } = argument else { return DimensionKind::Number };
    match cube.columns[*column].ty {
        ColumnType::Text => DimensionKind::String,
        ColumnType::Boolean => DimensionKind::Boolean,
        ColumnType::Date | ColumnType::Timestamp | ColumnType::TimestampTz => DimensionKind::Time,
        _ => DimensionKind::Number,
    }
}
