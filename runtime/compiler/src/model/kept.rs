//! Cubes that have been built, so that a project that is built again builds only what has changed.
//!
//! In: each cube with what it was made of: its definitions, and what its texts asked of other cubes while they
//! were read. Out: the same cube, shared, where all of that is as it was; where only numbers of cubes have moved,
//! a copy with the new numbers. The same for expressions of metrics, where no number has moved. What is broken is
//! never kept. Not here: circles, sizes and policies, which are about the whole project and are judged anew each time.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use super::cycles::{self, Edge, Item};
use super::expansion;
use super::relation::CleanModels;
use super::tables::Tables;
use super::{
    Aggregate, Cube, CubeId, DimensionId, DimensionType, MeasureId, MeasureKind, Member, Model, Relationship,
    SegmentId, Snippet, SqlPart,
};
use crate::diagnostic::Diagnostic;
use crate::project::{Built, CubeDefinition, Definitions, MetricDefinition, ModelDefinition, Work};

/// What was built of a project.
#[derive(Debug, Default)]
pub struct KeptCubes {
    /// Names the grammar that texts were read by.
    pub(super) warehouse: Arc<str>,
    pub(super) models: CleanModels,
    /// By name; aliases too.
    pub(super) cubes: HashMap<Arc<str>, Arc<KeptCube>>,
    /// All cubes that there were, by number, also those that were not kept.
    pub(super) names: Vec<Arc<str>>,
    /// The joins of each.
    pub(super) graph: Vec<Vec<(CubeId, Relationship)>>,
    /// What each cube reads, by name, and what that depends on besides the cube.
    pub(super) tables: HashMap<Arc<str>, Arc<Tables>>,
    pub(super) beside: Beside,
    pub(super) metrics: KeptMetrics,
    pub(super) built: Work,
}

/// The bodies of metrics, by number.
#[derive(Debug, Default)]
pub(super) struct KeptMetrics {
    /// `None`: it could not be read.
    metrics: Vec<(Arc<str>, Option<Arc<KeptMetric>>)>,
}

#[derive(Debug)]
pub(super) struct KeptMetric {
    pub(super) definition: Arc<MetricDefinition>,
    pub(super) asked: Asked,
    pub(super) body: Snippet,
}

impl KeptMetrics {
    /// Them, where every metric and every cube has the number that it had: bodies speak of both by number.
    pub(super) fn still(&self, model: &Model, before: &KeptCubes) -> Option<&KeptMetrics> {
        let are_same = self.metrics.len() == model.metrics.len()
            && self.metrics.iter().zip(&model.metrics).all(|((name, _), now)| *name == now.name);
        let is_still = |(number, name): (u32, &Arc<str>)| model.cube_named(name).is_none_or(|now| now.id.0 == number);
        (are_same && (0u32..).zip(&before.names).all(is_still)).then_some(self)
    }

    /// The body of a metric that was made of this very definition and asked what is answered alike.
    pub(super) fn body(&self, at: usize, of: &Arc<MetricDefinition>, model: &Model) -> Option<Arc<KeptMetric>> {
        let known = self.metrics.get(at)?.1.as_ref()?;
        (Arc::ptr_eq(&known.definition, of) && known.asked.is_answered_alike(model)).then(|| Arc::clone(known))
    }

    pub(super) fn push(&mut self, name: &Arc<str>, metric: Option<Arc<KeptMetric>>) {
        self.metrics.push((Arc::clone(name), metric));
    }

    pub(super) fn bodies(&self) -> impl Iterator<Item = Option<&Snippet>> {
        self.metrics.iter().map(|(_, metric)| metric.as_ref().map(|metric| &metric.body))
    }
}

/// Any cube may name what a model is built as.
#[derive(Debug, Default)]
pub(super) struct Beside {
    models: Vec<Arc<ModelDefinition>>,
    built: Built,
    init: Vec<Arc<str>>,
}

impl Beside {
    pub(super) fn of(definitions: &Definitions) -> Beside {
        let Definitions { models, built, init, .. } = definitions;
        Beside { models: models.clone(), built: built.clone(), init: init.clone() }
    }

