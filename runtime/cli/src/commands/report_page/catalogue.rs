//! The cubes, metrics, joins and lineage of the page.
//!
//! In: a loaded project and a caller. Out: the contents that need no rows. Parts beyond the limits are left out, with a
//! note.

use serde::Serialize;
use serde_json::Value as Json;
use terrane_app::catalog::Snapshot;
use terrane_app::governance::Badges;
use terrane_app::services::Services;
use terrane_compiler::Access;
use terrane_lineage::Sight;
use terrane_pictures::{SvgForm, svg};
use terrane_wire::lineage::Direction;
use terrane_wire::metadata;

use super::contents::{Contents, Lineage};
use crate::pictures::join_graph::JoinGraph;
use crate::pictures::member_lineage::{MemberLineage, find};

const MAX_CUBES: usize = 300;
const MAX_METRICS: usize = 500;
const MAX_JOINED_CUBES: usize = 150;
const MAX_LINEAGES: usize = 60;
const MAX_LINEAGE_NODES: usize = 120;

/// Adds the catalogue that the caller may see.
pub(super) async fn add(contents: &mut Contents, engine: &Services, snapshot: &Snapshot, access: &Access<'_>) {
    let badges = Badges::default();
    contents.cubes = listed(&metadata::cubes(access, &badges), "cubes");
    contents.metrics = listed(&metadata::metrics(access, &badges), "metrics");
    limit(contents, "cubes", MAX_CUBES);
    limit(contents, "metrics", MAX_METRICS);
    add_joins(contents, access);
    add_lineages(contents, engine, snapshot, access).await;
}

/// Returns one list of a body of the metadata routes.
fn listed(body: &impl Serialize, key: &str) -> Vec<Json> {
    // Types of the wire have string keys, so they always serialize.
    let mut body = serde_json::to_value(body).unwrap_or_default();
    match body.get_mut(key).map(Json::take) {
        Some(Json::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn limit(contents: &mut Contents, section: &'static str, most: usize) {
    let list = if section == "cubes" { &mut contents.cubes } else { &mut contents.metrics };
    let all = list.len();
    list.truncate(most);
    if all > most {
        contents.note(section, format!("The page lists the first {most} of {all} {section}."));
    }
}

fn add_joins(contents: &mut Contents, access: &Access<'_>) {
    let mut graph = JoinGraph::of(access).graph("Joins");
    let all = graph.nodes.len();
    if graph.truncate(MAX_JOINED_CUBES) > 0 {
        contents.note("joins", format!("The picture shows the first {MAX_JOINED_CUBES} of {all} cubes."));
    }
    contents.joins = svg(&graph, SvgForm::Inline);
}

async fn add_lineages(contents: &mut Contents, engine: &Services, snapshot: &Snapshot, access: &Access<'_>) {
    let lineage = snapshot.lineage(&*engine.warehouse).await;
    let sight = Sight::of(lineage, access);
    let text = |metric: &Json, key: &str| metric[key].as_str().map(str::to_owned);
    let named = contents.metrics.iter().filter_map(|metric| Some((text(metric, "name")?, text(metric, "title")?)));
    let names: Vec<(String, String)> = named.collect();
    if names.len() > MAX_LINEAGES {
        contents.note("lineage", format!("Pictures are drawn of the first {MAX_LINEAGES} of {} metrics.", names.len()));
    }
    for (name, title) in names.into_iter().take(MAX_LINEAGES) {
        let Ok(start) = find(lineage, &sight, &format!("metric.{name}")) else { continue };
        let mut graph = MemberLineage::of(lineage, start, Direction::Upstream, None, &sight).graph();
        let all = graph.nodes.len();
        if graph.truncate(MAX_LINEAGE_NODES) > 0 {
            let text = format!("The picture of {name} shows the nearest {MAX_LINEAGE_NODES} of {all} nodes.");
            contents.note("lineage", text);
        }
        contents.lineages.push(Lineage { name, title, svg: svg(&graph, SvgForm::Inline) });
    }
}
