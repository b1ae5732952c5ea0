//! Builds the lineage of a project, from source columns to metrics, as one graph.
//!
//! In: definitions, the model, known columns. Out: a [`Lineage`]. Models are analyzed in their order, so that the
//! columns of earlier models are known. If a cube has a query, its values depend directly on the columns that the query
//! reads.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use sqlparser::dialect::Dialect;

use super::known::KnownColumns;
use super::query::{
    Arena, ColumnOrigin, ColumnOrigins, Name, Read, Reason, RelationCatalog, RelationShape, Rest, Seen, Slot, Star,
    TableName, Use, as_relation, bytes, column_of, read,
};
use super::spelling::Spelling;
use super::{IncompleteTable, Lineage, Node, NodeType, Subject};
use terrane_compiler::model::{
    Aggregate, ColumnName, Cube, CubeId, DimensionId, Mask, MeasureId, MeasureKind, Member, MetricId, Model, Relation,
    SegmentId, Snippet, SqlPart,
};
use terrane_compiler::project::{CubeDefinition, Definitions, SqlText};
use terrane_compiler::snippet::grammar;

pub(super) fn build(definitions: &Definitions, model: &Model, known: &KnownColumns) -> Lineage {
    let spelling = Spelling::of(&definitions.warehouse);
    let mut building = Building {
        definitions,
        model,
        dialect: grammar(&definitions.warehouse),
        catalog: RelationCatalog { known, models: HashMap::new(), spelling },
        arena: Arena::default(),
        declared: KnownColumns::declared_tables(definitions),
        stars: HashMap::new(),
        origins: HashMap::new(),
        texts: Vec::new(),
        lineage: Lineage::default(),
        slots: Vec::with_capacity(model.cubes.len()),
    };
    building.models();
    building.cubes();
    building.joins();
    building.members();
    building.member_texts();
    building.metrics();
    building.reveal_named_columns();
    building.policies();
    building.incomplete();
    building.lineage.finish();
    building.lineage
}

/// The columns of a relation, and the columns that its rows depend on.
type Columns = (Arc<[Slot]>, BTreeSet<(Use, ColumnOrigin)>);

struct Building<'d> {
    definitions: &'d Definitions,
    model: &'d Model,
    dialect: Box<dyn Dialect>,
    catalog: RelationCatalog<'d>,
    arena: Arena,
    /// The source and the table that a declared table name belongs to.
    declared: HashMap<String, (Arc<str>, Arc<str>)>,
    /// The stars that each model selects.
    stars: HashMap<Arc<str>, Vec<Star>>,
    /// The nodes of the origins that were already added.
    origins: HashMap<ColumnOrigin, u32>,
    /// The SQL that was analyzed, each piece with the number of the first unresolved place in it.
    texts: Vec<(usize, SqlText)>,
    lineage: Lineage,
    /// The columns of each cube's relation, by cube id.
    slots: Vec<Arc<[Slot]>>,
}

