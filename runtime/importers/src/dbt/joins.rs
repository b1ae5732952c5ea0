//! Creates joins from entities.
//!
//! In: the cubes and their semantic models. Out: to-one joins, as MetricFlow makes them. A cube joins each other cube
//! that has one of the first cube's entities as a key.

use std::collections::HashMap;

use terrane_authoring::names::{Taken, column_of, snake};
use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;

use super::cubes::is_column;
use super::definition::{Dimension, Entity, EntityKind, SemanticModel};
use super::scope::{Link, ProjectScope};
use crate::draft::{CubeDraft, JOINS, Member, Reference};
use crate::finding::{changed, left_out};

pub(super) fn join(
    drafts: &mut [CubeDraft],
    models: &[SemanticModel],
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Vec<Link> {
    let mut aliases = HashMap::new();
    let mut taken = Taken::default();
    scope.cube_names().for_each(|name| drop(taken.take(name)));
    let mut links = Vec::new();
    for draft in drafts {
        let Some(model) = models.iter().find(|model| model.name == draft.original) else { continue };
        for entity in &model.entities {
            let others = models.iter().filter(|other| other.name != model.name);
            for (other, key) in others.filter_map(|other| Some((other, key_of(other, &entity.name)?))) {
                let alias = || {
                    let alias = aliases.entry((entity.name.clone(), other.name.clone()));
                    alias.or_insert_with(|| taken.take(&snake(&entity.name))).clone()
                };
                links.extend(joins_to(draft, model, entity, other, key, alias, scope, findings));
            }
        }
    }
    links
}

/// Returns the entity with this name if it identifies the rows of the model.
fn key_of<'m>(model: &'m SemanticModel, name: &str) -> Option<&'m Entity> {
    model.entities.iter().find(|entity| entity.name == name && entity.kind != EntityKind::Foreign)
}

/// Adds the join of a cube to another cube by an entity. The first join has the name of the other cube, and further
/// ones have an alias.
#[allow(clippy::too_many_arguments, reason = "the parts of one join")]
fn joins_to(
    draft: &mut CubeDraft,
    model: &SemanticModel,
    entity: &Entity,
    other: &SemanticModel,
    key: &Entity,
    alias: impl FnOnce() -> String,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<Link> {
    let (own, target) = (scope.cube(&model.name)?, scope.cube(&other.name)?);
    let rejected = |reason: &str, cure: &str| {
        let what =
            format!("the join from `{}` to `{}` by `{}` is not imported: {reason}", own.name, target.name, entity.name);
        left_out(entity.span.clone(), what, cure)
    };
    if key.kind == EntityKind::Natural {
        let cure =
            "Write the join with the period in its condition: `{a}.key = {b}.key AND {a}.day >= {b}.valid_from …`.";
        findings.push(rejected("its key identifies a row only for a period", cure));
        return None;
    }
    let is_first = !draft.lists[JOINS].iter().any(|join| join.name == target.name);
    let name = if is_first { target.name.clone() } else { alias() };
    if !is_first {
        let what = format!("the join from `{}` to `{}` by `{}` is named `{name}`", own.name, target.name, entity.name);
        let cure = format!("Name the members of this join in queries as `{name}.…`.");
        findings.push(changed(entity.span.clone(), what, cure));
    }
    let relationship = match entity.kind {
        EntityKind::Primary | EntityKind::Unique => "one_to_one",
        EntityKind::Natural | EntityKind::Foreign => "many_to_one",
    };
    let (left, right) =
        (side(&own.name, entity, own.entities.get(&entity.name)), side(&name, key, target.entities.get(&key.name)));
    let mut yaml = Yaml::map([("name", Yaml::text(&*name))]);
    if !is_first {
        yaml.set("cube", Yaml::text(&*target.name));
    }
    yaml.set("relationship", Yaml::text(relationship));
    let partitions = partitions(model, &own.name, other, &name);
    let condition = std::iter::once(format!("{left} = {right}")).chain(partitions).collect::<Vec<_>>().join(" AND ");
    yaml.set("sql", Yaml::Text(condition));
    let cube = Reference { cube: target.name.clone(), member: None };
    let member = |cube: &str, name: Option<&String>| Reference { cube: cube.to_owned(), member: name.cloned() };
    let needs = vec![
        cube,
        member(&own.name, own.entities.get(&entity.name)),
        member(&target.name, target.entities.get(&key.name)),
    ];
    draft.lists[JOINS].push(Member {
        name: name.clone(),
        yaml,
        span: entity.span.clone(),
        is_masked: false,
        needs,
        drills: Vec::new(),
    });
    Some(Link { owner: own.name.clone(), entity: entity.name.clone(), target: target.name.clone(), name })
}

/// Returns the conditions on the partitions that both models have: MetricFlow joins only rows of the same partition.
fn partitions(model: &SemanticModel, own: &str, other: &SemanticModel, target: &str) -> Vec<String> {
    let of = |model: &'_ SemanticModel, cube: &str, dimension: &Dimension| {
        let found = model.dimensions.iter().find(|known| known.is_partition && known.name == dimension.name)?;
        let expr = found.expr.as_deref().unwrap_or(&found.name);
        Some(if is_column(expr) { column_of(cube, expr) } else { format!("{{{cube}.{}}}", snake(&found.name)) })
    };
    let shared = model.dimensions.iter().filter(|dimension| dimension.is_partition);
    shared.filter_map(|shared| Some(format!("{} = {}", of(model, own, shared)?, of(other, target, shared)?))).collect()
}

/// Returns one side of a join's condition. If the entity is a column, the side is the column, because foreign keys of
/// the warehouse can confirm only joins over columns. Otherwise the side is the dimension of the entity.
fn side(cube: &str, entity: &Entity, member: Option<&String>) -> String {
    let expr = entity.expr.as_deref().unwrap_or(&entity.name);
    match member {
        Some(member) if !is_column(expr) => format!("{{{cube}.{member}}}"),
        _ => column_of(cube, expr),
    }
}