    /// The models that are defined anew, where nothing else has changed: each has its name, and is built as what it
    /// was. `None`: anything may mean something else now.
    pub(super) fn changed(&self, before: &Beside) -> Option<HashSet<Arc<str>>> {
        if self.models.len() != before.models.len() || self.built != before.built || self.init != before.init {
            return None;
        }
        let mut changed = HashSet::new();
        for (now, then) in self.models.iter().zip(&before.models).filter(|(now, then)| !Arc::ptr_eq(now, then)) {
            if now.name.value != then.name.value || now.built_as() != then.built_as() {
                return None;
            }
            changed.insert(Arc::clone(&now.name.value));
        }
        Some(changed)
    }
}

impl KeptCubes {
    /// How many models were checked, and how many had been.
    pub fn models(&self) -> Work {
        self.models.work
    }

    /// How many cubes were built, aliases included, and how many had been.
    pub fn cubes(&self) -> Work {
        self.built
    }

    /// Models that were checked by the grammar of these definitions.
    pub(super) fn models_for(&self, definitions: &Definitions) -> &CleanModels {
        static NOTHING: LazyLock<CleanModels> = LazyLock::new(CleanModels::default);
        if self.warehouse == definitions.warehouse { &self.models } else { &NOTHING }
    }

    /// The cube of a name, if it was made of these very definitions.
    pub(super) fn made_of(&self, name: &str, line: &[&Arc<CubeDefinition>]) -> Option<&Arc<KeptCube>> {
        let is_same = |kept: &&Arc<KeptCube>| {
            kept.made.line.len() == line.len() && kept.made.line.iter().zip(line).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        self.cubes.get(name).filter(is_same)
    }
}

/// One cube, and what it depends on.
#[derive(Debug)]
pub(super) struct KeptCube {
    /// As it was built: nothing left out, no types, no policies.
    pub(super) cube: Arc<Cube>,
    pub(super) made: Made,
    pub(super) found: Arc<Found>,
}

/// What a cube was made of, and what was told of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Made {
    /// Its definition and those that it extends, the eldest first; an alias has its target's.
    pub(super) line: Vec<Arc<CubeDefinition>>,
    pub(super) alias_of: Option<Arc<str>>,
    pub(super) asked: Asked,
    /// Of its relation, then of its members.
    pub(super) relation_told: Vec<Diagnostic>,
    pub(super) told: Vec<Told>,
    pub(super) names_told: Vec<Diagnostic>,
}

/// What is found in a cube that is built, and would be found again.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) edges: Vec<Edge>,
    pub(super) has_constants: bool,
}

impl Found {
    pub(super) fn of(cube: &Cube) -> Found {
        Found { edges: cycles::of_cube(cube), has_constants: expansion::has_constants(cube) }
    }
}

/// A warning of a cube.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) diagnostic: Diagnostic,
    /// It may come from several heirs, and is told once.
    pub(super) is_shared: bool,
}

/// What a cube's texts asked of the rest of the model, and what they were answered.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    names: Vec<(Box<str>, Option<CubeId>)>,
    members: Vec<(CubeId, Box<str>, Option<Answer>)>,
    /// Reached by to-one hops.
    reached: Vec<CubeId>,
}

/// A member of another cube: its kind, its place, and the type of a dimension.
type Answer = (Member, Option<DimensionType>);

fn answer(model: &Model, cube: CubeId, name: &str) -> Option<Answer> {
    let member = model.cube(cube).member(name)?;
    let ty = match member {
        Member::Dimension(id) => Some(model.dimension(id).ty),
        Member::Measure(_) | Member::Segment(_) => None,
    };
    Some((member, ty))
}

/// Where questions are written down, each once.
#[derive(Debug, Default)]
pub(super) struct Notes {
    names: RefCell<HashMap<Box<str>, Option<CubeId>>>,
    members: RefCell<HashMap<CubeId, HashSet<Box<str>>>>,
    reached: RefCell<HashSet<CubeId>>,
}

impl Notes {
    pub(super) fn note_name(&self, name: &str, found: Option<CubeId>) {
        let mut names = self.names.borrow_mut();
        if !names.contains_key(name) {
            names.insert(name.into(), found);
        }
    }

    pub(super) fn note_member(&self, cube: CubeId, name: &str) {
        let mut members = self.members.borrow_mut();
        let members = members.entry(cube).or_default();
        if !members.contains(name) {
            members.insert(name.into());
        }
    }

