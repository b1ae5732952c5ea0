//! The part of a project that one request can see: the catalog, its cubes, and their dimensions and measures.
//!
//! In: the access of a caller. Out: cubes with their dimensions, hierarchies and measures under the names of XMLA. They
//! contain nothing that the caller may not see. Not here: columns of rowsets.

use std::borrow::Cow;

use terrane_app::governance::ArtifactNotes;
use terrane_app::metadata;
use terrane_app::ports::governance_records::ArtifactType;
use terrane_compiler::Access;
use terrane_compiler::model::{
    AggregateFunction, Cube, Dimension, DimensionType, Measure, MeasureKind, Metric, Presentation,
};
use terrane_compiler::types::Granularity;

/// The properties of the server that rowsets show.
#[derive(Debug, Clone)]
pub struct ServerInfo {
    /// The project's name.
    pub catalog: String,
    /// The address under which the caller reached the server.
    pub url: String,
    /// The version, as four numbers with points between them.
    pub version: String,
}

/// A caller's view of the project.
pub struct VisibleProject<'a> {
    access: &'a Access<'a>,
    pub info: &'a ServerInfo,
    /// The notes that are shown below descriptions.
    notes: &'a ArtifactNotes,
    cubes: Vec<&'a Cube>,
    /// The members of the requested hierarchy, which a query has read.
    pub members: Vec<Member>,
}

/// A member of a level of a hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The index of the cube.
    pub cube: usize,
    pub hierarchy: Hierarchy,
    /// The number of the member's level. Level 0 contains only the member `All`.
    pub level: u32,
    pub ordinal: u32,
    pub caption: String,
    /// The value of the member. `None` for null.
    pub key: Option<String>,
    /// The index of the parent among all members of the hierarchy.
    pub parent: Option<u32>,
    pub children: u32,
}

/// A dimension of a cube: the cube's measures, the cube itself, or a cube that the cube reaches by to-one joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DimensionRef {
    Measures,
    /// The dimension of a cube, by the cube's index in the model.
    Cube(u32),
}

/// A hierarchy of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hierarchy {
    Measures,
    /// The values of a cube's dimension, by the indexes of the cube and the dimension in the model.
    Attribute(u32, u32),
    /// The levels year, quarter, month and day of a time dimension, by the same indexes as `Attribute`.
    Calendar(u32, u32),
}

/// A level of a hierarchy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    Measures,
    All,
    /// The level of the values themselves.
    Attribute,
    Period(Granularity),
}

/// A measure by the indexes of its cube and of itself, or a metric by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureRef {
    Measure(u32, u32),
    Metric(usize),
}

const PERIODS: [Granularity; 4] = [Granularity::Year, Granularity::Quarter, Granularity::Month, Granularity::Day];

impl<'a> VisibleProject<'a> {
    pub fn new(access: &'a Access<'a>, info: &'a ServerInfo, notes: &'a ArtifactNotes) -> Self {
        VisibleProject { access, info, notes, cubes: metadata::cubes(access).collect(), members: Vec::new() }
    }

    pub fn cubes(&self) -> &[&'a Cube] {
        &self.cubes
    }

    pub fn access(&self) -> &'a Access<'a> {
        self.access
    }

    /// Returns the description of a cube with the lines about its governance.
    pub fn cube_description(&self, cube: &'a Cube) -> Option<Cow<'a, str>> {
        self.notes.describe(ArtifactType::Cube, &cube.name, cube.description.as_deref())
    }

    fn member_description(
        &self,
        kind: ArtifactType,
        cube: u32,
        name: &str,
        presentation: &'a Presentation,
    ) -> Option<Cow<'a, str>> {
        let cube = &self.cube(cube).name;
        self.notes.describe_member(kind, cube, name, presentation.description.as_deref())
    }

