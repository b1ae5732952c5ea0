//! A project that is read and built again after a change comes to the same as one that is read for the first
//! time: definitions, model, and everything that is told, with places. And what hasn't changed is not done again.
//!
//! Changes are drawn by a fixed seed, on sound projects and on every seeded mistake: files edited, deleted, renamed,
//! taken from other versions; members, joins, `extends`, settings, models, sources and policies among them.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[allow(dead_code, reason = "what the cases tell is another test's")]
#[path = "seeded/case.rs"]
mod case;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use terrane_compiler::model::{ColumnTypes, CubeId, DimensionId, KeptCubes, Model, TypedCubes, build, build_again};
use terrane_compiler::project::{
    Built, Definitions, Inputs, KeptFiles, RegisteredCube, SourceTree, Work, read, read_again,
};
use terrane_compiler::types::LogicalType;
use terrane_golden_tests::large_project::{inputs, large_cube, large_project};

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }
}

/// A project that is loaded again and again.
#[derive(Default)]
struct Loaded {
    files: KeptFiles,
    cubes: KeptCubes,
    typed: TypedCubes,
}

/// Half of the members have types, some of them others than before.
fn types(model: &Model, salt: u64) -> ColumnTypes {
    let mut types = ColumnTypes::default();
    for (cube, of) in (0u32..).map(CubeId).zip(&model.cubes) {
        for (index, dimension) in (0u32..).zip(&of.dimensions) {
            let ty = match (dimension.name.len() as u64 + salt) % 5 {
                0 => LogicalType::Date,
                1 => LogicalType::Text,
                2 => LogicalType::Integer,
                _ => continue,
            };
            types.dimensions.insert(DimensionId { cube, index }, ty);
        }
    }
    types
}

/// Some models were built as they are, and some of definitions that are no more.
fn built(definitions: &Definitions, salt: u64) -> Built {
    let mut built = Built { is_unknown: salt % 7 == 6, ..Built::default() };
    for (model, at) in definitions.models.iter().zip(salt..) {
        match (at % 4, model.built_as()) {
            (1, Some(_)) => drop(built.current.insert(Arc::clone(&model.name.value))),
            (2, Some((schema, name))) => drop(built.outdated.insert(format!("{schema}.{name}"))),
            _ => {}
        }
    }
    built
}

/// What of two models has to be the same; what is computed at first use is made of it.
fn assert_same(what: &str, again: &(Definitions, Model), cold: &(Definitions, Model)) {
    assert!(again.0 == cold.0, "{what}: definitions\n{:#?}\n{:#?}", again.0, cold.0);
    let (again, cold) = (&again.1, &cold.1);
    assert_eq!(again.project, cold.project, "{what}");
    assert_eq!(again.cubes.len(), cold.cubes.len(), "{what}");
    for (again, cold) in again.cubes.iter().zip(&cold.cubes) {
        assert!(again == cold, "{what}: cube {}\n{again:#?}\n{cold:#?}", cold.name);
        assert!(again.id == cold.id);
    }
    assert_eq!(again.metrics, cold.metrics, "{what}");
    assert_eq!(again.policies, cold.policies, "{what}");
    for cube in &cold.cubes {
        assert_eq!(again.cube_named(&cube.name).map(|cube| cube.id), Some(cube.id), "{what}");
        assert_eq!(again.reach(cube.id).order, cold.reach(cube.id).order, "{what}");
        assert_eq!(again.ties(cube.id), cold.ties(cube.id), "{what}");
    }
    for metric in &cold.metrics {
        assert_eq!(again.metric_named(&metric.name), cold.metric_named(&metric.name), "{what}");
    }
}

