//! The parts of the model that a caller may see.
//!
//! In: the access of a caller. Out: cubes, members and metrics. A member is left out, even from lists of other members,
//! if it is hidden, if policies close it to the caller, or if it depends on such a member. An alias counts as a cube.
//! Not here: formats.

use terrane_compiler::Access;
use terrane_compiler::model::{
    Cube, CubeId, Dimension, DimensionType, Join, Measure, Member, Metric, MetricId, Model, Presentation, Segment,
    Snippet, SqlPart,
};

/// Returns the cubes that the caller may see.
pub fn cubes<'m>(access: &Access<'m>) -> impl Iterator<Item = &'m Cube> {
    access.model().cubes.iter().filter(|cube| is_shown(access, cube))
}

/// Returns one cube, if the caller may see it.
pub fn cube<'m>(access: &Access<'m>, name: &str) -> Option<&'m Cube> {
    access.model().cube_named(name).filter(|cube| is_shown(access, cube))
}

/// Returns whether a cube is public and open to the caller.
pub fn is_shown(access: &Access<'_>, cube: &Cube) -> bool {
    cube.public && !access.is_closed(cube)
}

/// Returns whether policies leave the caller any measure or dimension of a cube.
pub fn has_open_members(access: &Access<'_>, cube: &Cube) -> bool {
    let measures = cube.measures.iter().map(|measure| &measure.name);
    let mut members = cube.dimensions.iter().map(|dimension| &dimension.name).chain(measures);
    members.any(|name| sees(access, cube, name))
}

/// Returns the measures of a cube that the caller may see.
pub fn measures<'m>(access: &Access<'_>, cube: &'m Cube) -> impl Iterator<Item = &'m Measure> {
    cube.measures.iter().filter(|measure| is_offered(access, cube, &measure.name, &measure.presentation))
}

/// Returns the dimensions of a cube that the caller may see.
pub fn dimensions<'m>(access: &Access<'_>, cube: &'m Cube) -> impl Iterator<Item = &'m Dimension> {
    cube.dimensions.iter().filter(|dimension| is_offered(access, cube, &dimension.name, &dimension.presentation))
}

/// Returns whether the caller may see a dimension, by its name `cube.dimension`.
pub fn has_dimension(access: &Access<'_>, member: &str) -> bool {
    let found = member.split_once('.').and_then(|(owner, name)| Some((cube(access, owner)?, name)));
    found.is_some_and(|(cube, name)| dimensions(access, cube).any(|dimension| *dimension.name == *name))
}

/// Returns whether a cube has a time dimension that the caller may see.
pub fn has_time_dimension(access: &Access<'_>, name: &str) -> bool {
    let Some(cube) = cube(access, name) else { return false };
    dimensions(access, cube).any(|dimension| dimension.ty == DimensionType::Time)
}

/// Returns the segments of a cube that the caller may see.
pub fn segments<'m>(access: &Access<'_>, cube: &'m Cube) -> impl Iterator<Item = &'m Segment> {
    cube.segments.iter().filter(|segment| is_offered(access, cube, &segment.name, &segment.presentation))
}

/// Returns the joins of a cube to cubes that the caller may see.
pub fn joins<'m>(access: &Access<'m>, cube: &'m Cube) -> impl Iterator<Item = (&'m Join, &'m Cube)> {
    let targets = cube.joins.iter().map(|join| (join, access.model().cube(join.target)));
    targets.filter(|(_, target)| is_shown(access, target))
}

/// Returns the drill members of a measure that the caller may see.
pub fn drill_members<'m>(access: &Access<'_>, cube: &Cube, measure: &'m Measure) -> Vec<&'m str> {
    let is_listed = |name: &str| {
        let (of, member) = match name.split_once('.') {
            Some((of, member)) => (access.model().cube_named(of), member),
            None => (Some(cube), name),
        };
        let Some(of) = of.filter(|of| is_shown(access, of) && sees(access, of, member)) else { return false };
        match of.member(member) {
            Some(Member::Dimension(id)) => !access.model().dimension(id).presentation.hidden,
            Some(Member::Measure(id)) => !access.model().measure(id).presentation.hidden,
            _ => false,
        }
    };
    measure.presentation.drill_members.iter().map(|name| &**name).filter(|name| is_listed(name)).collect()
}

/// Returns the metrics that the caller may see.
pub fn metrics<'m>(access: &Access<'m>) -> impl Iterator<Item = &'m Metric> {
    let metrics = (0..).map(MetricId).zip(&access.model().metrics);
    let shown = metrics.filter(|(id, metric)| !metric.presentation.hidden && access.offers_metric(*id));
    shown.map(|(_, metric)| metric)
}

/// Returns those cubes of a metric's measures that the caller may see.
pub fn cubes_of_metric<'m>(access: &Access<'m>, metric: &Metric) -> Vec<&'m Cube> {
    let model = access.model();
    let cubes = cube_ids_of_metric(model, metric).into_iter().map(|id| model.cube(id));
    cubes.filter(|cube| is_shown(access, cube)).collect()
}

/// Returns the cubes of a metric's measures, in the order of their first use.
pub(crate) fn cube_ids_of_metric(model: &Model, metric: &Metric) -> Vec<CubeId> {
    let mut cubes = Vec::new();
    collect_cubes(model, &metric.body, &mut Vec::new(), &mut cubes);
    cubes
}

fn is_offered(access: &Access<'_>, cube: &Cube, name: &str, presentation: &Presentation) -> bool {
    !presentation.hidden && sees(access, cube, name)
}

fn sees(access: &Access<'_>, cube: &Cube, member: &str) -> bool {
    cube.member(member).is_some_and(|member| access.offers(member))
}

/// Collects the cubes of the measures that a snippet refers to, even through metrics, in the order of their first use.
/// Visits each metric once.
fn collect_cubes(model: &Model, body: &Snippet, visited: &mut Vec<MetricId>, cubes: &mut Vec<CubeId>) {
    body.for_each(&mut |part| match part {
        SqlPart::Measure(id) if !cubes.contains(&id.cube) => cubes.push(id.cube),
        SqlPart::Metric(id) if !visited.contains(id) => {
            visited.push(*id);
            collect_cubes(model, &model.metric(*id).body, visited, cubes);
        }
        _ => {}
    });
}