    pub(super) fn note_reached(&self, cube: CubeId) {
        self.reached.borrow_mut().insert(cube);
    }

    /// All of it, with what the model answers.
    pub(super) fn answered(self, model: &Model) -> Asked {
        let members = self.members.into_inner().into_iter();
        let answered = members.flat_map(|(cube, names)| {
            names.into_iter().map(move |name| {
                let answer = answer(model, cube, &name);
                (cube, name, answer)
            })
        });
        Asked {
            names: self.names.into_inner().into_iter().collect(),
            members: answered.collect(),
            reached: self.reached.into_inner().into_iter().collect(),
        }
    }
}

impl Asked {
    /// Whether a model whose cubes have the numbers that they had answers all of it alike. No rows are reached.
    fn is_answered_alike(&self, model: &Model) -> bool {
        let names = self.names.iter().all(|(name, found)| model.cube_named(name).map(|cube| cube.id) == *found);
        let is_alike = |(cube, name, found): &(CubeId, Box<str>, Option<Answer>)| {
            model.cubes.get(cube.0 as usize).is_some() && answer(model, *cube, name) == *found
        };
        names && self.members.iter().all(is_alike) && self.reached.is_empty()
    }

    /// Whether a model answers all of it alike.
    fn holds(&self, own: CubeId, model: &Model, moves: &Moves) -> bool {
        let names = self.names.iter().all(|(name, found)| match found {
            None => model.cube_named(name).is_none(),
            Some(found) => {
                moves.of(*found).is_some_and(|now| model.cube_named(name).is_some_and(|cube| cube.id == now))
            }
        });
        names
            && self.members.iter().all(|(cube, name, found)| {
                let Some(now) = moves.of(*cube) else { return false };
                let moved = |cube: CubeId| moves.of(cube).unwrap_or(cube);
                let expected = found.map(|(member, ty)| (moved_member(member, &moved), ty));
                answer(model, now, name) == expected
            })
            && self
                .reached
                .iter()
                .all(|cube| moves.of(*cube).is_some_and(|now| moves.is_same_graph || model.reach(own).is_to_one(now)))
    }

    fn moved(&self, moved: &dyn Fn(CubeId) -> CubeId) -> Asked {
        Asked {
            names: self.names.iter().map(|(name, found)| (name.clone(), found.map(moved))).collect(),
            members: self
                .members
                .iter()
                .map(|(cube, name, found)| {
                    (moved(*cube), name.clone(), found.map(|(member, ty)| (moved_member(member, moved), ty)))
                })
                .collect(),
            reached: self.reached.iter().map(|cube| moved(*cube)).collect(),
        }
    }
}

/// Which number each cube has now.
pub(super) struct Moves {
    now: Vec<Option<CubeId>>,
    /// No cube that there was has another number.
    is_still: bool,
    /// Every cube joins what it joined.
    is_same_graph: bool,
}

impl Moves {
    pub(super) fn new(before: &KeptCubes, model: &Model) -> Moves {
        let now: Vec<Option<CubeId>> =
            before.names.iter().map(|name| model.cube_named(name).map(|cube| cube.id)).collect();
        let is_still = (0u32..).zip(&now).all(|(old, now)| now.is_none_or(|now| now.0 == old));
        let is_same_graph = is_still
            && model.cubes.len() == before.graph.len()
            && now.iter().all(Option::is_some)
            && model.cubes.iter().zip(&before.graph).all(|(cube, joins)| {
                let now = cube.joins.iter().map(|join| (join.target, join.relationship));
                now.eq(joins.iter().copied())
            });
        Moves { now, is_still, is_same_graph }
    }

    pub(super) fn is_still(&self) -> bool {
        self.is_still
    }

    fn of(&self, before: CubeId) -> Option<CubeId> {
        self.now.get(before.0 as usize).copied().flatten()
    }
}

/// The joins of every cube.
pub(super) fn graph(model: &Model) -> Vec<Vec<(CubeId, Relationship)>> {
    let joins = |cube: &Arc<Cube>| cube.joins.iter().map(|join| (join.target, join.relationship)).collect();
    model.cubes.iter().map(joins).collect()
}

