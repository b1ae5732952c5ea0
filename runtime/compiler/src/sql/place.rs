//! Finds the place in a project's files of the SQL that the warehouse refused.
//!
//! In: a [`ProbedMember`] and the warehouse's error. Out: the member's display name and a place. If the error mentions
//! a name that the member's SQL contains, the place is that of the name; otherwise it is the place of the member.

use super::probe::ProbedMember;
use crate::diagnostic::Span;
use crate::ids::JoinOperandId;
use crate::model::{Cube, CubeId, Model, Relation, named_in_error, shown_in_error};
use crate::project::{CubeDefinition, Definitions, MaskDefinition, SqlText, Text};

/// The part of a cube that an error of the warehouse refers to.
#[derive(Debug)]
pub struct Culprit {
    /// The display name of the member.
    pub what: String,
    /// The place of the name in its SQL, or else of the member.
    pub span: Option<Span>,
    /// The word that the error mentions, if the SQL contains it.
    pub word: Option<String>,
}

/// Returns the member, and the place in its SQL, that the warehouse's message refers to.
pub fn culprit(model: &Model, definitions: &Definitions, cube: CubeId, member: ProbedMember, message: &str) -> Culprit {
    let (what, span) = named(model, cube, member);
    let texts = texts_of(model, definitions, cube, member);
    let is_cube = |name: &str| model.cube_named(name).is_some();
    match named_in_error(&texts, message, is_cube) {
        Some((at, word)) => Culprit { what, span: Some(at), word: Some(word.to_owned()) },
        None => Culprit { what, span, word: None },
    }
}

/// Returns the place in the cube's relation that the warehouse's message refers to: the name in the message, or else
/// the name of the table. If the relation contains models, the name may belong to any of them, so only the engine's
/// arrow counts.
pub fn relation_place(definitions: &Definitions, cube: &Cube, message: &str) -> Option<Span> {
    let models = match &cube.relation {
        Relation::Query { models, .. } | Relation::Model { models, .. } => models.as_slice(),
        Relation::Table(_) => &[],
    };
    let text_of = |name: &str| definitions.models.iter().find(|model| *model.name.value == *name);
    let ancestry = line(definitions, &cube.name);
    let relation = ancestry.iter().find_map(|cube| cube.relation.as_ref())?;
    let texts = models.iter().filter_map(|(name, _)| Some(&text_of(name)?.sql)).chain([&relation.sql]);
    let texts: Vec<&SqlText> = texts.collect();
    if !models.is_empty() {
        return shown_in_error(&texts, message).map(|(span, _)| span);
    }
    let complained = named_in_error(&texts, message, |_| false).map(|(span, _)| span);
    complained.or_else(|| relation.is_table.then(|| relation.sql.span()))
}

/// Returns a cube and the cubes that it extends, itself first.
fn line<'d>(definitions: &'d Definitions, cube: &str) -> Vec<&'d CubeDefinition> {
    let named = |name: &str| definitions.cubes.iter().find(|cube| *cube.name.value == *name);
    named(cube).map_or_else(Vec::new, |cube| cube.line(named))
}

/// Returns the display name of the member, and its place.
fn named(model: &Model, cube: CubeId, member: ProbedMember) -> (String, Option<Span>) {
    let definition = model.cube(cube);
    let name = &definition.name;
    match member {
        ProbedMember::Dimension(id) => {
            let dimension = model.dimension(id);
            (
                format!("dimension `{name}.{}`", dimension.name),
                dimension.sql_span.clone().or_else(|| dimension.span.clone()),
            )
        }
        ProbedMember::Measure(id) | ProbedMember::WithinMeasure(id) | ProbedMember::Filter(id) => {
            let measure = model.measure(id);
            (format!("measure `{name}.{}`", measure.name), measure.sql_span.clone().or_else(|| measure.span.clone()))
        }
        ProbedMember::Compared(id) => {
            let policy = &model.policies[id.policy as usize];
            (format!("the row filter of policy `{}` on `{name}`", policy.name), policy.row_filter_span.clone())
        }
        ProbedMember::RowFilter(policy) => {
            let policy = &model.policies[policy as usize];
            (format!("the row filter of policy `{}` on `{name}`", policy.name), policy.row_filter_span.clone())
        }
        ProbedMember::Mask(policy, id) => {
            let (policy, member) = (&model.policies[policy as usize], &model.dimension(id).name);
            let span = policy.mask_spans.iter().find(|(masked, _)| masked == member).map(|(_, span)| span.clone());
            (format!("the mask of policy `{}` for `{name}.{member}`", policy.name), span)
        }
        ProbedMember::Segment(index) => {
            let segment = &definition.segments[index as usize];
            (format!("segment `{name}.{}`", segment.name), segment.sql_span.clone())
        }
        ProbedMember::Join(index) | ProbedMember::JoinOperand(JoinOperandId { join: index, .. }) => {
            let join = &definition.joins[index as usize];
            (format!("the join of `{name}` to `{}`", model.cube(join.target).name), join.span.clone())
        }
    }
}

/// Returns the SQL of a member, as declared by its own cube or by the nearest cube that it extends.
fn texts_of<'d>(model: &Model, definitions: &'d Definitions, cube: CubeId, member: ProbedMember) -> Vec<&'d SqlText> {
    let definition = model.cube(cube);
    let policy = |index: u32| {
        let name = &model.policies[index as usize].name;
        definitions.policies.iter().find(move |policy| policy.name.value == *name)
    };
    let ancestry = line(definitions, &definition.name);
    let line = || ancestry.iter();
    let has = |text: &Text, name: &str| *text.value == *name;
    match member {
        ProbedMember::Dimension(id) => {
            let name = &*model.dimension(id).name;
            let found = line().find_map(|cube| cube.dimensions.iter().find(|item| has(&item.name, name)));
            found.map(|found| &found.sql).into_iter().collect()
        }
        ProbedMember::Measure(id) | ProbedMember::WithinMeasure(id) | ProbedMember::Filter(id) => {
            let name = &*model.measure(id).name;
            let found = line().find_map(|cube| cube.measures.iter().find(|item| has(&item.name, name)));
            found.into_iter().flat_map(|found| found.sql.iter().chain(&found.filters)).collect()
        }
        ProbedMember::Segment(index) => {
            let name = &*definition.segments[index as usize].name;
            let found = line().find_map(|cube| cube.segments.iter().find(|item| has(&item.name, name)));
            found.map(|found| &found.sql).into_iter().collect()
        }
        ProbedMember::Join(index) | ProbedMember::JoinOperand(JoinOperandId { join: index, .. }) => {
            let name = &*model.cube(definition.joins[index as usize].target).name;
            let found = line().find_map(|cube| cube.joins.iter().find(|item| has(&item.name, name)));
            found.map(|found| &found.sql).into_iter().collect()
        }
        ProbedMember::RowFilter(index) => {
            policy(index).and_then(|policy| policy.row_filter.as_ref()).into_iter().collect()
        }
        ProbedMember::Compared(id) => {
            policy(id.policy).and_then(|policy| policy.row_filter.as_ref()).into_iter().collect()
        }
        ProbedMember::Mask(index, id) => {
            let name = &*model.dimension(id).name;
            let masks = policy(index).into_iter().flat_map(|policy| &policy.masks);
            let sql = masks.filter_map(|(member, mask)| match mask {
                MaskDefinition::Sql(sql) if member.value.rsplit('.').next() == Some(name) => Some(sql),
                _ => None,
            });
            sql.collect()
        }
    }
}
