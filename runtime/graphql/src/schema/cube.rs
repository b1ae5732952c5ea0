//! Cubes and their members.
//!
//! In: the model, the parts of it that the caller may see (`terrane_app::metadata`), and certifications. Out: objects
//! that share the strings of the model.

use std::sync::Arc;

use async_graphql::{ComplexObject, Context, Enum, Lookahead, Result, SimpleObject};
use terrane_app::dimension_values::{DEFAULT_LIMIT, ValuesOrder, ValuesRequest};
use terrane_app::governance::{Badge, Badges};
use terrane_app::metadata;
use terrane_app::ports::governance_records::ArtifactType;
use terrane_compiler::Access;
use terrane_compiler::model::{self, MeasureKind};
use terrane_compiler::types::Relationship;

use super::inputs::{FilterInput, OrderInput, Question, TimeDimensionInput, count};
use super::request::state;
use super::result::QueryResult;
use super::values::{self, DimensionValue};
use crate::enums::{DimensionType, MeasureType, TimeGranularity};

/// A table or query with its measures, dimensions, segments and joins.
#[derive(SimpleObject)]
#[graphql(complex)]
pub(crate) struct Cube {
    name: Arc<str>,
    title: Arc<str>,
    description: Option<Arc<str>>,
    measures: Vec<Measure>,
    dimensions: Vec<Dimension>,
    segments: Vec<Segment>,
    joins: Vec<Join>,
    /// Null for drafts, and without governance.
    certification: Option<Certification>,
}

/// A measure of a cube.
#[derive(SimpleObject)]
pub(crate) struct Measure {
    name: Arc<str>,
    /// The name of the cube.
    cube: Arc<str>,
    title: Arc<str>,
    description: Option<Arc<str>>,
    #[graphql(name = "type")]
    ty: MeasureType,
    /// The format for display, such as `currency`.
    format: Option<Arc<str>>,
    drill_members: Vec<String>,
    /// True if the measure reads rows at times other than that of the row: a running total or a rolling window.
    has_time_intelligence: bool,
    /// `running_total`, `running_total_from_all` if the rows before the range are added too, or `rolling_window`.
    time_intelligence_type: Option<&'static str>,
    /// Null for drafts, and without governance.
    certification: Option<Certification>,
}

/// A dimension of a cube.
#[derive(SimpleObject)]
#[graphql(complex)]
pub(crate) struct Dimension {
    name: Arc<str>,
    /// The name of the cube.
    cube: Arc<str>,
    title: Arc<str>,
    description: Option<Arc<str>>,
    #[graphql(name = "type")]
    ty: DimensionType,
    /// The format for display, such as `link`.
    format: Option<Arc<str>>,
    /// Null unless the type is `TIME`.
    granularities: Option<Vec<TimeGranularity>>,
    /// True for the time dimension that a range without a dimension filters.
    is_primary_time_dimension: bool,
    /// True if the dimension is part of the cube's primary key.
    is_primary_key: bool,
    /// Null for drafts, and without governance.
    certification: Option<Certification>,
}

/// The certification of a cube, member or metric.
#[derive(Debug, Clone, SimpleObject)]
pub(crate) struct Certification {
    /// `draft`, `pending_review`, `certified`, `deprecated` or `archived`.
    status: String,
    /// True if the definition differs from the certified one.
    definition_changed: bool,
    /// True if the last day of the certificate has passed.
    expired: bool,
}

/// A named filter of a cube.
#[derive(SimpleObject)]
pub(crate) struct Segment {
    name: Arc<str>,
    title: Arc<str>,
    description: Option<Arc<str>>,
}

/// A join to another cube.
#[derive(SimpleObject)]
pub(crate) struct Join {
    /// The name of the joined cube.
    name: Arc<str>,
    title: Arc<str>,
    relationship: JoinRelationship,
}

/// The number of rows on both sides of a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum JoinRelationship {
    ManyToOne,
    OneToMany,
    OneToOne,
}

/// A named calculation over measures.
#[derive(SimpleObject)]
pub(crate) struct Metric {
    name: Arc<str>,
    title: Arc<str>,
    description: Option<Arc<str>>,
    #[graphql(name = "type")]
    ty: MetricType,
    format: Option<Arc<str>>,
    time_grain: Option<TimeGranularity>,
    /// The names of the cubes whose measures it is computed from.
    cubes: Vec<Arc<str>>,
    /// Null for drafts, and without governance.
    certification: Option<Certification>,
}

/// The form of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum MetricType {
    Simple,
    Ratio,
    Derived,
}

