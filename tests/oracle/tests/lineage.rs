//! Compares lineage with the warehouse. For SQL that DuckDB can run, the columns that its plan scans must be among
//! those of the lineage. For the cases of `tests/golden/cases/lineage`, both sets must be equal. For compiled queries,
//! the scanned columns must be upstream of the query's members, joins and row filters.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use terrane_app::catalog::Snapshot;
use terrane_compiler::model::CubeId;
use terrane_compiler::project::SourceTree;
use terrane_lineage::{KnownColumns, Lineage, QueryColumns, Sight, columns_of};
use terrane_oracle_tests::case::{read, settings};
use terrane_oracle_tests::generate::{Features, Generator, policies, query, world};
use terrane_oracle_tests::hooks::WorldHooks;
use terrane_oracle_tests::oracle::Paths;
use terrane_oracle_tests::product::{Product, Served};
use terrane_oracle_tests::scans::scanned;
use terrane_oracle_tests::world::{FileOrder, RowPolicy, World, source_tree};

type Columns = BTreeSet<(String, String)>;

/// The tables of a case.
struct Tables {
    /// The columns of each table, including undeclared ones.
    columns: BTreeMap<String, Vec<String>>,
    /// The types of the columns that are not INTEGER.
    types: BTreeMap<String, String>,
}

impl Tables {
    fn of(file: &Json, case: &Json) -> Tables {
        let known = if case["known"].is_null() { &file["known"] } else { &case["known"] };
        let all = [&file["others"], known].into_iter().filter_map(Json::as_object).flatten();
        let columns = all.map(|(table, columns)| (table.clone(), texts(columns))).collect();
        let types = file["types"].as_object().into_iter().flatten();
        Tables { columns, types: types.map(|(name, ty)| (name.clone(), ty.as_str().unwrap().to_owned())).collect() }
    }

    /// Returns statements that attach the databases. They must run before the engine locks its configuration.
    fn databases(&self) -> Vec<String> {
        let parts = self.columns.keys().map(|table| table.split('.').collect::<Vec<_>>());
        let named = parts.filter_map(|parts| (parts.len() == 3).then(|| parts[0]).filter(|name| *name != "main"));
        named.map(|name| format!("ATTACH IF NOT EXISTS ':memory:' AS {name}")).collect()
    }

    fn create(&self, product: &Product) {
        for (table, columns) in &self.columns {
            let parts: Vec<&str> = table.split('.').collect();
            let (database, schema) = match parts.as_slice() {
                [database, schema, _] => (Some(*database).filter(|database| *database != "main"), Some(*schema)),
                [schema, _] => (None, Some(*schema)),
                _ => (None, None),
            };
            let place: Vec<String> = database.into_iter().chain(schema).map(|part| format!("\"{part}\"")).collect();
            if !place.is_empty() {
                product.execute(&format!("CREATE SCHEMA IF NOT EXISTS {}", place.join("."))).unwrap();
            }
            let name: Vec<String> = place.into_iter().chain([format!("\"{}\"", parts[parts.len() - 1])]).collect();
            let columns = columns.iter().map(|column| {
                let ty = self.types.get(column).map_or("INTEGER", String::as_str);
                format!("\"{column}\" {ty}")
            });
            let columns: Vec<String> = columns.collect();
            product.execute(&format!("CREATE TABLE {} ({})", name.join("."), columns.join(", "))).unwrap();
        }
    }

    /// Returns the columns that the warehouse would report.
    fn inspected(&self) -> KnownColumns {
        let mut known = KnownColumns::default();
        for (table, columns) in &self.columns {
            known.inspected(table, columns.iter().map(|column| column.as_str().into()).collect());
        }
        known
    }