    /// Returns a cube of the model.
    pub fn cube(&self, index: u32) -> &'a Cube {
        &self.access.model().cubes[index as usize]
    }

    pub fn dimension(&self, cube: u32, index: u32) -> &'a Dimension {
        &self.cube(cube).dimensions[index as usize]
    }

    /// Returns the dimensions of a cube: its measures, the cube itself, and the shown cubes that it reaches by to-one
    /// joins.
    pub fn dimensions(&self, cube: &Cube) -> Vec<DimensionRef> {
        let model = self.access.model();
        let reached =
            model.join_paths(cube.id).order.iter().filter(|id| metadata::is_shown(self.access, model.cube(**id)));
        let cubes = std::iter::once(cube.id.0).chain(reached.map(|id| id.0)).map(DimensionRef::Cube);
        std::iter::once(DimensionRef::Measures).chain(cubes).collect()
    }

    /// Returns the hierarchies of a dimension, in the order in which they are declared.
    pub fn hierarchies(&self, dimension: DimensionRef) -> Vec<Hierarchy> {
        let DimensionRef::Cube(of) = dimension else { return vec![Hierarchy::Measures] };
        let cube = self.cube(of);
        let mut hierarchies = Vec::new();
        for shown in metadata::dimensions(self.access, cube) {
            let Some(index) = cube.dimensions.iter().position(|found| found.name == shown.name) else { continue };
            hierarchies.push(Hierarchy::Attribute(of, index as u32));
            if shown.ty == DimensionType::Time && PERIODS.iter().any(|period| shown.granularities.contains(period)) {
                hierarchies.push(Hierarchy::Calendar(of, index as u32));
            }
        }
        hierarchies
    }

    /// Returns the levels of a hierarchy from the top down.
    pub fn levels(&self, hierarchy: Hierarchy) -> Vec<Level> {
        match hierarchy {
            Hierarchy::Measures => vec![Level::Measures],
            Hierarchy::Attribute(..) => vec![Level::All, Level::Attribute],
            Hierarchy::Calendar(cube, index) => {
                let allowed = &self.dimension(cube, index).granularities;
                let periods = PERIODS.into_iter().filter(|period| allowed.contains(period)).map(Level::Period);
                std::iter::once(Level::All).chain(periods).collect()
            }
        }
    }

    /// Returns the measures of a cube, and its metrics. A metric belongs to the first cube that it is computed from,
    /// unless the cube has a member with its name.
    pub fn measures(&self, cube: &Cube) -> Vec<MeasureRef> {
        let shown = metadata::measures(self.access, cube);
        let index = |measure: &Measure| cube.measures.iter().position(|found| found.name == measure.name);
        let measures = shown.filter_map(index).map(|index| MeasureRef::Measure(cube.id.0, index as u32));
        let metrics = &self.access.model().metrics;
        let is_of = |metric: &Metric| {
            let cubes = metadata::cubes_of_metric(self.access, metric);
            cubes.first().is_some_and(|first| first.id == cube.id) && cube.member(&metric.name).is_none()
        };
        let shown: Vec<&str> =
            metadata::metrics(self.access).filter(|metric| is_of(metric)).map(|m| &*m.name).collect();
        let metrics = metrics.iter().enumerate().filter(|(_, metric)| shown.contains(&&*metric.name));
        measures.chain(metrics.map(|(index, _)| MeasureRef::Metric(index))).collect()
    }
}

impl DimensionRef {
    pub fn name<'a>(self, scope: &VisibleProject<'a>) -> &'a str {
        match self {
            DimensionRef::Measures => "Measures",
            DimensionRef::Cube(cube) => &scope.cube(cube).name,
        }
    }

    pub fn unique_name(self, scope: &VisibleProject<'_>) -> String {
        bracketed(&[self.name(scope)])
    }

    pub fn caption<'a>(self, scope: &VisibleProject<'a>) -> &'a str {
        match self {
            DimensionRef::Measures => "Measures",
            DimensionRef::Cube(cube) => &scope.cube(cube).title,
        }
    }

    pub fn description<'a>(self, scope: &VisibleProject<'a>) -> Option<Cow<'a, str>> {
        match self {
            DimensionRef::Measures => None,
            DimensionRef::Cube(cube) => scope.cube_description(scope.cube(cube)),
        }
    }

    /// Returns `DIMENSION_TYPE`: 2 for measures, 1 for time, 3 for others.
    pub fn kind(self, scope: &VisibleProject<'_>) -> i64 {
        match self {
            DimensionRef::Measures => 2,
            DimensionRef::Cube(_) if self.is_time(scope) => 1,
            DimensionRef::Cube(_) => 3,
        }
    }

    /// Returns whether the cube is a calendar table, whose attributes are all times or keys, with at least one time.
    fn is_time(self, scope: &VisibleProject<'_>) -> bool {
        let attributes = scope.hierarchies(self);
        let mut attributes = attributes.iter().filter_map(|hierarchy| match hierarchy {
            Hierarchy::Attribute(cube, index) => Some(scope.dimension(*cube, *index)),
            Hierarchy::Measures | Hierarchy::Calendar(..) => None,
        });
        let is_key = |dimension: &&Dimension| dimension.primary_key && dimension.ty != DimensionType::Time;
        let mut has_time = false;
        attributes.all(|dimension| {
            has_time |= dimension.ty == DimensionType::Time;
            dimension.ty == DimensionType::Time || is_key(&dimension)
        }) && has_time
    }

    /// Returns the unique name of the hierarchy that clients show first.
    pub fn default_hierarchy(self, scope: &VisibleProject<'_>) -> Option<String> {
        scope.hierarchies(self).first().map(|hierarchy| hierarchy.unique_name(scope))
    }
}

