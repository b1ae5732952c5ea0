//! Assembles the names, cubes and joins of a model before any snippet is read.
//!
//! In: merged cubes. Out: a [`Model`] whose snippets are empty, and for each cube of this model the definition from
//! which the cube's SQL is read. A join that renames its target adds an alias: a cube with the new name. Joins with the
//! same new name share one alias.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use sqlparser::dialect::Dialect;

use super::inherit::{Inherited, Merged, WithoutRelation};
use super::relation::Models;
use super::unread::Unread;
use super::{
    Aggregate, AggregateFunction, ColumnName, Cube, CubeId, Dimension, DimensionId, Join, Measure, MeasureId,
    MeasureKind, Member, Model, Presentation, Relation, Rollup, Segment, SegmentId, Snippet, TableName,
};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::project::{Definitions, JoinDefinition, MeasureDefinition, MeasureType, Wording};
use crate::text::nearest::suggest;
use crate::types::LogicalType;

/// A model without snippets.
pub(super) struct Skeleton<'d> {
    pub(super) model: Model,
    /// For each cube of the model, the index of its definition in the merged cubes. An alias has the index of its
    /// target.
    pub(super) texts: Vec<usize>,
    /// The definitions of each cube's joins, parallel to the joins of the cube.
    pub(super) joins: Vec<Vec<Inherited<'d, JoinDefinition>>>,
    /// The names that the model lacks because of problems that are already reported.
    pub(super) unread: Unread,
}

/// The measures, dimensions, segments and member names of one cube.
type Members = (Vec<Measure>, Vec<Dimension>, Vec<Segment>, HashMap<Arc<str>, Member>);

pub(super) fn assemble<'d>(
    definitions: &'d Definitions,
    merged: &[Merged<'d>],
    unusable: HashSet<&'d str>,
    without_relation: WithoutRelation,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) -> Skeleton<'d> {
    let models = Models::new(definitions, dialect, diagnostics);
    let mut unread = Unread::of(definitions);
    unusable.into_iter().for_each(|name| unread.insert(Arc::from(name)));
    let mut skeleton = Skeleton {
        model: Model {
            project: Arc::clone(&definitions.project),
            cubes: Vec::with_capacity(merged.len()),
            metrics: Vec::new(),
            policies: Vec::new(),
            has_unread_files: !definitions.unread_files.is_empty(),
            cube_names: HashMap::with_capacity(merged.len()),
            metric_names: HashMap::new(),
            join_paths: Vec::new(),
            ties: Vec::new(),
            tables: Vec::new(),
            shared_rows: Vec::new(),
        },
        texts: Vec::with_capacity(merged.len()),
        joins: Vec::with_capacity(merged.len()),
        unread,
    };
    for (at, cube) in merged.iter().enumerate() {
        let name = &cube.definition.name.value;
        let relation = cube.relation.and_then(|relation| models.relation(relation, dialect, diagnostics));
        let substitute = || (without_relation == WithoutRelation::Substituted).then(|| placeholder(name));
        match relation.or_else(substitute) {
            Some(relation) => {
                skeleton.add(at, cube, Arc::clone(name), None, relation);
                if cube.is_partial {
                    skeleton.unread.add_partial(CubeId(skeleton.model.cubes.len() as u32 - 1));
                }
                let refresh = cube.refresh.and_then(|refresh| models.refresh(refresh, dialect, diagnostics));
                let rollups = cube.definition.pre_aggregations.iter().map(|definition| Rollup {
                    name: Arc::clone(&definition.name.value),
                    refresh: definition
                        .refresh
                        .as_ref()
                        .and_then(|refresh| models.refresh(refresh, dialect, diagnostics)),
                    span: Some(definition.name.span()),
                    ..Rollup::default()
                });
                let rollups = rollups.collect();
                if let Some(added) = skeleton.model.cubes.last_mut() {
                    (added.refresh, added.rollups) = (refresh, rollups);
                }
            }
            None => {
                skeleton.unread.insert(Arc::clone(name));
            }
        }
    }
    skeleton.add_aliases(merged, diagnostics);
    skeleton.add_joins(merged, diagnostics);
    skeleton.model.join_paths = skeleton.model.cubes.iter().map(|_| OnceLock::new()).collect();
    skeleton.model.ties = skeleton.model.cubes.iter().map(|_| OnceLock::new()).collect();
    skeleton
}

