//! Resolution of names in braces, at one place of the project.
//!
//! In: the model's names and joins (snippets are still empty), and the place of the SQL. Out: a [`Target`], or a
//! [`Problem`] that lists the names that are allowed there, nearest first.

use super::unread::Unread;
use super::{Cube, CubeId, Member, Model, SqlPart};
use crate::diagnostic::Code;
use crate::project::is_invalid_form_of;
use crate::snippet::grammar::Problem;
use crate::text::nearest::{in_backticks, suggest};

/// The place of a snippet; it decides the references that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Dimension,
    /// The argument of a measure's aggregation, or one of its filters.
    Measure,
    /// A `number` measure: finished aggregates only.
    Number,
    Segment,
    Join(CubeId),
    /// A metric: measures and other metrics.
    Metric,
    /// A policy's row filter or mask.
    Policy,
}

impl Place {
    fn called(self) -> &'static str {
        match self {
            Place::Dimension => "a dimension",
            Place::Measure => "the rows of a measure",
            Place::Number => "a number measure",
            Place::Segment => "a segment",
            Place::Join(_) => "a join",
            Place::Metric => "a metric",
            Place::Policy => "a policy",
        }
    }
}

/// The target of a reference.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    /// A cube's rows; a column must follow.
    Cube(CubeId),
    Part(SqlPart),
}

/// The names to which one snippet can refer.
#[derive(Clone, Copy)]
pub(super) struct NameScope<'m> {
    pub(super) model: &'m Model,
    /// The cube whose SQL is resolved; `None` in metrics.
    pub(super) cube: Option<CubeId>,
    /// The cube that declares the item. It differs from `cube` for inherited items and aliases.
    pub(super) declared_in: &'m str,
    pub(super) place: Place,
    pub(super) unread: &'m Unread,
}

/// A reference that cannot be used; `None` if the reason has been reported elsewhere.
pub(super) type Unresolved = Option<Problem>;