impl Hierarchy {
    pub fn dimension(self) -> DimensionRef {
        match self {
            Hierarchy::Measures => DimensionRef::Measures,
            Hierarchy::Attribute(cube, _) | Hierarchy::Calendar(cube, _) => DimensionRef::Cube(cube),
        }
    }

    pub fn attribute<'a>(self, scope: &VisibleProject<'a>) -> Option<&'a Dimension> {
        match self {
            Hierarchy::Measures => None,
            Hierarchy::Attribute(cube, index) | Hierarchy::Calendar(cube, index) => Some(scope.dimension(cube, index)),
        }
    }

    /// Returns the description of the attribute with the lines about its governance.
    pub fn description<'a>(self, scope: &VisibleProject<'a>) -> Option<Cow<'a, str>> {
        let (Hierarchy::Attribute(cube, index) | Hierarchy::Calendar(cube, index)) = self else { return None };
        let dimension = scope.dimension(cube, index);
        scope.member_description(ArtifactType::Dimension, cube, &dimension.name, &dimension.presentation)
    }

    /// Returns the granularity of the lowest level of a calendar. Other hierarchies have none.
    pub fn finest_period(self, scope: &VisibleProject<'_>) -> Option<Granularity> {
        scope.levels(self).into_iter().rev().find_map(Level::period)
    }

    pub fn name(self, scope: &VisibleProject<'_>) -> String {
        match (self, self.attribute(scope)) {
            (Hierarchy::Calendar(..), Some(attribute)) => format!("{} calendar", attribute.name),
            (_, Some(attribute)) => attribute.name.to_string(),
            (_, None) => "Measures".to_owned(),
        }
    }

    pub fn unique_name(self, scope: &VisibleProject<'_>) -> String {
        match self {
            Hierarchy::Measures => "[Measures]".to_owned(),
            _ => bracketed(&[self.dimension().name(scope), &self.name(scope)]),
        }
    }

    pub fn caption(self, scope: &VisibleProject<'_>) -> String {
        match (self, self.attribute(scope)) {
            (Hierarchy::Calendar(..), Some(attribute)) => format!("{} (calendar)", attribute.presentation.title),
            (_, Some(attribute)) => attribute.presentation.title.to_string(),
            (_, None) => "Measures".to_owned(),
        }
    }

    /// Returns the unique name of the member `All`, which is above all other members.
    pub fn all_member(self, scope: &VisibleProject<'_>) -> Option<String> {
        (self != Hierarchy::Measures).then(|| format!("{}.[All]", self.unique_name(scope)))
    }

    /// Returns `DIMENSION_TYPE` of the hierarchy.
    pub fn kind(self, scope: &VisibleProject<'_>) -> i64 {
        match self.attribute(scope) {
            None => 2,
            Some(attribute) if attribute.ty == DimensionType::Time => 1,
            Some(_) => 3,
        }
    }
}

impl Level {
    /// Returns the granularity of a level of a calendar. Other levels have none.
    pub fn period(self) -> Option<Granularity> {
        match self {
            Level::Period(granularity) => Some(granularity),
            Level::Measures | Level::All | Level::Attribute => None,
        }
    }

    pub fn name(self, scope: &VisibleProject<'_>, hierarchy: Hierarchy) -> String {
        match self {
            Level::Measures => "MeasuresLevel".to_owned(),
            Level::All => "(All)".to_owned(),
            Level::Attribute => hierarchy.name(scope),
            Level::Period(granularity) => granularity.as_str().to_owned(),
        }
    }