impl Loaded {
    /// Loads the tree as it is now, and holds the outcome against a first load.
    fn load(&mut self, what: &str, tree: &SourceTree, inputs: &Inputs, salt: u64) {
        let (mut definitions, told, files) = read_again(tree, inputs, &self.files);
        definitions.built = built(&definitions, salt);
        let (model, more, cubes) = build_again(&definitions, &self.cubes);
        let (mut cold_definitions, cold_told) = read(tree, inputs);
        cold_definitions.built = built(&cold_definitions, salt);
        let (cold_model, cold_more) = build(&cold_definitions);
        assert_eq!(told, cold_told, "{what}: told while reading");
        assert_eq!(more, cold_more, "{what}: told while building");
        let (again, cold) = ((definitions, model), (cold_definitions, cold_model));
        assert_same(what, &again, &cold);
        let types = types(&cold.1, salt);
        let plain = again.1.cubes.clone();
        let again = (again.0, again.1.with_types_again(&types, &self.typed));
        let cold = (cold.0, cold.1.with_types(&types));
        assert_same(&format!("{what}, with types"), &again, &cold);
        let typed = TypedCubes::of(plain, &again.1);
        *self = Loaded { files, cubes, typed };
    }
}

fn duckdb() -> Inputs {
    Inputs { warehouse: "duckdb".into(), ..Inputs::default() }
}

fn folder(root: &Path) -> SourceTree {
    fn add(root: &Path, folder: &Path, tree: &mut SourceTree) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let is_text = path.extension().is_some_and(|ending| ending == "yml" || ending == "sql");
            if path.is_dir() {
                add(root, &path, tree);
            } else if is_text {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
                tree.files.insert(name.into(), fs::read_to_string(&path).unwrap().into());
            }
        }
    }
    let mut tree = SourceTree::default();
    add(root, root, &mut tree);
    tree
}

/// A project whose cubes speak of one another in every way that there is.
fn entangled() -> SourceTree {
    let files = [
        ("service_project.yml", "name: a\nvars: {flag: 1, limit: 10}\nmodels: {materialization: view}\n"),
        ("sources/raw.yml", "sources: [{name: raw, schema: raw, tables: [orders, people, days]}]\n"),
        ("models/base.sql", "SELECT * FROM {{ source('raw', 'orders') }} WHERE n < {{ var('limit') }}\n"),
        ("models/paid.sql", "SELECT * FROM {{ ref('base') }} WHERE paid\n"),
        ("models/plain.sql", "SELECT 1 AS one\n"),
        (
            "cubes/base.yml",
            "cubes:\n  - name: base\n    sql_table: raw.base\n    dimensions:\n      - {name: id, type: number, sql: id, \
             primary_key: true}\n      - {name: at, type: time, sql: at}\n    measures:\n      - {name: count, type: count}\n",
        ),
        (
            "cubes/orders.yml",
            "cubes:\n  - name: orders\n    extends: base\n    sql: SELECT * FROM {{ ref('paid') }}\n    joins:\n      - \
             {name: people, relationship: many_to_one, sql: \"{orders}.who = {people}.id\"}\n      - {name: giver, cube: \
             people, relationship: many_to_one, sql: \"{orders}.giver = {giver}.id\"}\n    dimensions:\n      - {name: city, \
             type: string, sql: \"{people.city}\"}\n      - {name: nick, type: string, sql: \"UPPER({giver}.nick)\"}\n      - \
             {name: flag, type: string, sql: \"CASE WHEN {{ var('flag') }} = 1 THEN {city} END\"}\n    measures:\n      - \
             {name: total, type: sum, sql: amount, filters: [{sql: \"{people.city} = 'Rome'\"}]}\n      - {name: average, \
             type: number, sql: \"{total} / {count}\"}\n",
        ),
        (
            "cubes/people.yml",
            "cubes:\n  - name: people\n    sql_table: raw.people\n    dimensions:\n      - {name: id, type: number, sql: id, \
             primary_key: true}\n      - {name: city, type: string, sql: city}\n      - {name: email, type: string, sql: \
             email}\n    measures:\n      - {name: count, type: count}\n    joins:\n      - {name: days, relationship: \
             many_to_one, sql: \"{people}.day = {days}.day\"}\n",
        ),
        (
            "cubes/days.yml",
            "cubes:\n  - name: days\n    sql_table: \"{{ ref('plain') }}\"\n    dimensions:\n      - {name: day, type: \
             time, sql: day, primary_key: true}\n      - {name: season, type: string, sql: season}\n  - name: late\n    \
             extends: orders\n    dimensions:\n      - {name: season, type: string, sql: \"{days.season}\"}\n",
        ),
        (
            "cubes/kept.yml",
            "cubes:\n  - name: kept\n    sql_table: analytics.paid\n    dimensions:\n      - {name: who, type: number, sql: \
             who}\n  - name: both\n    sql: SELECT * FROM analytics.base JOIN raw.people ON true\n    measures:\n      - \
             {name: count, type: count}\n",
        ),
        (
            "metrics/all.yml",
            "metrics:\n  - {name: income, type: simple, expression: orders.total}\n  - {name: each, type: ratio, numerator: \
             orders.total, denominator: people.count}\n  - {name: more, type: derived, expression: income + each}\n",
        ),
        (
            "policies/all.yml",
            "policies:\n  - {name: own, cubes: [people], row_filter: \"{people}.city IN {{ user.roles }}\"}\n  - {name: \
             paid, cubes: [orders], row_filter: \"{orders}.n > 0\"}\n  - {name: mail, cubes: \"*\", mask: {email: hash}}\n",
        ),
    ];
    SourceTree { files: files.into_iter().map(|(path, text)| (path.into(), text.into())).collect() }
}

