//! Generates pre-aggregations over existing members, and queries that one of them could answer.

use serde_json::{Map, Value as Json, json};

use super::Generator;
use crate::oracle::Paths;
use crate::world::{
    Aggregate, Cell, Column, ColumnType, Comparison, Cube, Dimension, DimensionKind, Expr, Function, Join, MeasureKind,
    Relationship, Rollup, RollupTime, Segment, TableState, World,
};

const STEPS: &[&str] = &[
    "second", "minute", "hour", "hour", "hour", "hour", "day", "day", "day", "week", "week", "month", "quarter", "year",
];
const COARSER: &[&str] = &["month", "quarter", "year", "year"];
/// The steps of queries of weeks. Of all coarser steps, months divide the most weeks.
const COARSER_THAN_WEEKS: &[&str] = &["month", "month", "month", "quarter", "year"];
const ZONES: &[&str] = &["UTC", "UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Africa/Cairo"];

/// Returns the pre-aggregations of a world. One world in five has none.
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
        let has_mask = cube.dimensions.iter().any(|dimension| world.mask(&cube.name, &dimension.name).is_some());
        if has_mask || generator.random.chance(20) {
            rollups.push(small_rollup(generator, world, cube, format!("rollup{}", rollups.len())));
        }
    }
    rollups
}

/// Returns a cube whose last rows arrive late. The cube has pre-aggregations, and no other cube joins it.
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

/// Adds segments that read a cube, although the rows of a pre-aggregation reach this cube by another path. Also adds a
/// pre-aggregation that stores the columns of these segments.
pub fn crossing_segments(generator: &mut Generator, world: &mut World) {
    if world.rollups.is_empty() {
        return;
    }
    if triangles(world).is_empty() && generator.random.chance(60) {
        add_triangle(generator, world);
    }
    for (root, middle, end) in triangles(world) {
        let of = &world.cubes[end];
        let is_stored = |dimension: &&Dimension| {
            matches!(dimension.sql, Expr::Column { cube: None, .. }) && dimension.kind != DimensionKind::Time
        };
        let stored: Vec<&Dimension> = of.dimensions.iter().filter(is_stored).collect();
        if stored.is_empty() || !generator.random.chance(70) {
            continue;
        }
        let dimension = *generator.random.of(&stored);
        let Expr::Column { column, .. } = dimension.sql else { continue };
        let read = Box::new(Expr::Column { cube: Some(of.name.clone()), column });
        let values: Vec<Cell> = of.rows.iter().map(|row| row[column].clone()).collect();
        let sql = match values.iter().find(|cell| is_plain_value(cell)) {
            Some(value) if generator.random.chance(70) => {
                Expr::Compare(Comparison::Equal, read, Box::new(Expr::Literal(value.clone())))
            }
            _ => Expr::IsNull(read),
        };
        let dimensions = vec![format!("{}.{}", of.name, dimension.name)];
        let cube = &world.cubes[root];
        let measures = cube.measures.iter().map(|measure| measure.name.clone()).collect();
        let number = world.rollups.len();
        let rollup = bare(cube, format!("rollup{number}"), measures, dimensions);
        world.cubes[middle].segments.push(Segment { name: format!("crossing{number}"), sql });
        world.rollups.push(rollup);
    }
}

