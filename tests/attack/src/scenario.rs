//! A project, with its data for both sides.
//!
//! In: a seed. Out: the files of two servers that the caller must not be able to distinguish, and worlds for the
//! generator of queries. The oracle's generator creates cubes, rows, members and joins. This module adds the parts that
//! attacks need: failing members (`canary`), cubes over protected tables (`derived`), files (`people`), policies
//! (`policies`), and the data of the other side (`sides`).

mod canary;
mod derived;
mod people;
mod policies;
mod sides;

use serde_json::{Value as Json, json};
use terrane_oracle_tests::generate::{Features, Generator, world};
use terrane_oracle_tests::random::Random;
use terrane_oracle_tests::world::{Cell, Cube, FileOrder, World, source_tree, statements};

pub(crate) use canary::ERROR;
pub use people::SECRET;
pub(crate) use people::WRITER_NAMES;
pub use sides::CANARY;

use crate::server::Files;
use derived::Derived;
use policies::Extras;

/// The schema of table names in the oracle's worlds.
const SCHEMA: &str = "\"Sch\"\"éma; --\".";
const MAX_SEEDS: u64 = 50;

/// A way to make the sides differ for the caller, to test that the harness finds differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sabotage {
    #[default]
    None,
    /// The project has no policies.
    NoPolicies,
    /// Values that the caller sees differ as well.
    VisibleValues,
}

/// Constructs that a run may omit, to find faults other than the known ones.
#[derive(Debug, Clone, Copy)]
pub struct Constructs {
    /// Conditions (`when`) that compare an attribute with a value of a different type than the caller's.
    pub typed_conditions: bool,
    /// Policies on `"*"`.
    pub star: bool,
    /// A cube over a file of the project.
    pub files: bool,
    /// Cubes over tables that another cube reads.
    pub derived: bool,
    /// Registrations by a writer.
    pub registrations: bool,
}

impl Default for Constructs {
    fn default() -> Self {
        Constructs { typed_conditions: true, star: true, files: true, derived: true, registrations: true }
    }
}

/// The projects and data of two servers.
#[derive(Debug)]
pub struct Scenario {
    /// The files that both sides have.
    pub files: Files,
    pub left: Files,
    pub right: Files,
    /// The cubes with the rows that the caller sees.
    pub seen: World,
    /// The cubes with all rows of the left side.
    pub whole: World,
    /// The names over which a writer may try to register a cube, with the columns behind each name.
    pub targets: Vec<Target>,
    /// The number of hidden rows of the left side, and the number of masked values that differ between the sides.
    pub differences: (usize, usize),
}

/// A relation over which a writer tries to register a cube.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: String,
    pub columns: Vec<String>,
}

impl Scenario {
    /// Generates the scenario of a seed.
    pub fn new(seed: u64, constructs: Constructs, sabotage: Sabotage) -> Self {
        // A world without hidden rows or values proves nothing. The world of the next seed replaces it.
        let seeds = (0..MAX_SEEDS).map(|more| seed.wrapping_mul(1_000_003).wrapping_add(more));
        let mut drafts = seeds.map(|seed| Draft::new(seed, constructs));
        let first = drafts.find(|draft| policies::hides(&draft.world));
        first.unwrap_or_else(|| Draft::new(seed, constructs)).scenario(sabotage)
    }
}

/// A tagged world from which a scenario is built.
struct Draft {
    random: Random,
    constructs: Constructs,
    is_plain: bool,
    world: World,
    extras: Extras,
}

impl Draft {
    fn new(seed: u64, constructs: Constructs) -> Self {
        let mut random = Random::new(seed ^ 0x5EED);
        let is_plain = random.chance(60);
        let features = Features { hostile_names: !is_plain, ..Features::default() };
        let mut generator = Generator::new(seed, features);
        let mut world = world(&mut generator);
        remove_templates(&mut world);
        let extras = policies::add(&mut generator, &mut world, constructs.star, is_plain);
        // A policy on all cubes would filter the rows of the file's cube a second time.
        if constructs.files && !extras.has_star_filter() && random.chance(50) {
            people::add(&mut world, &mut random);
        }
        sides::add_tags(&mut world);
        Draft { random, constructs, is_plain, world, extras }
    }

    fn scenario(mut self, sabotage: Sabotage) -> Scenario {
        let mut left = self.world.clone();
        let mut right = sides::other_side(&left, &mut self.random);
        if sabotage == Sabotage::VisibleValues {
            sides::change_visible_value(&mut right, &mut self.random);
        }
        sides::replace_tags(&mut left, "left");
        sides::replace_tags(&mut right, "right");
        let differences = sides::differences(&left, &right);
        let table = |cube: &Cube| table_name(cube, self.is_plain);
        let mut derived = derived::derived_cubes(&left, &mut self.random, table);
        if !self.constructs.derived {
            derived.clear();
        }
        let whole = with_attack_members(&left, &left, &derived);
        let seen = with_attack_members(&left.seen(), &left, &derived);
        let mut files = self.project_files(&whole, &derived);
        if sabotage == Sabotage::NoPolicies {
            files.remove("policies/all.yml");
        }
        Scenario {
            targets: self.targets(&left),
            left: side_files(&left, "left", self.is_plain),
            right: side_files(&right, "right", self.is_plain),
            files,
            seen,
            whole,
            differences,
        }
    }

