//! Invariants that need no oracle: the product is compared with itself.
//!
//! In: queries with a correct answer. Out: the queries that break an invariant. I4 is checked in `cached`, I7 in
//! `surfaces`. I9 is not checked, because it needs a second warehouse. The comparison with the oracle checks I3.

pub mod cached;

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Value as Json, json};
use terrane_compiler::query::SemanticQuery;

use crate::case::read;
use crate::compare::{is_equal, is_equal_cell, is_equal_row};
use crate::generate::{Features, Generator, plain_names};
use crate::oracle::Paths;
use crate::product::{Answered, Product, Served};
use crate::value::Number;
use crate::world::{Cube, FileOrder, Function, Measure, MeasureKind, World, source_tree};

/// A query that was answered correctly, and its answer.
pub type Checked = (Json, SemanticQuery, Answered);

/// The number of results with which each invariant was checked.
pub type Counts = BTreeMap<&'static str, usize>;

struct Within<'a, 'p> {
    served: &'a Served<'p>,
    world: &'a World,
    counts: &'a mut Counts,
    broken: Vec<(String, Json)>,
}

/// Checks I1, I2, I5 and I8 on one loaded world.
pub fn within(
    served: &Served<'_>,
    world: &World,
    checked: &[Checked],
    generator: &mut Generator,
    counts: &mut Counts,
) -> Vec<(String, Json)> {
    let mut within = Within { served, world, counts, broken: Vec::new() };
    // A result that the default limit has cut off is not complete.
    let is_whole = |answer: &Answered| matches!(answer, Answered::Rows { rows, .. } if rows.len() < 1_000);
    let answered: Vec<&Checked> = checked.iter().filter(|checked| is_whole(&checked.2)).collect();
    for (body, _, answer) in answered {
        match generator.random.below(8) {
            0 => within.alone(body, answer),
            1 => within.sums(body, answer),
            2 => {
                let other = generator.random.of(checked);
                within.one_more_filter(body, answer, &other.0);
            }
            3 => within.first_of_the_whole(body, answer, generator.random.below(4)),
            _ => {}
        }
    }
    within.broken
}

impl Within<'_, '_> {
    fn run(&self, body: &Json) -> Option<Answered> {
        read(body).ok().map(|query| self.served.run(&query))
    }

    fn hold(&mut self, name: &'static str, holds: bool, body: &Json) {
        *self.counts.entry(name).or_default() += 1;
        if !holds {
            self.broken.push((format!("{name} doesn't hold"), body.clone()));
        }
    }

    /// Checks I1: in a query with only the first measure, the measure has the same values.
    fn alone(&mut self, body: &Json, answer: &Answered) {
        let Answered::Rows { keys, rows, .. } = answer else { return };
        let measures = body["measures"].as_array().cloned().unwrap_or_default();
        let is_paged = ["limit", "offset"].iter().any(|key| !body[*key].is_null());
        let has_groups = !body["dimensions"].is_null() || !body["time_dimensions"].is_null();
        if measures.len() < 2 || is_paged || mentions_values(&body["filters"], self.world) {
            return;
        }
        let Some(column) = measures[0].as_str().and_then(|name| keys.iter().position(|key| key == name)) else {
            return;
        };
        let mut single = body.clone();
        single["measures"] = json!([measures[0]]);
        without(&mut single, &["metrics", "order_by"]);
        let Some(Answered::Rows { rows: alone, .. }) = self.run(&single) else {
            // A measure that is refused alone must not have an answer beside other measures.
            return self.hold("I1 a measure doesn't depend on the others", false, &single);
        };
        let metrics = body["metrics"].as_array().cloned().unwrap_or_default();
        let is_value = |key: &String| measures.iter().chain(&metrics).any(|value| value.as_str() == Some(key));
        let groups = keys.iter().position(is_value).unwrap_or(keys.len());
        // Groups are compared by equal keys, because two keys that differ slightly are two groups.
        let same = |row: &&Vec<Json>, other: &&Vec<Json>| row[..groups] == other[..groups];
        let holds = alone.iter().all(|single| {
            let found = rows.iter().find(|row| same(row, &single));
            found.is_some_and(|row| is_equal_cell(&row[column], &single[groups]))
        });
        self.hold("I1 a measure doesn't depend on the others", holds || !has_groups && alone.is_empty(), &single);
    }

