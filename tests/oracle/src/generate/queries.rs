//! Generates queries as REST bodies.
//!
//! In: the generator and a world. Out: JSON. Most queries have an answer, because their dimensions are reached from
//! every measure's cube. Now and then a query has a dimension that is not reached.

use serde_json::{Map, Value as Json, json};

use super::Generator;
use crate::oracle::Paths;
use crate::world::{Formula, Measure, MeasureKind, MetricKind, World};

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

/// Intervals by which a range is moved. Some of them lead from one cluster of the data to another.
const SHIFTS: &[&str] = &[
    "1 day",
    "7 days",
    "1 week",
    "4 weeks",
    "1 month",
    "2 months",
    "11 months",
    "1 quarter",
    "1 year",
    "3 years",
    "4 years",
    "6 years",
    "1 month",
    "1 year",
    "3 years",
    "soon",
];

/// Generates a random query over a world.
pub fn query<'w>(generator: &mut Generator, world: &'w World, paths: &Paths<'w>) -> Json {
    let mut draft = Draft { generator, world, paths, facts: Vec::new(), values: Vec::new(), groups: Vec::new() };
    draft.query()
}

pub(super) struct Draft<'g, 'w> {
    pub(super) generator: &'g mut Generator,
    pub(super) world: &'w World,
    pub(super) paths: &'g Paths<'w>,
    /// The cubes of the selected measures.
    pub(super) facts: Vec<String>,
    pub(super) values: Vec<String>,
    /// The keys of the groups in the answer.
    pub(super) groups: Vec<String>,
}

impl<'w> Draft<'_, 'w> {
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.generator.random.chance(percent)
    }

    fn query(&mut self) -> Json {
        let mut query = Map::new();
        self.choose_values();
        let fills = self.generator.features.steps && !self.values.is_empty() && self.chance(6);
        if fills {
            query.insert("fill_gaps".to_owned(), json!(true));
        }
        let runs = self.values.iter().any(|value| match value.split_once('.') {
            Some((cube, name)) => {
                let formula = Formula::Measure { cube: Some(cube.to_owned()), name: name.to_owned() };
                self.world.runs(None, &formula)
            }
            None => self.world.metric_runs(value),
        });
        self.choose_groups(&mut query, fills || runs);
        if !self.values.is_empty() {
            let (metrics, measures): (Vec<_>, Vec<_>) =
                self.values.iter().cloned().partition(|name| !name.contains('.'));
            query.insert("measures".to_owned(), json!(measures));
            if !metrics.is_empty() {
                query.insert("metrics".to_owned(), json!(metrics));
                // The answer has metrics before measures.
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
        let compares = features.compare && !self.values.is_empty() && !fills && !runs && self.chance(9);
        if compares {
            self.compare(&mut query);
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
        if !self.facts.is_empty() && !compares && self.chance(8) {
            query.insert("time_range".to_owned(), self.time_range());
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
                MeasureKind::Number(formula) => self.facts_of(formula, Some(&cube.name)),
                _ => self.facts.push(name),
            }
        }
        self.values.dedup();
    }

    pub(super) fn some_measure(&mut self, cube: usize) -> Option<&'w Measure> {
        let world = self.world;
        let measures = &world.cubes[cube].measures;
        (!measures.is_empty()).then(|| self.generator.random.of(measures))
    }

    /// Returns the name of a cube, or sometimes the name of an alias of the cube.
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

    fn time_range(&mut self) -> Json {
        match self.generator.date_range() {
            Json::Array(ends) => without_nulls(json!({"start": ends[0], "end": ends[1]})),
            words => words,
        }
    }

    /// Adds one range and the period to compare it with.
    fn compare(&mut self, query: &mut Map<String, Json>) {
        let mut has_range = false;
        for time in query.get_mut("time_dimensions").and_then(Json::as_array_mut).into_iter().flatten() {
            let Json::Object(time) = time else { continue };
            if has_range {
                time.remove("date_range");
            } else if self.chance(80) {
                time.insert("date_range".to_owned(), self.generator.date_range());
            }
            has_range |= time.contains_key("date_range");
        }
        if !has_range && self.chance(95) {
            query.insert("time_range".to_owned(), self.time_range());
        }
        let compared = match self.chance(65) {
            true => json!({"shift": self.generator.random.of(SHIFTS)}),
            false => self.generator.date_range(),
        };
        query.insert("compare_range".to_owned(), compared);
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

fn without_nulls(mut range: Json) -> Json {
    if let Json::Object(map) = &mut range {
        map.retain(|_, value| !value.is_null());
    }
    range
}