/// One word for another, wherever it stands: names, types, joins, SQL, Jinja.
const WORDS: [(&str, &str); 22] = [
    ("city", "town"),
    ("people", "persons"),
    ("many_to_one", "one_to_many"),
    ("extends: base", "extends: people"),
    ("extends: orders", "extends: late"),
    ("ref('paid')", "ref('base')"),
    ("ref('plain')", "ref('paid')"),
    ("ref('base')", "ref('paid')"),
    ("type: string", "type: number"),
    ("type: sum", "type: average"),
    ("primary_key: true", "primary_key: false"),
    ("flag: 1", "flag: true"),
    ("limit: 10", "limt: 10"),
    ("name: count", "name: number"),
    ("sql: amount", "sql: \"{city}\""),
    ("source('raw', 'orders')", "source('raw', 'order')"),
    ("tables: [orders,", "tables: [order,"),
    ("cube: people", "cube: days"),
    ("cubes:", "cube:"),
    ("{", "{{"),
    ("- {name:", "  - {name:"),
    ("view", "table"),
];

/// Changes the tree a little; `others` are texts that its files had or might have.
fn change(tree: &mut SourceTree, others: &[(Arc<str>, Arc<str>)], random: &mut Random) -> String {
    let paths: Vec<Arc<str>> = tree.files.keys().cloned().collect();
    let path = paths.get(random.below(paths.len())).cloned().unwrap_or_else(|| "cubes/new.yml".into());
    let text = tree.files.get(&path).cloned().unwrap_or_default();
    match random.below(10) {
        0 => {
            tree.files.remove(&path);
            format!("{path} is deleted")
        }
        1 => {
            let name = path.replace('/', ["/a_", "/z_"][random.below(2)]);
            tree.files.remove(&path);
            tree.files.insert(name.as_str().into(), text);
            format!("{path} becomes {name}")
        }
        2..=4 => {
            let (path, text) = &others[random.below(others.len())];
            tree.files.insert(Arc::clone(path), Arc::clone(text));
            format!("{path} is another version")
        }
        5 => {
            let lines: Vec<&str> = text.lines().collect();
            let left_out = random.below(lines.len());
            let rest = lines.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, line)| format!("{line}\n"));
            tree.files.insert(Arc::clone(&path), rest.collect::<String>().into());
            format!("{path} loses line {}", left_out + 1)
        }
        6 => {
            tree.files.insert(Arc::clone(&path), format!("\n{text}").into());
            format!("{path} moves down a line")
        }
        _ => {
            let (word, other) = WORDS[random.below(WORDS.len())];
            let (word, other) = if random.below(2) == 0 { (word, other) } else { (other, word) };
            tree.files.insert(Arc::clone(&path), text.replacen(word, other, 1 + random.below(2)).into());
            format!("{path}: {word} becomes {other}")
        }
    }
}

