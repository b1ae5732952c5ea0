//! Makes joins from entities.
//!
//! In: the cubes and their semantic models. Out: to-one joins, as MetricFlow makes them. A cube joins each other cube
//! that has one of the first cube's entities as a key.

use terrane_authoring::names::column_of;
use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;

use super::cubes::is_column;
use super::definition::{Entity, EntityKind, SemanticModel};
use super::scope::ProjectScope;
use crate::draft::{CubeDraft, JOINS, Member, Reference};
use crate::finding::left_out;

pub(super) fn join(
    drafts: &mut [CubeDraft],
    models: &[SemanticModel],
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) {
    for draft in drafts {
        let Some(model) = models.iter().find(|model| model.name == draft.original) else { continue };
        for entity in &model.entities {
            let others = models.iter().filter(|other| other.name != model.name);
            for (other, key) in others.filter_map(|other| Some((other, key_of(other, &entity.name)?))) {
                joins_to(draft, model, entity, other, key, scope, findings);
            }
        }
    }
}

/// Returns the entity with this name if it identifies the rows of the model.
fn key_of<'m>(model: &'m SemanticModel, name: &str) -> Option<&'m Entity> {
    model.entities.iter().find(|entity| entity.name == name && entity.kind != EntityKind::Foreign)
}

fn joins_to(
    draft: &mut CubeDraft,
    model: &SemanticModel,
    entity: &Entity,
    other: &SemanticModel,
    key: &Entity,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) {
    let (Some(own), Some(target)) = (scope.cube(&model.name), scope.cube(&other.name)) else { return };
    let rejected = |reason: &str, cure: &str| {
        let what =
            format!("the join from `{}` to `{}` by `{}` is not imported: {reason}", own.name, target.name, entity.name);
        left_out(entity.span.clone(), what, cure)
    };
    if key.kind == EntityKind::Natural {
        let cure =
            "Write the join with the period in its condition: `{a}.key = {b}.key AND {a}.day >= {b}.valid_from …`.";
        findings.push(rejected("its key identifies a row only for a period", cure));
        return;
    }
    if draft.lists[JOINS].iter().any(|join| join.name == target.name) {
        let cure = "Write a join with another name and `cube:` for it.";
        findings.push(rejected("another entity joins the two cubes already", cure));
        return;
    }
    let relationship = match entity.kind {
        EntityKind::Primary | EntityKind::Unique => "one_to_one",
        EntityKind::Natural | EntityKind::Foreign => "many_to_one",
    };
    let (left, right) = (
        side(&own.name, entity, own.entities.get(&entity.name)),
        side(&target.name, key, target.entities.get(&key.name)),
    );
    let yaml = Yaml::map([
        ("name", Yaml::text(&*target.name)),
        ("relationship", Yaml::text(relationship)),
        ("sql", Yaml::Text(format!("{left} = {right}"))),
    ]);
    let cube = Reference { cube: target.name.clone(), member: None };
    let member = |cube: &str, name: Option<&String>| Reference { cube: cube.to_owned(), member: name.cloned() };
    let needs = vec![
        cube,
        member(&own.name, own.entities.get(&entity.name)),
        member(&target.name, target.entities.get(&key.name)),
    ];
    draft.lists[JOINS].push(Member {
        name: target.name.clone(),
        yaml,
        span: entity.span.clone(),
        is_masked: false,
        needs,
        drills: Vec::new(),
    });
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
