//! The parts of a project that a caller may see, in the order of the generated text.
//!
//! In: the access of a caller. Out: cubes, members and metrics, sorted by code point, with the types of their values.

use terrane_app::metadata;
use terrane_compiler::Access;
use terrane_compiler::model::{AggregateFunction, Cube, DimensionType, Measure, MeasureKind, Presentation};

/// The type of the values of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// A number that is never null.
    Count,
    Number,
    String,
    Boolean,
    /// The type of values whose column has a type that the model does not know.
    Any,
}

/// A name with its title and description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caption<'m> {
    pub name: &'m str,
    pub title: &'m str,
    pub description: Option<&'m str>,
}

/// A measure or a dimension. Only time dimensions have granularities, finest first.
#[derive(Debug)]
pub(crate) struct VisibleMember<'m> {
    pub caption: Caption<'m>,
    pub value: ValueType,
    pub granularities: Vec<&'static str>,
}

#[derive(Debug)]
pub(crate) struct VisibleCube<'m> {
    pub caption: Caption<'m>,
    pub measures: Vec<VisibleMember<'m>>,
    pub dimensions: Vec<VisibleMember<'m>>,
    pub segments: Vec<Caption<'m>>,
}

/// All cubes and metrics that a caller may see.
#[derive(Debug)]
pub(crate) struct VisibleProject<'m> {
    pub cubes: Vec<VisibleCube<'m>>,
    pub metrics: Vec<Caption<'m>>,
}

impl<'m> VisibleProject<'m> {
    pub(crate) fn of(access: &Access<'m>) -> Self {
        let cubes = metadata::cubes(access).map(|cube| VisibleCube::of(access, cube)).collect();
        let metrics = metadata::metrics(access).map(|metric| caption(&metric.name, &metric.presentation)).collect();
        VisibleProject {
            cubes: sorted(cubes, |cube: &VisibleCube<'m>| cube.caption.name),
            metrics: sorted(metrics, |metric: &Caption<'m>| metric.name),
        }
    }
}

impl<'m> VisibleCube<'m> {
    fn of(access: &Access<'m>, cube: &'m Cube) -> Self {
        let Cube { name, title, description, .. } = cube;
        let measures = metadata::measures(access, cube).map(|measure| VisibleMember {
            caption: caption(&measure.name, &measure.presentation),
            value: measure_type(cube, measure),
            granularities: Vec::new(),
        });
        let dimensions = metadata::dimensions(access, cube).map(|dimension| VisibleMember {
            caption: caption(&dimension.name, &dimension.presentation),
            value: dimension_type(dimension.ty),
            granularities: dimension.granularities.iter().map(|granularity| granularity.as_str()).collect(),
        });
        let segments = metadata::segments(access, cube).map(|segment| caption(&segment.name, &segment.presentation));
        VisibleCube {
            caption: Caption { name, title, description: description.as_deref() },
            measures: sorted(measures.collect(), |measure: &VisibleMember<'m>| measure.caption.name),
            dimensions: sorted(dimensions.collect(), |dimension: &VisibleMember<'m>| dimension.caption.name),
            segments: sorted(segments.collect(), |segment: &Caption<'m>| segment.name),
        }
    }
}

fn caption<'m>(name: &'m str, presentation: &'m Presentation) -> Caption<'m> {
    Caption { name, title: &presentation.title, description: presentation.description.as_deref() }
}

/// Sorts by name in the order of code points, which is the byte order of UTF-8.
fn sorted<'m, T>(mut items: Vec<T>, name: impl Fn(&T) -> &'m str) -> Vec<T> {
    items.sort_by(|left, right| name(left).cmp(name(right)));
    items
}

/// Returns the type of a measure's values. A minimum or maximum has the type of its
/// dimension; the type of another column is unknown.
fn measure_type(cube: &Cube, measure: &Measure) -> ValueType {
    let (MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling { aggregate, .. }) = &measure.kind else {
        return ValueType::Number;
    };
    match aggregate.function {
        AggregateFunction::Count | AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox => {
            ValueType::Count
        }
        AggregateFunction::Min | AggregateFunction::Max => {
            cube.extremum_type(measure).map_or(ValueType::Any, dimension_type)
        }
        _ => ValueType::Number,
    }
}

fn dimension_type(ty: DimensionType) -> ValueType {
    match ty {
        DimensionType::Number => ValueType::Number,
        DimensionType::Boolean => ValueType::Boolean,
        DimensionType::String | DimensionType::Time | DimensionType::Geo => ValueType::String,
    }
}