fn run(name: &str, start: &SourceTree, others: &[(Arc<str>, Arc<str>)], seed: u64, steps: usize) {
    let mut random = Random(seed);
    let (mut tree, mut inputs, mut loaded) = (start.clone(), duckdb(), Loaded::default());
    let mut told = format!("{name}, seed {seed}");
    loaded.load(&told, &tree, &inputs, 0);
    for step in 0..steps {
        match random.below(14) {
            0 => {
                tree = start.clone();
                told.push_str("\nall is as it was");
            }
            1 => {
                inputs.env = match inputs.env.is_empty() {
                    true => BTreeMap::from([("TERRANE_VAR_X".to_owned(), "1".to_owned())]),
                    false => BTreeMap::new(),
                };
                told.push_str("\nthe environment changes");
            }
            2 => {
                let entry = [
                    r#"{"name": "late", "sql_table": "raw.late", "measures": [{"name": "count", "type": "count"}]}"#,
                    r#"{"name": "extra", "sql_table": "raw.x", "dimensions": [{"name": "a", "type": "string", "sql": "a"}]}"#,
                    r#"{"name": "extra", "sql_table": "raw.x", "dimension": [{"name": "a", "type": "srting"}]}"#,
                ][random.below(3)];
                let mut cube = RegisteredCube::new(if entry.contains("late") { "late" } else { "extra" }, entry);
                cube.located = [None, Some(["db".into(), "raw".into(), "late".into()].into())][random.below(2)].clone();
                inputs.registered = if random.below(3) == 0 { Vec::new() } else { vec![cube] };
                told.push_str("\nregistered cubes change");
            }
            3 if step % 5 == 0 => {
                inputs.warehouse = if &*inputs.warehouse == "duckdb" { "mysql".into() } else { "duckdb".into() };
                told.push_str("\nanother warehouse");
            }
            _ => {
                told.push('\n');
                told.push_str(&change(&mut tree, others, &mut random));
            }
        }
        let salt = if random.below(4) == 0 { step as u64 } else { 0 };
        loaded.load(&told, &tree, &inputs, salt);
    }
}

fn texts(trees: &[SourceTree]) -> Vec<(Arc<str>, Arc<str>)> {
    trees.iter().flat_map(|tree| tree.files.iter().map(|(path, text)| (Arc::clone(path), Arc::clone(text)))).collect()
}

#[test]
fn random_edits_of_sound_projects_come_to_what_a_first_load_comes_to() {
    let flights = folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights"));
    for (name, tree) in [("entangled", entangled()), ("flights", flights), ("base", case::base())] {
        let others = texts(std::slice::from_ref(&tree));
        for seed in 0..12 {
            run(name, &tree, &others, seed, 40);
        }
    }
}

#[test]
fn every_seeded_mistake_comes_and_goes_as_in_a_first_load() {
    let base = case::base();
    let mut all = Vec::new();
    let mut loaded = Loaded::default();
    for area in case::areas() {
        for case in case::cases(&area) {
            let (tree, _) = case.tree();
            let inputs = Inputs { env: case.env.clone(), ..duckdb() };
            loaded.load(&format!("{area}/{} comes", case.name), &tree, &inputs, 0);
            if all.len() % 3 == 0 {
                loaded.load(&format!("{area}/{} goes", case.name), &base, &inputs, 1);
            }
            all.push(tree);
        }
    }
    assert!(all.len() >= 100, "{} mistakes are too few", all.len());
    let others = texts(&all);
    for seed in 100..106 {
        run("mistakes", &base, &others, seed, 60);
    }
}

