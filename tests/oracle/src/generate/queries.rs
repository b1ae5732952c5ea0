//! Queries as REST bodies.
//!
//! In: the generator and a world. Out: JSON. Members are chosen so that most queries have an answer:
//! dimensions that every measure's cube reaches, and now and then one that it doesn't.

use serde_json::{Map, Value as Json, json};

use super::Generator;
use crate::oracle::Paths;
use crate::world::{Dimension, DimensionKind, Formula, Function, Measure, MeasureKind, MetricKind, World};

const GRANULARITIES: &[&str] = &["second", "minute", "hour", "day", "day", "week", "month", "month", "quarter", "year"];
const ZONES: &[&str] = &[
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Pacific/Apia",
];

/// One query over a world.
pub fn query<'w>(generator: &mut Generator, world: &'w World, paths: &Paths<'w>) -> Json {
    let mut draft = Draft { generator, world, paths, facts: Vec::new(), values: Vec::new(), groups: Vec::new() };
    draft.query()
}

struct Draft<'g, 'w> {
    generator: &'g mut Generator,
    world: &'w World,
    paths: &'g Paths<'w>,
    /// The cubes of the selected measures.
    facts: Vec<String>,
    values: Vec<String>,
    /// Keys in the answer.
    groups: Vec<String>,
}

