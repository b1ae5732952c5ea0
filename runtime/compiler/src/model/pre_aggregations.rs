//! Resolves the definitions of pre-aggregations.
//!
//! In: the definitions of the project, and its model without broken items. Out: each cube's [`Rollup`]s, and
//! diagnostics. Not here: statements and matching (`crate::rollup`).

use std::collections::BTreeSet;

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use sqlparser::dialect::Dialect;

use super::read::read;
use super::rollup::aggregates_of;
use super::scope::{NameScope, Place};
use super::unread::Unread;
use super::{
    Aggregate, Cube, CubeId, DimensionId, DimensionType, MeasureId, Member, Model, Relation, Rollup, RollupTime,
    SegmentId, Snippet, SqlPart,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{Definitions, PreAggregationDefinition, SqlText, Text};
// This import goes against the order of the modules, because the functions of SQL are listed in one file.
use crate::sql::is_changing;
use crate::text::Span;
use crate::text::nearest::suggest;
use crate::types::Granularity;

/// Resolves the pre-aggregations of every cube. A pre-aggregation with an error is reported and left out.
pub(super) fn add(
    model: &mut Model,
    definitions: &Definitions,
    unread: &Unread,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for definition in &definitions.cubes {
        let Some(cube) = model.cube_named(&definition.name.value).filter(|cube| cube.alias_of.is_none()) else {
            continue;
        };
        let mut rollups: Vec<Rollup> = Vec::with_capacity(cube.rollups.len());
        for (declared, rollup) in definition.pre_aggregations.iter().zip(&cube.rollups) {
            if rollups.iter().any(|other| other.name == declared.name.value) {
                let message = format!("cube `{}` has two pre-aggregations `{}`", cube.name, declared.name.value);
                let hint = "Rename one of them.";
                diagnostics.push(Diagnostic::error(Code::DuplicateName, message).hint(hint).at(declared.name.span()));
                continue;
            }
            let reader = PreAggregationReader { cube, model, unread, dialect, name: &declared.name.value };
            let mut found = Vec::new();
            let resolved = reader.rollup(declared, rollup.clone(), &mut found);
            if let Some(rollup) = &resolved {
                reader.check_determinism(declared, rollup, &mut found);
            }
            // A missing item that could not be read adds no diagnostic here, because it was reported at its definition.
            if found.is_empty() {
                rollups.extend(resolved);
            }
            diagnostics.append(&mut found);
        }
        let id = cube.id;
        model.cubes[id.0 as usize].rollups = rollups;
    }
    model.set_rollup_states();
}

/// Returns all items, or `None` if one is missing. All items are evaluated, so that all problems are reported.
fn all<T>(items: impl Iterator<Item = Option<T>>) -> Option<Vec<T>> {
    items.collect::<Vec<_>>().into_iter().collect()
}

struct PreAggregationReader<'m> {
    cube: &'m Cube,
    model: &'m Model,
    unread: &'m Unread,
    dialect: &'m dyn Dialect,
    name: &'m str,
}

