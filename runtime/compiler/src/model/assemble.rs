//! The model's names, cubes and joins, before any snippet is read.
//!
//! In: merged cubes. Out: a [`Model`] whose snippets are empty, and for each of its cubes where its
//! text comes from. A join under another name makes a cube of its own, once for the whole project.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use sqlparser::dialect::Dialect;

use super::inherit::{Inherited, Merged};
use super::kept::{KeptCube, KeptCubes, Moves};
use super::nearest::suggest;
use super::relation::{CleanModels, Models};
use super::{
    Aggregate, AggregateFunction, Cube, CubeId, Dimension, DimensionId, Join, Measure, MeasureId, MeasureKind, Member,
    Model, Presentation, Relation, Segment, SegmentId, Snippet,
};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::parallel::map_with;
use crate::project::{Definitions, JoinDefinition, MeasureDefinition, MeasureType, Wording};
use crate::types::LogicalType;

/// A model without snippets, but for cubes that are as they were.
pub(super) struct Skeleton<'d> {
    pub(super) model: Model,
    /// Parallel to the model's cubes: what is as it was.
    pub(super) kept: Vec<Option<Arc<KeptCube>>>,
    /// Warnings of each cube's relation.
    pub(super) relation_told: Vec<Vec<Diagnostic>>,
    /// Models whose texts have been checked.
    pub(super) clean: CleanModels,
    /// Parallel to the model's cubes: the cube, or the target of the alias.
    pub(super) texts: Vec<usize>,
    /// Parallel to the joins of each cube.
    pub(super) joins: Vec<Vec<Inherited<'d, JoinDefinition>>>,
    /// Names that need no second report.
    pub(super) unread: BTreeSet<Arc<str>>,
}

/// Measures, dimensions, segments and names of one cube.
type Members = (Vec<Measure>, Vec<Dimension>, Vec<Segment>, HashMap<Arc<str>, Member>);

pub(super) fn assemble<'d>(
    definitions: &'d Definitions,
    merged: &[Merged<'d>],
    unusable: HashSet<&'d str>,
    before: &KeptCubes,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) -> Skeleton<'d> {
    let models = Models::new(definitions, dialect, &before.models, diagnostics);
    let mut unread = definitions.unread.clone();
    unread.extend(unusable.into_iter().map(Arc::from));
    let mut skeleton = Skeleton {
        model: Model {
            project: Arc::clone(&definitions.project),
            cubes: Vec::with_capacity(merged.len()),
            metrics: Vec::new(),
            policies: Vec::new(),
            has_unread_files: !definitions.unread_files.is_empty(),
            cube_names: HashMap::with_capacity(merged.len()),
            metric_names: HashMap::new(),
            reach: Vec::new(),
            ties: Vec::new(),
            tables: Vec::new(),
            kin: Vec::new(),
        },
        texts: Vec::with_capacity(merged.len()),
        joins: Vec::with_capacity(merged.len()),
        unread,
        kept: Vec::with_capacity(merged.len()),
        relation_told: Vec::with_capacity(merged.len()),
        clean: CleanModels::default(),
    };
    for (at, cube) in merged.iter().enumerate() {
        let name = &cube.definition.name.value;
        let known = before.made_of(name, &cube.line).filter(|known| {
            known.made.alias_of.is_none()
                && cube.relation.is_some_and(|relation| models.makes(relation, &known.cube.relation))
        });
        let mut told = known.map_or_else(Vec::new, |known| known.made.relation_told.clone());
        let relation = match known {
            Some(known) => Some(known.cube.relation.clone()),
            None => cube.relation.and_then(|relation| models.relation(relation, dialect, &mut told)),
        };
        diagnostics.extend(told.iter().cloned());
        match relation {
            Some(relation) => {
                skeleton.relation_told.push(told);
                skeleton.add(at, cube, Arc::clone(name), None, relation, known);
            }
            None => {
                skeleton.unread.insert(Arc::clone(name));
            }
        }
    }
    skeleton.clean = models.clean;
    skeleton.add_aliases(merged, before, diagnostics);
    skeleton.add_joins(merged, before, diagnostics);
    skeleton.model.reach = skeleton.model.cubes.iter().map(|_| OnceLock::new()).collect();
    skeleton.model.ties = skeleton.model.cubes.iter().map(|_| OnceLock::new()).collect();
    skeleton.settle(merged, before);
    skeleton
}

