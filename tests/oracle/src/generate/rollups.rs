//! Pre-aggregations over the members that are there: most of them could answer some queries.

use serde_json::Value as Json;

use super::Generator;
use crate::oracle::Paths;
use crate::world::{Cube, DimensionKind, Relationship, Rollup, RollupTime, TableState, World};

const STEPS: &[&str] =
    &["second", "minute", "hour", "hour", "hour", "hour", "day", "day", "day", "week", "month", "quarter", "year"];
const COARSER: &[&str] = &["month", "quarter", "year", "year"];
const ZONES: &[&str] = &["UTC", "UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Africa/Cairo"];

/// The pre-aggregations of a world; of many worlds none.
pub fn rollups(generator: &mut Generator, world: &World) -> Vec<Rollup> {
    let mut rollups = Vec::new();
    if generator.random.chance(20) {
        return rollups;
    }
    let paths = Paths::new(world);
    for cube in &world.cubes {
        for _ in 0..1 + generator.random.below(3) {
            let name = format!("rollup{}", rollups.len());
            rollups.push(rollup(generator, world, &paths, cube, name));
        }
    }
    rollups
}

/// A cube whose last rows arrive late, if one of those with pre-aggregations is not joined by others.
pub fn late_cube(generator: &mut Generator, world: &World) -> Option<String> {
    if !generator.random.chance(25) {
        return None;
    }
    let is_joined = |cube: &Cube| {
        let mut joins = world.cubes.iter().flat_map(|other| &other.joins);
        joins.any(|join| {
            join.relationship != Relationship::OneToMany && *join.cube.as_ref().unwrap_or(&join.name) == cube.name
        })
    };
    let has_rollup = |cube: &Cube| world.rollups.iter().any(|rollup| rollup.cube == cube.name);
    let cubes: Vec<&Cube> = world.cubes.iter().filter(|cube| has_rollup(cube) && !is_joined(cube)).collect();
    (!cubes.is_empty()).then(|| generator.random.of(&cubes).name.clone())
}

/// Sets the zone of a query, which its own generator seldom makes that of a pre-aggregation.
pub fn zone_of_query(generator: &mut Generator, world: &World, query: &mut Json) {
    if world.rollups.is_empty() || !generator.random.chance(35) {
        return;
    }
    let zones: Vec<&str> = world.rollups.iter().filter_map(|rollup| Some(&*rollup.time.as_ref()?.zone)).collect();
    let zone = if zones.is_empty() || generator.random.chance(40) {
        *generator.random.of(&["Asia/Kolkata", "Asia/Kathmandu", "Australia/Adelaide", "America/St_Johns"])
    } else {
        *generator.random.of(&zones)
    };
    query["timezone"] = zone.into();
}

fn rollup(generator: &mut Generator, world: &World, paths: &Paths<'_>, cube: &Cube, name: String) -> Rollup {
    let is_whole = generator.random.chance(50);
    let likely = |generator: &mut Generator| is_whole || generator.random.chance(80);
    let measures = cube.measures.iter().filter(|_| likely(generator)).map(|measure| measure.name.clone()).collect();
    let is_plain = |name: &str| !name.contains('.');
    let own = cube.dimensions.iter().filter(|dimension| is_plain(&dimension.name));
    let mut dimensions: Vec<String> = Vec::new();
    for dimension in own {
        // Times are stored as steps.
        let percent = if dimension.kind == DimensionKind::Time { 8 } else { 60 + 35 * usize::from(is_whole) };
        if generator.random.chance(percent) {
            dimensions.push(dimension.name.clone());
        }
    }
    for join in cube.joins.iter().filter(|join| join.relationship != Relationship::OneToMany) {
        let Some(of) = world.behind(&join.name) else { continue };
        if !generator.random.chance(50) || !paths.is_to_one(&cube.name, &join.name) || !is_plain(&join.name) {
            continue;
        }
        for dimension in of.dimensions.iter().filter(|dimension| is_plain(&dimension.name)) {
            if generator.random.chance(60) {
                dimensions.push(format!("{}.{}", join.name, dimension.name));
            }
        }
    }
    let (mut segments, mut filters) = (Vec::new(), Vec::new());
    for segment in &cube.segments {
        match generator.random.below(10) {
            0..5 => segments.push(segment.name.clone()),
            5 => filters.push(segment.name.clone()),
            _ => {}
        }
    }
    let time = time(generator, cube);
    let state = match generator.random.below(20) {
        0 => TableState::OtherDefinition,
        1 => TableState::Old,
        2 => TableState::Twice,
        _ => TableState::Current,
    };
    Rollup { cube: cube.name.clone(), name, measures, dimensions, segments, filters, time, state }
}

fn time(generator: &mut Generator, cube: &Cube) -> Option<RollupTime> {
    let times: Vec<_> = cube.dimensions.iter().filter(|dimension| dimension.kind == DimensionKind::Time).collect();
    if times.is_empty() || generator.random.chance(10) {
        return None;
    }
    let dimension = generator.random.of(&times).name.clone();
    let granularity = (*generator.random.of(STEPS)).to_owned();
    let is_coarse = |partition: &&str| match granularity.as_str() {
        "year" => *partition == "year",
        "quarter" => *partition != "month",
        _ => true,
    };
    let partition = (*generator.random.of(COARSER)).to_owned();
    let partition = Some(partition).filter(|partition| is_coarse(&partition.as_str()) && generator.random.chance(65));
    let build_range = (partition.is_some() && generator.random.chance(50)).then(|| {
        let start = *generator.random.of(&["2018-02-18", "2020-12-30", "2024-01-01", "2024-03-10"]);
        let end = *generator.random.of(&["2024-10-27", "2024-12-31", "2024-03-31", "2024-11-03"]);
        [start.to_owned(), end.to_owned()]
    });
    let missing = (partition.is_some() && generator.random.chance(40)).then(|| 2 + generator.random.below(4));
    Some(RollupTime {
        dimension,
        granularity,
        partition,
        zone: (*generator.random.of(ZONES)).to_owned(),
        build_range,
        missing,
    })
}