impl PreAggregationReader<'_> {
    /// Fills in a rollup; `None` if it refers to something that could not be read.
    fn rollup(
        &self,
        declared: &PreAggregationDefinition,
        rollup: Rollup,
        found: &mut Vec<Diagnostic>,
    ) -> Option<Rollup> {
        let measures = all(declared.measures.iter().map(|measure| self.measure(measure, found)));
        let dimensions = all(declared.dimensions.iter().map(|dimension| self.dimension(dimension, "dimension", found)));
        let segments = all(declared.segments.iter().map(|segment| self.segment(segment, found)));
        let filters = all(declared.filters.iter().map(|filter| self.snippet(filter, Place::Segment, found)));
        let arrival = all(declared.arrival.iter().map(|sql| self.snippet(sql, Place::Dimension, found)));
        let time = all(declared.time_dimension.iter().map(|time| self.time(declared, time, found)));
        let build_range = declared.build_range.each_ref().map(|day| day.as_ref().and_then(|day| self.day(day, found)));
        if let ([Some(start), Some(end)], [_, Some(place)]) = (build_range, &declared.build_range)
            && end < start
        {
            let message = format!("build_range of pre-aggregation `{}` ends before it starts", self.name);
            let hint = "Write the earlier day as `start`.";
            found.push(Diagnostic::error(Code::WrongValue, message).hint(hint).at(place.span()));
        }
        let dimensions = dimensions?;
        let indexes = declared.indexes.iter().filter_map(|index| self.index(index, &dimensions, found)).collect();
        Some(Rollup {
            measures: measures?,
            segments: segments?,
            filters: filters?,
            time: time?.pop(),
            update_window: declared.update_window,
            is_incremental: declared.is_incremental,
            max_staleness: declared.max_staleness,
            build_range,
            arrival: arrival?.pop(),
            indexes,
            dimensions,
            ..rollup
        })
    }

    fn measure(&self, declared: &Text, found: &mut Vec<Diagnostic>) -> Option<MeasureId> {
        let member = self.member(declared, "measure", found, |member| matches!(member, Member::Measure(_)))?;
        let Member::Measure(id) = member else { return None };
        if id.cube != self.cube.id {
            let message = format!("pre-aggregation `{}` stores a measure of another cube", self.name);
            let hint = format!("Move it to a pre-aggregation of `{}`.", self.model.cube(id.cube).name);
            found.push(Diagnostic::error(Code::MisplacedMember, message).hint(hint).at(declared.span()));
            return None;
        }
        let aggregates = aggregates_of(self.model, id.cube, &self.model.measure(id).kind, 0);
        let has_query =
            |aggregate: &&Aggregate| aggregate.argument.iter().chain(&aggregate.filters).any(|sql| self.has_query(sql));
        if aggregates.iter().any(has_query) {
            found.push(self.unstorable(declared));
            return None;
        }
        Some(id)
    }

    /// Returns the diagnostic of a member with a subquery. The subquery's rows may change without a change of the cube.
    fn unstorable(&self, declared: &Text) -> Diagnostic {
        let message =
            format!("pre-aggregation `{}` cannot store `{}`, which contains a query", self.name, declared.value);
        let hint = "Join the table that it reads as a cube.";
        Diagnostic::error(Code::MisplacedMember, message).hint(hint).at(declared.span())
    }

    /// Reports expressions whose value may differ each time they are computed. A stored value would then differ from
    /// the value that a query computes.
    fn check_determinism(&self, declared: &PreAggregationDefinition, rollup: &Rollup, found: &mut Vec<Diagnostic>) {
        let model = self.model;
        for (id, place) in rollup.measures.iter().zip(&declared.measures) {
            let aggregates = aggregates_of(model, id.cube, &model.measure(*id).kind, 0);
            let mut snippets =
                aggregates.iter().flat_map(|aggregate| aggregate.argument.iter().chain(&aggregate.filters));
            if snippets.any(|sql| self.changes(sql)) {
                found.push(self.changing(&format!("`{}`", place.value), place.span()));
            }
        }
        let segments = rollup.segments.iter().map(|id| &model.segment(*id).sql).zip(&declared.segments);
        let dimensions = rollup.dimensions.iter().map(|id| &model.dimension(*id).sql).zip(&declared.dimensions);
        let time = rollup.time.iter().map(|time| &model.dimension(time.dimension).sql).zip(&declared.time_dimension);
        for (sql, place) in dimensions.chain(segments).chain(time) {
            if self.changes(sql) {
                found.push(self.changing(&format!("`{}`", place.value), place.span()));
            }
        }
        let filters = rollup.filters.iter().zip(&declared.filters).map(|(sql, place)| (sql, place, "a filter"));
        let arrival = rollup.arrival.iter().zip(&declared.arrival).map(|(sql, place)| (sql, place, "`arrival`"));
        for (sql, place, what) in filters.chain(arrival) {
            if self.changes(sql) {
                found.push(self.changing(what, place.span()));
            }
        }
        let (cubes, joins) = self.sources(rollup);
        for cube in cubes {
            let on = joins.iter().filter(|(target, _)| *target == cube);
            if !has_same_rows(&model.cube(cube).relation) || on.into_iter().any(|(_, on)| self.changes(on)) {
                found.push(self.changing(&format!("cube `{}`", model.cube(cube).name), declared.name.span()));
            }
        }
    }

    /// Returns the cubes whose rows a rollup reads, and the conditions on which they are joined.
    fn sources(&self, rollup: &Rollup) -> (BTreeSet<CubeId>, Vec<(CubeId, &Snippet)>) {
        let model = self.model;
        let mut read = BTreeSet::new();
        let measures = rollup.measures.iter().flat_map(|id| {
            let aggregates = aggregates_of(model, id.cube, &model.measure(*id).kind, 0);
            aggregates.into_iter().flat_map(|aggregate| aggregate.argument.iter().chain(&aggregate.filters))
        });
        let segments = rollup.segments.iter().map(|id| &model.segment(*id).sql);
        rollup.dimensions.iter().for_each(|id| self.add_cubes(id.cube, &model.dimension(*id).sql, &mut read));
        rollup.segments.iter().for_each(|id| _ = read.insert(id.cube));
        for sql in measures.chain(segments).chain(&rollup.filters) {
            self.add_cubes(self.cube.id, sql, &mut read);
        }
        let paths = model.join_paths(self.cube.id);
        let mut cubes = BTreeSet::from([self.cube.id]);
        let mut joins = Vec::new();
        for mut cube in read {
            while cubes.insert(cube) {
                let Some(hop) = paths.any_hop(cube) else { break };
                joins.push((cube, &model.cube(hop.from).joins[hop.join as usize].on));
                cube = hop.from;
            }
        }
        (cubes, joins)
    }

    /// Adds the cubes that an expression of a member of `owner` reads.
    fn add_cubes(&self, owner: CubeId, sql: &Snippet, cubes: &mut BTreeSet<CubeId>) {
        cubes.insert(owner);
        sql.for_each(&mut |part| match part {
            SqlPart::Column { cube, .. } => _ = cubes.insert(*cube),
            SqlPart::Dimension(id) => self.add_cubes(id.cube, &self.model.dimension(*id).sql, cubes),
            _ => {}
        });
    }

    /// Returns whether an expression calls a function whose value changes between two calls.
    fn changes(&self, sql: &Snippet) -> bool {
        let mut text = String::new();
        let mut has_changing = false;
        for part in &sql.parts {
            match part {
                SqlPart::Text(part) => text.push_str(part),
                SqlPart::Dimension(id) => {
                    has_changing |= self.changes(&self.model.dimension(*id).sql);
                    text.push('x');
                }
                SqlPart::Divide(left, right) => {
                    has_changing |= self.changes(left) || self.changes(right);
                    text.push('x');
                }
                _ => text.push('x'),
            }
        }
        has_changing || is_changing(&text)
    }

    fn changing(&self, what: &str, place: Span) -> Diagnostic {
        let message = format!("pre-aggregation `{}` reads {what}, whose value changes without its data", self.name);
        let hint = "Compute times and random values in the query that reads it, or leave them out of what is stored.";
        Diagnostic::error(Code::NotDeterministic, message).hint(hint).at(place)
    }

    fn has_query(&self, sql: &Snippet) -> bool {
        let mut has_query = sql.has_query;
        sql.for_each(&mut |part| {
            if let SqlPart::Dimension(id) = part {
                has_query |= self.has_query(&self.model.dimension(*id).sql);
            }
        });
        has_query
    }

    fn dimension(&self, declared: &Text, kind: &str, found: &mut Vec<Diagnostic>) -> Option<DimensionId> {
        let member = self.member(declared, kind, found, |member| match member {
            Member::Dimension(id) => kind == "dimension" || self.model.dimension(id).ty == DimensionType::Time,
            _ => false,
        })?;
        let Member::Dimension(id) = member else { return None };
        let sql = &self.model.dimension(id).sql;
        self.is_storable(declared, id.cube, sql, found).then_some(id)
    }

    fn segment(&self, declared: &Text, found: &mut Vec<Diagnostic>) -> Option<SegmentId> {
        let member = self.member(declared, "segment", found, |member| matches!(member, Member::Segment(_)))?;
        let Member::Segment(id) = member else { return None };
        let sql = &self.model.segment(id).sql;
        self.is_storable(declared, id.cube, sql, found).then_some(id)
    }

    /// Returns whether a value can be stored beside a row of the cube: it belongs to one row only, and its SQL contains
    /// no query. Reports the reason if not.
    fn is_storable(&self, declared: &Text, cube: CubeId, sql: &Snippet, found: &mut Vec<Diagnostic>) -> bool {
        if let Some(cube) = self.to_many(cube, sql) {
            // The join to such a cube may be broken, which was reported.
            let is_unread = self.unread.contains(&self.model.cube(cube).name);
            if !is_unread && !self.unread.may_join(self.model, self.cube.id, cube) {
                found.push(self.repeats(declared, cube));
            }
            return false;
        }
        if self.has_query(sql) {
            found.push(self.unstorable(declared));
            return false;
        }
        true
    }

    /// Returns the first cube on the path that has several rows for one row of the pre-aggregation's cube.
    fn to_many(&self, cube: CubeId, sql: &Snippet) -> Option<CubeId> {
        if !self.model.join_paths(self.cube.id).is_to_one(cube) {
            return Some(cube);
        }
        let mut repeating = None;
        let paths = self.model.join_paths(cube);
        sql.for_each(&mut |part| {
            let read = match part {
                SqlPart::Column { cube, .. } => *cube,
                SqlPart::Dimension(id) => id.cube,
                _ => return,
            };
            if !paths.is_to_one(read) {
                repeating = repeating.or(Some(read));
            }
        });
        repeating
    }

    fn repeats(&self, declared: &Text, cube: CubeId) -> Diagnostic {
        let (own, other) = (&self.cube.name, &self.model.cube(cube).name);
        let message = if self.model.join_paths(self.cube.id).reaches(cube) {
            format!("pre-aggregation `{}` reads `{other}`, which has several rows for one of `{own}`", self.name)
        } else {
            format!("pre-aggregation `{}` reads `{other}`, to which no join of `{own}` leads", self.name)
        };
        let hint = format!("Name members of `{own}`, or of cubes that it reaches by to-one joins.");
        Diagnostic::error(Code::ToManyReference, message).hint(hint).at(declared.span())
    }

    fn snippet(&self, sql: &SqlText, place: Place, found: &mut Vec<Diagnostic>) -> Option<Snippet> {
        let scope = NameScope {
            model: self.model,
            cube: Some(self.cube.id),
            declared_in: &self.cube.name,
            place,
            unread: self.unread,
        };
        match read(sql, scope, self.dialect) {
            Ok(snippet) if self.to_many(self.cube.id, &snippet).is_none() && !self.has_query(&snippet) => Some(snippet),
            Ok(_) => {
                let message =
                    format!("pre-aggregation `{}` reads a query, or several rows for one row of its cube", self.name);
                let hint = "Name columns of the cube, or dimensions that it reaches by to-one joins.";
                found.push(Diagnostic::error(Code::ToManyReference, message).hint(hint).at(sql.span()));
                None
            }
            Err(problems) => {
                found.extend(problems.into_iter().map(|problem| problem.in_text(sql)));
                None
            }
        }
    }

    fn time(
        &self,
        declared: &PreAggregationDefinition,
        time: &Text,
        found: &mut Vec<Diagnostic>,
    ) -> Option<RollupTime> {
        let zone = match &declared.timezone {
            Some(zone) => self.zone(zone, found),
            None => Some(TimeZone::UTC),
        };
        let dimension = self.dimension(time, "time dimension", found)?;
        if dimension.cube != self.cube.id {
            let message = format!("the time dimension of pre-aggregation `{}` is of another cube", self.name);
            let hint = format!("Name a time dimension of `{}`; list the other one under `dimensions`.", self.cube.name);
            found.push(Diagnostic::error(Code::MisplacedMember, message).hint(hint).at(time.span()));
            return None;
        }
        let has_range = declared.build_range.iter().any(Option::is_some);
        let partition = declared.partition_granularity.or(has_range.then_some(Granularity::Year));
        Some(RollupTime { dimension, granularity: declared.granularity?, partition, zone: zone? })
    }

    fn zone(&self, declared: &Text, found: &mut Vec<Diagnostic>) -> Option<TimeZone> {
        let zone = TimeZoneDatabase::bundled().get(&declared.value).ok();
        if zone.is_none() {
            let message = format!("unknown time zone `{}` of pre-aggregation `{}`", declared.value, self.name);
            let hint = "Write an IANA name: `timezone: Europe/Berlin`.";
            found.push(Diagnostic::error(Code::WrongValue, message).hint(hint).at(declared.span()));
        }
        zone
    }

    fn day(&self, declared: &Text, found: &mut Vec<Diagnostic>) -> Option<Date> {
        let day = declared.value.parse::<Date>().ok();
        if day.is_none() {
            let message = format!("build_range of pre-aggregation `{}` is not between two days", self.name);
            let hint = "Write a day as `2024-01-31`.";
            found.push(Diagnostic::error(Code::WrongValue, message).hint(hint).at(declared.span()));
        }
        day
    }

    /// Returns the position of an indexed dimension among the stored ones.
    fn index(&self, declared: &Text, dimensions: &[DimensionId], found: &mut Vec<Diagnostic>) -> Option<usize> {
        let full = |id: &DimensionId| format!("{}.{}", self.model.cube(id.cube).name, self.model.dimension(*id).name);
        let is_named = |id: &DimensionId| {
            *full(id) == *declared.value
                || (id.cube == self.cube.id && self.model.dimension(*id).name == declared.value)
        };
        let position = dimensions.iter().position(is_named);
        if position.is_none() {
            let names: Vec<String> = dimensions.iter().map(full).collect();
            let message = format!("`{}` is not a dimension of pre-aggregation `{}`", declared.value, self.name);
            let hint = suggest(&declared.value, "dimensions", names.iter().map(String::as_str));
            found.push(Diagnostic::error(Code::UnknownMember, message).hint(hint).at(declared.span()));
        }
        position
    }

    /// Returns the member of a name; `None` if it is unknown, of a different kind, or could not be read.
    fn member(
        &self,
        declared: &Text,
        kind: &str,
        found: &mut Vec<Diagnostic>,
        fits: impl Fn(Member) -> bool,
    ) -> Option<Member> {
        let (of, name) = match declared.value.split_once('.') {
            Some((cube, name)) => (self.model.cube_named(cube), name),
            None => (Some(self.cube), &*declared.value),
        };
        if let Some(member) = of.and_then(|of| of.member(name)).filter(|member| fits(*member)) {
            return Some(member);
        }
        found.extend(self.check(declared, kind, fits));
        None
    }

    fn check(&self, declared: &Text, kind: &str, fits: impl Fn(Member) -> bool) -> Option<Diagnostic> {
        let (of, name) = match declared.value.split_once('.') {
            Some((cube, name)) => (self.model.cube_named(cube), name),
            None => (Some(self.cube), &*declared.value),
        };
        let is_unread = match of {
            Some(of) => self.unread.may_be_member(of, name),
            None => self.unread.contains(name),
        };
        if is_unread {
            return None;
        }
        let what = format!("pre-aggregation `{}`", self.name);
        let Some(of) = of else {
            let cube = declared.value.split('.').next().unwrap_or_default();
            if self.unread.contains(cube) {
                return None;
            }
            let known = self.model.cubes.iter().map(|cube| &*cube.name);
            let message = format!("{what} refers to unknown cube `{cube}`");
            return Some(
                Diagnostic::error(Code::UnknownCube, message).hint(suggest(cube, "cubes", known)).at(declared.span()),
            );
        };
        let usable = of.members.iter().filter(|(_, member)| fits(**member)).map(|(name, _)| &**name);
        let hint = suggest(name, &format!("{kind}s of {}", of.name), usable);
        let place = SqlText::plain(declared).locate(declared.value.len() - name.len(), name.chars().count());
        match of.member(name) {
            Some(member) if fits(member) => None,
            Some(member) => {
                let message = format!("{what} uses `{name}` as a {kind}, but it is a {}", self.kind(member));
                Some(Diagnostic::error(Code::MisplacedMember, message).hint(hint).at(place))
            }
            None => {
                let message = format!("{what}: cube `{}` has no {kind} `{name}`", of.name);
                Some(Diagnostic::error(Code::UnknownMember, message).hint(hint).at(place))
            }
        }
    }

    fn kind(&self, member: Member) -> &'static str {
        match member {
            Member::Measure(_) => "measure",
            Member::Segment(_) => "segment",
            Member::Dimension(id) => match self.model.dimension(id).ty {
                DimensionType::String => "dimension of type string",
                DimensionType::Number => "dimension of type number",
                DimensionType::Boolean => "dimension of type boolean",
                DimensionType::Geo => "dimension of type geo",
                DimensionType::Time => "time dimension",
            },
        }
    }
}

/// Returns whether the SQL of a relation returns the same rows as long as its data is the same.
fn has_same_rows(relation: &Relation) -> bool {
    let (models, sql) = match relation {
        Relation::Table(_) => return true,
        Relation::Query { models, sql } => (models, Some(sql)),
        Relation::Model { models, .. } => (models, None),
    };
    models.iter().map(|(_, text)| text).chain(sql).all(|text| !is_changing(text))
}