impl<'d> Skeleton<'d> {
    /// Adds a cube without snippets and joins, which are added later.
    fn add(&mut self, text: usize, merged: &Merged<'d>, name: Arc<str>, alias_of: Option<CubeId>, relation: Relation) {
        let id = CubeId(self.model.cubes.len() as u32);
        self.model.cube_names.insert(Arc::clone(&name), id);
        self.model.cubes.push(empty(id, merged, name, alias_of, relation));
        self.texts.push(text);
        self.joins.push(Vec::new());
    }

    /// Adds a cube for each join that gives its target another name, such as `cube: airports`. Joins with the same name
    /// share one cube.
    fn add_aliases(&mut self, merged: &[Merged<'d>], diagnostics: &mut Vec<Diagnostic>) {
        let mut spans: HashMap<Arc<str>, Span> = HashMap::new();
        let mut reported: HashSet<(&str, u32, u32)> = HashSet::new();
        for join in merged.iter().flat_map(|cube| &cube.joins).map(|join| join.item) {
            let Some(cube) = join.cube.as_ref().filter(|cube| cube.value != join.name.value) else { continue };
            // An inherited join occurs once in each cube that inherits it.
            if !reported.insert((&join.name.origin.file.path, join.name.origin.line, join.name.origin.column)) {
                continue;
            }
            let Some(target) = self.model.cube_named(&cube.value) else {
                if !self.unread.contains(&cube.value) {
                    let known = self.model.cubes.iter().filter(|cube| cube.alias_of.is_none()).map(|cube| &*cube.name);
                    diagnostics.push(
                        Diagnostic::error(
                            Code::UnknownCube,
                            format!("join `{}` refers to unknown cube `{}`", join.name.value, cube.value),
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
                        format!("join `{}` names `{}`, which is the name of another join", join.name.value, cube.value),
                    )
                    .hint(format!("Write `cube: {}`.", self.model.cube(original).name))
                    .at(cube.span()),
                );
                self.unread.insert(Arc::clone(&join.name.value));
                continue;
            }
            let (target, relation) = (target.id, target.relation.clone());
            match self.model.cube_named(&join.name.value) {
                None => {
                    let text = self.texts[target.0 as usize];
                    let name = Arc::clone(&join.name.value);
                    self.add(text, &merged[text], name, Some(target), relation);
                    spans.insert(Arc::clone(&join.name.value), join.name.span());
                }
                Some(existing) if existing.alias_of == Some(target) => {}
                Some(existing) => {
                    let message = match existing.alias_of {
                        Some(other) => {
                            format!("name `{}` is already used for `{}`", join.name.value, self.model.cube(other).name)
                        }
                        None => format!("`{}` is the name of a cube", join.name.value),
                    };
                    let first = spans.get(&join.name.value).map(|span| format!(" (see {span})")).unwrap_or_default();
                    diagnostics.push(
                        Diagnostic::error(Code::AliasConflict, message)
                            .hint(format!(
                                "Choose another name for this join. A name has one target in the whole project{first}."
                            ))
                            .at(join.name.span()),
                    );
                }
            }
        }
    }

    fn add_joins(&mut self, merged: &[Merged<'d>], diagnostics: &mut Vec<Diagnostic>) {
        for at in 0..self.model.cubes.len() {
            self.model.cubes[at].joins = self.joins_of(at, merged, diagnostics);
        }
    }

    /// Returns the joins of one cube, and stores the definition of each in `self.joins`.
    fn joins_of(&mut self, at: usize, merged: &[Merged<'d>], diagnostics: &mut Vec<Diagnostic>) -> Vec<Join> {
        let is_alias = self.model.cubes[at].alias_of.is_some();
        let mut joins = Vec::new();
        for join in &merged[self.texts[at]].joins {
            let item = join.item;
            let Some(target) = self.model.cube_named(&item.name.value) else {
                if !is_alias && !self.unread.contains(&item.name.value) {
                    diagnostics.push(self.unknown_target(item));
                }
                self.unread.add_without_join(self.model.cubes[at].id);
                continue;
            };
            let wanted = item.cube.as_ref().map_or(&item.name.value, |cube| &cube.value);
            let stands_for = target.alias_of.map_or(&target.name, |original| &self.model.cube(original).name);
            if item.cube.is_some() && wanted != stands_for {
                // `add_aliases` has reported the conflict of names.
                continue;
            }
            joins.push(Join {
                target: target.id,
                relationship: item.relationship,
                on: Snippet::default(),
                always: item.always,
                is_enforced: false,
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
            if join.cube.is_none() { format!("{hint} To join a cube under another name, add `cube:`.") } else { hint };
        Diagnostic::error(Code::UnknownCube, format!("the join refers to unknown cube `{}`", join.name.value))
            .hint(hint)
            .at(join.name.span())
    }
}

/// Returns a table of the given name, which replaces a relation that cannot be read.
fn placeholder(name: &Arc<str>) -> Relation {
    let parts = vec![ColumnName { text: Arc::clone(name), quoted: true }];
    Relation::Table(TableName { parts, catalog_name: None })
}

/// Returns a cube without snippets and joins, which are added later.
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
        refresh: None,
        measures,
        dimensions,
        segments,
        rollups: Vec::new(),
        built_from: Vec::new(),
        joins: Vec::new(),
        primary_key,
        primary_time: primary_time(merged),
        span: Some(definition.name.span()),
        members: names,
    }
}

fn members(id: CubeId, merged: &Merged<'_>) -> Members {
    let count = merged.measures.len() + merged.dimensions.len() + merged.segments.len();
    let mut names = HashMap::with_capacity(count);
    let (mut measures, mut dimensions, mut segments) = (
        Vec::with_capacity(merged.measures.len()),
        Vec::with_capacity(merged.dimensions.len()),
        Vec::with_capacity(merged.segments.len()),
    );
    for (index, dimension) in (0u32..).zip(&merged.dimensions) {
        let item = dimension.item;
        names.insert(Arc::clone(&item.name.value), Member::Dimension(DimensionId { cube: id, index }));
        dimensions.push(Dimension {
            name: Arc::clone(&item.name.value),
            ty: item.ty,
            sql: Snippet::default(),
            primary_key: item.primary_key,
            is_partition: item.is_partition,
            time: item.time,
            granularities: item.granularities.clone(),
            tests: Vec::new(),
            column_type: LogicalType::Unknown,
            converted_from: None,
            presentation: presentation(&item.name.value, &item.wording),
            span: Some(item.name.span()),
            sql_span: Some(item.sql.origin.span()),
        });
    }
    for (index, measure) in (0u32..).zip(&merged.measures) {
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
    for (index, segment) in (0u32..).zip(&merged.segments) {
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
    let aggregate = |function| Aggregate {
        function,
        argument: None,
        filters: Vec::new(),
        argument_type: LogicalType::Unknown,
        is_converted: false,
    };
    match measure.ty {
        MeasureType::Aggregate(function) => match measure.rolling_window {
            Some(window) => MeasureKind::Rolling { aggregate: aggregate(function), window },
            None => MeasureKind::Aggregate(aggregate(function)),
        },
        MeasureType::Number => MeasureKind::Number(Snippet::default()),
        MeasureType::RunningTotal => {
            MeasureKind::RunningTotal { aggregate: aggregate(AggregateFunction::Sum), from_all: measure.from_all }
        }
    }
}

/// Returns the index of the dimension that is marked as primary time, or else of the only time dimension.
fn primary_time(merged: &Merged<'_>) -> Option<u32> {
    let times = || (0u32..).zip(&merged.dimensions).filter(|(_, d)| d.item.ty == super::DimensionType::Time);
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

/// Returns the title of a name: `Average order` for `average_order`.
fn title_of(name: &str) -> Arc<str> {
    let spaced = name.replace('_', " ");
    let trimmed = spaced.trim();
    let mut chars = trimmed.chars();
    let title: String = chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect());
    title.into()
}