/// Joins two cubes that a third cube joins, so that the third one reaches one of them by two paths.
fn add_triangle(generator: &mut Generator, world: &mut World) {
    let position = |name: &str| world.cubes.iter().position(|cube| cube.name == name);
    let mut pairs = Vec::new();
    for cube in &world.cubes {
        let joins = cube.joins.iter().filter(|join| join.relationship.is_to_one() && join.cube.is_none());
        let joined: Vec<usize> = joins.filter_map(|join| position(&join.name)).collect();
        for middle in &joined {
            let ends = joined.iter().filter(|end| *end != middle && world.cubes[**end].name != cube.name);
            pairs.extend(ends.filter(|_| world.cubes[*middle].name != cube.name).map(|end| (*middle, *end)));
        }
    }
    if pairs.is_empty() {
        return;
    }
    let (middle, end) = *generator.random.of(&pairs);
    let name = world.cubes[end].name.clone();
    let cube = &mut world.cubes[middle];
    if cube.joins.iter().any(|join| join.name == name) {
        return;
    }
    let left = cube.columns.len();
    cube.columns.push(Column { name: "fk crossing".to_owned(), ty: ColumnType::Small });
    for row in &mut cube.rows {
        row.push(Cell::Int(generator.random.between(0, 11)));
    }
    let relationship = Relationship::ManyToOne;
    cube.joins.push(Join { name, cube: None, relationship, left, right: 0, is_enforced: false });
}

/// Returns whether a value can be written in an author's SQL without a change by braces or rounding.
fn is_plain_value(cell: &Cell) -> bool {
    match cell {
        Cell::Text(text) => !text.contains('{'),
        Cell::Bool(_) | Cell::Int(_) | Cell::Cents(_) => true,
        Cell::Null | Cell::Double(_) | Cell::Day(_) | Cell::Micros(_) => false,
    }
}

/// Returns triples of cubes: the first joins the second and the third, and the second joins the third.
fn triangles(world: &World) -> Vec<(usize, usize, usize)> {
    let joined = |from: usize| -> Vec<usize> {
        let joins = world.cubes[from].joins.iter().filter(|join| join.relationship.is_to_one() && join.cube.is_none());
        joins.filter_map(|join| world.cubes.iter().position(|cube| cube.name == join.name)).collect()
    };
    let mut found = Vec::new();
    for root in 0..world.cubes.len() {
        let direct = joined(root);
        for middle in direct.iter().filter(|middle| **middle != root) {
            let ends = joined(*middle).into_iter().filter(|end| direct.contains(end) && end != middle && *end != root);
            found.extend(ends.map(|end| (root, *middle, end)));
        }
    }
    found
}

/// Returns a query for the groups of a pre-aggregation, which other generated queries seldom have. Most calls return
/// `None`.
pub fn query_of_rollup(generator: &mut Generator, world: &World) -> Option<Json> {
    if world.rollups.is_empty() || !generator.random.chance(30) {
        return None;
    }
    // Pre-aggregations without a time have the fewest conditions for a match, so they test the other conditions best.
    // Weeks have a condition of their own, and are rare.
    let has_weeks = |rollup: &&Rollup| rollup.time.as_ref().is_some_and(|time| time.granularity == "week");
    let plain: Vec<&Rollup> = world.rollups.iter().filter(|rollup| rollup.time.is_none()).collect();
    let weeks: Vec<&Rollup> = world.rollups.iter().filter(has_weeks).collect();
    let rollup = match generator.random.below(10) {
        0..2 if !weeks.is_empty() => *generator.random.of(&weeks),
        2..7 if !plain.is_empty() => *generator.random.of(&plain),
        _ => generator.random.of(&world.rollups),
    };
    let has_weeks = has_weeks(&rollup);
    let cube = world.cube(&rollup.cube)?;
    let mut query = Map::new();
    let is_distinct = |name: &&String| {
        let kind = cube.measure(name).map(|measure| &measure.kind);
        matches!(kind, Some(MeasureKind::Aggregate(Aggregate { function: Function::CountDistinct, .. })))
    };
    let distinct: Vec<String> = rollup.measures.iter().filter(is_distinct).cloned().collect();
    let from = if !distinct.is_empty() && generator.random.chance(40) { &distinct } else { &rollup.measures };
    let count = 1 + generator.random.below(3);
    let measures = generator.random.some(from, count);
    let measures: Vec<String> = measures.iter().map(|name| format!("{}.{name}", cube.name)).collect();
    query.insert("measures".to_owned(), json!(measures));
    let takes_all = !has_weeks && generator.random.chance(70);
    let mut dimensions = Vec::new();
    for name in &rollup.dimensions {
        if takes_all || generator.random.chance(if has_weeks { 15 } else { 50 }) {
            dimensions.push(if name.contains('.') { name.clone() } else { format!("{}.{name}", cube.name) });
        }
    }
    query.insert("dimensions".to_owned(), json!(dimensions));
    if let Some(time) = rollup.time.as_ref().filter(|time| cube.dimension(&time.dimension).is_some())
        && (takes_all || has_weeks || generator.random.chance(50))
    {
        let member = format!("{}.{}", cube.name, time.dimension);
        let (percent, coarser) = match time.granularity.as_str() {
            "week" => (30, COARSER_THAN_WEEKS),
            _ => (60, COARSER),
        };
        let granularity = match generator.random.chance(percent) {
            true => time.granularity.as_str(),
            false => *generator.random.of(coarser),
        };
        query.insert("time_dimensions".to_owned(), json!([{"dimension": member, "granularity": granularity}]));
        query.insert("timezone".to_owned(), json!(time.zone));
    }
    let joined = cube.joins.iter().filter(|join| join.relationship.is_to_one() && join.cube.is_none());
    let cubes = joined.filter_map(|join| world.cube(&join.name)).chain([cube]);
    let segments = cubes.flat_map(|of| of.segments.iter().map(|segment| format!("{}.{}", of.name, segment.name)));
    let segments: Vec<String> = segments.collect();
    let crossing: Vec<String> = segments.iter().filter(|name| name.contains(".crossing")).cloned().collect();
    let segments = if !crossing.is_empty() && generator.random.chance(60) { &crossing } else { &segments };
    if !segments.is_empty() && generator.random.chance(50) {
        query.insert("segments".to_owned(), json!([generator.random.of(segments)]));
    }
    Some(Json::Object(query))
}