#[ComplexObject]
impl Cube {
    /// Runs a query. Members without a dot belong to this cube.
    #[expect(clippy::too_many_arguments, reason = "each is an argument of the field")]
    async fn query(
        &self,
        context: &Context<'_>,
        measures: Option<Vec<String>>,
        dimensions: Option<Vec<String>>,
        filters: Option<Vec<FilterInput>>,
        time_dimensions: Option<Vec<TimeDimensionInput>>,
        order: Option<Vec<OrderInput>>,
        limit: Option<i64>,
        offset: Option<i64>,
        timezone: Option<String>,
    ) -> Result<QueryResult> {
        let cube = Some(self.name.to_string());
        let question = Question {
            cube: cube.clone(),
            measures,
            dimensions,
            filters,
            time_dimensions,
            order,
            limit,
            offset,
            timezone,
            ..Question::default()
        };
        let state = state(context);
        let (answer, is_repeated) = state.run(question.into_query()?).await?;
        Ok(QueryResult::new(answer, Arc::clone(&state.parts), cube, is_repeated))
    }
}

#[ComplexObject]
impl Dimension {
    /// The values of the dimension that the caller may see, the most frequent first.
    async fn values(
        &self,
        context: &Context<'_>,
        #[graphql(
            default_with = "Some(DEFAULT_LIMIT.into())",
            desc = "The maximum number of values, up to the server's limit of rows."
        )]
        limit: Option<i64>,
        #[graphql(desc = "Text that the values contain; case is ignored.")] search: Option<String>,
    ) -> Result<Vec<DimensionValue>> {
        let request = ValuesRequest {
            cube: &self.cube,
            dimension: &self.name,
            granularity: None,
            search: search.as_deref(),
            order: ValuesOrder::ByFrequency,
            limit: count("limit", limit)?.unwrap_or(DEFAULT_LIMIT.into()),
        };
        let state = state(context);
        let values = values::of(state, request).await?;
        state.count(context, values.len(), &|_| None)?;
        Ok(values)
    }
}

impl Cube {
    /// Returns a cube with only those of its lists that the document selects.
    pub(crate) fn new(access: &Access<'_>, badges: &Badges, cube: &model::Cube, selected: &Lookahead<'_>) -> Self {
        let is_selected = |field: &str| selected.field(field).exists();
        Cube {
            name: Arc::clone(&cube.name),
            title: Arc::clone(&cube.title),
            description: badges.description(ArtifactType::Cube, &cube.name, cube.description.as_ref()),
            measures: match is_selected("measures") {
                true => metadata::measures(access, cube)
                    .map(|measure| Measure::new(access, badges, cube, measure))
                    .collect(),
                false => Vec::new(),
            },
            dimensions: match is_selected("dimensions") {
                true => metadata::dimensions(access, cube)
                    .map(|dimension| Dimension::new(badges, cube, dimension))
                    .collect(),
                false => Vec::new(),
            },
            segments: match is_selected("segments") {
                true => metadata::segments(access, cube).map(Segment::new).collect(),
                false => Vec::new(),
            },
            joins: match is_selected("joins") {
                true => metadata::joins(access, cube).map(|(join, target)| Join::new(join, target)).collect(),
                false => Vec::new(),
            },
            certification: badges.of(ArtifactType::Cube, &cube.name).map(Certification::from),
        }
    }
}

/// Returns whether the selection of a cube or metric, or of a cube's members, contains a certification or a description.
pub(crate) fn selects_badges(selected: &Lookahead<'_>) -> bool {
    let is_governed = |of: &Lookahead<'_>| of.field("certification").exists() || of.field("description").exists();
    is_governed(selected) || is_governed(&selected.field("measures")) || is_governed(&selected.field("dimensions"))
}

/// Returns the total number of items in the lists of cubes that have this name, or `None` if the name is not a list.
pub(crate) fn items(cubes: &[Cube], list: &str) -> Option<usize> {
    let measures = || cubes.iter().flat_map(|cube| &cube.measures);
    let dimensions = || cubes.iter().flat_map(|cube| &cube.dimensions);
    match list {
        "measures" => Some(measures().count()),
        "drillMembers" => Some(measures().map(|measure| measure.drill_members.len()).sum()),
        "dimensions" => Some(dimensions().count()),
        "granularities" => {
            Some(dimensions().filter_map(|dimension| dimension.granularities.as_ref()).map(Vec::len).sum())
        }
        "segments" => Some(cubes.iter().map(|cube| cube.segments.len()).sum()),
        "joins" => Some(cubes.iter().map(|cube| cube.joins.len()).sum()),
        _ => None,
    }
}

impl Measure {
    fn new(access: &Access<'_>, badges: &Badges, cube: &model::Cube, measure: &model::Measure) -> Self {
        let badge = badges.of_member(ArtifactType::Measure, &cube.name, &measure.name);
        let of_file = measure.presentation.description.as_ref();
        let time_intelligence_type = match &measure.kind {
            MeasureKind::RunningTotal { from_all: false, .. } => Some("running_total"),
            MeasureKind::RunningTotal { from_all: true, .. } => Some("running_total_from_all"),
            MeasureKind::Rolling { .. } => Some("rolling_window"),
            _ => None,
        };
        let drill_members = metadata::drill_members(access, cube, measure);
        Measure {
            name: Arc::clone(&measure.name),
            cube: Arc::clone(&cube.name),
            title: Arc::clone(&measure.presentation.title),
            description: badges.member_description(ArtifactType::Measure, &cube.name, &measure.name, of_file),
            ty: MeasureType::from(&measure.kind),
            format: measure.presentation.format.clone(),
            drill_members: drill_members.into_iter().map(str::to_owned).collect(),
            has_time_intelligence: time_intelligence_type.is_some(),
            time_intelligence_type,
            certification: badge.map(Certification::from),
        }
    }
}

