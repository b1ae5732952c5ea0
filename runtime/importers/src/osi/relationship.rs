//! Creates relationships from joins.
//!
//! In: a join. Out: a relationship from the side with many rows to the side with one row. The result is `None` if the
//! condition is not a conjunction of equal columns.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::model::{Cube, CubeId, Join, Model};
use terrane_compiler::snippet::SqlPart;
use terrane_compiler::types::Relationship;

use super::expression::column;
use super::name_of;

pub(super) fn relationship(model: &Model, cube: &Cube, join: &Join) -> Option<Yaml> {
    let target = model.cube(join.target);
    let pairs = pairs(model, join)?;
    let of = |id: CubeId| -> Option<Vec<String>> {
        let column =
            |pair: &[(CubeId, String); 2]| pair.iter().find(|(cube, _)| *cube == id).map(|(_, name)| name.clone());
        pairs.iter().map(column).collect()
    };
    let (own, other) = (of(cube.id)?, of(target.id)?);
    let (from, to, from_columns, to_columns) = match join.relationship {
        Relationship::OneToMany => (target, cube, other, own),
        Relationship::ManyToOne | Relationship::OneToOne => (cube, target, own, other),
    };
    Some(Yaml::map([
        ("name", Yaml::text(format!("{}_to_{}", from.name, to.name))),
        ("from", Yaml::text(&*from.name)),
        ("to", Yaml::text(&*to.name)),
        ("from_columns", Yaml::texts(from_columns)),
        ("to_columns", Yaml::texts(to_columns)),
    ]))
}

/// Returns the pairs of columns that a condition such as `a = b AND c = d` compares.
fn pairs(model: &Model, join: &Join) -> Option<Vec<[(CubeId, String); 2]>> {
    let mut columns = Vec::new();
    let mut words = Vec::new();
    for part in &join.on.parts {
        match part {
            SqlPart::Column { cube, name } => columns.push((*cube, name_of(name))),
            SqlPart::Dimension(id) => columns.push((id.cube, column(&model.dimension(*id).sql, id.cube)?)),
            SqlPart::Text(text) if text.trim().is_empty() => {}
            SqlPart::Text(text) => words.push(text.trim().to_uppercase()),
            _ => return None,
        }
    }
    // An equals sign is between the columns of each pair, and AND is between the pairs.
    let is_list = words.iter().enumerate().all(|(at, word)| word == if at % 2 == 0 { "=" } else { "AND" });
    if !is_list || columns.is_empty() || words.len() + 1 != columns.len() || columns.len() % 2 != 0 {
        return None;
    }
    let pair = |pair: &[(CubeId, String)]| match pair {
        [left, right] if left.0 != right.0 => Some([left.clone(), right.clone()]),
        _ => None,
    };
    columns.chunks(2).map(pair).collect()
}