    /// Checks I2: the counts and sums of the groups add up to the total.
    fn sums(&mut self, body: &Json, answer: &Answered) {
        let Answered::Rows { keys, rows, .. } = answer else { return };
        let is_paged = ["limit", "offset"].iter().any(|key| !body[*key].is_null());
        let has_groups = !body["dimensions"].is_null() || !body["time_dimensions"].is_null();
        if is_paged || !has_groups || mentions_values(&body["filters"], self.world) {
            return;
        }
        let names: Vec<&str> = body["measures"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let Some(name) = names.into_iter().find(|name| is_additive(self.world, name)) else { return };
        let Some(column) = keys.iter().position(|key| key == name) else { return };
        // Behind a to-many hop, a row counts in several groups, so the sums do not add up.
        let paths = Paths::new(self.world);
        let own = name.split('.').next().unwrap_or_default();
        let measures = body["measures"].as_array().cloned().unwrap_or_default();
        let metrics = body["metrics"].as_array().cloned().unwrap_or_default();
        let is_group = |key: &&String| !measures.iter().chain(&metrics).any(|value| value.as_str() == Some(key));
        let cubes = keys.iter().filter(is_group).filter_map(|key| key.split('.').next());
        if !cubes.into_iter().all(|cube| paths.is_to_one(own, cube)) {
            return;
        }
        let mut total = body.clone();
        total["measures"] = json!([name]);
        without(&mut total, &["metrics", "order_by", "dimensions", "fill_gaps"]);
        // The total has the ranges of the query, without its groups.
        let ranges =
            body["time_dimensions"].as_array().into_iter().flatten().filter(|time| !time["date_range"].is_null());
        let ranges = ranges.map(|time| json!({"dimension": time["dimension"], "date_range": time["date_range"]}));
        total["time_dimensions"] = ranges.collect();
        let Some(Answered::Rows { keys, rows: totals, .. }) = self.run(&total) else { return };
        let Some(alone) = keys.iter().position(|key| key == name) else { return };
        let sum = rows.iter().filter_map(|row| number(&row[column])).reduce(Number::plus);
        let wanted = totals.first().and_then(|row| row.get(alone)).and_then(number);
        let holds = match (sum, wanted) {
            (Some(sum), Some(wanted)) => is_equal_cell(&json!(sum.as_f64()), &json!(wanted.as_f64())),
            (None, Some(wanted)) => wanted.as_f64() == 0.0,
            (sum, None) => sum.is_none(),
        };
        self.hold("I2 groups sum to the total", holds, &total);
    }

    /// Checks I5: if a query has no filter on a measure, an additional filter never adds rows.
    fn one_more_filter(&mut self, body: &Json, answer: &Answered, other: &Json) {
        let Answered::Rows { total_rows: Some(before), .. } = answer else { return };
        // An additional filter may lower a measure, so that the group passes a filter on the measure that it failed
        // before.
        if mentions_values(&body["filters"], self.world) {
            return;
        }
        let Some(filter) = other["filters"].as_array().and_then(|filters| filters.first()) else { return };
        // A running total adds the steps of its axis, even if only a filter names the running total.
        let runs = |cube: &Cube| cube.measures.iter().any(Measure::runs);
        if mentions_values(filter, self.world) && self.world.cubes.iter().any(runs) {
            return;
        }
        let mut filtered = body.clone();
        let mut filters = body["filters"].as_array().cloned().unwrap_or_default();
        filters.push(filter.clone());
        filtered["filters"] = json!(filters);
        if let Some(Answered::Rows { total_rows: Some(after), .. }) = self.run(&filtered) {
            self.hold("I5 a filter adds no rows", after <= *before, &filtered);
        }
    }

    /// Checks I8: a page contains the first rows of the whole result.
    fn first_of_the_whole(&mut self, body: &Json, answer: &Answered, limit: usize) {
        let Answered::Rows { rows, .. } = answer else { return };
        if ["limit", "offset"].iter().any(|key| !body[*key].is_null()) {
            return;
        }
        let mut page = body.clone();
        page["limit"] = json!(limit);
        page["offset"] = json!(1);
        let Some(Answered::Rows { rows: found, .. }) = self.run(&page) else {
            return self.hold("I8 a page is a part of the whole", false, &page);
        };
        let wanted: Vec<&Vec<Json>> = rows.iter().skip(1).take(limit).collect();
        let holds = found.len() == wanted.len() && found.iter().zip(wanted).all(|(a, b)| is_equal_row(a, b));
        self.hold("I8 a page is a part of the whole", holds, &page);
    }
}

/// Checks I10 and I11: answers are the same if the world's files have another order, and if its names are plain.
///
/// # Errors
/// The changed world cannot be loaded.
pub fn between(
    product: &Product,
    world: &World,
    seed: u64,
    features: Features,
    checked: &[Checked],
    counts: &mut Counts,
) -> Result<Vec<(String, Json)>> {
    let mut broken = Vec::new();
    let mut hold = |name: &'static str, served: &Served<'_>| {
        for (body, query, answer) in checked {
            *counts.entry(name).or_default() += 1;
            if !is_equal(&served.run(query), answer) {
                broken.push((format!("{name} doesn't hold"), body.clone()));
            }
        }
    };
    match seed % 10 {
        0 => hold("I10 file order doesn't matter", &product.serve(world, &source_tree(world, FileOrder::Reversed))?),
        1 if features.hostile_names => {
            let plain = plain_names(world);
            let served = product.serve(&plain, &source_tree(&plain, FileOrder::AsDescribed))?;
            hold("I11 hostile names change nothing", &served);
        }
        _ => {}
    }
    Ok(broken)
}

fn without(body: &mut Json, keys: &[&str]) {
    if let Json::Object(map) = body {
        map.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

/// Returns whether a filter uses a measure or metric, so that it may remove groups.
fn mentions_values(filters: &Json, world: &World) -> bool {
    match filters {
        Json::Array(all) => all.iter().any(|filter| mentions_values(filter, world)),
        Json::Object(map) => map.iter().any(|(key, value)| match (key.as_str(), value) {
            ("member", Json::String(member)) => match member.split_once('.') {
                Some((cube, name)) => world.behind(cube).is_some_and(|cube| cube.measure(name).is_some()),
                None => true,
            },
            (_, value) => mentions_values(value, world),
        }),
        _ => false,
    }
}

fn is_additive(world: &World, measure: &str) -> bool {
    let Some((cube, name)) = measure.split_once('.') else { return false };
    let kind = world.behind(cube).and_then(|cube| cube.measure(name)).map(|measure| &measure.kind);
    matches!(kind, Some(MeasureKind::Aggregate(a)) if matches!(a.function, Function::Count | Function::Sum))
}

fn number(cell: &Json) -> Option<Number> {
    match cell {
        Json::Number(number) => {
            let text = number.to_string();
            Number::parse(&text).or_else(|| text.parse().ok().map(Number::Double))
        }
        _ => None,
    }
}