    pub fn unique_name(self, scope: &VisibleProject<'_>, hierarchy: Hierarchy) -> String {
        format!("{}.{}", hierarchy.unique_name(scope), bracketed(&[&self.name(scope, hierarchy)]))
    }

    pub fn caption(self, scope: &VisibleProject<'_>, hierarchy: Hierarchy) -> String {
        match self {
            Level::Attribute => hierarchy.caption(scope),
            _ => self.name(scope, hierarchy),
        }
    }

    /// Returns `LEVEL_TYPE`.
    pub fn kind(self) -> i64 {
        match self {
            Level::Measures | Level::Attribute => 0,
            Level::All => 1,
            Level::Period(Granularity::Year) => 20,
            Level::Period(Granularity::Quarter) => 68,
            Level::Period(Granularity::Month) => 132,
            Level::Period(_) => 516,
        }
    }
}

impl MeasureRef {
    pub fn presentation<'a>(self, scope: &VisibleProject<'a>) -> &'a Presentation {
        match self {
            MeasureRef::Measure(cube, index) => &scope.cube(cube).measures[index as usize].presentation,
            MeasureRef::Metric(index) => &scope.access.model().metrics[index].presentation,
        }
    }

    /// Returns the description with the lines about the governance of the measure or metric.
    pub fn description<'a>(self, scope: &VisibleProject<'a>) -> Option<Cow<'a, str>> {
        let (name, presentation) = (self.name(scope), self.presentation(scope));
        match self {
            MeasureRef::Measure(cube, _) => scope.member_description(ArtifactType::Measure, cube, name, presentation),
            MeasureRef::Metric(_) => {
                scope.notes.describe(ArtifactType::Metric, name, presentation.description.as_deref())
            }
        }
    }

    pub fn name<'a>(self, scope: &VisibleProject<'a>) -> &'a str {
        match self {
            MeasureRef::Measure(cube, index) => &scope.cube(cube).measures[index as usize].name,
            MeasureRef::Metric(index) => &scope.access.model().metrics[index].name,
        }
    }

    pub fn unique_name(self, scope: &VisibleProject<'_>) -> String {
        bracketed(&["Measures", self.name(scope)])
    }

    /// Returns `MEASURE_AGGREGATOR`.
    pub fn aggregator(self, scope: &VisibleProject<'_>) -> i64 {
        const CALCULATED: i64 = 127;
        let MeasureRef::Measure(cube, index) = self else { return CALCULATED };
        match &scope.cube(cube).measures[index as usize].kind {
            MeasureKind::Aggregate(aggregate) => match aggregate.function {
                AggregateFunction::Sum => 1,
                AggregateFunction::Count => 2,
                AggregateFunction::Min => 3,
                AggregateFunction::Max => 4,
                AggregateFunction::Avg => 5,
                AggregateFunction::Variance(_) => 6,
                AggregateFunction::StdDev(_) => 7,
                // The value is MDMEASURE_AGGR_UNKNOWN.
                AggregateFunction::Percentile(..) => 0,
                AggregateFunction::CountDistinct | AggregateFunction::CountDistinctApprox => 8,
            },
            MeasureKind::Number(_) | MeasureKind::RunningTotal { .. } | MeasureKind::Rolling { .. } => CALCULATED,
        }
    }

    /// Returns `DATA_TYPE` as the OLE DB number of a type.
    pub fn data_type(self, scope: &VisibleProject<'_>) -> i64 {
        if self.presentation(scope).format.as_deref() == Some("currency") {
            return 6;
        }
        match self {
            MeasureRef::Measure(cube, index) => {
                data_type(terrane_dax::Type::of_measure(&scope.cube(cube).measures[index as usize].kind))
            }
            MeasureRef::Metric(_) => 5,
        }
    }
}

/// Returns the OLE DB number of a type.
pub fn data_type(ty: terrane_dax::Type) -> i64 {
    use terrane_dax::Type;
    match ty {
        Type::Text | Type::Variant | Type::Blank => 130,
        Type::Integer => 20,
        Type::Decimal | Type::Double => 5,
        Type::DateTime => 7,
        Type::Boolean => 11,
    }
}

/// Returns names in brackets, joined by points. A closing bracket in a name is doubled.
pub fn bracketed(names: &[&str]) -> String {
    let parts: Vec<String> = names.iter().map(|name| format!("[{}]", name.replace(']', "]]"))).collect();
    parts.join(".")
}