/// Sets the time zone of some queries, mostly to that of a pre-aggregation, because a random zone seldom equals one.
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

fn bare(cube: &Cube, name: String, measures: Vec<String>, dimensions: Vec<String>) -> Rollup {
    Rollup {
        cube: cube.name.clone(),
        name,
        measures,
        dimensions,
        segments: Vec::new(),
        filters: Vec::new(),
        time: None,
        state: TableState::Current,
    }
}

/// Returns a pre-aggregation by one or two dimensions, preferably masked ones, so that its groups have several rows.
fn small_rollup(generator: &mut Generator, world: &World, cube: &Cube, name: String) -> Rollup {
    let is_group = |dimension: &&Dimension| !dimension.primary_key && dimension.kind != DimensionKind::Time;
    let all: Vec<&Dimension> = cube.dimensions.iter().filter(is_group).collect();
    let masked: Vec<&Dimension> =
        all.iter().copied().filter(|dimension| world.mask(&cube.name, &dimension.name).is_some()).collect();
    let from = if !masked.is_empty() && generator.random.chance(80) { &masked } else { &all };
    let count = 1 + generator.random.below(2);
    let dimensions = generator.random.some(from, count).iter().map(|dimension| dimension.name.clone()).collect();
    let measures = cube.measures.iter().map(|measure| measure.name.clone()).collect();
    bare(cube, name, measures, dimensions)
}

fn rollup(generator: &mut Generator, world: &World, paths: &Paths<'_>, cube: &Cube, name: String) -> Rollup {
    let is_whole = generator.random.chance(50);
    let likely = |generator: &mut Generator| is_whole || generator.random.chance(80);
    let measures = cube.measures.iter().filter(|_| likely(generator)).map(|measure| measure.name.clone()).collect();
    let is_plain = |name: &str| !name.contains('.');
    let own = cube.dimensions.iter().filter(|dimension| is_plain(&dimension.name));
    let mut dimensions: Vec<String> = Vec::new();
    for dimension in own {
        // Times are mostly stored by granularity, seldom as dimensions.
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
