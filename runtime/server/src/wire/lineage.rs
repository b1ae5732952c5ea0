//! Lineage as JSON, as far as its caller may see (specification, "Lineage" endpoints and `LineageResult`).
//!
//! A node is `{id, name, type, cube, sql, reason, place}`, an edge `{source, target, relationship}`, from what is
//! read to what reads it. `reason` says why a node is unresolved, `place` where in the project's files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};
use terrane_lineage::{Lineage, NodeType, Reached, Sight};

use super::body::parse;
use super::fields::{Fields, Misfit, Path};

/// So many places that could not be followed are told beside an impact.
const MAX_UNRESOLVED: usize = 100;

pub(super) const IMPACT: &[&str] = &["column_id"];

/// `{column_id}`.
pub(crate) fn column_from_wire(body: &[u8]) -> Result<String, Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", IMPACT)?;
    Ok(fields.required_text("column_id", "an id like `source.raw.orders.column.amount`")?.to_owned())
}

/// Everything.
pub(crate) fn graph_to_wire(lineage: &Lineage, sight: &Sight) -> Json {
    let all = 0..lineage.nodes.len() as u32;
    let nodes: Vec<Json> = all.filter(|at| sight.sees(*at)).map(|at| node(lineage, at, sight)).collect();
    let seen = lineage.edges.iter().filter(|(from, to, _)| sight.sees(*from) && sight.sees(*to));
    let edges: Vec<Json> = seen.map(|(from, to, usage)| edge(lineage, *from, *to, usage.as_str())).collect();
    json!({"node_count": nodes.len(), "edge_count": edges.len(), "nodes": nodes, "edges": edges})
}

/// What one node is made of.
pub(crate) fn upstream_to_wire(lineage: &Lineage, start: u32, sight: &Sight) -> Json {
    let reached = lineage.upstream(start, sight);
    let columns = reached.iter().map(|reached| reached.node).filter(|at| lineage.nodes[*at as usize].ty.is_column());
    let columns: Vec<&str> = columns.map(|at| &*lineage.nodes[at as usize].id).collect();
    let mut body = walked(lineage, start, &reached, sight);
    body["columns"] = json!(columns);
    body
}

/// What a change of one node reaches, by type and nearest first.
pub(crate) fn impact_to_wire(lineage: &Lineage, start: u32, sight: &Sight) -> Json {
    let reached = lineage.downstream(start, sight);
    let groups: [(&str, NodeType); 7] = [
        ("models", NodeType::Model),
        ("cubes", NodeType::Cube),
        ("dimensions", NodeType::Dimension),
        ("measures", NodeType::Measure),
        ("segments", NodeType::Segment),
        ("metrics", NodeType::Metric),
        ("policies", NodeType::Policy),
    ];
    let mut affected: BTreeMap<&str, Vec<Json>> = groups.iter().map(|(name, _)| (*name, Vec::new())).collect();
    let mut told: BTreeSet<u32> = [start].into();
    // Columns count as their model, and joins as the cube that has them.
    let owners = reached.iter().filter(|step| step.node != start).filter_map(|step| {
        let node = owner(lineage, step.node).filter(|owner| sight.sees(*owner))?;
        Some(Reached { node, ..*step })
    });
    for step in owners.filter(|step| told.insert(step.node)) {
        let node = &lineage.nodes[step.node as usize];
        let Some((group, _)) = groups.iter().find(|(_, ty)| *ty == node.ty) else { continue };
        affected.entry(*group).or_default().push(json!({
            "id": &*node.id,
            "name": &*node.name,
            "cube": node.cube.as_deref(),
            "depth": step.depth,
            "relationship": step.usage.as_str(),
        }));
    }
    let mut body = walked(lineage, start, &reached, sight);
    body["column_id"] = json!(&*lineage.nodes[start as usize].id);
    body["affected_count"] = json!(affected.values().map(Vec::len).sum::<usize>());
    body["affected"] = json!(affected);
    // Whatever could not be followed may read the column too.
    let all = (0..lineage.nodes.len() as u32).filter(|at| sight.sees(*at));
    let unresolved = all.filter(|at| lineage.nodes[*at as usize].ty == NodeType::Unresolved);
    let unresolved = unresolved.take(MAX_UNRESOLVED).map(|at| {
        let readers = lineage.readers_of(at).map(|(_, to, _)| to).filter(|to| sight.sees(*to));
        let mut told = node(lineage, at, sight);
        told["read_by"] = readers.map(|to| &*lineage.nodes[to as usize].id).collect();
        told
    });
    body["unresolved"] = unresolved.collect();
    body
}

/// What a person would say is affected where this node is.
fn owner(lineage: &Lineage, at: u32) -> Option<u32> {
    let node = &lineage.nodes[at as usize];
    match node.ty {
        NodeType::ModelColumn => {
            let mut inputs = lineage.inputs_of(at).map(|(from, ..)| from);
            inputs.find(|from| {
                let model = &lineage.nodes[*from as usize];
                let is_own = || node.id.strip_prefix(&*model.id).is_some_and(|rest| rest.starts_with('.'));
                model.ty == NodeType::Model && is_own()
            })
        }
        NodeType::Join => lineage.find(&format!("cube.{}", node.cube.as_ref()?)),
        _ => Some(at),
    }
}

/// The nodes that a walk came to, and the edges among them.
fn walked(lineage: &Lineage, start: u32, reached: &[Reached], sight: &Sight) -> Json {
    let mut depths: BTreeMap<u32, u32> = reached.iter().map(|step| (step.node, step.depth)).collect();
    depths.entry(start).or_insert(0);
    let nodes = depths.iter().map(|(at, depth)| {
        let mut told = node(lineage, *at, sight);
        told["depth"] = json!(depth);
        told
    });
    let nodes: Vec<Json> = nodes.collect();
    let edges = depths.keys().flat_map(|at| lineage.readers_of(*at));
    let among = edges.filter(|(_, to, _)| depths.contains_key(to));
    let edges: Vec<Json> = among.map(|(from, to, usage)| edge(lineage, from, to, usage.as_str())).collect();
    json!({"nodes": nodes, "edges": edges})
}

fn node(lineage: &Lineage, at: u32, sight: &Sight) -> Json {
    let node = &lineage.nodes[at as usize];
    // Files are the operator's business.
    let place = node.span.as_ref().filter(|_| sight.shows_sql());
    json!({
        "id": &*node.id,
        "name": &*node.name,
        "type": node.ty.as_str(),
        "cube": node.cube.as_deref(),
        // A model's text may name columns that a policy denies.
        "sql": node.sql.as_deref().filter(|_| sight.shows_sql()),
        "reason": node.reason.as_ref().map(ToString::to_string),
        "place": place.map(ToString::to_string),
    })
}

fn edge(lineage: &Lineage, from: u32, to: u32, relationship: &str) -> Json {
    let id = |at: u32| &*lineage.nodes[at as usize].id;
    json!({"source": id(from), "target": id(to), "relationship": relationship})
}
