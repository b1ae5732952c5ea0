//! Collects the nodes and edges of a project.
//!
//! In: definitions and the model. Out: nodes and edges in the order of the files, and the place where the SQL of each
//! node begins. Items that are missing in the model are nodes too, because readers of the graph look for them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::diagnostics::Places;
use super::{Node, NodeType, Subject};
use crate::KnownColumns;
use terrane_compiler::model::{
    Aggregate, Cube, CubeId, DimensionId, MeasureId, MeasureKind, Member, MetricId, Model, Snippet, SqlPart,
};
use terrane_compiler::project::{CubeDefinition, Definitions, Origin, RelationDefinition};
use terrane_compiler::snippet::tables_named_in;

pub(super) struct Collected {
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<(u32, u32)>,
    pub(super) places: Places,
}

pub(super) fn collect(definitions: &Definitions, model: &Model) -> Collected {
    let mut collecting = Collecting {
        definitions,
        model,
        nodes: Vec::new(),
        edges: Vec::new(),
        places: Places::new(),
        tables: HashMap::new(),
        models: HashMap::new(),
        cubes: HashMap::new(),
        members: HashMap::new(),
        metrics: HashMap::new(),
    };
    collecting.sources();
    collecting.models();
    collecting.cubes();
    collecting.references();
    collecting.metrics();
    Collected { nodes: collecting.nodes, edges: collecting.edges, places: collecting.places }
}

struct Collecting<'d> {
    definitions: &'d Definitions,
    model: &'d Model,
    nodes: Vec<Node>,
    edges: Vec<(u32, u32)>,
    places: Places,
    tables: HashMap<(&'d str, &'d str), u32>,
    models: HashMap<&'d str, u32>,
    cubes: HashMap<&'d str, u32>,
    members: HashMap<Member, u32>,
    metrics: HashMap<MetricId, u32>,
}

impl<'d> Collecting<'d> {
    fn node(&mut self, node_type: NodeType, path: &str, name: &Arc<str>, subject: Subject) -> u32 {
        let project = &self.definitions.project;
        let at = self.nodes.len() as u32;
        self.nodes.push(Node {
            unique_id: format!("{}.{project}.{path}", node_type_of_id(node_type)).into(),
            node_type,
            name: Arc::clone(name),
            compiled: !matches!(subject, Subject::Broken),
            error: None,
            subject,
        });
        at
    }

    fn place(&mut self, at: u32, origin: &Origin) {
        self.places.entry((Arc::clone(&origin.file.path), origin.line, origin.column)).or_insert(at);
    }

    fn sources(&mut self) {
        for source in &self.definitions.sources {
            let name = &source.name.value;
            let of = self.node(NodeType::Source, name, name, Subject::Plain);
            self.place(of, &source.name.origin);
            for table in &source.tables {
                let path = format!("{name}.{}", table.name.value);
                let at = self.node(NodeType::SourceTable, &path, &table.name.value, Subject::Plain);
                self.place(at, &table.name.origin);
                self.tables.insert((name, &table.name.value), at);
                self.edges.push((of, at));
            }
        }
    }

    fn models(&mut self) {
        let known = KnownColumns::declared(self.definitions);
        let declared = KnownColumns::declared_tables(self.definitions);
        let cyclic = self.definitions.cyclic_models.iter().map(|model| (model, Subject::Broken));
        let all: Vec<_> = self.definitions.models.iter().map(|model| (model, Subject::Plain)).chain(cyclic).collect();
        for (model, subject) in &all {
            let name = &model.name.value;
            let at = self.node(NodeType::Model, name, name, *subject);
            self.place(at, &model.name.origin);
            self.models.insert(name, at);
        }
        for model in &self.definitions.broken_models {
            let at = self.node(NodeType::Model, &model.value, &model.value, Subject::Broken);
            self.place(at, &model.origin);
            self.models.insert(&model.value, at);
        }
        let grammar = terrane_compiler::snippet::grammar(&self.definitions.warehouse);
        for (model, _) in all {
            let at = self.models[&*model.name.value];
            self.needs_relations(at, model.refs.iter().map(|reference| &*reference.name), &model.sources);
            let named = tables_named_in(&model.sql.text, &*grammar);
            let declared = named.iter().filter_map(|table| declared.get(known.name_of(table)?));
            let tables = declared.filter_map(|(source, table)| self.tables.get(&(&**source, &**table)).copied());
            let needed: Vec<u32> = tables.collect();
            self.edges.extend(needed.into_iter().map(|from| (from, at)));
        }
    }