impl<'w> Draft<'_, 'w> {
    fn chance(&mut self, percent: usize) -> bool {
        self.generator.random.chance(percent)
    }

    fn query(&mut self) -> Json {
        let mut query = Map::new();
        self.choose_values();
        let fills = self.generator.features.steps && !self.values.is_empty() && self.chance(6);
        if fills {
            query.insert("fill_gaps".to_owned(), json!(true));
        }
        let runs = self.values.iter().any(|value| {
            let measure = value.split_once('.').and_then(|(cube, name)| self.world.behind(cube)?.measure(name));
            measure.is_some_and(|measure| matches!(measure.kind, MeasureKind::RunningTotal(_)))
        });
        self.choose_groups(&mut query, fills || runs);
        if !self.values.is_empty() {
            let (metrics, measures): (Vec<_>, Vec<_>) =
                self.values.iter().cloned().partition(|name| !name.contains('.'));
            query.insert("measures".to_owned(), json!(measures));
            if !metrics.is_empty() {
                query.insert("metrics".to_owned(), json!(metrics));
                // The order of the answer: metrics first.
                self.values.sort_by_key(|name| name.contains('.'));
            }
        }
        let features = self.generator.features;
        if features.totals && !self.values.is_empty() && !fills && !runs && self.chance(8) {
            query.insert("totals".to_owned(), json!(true));
        }
        let is_ungrouped = features.ungrouped && self.values.is_empty() && self.chance(30);
        if is_ungrouped {
            query.insert("ungrouped".to_owned(), json!(true));
        }
        self.filters(&mut query);
        self.segments(&mut query);
        self.order_and_page(&mut query);
        if is_ungrouped {
            query.remove("order_by");
        }
        if self.chance(45) {
            query.insert("timezone".to_owned(), json!(self.generator.random.of(ZONES)));
        }
        if !self.facts.is_empty() && self.chance(8) {
            let range = match self.generator.date_range() {
                Json::Array(ends) => json!({"start": ends[0], "end": ends[1]}),
                words => words,
            };
            query.insert("time_range".to_owned(), without_nulls(range));
        }
        if self.chance(3) {
            self.mistake(&mut query);
        }
        Json::Object(query)
    }

    fn choose_values(&mut self) {
        if self.chance(14) {
            return;
        }
        let first = self.generator.random.below(self.world.cubes.len());
        for _ in 0..1 + self.generator.random.below(3) {
            if !self.world.metrics.is_empty() && self.chance(15) {
                let metric = self.generator.random.of(&self.world.metrics);
                self.values.push(metric.name.clone());
                match &metric.kind {
                    MetricKind::Simple(a) | MetricKind::Derived(a) => self.facts_of(a, None),
                    MetricKind::Ratio(a, b) => {
                        self.facts_of(a, None);
                        self.facts_of(b, None);
                    }
                }
                continue;
            }
            let index = if self.chance(65) { first } else { self.generator.random.below(self.world.cubes.len()) };
            let cube = &self.world.cubes[index];
            let name = self.alias_or_name(index);
            let Some(measure) = self.some_measure(index) else { continue };
            self.values.push(format!("{name}.{}", measure.name));
            match &measure.kind {
                MeasureKind::Aggregate(_) | MeasureKind::RunningTotal(_) => self.facts.push(name),
                MeasureKind::Number(formula) => self.facts_of(formula, Some(&cube.name)),
            }
        }
        self.values.dedup();
    }

    fn some_measure(&mut self, cube: usize) -> Option<&'w Measure> {
        let world = self.world;
        let measures = &world.cubes[cube].measures;
        (!measures.is_empty()).then(|| self.generator.random.of(measures))
    }

    /// Now and then the cube under another name.
    fn alias_or_name(&mut self, index: usize) -> String {
        let name = &self.world.cubes[index].name;
        let joins = self.world.cubes.iter().flat_map(|cube| &cube.joins);
        let aliases: Vec<&String> = joins.filter(|j| j.cube.as_ref() == Some(name)).map(|j| &j.name).collect();
        let takes_alias = !aliases.is_empty() && self.chance(10);
        if takes_alias { (*self.generator.random.of(&aliases)).clone() } else { name.clone() }
    }

    fn facts_of(&mut self, formula: &Formula, own: Option<&str>) {
        match formula {
            Formula::Measure { cube, name } => {
                let Some(of) = cube.as_deref().or(own) else { return };
                match self.world.behind(of).and_then(|cube| cube.measure(name)).map(|measure| &measure.kind) {
                    Some(MeasureKind::Number(inner)) => self.facts_of(inner, Some(of)),
                    _ => self.facts.push(of.to_owned()),
                }
            }
            Formula::Aggregate(_) => self.facts.extend(own.map(str::to_owned)),
            Formula::Binary(_, left, right) | Formula::Divide(left, right) => {
                self.facts_of(left, own);
                self.facts_of(right, own);
            }
            Formula::Coalesce(inner, _) => self.facts_of(inner, own),
            Formula::Metric(_) | Formula::Constant(_) => {}
        }
    }

    /// Cubes, aliases included, that every fact reaches; sometimes any.
    fn cubes_in_reach(&mut self) -> Vec<String> {
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

    fn some_dimension(&mut self) -> Option<(String, Dimension)> {
        let reached = self.cubes_in_reach();
        let cube = (!reached.is_empty()).then(|| self.generator.random.of(&reached).clone())?;
        let dimensions = &self.world.behind(&cube)?.dimensions;
        let dimension = (!dimensions.is_empty()).then(|| self.generator.random.of(dimensions).clone())?;
        Some((cube, dimension))
    }

    /// `has_axis`: along one time dimension.
    fn choose_groups(&mut self, query: &mut Map<String, Json>, has_axis: bool) {
        let least = usize::from(self.values.is_empty());
        let (mut dimensions, mut times) = (Vec::new(), Vec::new());
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
        let axis =
            (0..20).find_map(|_| self.some_dimension().filter(|(_, d)| has_axis && d.kind == DimensionKind::Time));
        if let Some((cube, dimension)) = axis {
            let granularity = *self.generator.random.of(&["day", "week", "month", "month", "quarter", "year", "year"]);
            let member = format!("{cube}.{}", dimension.name);
            self.groups.push(format!("{member}.{granularity}"));
            let mut time = json!({"dimension": member, "granularity": granularity});
            if self.chance(50) {
                time["date_range"] = self.generator.date_range();
            }
            times.push(time);
        }
        if !dimensions.is_empty() {
            query.insert("dimensions".to_owned(), json!(dimensions));
        }
        if !times.is_empty() {
            query.insert("time_dimensions".to_owned(), json!(times));
        }
    }

    fn filters(&mut self, query: &mut Map<String, Json>) {
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
        let (cube, dimension) = self.some_dimension()?;
        let mut member = format!("{cube}.{}", dimension.name);
        let takes_granularity = dimension.kind == DimensionKind::Time && self.generator.features.granularity_filters;
        if takes_granularity && self.chance(15) {
            member = format!("{member}.{}", self.generator.random.of(&["day", "week", "month", "quarter", "year"]));
        }
        Some(self.generator.dimension_condition(&member, self.world.behind(&cube)?, &dimension.name))
    }

    /// On a selected column, so that it may stand beside a measure.
    fn group_filter(&mut self, member: &str) -> Option<Json> {
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
                    MeasureKind::Aggregate(aggregate)
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

    fn segments(&mut self, query: &mut Map<String, Json>) {
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

    fn order_and_page(&mut self, query: &mut Map<String, Json>) {
        if self.chance(50) {
            let mut fields: Vec<String> = self.groups.iter().chain(&self.values).cloned().collect();
            if self.chance(20) {
                let index = self.generator.random.below(self.world.cubes.len());
                let cube = self.world.cubes[index].name.clone();
                fields.extend(self.some_measure(index).map(|measure| format!("{cube}.{}", measure.name)));
            }
            let count = 1 + self.generator.random.below(2);
            let direction = |draft: &mut Self| if draft.chance(50) { "desc" } else { "asc" };
            let keys = self.generator.random.some(&fields, count);
            let order: Vec<Json> =
                keys.into_iter().map(|field| json!({"field": field, "direction": direction(self)})).collect();
            if !order.is_empty() {
                query.insert("order_by".to_owned(), json!(order));
            }
        }
        if self.chance(35) {
            query.insert("limit".to_owned(), json!(self.generator.random.below(6)));
        }
        if self.chance(15) {
            query.insert("offset".to_owned(), json!(self.generator.random.below(5)));
        }
        if self.chance(5) {
            query.insert("total".to_owned(), json!(false));
        }
    }

    fn mistake(&mut self, query: &mut Map<String, Json>) {
        let cube = self.generator.random.of(&self.world.cubes).name.clone();
        match self.generator.random.below(6) {
            0 => query.insert("measures".to_owned(), json!([format!("{cube}.no_such")])),
            1 => query.insert("dimensions".to_owned(), json!([format!("{cube}.no_such")])),
            2 => query.insert("metrics".to_owned(), json!(["no_such_metric"])),
            3 => query.insert("timezone".to_owned(), json!("Mars/Olympus")),
            4 => query.insert("limit".to_owned(), json!(60_000)),
            _ => query.insert("segments".to_owned(), json!([format!("{cube}.no_such")])),
        };
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

fn without_nulls(mut range: Json) -> Json {
    if let Json::Object(map) = &mut range {
        map.retain(|_, value| !value.is_null());
    }
    range
}
