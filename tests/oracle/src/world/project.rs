//! Writes a [`World`] as the files of a project. JSON is YAML, so each `.yml` file contains one cube as JSON.
//!
//! In: a world, and the order in which its files are named. Out: a source tree.

use serde_json::{Value as Json, json};
use terrane_compiler::project::SourceTree;

use super::tables::table;
use super::{Aggregate, Cube, Dimension, DimensionKind, Formula, Measure, MeasureKind, MetricKind, World, spark};

/// The order of the files, which must not affect answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileOrder {
    AsDescribed,
    Reversed,
}

pub fn source_tree(world: &World, order: FileOrder) -> SourceTree {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: generated\n".into());
    let count = world.cubes.len() + 1;
    let mut add = |index: usize, mut text: Json| {
        if world.is_on_spark {
            spark::requote(&mut text);
        }
        let place = if order == FileOrder::Reversed { count - index } else { index };
        tree.files.insert(format!("cubes/{place:03}.yml").into(), text.to_string().into());
    };
    for (index, cube) in world.cubes.iter().enumerate() {
        add(index, json!({ "cubes": [cube_json(world, cube)] }));
    }
    if !world.metrics.is_empty() {
        let metrics = world.metrics.iter().map(|metric| {
            let mut json = match &metric.kind {
                MetricKind::Simple(formula) => json!({"type": "simple", "expression": formula.in_metric()}),
                MetricKind::Derived(formula) => json!({"type": "derived", "expression": formula.in_metric()}),
                MetricKind::Ratio(numerator, denominator) => json!({
                    "type": "ratio",
                    "numerator": numerator.in_metric(),
                    "denominator": denominator.in_metric(),
                }),
            };
            json["name"] = json!(metric.name);
            if !metric.filters.is_empty() {
                json["filters"] = json!(metric.filters);
            }
            json
        });
        add(world.cubes.len(), json!({ "metrics": metrics.collect::<Vec<_>>() }));
    }
    let policies = world.policies.iter().enumerate().filter_map(|(index, policy)| policy.json(world, index));
    let mask_policies = world.mask_policies.iter().enumerate().map(|(index, mask_policy)| mask_policy.json(index));
    let policies: Vec<Json> = policies.chain(mask_policies).collect();
    if !policies.is_empty() {
        let mut policies = json!({ "policies": policies });
        if world.is_on_spark {
            spark::requote(&mut policies);
        }
        tree.files.insert("policies/all.yml".into(), policies.to_string().into());
    }
    tree
}

fn cube_json(world: &World, cube: &Cube) -> Json {
    let joins = cube.joins.iter().map(|join| {
        let target = world.cube(join.target());
        let right = target.and_then(|target| target.columns.get(join.right)).map_or("?", |column| &column.name);
        let left = &cube.columns[join.left].name;
        let sql = format!("{{CUBE}}.{} = {{{}}}.{}", quote(left), join.name, quote(right));
        let mut json = json!({"name": join.name, "relationship": join.relationship.as_str(), "sql": sql});
        if let Some(target) = &join.cube {
            json["cube"] = json!(target);
        }
        json
    });
    let segments = cube.segments.iter().map(|s| json!({"name": s.name, "sql": s.sql.sql(world, cube)}));
    let mut json = json!({
        "name": cube.name,
        "dimensions": cube.dimensions.iter().map(|d| dimension_json(world, cube, d)).collect::<Vec<_>>(),
        "measures": cube.measures.iter().map(|m| measure_json(world, cube, m)).collect::<Vec<_>>(),
        "segments": segments.collect::<Vec<_>>(),
        "joins": joins.collect::<Vec<_>>(),
    });
    let rollups: Vec<Json> =
        world.rollups.iter().filter(|rollup| rollup.cube == cube.name).map(|rollup| rollup.json(world, cube)).collect();
    if !rollups.is_empty() {
        json["pre_aggregations"] = json!(rollups);
    }
    let table = if world.is_on_spark { quote(&cube.table) } else { table(cube) };
    if cube.is_query {
        json["sql"] = json!(format!("SELECT * FROM {table}"));
    } else {
        json["sql_table"] = json!(table);
    }
    json
}

fn quote(name: &str) -> String {
    super::tables::quoted(name)
}