    /// Returns a scanned column in the form of the lineage: a field counts as its column, and `main` is not named.
    fn column(&self, (table, column): (String, String)) -> (String, String) {
        let ends = |name: &String| *name == table || name.ends_with(&format!(".{table}"));
        let Some((name, columns)) = self.columns.iter().find(|(name, _)| ends(&name.to_lowercase())) else {
            return (table, column);
        };
        let is_it = |known: &&String| {
            let known = known.to_lowercase();
            column == known || column.strip_prefix(&known).is_some_and(|rest| rest.starts_with('.'))
        };
        (name.to_lowercase(), columns.iter().find(is_it).map_or(column.clone(), |known| known.to_lowercase()))
    }
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn named(columns: &QueryColumns) -> Columns {
    let values = columns.outputs.iter().flat_map(|output| &output.inputs);
    let all = values.chain(columns.uses.iter().map(|(_, column)| column));
    all.map(|column| (column.table.to_lowercase(), column.column.to_lowercase())).collect()
}

fn is_resolved(columns: &QueryColumns) -> bool {
    columns.unresolved.is_empty() && columns.outputs.iter().all(|output| output.unresolved.is_empty())
}

#[test]
fn lineage_of_sql_names_the_columns_that_duckdb_scans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/cases/lineage");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut compared, mut empty, mut wrong) = (0, 0, Vec::new());
    for file in files {
        let file: Json = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for case in file["cases"].as_array().unwrap() {
            if !case["dialect"].is_null() {
                continue;
            }
            let (about, sql) = (&case["about"], case["sql"].as_str().unwrap());
            let tables = Tables::of(&file, case);
            // Each case has its own engine, because its tables must not exist in other cases.
            let statements = tables.databases().into_iter().collect();
            let product = Product::start_with(settings(), None, statements).unwrap();
            tables.create(&product);
            let columns = columns_of(sql, "duckdb", &tables.inspected());
            let scans = match (scanned(&product, sql), case["refused"].as_bool()) {
                (Ok(None), None) => {
                    empty += 1;
                    continue;
                }
                (Ok(Some(scans)), None) => scans.into_iter().map(|column| tables.column(column)).collect::<Columns>(),
                (Err(_), Some(true)) => continue,
                (Ok(_), _) => {
                    wrong.push(format!("{about}: DuckDB runs it"));
                    continue;
                }
                (Err(refused), _) => {
                    wrong.push(format!("{about}: {refused:#}"));
                    continue;
                }
            };
            compared += 1;
            // If all columns are known, everything must be resolved, except for SQL that no parser here follows.
            let is_opaque = case["opaque"].as_bool() == Some(true);
            if is_resolved(&columns) == is_opaque {
                wrong.push(format!("{about}: resolved is {}", !is_opaque));
            }
            let named = named(&columns);
            if !is_opaque && scans != named {
                let (missing, beyond): (Vec<_>, Vec<_>) =
                    (scans.difference(&named).collect(), named.difference(&scans).collect());
                wrong.push(format!("{about} ({sql})\n  not named {missing:?}\n  not scanned {beyond:?}"));
            }
        }
    }
    assert!(compared >= 110 && empty <= 10, "{compared} texts are too few, {empty} have empty plans");
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns the columns upstream of a query: of its members, of the keys and times of their cubes, and of the joins
/// between these cubes.
fn upstream(snapshot: &Snapshot, lineage: &Lineage, body: &Json) -> Columns {
    let (model, everything) = (&snapshot.model, Sight::of_everything());
    let mut starts: BTreeSet<u32> = BTreeSet::new();
    let own = body["cube"].as_str();
    let mut open = vec![body];
    while let Some(json) = open.pop() {
        match json {
            Json::Array(items) => open.extend(items),
            Json::Object(fields) => open.extend(fields.values()),
            Json::String(text) => {
                let mut names = text.split('.');
                let (first, second) = (names.next().unwrap_or_default(), names.next());
                let (cube, member) = match (second, own) {
                    (Some(member), _) => (first, member),
                    (None, Some(own)) => (own, first),
                    (None, None) => (first, first),
                };
                starts.extend(lineage.find(&format!("metric.{text}")));
                for kind in ["measure", "dimension", "segment"] {
                    starts.extend(lineage.find(&format!("{kind}.{cube}.{member}")));
                }
            }
            _ => {}
        }
    }
    let mut cubes: BTreeSet<CubeId> = BTreeSet::new();
    for at in &starts {
        for reached in lineage.upstream(*at, &everything) {
            let cube = lineage.nodes[reached.node as usize].cube.as_deref();
            cubes.extend(cube.and_then(|cube| model.cube_named(cube)).map(|cube| cube.id));
        }
    }
    for id in cubes.clone() {
        let cube = model.cube(id);
        let of_its_own = cube.primary_key.iter().chain(&cube.primary_time);
        starts.extend(of_its_own.filter_map(|index| {
            lineage.find(&format!("dimension.{}.{}", cube.name, cube.dimensions[*index as usize].name))
        }));
        for to in cubes.iter().filter(|to| **to != id) {
            let mut at = *to;
            while let Some(hop) = model.join_paths(id).any_hop(at).filter(|_| at != id) {
                let from = model.cube(hop.from);
                let target = model.cube(from.joins[hop.join as usize].target);
                starts.extend(lineage.find(&format!("join.{}.{}", from.name, target.name)));
                at = hop.from;
            }
        }
    }
    let reached = starts.iter().flat_map(|at| lineage.upstream(*at, &everything));
    let nodes = reached.map(|reached| &lineage.nodes[reached.node as usize]).filter(|node| node.ty.is_column());
    nodes.filter_map(|node| column_of(&node.id)).collect()
}

/// Returns the columns that a query scans and that are not upstream of it in the lineage.
fn not_upstream(product: &Product, served: &Served<'_>, body: &Json, sql: &str) -> Vec<(String, String)> {
    let scans = scanned(product, sql).unwrap().into_iter().flatten();
    let scans = scans.map(|(table, column)| (table.rsplit('.').next().unwrap_or_default().to_owned(), column));
    let scans: Columns = scans.filter(|(_, column)| column != "rowid").collect();
    let named = served.with_lineage(|snapshot, lineage| upstream(snapshot, lineage, body));
    scans.difference(&named).cloned().collect()
}

/// Returns the table and the column of an id such as `table.main.orders.column.amount`.
fn column_of(id: &str) -> Option<(String, String)> {
    let (table, column) = id.split_once(".column.")?;
    Some((table.rsplit('.').next()?.to_lowercase(), column.to_lowercase()))
}

const SEED: u64 = 20_261_122;
const WORLDS: u64 = 25;

#[test]
fn compiled_queries_scan_only_upstream_columns() {
    println!("seed {SEED}");
    let product = Product::start_with(settings(), None, Vec::new()).unwrap();
    let features = Features { mask_policies: false, hostile_names: false, ..Features::default() };
    let (mut compared, mut with_filters, mut wrong) = (0, 0, Vec::new());
    for at in 0..WORLDS {
        let mut generator = Generator::new(SEED + at, features);
        let mut world = world(&mut generator);
        if at % 2 == 0 {
            world.policies = policies(&mut generator, &world);
        }
        // Row filters of hooks are not in the project's files, so lineage cannot contain them.
        world.policies.retain(|policy| !matches!(policy.row_filter, RowPolicy::Hook { .. }));
        let seen = world.seen();
        let paths = Paths::new(&seen);
        let served = product.serve(&world, &source_tree(&world, FileOrder::AsDescribed)).unwrap();
        for _ in 0..20 {
            let body = query(&mut generator, &seen, &paths);
            let Ok(query) = read(&body) else { continue };
            let sql = served.sql(&query);
            if sql.starts_with("refused: ") {
                continue;
            }
            let missing = not_upstream(&product, &served, &body, &sql);
            compared += 1;
            with_filters += usize::from(!world.policies.is_empty());
            if !missing.is_empty() {
                wrong.push(format!("world {at}: {body}\n  scanned and not upstream: {missing:?}\n{sql}"));
            }
        }
    }
    assert!(compared > 200 && with_filters > 80, "{compared} queries, {with_filters} under policies, are too few");
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
}

/// Tests the measures of each cube by each dimension that they reach, and each metric alone.
#[test]
fn example_queries_scan_only_upstream_columns() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    let tables = ["flights", "airlines", "airports", "planes", "weather"].into_iter().map(|table| {
        format!("CREATE TABLE raw.{table} AS SELECT * FROM read_parquet('data/{table}.parquet') LIMIT 10")
    });
    let statements = std::iter::once("CREATE SCHEMA raw".to_owned()).chain(tables).collect();
    let product = Product::start_with(settings(), Some(&folder), statements).unwrap();
    let mut tree = SourceTree::default();
    for part in [".", "sources", "models", "cubes", "metrics"] {
        for entry in fs::read_dir(folder.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "yml" || ending == "sql") {
                let name = path.strip_prefix(&folder).unwrap().to_str().unwrap().trim_start_matches("./").to_owned();
                tree.files.insert(name.into(), fs::read_to_string(&path).unwrap().into());
            }
        }
    }
    let served = product.serve_tree(&tree, WorldHooks::of(&World::default())).unwrap();
    let bodies: Vec<Json> = served.with_lineage(|snapshot, lineage| {
        assert!(lineage.nodes.iter().all(|node| node.reason.is_none()), "everything is resolved");
        let model = &snapshot.model;
        let mut bodies: Vec<Json> =
            model.metrics.iter().map(|metric| serde_json::json!({"metrics": [&*metric.name]})).collect();
        for cube in model.cubes.iter().filter(|cube| cube.public && cube.alias_of.is_none()) {
            let measures: Vec<String> =
                cube.measures.iter().map(|measure| format!("{}.{}", cube.name, measure.name)).collect();
            for other in &model.cubes {
                bodies.extend(other.dimensions.iter().map(|dimension| {
                    let dimension = format!("{}.{}", other.name, dimension.name);
                    serde_json::json!({"measures": measures, "dimensions": [dimension]})
                }));
            }
        }
        bodies
    });
    let (mut compared, mut wrong) = (0, Vec::new());
    for body in &bodies {
        let sql = served.sql(&read(body).unwrap());
        if sql.starts_with("refused: ") {
            continue;
        }
        compared += 1;
        let missing = not_upstream(&product, &served, body, &sql);
        if !missing.is_empty() {
            wrong.push(format!("{body}\n  scanned and not upstream: {missing:?}\n{sql}"));
        }
    }
    assert!(compared >= 50, "{compared} of {} queries are too few", bodies.len());
    assert!(wrong.is_empty(), "{} of {compared}\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
}