impl KeptCube {
    /// Whether the joins of a cube are the same but for numbers.
    pub(super) fn has_joins(&self, now: &[super::Join], moves: &Moves) -> bool {
        self.cube.joins.len() == now.len()
            && self.cube.joins.iter().zip(now).all(|(old, now)| {
                moves.of(old.target) == Some(now.target)
                    && (old.relationship, old.always, &old.span) == (now.relationship, now.always, &now.span)
            })
    }

    /// The same with the numbers of now; `None` where something that it asked is answered otherwise.
    pub(super) fn again(self: &Arc<KeptCube>, id: CubeId, model: &Model, moves: &Moves) -> Option<Arc<KeptCube>> {
        if !self.made.asked.holds(id, model, moves) {
            return None;
        }
        if moves.is_still && self.cube.id == id {
            return Some(Arc::clone(self));
        }
        let moved = |cube: CubeId| moves.of(cube).unwrap_or(cube);
        let mut cube = Cube::clone(&self.cube);
        cube.move_to(id, &moved);
        Some(Arc::new(KeptCube {
            cube: Arc::new(cube),
            made: Made { asked: self.made.asked.moved(&moved), ..self.made.clone() },
            found: Arc::new(Found {
                edges: self.found.edges.iter().map(|edge| moved_edge(edge, &moved)).collect(),
                ..Found::clone(&self.found)
            }),
        }))
    }
}

fn moved_item(item: Item, moved: &dyn Fn(CubeId) -> CubeId) -> Item {
    match item {
        Item::Dimension(id) => Item::Dimension(DimensionId { cube: moved(id.cube), ..id }),
        Item::Measure(id) => Item::Measure(MeasureId { cube: moved(id.cube), ..id }),
        Item::Segment(id) => Item::Segment(SegmentId { cube: moved(id.cube), ..id }),
        Item::Join(cube, index) => Item::Join(moved(cube), index),
        Item::Metric(_) => item,
    }
}

fn moved_edge((item, found): &Edge, moved: &dyn Fn(CubeId) -> CubeId) -> Edge {
    (moved_item(*item, moved), found.iter().map(|item| moved_item(*item, moved)).collect())
}

fn moved_member(member: Member, moved: &dyn Fn(CubeId) -> CubeId) -> Member {
    match member {
        Member::Measure(id) => Member::Measure(MeasureId { cube: moved(id.cube), ..id }),
        Member::Dimension(id) => Member::Dimension(DimensionId { cube: moved(id.cube), ..id }),
        Member::Segment(id) => Member::Segment(SegmentId { cube: moved(id.cube), ..id }),
    }
}

impl Cube {
    fn move_to(&mut self, id: CubeId, moved: &dyn Fn(CubeId) -> CubeId) {
        self.id = id;
        self.alias_of = self.alias_of.map(moved);
        for dimension in &mut self.dimensions {
            move_snippet(&mut dimension.sql, moved);
        }
        for measure in &mut self.measures {
            match &mut measure.kind {
                MeasureKind::Aggregate(aggregate) | MeasureKind::RunningTotal { aggregate, .. } => {
                    move_aggregate(aggregate, moved);
                }
                MeasureKind::Number(sql) => move_snippet(sql, moved),
            }
        }
        for segment in &mut self.segments {
            move_snippet(&mut segment.sql, moved);
        }
        for join in &mut self.joins {
            join.target = moved(join.target);
            move_snippet(&mut join.on, moved);
        }
        for member in self.members.values_mut() {
            *member = moved_member(*member, moved);
        }
    }
}

fn move_aggregate(aggregate: &mut Aggregate, moved: &dyn Fn(CubeId) -> CubeId) {
    for snippet in aggregate.argument.iter_mut().chain(&mut aggregate.filters) {
        move_snippet(snippet, moved);
    }
}

fn move_snippet(snippet: &mut Snippet, moved: &dyn Fn(CubeId) -> CubeId) {
    for part in &mut snippet.parts {
        match part {
            SqlPart::Column { cube, .. } => *cube = moved(*cube),
            SqlPart::Dimension(id) => id.cube = moved(id.cube),
            SqlPart::Measure(id) => id.cube = moved(id.cube),
            SqlPart::Aggregate(aggregate) => move_aggregate(aggregate, moved),
            SqlPart::Divide(left, right) => {
                move_snippet(left, moved);
                move_snippet(right, moved);
            }
            SqlPart::Text(_) | SqlPart::Metric(_) | SqlPart::User(_) => {}
        }
    }
}