impl<'d> Skeleton<'d> {
    /// A cube as it was, if `known` has the same number and is alias of the same; else one to be filled.
    fn add(
        &mut self,
        text: usize,
        merged: &Merged<'d>,
        name: Arc<str>,
        alias_of: Option<CubeId>,
        relation: Relation,
        known: Option<&Arc<KeptCube>>,
    ) {
        let id = CubeId(self.model.cubes.len() as u32);
        let in_place = known.filter(|known| known.cube.id == id && known.cube.alias_of == alias_of);
        self.model.cube_names.insert(Arc::clone(&name), id);
        self.model.cubes.push(match in_place {
            Some(known) => Arc::clone(&known.cube),
            None => Arc::new(empty(id, merged, name, alias_of, relation)),
        });
        self.kept.push(known.cloned());
        self.texts.push(text);
        self.joins.push(Vec::new());
    }

    /// Takes over what holds as it was, and empties the rest, so that it is filled anew.
    fn settle(&mut self, merged: &[Merged<'d>], before: &KeptCubes) {
        let moves = Moves::new(before, &self.model);
        let model = &self.model;
        let again = |(): &mut (), (at, known): &(u32, Arc<KeptCube>)| known.again(CubeId(*at), model, &moves);
        let known = (0u32..).zip(&self.kept).filter_map(|(at, known)| Some((at, Arc::clone(known.as_ref()?))));
        let known: Vec<_> = known.collect();
        let copied = if moves.is_still() { 0 } else { known.len() };
        let settled = map_with(&known, copied, || (), again);
        for ((at, _), settled) in known.iter().zip(settled) {
            let at = *at as usize;
            match &settled {
                Some(kept) => self.model.cubes[at] = Arc::clone(&kept.cube),
                None => self.empty_again(at, merged),
            }
            self.kept[at] = settled;
        }
    }

    /// A cube in the place of one that was taken over and can't stay.
    fn empty_again(&mut self, at: usize, merged: &[Merged<'d>]) {
        let cube = &self.model.cubes[at];
        let mut new =
            empty(cube.id, &merged[self.texts[at]], Arc::clone(&cube.name), cube.alias_of, cube.relation.clone());
        new.joins = cube.joins.iter().map(|join| Join { on: Snippet::default(), ..join.clone() }).collect();
        self.model.cubes[at] = Arc::new(new);
    }

    /// `cube: airports` under another name: one more cube, whoever declares it first.
    fn add_aliases(&mut self, merged: &[Merged<'d>], before: &KeptCubes, diagnostics: &mut Vec<Diagnostic>) {
        let mut spans: HashMap<Arc<str>, Span> = HashMap::new();
        let mut reported: HashSet<(&str, u32, u32)> = HashSet::new();
        for join in merged.iter().flat_map(|cube| &cube.joins).map(|join| join.item) {
            let Some(cube) = join.cube.as_ref().filter(|cube| cube.value != join.name.value) else { continue };
            // A join that is inherited comes by more than once.
            if !reported.insert((&join.name.origin.file.path, join.name.origin.line, join.name.origin.column)) {
                continue;
            }
            let Some(target) = self.model.cube_named(&cube.value) else {
                if !self.unread.contains(&cube.value) {
                    let known = self.model.cubes.iter().filter(|cube| cube.alias_of.is_none()).map(|cube| &*cube.name);
                    diagnostics.push(
                        Diagnostic::error(
                            Code::UnknownCube,
                            format!("join `{}` names a cube `{}` that doesn't exist", join.name.value, cube.value),
                        )
                        .hint(suggest(&cube.value, "cubes", known))
                        .at(cube.span()),
                    );
                }
                self.unread.insert(Arc::clone(&join.name.value));
                continue;
            };
            if let Some(original) = target.alias_of {
                diagnostics.push(
                    Diagnostic::error(
                        Code::AliasOfAlias,
                        format!("join `{}` names `{}`, which is only another join's name", join.name.value, cube.value),
                    )
                    .hint(format!("write `cube: {}`", self.model.cube(original).name))
                    .at(cube.span()),
                );
                self.unread.insert(Arc::clone(&join.name.value));
                continue;
            }
            let (target, relation, original) = (target.id, target.relation.clone(), Arc::clone(&target.name));
            match self.model.cube_named(&join.name.value) {
                None => {
                    let text = self.texts[target.0 as usize];
                    let name = Arc::clone(&join.name.value);
                    let known = before.made_of(&name, &merged[text].line).filter(|known| {
                        known.made.alias_of.as_ref() == Some(&original) && known.cube.relation == relation
                    });
                    self.relation_told.push(Vec::new());
                    self.add(text, &merged[text], name, Some(target), relation, known);
                    spans.insert(Arc::clone(&join.name.value), join.name.span());
                }
                Some(existing) if existing.alias_of == Some(target) => {}
                Some(existing) => {
                    let message = match existing.alias_of {
                        Some(other) => format!(
                            "the name `{}` already stands for `{}`",
                            join.name.value,
                            self.model.cube(other).name
                        ),
                        None => format!("`{}` is the name of a cube", join.name.value),
                    };
                    let first = spans.get(&join.name.value).map(|span| format!(" (see {span})")).unwrap_or_default();
                    diagnostics.push(
                        Diagnostic::error(Code::AliasConflict, message)
                            .hint(format!(
                                "choose another name for this join: a name has one target in the whole project{first}"
                            ))
                            .at(join.name.span()),
                    );
                }
            }
        }
    }

    fn add_joins(&mut self, merged: &[Merged<'d>], before: &KeptCubes, diagnostics: &mut Vec<Diagnostic>) {
        let moves = Moves::new(before, &self.model);
        for at in 0..self.model.cubes.len() {
            let joins = self.joins_of(at, merged, diagnostics);
            self.kept[at] = self.kept[at].take().filter(|known| known.has_joins(&joins, &moves));
            let old = &self.model.cubes[at];
            let is_in_place = old.joins.len() == joins.len()
                && old.joins.iter().zip(&joins).all(|(old, new)| old.target == new.target);
            if self.kept[at].is_some() && is_in_place {
                continue;
            }
            // What has moved gets its snippets when it is settled.
            if Arc::strong_count(old) > 1 {
                self.empty_again(at, merged);
            }
            Arc::make_mut(&mut self.model.cubes[at]).joins = joins;
        }
    }

    /// The joins of one cube; where each is written stands beside it.
    fn joins_of(&mut self, at: usize, merged: &[Merged<'d>], diagnostics: &mut Vec<Diagnostic>) -> Vec<Join> {
        let is_alias = self.model.cubes[at].alias_of.is_some();
        let mut joins = Vec::new();
        for join in &merged[self.texts[at]].joins {
            let item = join.item;
            let Some(target) = self.model.cube_named(&item.name.value) else {
                if !is_alias && !self.unread.contains(&item.name.value) {
                    diagnostics.push(self.unknown_target(item));
                }
                continue;
            };
            let wanted = item.cube.as_ref().map_or(&item.name.value, |cube| &cube.value);
            let stands_for = target.alias_of.map_or(&target.name, |original| &self.model.cube(original).name);
            if item.cube.is_some() && wanted != stands_for {
                // Reported as a conflict of names.
                continue;
            }
            joins.push(Join {
                target: target.id,
                relationship: item.relationship,
                on: Snippet::default(),
                always: item.always,
                span: Some(item.name.span()),
            });
            self.joins[at].push(*join);
        }
        joins
    }

    fn unknown_target(&self, join: &JoinDefinition) -> Diagnostic {
        let known = self.model.cubes.iter().map(|cube| &*cube.name);
        let hint = suggest(&join.name.value, "cubes", known);
        let hint =
            if join.cube.is_none() { format!("{hint}; to join a cube under another name add `cube:`") } else { hint };
        Diagnostic::error(Code::UnknownCube, format!("the join names a cube `{}` that doesn't exist", join.name.value))
            .hint(hint)
            .at(join.name.span())
    }
}

/// A cube whose snippets and joins are still missing.
fn empty(id: CubeId, merged: &Merged<'_>, name: Arc<str>, alias_of: Option<CubeId>, relation: Relation) -> Cube {
    let definition = merged.definition;
    let (measures, dimensions, segments, names) = members(id, merged);
    let primary_key = (0u32..).zip(&dimensions).filter(|(_, d)| d.primary_key).map(|(at, _)| at).collect();
    let title = match (alias_of, &definition.wording.title) {
        (None, Some(title)) => Arc::clone(title),
        _ => title_of(&name),
    };
    Cube {
        id,
        name,
        title,
        description: definition.wording.description.clone(),
        public: definition.public,
        is_guarded: false,
        alias_of,
        relation,
        measures,
        dimensions,
        segments,
        joins: Vec::new(),
        primary_key,
        primary_time: primary_time(merged),
        span: Some(definition.name.span()),
        members: names,
    }
}

fn members(id: CubeId, merged: &Merged<'_>) -> Members {
    let count = merged.measures().len() + merged.dimensions().len() + merged.segments().len();
    let mut names = HashMap::with_capacity(count);
    let (mut measures, mut dimensions, mut segments) = (
        Vec::with_capacity(merged.measures().len()),
        Vec::with_capacity(merged.dimensions().len()),
        Vec::with_capacity(merged.segments().len()),
    );
    for (index, dimension) in (0u32..).zip(merged.dimensions()) {
        let item = dimension.item;
        names.insert(Arc::clone(&item.name.value), Member::Dimension(DimensionId { cube: id, index }));
        dimensions.push(Dimension {
            name: Arc::clone(&item.name.value),
            ty: item.ty,
            sql: Snippet::default(),
            primary_key: item.primary_key,
            time: item.time,
            granularities: item.granularities.clone(),
            column_type: LogicalType::Unknown,
            presentation: presentation(&item.name.value, &item.wording),
            span: Some(item.name.span()),
            sql_span: Some(item.sql.origin.span()),
        });
    }
    for (index, measure) in (0u32..).zip(merged.measures()) {
        let item = measure.item;
        names.insert(Arc::clone(&item.name.value), Member::Measure(MeasureId { cube: id, index }));
        let mut presentation = presentation(&item.name.value, &item.wording);
        presentation.drill_members = item.drill_members.iter().map(|member| Arc::clone(&member.value)).collect();
        measures.push(Measure {
            name: Arc::clone(&item.name.value),
            kind: empty_kind(item),
            presentation,
            span: Some(item.name.span()),
            sql_span: item.sql.as_ref().map(|sql| sql.origin.span()),
        });
    }
    for (index, segment) in (0u32..).zip(merged.segments()) {
        let item = segment.item;
        names.insert(Arc::clone(&item.name.value), Member::Segment(SegmentId { cube: id, index }));
        segments.push(Segment {
            name: Arc::clone(&item.name.value),
            sql: Snippet::default(),
            presentation: presentation(&item.name.value, &item.wording),
            sql_span: Some(item.sql.origin.span()),
        });
    }
    (measures, dimensions, segments, names)
}

fn empty_kind(measure: &MeasureDefinition) -> MeasureKind {
    let aggregate =
        |function| Aggregate { function, argument: None, filters: Vec::new(), argument_type: LogicalType::Unknown };
    match measure.ty {
        MeasureType::Aggregate(function) => MeasureKind::Aggregate(aggregate(function)),
        MeasureType::Number => MeasureKind::Number(Snippet::default()),
        MeasureType::RunningTotal => {
            MeasureKind::RunningTotal { aggregate: aggregate(AggregateFunction::Sum), from_all: measure.from_all }
        }
    }
}

/// The marked one, else the only time dimension.
fn primary_time(merged: &Merged<'_>) -> Option<u32> {
    let times = || (0u32..).zip(merged.dimensions()).filter(|(_, d)| d.item.ty == super::DimensionType::Time);
    if let Some((index, _)) = times().find(|(_, dimension)| dimension.item.primary_time.is_some()) {
        return Some(index);
    }
    let mut times = times();
    let first = times.next().map(|(index, _)| index);
    if times.next().is_some() { None } else { first }
}

pub(super) fn presentation(name: &str, wording: &Wording) -> Presentation {
    Presentation {
        title: wording.title.clone().unwrap_or_else(|| title_of(name)),
        description: wording.description.clone(),
        format: wording.format.clone(),
        hidden: wording.hidden || wording.is_private,
        is_private: wording.is_private,
        drill_members: Vec::new(),
        governed: wording.governed.clone(),
    }
}

/// `average_order` as `Average order`.
fn title_of(name: &str) -> Arc<str> {
    let spaced = name.replace('_', " ");
    let trimmed = spaced.trim();
    let mut chars = trimmed.chars();
    let title: String = chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect());
    title.into()
}
