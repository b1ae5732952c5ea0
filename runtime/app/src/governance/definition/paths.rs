//! The items that the SQL of an item refers to, with the joins on the paths to them.
//!
//! In: SQL and the cube that it belongs to. Out: items of the definition. The paths are those that queries take. In
//! texts of the first format, only members that the SQL names are items.

use terrane_compiler::model::{Aggregate, Cube, CubeId, DimensionId, Member, Metric, Snippet, SqlPart};

use super::{DefinitionFormat, Item, Lines, Walk, join_fields, time_zone};
use crate::metadata;

impl Walk<'_> {
    pub(super) fn refers(&self, from: CubeId, sql: &Snippet, below: &mut Vec<Item>) {
        sql.for_each(&mut |part| match part {
            SqlPart::Dimension(id) => {
                below.push(Item::Dimension(*id));
                self.follow(from, id.cube, below);
            }
            SqlPart::Column { cube, .. } => self.follow(from, *cube, below),
            SqlPart::Measure(id) => below.push(Item::Measure(*id)),
            SqlPart::Metric(id) => below.push(Item::Metric(*id)),
            SqlPart::Aggregate(aggregate) => self.refers_within(from, aggregate, below),
            SqlPart::Text(_) | SqlPart::User(_) | SqlPart::Divide(..) => {}
        });
    }

    pub(super) fn refers_within(&self, from: CubeId, aggregate: &Aggregate, below: &mut Vec<Item>) {
        aggregate.argument.iter().chain(&aggregate.filters).for_each(|sql| self.refers(from, sql, below));
    }

    /// Adds the measures and metrics of a metric, and the dimensions of its filters with the paths to them.
    pub(super) fn metric_refers(&self, metric: &Metric, below: &mut Vec<Item>) {
        metric.body.for_each(&mut |part| match part {
            SqlPart::Measure(id) => below.push(Item::Measure(*id)),
            SqlPart::Metric(id) => below.push(Item::Metric(*id)),
            _ => {}
        });
        if self.format == DefinitionFormat::WithoutJoins {
            return;
        }
        let facts = metadata::cube_ids_of_metric(self.model, metric);
        for filter in &metric.filters {
            let Some((cube, name)) = filter.member.split_once('.') else { continue };
            let member = self.model.cube_named(cube).and_then(|cube| cube.member(name));
            match member {
                Some(Member::Dimension(id)) => {
                    below.push(Item::Dimension(id));
                    facts.iter().for_each(|fact| self.follow(*fact, id.cube, below));
                }
                Some(Member::Measure(id)) => below.push(Item::Measure(id)),
                _ => {}
            }
        }
    }

    /// Adds the joins of the path between two cubes, and the rows of the second.
    fn follow(&self, from: CubeId, to: CubeId, below: &mut Vec<Item>) {
        if self.format == DefinitionFormat::WithoutJoins || from == to {
            return;
        }
        let paths = self.model.join_paths(from);
        let mut at = to;
        while at != from {
            let Some(hop) = paths.any_hop(at) else { break };
            below.push(Item::Join(hop.from, hop.join as usize));
            at = hop.from;
        }
        below.push(Item::Rows(to));
    }

    pub(super) fn join(&self, cube: &Cube, index: usize, text: &mut Lines, below: &mut Vec<Item>) {
        let join = &cube.joins[index];
        let name = &self.model.cube(join.target).name;
        if let Some(own) = self.line(cube).into_iter().flat_map(|of| &of.joins).find(|own| own.name.value == *name) {
            join_fields(own, "", text);
        }
        self.refers(cube.id, &join.on, below);
        below.push(Item::Rows(join.target));
    }

    /// Returns the primary time of a cube, on which ranges of time and windows of its measures depend.
    pub(super) fn primary_time_of(&self, cube: CubeId) -> Option<Item> {
        let index = self.model.cube(cube).primary_time.filter(|_| self.format == DefinitionFormat::Complete)?;
        Some(Item::PrimaryTime(DimensionId { cube, index }))
    }

    pub(super) fn primary_time(&self, id: DimensionId, text: &mut Lines, below: &mut Vec<Item>) {
        if let Some(own) = self.own_dimension(id) {
            text.sql("sql", &own.sql);
            time_zone(own, text);
        }
        self.refers(id.cube, &self.model.dimension(id).sql, below);
    }
}
