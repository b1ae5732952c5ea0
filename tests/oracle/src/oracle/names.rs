//! Resolves the names of a query.
//!
//! In: member references. Out: groups and values. A reference that resolves to nothing is reported as a problem.

use terrane_compiler::query::MemberRef;

use super::kinds::{self, Axis, Kind};
use super::{Code, Evaluation, Group};
use crate::world::{Dimension, DimensionKind};

/// A measure of a cube, or a metric.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Named {
    Measure {
        cube: String,
        name: String,
    },
    Metric(String),
    Dimension {
        cube: String,
        name: String,
    },
    Segment {
        cube: String,
        name: String,
    },
    /// The primary time of each measure's cube.
    MetricTime,
}

impl Evaluation<'_> {
    /// Resolves a reference. A name without a dot is a member of the query's cube, or else a metric.
    pub(crate) fn named(&self, member: &MemberRef) -> Option<Named> {
        let cube = member.cube().or(self.query.cube.as_deref());
        let name = member.member();
        if member.cube().is_none() && name == "metric_time" {
            return Some(Named::MetricTime);
        }
        // A denied member does not exist for the caller.
        let cube = cube.filter(|cube| !self.world.is_denied(cube, name));
        let of_cube = cube.and_then(|cube| {
            let of = self.world.behind(cube)?;
            let (cube, name) = (cube.to_owned(), name.to_owned());
            if of.measure(&name).is_some() {
                Some(Named::Measure { cube, name })
            } else if of.dimension(&name).is_some() {
                Some(Named::Dimension { cube, name })
            } else {
                of.segment(&name).map(|_| Named::Segment { cube, name })
            }
        });
        let is_metric = member.cube().is_none() && self.world.metrics.iter().any(|metric| metric.name == name);
        of_cube.or_else(|| is_metric.then(|| Named::Metric(name.to_owned())))
    }

    pub(crate) fn dimension(&self, cube: &str, name: &str) -> Option<&Dimension> {
        self.world.behind(cube)?.dimension(name)
    }

    /// Returns whether a group-by column is a time.
    pub(crate) fn is_time(&self, group: &Group) -> bool {
        let dimension = || self.dimension(&group.cube, &group.dimension);
        group.is_metric_time || dimension().is_some_and(|dimension| dimension.kind == DimensionKind::Time)
    }

    /// Returns the primary time of a cube: the marked time dimension, or the only one.
    pub(crate) fn primary_time(&self, cube: &str) -> Option<&str> {
        let of = self.world.behind(cube)?;
        let mut times = of.dimensions.iter().filter(|dimension| dimension.kind == DimensionKind::Time);
        let marked = of.dimensions.iter().find(|dimension| dimension.primary_time);
        let only = times.next().filter(|_| times.next().is_none());
        let name = marked.or(only).map(|dimension| dimension.name.as_str());
        match name {
            None => self.refuse(Code::InvalidQuery),
            // The cube has no primary time, or the caller may not read it.
            Some(name) if self.world.is_denied(cube, name) => {
                self.refuse(Code::InvalidQuery);
                self.refuse(Code::Forbidden);
            }
            Some(_) => {}
        }
        name
    }

    pub(crate) fn axis_of(&self, cube: &str, dimension: &str) -> Option<Axis> {
        match kinds::of_dimension(self, cube, dimension) {
            Kind::Time(axis) => Some(axis),
            _ => None,
        }
    }

    /// Refuses the query because of an unknown name.
    pub(crate) fn unknown(&self, member: &MemberRef, code: Code) {
        self.refuse(if member.cube().is_some() { code } else { Code::InvalidQuery });
    }

    /// Refuses an unknown name in a filter or an order. The name may be a misspelling of a dimension or of a measure,
    /// and either code is right.
    pub(crate) fn unknown_operand(&self, member: &MemberRef) {
        self.unknown(member, Code::InvalidDimension);
        self.unknown(member, Code::InvalidMeasure);
    }
}

pub(crate) fn values(evaluation: &Evaluation<'_>) -> Vec<(String, Named)> {
    let mut values: Vec<(String, Named)> = Vec::new();
    for member in &evaluation.query.values {
        match evaluation.named(member) {
            Some(value @ (Named::Measure { .. } | Named::Metric(_))) => {
                if !values.iter().any(|(key, _)| *key == *member.text) {
                    values.push((member.text.to_string(), value));
                }
            }
            Some(_) => evaluation.refuse(Code::InvalidQuery),
            None => evaluation.unknown(member, Code::InvalidMeasure),
        }
    }
    values
}

/// Refuses the query if it names an unknown segment or one that reads a covered column.
pub(crate) fn segments(evaluation: &Evaluation<'_>) {
    for member in &evaluation.query.segments {
        match evaluation.named(member) {
            Some(Named::Segment { cube, name }) => {
                let segment = evaluation.world.behind(&cube).and_then(|of| of.segment(&name));
                if segment.is_some_and(|segment| evaluation.world.is_covered(&cube, &segment.sql, false)) {
                    evaluation.refuse(Code::Forbidden);
                }
            }
            _ => evaluation.refuse(Code::InvalidDimension),
        }
    }
}

pub(crate) fn groups(evaluation: &Evaluation<'_>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for member in &evaluation.query.dimensions {
        groups.extend(group(evaluation, member, member.granularity));
    }
    for time in &evaluation.query.time_dimensions {
        let granularity = time.granularity.or(time.member.granularity);
        if granularity.is_some() || time.range.is_none() {
            let found = group(evaluation, &time.member, granularity);
            groups.extend(found.filter(|group| must_be_time(evaluation, group)));
        }
    }
    let mut distinct: Vec<Group> = Vec::new();
    for group in groups {
        if !distinct.iter().any(|known| known.key == group.key) {
            distinct.push(group);
        }
    }
    distinct
}

fn must_be_time(evaluation: &Evaluation<'_>, group: &Group) -> bool {
    let is_time = evaluation.is_time(group);
    if !is_time {
        evaluation.refuse(Code::InvalidQuery);
    }
    is_time
}

fn group(
    evaluation: &Evaluation<'_>,
    member: &MemberRef,
    granularity: Option<terrane_compiler::types::Granularity>,
) -> Option<Group> {
    let is_metric_time = evaluation.named(member) == Some(Named::MetricTime);
    let (cube, name) = match evaluation.named(member) {
        Some(Named::Dimension { cube, name }) => (cube, name),
        Some(Named::MetricTime) => (String::new(), String::new()),
        Some(_) => {
            evaluation.refuse(Code::InvalidQuery);
            return None;
        }
        None => {
            evaluation.unknown(member, Code::InvalidDimension);
            return None;
        }
    };
    let key = match granularity {
        Some(granularity) if member.granularity != Some(granularity) => {
            let prefix = member.cube().map(|cube| format!("{cube}.")).unwrap_or_default();
            format!("{prefix}{}.{granularity}", member.member())
        }
        _ => member.text.to_string(),
    };
    let group = Group { key, cube, dimension: name, granularity, is_metric_time };
    if granularity.is_some() && !must_be_time(evaluation, &group) {
        return None;
    }
    Some(group)
}