impl Building<'_> {
    fn node(&mut self, ty: NodeType, id: String, name: &Arc<str>, subject: Subject) -> u32 {
        self.lineage.node(Node {
            id: id.into(),
            name: Arc::clone(name),
            ty,
            cube: None,
            sql: None,
            reason: None,
            span: None,
            is_inspected: false,
            subject,
        })
    }

    fn edge(&mut self, from: u32, to: u32, usage: Use) {
        if from != to {
            self.lineage.edges.push((from, to, usage));
        }
    }

    fn read(&mut self, text: &SqlText) -> Read {
        self.arena.next_text();
        self.texts.push((self.arena.unresolved.len(), text.clone()));
        let warehouse = &self.definitions.warehouse;
        let mut read = read(&text.text, warehouse, &*self.dialect, &self.catalog, &mut self.arena);
        read.relation.slots = as_relation(read.relation.slots, warehouse);
        read
    }

    /// Returns the node of an origin, and adds it if it is new.
    fn origin(&mut self, origin: ColumnOrigin) -> u32 {
        if let Some(at) = self.origins.get(&origin) {
            return *at;
        }
        let at = match origin {
            ColumnOrigin::Table(table) => self.table(table),
            ColumnOrigin::Column(number) => {
                let column = self.arena.columns[number as usize].clone();
                let at = self.column(column.table, &column.name);
                self.lineage.nodes[at as usize].is_inspected |= column.is_inspected;
                at
            }
            ColumnOrigin::Unresolved(place) => self.unresolved(place),
        };
        self.origins.insert(origin, at);
        at
    }

    fn table(&mut self, table: u32) -> u32 {
        match self.arena.tables[table as usize].clone() {
            TableName::Model(name) => self.node(NodeType::Model, format!("model.{name}"), &name, Subject::Other),
            TableName::Table(name) => match self.declared.get(&*name).cloned() {
                Some((source, table)) => {
                    self.node(NodeType::SourceTable, format!("source.{source}.{table}"), &table, Subject::Other)
                }
                None => self.node(NodeType::Table, format!("table.{name}"), &name, Subject::Other),
            },
        }
    }

    /// Returns the node of a column. If a model selects the column through a star, the nodes of the columns that the
    /// star stands for are added too.
    fn column(&mut self, table: u32, name: &Name) -> u32 {
        let mut table = table;
        let (mut first, mut before) = (None, None);
        loop {
            let of = self.table(table);
            let id = format!("{}.column.{}", self.lineage.nodes[of as usize].id, name.shown);
            let is_new = !self.lineage.numbers.contains_key(id.as_str());
            let ty = match self.lineage.nodes[of as usize].ty {
                NodeType::Model => NodeType::ModelColumn,
                NodeType::SourceTable => NodeType::SourceColumn,
                _ => NodeType::TableColumn,
            };
            let at = self.node(ty, id, &name.shown, Subject::Other);
            if let Some(before) = before {
                self.edge(at, before, Use::Value);
            }
            let first = *first.get_or_insert(at);
            let TableName::Model(model) = self.arena.tables[table as usize].clone() else { return first };
            if !is_new {
                return first;
            }
            self.edge(of, at, Use::Rows);
            let stars: Vec<Star> = self.stars.get(&model).into_iter().flatten().cloned().collect();
            let mut fitting = stars.into_iter().filter(|star| !star.without.contains(&name.key));
            match (fitting.next(), fitting.next()) {
                (Some(Star { of: Rest::Table(next) | Rest::Undeclared(next), .. }), None) => table = next,
                (Some(Star { of: Rest::Derived(origins), .. }), None) => {
                    self.edges_of(&origins, at, Use::Value);
                    return first;
                }
                _ => {
                    let place = self.nowhere(Reason::Ambiguous(Arc::clone(&name.shown)));
                    self.edge(place, at, Use::Value);
                    return first;
                }
            }
            before = Some(at);
        }
    }

    fn unresolved(&mut self, number: u32) -> u32 {
        let place = self.arena.unresolved[number as usize].clone();
        let text = self.texts.iter().rev().find(|(from, _)| *from <= number as usize);
        let span = text.map(|(_, text)| match bytes(&place, &text.text) {
            Some(at) => text.locate(at.start, place.length),
            None => text.span(),
        });
        let name: Arc<str> = place.reason.to_string().into();
        let at = self.node(NodeType::Unresolved, format!("unresolved.{number}"), &name, Subject::Other);
        let node = &mut self.lineage.nodes[at as usize];
        (node.reason, node.span) = (Some(place.reason), span);
        at
    }

    fn edges_of(&mut self, origins: &ColumnOrigins, to: u32, usage: Use) {
        for origin in origins {
            let from = self.origin(*origin);
            self.edge(from, to, usage);
        }
    }

    fn uses(&mut self, uses: &BTreeSet<(Use, ColumnOrigin)>, to: u32) {
        for (usage, origin) in uses {
            let from = self.origin(*origin);
            self.edge(from, to, *usage);
        }
    }

    fn models(&mut self) {
        let definitions = self.definitions;
        for model in &definitions.models {
            let name = &model.name.value;
            let read = self.read(&model.sql);
            let own = self.node(NodeType::Model, format!("model.{name}"), name, Subject::Other);
            self.lineage.nodes[own as usize].sql = Some(Arc::clone(&model.sql.text));
            self.uses(&read.relation.uses, own);
            let mut shape = RelationShape::default();
            let mut stars = Vec::new();
            for (index, slot) in read.relation.slots.iter().enumerate() {
                match slot {
                    Slot::Star(star) => {
                        let is_undeclared = matches!(star.of, Rest::Undeclared(_));
                        self.unknown_columns(name, own, &star.of);
                        shape.outputs.push(Seen::Star { is_undeclared, without: star.without.clone() });
                        stars.push(star.clone());
                    }
                    Slot::Column(column) => {
                        let unnamed: Arc<str> = format!("_{}", index + 1).into();
                        let unnamed = Name { key: Arc::clone(&unnamed), shown: unnamed };
                        let shown = column.name.clone().unwrap_or(unnamed);
                        let id = format!("model.{name}.column.{}", shown.shown);
                        let at = self.node(NodeType::ModelColumn, id, &shown.shown, Subject::Other);
                        self.edge(own, at, Use::Rows);
                        self.edges_of(&column.origins, at, Use::Value);
                        let is_inspected = self.only_warehouse_names(&shown, &column.origins);
                        self.lineage.nodes[at as usize].is_inspected = is_inspected;
                        shape.outputs.push(match column.name {
                            Some(_) => Seen::Column { name: shown, is_inspected },
                            None => Seen::Unnamed(shown),
                        });
                    }
                }
            }
            self.catalog.models.insert(name.to_lowercase(), shape);
            self.stars.insert(name.to_lowercase().into(), stars);
        }
    }

    /// Adds the node `*` of a model. It stands for the columns whose names are unknown, with their known origins.
    fn unknown_columns(&mut self, model: &Arc<str>, own: u32, rest: &Rest) {
        let name: Arc<str> = "*".into();
        let star_of = |model: &str| format!("model.{model}.column.*");
        let from = match rest {
            Rest::Undeclared(_) => return,
            Rest::Derived(origins) => origins.iter().map(|origin| self.origin(*origin)).collect(),
            Rest::Table(table) => match self.arena.tables[*table as usize].clone() {
                TableName::Model(of) => vec![self.node(NodeType::ModelColumn, star_of(&of), &name, Subject::Other)],
                TableName::Table(of) => vec![self.nowhere(Reason::Star(of))],
            },
        };
        let at = self.node(NodeType::ModelColumn, star_of(model), &name, Subject::Other);
        self.edge(own, at, Use::Rows);
        from.into_iter().for_each(|from| self.edge(from, at, Use::Value));
    }

    /// Adds the node of an unresolved origin that has no place in the SQL.
    fn nowhere(&mut self, reason: Reason) -> u32 {
        let place = self.arena.unresolved(reason, super::query::NOWHERE, 1);
        let at = self.unresolved(place);
        self.lineage.nodes[at as usize].span = None;
        at
    }

    /// Returns true if only the warehouse names the column: it came through a star, and no SQL mentions it.
    fn only_warehouse_names(&self, name: &Name, origins: &ColumnOrigins) -> bool {
        let is_unnamed = |origin: &ColumnOrigin| match origin {
            ColumnOrigin::Column(number) => {
                let column = &self.arena.columns[*number as usize];
                column.is_inspected && column.name.key == name.key && !self.arena.named.contains(number)
            }
            _ => false,
        };
        !origins.is_empty() && origins.iter().all(is_unnamed)
    }

    fn cubes(&mut self) {
        let (definitions, model) = (self.definitions, self.model);
        let by_name: HashMap<&str, &CubeDefinition> =
            definitions.cubes.iter().map(|cube| (&*cube.name.value, cube)).collect();
        let mut read_already: HashMap<CubeId, Columns> = HashMap::new();
        for cube in &model.cubes {
            let own = self.node(NodeType::Cube, format!("cube.{}", cube.name), &cube.name, Subject::Cube(cube.id));
            let original = cube.alias_of.unwrap_or(cube.id);
            let (slots, uses) = match read_already.get(&original) {
                Some(read) => read.clone(),
                None => {
                    let read = self.relation(model.cube(original), &by_name);
                    read_already.insert(original, read.clone());
                    read
                }
            };
            self.uses(&uses, own);
            self.slots.push(slots);
        }
    }

    fn relation(&mut self, cube: &Cube, by_name: &HashMap<&str, &CubeDefinition>) -> Columns {
        let written: Vec<ColumnName> = match &cube.relation {
            Relation::Table(name) => name.parts.clone(),
            Relation::Model { name, .. } => {
                vec![ColumnName { text: name.trim_matches(['"', '`', '[', ']']).into(), quoted: true }]
            }
            Relation::Query { .. } => {
                let named = |name: &str| by_name.get(name).copied();
                let line = named(&cube.name).map_or_else(Vec::new, |definition| definition.line(named));
                if let Some(relation) = line.iter().find_map(|definition| definition.relation.as_ref()) {
                    let read = self.read(&relation.sql);
                    return (read.relation.slots.into(), read.relation.uses);
                }
                Vec::new()
            }
        };
        let (table, slots) = self.catalog.relation(&written, &mut self.arena);
        (slots.into(), [(Use::Rows, ColumnOrigin::Table(table))].into())
    }

    fn join_id(&self, from: CubeId, index: u32) -> String {
        let cube = self.model.cube(from);
        format!("join.{}.{}", cube.name, self.model.cube(cube.joins[index as usize].target).name)
    }

    fn joins(&mut self) {
        let model = self.model;
        for cube in &model.cubes {
            for (index, join) in (0u32..).zip(&cube.joins) {
                let (id, target) = (self.join_id(cube.id, index), &model.cube(join.target).name);
                let at =
                    self.member(NodeType::Join, id, target, cube, Subject::Join { cube: cube.id, target: join.target });
                // The node of a dimension may not exist yet; adding an edge to it creates the node by its id.
                self.snippet(&join.on, at, Use::Join, None);
                // A member that is reached through the join depends on the rows of the joined cube.
                let target = model.cube(join.target);
                let id = format!("cube.{}", target.name);
                let rows = self.node(NodeType::Cube, id, &target.name, Subject::Cube(target.id));
                self.edge(rows, at, Use::Rows);
            }
        }
    }

    fn member(&mut self, ty: NodeType, id: String, name: &Arc<str>, cube: &Cube, subject: Subject) -> u32 {
        let at = self.node(ty, id, name, subject);
        self.lineage.nodes[at as usize].cube = Some(Arc::clone(&cube.name));
        at
    }

    fn dimension(&mut self, id: DimensionId) -> u32 {
        let (model, subject) = (self.model, Subject::Member(Member::Dimension(id)));
        let (cube, name) = (model.cube(id.cube), &model.dimension(id).name);
        self.member(NodeType::Dimension, format!("dimension.{}.{name}", cube.name), name, cube, subject)
    }

    fn measure(&mut self, id: MeasureId) -> u32 {
        let (model, subject) = (self.model, Subject::Member(Member::Measure(id)));
        let (cube, name) = (model.cube(id.cube), &model.measure(id).name);
        self.member(NodeType::Measure, format!("measure.{}.{name}", cube.name), name, cube, subject)
    }

    fn metric(&mut self, id: MetricId) -> u32 {
        let name = &self.model.metric(id).name;
        self.node(NodeType::Metric, format!("metric.{name}"), name, Subject::Metric(id))
    }

    /// Adds the SQL text of each measure, dimension and segment to its node, if the model has the member.
    fn member_texts(&mut self) {
        for cube in &self.definitions.cubes {
            let measures = cube.measures.iter().filter_map(|item| Some(("measure", &item.name, item.sql.as_ref()?)));
            let dimensions = cube.dimensions.iter().map(|item| ("dimension", &item.name, &item.sql));
            let segments = cube.segments.iter().map(|item| ("segment", &item.name, &item.sql));
            for (kind, name, sql) in measures.chain(dimensions).chain(segments) {
                let id = format!("{kind}.{}.{}", cube.name.value, name.value);
                if let Some(at) = self.lineage.numbers.get(id.as_str()).copied() {
                    self.lineage.nodes[at as usize].sql = Some(Arc::clone(&sql.text));
                }
            }
        }
    }

    fn members(&mut self) {
        let model = self.model;
        for cube in &model.cubes {
            let rows = self.node(NodeType::Cube, format!("cube.{}", cube.name), &cube.name, Subject::Cube(cube.id));
            for (index, dimension) in (0u32..).zip(&cube.dimensions) {
                let at = self.dimension(DimensionId { cube: cube.id, index });
                self.edge(rows, at, Use::Rows);
                self.snippet(&dimension.sql, at, Use::Value, Some(cube.id));
            }
            for (index, segment) in (0u32..).zip(&cube.segments) {
                let subject = Subject::Member(Member::Segment(SegmentId { cube: cube.id, index }));
                let id = format!("segment.{}.{}", cube.name, segment.name);
                let at = self.member(NodeType::Segment, id, &segment.name, cube, subject);
                self.snippet(&segment.sql, at, Use::Filter, Some(cube.id));
            }
            for (index, measure) in (0u32..).zip(&cube.measures) {
                let at = self.measure(MeasureId { cube: cube.id, index });
                match &measure.kind {
                    MeasureKind::Aggregate(aggregate)
                    | MeasureKind::RunningTotal { aggregate, .. }
                    | MeasureKind::Rolling { aggregate, .. } => {
                        self.edge(rows, at, Use::Rows);
                        self.aggregate(aggregate, at, Some(cube.id));
                    }
                    MeasureKind::Number(sql) => self.snippet(sql, at, Use::Value, Some(cube.id)),
                }
            }
        }
    }

    fn aggregate(&mut self, aggregate: &Aggregate, to: u32, own: Option<CubeId>) {
        if let Some(sql) = &aggregate.argument {
            self.snippet(sql, to, Use::Value, own);
        }
        for sql in &aggregate.filters {
            self.snippet(sql, to, Use::Filter, own);
        }
    }

    /// Adds edges from the columns that an author's SQL reads to the node `to`. If the SQL may use columns of joined
    /// cubes, `own` is the cube where the joins start.
    fn snippet(&mut self, sql: &Snippet, to: u32, usage: Use, own: Option<CubeId>) {
        let mut parts = Vec::new();
        sql.for_each(&mut |part| parts.push(part));
        if sql.has_query {
            let from = self.nowhere(Reason::NotFollowed("a query inside a member's SQL"));
            self.edge(from, to, usage);
        }
        for part in parts {
            match part {
                SqlPart::Column { cube, name } => {
                    let origins = self.column_origins(*cube, name);
                    self.edges_of(&origins, to, usage);
                    self.crossed(own, *cube, to);
                }
                SqlPart::Dimension(id) => {
                    let from = self.dimension(*id);
                    self.edge(from, to, usage);
                    self.crossed(own, id.cube, to);
                }
                SqlPart::Measure(id) => {
                    let from = self.measure(*id);
                    self.edge(from, to, usage);
                }
                SqlPart::Metric(id) => {
                    let from = self.metric(*id);
                    self.edge(from, to, usage);
                }
                SqlPart::Aggregate(aggregate) => {
                    if let Some(own) = own {
                        let cube = self.model.cube(own);
                        let rows =
                            self.node(NodeType::Cube, format!("cube.{}", cube.name), &cube.name, Subject::Cube(own));
                        self.edge(rows, to, Use::Rows);
                    }
                    self.aggregate(aggregate, to, own);
                }
                SqlPart::Text(_) | SqlPart::User(_) | SqlPart::Divide(..) => {}
            }
        }
    }

    /// Adds the node of a row filter, with edges from the columns that the filter reads. A dimension in the filter is
    /// replaced by its columns. The dimension itself depends on the cube's rows and therefore on the filter, so an edge
    /// from it to the filter would create a cycle.
    fn row_filter(&mut self, sql: &Snippet, policy: &Arc<str>, cube: CubeId, to: u32) {
        let model = self.model;
        let cube = model.cube(cube);
        let id = format!("row_filter.{policy}.{}", cube.name);
        let at = self.node(NodeType::RowFilter, id, policy, Subject::Policy);
        self.lineage.nodes[at as usize].cube = Some(Arc::clone(&cube.name));
        let rows = self.node(NodeType::Cube, format!("cube.{}", cube.name), &cube.name, Subject::Cube(cube.id));
        let mut open = vec![(sql, Some(cube.id))];
        let mut met = HashSet::new();
        while let Some((sql, own)) = open.pop() {
            let mut plain = Snippet { has_query: sql.has_query, ..Snippet::default() };
            sql.for_each(&mut |part| match part {
                SqlPart::Dimension(id) => {
                    if met.insert(*id) {
                        open.push((&model.dimension(*id).sql, Some(id.cube)));
                    }
                }
                SqlPart::Divide(..) => {}
                part => plain.parts.push(part.clone()),
            });
            self.snippet(&plain, at, Use::Policy, own);
        }
        // The filter also depends on the joins to the cubes of its dimensions.
        for id in met.iter().map(|id| id.cube).collect::<BTreeSet<_>>() {
            self.crossed(Some(cube.id), id, at);
        }
        self.edge(at, rows, Use::Policy);
        self.edge(at, to, Use::Policy);
    }

    fn column_origins(&mut self, cube: CubeId, name: &ColumnName) -> ColumnOrigins {
        let slots = Arc::clone(&self.slots[cube.0 as usize]);
        column_of(&slots, name, &self.definitions.warehouse, &self.catalog, &mut self.arena)
    }

    /// Adds edges from the joins that lead from `own` to `target` to the node `to`.
    fn crossed(&mut self, own: Option<CubeId>, target: CubeId, to: u32) {
        let Some(own) = own.filter(|own| *own != target) else { return };
        let paths = self.model.join_paths(own);
        let mut at = target;
        while let Some(hop) = paths.any_hop(at).filter(|_| at != own) {
            let id = self.join_id(hop.from, hop.join);
            if let Some(from) = self.lineage.numbers.get(id.as_str()).copied() {
                self.edge(from, to, Use::Join);
            }
            at = hop.from;
        }
    }

    fn metrics(&mut self) {
        let model = self.model;
        for (id, metric) in (0u32..).map(MetricId).zip(&model.metrics) {
            let at = self.metric(id);
            self.snippet(&metric.body, at, Use::Value, None);
            let mut facts = Vec::new();
            metric.body.for_each(&mut |part| {
                if let SqlPart::Measure(id) = part {
                    facts.push(id.cube);
                }
            });
            for filter in &metric.filters {
                let mut names = filter.member.split('.');
                let cube = names.next().and_then(|cube| model.cube_named(cube));
                let member = cube.zip(names.next()).and_then(|(cube, member)| cube.member(member));
                if let Some(Member::Dimension(id)) = member {
                    let from = self.dimension(id);
                    self.edge(from, at, Use::Filter);
                    facts.iter().for_each(|fact| self.crossed(Some(*fact), id.cube, at));
                }
            }
        }
    }

    /// Marks columns as visible to callers with policies although only the warehouse listed them. A column is marked if
    /// SQL names it, or if SQL names a column of a model whose star selects it.
    fn reveal_named_columns(&mut self) {
        let mut open: Vec<u32> = self
            .arena
            .named
            .iter()
            .filter_map(|column| self.origins.get(&ColumnOrigin::Column(*column)).copied())
            .collect();
        let mut values: HashMap<u32, Vec<u32>> = HashMap::new();
        for (from, to, usage) in &self.lineage.edges {
            if *usage == Use::Value {
                values.entry(*to).or_default().push(*from);
            }
        }
        let mut is_met = vec![false; self.lineage.nodes.len()];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut is_met[at as usize], true) {
                continue;
            }
            let node = &mut self.lineage.nodes[at as usize];
            node.is_inspected = false;
            let name = node.name.to_lowercase();
            let inputs = values.get(&at).into_iter().flatten();
            open.extend(inputs.filter(|from| self.lineage.nodes[**from as usize].name.to_lowercase() == name));
        }
    }

    fn incomplete(&mut self) {
        let incomplete = std::mem::take(&mut self.arena.incomplete).into_iter();
        let tables = incomplete.filter_map(|(table, written)| match &self.arena.tables[table as usize] {
            TableName::Table(name) if !written.is_empty() => Some(IncompleteTable { name: Arc::clone(name), written }),
            _ => None,
        });
        self.lineage.incomplete = tables.collect();
    }

    /// Adds the filter and masks of each policy, once for each cube that the policy applies to. A filter decides which
    /// rows of the cube exist, so its node is between the columns that it reads and the cube.
    fn policies(&mut self) {
        let model = self.model;
        for policy in &model.policies {
            let at = self.node(NodeType::Policy, format!("policy.{}", policy.name), &policy.name, Subject::Policy);
            for effect in &policy.cubes {
                if let Some(sql) = &effect.row_filter {
                    self.row_filter(sql, &policy.name, effect.cube, at);
                }
                for (id, mask) in &effect.masks {
                    let from = self.dimension(*id);
                    self.edge(from, at, Use::Policy);
                    if let Mask::Sql(sql) = mask {
                        self.snippet(sql, at, Use::Policy, None);
                    }
                }
            }
        }
    }
}
