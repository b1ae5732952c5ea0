//! Checks of the members that pre-aggregations name.
//!
//! In: the definitions of one cube, and the model. Out: diagnostics. Not here: building them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Cube, DimensionType, Member, Model};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{CubeDefinition, SqlText, Text};
use crate::text::nearest::suggest;

/// Every name of every pre-aggregation of a cube.
pub(super) fn check(
    cube: &Cube,
    definition: &CubeDefinition,
    model: &Model,
    unread: &BTreeSet<Arc<str>>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for built in &definition.pre_aggregations {
        let reading = PreAggregationReader { cube, model, unread, name: &built.name.value };
        for measure in &built.measures {
            diagnostics.extend(reading.check(measure, "measure", |member| matches!(member, Member::Measure(_))));
        }
        for dimension in &built.dimensions {
            diagnostics.extend(reading.check(dimension, "dimension", |member| matches!(member, Member::Dimension(_))));
        }
        if let Some(time) = &built.time_dimension {
            diagnostics.extend(reading.check(
                time,
                "time dimension",
                |member| matches!(member, Member::Dimension(id) if model.dimension(id).ty == DimensionType::Time),
            ));
        }
    }
}

struct PreAggregationReader<'m> {
    cube: &'m Cube,
    model: &'m Model,
    unread: &'m BTreeSet<Arc<str>>,
    name: &'m str,
}

impl PreAggregationReader<'_> {
    fn check(&self, written: &Text, kind: &str, fits: impl Fn(Member) -> bool) -> Option<Diagnostic> {
        let (of, name) = match written.value.split_once('.') {
            Some((cube, name)) => (self.model.cube_named(cube), name),
            None => (Some(self.cube), &*written.value),
        };
        if self.unread.contains(name) {
            return None;
        }
        let what = format!("pre-aggregation `{}`", self.name);
        let Some(of) = of else {
            let cube = written.value.split('.').next().unwrap_or_default();
            if self.unread.contains(cube) {
                return None;
            }
            let known = self.model.cubes.iter().map(|cube| &*cube.name);
            let message = format!("{what} names a cube `{cube}` that doesn't exist");
            return Some(
                Diagnostic::error(Code::UnknownCube, message).hint(suggest(cube, "cubes", known)).at(written.span()),
            );
        };
        let usable = of.members.iter().filter(|(_, member)| fits(**member)).map(|(name, _)| &**name);
        let hint = suggest(name, &format!("{kind}s of {}", of.name), usable);
        let place = SqlText::plain(written).locate(written.value.len() - name.len(), name.chars().count());
        match of.member(name) {
            Some(member) if fits(member) => None,
            Some(member) => {
                let message = format!("{what} takes `{name}` for a {kind}, and it is a {}", self.kind(member));
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