impl<'m> NameScope<'m> {
    pub(super) fn own(&self) -> Option<&'m Cube> {
        self.cube.map(|id| self.model.cube(id))
    }

    /// Returns the cube of the project with this name.
    pub(super) fn cube_named(&self, name: &str) -> Option<CubeId> {
        self.model.cube_named(name).map(|cube| cube.id)
    }

    /// Returns the snippet's own cube or, in a join, its target, if `name` refers to it.
    pub(super) fn cube_here(&self, name: &str) -> Option<CubeId> {
        let own = self.own()?;
        if name == "CUBE" || name == self.declared_in || name == &*own.name {
            return Some(own.id);
        }
        // An invalid name of the cube was reported. References may already have the valid name.
        if is_invalid_form_of(self.declared_in, name) || is_invalid_form_of(&own.name, name) {
            return Some(own.id);
        }
        match self.place {
            Place::Join(target) if *self.model.cube(target).name == *name => Some(target),
            _ => None,
        }
    }

    /// Resolves `{name}`. If `has_column` is true, a column follows it.
    ///
    /// In a metric, the name is that of a metric, even if a cube has the same name, because a cube without a column is
    /// never an input of a metric.
    pub(super) fn name(&self, name: &str, has_column: bool) -> Result<Target, Unresolved> {
        if self.place == Place::Metric && !has_column {
            return self.metric(name);
        }
        let member = self.own().and_then(|own| own.member(name).map(|member| (own, member)));
        let cube = self.cube_here(name).or_else(|| self.cube_named(name));
        match (member, cube) {
            (Some((own, member)), None) => self.member(own, name, member),
            (Some((own, member)), Some(_)) if !has_column => self.member(own, name, member),
            (_, Some(cube)) => self.rows_of(cube).map(Target::Cube),
            (None, None) if has_column => Err(self.unknown_rows(name)),
            (None, None) => Err(self.unknown_name(name)),
        }
    }

    /// Resolves `{cube.member}`.
    pub(super) fn member_of(&self, cube: &str, name: &str) -> Result<Target, Unresolved> {
        let Some(id) = self.cube_here(cube).or_else(|| self.cube_named(cube)) else {
            return Err(self.unknown_cube(cube));
        };
        let of = self.model.cube(id);
        match of.member(name) {
            Some(member) => self.member(of, name, member),
            None if self.unread.may_be_member(of, name) => Err(None),
            None => {
                let usable = of.members.iter().filter(|(_, member)| self.allows(**member)).map(|(name, _)| &**name);
                let hint = suggest(name, &format!("members of {cube}"), usable);
                Err(Some(Problem::new(Code::UnknownMember, format!("cube `{cube}` has no member `{name}`"), hint)))
            }
        }
    }

    /// Resolves a name without a dot in a metric.
    fn metric(&self, name: &str) -> Result<Target, Unresolved> {
        match (self.model.metric_named(name), self.cube_named(name)) {
            (Some(id), _) => Ok(Target::Part(SqlPart::Metric(id))),
            // The metric of this name may be the one that could not be read.
            (None, Some(_)) if self.unread.contains(name) => Err(None),
            (None, Some(cube)) => self.rows_of(cube).map(Target::Cube),
            (None, None) => Err(self.unknown_metric(name)),
        }
    }

    /// Returns the problem of a name outside metrics that is neither a member nor a cube.
    fn unknown_name(&self, name: &str) -> Unresolved {
        if self.unread.contains(name) || self.own().is_some_and(|own| self.unread.is_partial(own)) {
            return None;
        }
        let mut candidates: Vec<&str> = vec!["CUBE"];
        if let Some(own) = self.own() {
            candidates.push(&own.name);
            candidates.extend(own.members.iter().filter(|(_, member)| self.allows(**member)).map(|(name, _)| &**name));
            candidates.extend(own.joins.iter().map(|join| &*self.model.cube(join.target).name));
        }
        let message = format!("`{{{name}}}` is neither a member of this cube nor a cube");
        Some(Problem::new(Code::UnknownMember, message, suggest(name, "names", candidates)))
    }

    /// Returns the problem of `{name}.column` if no cube has the name.
    fn unknown_rows(&self, name: &str) -> Unresolved {
        if self.unread.contains(name) {
            return None;
        }
        let own = self.own();
        let joined = own.iter().flat_map(|own| own.joins.iter().map(|join| &*self.model.cube(join.target).name));
        let candidates: Vec<&str> = own.iter().map(|own| &*own.name).chain(joined).chain(["CUBE"]).collect();
        let message = format!("unknown cube `{name}`");
        Some(Problem::new(Code::UnknownCube, message, suggest(name, "cubes", candidates)))
    }

    /// Returns the problem of a bare name in a metric that does not name a metric.
    fn unknown_metric(&self, name: &str) -> Unresolved {
        if self.unread.contains(name) {
            return None;
        }
        let message = format!("unknown metric `{name}`");
        let owners: Vec<String> = self
            .model
            .cubes
            .iter()
            .filter(|cube| matches!(cube.member(name), Some(Member::Measure(_))))
            .map(|cube| format!("{}.{name}", cube.name))
            .collect();
        let hint = match owners.as_slice() {
            [] => suggest(name, "metrics", self.model.metrics.iter().map(|metric| &*metric.name)),
            [one] => format!("Write `{one}` for the measure."),
            many => format!("Write one of {} for the measure.", in_backticks(many.iter().map(String::as_str))),
        };
        Some(Problem::new(Code::UnknownMetric, message, hint))
    }

    pub(super) fn unknown_cube(&self, name: &str) -> Unresolved {
        if self.unread.contains(name) {
            return None;
        }
        let known = self.model.cubes.iter().map(|cube| &*cube.name);
        Some(Problem::new(Code::UnknownCube, format!("unknown cube `{name}`"), suggest(name, "cubes", known)))
    }

    fn allows(&self, member: Member) -> bool {
        match self.place {
            Place::Number | Place::Metric => matches!(member, Member::Measure(_)),
            _ => matches!(member, Member::Dimension(_)),
        }
    }

    fn member(&self, of: &Cube, name: &str, member: Member) -> Result<Target, Unresolved> {
        let full = || format!("{}.{name}", of.name);
        match (member, self.place) {
            (Member::Measure(id), Place::Number | Place::Metric) => Ok(Target::Part(SqlPart::Measure(id))),
            (Member::Dimension(id), place) if !matches!(place, Place::Number | Place::Metric) => {
                self.rows_of(of.id)?;
                Ok(Target::Part(SqlPart::Dimension(id)))
            }
            (Member::Dimension(_), Place::Metric) => Err(Some(Problem::new(
                Code::MisplacedMember,
                format!("`{}` is a dimension; metrics are computed from measures", full()),
                format!("Define a measure over it in cube `{}`, for example with `type: sum`.", of.name),
            ))),
            (Member::Dimension(_), _) => Err(Some(Problem::new(
                Code::MisplacedMember,
                format!("dimension `{}` is outside an aggregate", full()),
                format!(
                    "Aggregate it, as in `SUM({{{name}}})`, or refer to a measure, as in `{{{}}}`.",
                    self.some_measure(of)
                ),
            ))),
            (Member::Measure(_), place) => {
                let hint = match place {
                    Place::Measure => "Write `type: number` for arithmetic between measures, or use the column.",
                    Place::Segment => "Use a column or a dimension, or filter by the measure in the query.",
                    _ => "Use the column that the measure aggregates.",
                };
                let message = format!("`{}` is a measure, which {} cannot refer to", full(), place.called());
                Err(Some(Problem::new(Code::MisplacedMember, message, hint)))
            }
            (Member::Segment(_), _) => Err(Some(Problem::new(
                Code::MisplacedMember,
                format!("`{}` is a segment, which no expression can refer to", full()),
                "Repeat its condition, or define it as a boolean dimension.",
            ))),
        }
    }

    /// Returns a measure of a cube, for an example.
    fn some_measure(&self, of: &Cube) -> &'m str {
        self.model.cube(of.id).measures.first().map_or("some_measure", |measure| &measure.name)
    }

    /// Returns the rows of a cube if this place can use them.
    pub(super) fn rows_of(&self, cube: CubeId) -> Result<CubeId, Unresolved> {
        let Some(own) = self.own() else {
            let name = &self.model.cube(cube).name;
            return Err(Some(Problem::new(
                Code::MisplacedMember,
                format!("`{name}` is a cube; metrics are computed from measures and metrics"),
                format!("Write `{name}.some_measure`."),
            )));
        };
        if cube == own.id || self.place == Place::Join(cube) {
            return Ok(cube);
        }
        let name = &self.model.cube(cube).name;
        if let Place::Join(target) = self.place {
            let target = &self.model.cube(target).name;
            let message = format!("the join to `{target}` refers to a third cube, `{name}`");
            let hint = format!("Compare only `{}` with `{target}`, and declare the other join separately.", own.name);
            return Err(Some(Problem::new(Code::MisplacedMember, message, hint)));
        }
        if self.place == Place::Number {
            let message = format!("a number measure of `{}` cannot refer to rows of `{name}`", own.name);
            return Err(Some(Problem::new(
                Code::MisplacedMember,
                message,
                format!("Refer to a measure, as in `{{{name}.some_measure}}`."),
            )));
        }
        if self.model.join_paths(own.id).is_to_one(cube) {
            return Ok(cube);
        }
        if self.unread.may_join(self.model, own.id, cube) {
            return Err(None);
        }
        Err(Some(unreachable(self.model, own, self.model.cube(cube))))
    }
}

/// Returns the problem of a member of `from` that refers to rows of `to`.
fn unreachable(model: &Model, from: &Cube, to: &Cube) -> Problem {
    let mut seen = vec![false; model.cubes.len()];
    let mut open = vec![from.id];
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut seen[at.0 as usize], true) {
            open.extend(model.cube(at).joins.iter().map(|join| join.target));
        }
    }
    if seen[to.id.0 as usize] {
        let message = format!("`{}` has many rows for one row of `{}`", to.name, from.name);
        let hint =
            format!("Aggregate in cube `{}` instead, or write a join with at most one row for each row.", to.name);
        return Problem::new(Code::ToManyReference, message, hint);
    }
    let reached = model.join_paths(from.id).order.iter().map(|id| &*model.cube(*id).name);
    let reached: Vec<&str> = reached.collect();
    let reachable = match reached.as_slice() {
        [] => "No cube is reachable.".to_owned(),
        _ => suggest(&to.name, "cubes", reached),
    };
    let hint = format!("Add a many_to_one join from `{}` to `{}`. {reachable}", from.name, to.name);
    Problem::new(Code::NoJoinPath, format!("no join path from `{}` to `{}`", from.name, to.name), hint)
}