    fn project_files(&mut self, whole: &World, derived: &[Derived]) -> Files {
        let mut files = Files::new();
        for (path, text) in &source_tree(whole, FileOrder::AsDescribed).files {
            let Ok(mut json) = serde_json::from_str::<Json>(text) else { continue };
            if let Some(all) = json["policies"].as_array() {
                json["policies"] = json!(self.policies(all));
            }
            let cubes = json.get_mut("cubes").and_then(Json::as_array_mut);
            for cube in cubes.into_iter().flatten() {
                self.write_cube(cube, derived);
            }
            files.insert(path.to_string(), json.to_string());
        }
        files.extend(derived.iter().flat_map(|derived| derived.files.clone()));
        files
    }

    fn policies(&mut self, all: &[Json]) -> Vec<Json> {
        policies::printed(all, &self.world, &self.extras, self.constructs.typed_conditions, &mut self.random)
    }

    fn write_cube(&self, cube: &mut Json, derived: &[Derived]) {
        canary::write_members(cube);
        for key in ["sql", "sql_table"] {
            if let Some(Json::String(text)) = cube.get_mut(key) {
                *text = with_schema(text, self.is_plain);
            }
        }
        let name = cube["name"].as_str().unwrap_or_default().to_owned();
        if name == "people" {
            cube["sql_table"] = json!(people::TABLE);
        }
        let Some(derived) = derived.iter().find(|derived| derived.cube.name == name) else { return };
        if let (Json::Object(cube), Json::Object(relation)) = (cube, &derived.relation) {
            cube.remove("sql");
            cube.remove("sql_table");
            cube.extend(relation.clone());
        }
    }

    fn targets(&self, world: &World) -> Vec<Target> {
        let mut targets = Vec::new();
        let mut add = |name: String, columns: &[String]| targets.push(Target { name, columns: columns.to_vec() });
        for cube in &world.cubes {
            let columns: Vec<String> = cube.columns.iter().map(|column| column.name.clone()).collect();
            let (table, quoted) = (&cube.table, table_name(cube, self.is_plain));
            for name in [
                table.clone(),
                table.clone(),
                table.clone(),
                table.to_uppercase(),
                format!("main.{table}"),
                format!("memory.main.{table}"),
                format!("{table} AS other"),
                format!("(SELECT * FROM {quoted})"),
                format!("query_table('{table}')"),
                format!("query('SELECT * FROM {table}')"),
                cube.name.clone(),
                quoted,
            ] {
                add(name, &columns);
            }
        }
        let of_models: Vec<String> =
            world.cubes.iter().flat_map(|cube| &cube.columns).map(|c| c.name.clone()).collect();
        for number in 0..3 {
            add(format!("analytics.model{number}"), &of_models);
            add(format!("model{number}"), &of_models);
        }
        let of_files = ["id", "name", "region", "secret", "content"].map(str::to_owned);
        for name in WRITER_NAMES {
            add((*name).to_owned(), &of_files);
        }
        let of_system = ["table_name", "sql", "name", "value", "comment"].map(str::to_owned);
        for name in
            ["information_schema.tables", "duckdb_tables", "sqlite_master", "main.sqlite_master", "pg_catalog.pg_class"]
        {
            add(name.to_owned(), &of_system);
        }
        targets
    }
}

/// Replaces strings with braces in the data, because the data is part of the settings, where Jinja would render them.
fn remove_templates(world: &mut World) {
    for cell in world.cubes.iter_mut().flat_map(|cube| cube.rows.iter_mut().flatten()) {
        if matches!(cell, Cell::Text(text) if text.contains("{{")) {
            *cell = Cell::Text("braces".to_owned());
        }
    }
}

fn with_schema(text: &str, is_plain: bool) -> String {
    if is_plain { text.replace(SCHEMA, "") } else { text.to_owned() }
}

fn table_name(cube: &Cube, is_plain: bool) -> String {
    with_schema(&format!("{SCHEMA}\"{}\"", cube.table.replace('"', "\"\"")), is_plain)
}

/// Returns the served cubes: the cubes of `rows` with added members whose SQL fails, and the derived cubes with the
/// rows of their base cubes.
fn with_attack_members(rows: &World, origins: &World, derived: &[Derived]) -> World {
    let mut world = rows.clone();
    world.policies = origins.policies.clone();
    world.cubes.iter_mut().filter(|cube| cube.name != "people").for_each(canary::add_members);
    for derived in derived {
        let origin = rows.cube(&derived.origin);
        let rows = origin.map(|origin| origin.rows.as_slice()).unwrap_or_default();
        world.cubes.push(derived::with_rows(&derived.cube, rows));
    }
    world
}

fn side_files(world: &World, side: &str, is_plain: bool) -> Files {
    let mut in_warehouse = world.clone();
    in_warehouse.cubes.retain(|cube| cube.name != "people");
    let all = statements(&in_warehouse);
    let skipped = if is_plain { 2 } else { 0 };
    let init: Vec<String> = all.iter().skip(skipped).map(|text| with_schema(text, is_plain)).collect();
    let settings = json!({"name": "attack", "warehouse": {"type": "duckdb", "init": init}});
    let people = world.cubes.iter().find(|cube| cube.name == "people");
    let mut files = people::files(people, side);
    files.insert("service_project.yml".to_owned(), settings.to_string());
    files
}