/// So many files and cubes are read on several threads.
#[test]
fn random_edits_of_a_large_project_come_to_what_a_first_load_comes_to() {
    let tree = large_project(150);
    run("large", &tree, &texts(std::slice::from_ref(&tree)), 0, 12);
}

/// What one change has done again: files, models, cubes.
fn done_after(change: impl FnOnce(&mut HashMap<&str, String>)) -> (usize, usize, usize) {
    let tree = large_project(40);
    let (definitions, _, files) = read_again(&tree, &inputs(), &KeptFiles::default());
    let (_, _, cubes) = build_again(&definitions, &KeptCubes::default());
    assert_eq!(cubes.cubes(), Work { done: 40, reused: 0 });
    assert_eq!(cubes.models(), Work { done: 8, reused: 0 });
    let mut texts: HashMap<&str, String> = tree.files.iter().map(|(path, text)| (&**path, text.to_string())).collect();
    change(&mut texts);
    let tree = SourceTree { files: texts.into_iter().map(|(path, text)| (path.into(), text.into())).collect() };
    let (definitions, _, files) = read_again(&tree, &inputs(), &files);
    let (model, _, cubes) = build_again(&definitions, &cubes);
    let Work { done, reused } = cubes.cubes();
    assert_eq!(done + reused, model.cubes.len());
    (files.work().done, cubes.models().done, done)
}

#[test]
fn what_has_not_changed_is_not_compiled_again() {
    let edit = |path: &'static str, word: &'static str, other: &'static str| {
        done_after(move |texts| {
            let text = texts.get_mut(path).unwrap();
            assert!(text.contains(word), "{path} has {word}");
            *text = text.replace(word, other);
        })
    };
    assert_eq!(done_after(|_| {}), (0, 0, 0), "nothing changed");
    assert_eq!(edit("cubes/cube_0007.yml", "One row", "A row"), (1, 0, 1), "a description");
    assert_eq!(edit("cubes/cube_0007.yml", "sql: email", "sql: mail"), (1, 0, 1), "a member's SQL");
    assert_eq!(edit("cubes/cube_0010.yml", "measures:\n", "measures:\n      - {name: n, type: count}\n"), (1, 0, 1));
    // The nine that join it ask for its first text.
    assert_eq!(
        edit("cubes/cube_0010.yml", "- name: text_0\n", "- name: first\n"),
        (1, 0, 10),
        "a name that others ask for"
    );
    let before_it = edit(
        "cubes/cube_0010.yml",
        "- name: created_at\n",
        "- {name: n, type: string, sql: n}\n      - name: created_at\n",
    );
    assert_eq!(before_it, (1, 0, 10), "a dimension before it");
    assert_eq!(edit("cubes/cube_0010.yml", "- {name: id,", "- {name: key,"), (1, 0, 1), "a name that nobody asks for");
    // `paid` reads it, and a cube reads each.
    assert_eq!(edit("models/staged_2.sql", "'test'", "'trial'"), (1, 1, 2), "a model");
    assert_eq!(edit("policies/all.yml", "text_0", "text_1"), (1, 0, 0), "a policy");
    assert_eq!(edit("metrics/family_001.yml", "total_1", "total_2"), (1, 0, 0), "a metric");
    let new = done_after(|texts| drop(texts.insert("cubes/a.yml", large_cube(40))));
    assert_eq!(new, (1, 0, 1), "a cube before all others, which get other numbers");
    let deleted = done_after(|texts| drop(texts.remove("cubes/cube_0039.yml")));
    assert_eq!(deleted, (0, 0, 0), "a cube that nobody joins is deleted");
    // Jinja may ask for settings: 8 models, and one file of three members of a family each with `ref`.
    let settings = edit("service_project.yml", "EUR", "USD");
    assert_eq!(settings, (8 + 8, 8, 8), "settings");
}