fn dimension_json(world: &World, cube: &Cube, dimension: &Dimension) -> Json {
    let ty = match dimension.kind {
        DimensionKind::String => "string",
        DimensionKind::Number => "number",
        DimensionKind::Boolean => "boolean",
        DimensionKind::Time => "time",
    };
    let mut json = json!({"name": dimension.name, "type": ty, "sql": dimension.sql.sql(world, cube)});
    if dimension.primary_key {
        json["primary_key"] = json!(true);
    }
    if dimension.primary_time {
        json["primary_time"] = json!(true);
    }
    if let Some(is_utc) = dimension.is_utc {
        json["timezone"] = json!(if is_utc { "utc" } else { "none" });
    }
    json
}

fn measure_json(world: &World, cube: &Cube, measure: &Measure) -> Json {
    let mut json = json!({"name": measure.name});
    match &measure.kind {
        MeasureKind::Aggregate(aggregate)
        | MeasureKind::RunningTotal(aggregate)
        | MeasureKind::RunningTotalOfAll(aggregate)
        | MeasureKind::Rolling(aggregate, _) => {
            let is_running = !matches!(measure.kind, MeasureKind::Aggregate(_) | MeasureKind::Rolling(..));
            if let MeasureKind::Rolling(_, window) = &measure.kind {
                json["rolling_window"] = window.json();
            }
            if matches!(measure.kind, MeasureKind::RunningTotalOfAll(_)) {
                json["from"] = json!("all");
            }
            json["type"] = json!(if is_running { "running_total" } else { aggregate.function.as_str() });
            if aggregate.function == super::Function::Percentile {
                json["percentile"] = json!(super::NINTH);
            }
            if aggregate.function.is_of_sample() {
                json["sample"] = json!(true);
            }
            if let Some(argument) = &aggregate.argument {
                json["sql"] = json!(argument.sql(world, cube));
            }
            if !aggregate.filters.is_empty() {
                let filters = aggregate.filters.iter().map(|filter| json!({"sql": filter.sql(world, cube)}));
                json["filters"] = filters.collect();
            }
        }
        MeasureKind::Number(formula) => {
            json["type"] = json!("number");
            json["sql"] = json!(formula.in_cube(world, cube));
        }
    }
    json
}

impl Formula {
    fn in_cube(&self, world: &World, own: &Cube) -> String {
        self.text(&|leaf| match leaf {
            Formula::Measure { cube: None, name } => format!("{{{name}}}"),
            Formula::Measure { cube: Some(cube), name } => format!("{{{cube}.{name}}}"),
            Formula::Aggregate(aggregate) => call(aggregate, world, own),
            _ => String::new(),
        })
    }

    fn in_metric(&self) -> String {
        self.text(&|leaf| match leaf {
            // Braces distinguish the measure from words of SQL.
            Formula::Measure { cube, name } => {
                let cube = cube.as_deref().unwrap_or_default();
                let is_plain = is_plain(cube) && is_plain(name);
                if is_plain { format!("{cube}.{name}") } else { format!("{{{cube}.{name}}}") }
            }
            Formula::Metric(name) if is_plain(name) => name.clone(),
            Formula::Metric(name) => format!("{{{name}}}"),
            _ => String::new(),
        })
    }

    fn text(&self, leaf: &dyn Fn(&Formula) -> String) -> String {
        match self {
            Formula::Constant(value) => value.to_string(),
            Formula::Binary(op, left, right) => format!("({} {} {})", left.text(leaf), op.as_str(), right.text(leaf)),
            Formula::Divide(left, right) => format!("({} / {})", left.text(leaf), right.text(leaf)),
            Formula::Coalesce(inner, value) => format!("COALESCE({}, {value})", inner.text(leaf)),
            other => leaf(other),
        }
    }
}

/// Returns whether a name cannot be a word of SQL.
fn is_plain(name: &str) -> bool {
    name.ends_with(|c: char| c.is_ascii_digit())
}

fn call(aggregate: &Aggregate, world: &World, own: &Cube) -> String {
    let argument = aggregate.argument.as_ref().map_or("*".to_owned(), |argument| argument.sql(world, own));
    match aggregate.function {
        super::Function::CountDistinct => format!("COUNT(DISTINCT {argument})"),
        super::Function::CountDistinctApprox => format!("APPROX_COUNT_DISTINCT({argument})"),
        function => format!("{}({argument})", function.as_str().to_uppercase()),
    }
}