impl Dimension {
    fn new(badges: &Badges, cube: &model::Cube, dimension: &model::Dimension) -> Self {
        let badge = badges.of_member(ArtifactType::Dimension, &cube.name, &dimension.name);
        let of_file = dimension.presentation.description.as_ref();
        let granularities = dimension.granularities.iter().map(|granularity| (*granularity).into()).collect();
        let primary_time = cube.primary_time.and_then(|index| cube.dimensions.get(index as usize));
        Dimension {
            name: Arc::clone(&dimension.name),
            cube: Arc::clone(&cube.name),
            title: Arc::clone(&dimension.presentation.title),
            description: badges.member_description(ArtifactType::Dimension, &cube.name, &dimension.name, of_file),
            ty: dimension.ty.into(),
            format: dimension.presentation.format.clone(),
            granularities: (dimension.ty == model::DimensionType::Time).then_some(granularities),
            is_primary_time_dimension: primary_time.is_some_and(|time| time.name == dimension.name),
            is_primary_key: dimension.primary_key,
            certification: badge.map(Certification::from),
        }
    }
}

impl Segment {
    fn new(segment: &model::Segment) -> Self {
        Segment {
            name: Arc::clone(&segment.name),
            title: Arc::clone(&segment.presentation.title),
            description: segment.presentation.description.clone(),
        }
    }
}

impl Join {
    fn new(join: &model::Join, target: &model::Cube) -> Self {
        let relationship = match join.relationship {
            Relationship::ManyToOne => JoinRelationship::ManyToOne,
            Relationship::OneToMany => JoinRelationship::OneToMany,
            Relationship::OneToOne => JoinRelationship::OneToOne,
        };
        Join { name: Arc::clone(&target.name), title: Arc::clone(&target.title), relationship }
    }
}

impl Metric {
    pub(crate) fn cube_count(&self) -> usize {
        self.cubes.len()
    }

    pub(crate) fn new(access: &Access<'_>, badges: &Badges, metric: &model::Metric) -> Self {
        let of_file = metric.presentation.description.as_ref();
        Metric {
            name: Arc::clone(&metric.name),
            title: Arc::clone(&metric.presentation.title),
            description: badges.description(ArtifactType::Metric, &metric.name, of_file),
            ty: match metric.kind {
                model::MetricKind::Simple => MetricType::Simple,
                model::MetricKind::Ratio => MetricType::Ratio,
                model::MetricKind::Derived => MetricType::Derived,
            },
            format: metric.presentation.format.clone(),
            time_grain: metric.time_grain.map(Into::into),
            cubes: metadata::cubes_of_metric(access, metric).into_iter().map(|cube| Arc::clone(&cube.name)).collect(),
            certification: badges.of(ArtifactType::Metric, &metric.name).map(Certification::from),
        }
    }
}

impl From<Badge> for Certification {
    fn from(badge: Badge) -> Self {
        Certification {
            status: badge.status.as_str().to_owned(),
            definition_changed: badge.is_definition_changed,
            expired: badge.is_expired,
        }
    }
}

impl From<&MeasureKind> for MeasureType {
    fn from(kind: &MeasureKind) -> Self {
        use model::AggregateFunction;
        match kind {
            MeasureKind::Number(_) => MeasureType::Number,
            MeasureKind::RunningTotal { .. } => MeasureType::RunningTotal,
            MeasureKind::Aggregate(aggregate) | MeasureKind::Rolling { aggregate, .. } => match aggregate.function {
                AggregateFunction::Count => MeasureType::Count,
                AggregateFunction::CountDistinct => MeasureType::CountDistinct,
                AggregateFunction::CountDistinctApprox => MeasureType::CountDistinctApprox,
                AggregateFunction::Sum => MeasureType::Sum,
                AggregateFunction::Avg => MeasureType::Avg,
                AggregateFunction::Min => MeasureType::Min,
                AggregateFunction::Max => MeasureType::Max,
                AggregateFunction::Percentile(..) | AggregateFunction::StdDev(_) | AggregateFunction::Variance(_) => {
                    MeasureType::Number
                }
            },
        }
    }
}

impl From<model::DimensionType> for DimensionType {
    fn from(ty: model::DimensionType) -> Self {
        match ty {
            model::DimensionType::String => DimensionType::String,
            model::DimensionType::Number => DimensionType::Number,
            model::DimensionType::Time => DimensionType::Time,
            model::DimensionType::Boolean => DimensionType::Boolean,
            model::DimensionType::Geo => DimensionType::Geo,
        }
    }
}