    fn needs_relations<'r>(&mut self, at: u32, refs: impl Iterator<Item = &'r str>, sources: &[(Arc<str>, Arc<str>)]) {
        let models = refs.filter_map(|name| self.models.get(name).copied());
        let tables = sources.iter().filter_map(|(source, table)| self.tables.get(&(&**source, &**table)).copied());
        let needed: Vec<u32> = models.chain(tables).collect();
        self.edges.extend(needed.into_iter().map(|from| (from, at)));
    }

    fn cubes(&mut self) {
        let by_name: HashMap<&str, &CubeDefinition> =
            self.definitions.cubes.iter().map(|cube| (&*cube.name.value, cube)).collect();
        let known = KnownColumns::declared(self.definitions);
        let declared = KnownColumns::declared_tables(self.definitions);
        for definition in &self.definitions.cubes {
            let name = &definition.name.value;
            let built = self.model.cube_named(name).filter(|cube| cube.alias_of.is_none());
            let at =
                self.node(NodeType::Cube, name, name, built.map_or(Subject::Broken, |cube| Subject::Cube(cube.id)));
            self.cubes.insert(name, at);
            self.place(at, &definition.name.origin);
            definition.extends.iter().for_each(|text| self.place(at, &text.origin));
            definition.relation.iter().for_each(|relation| self.place(at, &relation.sql.origin));
            for join in &definition.joins {
                self.place(at, &join.name.origin);
                self.place(at, &join.sql.origin);
            }
            let line = definition.line(|name| by_name.get(name).copied());
            if let Some(relation) = line.iter().find_map(|cube| cube.relation.as_ref()) {
                self.needs_relations(at, relation.refs.iter().map(|reference| &*reference.name), &relation.sources);
                if let Some(table) = named_table(relation, &known).and_then(|name| declared.get(name))
                    && let Some(from) = self.tables.get(&(&*table.0, &*table.1))
                {
                    self.edges.push((*from, at));
                }
            }
            self.own_members(at, name, built, &line);
        }
        // The node of a parent may be created after the node of its derived cube, so these edges are added last.
        for definition in &self.definitions.cubes {
            let parent = definition.extends.as_ref().and_then(|parent| self.cubes.get(&*parent.value));
            if let Some(parent) = parent {
                self.edges.push((*parent, self.cubes[&*definition.name.value]));
            }
        }
        let model = self.model;
        for alias in &model.cubes {
            let Some(original) = alias.alias_of else { continue };
            let at = self.node(NodeType::Cube, &alias.name, &alias.name, Subject::Cube(alias.id));
            self.cubes.insert(&alias.name, at);
            self.edges.push((self.cubes[&*model.cube(original).name], at));
            self.own_members(at, &alias.name, Some(alias), &[]);
        }
    }

    /// Adds the members of the built cube, then the members that only the definitions have.
    fn own_members(&mut self, cube: u32, cube_name: &str, built: Option<&'d Cube>, line: &[&'d CubeDefinition]) {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut texts: HashMap<&str, Vec<&'d Origin>> = HashMap::new();
        let mut broken: Vec<(NodeType, &'d Arc<str>)> = Vec::new();
        for (index, definition) in line.iter().enumerate() {
            for measure in &definition.measures {
                broken.push((NodeType::Measure, &measure.name.value));
                let sql = measure.sql.iter().chain(&measure.filters).map(|sql| &sql.origin);
                if index == 0 {
                    texts.entry(&measure.name.value).or_default().extend(sql.chain([&measure.name.origin]));
                }
            }
            for dimension in &definition.dimensions {
                broken.push((NodeType::Dimension, &dimension.name.value));
                if index == 0 {
                    let origins = [&dimension.name.origin, &dimension.sql.origin];
                    texts.entry(&dimension.name.value).or_default().extend(origins);
                }
            }
            for segment in &definition.segments {
                self.place(cube, &segment.name.origin);
                self.place(cube, &segment.sql.origin);
            }
        }
        let members = built.into_iter().flat_map(|built| {
            let dimensions = (0u32..).zip(&built.dimensions).map(|(index, dimension)| {
                let member = Member::Dimension(DimensionId { cube: built.id, index });
                (NodeType::Dimension, &dimension.name, Some(member))
            });
            let measures = (0u32..).zip(&built.measures).map(|(index, measure)| {
                let member = Member::Measure(MeasureId { cube: built.id, index });
                (NodeType::Measure, &measure.name, Some(member))
            });
            dimensions.chain(measures)
        });
        let all: Vec<_> = members.chain(broken.into_iter().map(|(ty, name)| (ty, name, None))).collect();
        for (node_type, name, member) in all {
            if !seen.insert(name) {
                continue;
            }
            let subject = member.map_or(Subject::Broken, Subject::Member);
            let at = self.node(node_type, &format!("{cube_name}.{name}"), name, subject);
            self.edges.push((cube, at));
            for origin in texts.get(&**name).into_iter().flatten() {
                self.place(at, origin);
            }
            if let Some(member) = member {
                self.members.insert(member, at);
            }
        }
    }

    /// Adds edges to members and metrics from the members and cubes that their SQL refers to.
    fn references(&mut self) {
        let model = self.model;
        for cube in &model.cubes {
            for (index, dimension) in (0u32..).zip(&cube.dimensions) {
                let at = self.members[&Member::Dimension(DimensionId { cube: cube.id, index })];
                self.needs(at, &dimension.sql, cube.id);
            }
            for (index, measure) in (0u32..).zip(&cube.measures) {
                let at = self.members[&Member::Measure(MeasureId { cube: cube.id, index })];
                match &measure.kind {
                    MeasureKind::Aggregate(aggregate)
                    | MeasureKind::RunningTotal { aggregate, .. }
                    | MeasureKind::Rolling { aggregate, .. } => {
                        self.needs_of_aggregate(at, aggregate, cube.id);
                    }
                    MeasureKind::Number(sql) => self.needs(at, sql, cube.id),
                }
            }
        }
    }

    fn needs_of_aggregate(&mut self, at: u32, aggregate: &Aggregate, own: CubeId) {
        for sql in aggregate.argument.iter().chain(&aggregate.filters) {
            self.needs(at, sql, own);
        }
    }

    fn needs(&mut self, at: u32, sql: &Snippet, own: CubeId) {
        let mut parts = Vec::new();
        sql.for_each(&mut |part| parts.push(part));
        for part in parts {
            let from = match part {
                SqlPart::Column { cube, .. } if *cube != own => self.cubes.get(&*self.model.cube(*cube).name).copied(),
                SqlPart::Dimension(id) => self.members.get(&Member::Dimension(*id)).copied(),
                SqlPart::Measure(id) => self.members.get(&Member::Measure(*id)).copied(),
                SqlPart::Metric(id) => self.metrics.get(id).copied(),
                SqlPart::Aggregate(aggregate) => {
                    self.needs_of_aggregate(at, aggregate, own);
                    None
                }
                SqlPart::Text(_) | SqlPart::Column { .. } | SqlPart::User(_) | SqlPart::Divide(..) => None,
            };
            self.edges.extend(from.map(|from| (from, at)));
        }
    }

    fn metrics(&mut self) {
        let model = self.model;
        for definition in &self.definitions.metrics {
            let name = &definition.name.value;
            let id = model.metric_named(name);
            let at = self.node(NodeType::Metric, name, name, id.map_or(Subject::Broken, Subject::Metric));
            self.place(at, &definition.name.origin);
            match &definition.body {
                terrane_compiler::project::MetricBody::Expression(sql) => self.place(at, &sql.origin),
                terrane_compiler::project::MetricBody::Ratio { numerator, denominator } => {
                    self.place(at, &numerator.origin);
                    self.place(at, &denominator.origin);
                }
            }
            for filter in &definition.filters {
                self.place(at, &filter.member.origin);
                self.place(at, &filter.operator.origin);
            }
            if let Some(id) = id {
                self.metrics.insert(id, at);
            }
        }
        let all: Vec<(MetricId, u32)> = self.metrics.iter().map(|(id, at)| (*id, *at)).collect();
        for (id, at) in all {
            let metric = model.metric(id);
            // A metric belongs to no cube, so every column in it belongs to another cube.
            self.needs(at, &metric.body, CubeId(u32::MAX));
            for filter in &metric.filters {
                let mut names = filter.member.split('.');
                let cube = names.next().and_then(|cube| model.cube_named(cube));
                let member = cube.zip(names.next()).and_then(|(cube, member)| cube.member(member));
                let from = member.and_then(|member| self.members.get(&member).copied());
                self.edges.extend(from.map(|from| (from, at)));
            }
        }
    }
}

/// Returns the first part of the ids of nodes of a type. The ids of tables begin with `source`, as in
/// `source.shop.raw.orders`.
fn node_type_of_id(node_type: NodeType) -> &'static str {
    match node_type {
        NodeType::SourceTable => "source",
        other => other.as_str(),
    }
}

/// Returns the declared table that a relation reads, if `sql_table` is a plain name without `ref` or `source`.
fn named_table<'k>(relation: &RelationDefinition, known: &'k KnownColumns) -> Option<&'k str> {
    let is_plain = relation.is_table && relation.refs.is_empty() && relation.sources.is_empty();
    if is_plain { known.name_of(relation.sql.text.trim()) } else { None }
}
